"""Spans of puts and gets as events, each once and in the order of time: see `twin.feeds.ordering`.

Spans show the messages that carry trace context, and of these the share that applications sample. `coverage.py` adds
what statistics count beyond them.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator

from typing_extensions import override

from twin.estate import Estate
from twin.events import Event
from twin.feeds.intake import Intake
from twin.feeds.ordering import SpanOrder
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.feeds.spans import Call, Emitter, UnreadableSpansError, read_spans

_SOURCE = "OTLP"
_OTHERS = "span of no put or get on MQ"
NO_QUEUE_MANAGER = "no-queue-manager"


class LeftOutError(ValueError):
    """A call that becomes no event; the message names the call and what is expected. code: code of the complaint."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class SpanEvents:
    """Conversion of single calls to events.

    Args:
        estate: knows the queue managers of queues; None: only spans that name theirs are taken, or as the options say.
        options: options of the feed.
    """

    def __init__(self, estate: Estate | None, options: FeedOptions) -> None:
        self._options = options
        self._qmgrs = _QueueManagers(estate, options)

    def event(self, call: Call) -> Event:
        """Return the event of a call; of a PUT without `length` if its span tells no size.

        Raises:
            LeftOutError: the call is another emitter's, or its queue manager is not known.
        """
        if call.emitter != self._options.emitter:
            raise LeftOutError(
                f"spans-of-{call.emitter}",
                f"a span of {call.queue} comes from the {_words(call.emitter)}; expected: the "
                f"{_words(Emitter(self._options.emitter))}, as --spans says: both would count each call twice",
            )
        qmgr = self._qmgrs.find(call)
        if qmgr is None:
            raise LeftOutError(
                NO_QUEUE_MANAGER,
                f"a span of {call.queue} from LPAR {call.lpar or '?'} names no queue manager, and the estate has "
                "none or several with such a queue; expected: --lpar LPAR=QMGR or --qmgr",
            )
        event: Event = {"time": call.time, "qmgr": qmgr, "op": call.op, "queue": call.queue}
        if call.msgid is not None:
            event["msgid"] = call.msgid
        if call.op == "PUT" and call.length is not None:
            event["length"] = call.length
        return event

    def has_queue(self, queue: str) -> bool:
        """Return True if a queue manager of the estate has a queue of this name."""
        return self._qmgrs.has_queue(queue)


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

    def has_queue(self, queue: str) -> bool:
        """Return True if a queue manager of the estate has a queue of this name."""
        return queue in self._by_queue

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

    reads = "spans with mainframe.lpar.name, or messaging.system of MQ"

    def __init__(self, intake: Intake, options: FeedOptions) -> None:
        super().__init__(intake, options)
        self._events = SpanEvents(intake.estate, options)
        self._calls = 0
        self._order = SpanOrder(options.late_s, options.length)

    @override
    def take(self, page: Page) -> Iterable[Event]:
        late: list[Event] = []
        self.page_latest = 0
        for value, place in requests_of(page):
            try:
                spans = read_spans(value)
            except UnreadableSpansError as error:
                self.intake.complain("unreadable", place, str(error))
                continue
            self.object_count += len(spans.calls) + spans.others.total()
            self._calls += len(spans.calls)
            for kind, number in spans.others.items():
                self.intake.pass_over(_OTHERS, kind, number=number)
            for call in spans.calls:
                if call.time > page.before:
                    self._add(call, place, late)
        yield from late
        for event in self._order.due():
            self.passed = self._order.passed
            yield event

    @override
    def finish(self) -> Iterable[Event]:
        if self.object_count and not self._calls:
            text = f"none of {self.object_count:,} spans is of a put or get on MQ; expected: {self.reads}"
            self.intake.complain("no-spans", _SOURCE, text)
        for event in self._order.rest():
            self.passed = self._order.passed
            yield event

    def _add(self, call: Call, place: str, late: list[Event]) -> None:
        try:
            event = self._events.event(call)
        except LeftOutError as error:
            self.intake.complain(error.code, place, str(error))
            if error.code == NO_QUEUE_MANAGER and not self._events.has_queue(call.queue):
                self.intake.note_unknown("", call.time, queue=call.queue)
            return
        codes: list[str] = []

        def complain(code: str, text: str) -> None:
            codes.append(code)
            self.intake.complain(code, place, text)

        passed_on = self._order.add(call.key, event, complain)
        if "duplicate" in codes:
            return
        puts, gets = (1, 0) if call.op == "PUT" else (0, 1)
        self.intake.cover(_SOURCE, event["qmgr"], call.queue, (call.time, call.time), puts=puts, gets=gets)
        if passed_on is None:
            self.page_latest = max(self.page_latest, call.time)
        else:
            late.append(passed_on)


def requests_of(page: Page) -> Iterator[tuple[bytes, str]]:
    """Yield the requests of a page, as bytes, each with its place."""
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
