"""Texts of an estate under pseudonyms: TOML, and where it needs them a CFRM policy, aliases in MQSC and a history.

Numbers and the words of `KEPT_WORDS` are kept, names are replaced, everything else is left out: a text of the estate
that nobody has thought of here is in none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from twin.estate import CouplingFacility, Estate, PageSet, StoreConfig, Structure
from twin.estate.attributes import LEVELS
from twin.estate.model import Smds
from twin.estate.past_rises import StoreHistory, history_text
from twin.estate.planned import Plan, planned_text
from twin.estate.rows import Table
from twin.estate.sources import toml_string
from twin.recordings.pseudonyms import Pseudonyms, moved_plan
from twin.units import KIB, as_text

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
