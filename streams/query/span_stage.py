"""Records of the OpenTelemetry topic in both stages of the query: events of spans, ordered in the state of each store.

The decode stage reads a record and sends the spans of each store. The second stage keeps, for each store, the state
that `mqtwin collect otlp` keeps for the whole topic: spans seen, events that wait for older ones, mean lengths. It is a
function of the store's spans in the order of the topic, and part of the checkpoint. Described in docs/feeds.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from streams.kafka.dead_letters import DeadLetter
from streams.plan import Plan
from streams.query.rows import StoreSpans
from twin.estate import Estate
from twin.events import Decoder, Event, EventBlock, Reason, Reject
from twin.events.refusals import DETAIL_CHARACTERS
from twin.feeds.otlp import LeftOutError, SpanEvents, SpanOrder, requests_of
from twin.feeds.protocol import FeedOptions, Page
from twin.feeds.spans import Emitter, UnreadableSpansError, read_spans

MAX_STORE_KEYS = 50_000  # spans that a store remembers: 400 kB of its state
_ASSUMED_BYTES = 0  # length of a put whose span has none, until the store's order gives it one


class SpanReader:
    """Reader of records of the OpenTelemetry topic, for the decode stage."""

    def __init__(self, estate: Estate, options: FeedOptions, decoder: Decoder) -> None:
        self._estate = estate
        self._events = SpanEvents(estate, options)
        self._emitter = Emitter(options.emitter)
        self._decoder = decoder

    def read(self, value: bytes) -> tuple[dict[str, StoreSpans], list[Reject]]:
        """Return the spans of a record by store, and what cannot be used.

        Left out are spans of the other emitter, those on temporary dynamic queues, and requests of other signals.
        """
        rejects: list[Reject] = []
        calls: list[tuple[bytes, Event]] = []
        for number, (request, _) in enumerate(requests_of(Page(value, ""))):
            try:
                spans = read_spans(request)
            except UnreadableSpansError as error:
                rejects.append(Reject(0, number, Reason.UNREADABLE_SPANS, str(error), request))
                continue
            for call in spans.calls:
                if call.emitter != self._emitter:
                    continue
                try:
                    event = self._events.event(call)
                    if not self._events.is_dropped(event, call):
                        calls.append((call.key, event))
                except LeftOutError as error:
                    text = msgspec.json.encode({"time": call.time, "op": call.op, "queue": call.queue})
                    rejects.append(Reject(0, number, Reason.UNKNOWN_QUEUE_MANAGER, str(error), text))
        stores = self._by_store(calls, rejects)
        return stores, rejects

    def _by_store(self, calls: list[tuple[bytes, Event]], rejects: list[Reject]) -> dict[str, StoreSpans]:
        if not calls:
            return {}
        decoded = self._decoder.json([_line(event) for _, event in calls])
        rejects += [reject.moved_to(0, reject.record) for reject in decoded.rejects]
        stores: dict[str, StoreSpans] = {}
        for record, route in zip(decoded.record.tolist(), decoded.events["route"].tolist(), strict=True):
            stores.setdefault(self._estate.routes[route].store, []).append(calls[record])
        return stores


@dataclass(slots=True)
class SpanOutput:
    """Result of the spans of a batch for a store: `letters` that the estate lacks, `memory` for the next batch."""

    block: EventBlock | None
    letters: list[DeadLetter]
    memory: bytes
    counts: Counter[str] = field(default_factory=Counter)


def order_spans(
    plan: Plan, decoder: Decoder, store: str, memory: bytes | None, records: Iterable[StoreSpans]
) -> SpanOutput:
    """Take the spans of a store in a batch, and return the events that wait no longer."""
    options = plan.spans
    order = SpanOrder(options.late_s, options.length, MAX_STORE_KEYS)
    if memory is not None:
        order.unpack(memory)
    counts: Counter[str] = Counter()

    def complain(code: str, _text: str) -> None:
        counts[code] += 1

    events: list[Event] = []
    for spans in records:
        late = (order.add(key, event, complain) for key, event in spans)
        events += [event for event in late if event is not None]
        events += order.due()
    decoded = decoder.json([_line(event) for event in events])
    rejects = list(decoded.rejects)
    block = None
    for other in decoded.blocks(plan.estate):
        if other.store == store:
            block = other
        else:
            rejects.append(_moved(other, events))
    return SpanOutput(block, [_letter(plan, reject) for reject in rejects], order.pack(), counts)


def _line(event: Event) -> bytes:
    if event["op"] == "PUT" and "length" not in event:
        event = {**event, "length": _ASSUMED_BYTES}
    return msgspec.json.encode(event)


def _moved(block: EventBlock, events: list[Event]) -> Reject:
    """Return the dead letter of held events whose queue another store has since a restart with another estate."""
    first = events[block.first[0]]
    text = f"{len(block)} spans of {first['queue']} waited while its store became {block.store}"
    return Reject(0, 0, Reason.UNKNOWN_QUEUE, text, _line(first))


def _letter(plan: Plan, reject: Reject) -> DeadLetter:
    """Return the dead letter of an event whose record is not known any more."""
    value = reject.value[: plan.limits.dlq]
    topic = plan.topics.otlp or ""
    return DeadLetter(reject.reason, reject.detail[:DETAIL_CHARACTERS], topic, -1, -1, 0, value, reject.length)
