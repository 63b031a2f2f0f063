"""Objects of a format within those of a program that has collected, stored or exported them.

Forwarders and stores of logs (Splunk, Elastic, Loki, CloudWatch, the Logging of Google Cloud) and converters of Kafka
Connect put an object, or its text, under a name of theirs, beside a time. What is wrapped is found by what it has, not
by how deep it lies, so that `mqtwin import` and `mqtwin collect` read the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

from twin.decoding import UNREADABLE
from twin.feeds.json_pages import json_documents
from twin.feeds.protocol import Feed, Page
from twin.units import FIRST_SECOND, LAST_SECOND, event_time

_OWN = frozenset(  # names that an object of a format has, in lower case
    (
        "eventdata",
        "commandresponse",
        "resourcespans",
        "resource_spans",
        "batches",
        "scopespans",
        "collectiontime",
        "product_code",
        "report",
        "timestamps",
        "resulttype",
        "resourcemetrics",
    )
)
MESSAGE_KEYS = (  # of the text of a record
    *("message", "log", "MESSAGE", "msg", "event", "_raw", "_msg", "line"),
    *("textPayload", "original", "stringValue", "payload"),
)
RECORD_KEYS = (  # of records in a record
    *("_source", "hits", "result", "results", "event", "events", "data", "streams", "payload", "records"),
    *("logEvents", "jsonPayload", "resourceLogs", "scopeLogs", "logRecords", "body"),
)
_WRAPPERS = tuple(dict.fromkeys((*RECORD_KEYS, *MESSAGE_KEYS, "values")))  # values: pairs of a time and a text
_HAS_WRAPPER = re.compile(rb'"(?:' + "|".join(_WRAPPERS).encode() + rb')"\s{0,20}:')
_TIME_KEYS = ("@timestamp", "_time", "timestamp", "time", "ts", "date", "timeUnixNano")
_UNITS = (1_000_000, 1_000, 1, 0.001)  # microseconds of a second, millisecond, microsecond and nanosecond
_HEAD_BYTES = 1 << 16
_MAX_BYTES = 64 << 20
_MAX_DEPTH = 8


def objects_of(feed: Feed, page: Page) -> Iterator[Page]:
    """Yield a page for each object that is wrapped in those of a page; the page itself, where none is."""
    head = bytes(page.data[:_HEAD_BYTES])
    is_json = head.lstrip()[:1] in (b"{", b"[") and len(page.data) <= _MAX_BYTES
    if not feed.is_json or not is_json or not _HAS_WRAPPER.search(head):
        yield page
        return
    own = list(_wrapped(page))
    yield from own or [page]


def _wrapped(page: Page) -> Iterator[Page]:
    """Yield what is wrapped in the documents of a page, and those that wrap nothing; nothing if none does."""
    parts: list[Page] = []
    has_wrapped = False
    for document, place in json_documents(page):
        try:
            value = msgspec.json.decode(document)
        except UNREADABLE:
            parts.append(replace(page, data=document, name=place))
            continue
        inner = [] if _is_own(value) else list(_inner(value, page.time))
        has_wrapped |= bool(inner)
        parts += [replace(page, data=msgspec.json.encode(own), name=place, time=time) for own, time in inner]
        parts += [] if inner else [replace(page, data=document, name=place)]
    if has_wrapped:
        yield from parts


def _is_own(value: Any) -> bool:
    """Return True for an object of a format; an answer of Prometheus has status and data, as wrappers may have."""
    return isinstance(value, dict) and ({"status", "data"} <= value.keys() or any(own.lower() in _OWN for own in value))


def _inner(value: Any, time: int | None, depth: int = _MAX_DEPTH) -> Iterator[tuple[Any, int | None]]:
    """Yield the objects of a format within a value, each with the time of what is around it, microseconds."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = msgspec.json.decode(value)
        except (*UNREADABLE, UnicodeError):
            return
    if _is_own(value):
        yield value, time
    elif depth and isinstance(value, list):
        for item in value:
            yield from _inner(item, time, depth - 1)
    elif depth and isinstance(value, dict):
        time = time_of(value, time)
        for name in _WRAPPERS:
            yield from _inner(value.get(name), time, depth - 1)


def time_of(record: dict[str, Any], time: int | None) -> int | None:
    """Return the time of a record, microseconds since 1970. time: that of what is around it, where it has none."""
    return next((known for name in _TIME_KEYS if (known := record_time(record.get(name))) is not None), time)


def record_time(value: Any) -> int | None:
    """Return a time as records have it, RFC 3339 or a number since 1970, in microseconds; None: it is none."""
    with suppress(ValueError, OverflowError):
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            return event_time(value)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            number = float(value)
            times = [int(number * unit) for unit in _UNITS]
            return next((own for own in times if FIRST_SECOND <= own / 1e6 <= LAST_SECOND), None)
    return None
