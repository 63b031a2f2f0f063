"""Pseudonyms of the names of a site, and times moved by whole weeks, for a recording that others may see.

A pseudonym is the HMAC of a name by a key, so the same key gives the same one again and without it nobody finds the
name. It is valid in MQ and has one length for each kind of name: a length says much about a short name. Ids of messages
and units of work are numbered as they come: digests of a million ids would be most of the file.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo

from twin.errors import UsageError
from twin.estate import Estate, StoreConfig
from twin.estate.planned import Plan
from twin.units import as_datetime

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
