"""Planned work of an iCalendar file [RFC 5545], such as the export of a job scheduler: docs/planned-work.md.

An event of the calendar is planned work if it names a store or a queue of the estate. Others are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from twin.base.errors import UsageError
from twin.estate.errors import EstateError, did_you_mean
from twin.estate.planned import Plan, read_plan
from twin.estate.routes import Estate

_NUMBERS: Mapping[str, type] = {"messages": int, "length": int, "puts_per_s": float, "allowed_pct": float}
_WORDS = ("id", "queue", "getters", "note", "store")
_PREFIX = "X-MQTWIN-"
_UNREAD = ("EXDATE", "RDATE", "RECURRENCE-ID")  # changes of single days
_MONTHS = 12  # in which the zone of a recurrence must have the offsets of the site's
_MAX_BYTES = 16 << 20  # of a file [assumed]
_OUT = {"none": ("names", "no store or queue of the estate"), "past": ("is", "over")}


class Calendar(NamedTuple):
    """Planned work of a calendar."""

    plans: list[tuple[str, dict[str, Any]]]  # (store, content of a PLAN event), in the order of the file
    left_out: str  # a line about the other events; "": there are none


class _LeftOutError(Exception):
    """An event of a calendar that is no planned work. Its text is a key of `_OUT`."""


def read_calendar(path: Path, estate: Estate, now: int) -> Calendar:
    """Return the planned work of an iCalendar file without windows that end before `now`. UsageError: unreadable."""
    import icalendar

    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; expected: an iCalendar file") from None
    if len(content) > _MAX_BYTES:
        raise UsageError(f"{path} has {len(content):,} bytes; expected: an iCalendar file of at most {_MAX_BYTES:,}")
    try:
        events = icalendar.Calendar.from_ical(content).walk("VEVENT")
    except ValueError as error:
        raise UsageError(f"{path}: {error}; expected: an iCalendar file, which begins with BEGIN:VCALENDAR") from None
    plans: dict[tuple[str, str], dict[str, Any]] = {}
    wrong, counts = list[str](), Counter[str]()
    for event in events:
        try:
            store, fields = _plan_of(event, estate)
            plan = read_plan(fields, estate.stores[store])
            if isinstance(plan, Plan) and not plan.rrule and plan.end is not None and plan.end <= now:
                raise _LeftOutError("past")  # noqa: TRY301 -- one place counts what is left out
            if (store, fields["id"]) in plans:
                raise EstateError(f"another event of {store} has its id")
        except _LeftOutError as reason:
            counts[str(reason)] += 1
        except (UsageError, ValueError) as error:
            wrong.append(f"{_label(event)}: {error}")
        else:
            plans[store, fields["id"]] = fields
    left_out = [
        f"{count:,} that {verb if count == 1 else {'names': 'name', 'is': 'are'}[verb]} {what}"
        for key, (verb, what) in _OUT.items()
        if (count := counts[key])
    ]
    return Calendar([(store, fields) for (store, _), fields in plans.items()], "; ".join((*left_out, *wrong)))


def _label(event: Any) -> str:
    return str(event.get("SUMMARY") or event.get("UID") or "an event without SUMMARY")[:64]


def _plan_of(event: Any, estate: Estate) -> tuple[str, dict[str, Any]]:
    """Return (store, content of a PLAN event). EstateError, ValueError: a property is wrong."""
    properties = _properties(event)
    store, queue = _place(properties, _categories(event), estate)
    fields: dict[str, Any] = {"id": properties.pop("id", None) or _label(event)}
    if str(event.get("STATUS", "")).upper() == "CANCELLED":
        return store, fields | {"cancelled": True}
    if queue:
        fields["queue"] = queue
    return store, fields | _times(event, estate.site.clock) | properties


def _properties(event: Any) -> dict[str, Any]:
    """Return the properties of our own, by the part of a plan."""
    properties: dict[str, Any] = {}
    for name, value in event.items():
        if not name.upper().startswith(_PREFIX):
            continue
        part, text = name.upper().removeprefix(_PREFIX).lower().replace("-", "_"), str(value).strip()
        if part not in (*_NUMBERS, *_WORDS):
            raise EstateError(f"{name}: no such property{did_you_mean(part, (*_NUMBERS, *_WORDS))}")
        try:
            properties[part] = _NUMBERS[part](text) if part in _NUMBERS else text
        except ValueError:
            raise EstateError(f"{name}:{text}; expected: a number") from None
    return properties


def _categories(event: Any) -> list[str]:
    known = event.get("CATEGORIES")
    listed = known if isinstance(known, list) else [] if known is None else [known]
    return [str(category).strip() for own in listed for category in own.cats]


def _place(properties: dict[str, Any], categories: Sequence[str], estate: Estate) -> tuple[str, str]:
    """Return (store, queue or ""), by the properties of our own, else by the categories."""
    queues = {name: getattr(config, "queues", ()) for name, config in estate.stores.items()}
    store, queue = properties.pop("store", ""), properties.pop("queue", "")
    store = store or next((name for name in categories if name in queues), "")
    if store and store not in queues:
        raise EstateError(f"{_PREFIX}STORE:{store}: no store of the estate{did_you_mean(store, queues)}")
    queue = queue or next(
        (own for own in categories if own in queues.get(store, ())),
        "" if store else next((own for own in categories if any(own in known for known in queues.values())), ""),
    )
    if not store:
        of_queue = [name for name, known in queues.items() if queue and queue in known]
        if len(of_queue) > 1:
            raise EstateError(f"{', '.join(of_queue)} have a queue {queue}; expected: {_PREFIX}STORE")
        if not of_queue:
            raise _LeftOutError("none")
        store = of_queue[0]
    return store, queue


def _times(event: Any, zone: tzinfo) -> dict[str, Any]:
    """Return the times of a plan. EstateError, ValueError: they are missing, or not those of a plan."""
    begin, end = _local(event.start, zone), _local(event.end, zone)
    if "RRULE" not in event:
        return {"from": begin.isoformat(), "until": end.isoformat()}
    for name in _UNREAD:
        if name in event:
            raise EstateError(f"{name} beside RRULE is not read; expected: events of their own")
    if isinstance(event["RRULE"], list):
        raise EstateError("several RRULE; expected: one")
    if any(_offset(begin, month) != _offset(begin.astimezone(zone), month) for month in range(_MONTHS)):
        raise EstateError(f"its times are of {begin.tzinfo}; expected: a recurrence of {zone}, as the site has it")
    rule = event["RRULE"].to_ical().decode()
    return {"from": begin.isoformat(), "rrule": rule, "duration_s": (end - begin).total_seconds()}


def _local(time: date, zone: tzinfo) -> datetime:
    """Return a time with its zone: a day begins at midnight of the site, a time without a zone is of the site."""
    moment = time if isinstance(time, datetime) else datetime(time.year, time.month, time.day)  # noqa: DTZ001
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment


def _offset(time: datetime, month: int) -> timedelta | None:
    return (time + timedelta(days=30 * month)).utcoffset()
