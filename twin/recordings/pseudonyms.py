"""Pseudonyms of the names of a site, and times moved by whole weeks, for a recording and an estate that others may see.

- A pseudonym is the HMAC of a name by a key, so the same key gives the same one again and without it nobody finds the
  name. It is valid in MQ and has one length for each kind of name: a length says much about a short name. Ids of
  messages and units of work are numbered as they come: digests of a million ids would be most of the file.
- An estate under pseudonyms is TOML, and where it needs them a CFRM policy, aliases in MQSC and a history.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from msgspec.structs import replace

from twin.base.errors import UsageError
from twin.base.units import KIB, as_datetime, as_text
from twin.estate import CouplingFacility, Estate, PageSet, StoreConfig, Structure
from twin.estate.attributes import LEVELS
from twin.estate.model import Smds
from twin.estate.planned import Plan, StoreHistory, history_text, planned_text
from twin.estate.rows import Table
from twin.estate.sources import toml_string

WEEK = 7 * 86_400_000_000  # microseconds
MIN_KEY_BYTES = 16

# Beginning and length of the pseudonyms of each kind of name. No two kinds have one name: an estate keeps them apart.
_FORMS: Mapping[str, tuple[str, int]] = {
    "group": ("G", 4),
    "queue manager": ("M", 4),
    "structure": ("S", 8),
    "other structure": ("X", 8),
    "coupling facility": ("CF", 8),
    "policy": ("P", 8),
    "queue": ("QUEUE.", 14),
    "cluster": ("UC", 8),
    "host": ("H", 8),
    "plan": ("PLAN-", 12),
}
_MIN_SHIFT, _MAX_SHIFT = 4, 3120  # weeks: sixty years
_YEARS = datetime(2001, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)
_AROUND = timedelta(days=15)  # a window of planned work may be so long before the first event, and after the last
_LOOKED_AT = timedelta(days=400)
_UNTIL = re.compile("(?<=UNTIL=)[0-9]{8}")


class Pseudonyms:
    """Pseudonyms by a secret key."""

    def __init__(self, key: bytes) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise UsageError(f"a key of {len(key)} bytes; expected: {MIN_KEY_BYTES} or more, of random")
        self._key = key
        self._in_use: set[str] = set()
        self.table: dict[tuple[str, str], str] = {}

    def replacement(self, kind: str, name: str) -> str:
        """Return the pseudonym of a name. kind: one of `_FORMS`."""
        known = self.table.get((kind, name))
        if known is not None:
            return known
        begin, length = _FORMS[kind]
        for attempt in range(1000):
            text = b32encode(self._digest(f"{kind}\0{name}\0{attempt}")).decode()
            pseudonym = begin + text[: length - len(begin)]
            if pseudonym not in self._in_use:
                self._in_use.add(pseudonym)
                self.table[kind, name] = pseudonym
                return pseudonym
        raise UsageError(f"too many names of the kind {kind}; expected: an estate of fewer")

    def add(self, estate: Estate) -> None:
        """Take the names of an estate in their order, so that names whose digests agree get the same ones each time."""
        for name in estate.queue_managers:
            self.replacement("queue manager", name)
        for store in estate.stores.values():
            self.store(store)
        for route in estate.routes:
            for name in filter(None, (route.queue, route.reported)):
                self.replacement("queue", name)
        for own in estate.planned.values():
            for plan in own:
                self.replacement("plan", plan.id)

    def store(self, config: StoreConfig) -> str:
        """Return the name of a store, of pseudonyms."""
        parts = zip(config.name_parts, config.name.split("/", 1), strict=True)
        return "/".join(self.replacement(kind, name) if kind else name for kind, name in parts)

    def weeks(self, first: int, last: int, zone: tzinfo, plans: Iterable[Plan]) -> int:
        """Return the whole weeks by which the key moves a recording, from the times of its first and last event,
        microseconds.

        The clock of the site is as far from UTC as it was, and planned work has the same windows, if any number of
        weeks keeps both. UsageError: there is no room for it in the years that events may be of.
        """
        begin, end = as_datetime(first), as_datetime(last)
        low = max(-_MAX_SHIFT, -((begin - _YEARS[0]) // timedelta(weeks=1)))
        high = min(_MAX_SHIFT, (_YEARS[1] - end) // timedelta(weeks=1))
        possible = [weeks for weeks in range(low, high + 1) if abs(weeks) >= _MIN_SHIFT]
        if not possible:
            wrong = f"events from {begin:%Y-%m-%d} to {end:%Y-%m-%d} cannot be moved in time"
            raise UsageError(f"{wrong}; expected: a recording of the years {_YEARS[0]:%Y} to {_YEARS[1]:%Y}")
        possible.sort(key=lambda weeks: self._digest(f"weeks\0{weeks}"))
        asked = tuple(plans)
        span = begin - _AROUND, min(end, begin + _LOOKED_AT) + _AROUND
        return next((weeks for weeks in possible if _fits(weeks, span, zone, asked)), possible[0])

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(), "sha256")


class Numbers:
    """Numbers in the place of ids, as they come: "1", "2", ..."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def replacement(self, name: str | None) -> str | None:
        """Return the number of an id; None of None."""
        if name is None:
            return None
        return self._known.setdefault(name, str(len(self._known) + 1))

    def __len__(self) -> int:
        return len(self._known)


def moved_plan(plan: Plan, names: Pseudonyms, shift: int) -> Plan:
    """Return a plan under pseudonyms, microseconds later, without its note."""
    return Plan(
        id=names.replacement("plan", plan.id),
        queue=names.replacement("queue", plan.queue) if plan.queue else "",
        start=None if plan.start is None else plan.start + shift,
        end=None if plan.end is None else plan.end + shift,
        rrule=_moved_rule(plan.rrule, shift),
        duration_s=plan.duration_s,
        messages=plan.messages,
        length=plan.length,
        puts_per_s=plan.puts_per_s,
        away=plan.away,
        allowed_pct=plan.allowed_pct,
    )


def _moved_rule(rule: str, shift: int) -> str:
    def moved(match: re.Match[str]) -> str:
        day = datetime.strptime(match[0], "%Y%m%d").replace(tzinfo=UTC) + timedelta(microseconds=shift)
        return f"{day:%Y%m%d}"

    return _UNTIL.sub(moved, rule)


def _fits(weeks: int, span: tuple[datetime, datetime], zone: tzinfo, plans: Iterable[Plan]) -> bool:
    """Return True if a zone has the same offsets, and plans have the same windows, that number of weeks later."""
    later = timedelta(weeks=weeks)
    begin, end = span
    for day in range((end - begin).days + 1):
        moment = begin + timedelta(days=day)
        now, moved = moment.astimezone(zone), (moment + later).astimezone(zone)
        if (now.utcoffset(), now.tzname()) != (moved.utcoffset(), moved.tzname()):
            return False
    shift = weeks * WEEK
    low, high = (round(moment.timestamp()) * 1_000_000 for moment in span)
    blank = Pseudonyms(bytes(MIN_KEY_BYTES))
    return all(
        [(start + shift, end + shift) for start, end in plan.windows(zone, low, high)]
        == moved_plan(plan, blank, shift).windows(zone, low + shift, high + shift)
        for plan in plans
    )


# --- texts of an estate under pseudonyms ------------------------------------------------------------------------------
# Numbers and the words of `KEPT_WORDS` are kept, names are replaced, everything else is left out: a text of the estate
# that nobody has thought of here is in none of them.

KEPT_WORDS = ("platform", "version", "offload", "expand", "policy")  # attributes with words of MQ, or of ours
NAMES = {"coupling_facility": "coupling facility", "host": "host", "queue_managers": "queue manager"}
_SECTIONS = {"coupling_facility", "queue_file", "uniform_cluster"}
_HISTORY = "history.json"


def shared_texts(estate: Estate, names: Pseudonyms, shift: int) -> dict[str, bytes]:
    """Return the files of an estate by name; `estate.toml` names the others. Times are `shift` microseconds later."""
    head, tables, files = ["schema = 1"], list(_tables(estate, names)), {}
    if estate.history:
        head.append(f'history = "{_HISTORY}"')
        files[_HISTORY] = history_text(
            {names.store(estate.stores[store]): _moved(own, names, shift) for store, own in estate.history.items()}
        )
    for owner, text in _policies(estate, names):
        head += ["", "[[import]]", f'cfrm = "{owner}.txt"']
        files[f"{owner}.txt"] = text.encode()
    for owner, text in _aliases(estate, names):
        head += ["", "[[import]]", f'mqsc = "{owner}.mqsc"', f'queue_manager = "{owner}"']
        files[f"{owner}.mqsc"] = text.encode()
    if estate.site.zone:
        head += ["", "[site]", f"zone = {toml_string(estate.site.zone)}"]
    for store, plans in estate.planned.items():
        for plan in plans:
            content = plan_fields(moved_plan(plan, names, shift))
            head += ["", planned_text(names.store(estate.stores[store]), content)]
    text = "\n".join((*head, *tables)) + "\n"
    return {"estate.toml": text.encode(), **files}


def plan_fields(plan: Plan) -> dict[str, Any]:
    """Return a plan as PLAN events and tables [[planned]] write it."""
    values: dict[str, Any] = {
        "id": plan.id,
        "queue": plan.queue or None,
        "from": None if plan.start is None else as_text(plan.start),
        "until": None if plan.end is None else as_text(plan.end),
        "rrule": plan.rrule or None,
        "duration_s": plan.duration_s or None,
        "messages": plan.messages,
        "length": plan.length,
        "puts_per_s": plan.puts_per_s,
        "getters": "away" if plan.away else None,
        "allowed_pct": plan.allowed_pct,
    }
    return {name: value for name, value in values.items() if value is not None}


def named_values(values: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    """Return attributes that numbers, words of MQ and names give, names replaced; others are left out."""
    named: dict[str, Any] = {}
    for attribute, value in values.items():
        kind = NAMES.get(attribute)
        if kind is not None and isinstance(value, str):
            named[attribute] = names.replacement(kind, value)
        elif kind is not None and isinstance(value, tuple):
            named[attribute] = tuple(names.replacement(kind, name) for name in value)
        elif value is None or isinstance(value, int | float) or attribute in KEPT_WORDS:
            named[attribute] = value
    return named


def _tables(estate: Estate, names: Pseudonyms) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name, qmgr in estate.queue_managers.items():
        yield from _table("queue_manager", names.replacement("queue manager", name), _own(qmgr, qmgr.rows, names))
        if qmgr.queue_sharing_group:
            own = groups.setdefault(names.replacement("group", qmgr.queue_sharing_group), [])
            own.append(names.replacement("queue manager", name))
    for group, members in groups.items():
        yield from _table("queue_sharing_group", group, {"queue_managers": tuple(members)})
    for host, cores in estate.hosts.items():
        yield from _table("host", names.replacement("host", host), {"cores": cores})
    for store in estate.stores.values():
        yield from _tables_of(store, names)
        yield from _queues(store, estate.max_depths.get(store.name, {}), names)


def _tables_of(store: StoreConfig, names: Pseudonyms) -> Iterator[str]:
    name = names.store(store)
    if isinstance(store, Structure):
        section = "structure" if store.queue_sharing_group else "other_structure"
        yield from _table(section, name, _of_structure(store, names))
        for qmgr, dataset in store.smds.items():
            if dataset != Smds():
                own = _own(dataset, Smds.rows, names)
                yield from _table("smds", f"{name}/{names.replacement('queue manager', qmgr)}", own)
    elif isinstance(store, PageSet):
        yield from _table(store.kind, f"{name.partition('/')[0]}/{store.psid}", _own(store, store.rows, names))
        yield from _table("storage_class", name, {"page_set": store.psid})
    elif store.kind in _SECTIONS and not (isinstance(store, CouplingFacility) and store.size is None):
        yield from _table(store.kind, name, _own(store, store.rows, names))


def _of_structure(store: Structure, names: Pseudonyms) -> dict[str, Any]:
    """Return the attributes of a structure: those of MQSC do nothing below CFLEVEL(5), and are warned about."""
    values = _own(store, LEVELS if store.known_by_levels else store.rows, names)
    if store.cf_level < 5 and not store.known_by_levels:
        rows = Structure.rows
        plain = ("cf_level", "offload")
        values = {name: value for name, value in values.items() if name in plain or not rows[name].mqsc}
    return values


def _queues(store: StoreConfig, depths: Mapping[str, int], names: Pseudonyms) -> Iterator[str]:
    owner, _, short = names.store(store).partition("/")
    for queue in store.queues:
        own: dict[str, Any] = {store.queue_key: short} if store.queue_key else {}
        if queue in depths:
            own["max_depth"] = depths[queue]
        if own:
            yield from _table("queue", f"{owner}/{names.replacement('queue', queue)}", own)


def _own(config: Any, rows: Table, names: Pseudonyms) -> dict[str, Any]:
    values = named_values({name: getattr(config, name) for name in rows}, names)
    return {name: value for name, value in values.items() if value is not None}


def _table(section: str, key: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield f'\n[{section}."{key}"]'
    for name, value in values.items():
        yield f"{name} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return toml_string(value) if isinstance(value, str) else repr(value)


def _policies(estate: Estate, names: Pseudonyms) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the CFRM policies: the names of those of structures, and what only a policy describes."""
    by_policy: dict[str, list[str]] = {}
    for store in estate.structures.values():
        if store.cfrm_policy is not None:
            short = names.store(store).replace("/", "")
            size = -(-store.size // KIB)  # estate.toml has the size itself
            by_policy.setdefault(names.replacement("policy", store.cfrm_policy), []).append(
                f"  STRUCTURE NAME({short}) SIZE({size})"
            )
    for facility in estate.stores.values():
        if not isinstance(facility, CouplingFacility):
            continue
        own, others = names.store(facility), facility.others.items()
        sizes = [(names.replacement("other structure", name), size // KIB) for name, size in others]
        lines = [f"  STRUCTURE NAME({name}) SIZE({size}) PREFLIST({own})" for name, size in sizes]
        if facility.size is None:
            space = f" DUMPSPACE({facility.dump_space // KIB})" if facility.dump_space else ""
            lines.insert(0, f"  CF NAME({own}){space}")
        if lines:
            first = next(iter(by_policy), None) or names.replacement("policy", "no policy")
            by_policy.setdefault(first, []).extend(lines)
    for policy, lines in by_policy.items():
        yield policy, "\n".join(("DATA TYPE(CFRM)", f"DEFINE POLICY NAME({policy})", *sorted(lines), ""))


def _aliases(estate: Estate, names: Pseudonyms) -> Iterator[tuple[str, str]]:
    """Yield (queue manager, text) of the names that lead to queues of other names."""
    by_qmgr: dict[str, list[str]] = {}
    for route in estate.routes:
        if route.reported is not None and route.queue is not None and route.reported != route.queue:
            alias, target = names.replacement("queue", route.reported), names.replacement("queue", route.queue)
            own = by_qmgr.setdefault(names.replacement("queue manager", route.qmgr), [])
            own.append(f"DEFINE QALIAS({alias}) TARGET({target})")
    for qmgr, lines in by_qmgr.items():
        yield qmgr, "\n".join(lines) + "\n"


def _moved(history: StoreHistory, names: Pseudonyms, shift: int) -> StoreHistory:
    rises: Iterable[Any] = (
        replace(
            rise,
            began=rise.began + shift,
            ended=rise.ended + shift,
            data_set=names.replacement("queue manager", rise.data_set) if rise.data_set else "",
        )
        for rise in history.rises
    )
    puts = None if history.puts is None else replace(history.puts, until=history.puts.until + shift)
    return StoreHistory(tuple(rises), puts)
