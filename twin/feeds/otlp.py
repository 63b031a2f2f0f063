"""Spans of puts and gets as events, each once and in the order of time.

Spans show the messages that carry trace context, and of these the share that applications sample: where that is known
by the trace state or by `FeedOptions.sampled`, a span becomes an event with the count of the calls it stands for, and
`coverage.py` adds what statistics count beyond spans. A collector of spans delivers batches late, out of order and,
after a retry, twice [OpenTelemetry: Collector, Exporter Helper]. So events are held until others are `late_s` younger,
and duplicates are recognised by trace id and span id among recent spans. A span that is later than `late_s` is passed
on at once, with a complaint, and the twin takes it at its own clock. The result is a function of the records in their
order; `SpanOrder.pack` saves all of it for a later process.
"""

from __future__ import annotations

import heapq
import mmap
from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import pyarrow as pa
from typing_extensions import override

from kernels.json_scan import LENGTH_MAX
from twin.estate import Estate
from twin.events import Event
from twin.feeds.intake import DYNAMIC, Complaint, Intake, Item, PassedOver
from twin.feeds.intervals import MAX_COUNT
from twin.feeds.protocol import DEFAULT_LENGTH, Feed, FeedOptions, Page
from twin.feeds.spans import LACKING, TRACE_BYTES, Call, Emitter, UnreadableSpansError, read_spans

_SOURCE = "OTLP"
_OTHERS = "span of no put or get on MQ"
_SIGNALS = "request of other signals"
_OTHER_EMITTER = "span of other emitters"
_XQH_BYTES = 428  # transmission queue header MQXQH, with an MQMD of its own [IBM: MQ, MQXQH]
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAX_REQUEST_BYTES = 64 << 20  # unpacked
NO_QUEUE_MANAGER = "no-queue-manager"
OTHER_EMITTER = "spans-of-"
MAX_KEYS = 200_000  # spans that are remembered
MAX_HELD = 200_000  # spans that wait for older ones
MAX_AHEAD_US = 86_400_000_000  # beyond the others: a wrong clock, which must not make the others late
MAX_MEANS = 10_000  # queues whose mean length is kept
_KEY_BYTES = 8


class Stored(NamedTuple):
    """Place of a message that a call puts or gets: the queue that stores it, and the bytes of header added there."""

    queue: str
    header_bytes: int = 0


class LeftOutError(ValueError):
    """A call that becomes no event; the message names the call and what is expected. code: code of the complaint."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class SpanEvents:
    """Conversion of single calls to events. Without an estate spans name their queue manager, or the options do."""

    def __init__(self, estate: Estate | None, options: FeedOptions) -> None:
        self._options = options
        self._estate = estate
        self._by_queue: dict[str, str | None] = {}  # the only queue manager with a queue, or the first of its group
        stores: dict[str, str] = {}
        for route in estate.routes if estate is not None else ():
            if route.reported is None:
                continue
            if stores.setdefault(route.reported, route.store) == route.store:
                self._by_queue.setdefault(route.reported, route.qmgr)  # routes are sorted
            else:
                self._by_queue[route.reported] = None

    def event(self, call: Call) -> Event:
        """Return the event of a call, on the queue that stores the message.

        A PUT whose span has no size has no `length`. LeftOutError: the call is another emitter's, or its queue manager
        is not known.
        """
        if call.emitter != self._options.emitter:
            raise LeftOutError(
                f"{OTHER_EMITTER}{call.emitter}",
                f"a span of {call.queue} comes from the {_words(call.emitter)}; expected: the "
                f"{_words(Emitter(self._options.emitter))}, as --spans says: both would count each call twice",
            )
        qmgr = self._qmgr_of(call)
        if qmgr is None:
            raise LeftOutError(
                NO_QUEUE_MANAGER,
                f"a span of {call.queue} from LPAR {call.lpar or '?'} names no queue manager, and the estate has "
                "none or several with such a queue; expected: --lpar LPAR=QMGR or --qmgr",
            )
        stored = self._stored(call, qmgr)
        event: Event = {"time": call.time, "qmgr": qmgr, "op": call.op, "queue": stored.queue}
        if (count := self._count(call)) > 1:
            event["count"] = count
        elif call.msgid is not None:
            event["msgid"] = call.msgid
        if call.op == "PUT":
            if call.length is not None:
                event["length"] = min(call.length + stored.header_bytes, LENGTH_MAX)
            if call.priority is not None:
                event["priority"] = call.priority
            if call.persistent is not None:
                event["persistent"] = call.persistent
            if call.expiry_s is not None:
                event["expiry"] = call.expiry_s
        return event

    def _count(self, call: Call) -> int:
        """Return the number of calls that a span stands for, rounded up or down by the trace: on average it is right.

        The put and the get of a trace are rounded alike.
        """
        calls = call.stands_for if self._options.sampled is None else 1.0 / self._options.sampled
        whole = int(calls)
        place = int.from_bytes(blake2b(call.key[:TRACE_BYTES], digest_size=4).digest()) / 2**32
        return min(whole + (place < calls - whole), MAX_COUNT)

    def is_dropped(self, event: Event, call: Call) -> bool:
        """Return True for a call on a temporary dynamic queue that the estate lacks."""
        return call.is_temporary and not self._has(event["qmgr"], event["queue"])

    def _stored(self, call: Call, qmgr: str) -> Stored:
        """Return the queue that stores the message of a call.

        A message to another queue manager is on a transmission queue of the queue manager that made the call.
        """
        if call.transmission_queue is not None:
            return Stored(call.transmission_queue, _XQH_BYTES if call.transmission_queue != call.queue else 0)
        is_elsewhere = call.resolved_qmgr is not None and call.resolved_qmgr != qmgr
        if is_elsewhere and call.resolved is not None and self._is_renamed(qmgr, call.queue):
            return Stored(call.queue, _XQH_BYTES)  # a remote definition of the estate
        if call.resolved is not None and call.resolved_qmgr == qmgr and not self._has(qmgr, call.queue):
            return Stored(call.resolved)
        return Stored(call.queue)

    def has_queue(self, queue: str) -> bool:
        """Return True if a queue manager of the estate has a queue of this name."""
        return queue in self._by_queue

    def _has(self, qmgr: str, queue: str) -> bool:
        return self._estate is not None and (qmgr, queue) in self._estate.queue_routes

    def _is_renamed(self, qmgr: str, queue: str) -> bool:
        """Return True for the name of an alias or a remote definition."""
        if self._estate is None or (qmgr, queue) not in self._estate.queue_routes:
            return False
        return self._estate.routes[self._estate.queue_routes[qmgr, queue]].queue != queue

    def _qmgr_of(self, call: Call) -> str | None:
        """Return the queue manager of a call; the first of its group for a shared queue of which no span says more."""
        if call.qmgr is not None:
            return call.qmgr
        if call.lpar is not None and call.lpar in self._options.lpars:
            return self._options.lpars[call.lpar]
        if self._estate is not None and call.service is not None and call.service in self._estate.queue_managers:
            return call.service
        resolved = call.resolved_qmgr if call.transmission_queue is None else None
        if resolved is not None and self._has(resolved, call.queue):
            return resolved  # of a queue of its own; of a remote definition it is the other end, which has no such name
        return self._options.qmgr or self._by_queue.get(call.queue)


class OtlpFeed(Feed):
    """Reader of OTLP spans in protobuf or JSON: a Kafka value, or a file of a collector's file exporter.

    A file holds a request a line in JSON, or in protobuf or compressed with zstd each after its length, four bytes,
    big-endian [OpenTelemetry: Collector, File Exporter].
    """

    reads = 'spans of the scope "z/OS OTel" with messaging.system ibmmq, or with --spans application those of JMS or MQ'
    is_json = True

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = SpanEvents(intake.estate, options)
        self._calls = 0
        self._order = SpanOrder(options.late_s, options.length)

    @override
    def take(self, page: Page) -> Iterator[Item]:
        late: list[Event] = []
        self.page_latest = 0
        for value, place in requests_of(page):
            try:
                spans = read_spans(value)
            except UnreadableSpansError as error:
                yield Complaint("unreadable", place, str(error))
                continue
            if spans.signal is not None:
                yield PassedOver(_SIGNALS, spans.signal)
                continue
            self.object_count += len(spans.calls) + spans.others.total()
            self._calls += len(spans.calls)
            for kind, number in spans.others.items():
                if kind in LACKING:
                    text = f"a span of a put or get on MQ with {kind}; expected: it has one"
                    yield Complaint("bad-value", place, text, number)
                else:
                    yield PassedOver(_OTHERS, kind, number, is_counted=True)
            for call in spans.calls:
                if call.time > page.before:
                    yield from self._add(call, place, late)
        yield from late
        for event in self._order.due():
            self.passed = self._order.passed
            yield event

    @override
    def finish(self) -> Iterator[Item]:
        if self.object_count and not self._calls:
            text = f"none of {self.object_count:,} spans is of a put or get on MQ; expected: {self.reads}"
            yield Complaint("no-spans", _SOURCE, text)
        for event in self._order.rest():
            self.passed = self._order.passed
            yield event

    def _add(self, call: Call, place: str, late: list[Event]) -> Iterator[Item]:
        """Take a call; yield what is wrong with it. late: takes an event that is not to be held."""
        try:
            event = self._events.event(call)
        except LeftOutError as error:
            yield from self._leave_out(call, place, error)
            return
        if call.emitter == Emitter.QUEUE_MANAGER:
            self.intake.facts.add("queue_manager", event["qmgr"], place, platform="zos")
        if self._events.is_dropped(event, call):
            yield PassedOver(DYNAMIC, event["qmgr"], is_counted=True)
            return
        wrong: dict[str, str] = {}  # text by code
        passed_on = self._order.add(call.key, event, wrong.__setitem__)
        yield from (Complaint(code, place, text) for code, text in wrong.items())
        if "duplicate" in wrong:
            return
        self.intake.soundness.calls[call.op] += 1
        if call.emitter == Emitter.QUEUE_MANAGER:
            facts = {"message id": call.msgid, "priority": call.priority, "persistence": call.persistent}
            names = {name for name, value in facts.items() if value is not None}
            self.expect("put span" if call.op == "PUT" else "get span", names, place)
        count = event.get("count", 1)
        puts, gets = (count, 0) if call.op == "PUT" else (0, count)
        self.intake.cover(_SOURCE, event["qmgr"], event["queue"], (call.time, call.time), puts=puts, gets=gets)
        if passed_on is None:
            self.page_latest = max(self.page_latest, call.time)
        else:
            late.append(passed_on)

    def _leave_out(self, call: Call, place: str, error: LeftOutError) -> Iterator[Item]:
        """Report a call that becomes no event. Of another emitter's only the first is a complaint; all are counted."""
        if error.code == NO_QUEUE_MANAGER:
            yield Complaint(error.code, place, str(error))
            if not self._events.has_queue(call.queue):
                self.intake.note_unknown("", call.time, queue=call.queue)
            return
        yield PassedOver(_OTHER_EMITTER, f"the {_words(call.emitter)}", is_counted=True)
        yield from self.once(Complaint(error.code, place, f"{error}. Others like it are counted"))


def requests_of(page: Page) -> Iterator[tuple[bytes, str]]:
    """Yield the requests of a page, as bytes, each with its place."""
    head = bytes(page.data[:256]).lstrip()
    if page.data[:1] == b"\x00" and len(page.data) > 4:
        yield from _length_prefixed(page)
    elif not head.startswith((b"{", b"[")) or _is_one_document(page.data):
        yield _unpacked(bytes(page.data)), page.name
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


def _unpacked(value: bytes) -> bytes:
    """Return a request that the file exporter compressed with zstd as it was before; another value as it is.

    A value that cannot be unpacked is returned unchanged: it is not a request.
    """
    if not value.startswith(_ZSTD):
        return value
    try:
        with pa.CompressedInputStream(pa.BufferReader(value), "zstd") as stream:
            whole: bytes = stream.read(_MAX_REQUEST_BYTES + 1)
    except (OSError, pa.ArrowException):
        return value
    return whole if len(whole) <= _MAX_REQUEST_BYTES else value


def _is_one_document(data: bytes | mmap.mmap) -> bool:
    """Return True for JSON whose first line is not a whole request: it is something else, or spans several lines."""
    end = data.find(b"\n")
    return end < 0 or end == len(data) - 1 or not bytes(data[:end]).rstrip().endswith(b"}")


def _length_prefixed(page: Page) -> Iterator[tuple[bytes, str]]:
    start = 0
    while start < len(page.data):
        size = int.from_bytes(page.data[start : start + 4], "big")
        if size:
            yield _unpacked(bytes(page.data[start + 4 : start + 4 + size])), f"{page.name} byte {start}"
        start += 4 + size


def _words(emitter: Emitter) -> str:
    return "queue manager" if emitter == Emitter.QUEUE_MANAGER else "application"


# --- order of time ---------------------------------------------------------------------------------------------------

Complain = Callable[[str, str], None]
"""Called with the code and the text of a complaint."""

_Held = tuple[int, int, bytes, int, Event]  # heap: time, put before get, key, number, event


class _Memory(msgspec.Struct, array_like=True):
    """Packed form of a `SpanOrder`. means: messages and bytes by queue; keys: oldest first, without separators."""

    latest: int
    passed: int
    number: int
    keys: bytes
    held: list[_Held]
    means: dict[str, list[int]]


class SpanOrder:
    """Events of spans from one or more queues that are waiting, and the spans that came before."""

    def __init__(self, late_s: float, length: int | None, max_keys: int = MAX_KEYS) -> None:
        """Start without spans. Those that come `late_s` after younger ones are too late; without a `length` in bytes, a
        message whose span has no size gets the mean of its queue.
        """
        self._late_us = round(late_s * 1e6)
        self._late_s = late_s
        self._length = length
        self._max_keys = max_keys
        self._keys: OrderedDict[bytes, None] = OrderedDict()
        self._held: list[_Held] = []
        self._means: dict[str, list[int]] = {}
        self._number = 0
        self.latest = 0  # microseconds, of all spans
        self.passed = 0  # microseconds; no event up to here is held

    @property
    def held(self) -> int:
        """Number of events that wait."""
        return len(self._held)

    def add(self, key: bytes, event: Event, complain: Complain) -> Event | None:
        """Return the event of a span if it is not to be held, else None; a PUT without a length gets one. `complain`
        takes what is wrong: `duplicate`, `no-size`, `ahead`, `late`.
        """
        short = blake2b(key, digest_size=_KEY_BYTES).digest()
        if short in self._keys:
            complain("duplicate", f"span {key[16:].hex()} of trace {key[:16].hex()} again")
            return None
        self._keys[short] = None
        if len(self._keys) > self._max_keys:
            self._keys.popitem(last=False)
        if event["op"] == "PUT":
            event = {**event, "length": self._length_of(event, complain)}
        time: int = event["time"]
        if self.latest and time > self.latest + MAX_AHEAD_US:
            text = f"a span of {event['queue']} is {(time - self.latest) / 1e6:.0f} s ahead of those before it"
            complain("ahead", f"{text}; expected: at most a day")
            return event
        if time < self.passed:
            text = f"a span of {event['queue']} is {(self.latest - time) / 1e6:.0f} s late; expected: at most "
            complain("late", text + f"{self._late_s:g} s, --late")
            return event
        self.latest = max(self.latest, time)
        heapq.heappush(self._held, (time, int(event["op"] == "GET"), key, self._number, event))
        self._number += 1
        return None

    def due(self) -> Iterator[Event]:
        """Yield, and no longer hold, the events that wait no more; call it after each record."""
        limit = self.latest - self._late_us
        while self._held and (self._held[0][0] <= limit or len(self._held) > MAX_HELD):
            yield self._pop()

    def rest(self) -> Iterator[Event]:
        """Yield, and no longer hold, all events, at the end of the input."""
        while self._held:
            yield self._pop()

    def pack(self) -> bytes:
        """Return everything that is kept, as bytes."""
        return msgspec.msgpack.encode(
            _Memory(self.latest, self.passed, self._number, b"".join(self._keys), self._held, self._means)
        )

    def unpack(self, data: bytes) -> None:
        """Continue from the result of `pack`."""
        memory = msgspec.msgpack.decode(data, type=_Memory)
        starts = range(0, len(memory.keys), _KEY_BYTES)
        self._keys = OrderedDict.fromkeys(memory.keys[start : start + _KEY_BYTES] for start in starts)
        self._held, self._means, self._number = list(memory.held), memory.means, memory.number
        self.latest, self.passed = memory.latest, memory.passed

    def _pop(self) -> Event:
        time, _, _, _, event = heapq.heappop(self._held)
        self.passed = max(self.passed, time)
        return event

    def _length_of(self, event: Event, complain: Complain) -> int:
        queue = event["queue"]
        mean = self._means.get(queue)
        length: int | None = event.get("length")
        if length is not None:
            if mean is None and len(self._means) < MAX_MEANS:
                mean = self._means[queue] = [0, 0]
            if mean is not None:
                mean[0] += 1
                mean[1] += length
            return length
        if self._length is not None:
            length = self._length
        elif mean is not None:
            length = mean[1] // mean[0]
        else:
            length = DEFAULT_LENGTH
        text = f"a span of {queue} tells no size, {length} bytes are assumed; expected: --length, or statistics"
        complain("no-size", text)
        return length
