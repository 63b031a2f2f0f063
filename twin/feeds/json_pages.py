"""JSON of a page: its objects, in bounded memory, also those within objects of other programs.

- The objects of a page stand one after the other, one per line, or in an array.
- Other programs have collected, stored or exported them: forwarders and stores of logs (Splunk, Elastic, Loki,
  CloudWatch, the Logging of Google Cloud) and converters of Kafka Connect. They put an object, or its text, under a
  name of theirs, beside a time. What is wrapped is found by what it has, not by how deep it lies, so that `mqtwin
  import` and `mqtwin collect` read the same.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec

from twin.base.decoding import UNREADABLE
from twin.base.units import FIRST_SECOND, LAST_SECOND, event_time
from twin.feeds.intake import Complaint
from twin.feeds.protocol import Feed, Page

MAX_OBJECT_BYTES = 64 << 20
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?|[{}]')  # possessive: what has no end is looked at once
_BEGIN = re.compile(rb'\{\s{0,20}"(?:eventSource|commandResponse)"')  # of an object that is no part of another
_MAY_BEGIN = re.compile(rb'\{\s{0,20}(?:"[a-zA-Z]{0,15})?\Z')  # the beginning of that, at the end of a piece
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*+"')
_BRACE = re.compile(rb"\s{0,100}\{")
_LOOKED_AT = 1 << 16  # bytes of a piece without a brace
_AROUND = b" \t\r\n[],"  # what stands around objects


def json_objects(page: Page) -> Iterator[tuple[dict[str, Any], str] | Complaint]:
    """Yield the outermost objects of a page with their places; anything else is a complaint."""
    text = JsonText()
    yield from text.take(page)
    yield from text.give_up()


class JsonText:
    """A text of JSON objects that comes in pieces, cut anywhere, and at most one of its objects in memory."""

    def __init__(self) -> None:
        self.begun_in = ""  # name of the piece in which an object begins that has not ended; "": there is none
        self._data: bytearray | bytes | mmap.mmap = b""
        self._first = self._last = (0, "")  # byte and name of the piece with the open object, and of the last one
        self._depth = self._start = self._scanned = 0  # brackets, and bytes: of the open object, that are scanned

    def take(self, page: Page) -> Iterator[tuple[dict[str, Any], str] | Complaint]:
        """Yield the objects that end in the next piece, with their places. One that stands alone is the whole text."""
        self._append(page.name, page.data)
        decoder = msgspec.json.Decoder(dict[str, Any])
        if (whole := self._whole(page, decoder)) is not None:
            yield whole, self._place(0)
            self._data = b""
            return
        for span in self._spans(is_end=not page.stream):
            if isinstance(span, Complaint):
                yield span
                continue
            start, end = span
            place = self._place(start)
            try:
                yield decoder.decode(bytes(self._data[start:end])), place
            except UNREADABLE as error:
                yield Complaint("bad-json", place, f"{error}; expected: a JSON object")
        self._first = self._piece(self._start)
        self.begun_in = self._first[1] if self._depth else ""
        if not self._depth:
            self._data = b""

    def _whole(self, page: Page, decoder: msgspec.json.Decoder[dict[str, Any]]) -> dict[str, Any] | None:
        """Return the only object of a page, whose brackets need not be looked at; None if the page is otherwise."""
        if self._depth or page.stream or page.data[:1] != b"{" or len(page.data) > MAX_OBJECT_BYTES:
            return None
        try:
            return decoder.decode(bytes(page.data))
        except UNREADABLE:
            return None

    def give_up(self) -> Iterator[Complaint]:
        """Complain about an object that has not ended, and forget it."""
        if self._depth:
            yield self._given_up("the end is missing; expected: a whole JSON object")
            self.begun_in, self._data = "", b""

    def _append(self, name: str, data: bytes | mmap.mmap) -> None:
        """Add a piece. Where one ends within quotation marks and the next begins with a brace, an end is missing."""
        if not self._depth:
            self._data, self._start, self._scanned = data, 0, 0
            self._first = self._last = (0, name)
            return
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data)
        del self._data[: self._start]
        self._first = self._first[0] - self._start, self._first[1]
        self._scanned -= self._start
        self._start = 0
        if _BRACE.match(data):
            self._data += b"\n"
        self._last = len(self._data), name
        self._data += data

    @property
    def size(self) -> int:
        """Bytes of the object that has not ended."""
        return len(self._data) - self._start if self.begun_in else 0

    def _spans(self, *, is_end: bool) -> Iterator[tuple[int, int] | Complaint]:
        """Yield start and end of the outermost objects; an object that begins within another one ends that."""
        data, seen = self._data, self._depth > 0
        for token in _TOKEN.finditer(data, self._scanned):
            text = token.group()
            if self._depth and not is_end and self._may_continue(token.start(), token.end(), text):
                self._scanned = token.start()
                break
            if text == b"{":
                if self._depth and _BEGIN.match(data, token.start()):
                    yield self._given_up("another object begins before its end")
                if not self._depth:
                    self._start, seen = token.start(), True
                self._depth += 1
            elif text == b"}" and self._depth:
                self._depth -= 1
                if not self._depth:
                    yield self._start, token.end()
            if self._depth and token.end() - self._start > MAX_OBJECT_BYTES:
                yield self._given_up(f"no end within {MAX_OBJECT_BYTES} bytes; expected: a JSON object")
        else:
            self._scanned = len(data)
        yield from self._ends(is_end=is_end, seen=seen)

    def _ends(self, *, is_end: bool, seen: bool) -> Iterator[Complaint]:
        """Yield what is wrong with the end of the piece. seen: there is an object in it, or a part of one."""
        data = self._data
        if self._depth and len(data) - self._start > MAX_OBJECT_BYTES:
            yield self._given_up(f"no end within {MAX_OBJECT_BYTES} bytes; expected: a JSON object")
        elif not seen and (data[:1] if is_end else bytes(data[:_LOOKED_AT]).strip(_AROUND)):
            yield Complaint("foreign", self._last[1], "no JSON object in it; expected: JSON")

    def _given_up(self, text: str) -> Complaint:
        self._depth = 0
        return Complaint("truncated", self._place(self._start), text)

    def _may_continue(self, start: int, end: int, text: bytes) -> bool:
        """Return True for a token at the end of the data whose meaning the next piece may change."""
        if text[:1] == b'"':
            return len(self._data) - end <= 1 and not _STRING.fullmatch(text) and self._data[end : end + 1] != b"\n"
        return text == b"{" and _MAY_BEGIN.match(self._data, start) is not None

    def _piece(self, position: int) -> tuple[int, str]:
        return self._last if position >= self._last[0] else self._first

    def _place(self, position: int) -> str:
        start, name = self._piece(position)
        return f"{name}, byte {position - start}"


def json_documents(page: Page) -> Iterator[tuple[bytes, str]]:
    """Yield the JSON documents of a page, each with its place: one a line, one in all, or objects over several lines.

    The last brace of such an object is the first character of its line.
    """
    data = bytes(page.data).strip()
    lines = data.split(b"\n")
    if len(lines) > 1 and lines[0].rstrip().endswith(b"}"):
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield line, f"{page.name} line {number}"
    elif data.startswith(b"{"):
        ends = [number for number, line in enumerate(lines, 1) if line.startswith(b"}")]
        for first, end in pairwise([0, *ends, *([len(lines)] if ends[-1:] != [len(lines)] else [])]):
            yield b"\n".join(lines[first:end]), f"{page.name} line {first + 1}" if len(ends) > 1 else page.name
    elif data:
        yield data, page.name


def integer(value: Any) -> int:
    """Return a number that may be a text, as amqsevt writes large and negative ones. Raise ValueError."""
    if type(value) is int:
        return value
    if isinstance(value, str) and len(value) <= 25:
        return int(value)
    raise ValueError(f"{str(value)[:40]!r} is not an integer")


# --- objects within those of other programs ---------------------------------------------------------------------------

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
