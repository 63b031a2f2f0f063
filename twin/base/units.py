"""Times and sizes as text.

Event times are RFC 3339, UTC, with microseconds. What a person reads is in the zone of the site, with its abbreviation
(`as_local`). Sizes are numbers with K, M, G or T, powers of 1024. A number without
a unit is bytes in TOML and KB in a CFRM policy (`parse_size`).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
TIB = 1024 * GIB
UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
MAX_SIZE = 2**63 - 1  # bytes; sizes are signed 64-bit numbers

TRACK = 12 * 4 * KIB  # of a 3390: 12 control intervals of 4 KB [IBM: z/OS DFSMS, Direct access storage devices]
CYLINDER = 15 * TRACK

_SIZE = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) ?([KMGT]?)", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400  # seconds
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")
_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)

EventTime = str | int | datetime
"""A time as the library takes it: RFC 3339, microseconds since 1970, or a datetime with a zone."""
FIRST_SECOND, LAST_SECOND = 946_684_800, 4_133_980_799  # years 2000 to 2100, those of events: seconds since 1970


class _Unit(NamedTuple):
    """A unit of spans of time. size: in seconds; limit: seconds below which it is used; digits: after the point."""

    name: str
    size: int
    limit: float
    digits: int

    def number(self, seconds: float) -> str:
        return f"{seconds / self.size:.{self.digits}f}"

    def interval(self, low: float, high: float) -> str:
        """Return the interval between two numbers of seconds."""
        first, last = self.number(low), self.number(high)
        return f"{last} {self.name}" if first == last else f"{first} to {last} {self.name}"


_HOURS_FROM = 5400.0  # seconds
_SPANS = (_Unit("s", 1, 90, 0), _Unit("min", 60, _HOURS_FROM, 0), _Unit("h", 3600, math.inf, 1))
_WIDE = 3  # times the limit of a unit, above which an interval is too wide for it


def as_datetime(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to an aware datetime, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


def as_text(microseconds: int) -> str:
    """Format microseconds since 1970 as `2026-11-20T12:00:00.000123Z`: always six digits, so texts sort like times."""
    return as_datetime(microseconds).isoformat(timespec="microseconds")[:26] + "Z"


@lru_cache
def zone_of(text: str) -> tzinfo:
    """Return the zone of a name or of an offset, `Europe/Berlin` or `+01:00`; UTC of "". ValueError: it is neither."""
    match = _OFFSET.fullmatch(text)
    if match is not None and int(match[2]) < 24 and int(match[3]) < 60:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(offset if match[1] == "+" else -offset)
    if not text or text == "UTC":
        return UTC
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{text}; expected: a name such as Europe/Berlin, or an offset such as +01:00") from None


def as_local(time: int | str, zone: tzinfo = UTC, beside: int | str | None = None, *, seconds: bool = False) -> str:
    """Format a time for a person, in the zone of their site: `2026-11-20 03:10 CET`, of the day of `beside` `03:10
    CET`.

    Times are microseconds since 1970, or as `as_text` formats them.
    """
    local = in_zone(time, zone)
    is_known = beside is not None and in_zone(beside, zone).date() == local.date()
    day = "" if is_known else f"{local.date()} "
    return f"{day}{local.time().isoformat('seconds' if seconds else 'minutes')} {abbreviation(local)}"


def in_zone(time: int | str, zone: tzinfo) -> datetime:
    """Return a time in a zone; arguments as of `as_local`."""
    return (datetime.fromisoformat(time) if isinstance(time, str) else as_datetime(time)).astimezone(zone)


def abbreviation(local: datetime) -> str:
    """Return the abbreviation of the zone of a time, `CET`, or its offset where it has none, `UTC+03`."""
    name = local.tzname() or "UTC"
    return f"UTC{name}" if name[0] in "+-" else name


@lru_cache(maxsize=256)
def zone_periods(zone: tzinfo, day: int) -> tuple[tuple[int, int, str], ...]:
    """Return (begin, seconds ahead of UTC, abbreviation) of the periods of a zone within 400 days of a day.

    A page formats its times by them as `as_local` does. Begins are seconds since 1970, that of the first is 0.
    """

    def period_at(second: int) -> tuple[int, str]:
        local = datetime.fromtimestamp(second, zone)
        return round((local.utcoffset() or timedelta()).total_seconds()), abbreviation(local)

    first, last = max(0, day - 400) * _DAY, (day + 400) * _DAY
    periods = [(0, *period_at(first))]
    for day_begin in range(first, last, _DAY):
        if period_at(day_begin + _DAY) != period_at(day_begin):
            begin = bisect_left(
                range(day_begin, day_begin + _DAY), True, key=lambda second: period_at(second) != period_at(day_begin)
            )
            periods.append((day_begin + begin, *period_at(day_begin + _DAY)))
    return tuple(periods)


def as_microseconds(text: str) -> int:
    """Return the microseconds since 1970 of a time in RFC 3339, seconds optional. ValueError: none, or no offset."""
    if _RFC_3339.fullmatch(text) is None:
        raise ValueError(f"{text[:40]} is not RFC 3339 with Z or another offset from UTC")
    return (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(microseconds=1)


def event_time(text: str) -> int:
    """Return the microseconds since 1970 of a time in an option or in a record, which anybody may have written.
    ValueError: it is not RFC 3339, no such day is in the calendar, or no event can be of that year.
    """
    try:
        time = as_microseconds(text)
    except ValueError:
        time = -1
    if not FIRST_SECOND <= time // 1_000_000 <= LAST_SECOND:
        right = "RFC 3339 with its zone, such as 2026-11-20T02:10Z, in the years 2000 to 2100"
        raise ValueError(f"{text[:40]}; expected: {right}")
    return time


def event_us(time: EventTime) -> int:
    """Return the microseconds since 1970 of a user's time. ValueError: as `event_time`; or a datetime has no zone."""
    if isinstance(time, str):
        return event_time(time)
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise ValueError(f"{time} has no zone; expected: a datetime with one, such as tzinfo=UTC")
    return (time - _EPOCH) // timedelta(microseconds=1)


def as_seconds(text: str) -> float:
    """Return the seconds since 1970 of a time as `as_text` formats it."""
    return datetime.fromisoformat(text).timestamp()


def as_span(seconds: float) -> str:
    """Format a span of time: `45 s`, `12 min`, `3.5 h`."""
    unit = _unit_of(seconds)
    return f"{unit.number(seconds)} {unit.name}"


def as_range(low: float, high: float) -> str:
    """Format a range of spans in seconds: `24 to 31 min`, `85 to 130 s`, `58 min to 1.7 h`, `10 min`."""
    unit = _unit_of(low)
    if high > _WIDE * unit.limit or (unit.size > 1 and high >= unit.limit):
        return f"{as_span(low)} to {as_span(high)}"
    return unit.interval(low, high)


def as_estimate(p10: float, p50: float | None, p90: float | None) -> tuple[str, str]:
    """Format a time and its interval, seconds, in one unit: `28 min` and `21 to 37 min`. None: later than the horizon.

    The unit is that of p10, or of p50 if the interval is too wide for it; from 90 minutes on it is hours.
    """
    unit = _unit_of(p10)
    last = p90 if p90 is not None else p50
    if p50 is not None and last is not None and (last > _WIDE * unit.limit or p50 >= _HOURS_FROM):
        unit = _unit_of(p50)
    middle = "later" if p50 is None else f"{unit.number(p50)} {unit.name}"
    if p90 is None:
        return middle, f"{unit.number(p10)} {unit.name} to later"
    if unit.limit == _HOURS_FROM <= p90:
        return middle, f"{unit.number(p10)} {unit.name} to {as_span(p90)}"
    return middle, unit.interval(p10, p90)


def _unit_of(seconds: float) -> _Unit:
    return next((unit for unit in _SPANS if seconds < unit.limit), _SPANS[-1])


def parse_size(value: object, *, unit: str = "") -> int:
    """Return the bytes of a size: an integer, or a string like "4G", "1.5G", "64K", "0K", "4096".

    A number without a unit is of `unit`: "" (bytes in TOML), "K" (in a CFRM policy), "M", "G" or "T". TypeError: it is
    neither an integer nor a string. ValueError: it is negative, not a whole number of bytes, or beyond 2**63 - 1.
    """
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError("not a size")
        number = Decimal(match[1]) * UNITS[match[2].upper() or unit]
        if number != number.to_integral_value():
            raise ValueError("not a whole number of bytes")
        size = int(number)
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value * UNITS[unit]
    else:
        raise TypeError("not a size")
    if not 0 <= size <= MAX_SIZE:
        raise ValueError("not a size")
    return size


def format_size(size: int) -> str:
    """Return the shortest text from which `parse_size` reads the same number of bytes: "4G", "1000"."""
    for unit in ("T", "G", "M", "K"):
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def as_rate(per_second: float) -> str:
    """Format a number per second for a reader, with three digits: `1,360`, `22.9`, `0.004`; never with an exponent."""
    if per_second >= 99.95:
        return f"{per_second:,.0f}"
    return f"{per_second:.3g}" if per_second == 0 or per_second >= 0.001 else "less than 0.001"


def as_count(number: int, noun: str) -> str:
    """Format a number with its noun, whose plural ends in s: `1 event`, `2,000 events`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(part: float, whole: float, of_nothing: float = 0.0) -> float:
    """Return a part in percent of the whole, to three decimals. of_nothing: the percentage where there is no whole."""
    return round(100.0 * part / whole, 3) if whole > 0 else of_nothing


def as_usage(pct: float) -> str:
    """Format a usage, in percent of the present size as DISPLAY has it: `89.0 % in use`."""
    return f"{pct:.1f} % in use{' (the system took more than the twin has room for)' if pct > 100 else ''}"


def as_times(factor: float) -> str:
    """Format a factor: `twice`, `1.1 times`, `150 times`."""
    digits = f"{factor:,.0f}" if factor >= 9.95 else f"{factor:.1f}".removesuffix(".0")
    return "twice" if digits == "2" else f"{digits} times"


def readable_size(size: int) -> str:
    """Format bytes for a reader, with three digits: `4 GB`, `1.5 TB`, `512 bytes`; powers of 1024."""
    for unit in ("T", "G", "M", "K"):
        if abs(size) >= UNITS[unit]:
            amount = size / UNITS[unit]
            return f"{amount:.3g} {unit}B" if abs(amount) < 999.5 else f"{amount:,.0f} {unit}B"
    return f"{size} bytes"
