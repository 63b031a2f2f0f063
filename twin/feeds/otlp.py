"""Spans of puts and gets as events, each once and in the order of time.

A collector delivers batches late, out of order and, after a retry, twice [OpenTelemetry: Collector, Exporter Helper].
So spans are held until others are `late_s` younger, and a span is known by trace id and span id among the last
MAX_KEYS. One that comes later than that is passed on at once, with a complaint: the twin takes it at its own clock.

Spans show the messages that carry trace context, and of these the share that applications sample. `coverage.py` adds
what statistics count beyond them.
"""

from __future__ import annotations

import heapq
import mmap
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from typing_extensions import override

from twin.estate import Estate
from twin.feeds.intake import Event, Intake
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.feeds.spans import Call, Emitter, UnreadableSpansError, read_spans

MAX_KEYS = 200_000  # spans that are remembered, 24 bytes each
MAX_HELD = 200_000  # spans that wait for older ones
DEFAULT_LENGTH = 1024  # bytes of a message whose size neither its span nor an earlier one of the queue tells [assumed]
MAX_AHEAD_US = 86_400_000_000  # beyond the others: a wrong clock, which must not make the others late
MAX_MEANS = 10_000  # queues whose mean length is kept

_SOURCE = "OTLP"


@dataclass(slots=True)
class _Lengths:
    """Lengths of the messages of a queue that were told."""

    messages: int = 0
    bytes: int = 0


class SpanEvents:
    """Conversion of single calls to events. It keeps the mean length of each queue, for puts whose size is not told.

    Args:
        intake: of the feed.
        options: of the feed.
    """

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        self._intake = intake
        self._options = options
        self._qmgrs = _QueueManagers(intake.estate, options)
        self._lengths: dict[str, _Lengths] = {}

    def event(self, call: Call, place: str) -> Event | None:
        """Return the event of a call; None, with a complaint, if it is left out."""
        if call.emitter != self._options.emitter:
            self._intake.complain(
                f"spans-of-{call.emitter}",
                place,
                f"a span of {call.queue} comes from the {_words(call.emitter)}; expected: the "
                f"{_words(Emitter(self._options.emitter))}, as --spans says: both would count each call twice",
            )
            return None
        qmgr = self._qmgrs.find(call)
        if qmgr is None:
            self._intake.complain(
                "no-queue-manager",
                place,
                f"a span of {call.queue} from LPAR {call.lpar or '?'} names no queue manager, and the estate has "
                "none or several with such a queue; expected: --lpar LPAR=QMGR or --qmgr",
            )
            return None
        event: Event = {"time": call.time, "qmgr": qmgr, "op": call.op, "queue": call.queue}
        if call.msgid is not None:
            event["msgid"] = call.msgid
        if call.op == "PUT":
            event["length"] = self._length(call, place)
        return event

    def _length(self, call: Call, place: str) -> int:
        known = self._lengths.get(call.queue)
        if call.length is not None:
            if known is None and len(self._lengths) < MAX_MEANS:
                known = self._lengths[call.queue] = _Lengths()
            if known is not None:
                known.messages += 1
                known.bytes += call.length
            return call.length
        if self._options.length is not None:
            length = self._options.length
        elif known is not None:
            length = known.bytes // known.messages
        else:
            length = DEFAULT_LENGTH
        text = f"a span of {call.queue} tells no size, {length} bytes are assumed; expected: --length, or statistics"
        self._intake.complain("no-size", place, text)
        return length


class _QueueManagers:
    """The queue manager of a span that names none, or its LPAR only."""

    def __init__(self, estate: Estate | None, options: FeedOptions) -> None:
        self._options = options
        self._by_queue: dict[str, str | None] = {}
        stores: dict[str, str] = {}
        for route in estate.routes if estate is not None else ():
            if route.reported is None:
                continue
            if stores.setdefault(route.reported, route.store) == route.store:
                self._by_queue.setdefault(route.reported, route.qmgr)  # routes are sorted
            else:
                self._by_queue[route.reported] = None

    def find(self, call: Call) -> str | None:
        """Return the queue manager of a call; the first of its group for a shared queue of which no span says more."""
        if call.qmgr is not None:
            return call.qmgr
        if call.lpar is not None and call.lpar in self._options.lpars:
            return self._options.lpars[call.lpar]
        return self._options.qmgr or self._by_queue.get(call.queue)


class OtlpFeed(Feed):
    """Reader of OTLP spans in protobuf or JSON: a Kafka value, or a file of a collector's file exporter.

    A file holds a request a line in JSON, or in protobuf each after its length, four bytes, big-endian
    [OpenTelemetry: Collector, File Exporter].
    """

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = SpanEvents(intake, options)
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._held: list[tuple[int, int, bytes, int, Event]] = []  # heap: time, put before get, key, number, event
        self._number = count()
        self._latest = 0  # microseconds: of all spans

    @override
    def take(self, page: Page) -> Iterable[Event]:
        late: list[Event] = []
        self.page_latest = 0
        for value, place in _requests(page):
            try:
                spans = read_spans(value)
            except UnreadableSpansError as error:
                self.intake.complain("unreadable", place, str(error))
                continue
            for call in spans.calls:
                if call.time > page.before:
                    self._add(call, place, late)
        yield from late
        limit = self._latest - round(self.options.late_s * 1e6)
        while self._held and (self._held[0][0] <= limit or len(self._held) > MAX_HELD):
            yield self._pop()

    @override
    def finish(self) -> Iterable[Event]:
        while self._held:
            yield self._pop()

    def _pop(self) -> Event:
        time, _, _, _, event = heapq.heappop(self._held)
        self.passed = max(self.passed, time)
        return event

    def _add(self, call: Call, place: str, late: list[Event]) -> None:
        if call.key in self._keys:
            self.intake.complain("duplicate", place, f"span {call.key[16:].hex()} of trace {call.key[:16].hex()} again")
            return
        event = self._events.event(call, place)
        if event is None:
            return
        self._keys[call.key] = None
        if len(self._keys) > MAX_KEYS:
            self._keys.popitem(last=False)
        puts, gets = (1, 0) if call.op == "PUT" else (0, 1)
        self.intake.cover(_SOURCE, event["qmgr"], call.queue, (call.time, call.time), puts=puts, gets=gets)
        if self._latest and call.time > self._latest + MAX_AHEAD_US:
            text = f"a span of {call.queue} is {(call.time - self._latest) / 1e6:.0f} s ahead of those before it"
            self.intake.complain("ahead", place, f"{text}; expected: at most a day")
            late.append(event)
            return
        if call.time < self.passed:
            text = f"a span of {call.queue} is {(self._latest - call.time) / 1e6:.0f} s late; expected: at most "
            self.intake.complain("late", place, text + f"{self.options.late_s:g} s, --late")
            late.append(event)
            return
        self._latest = max(self._latest, call.time)
        self.page_latest = max(self.page_latest, call.time)
        heapq.heappush(self._held, (call.time, gets, call.key, next(self._number), event))


def _requests(page: Page) -> Iterator[tuple[bytes, str]]:
    """Yield the requests of a page, each with its place."""
    head = bytes(page.data[:256]).lstrip()
    if page.data[:1] == b"\x00" and len(page.data) > 4:
        yield from _length_prefixed(page)
    elif not head.startswith(b"{") or _is_one_document(page.data):
        yield bytes(page.data), page.name
    else:
        start = number = 0
        while start < len(page.data):
            end = page.data.find(b"\n", start)
            end = len(page.data) if end < 0 else end
            line = bytes(page.data[start:end]).strip()
            number += 1
            if line:
                yield line, f"{page.name} line {number}"
            start = end + 1


def _is_one_document(data: bytes | mmap.mmap) -> bool:
    """Return True for JSON in which the first line is no whole request: none other, or printed over several lines."""
    end = data.find(b"\n")
    return end < 0 or end == len(data) - 1 or not bytes(data[:end]).rstrip().endswith(b"}")


def _length_prefixed(page: Page) -> Iterator[tuple[bytes, str]]:
    start = 0
    while start < len(page.data):
        size = int.from_bytes(page.data[start : start + 4], "big")
        yield bytes(page.data[start + 4 : start + 4 + size]), f"{page.name} byte {start}"
        start += 4 + size


def _words(emitter: Emitter) -> str:
    return "queue manager" if emitter == Emitter.QUEUE_MANAGER else "application"
