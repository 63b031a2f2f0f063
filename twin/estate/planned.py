"""Planned work of a store, and its history: past rises, with which its twin begins.

- Plans: one comes from a table [[planned]] of the estate or from a PLAN event (docs/planned-work.md). A recurrence is
  an RRULE [RFC 5545, 3.3.10] of local times in the zone of the site.
- History: past rises of the stores of an estate and puts of their last days, with which their twins begin. `mqtwin
  warm` learns it from a recording; the key `history` of an estate file names it (docs/estate.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from dateutil.rrule import rrulestr

from twin.base.decoding import UNREADABLE
from twin.base.units import as_datetime, event_us
from twin.estate.errors import EstateError, known_hint, show
from twin.estate.model import StoreConfig
from twin.estate.rows import WRONG, Check, integer, number, text
from twin.estate.sources import toml_string

MAX_PLANS = 64  # of a store, estate and events together [assumed]
MAX_WINDOW_S = 14 * 86_400  # of a window [assumed]
_MOST_A_DAY = 24  # windows of a rule on one day [assumed]
_DAY = 86_400_000_000  # microseconds
_MOST_MESSAGES = 10**12
_MOST_BYTES = 104_857_600  # of a message [IBM: MQ, MAXMSGL]
_PAD = timedelta(hours=4)  # more than any change of the clocks
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Window(NamedTuple):
    """A window of a plan, microseconds since 1970."""

    start: int
    end: int


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Expectations of a store in each window of a plan."""

    id: str  # its name, for people and for cancelling it
    queue: str = ""  # the queue that it is about; "": the whole store
    # beginning of the only window, or from when on the rule counts, microseconds; None: no time of its own
    start: int | None = None
    end: int | None = None  # end of the only window, microseconds; None: there is a rule
    rrule: str = ""  # recurrence; "": none
    duration_s: float = 0.0  # length of the windows of the rule, seconds
    messages: int | None = None  # messages that a window puts; None: not announced
    length: int | None = None  # mean bytes of a message, as in a PUT; None: as messages of the queue have now
    puts_per_s: float | None = None  # messages put a second; None: not announced
    away: bool = False  # True if the getters are away in the window and return at its end
    allowed_pct: float | None = None  # percentage in use up to which nothing is said; None: no level is allowed
    note: str = ""  # anything, for people

    def announced(self, window: Window) -> int | None:
        """Return the messages that a window puts; None: their number is not announced."""
        if self.messages is None and self.puts_per_s is not None:
            return max(1, round(self.puts_per_s * (window.end - window.start) / 1_000_000))
        return self.messages

    def windows(self, zone: tzinfo, begin: int, end: int) -> list[Window]:
        """Return the windows that overlap a span of time, microseconds, its end excluded; in order of time."""
        if not self.rrule:
            only = Window(self.start or 0, self.end or 0)
            return [only] if only.start < end and only.end > begin else []
        length = round(self.duration_s * 1_000_000)
        days = range((begin - length) // _DAY, (end - 1) // _DAY + 1)
        starts = (start for day in days for start in _starts(self.rrule, self.start, zone, day))
        return [Window(start, start + length) for start in starts if start < end and start + length > begin]


class Cancelled(NamedTuple):
    """The end of a plan, by its id."""

    id: str


# --- reading ----------------------------------------------------------------------------------------------------------


_TIME = "RFC 3339 with its zone, such as 2026-11-20T02:10:00Z, in the years 2000 to 2100"


def _time(value: Any) -> int:
    """Check a time. ValueError: it is none, or its zone is missing."""
    try:
        if not isinstance(value, str | datetime):
            raise ValueError  # noqa: TRY301, TRY004 -- one text for all that is wrong
        time = event_us(value)
        event_us(as_datetime(time).isoformat())  # a datetime of TOML is of any year
    except (ValueError, OverflowError):
        raise ValueError(f"must be {_TIME}") from None
    return time


def _rule(value: Any) -> str:
    """Check a recurrence. ValueError: it is none, or not one that is read."""
    rule = str(text("[A-Za-z0-9=;,:+-]{1,400}", "an RRULE such as FREQ=DAILY;BYHOUR=2")(value)).upper()
    rule = rule.removeprefix("RRULE:").rstrip(";")
    problem = _problem(rule)
    if problem:
        raise ValueError(f"must be an RRULE such as FREQ=DAILY;BYHOUR=2, {problem}")
    return rule


def _true(value: Any) -> bool:
    if value is not True:
        raise ValueError("must be true")
    return True


_ID = text("[^\\x00-\\x1f]{1,64}", "a name of 1 to 64 characters")
_CHECKS: Mapping[str, Check] = {
    "id": _ID,
    "queue": text("[^\\x00-\\x1f]{1,48}", "the name of a queue"),
    "from": _time,
    "until": _time,
    "rrule": _rule,
    "duration_s": number(0, MAX_WINDOW_S),
    "messages": integer(1, _MOST_MESSAGES),
    "length": integer(0, _MOST_BYTES),
    "puts_per_s": number(0, 1e7),
    "getters": text("away", '"away"'),
    "allowed_pct": number(0, 100),
    "note": text("[^\\x00-\\x1f]{0,200}", "a line of up to 200 characters"),
}
KEYS = tuple(_CHECKS)
"""Names of the parts of a plan, as in a PLAN event and in [[planned]]."""


def read_plan(fields: Mapping[str, Any], config: StoreConfig) -> Plan | Cancelled:
    """Return the plan of a PLAN event, or the end of one. EstateError: a part is wrong, unknown or missing."""
    if not config.holds_messages:
        raise EstateError(f"a {config.kind} is planned by its stores; expected: a structure, page set or queue file")
    if "cancelled" in fields:
        for key in fields.keys() - {"id", "cancelled"}:
            raise EstateError(f"{key} = {show(fields[key])}: must be absent beside cancelled")
        _checked("cancelled", fields["cancelled"], _true)
        return Cancelled(_checked("id", fields.get("id"), _ID))
    values = {}
    for key, value in fields.items():
        if key not in _CHECKS:
            raise EstateError(f"unknown key {show(key)}{known_hint(key, KEYS)}")
        if value is not None:
            values[key] = _checked(key, value, _CHECKS[key])
    if "id" not in values:
        raise EstateError("id is missing; expected: a name of 1 to 64 characters")
    queue = values.get("queue", "")
    if queue and queue not in config.queues:
        raise EstateError(f"queue = {show(queue)}: no queue of {config.name}{known_hint(queue, config.queues)}")
    _check_together(values)
    return Plan(
        id=values["id"],
        queue=queue,
        start=values.get("from"),
        end=values.get("until"),
        rrule=values.get("rrule", ""),
        duration_s=values.get("duration_s", 0.0),
        messages=values.get("messages"),
        length=values.get("length"),
        puts_per_s=values.get("puts_per_s"),
        away="getters" in values,
        allowed_pct=values.get("allowed_pct"),
        note=values.get("note", ""),
    )


def _checked(key: str, value: Any, check: Check) -> Any:
    try:
        return check(value)
    except WRONG as wrong:
        raise EstateError(f"{key} = {show(value)}: {wrong}") from None


def _check_together(values: Mapping[str, Any]) -> None:
    """Raise EstateError for parts that contradict each other, or are missing beside others."""
    if "rrule" in values:
        if "until" in values:
            raise EstateError("until beside rrule; expected: duration_s, and UNTIL in the rule")
        if "duration_s" not in values:
            raise EstateError("duration_s is missing, which rrule needs; expected: seconds of a window")
        reason = "" if "from" in values else _needs_start(values["rrule"])
        if reason:
            raise EstateError(f"from is missing; expected: a time, as {reason} counts from one")
    elif "duration_s" in values:
        raise EstateError("duration_s without rrule; expected: from and until")
    elif not {"from", "until"} <= values.keys():
        raise EstateError("from and until are missing; expected: both, or rrule and duration_s")
    elif values["until"] <= values["from"]:
        raise EstateError("until is not after from; expected: a window of time")
    elif values["until"] - values["from"] > MAX_WINDOW_S * 1_000_000:
        raise EstateError(f"until is more than {MAX_WINDOW_S // 86_400} days after from; expected: shorter windows")
    if not {"messages", "puts_per_s", "getters", "allowed_pct"} & values.keys():
        raise EstateError("it announces nothing; expected: messages, puts_per_s, getters or allowed_pct")


def planned_text(store: str, content: Mapping[str, Any]) -> str:
    """Return a plan, its content as in a PLAN event, as a table [[planned]] of the estate."""
    values = {"store": store, **content}
    lines = [f"{key} = {toml_string(value) if isinstance(value, str) else value}" for key, value in values.items()]
    return "\n".join(("[[planned]]", *lines))


# --- recurrences ------------------------------------------------------------------------------------------------------
# A time that a change of the clocks leaves out is taken with the offset before it, one that comes twice is the first.
# Rules are bounded: those that never hold, or need to be counted from far back, would cost the twin seconds.


_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_NUMBERS = {"BYHOUR": (0, 23), "BYMINUTE": (0, 59), "BYSECOND": (0, 59), "BYMONTH": (1, 12)}
_WEEKDAY = re.compile(r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)")
_UNTIL = re.compile(r"UNTIL=([0-9]{8}T[0-9]{6})Z")
_PARTS = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYMONTHDAY", "BYSETPOS", *_NUMBERS}
_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _parts(rule: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in rule.split(";"))


def _problem(rule: str) -> str:
    """Return what a rule has to keep to and does not; "": nothing."""
    parts = _parts(rule)
    unknown = parts.keys() - _PARTS
    if len(parts) < rule.count(";") + 1 or unknown:
        return f"without {min(unknown)}" if unknown else "each part once"
    if parts.get("FREQ") not in _FREQUENCIES:
        return f"with FREQ of {', '.join(_FREQUENCIES)}"
    many = [len(parts[name].split(",")) for name in ("BYHOUR", "BYMINUTE", "BYSECOND") if name in parts]
    if len([*product(*map(range, many))]) > _MOST_A_DAY:
        return f"with at most {_MOST_A_DAY} times a day"
    for name, (low, high) in _NUMBERS.items():
        if name in parts and not all(_is_number(word, low, high) for word in parts[name].split(",")):
            return f"with {name} of {low} to {high}"
    for name in ("INTERVAL", "COUNT"):
        if name in parts and not _is_number(parts[name], 1, 9999):
            return f"with {name} of 1 to 9999"
    return _problem_of_days(parts) or _unread(rule)


def _problem_of_days(parts: Mapping[str, str]) -> str:
    """Return what the days of a rule have to keep to, so that it holds on some day within years; "": they do."""
    days = parts["BYDAY"].split(",") if "BYDAY" in parts else []
    month_days = parts["BYMONTHDAY"].split(",") if "BYMONTHDAY" in parts else []
    if not all(_WEEKDAY.fullmatch(day) for day in days):
        return "with BYDAY such as MO,TU or 1MO or -1FR"
    if not all(_is_number(day.removeprefix("-"), 1, 31) for day in month_days):
        return "with BYMONTHDAY of 1 to 31 or -31 to -1"
    by_number = any(len(day) > 2 for day in days)
    months = [int(month) for month in parts["BYMONTH"].split(",")] if "BYMONTH" in parts else range(1, 13)
    longest, first = max(_MONTHS[month - 1] for month in months), min((abs(int(day)) for day in month_days), default=1)
    may_miss = "BYMONTH" in parts or (parts["FREQ"] == "DAILY" and bool(days or month_days))
    is_chosen = parts["FREQ"] == "MONTHLY" and bool(days) and not by_number and not month_days
    problems = {
        "with numbers of days in MONTHLY and YEARLY only, without BYMONTHDAY": by_number
        and (parts["FREQ"] in ("DAILY", "WEEKLY") or bool(month_days)),
        "with days that its months have": first > longest,
        "with INTERVAL beside no days or months that it may never meet": may_miss and parts.get("INTERVAL", "1") != "1",
        "with BYSETPOS of 1 to 4 or -4 to -1 of the BYDAY of a MONTHLY one": "BYSETPOS" in parts
        and not (is_chosen and parts["BYSETPOS"] in _POSITIONS),
    }
    return next((problem for problem, holds in problems.items() if holds), "")


_POSITIONS = frozenset(f"{sign}{number}" for sign in ("", "-") for number in range(1, 5))


def _unread(rule: str) -> str:
    """Return why the library does not read a rule; "": it does."""
    try:
        rrulestr(_local(rule, UTC), dtstart=datetime(2026, 1, 1))  # noqa: DTZ001 -- local time, as in RFC 5545
    except (ValueError, TypeError, KeyError) as error:
        return f"as RFC 5545 has it ({error})"
    return ""


def _is_number(word: str, low: int, high: int) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 6 and low <= int(word) <= high


def _needs_start(rule: str) -> str:
    """Return the part of a rule that counts from its start; "": none does."""
    parts = _parts(rule)
    for name in ("INTERVAL", "COUNT"):
        if parts.get(name, "1") != "1" or (name == "COUNT" and name in parts):
            return f"{name}={parts[name]}"
    is_known = {
        "DAILY": True,
        "WEEKLY": "BYDAY" in parts,
        "MONTHLY": bool({"BYDAY", "BYMONTHDAY"} & parts.keys()),
        "YEARLY": "BYDAY" in parts or {"BYMONTH", "BYMONTHDAY"} <= parts.keys(),
    }
    return "" if is_known[parts["FREQ"]] else f"{parts['FREQ']} without a day"


def _local(rule: str, zone: tzinfo) -> str:
    """Return a rule whose UNTIL is a local time, as its other times are."""
    match = _UNTIL.search(rule)
    if match is None:
        return rule
    until = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).astimezone(zone)
    return rule.replace(match[0], f"UNTIL={until:%Y%m%dT%H%M%S}")


@lru_cache(maxsize=8192)
def _starts(rule: str, start: int | None, zone: tzinfo, day: int) -> tuple[int, ...]:
    """Return when windows of a rule begin on a day since 1970, UTC; microseconds."""
    midnight = _EPOCH + timedelta(days=day)
    first = (midnight - _PAD).astimezone(zone).replace(tzinfo=None)
    last = (midnight + timedelta(days=1) + _PAD).astimezone(zone).replace(tzinfo=None)
    if start is None:  # a rule that needs no start counts from any midnight before
        begin = datetime(first.year, 1, 1) if "YEARLY" in rule else first.replace(hour=0, minute=0, second=0)  # noqa: DTZ001
    else:
        begin = as_datetime(start).astimezone(zone).replace(tzinfo=None)
    if last < begin:
        return ()
    times = rrulestr(_local(rule, zone), dtstart=begin).between(first, last, inc=True)
    starts = ((time.replace(tzinfo=zone) - _EPOCH) // timedelta(microseconds=1) for time in times)
    return tuple(sorted({time for time in starts if day * _DAY <= time < (day + 1) * _DAY}))


# --- history ----------------------------------------------------------------------------------------------------------

SCHEMA = 1


class PastRise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rise of what a store held in all, or of one data set, as its meters saw it (`kernels.meter_rows.RISE`)."""

    began: int  # began, ended: event time, microseconds since 1970
    ended: int
    # low, top: utilisation at its beginning and end: entries and elements of all messages as shares of those of the
    # structure, added up; else the share of the store, or of the data set, in use
    low: float
    top: float
    usage: float  # largest share of a resource in use at its end
    refused: int  # puts with 2192 during the rise
    puts: int  # messages put during the rise
    stayed: int  # messages more at its end than at its beginning
    data_set: str = ""  # queue manager whose far smaller data set it was; "": of the store in all


class PastPuts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages put to a store by half hours, refused ones included (`twin.forecast.rises`)."""

    until: int  # end of the last half hour, event time, microseconds since 1970
    counts: tuple[int, ...]  # messages in each half hour, oldest first; -1: not known


class StoreHistory(msgspec.Struct, frozen=True):
    """Memory that a new store begins with. rises: in order of time."""

    rises: tuple[PastRise, ...] = ()
    puts: PastPuts | None = None


History = Mapping[str, StoreHistory]
"""Memory of each store, by name."""


class _File(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: int
    stores: dict[str, tuple[PastRise, ...]]
    puts: dict[str, PastPuts] = {}


def read_history(path: Path) -> dict[str, StoreHistory]:
    """Read a history. EstateError: it cannot be read, or is not a history."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as wrong:
        raise EstateError(f"{path}: cannot be read ({wrong.strerror}); expected: a file of `mqtwin warm`") from None
    except UNREADABLE as wrong:
        raise EstateError(f"{path}: {wrong}; expected: a file of `mqtwin warm`") from None
    if content.schema != SCHEMA:
        raise EstateError(f"{path}: schema {content.schema}; expected: {SCHEMA}")
    names = sorted(content.stores | content.puts)
    return {name: StoreHistory(content.stores.get(name, ()), content.puts.get(name)) for name in names}


def history_text(history: History) -> bytes:
    """Return the file of a history, JSON."""
    names = sorted(history)
    content = _File(
        schema=SCHEMA,
        stores={name: history[name].rises for name in names},
        puts={name: puts for name in names if (puts := history[name].puts) is not None},
    )
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
