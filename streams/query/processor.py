"""Second stage of the query: the live twin of each store, driven by event batches and by reports of other stores.

It is a thin adaptor between Spark's `transformWithState` and the twins. For each store of a bucket it sorts the event
batches, lets the twin apply them and then the reports, writes the changed pages to the state store, and emits alerts, a
state record, dead letters and the reports of the store itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from streams import seams
from streams.kafka.dead_letters import DeadLetter, Header
from streams.plan import PackedPlan, Plan
from streams.query.decode_stage import open_buckets, open_decoder
from streams.query.report_records import CONTENT_TYPE, report_records, unpack_reports
from streams.query.rows import (
    BLOCK,
    CAUGHT_UP,
    FIGURES,
    MARK,
    REPORT,
    SPANS,
    ReadItem,
    SourceBits,
    StoreSpans,
    plausible_clock,
    restarted_route,
    unpack_items,
    unpack_letters,
    unpack_spans,
)
from streams.query.worker import exemptions, prepare_worker
from streams.state.twins import MAX_STORES, SavedState, StoreState, Twins, TwinSource, query_directory
from twin.events import EventBlock, Reason
from twin.events.refusals import DETAIL_CHARACTERS
from twin.records import StateRecord
from twin.stores.open import Twin, open_message_store
from twin.stores.refusing import OF_THE_MACHINE, Refused, apply_others, event_text, refused_at_once, without
from twin.stores.reports import Report

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import TimerValues

    from twin.alerts.episodes import Alert

_CLOUDEVENT: list[Header] = [{"key": "content-type", "value": b"application/cloudevents+json; charset=UTF-8"}]
_REPORTS: list[Header] = [{"key": "content-type", "value": CONTENT_TYPE.encode()}]
_RECORD = Row("topic", "key", "value", "headers", "figures", "heard")  # the columns of `RECORD_DDL`
_SPANS = StructType([StructField("spans", BinaryType(), False)])


@dataclass(slots=True)
class Output:
    """Rows of `RECORD_DDL`: Kafka records, the first of them with the figures of the bucket in this batch."""

    plan: Plan
    records: list[tuple[str, bytes, bytes, list[Header] | None]] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FIGURES, 0))
    heard: list[int] = field(default_factory=list)
    restarted: int = 0
    clock: int = 0

    def count(self, **figures: int) -> None:
        """Add to figures."""
        for name, number in figures.items():
            self.figures[name] += number

    def note_clock(self, clock: int, blocks: Sequence[EventBlock], duplicates: int) -> None:
        """Note the clock of a store after event batches, and a producer among them that began its numbers again."""
        self.clock = max(self.clock, plausible_clock(clock))
        if duplicates:
            self.restarted = max(self.restarted, restarted_route(blocks, duplicates, clock))

    def hear(self, words: list[int]) -> None:
        """Note queue managers that had events."""
        self.heard = [before | word for before, word in zip(self.heard or [0] * len(words), words, strict=True)]

    def add(self, topic: str, key: bytes, value: bytes, headers: list[Header] | None = None) -> None:
        """Add a Kafka record."""
        self.records.append((topic, key, value, headers))

    def add_alert(self, alert: Alert) -> None:
        """Add the record of an alert, keyed by its id; a dead letter instead if it is too large for its topic."""
        self.figures["alerts"] += 1
        self._add_own(self.plan.topics.alerts, alert.alert_id, alert.record(), self.plan.limits.alerts, _CLOUDEVENT)

    def add_state(self, state: StateRecord) -> None:
        """Add a state record, keyed by its store; a dead letter instead if it is too large for its topic."""
        self._add_own(self.plan.topics.state, state.store, msgspec.json.encode(state), self.plan.limits.state, None)

    def add_reports(self, reports: list[Report]) -> None:
        """Add the reports of a store to the stores it shares, in few records that fit their topic."""
        self.figures["reports"] += len(reports)
        limit = self.plan.limits.reports
        for key, value in report_records(reports, limit):
            self._add_own(self.plan.topics.reports, key.decode(), value, limit, _REPORTS)

    def add_letter(self, letter: DeadLetter) -> None:
        """Add a dead letter; the decode stage has cut its value to the limit of the topic."""
        self.figures["dead_letters"] += 1
        key = f"{letter.topic}/{letter.partition}/{letter.offset}/{letter.index}".encode()
        self.add(self.plan.topics.dlq, key, letter.value, letter.headers())

    def _add_own(self, topic: str, key: str, value: bytes, limit: int, headers: list[Header] | None) -> None:
        if len(value) <= limit:
            self.add(topic, key.encode(), value, headers)
            return
        detail = f"record {key} of {topic} has {len(value)} bytes, the topic takes {limit}; raise its max.message.bytes"
        beginning = value[: self.plan.limits.dlq]
        self.add_letter(DeadLetter(Reason.TOO_LARGE, detail, topic, -1, -1, 0, beginning, len(value)))

    def rows(self) -> Iterator[Row]:
        """Yield the rows. There must be at least one record, or the figures would be lost."""
        figures: list[int] | None = [*(self.figures[name] for name in FIGURES), self.restarted, self.clock]
        heard: list[int] | None = self.heard
        for record in self.records:
            yield _RECORD(*record, figures, heard)
            figures = heard = None


class TwinProcessor(StatefulProcessor):
    """The stateful operator. A key of its input is a bucket, a key of its state is a store."""

    def __init__(self, packed: PackedPlan) -> None:
        self._packed = packed

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state variables; Spark calls this once per task."""
        exemptions.begin_task()
        self._state = StoreState(handle)
        self._spans = handle.getValueState("spans", _SPANS) if self._packed.unpack().topics.otlp is not None else None

    def handleInputRows(  # noqa: N802 -- Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Return the output for all rows of a bucket in a batch; Spark calls this."""
        context = TaskContext.get()
        if context is not None:
            open_buckets(self._packed).check(str(key[0]), context.partitionId())
        items = unpack_items(rows)  # Spark promises no order within a key
        output = Output(self._packed.unpack())
        by_store = {store: list(own) for store, own in groupby(items, lambda item: item.store)}
        for item in by_store.pop("", []):
            for letter in unpack_letters(item.payload):
                output.add_letter(letter)
        for some in _batched(list(by_store), MAX_STORES):
            began = time.perf_counter_ns()
            states = self._state.saved(some)
            output.count(open_us=(time.perf_counter_ns() - began) // 1000)
            for store, saved in zip(some, states, strict=True):
                self._advance(store, by_store[store], saved, output)
        if seams.ACTIVE is not None:
            seams.ACTIVE.reach(seams.SENDING)
        yield from output.rows()

    def close(self) -> None:
        """Do nothing at the end of a task: the twins stay in memory for the next one."""

    def _order(self, store: str, spans: list[StoreSpans], output: Output) -> list[EventBlock]:
        from streams.query.span_stage import order_spans  # only jobs with spans load protobuf

        assert self._spans is not None
        row = self._spans.get()
        memory = bytes(row[0]) if row is not None else None
        ordered = order_spans(self._packed.unpack(), open_decoder(self._packed), store, memory, spans)
        self._spans.update((ordered.memory,))
        for letter in ordered.letters:
            output.add_letter(letter)
        output.count(
            spans=sum(map(len, spans)),
            spans_twice=ordered.counts["duplicate"],
            spans_late=ordered.counts["late"] + ordered.counts["ahead"],
            spans_unsized=ordered.counts["no-size"],
        )
        return [ordered.block] if ordered.block is not None else []

    def _advance(self, store: str, items: Sequence[ReadItem], saved: SavedState | None, output: Output) -> None:
        """Apply event batches, then reports, to the twin of a store, and write the changed pages to the state store.

        An event at which the twin raises becomes a dead letter, the others are applied.
        """
        self._state.select(store)
        inputs = _unpacked(items)
        if inputs.spans:
            inputs.blocks += self._order(store, inputs.spans, output)
        estate = self._packed.unpack().estate
        self._refuse(inputs, [refused_at_once(estate, block) for block in inputs.blocks], output)
        try:
            self._apply(store, inputs, saved, output)
        except _RaisedError as raised:
            refused = self._find_refused(store, inputs.blocks, saved)
            if not any(refused):
                raise raised.error from None
            self._refuse(inputs, refused, output)
            self._apply(store, inputs, saved, output)

    def _find_refused(self, store: str, blocks: Sequence[EventBlock], saved: SavedState | None) -> list[list[Refused]]:
        """Return the events of each batch at which a twin of the saved state raises."""
        estate = self._packed.unpack().estate
        if not estate.stores[store].holds_messages:
            return []
        pages = self._state.pages() if saved is not None else ()
        twin = open_message_store(estate, store, None, saved.header if saved is not None else None, pages)
        refused = []
        for block in blocks:
            twin, _, own = apply_others(twin, estate, block)
            refused.append(own)
        return refused

    def _refuse(self, inputs: _Inputs, refused: Sequence[Sequence[Refused]], output: Output) -> None:
        """Take refused events out of the event batches, and output a dead letter of each."""
        if not any(refused):
            return
        plan = self._packed.unpack()
        for number, own in enumerate(refused):
            block = inputs.blocks[number]
            is_of_events = number < len(inputs.partitions)
            for event in own:
                value = event_text(block, event.row, plan.estate)
                offset, index = block.place_of(event.row) if is_of_events else (-1, 0)
                letter = DeadLetter(
                    reason=str(event.reason),
                    detail=event.detail[:DETAIL_CHARACTERS],
                    topic=plan.topics.events if is_of_events else plan.topics.otlp or "",
                    partition=inputs.partitions[number] if is_of_events else -1,
                    offset=offset,
                    index=index,
                    value=value[: plan.limits.dlq],
                    length=len(value),
                )
                output.add_letter(letter)
            inputs.blocks[number] = without(block, own)

    def _apply(self, store: str, inputs: _Inputs, saved: SavedState | None, output: Output) -> None:
        """Apply the inputs to the twin of a store, and write the changed pages to the state store. _RaisedError: the
        twin raised at an event; nothing was written.
        """
        blocks, reports, caught_up = inputs.blocks, inputs.reports, inputs.caught_up
        started = time.perf_counter_ns()
        with open_twins(self._packed, _query_id()).lease(store, _batch_number(), saved, self._state.pages) as lease:
            opened = time.perf_counter_ns()
            duplicates_before = lease.twin.duplicates
            if lease.source is not TwinSource.CACHED:
                exemptions.note_opened()
            if seams.ACTIVE is not None:
                seams.ACTIVE.reach(seams.APPLYING)
            for alert in _applied(lease.twin, blocks):
                output.add_alert(alert)
            if reports or caught_up is not None:
                for alert in lease.twin.take(reports, caught_up=caught_up):
                    output.add_alert(alert)
            duplicates = lease.twin.duplicates - duplicates_before
            output.note_clock(lease.twin.clock, blocks, duplicates)
            output.hear(source_bits(self._packed).words(blocks))
            output.add_reports(lease.twin.drain_reports())
            if not lease.twin.is_untouched:  # else it has had a mark only
                output.add_state(lease.twin.state())
            applied = time.perf_counter_ns()
            pages, size = self._state.write_pages(lease.twin.dirty_pages())
            self._state.write_header(lease.token, lease.twin.header())
            written = time.perf_counter_ns()
        output.count(
            events=sum(len(block.events) for block in blocks),
            duplicates=duplicates,
            blocks=len(blocks),
            stores=1,
            unmirrored=int(not lease.is_mirrored),
            pages=pages,
            page_bytes=size,
            open_us=(opened - started) // 1000,
            apply_us=(applied - opened) // 1000,
            write_us=(written - applied) // 1000,
        )
        output.count(**{lease.source.value: 1})


def _batched(stores: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(stores), size):
        yield stores[start : start + size]


class _RaisedError(Exception):
    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class _Inputs:
    """The content of a batch for a store. `caught_up` is what the last mark says. Blocks that spans gave are behind
    those of the events topic, which have the partitions.
    """

    blocks: list[EventBlock]
    partitions: list[int]
    reports: list[Report]
    caught_up: bool | None
    spans: list[StoreSpans]


def _applied(twin: Twin, blocks: Iterable[EventBlock]) -> list[Alert]:
    """Apply event batches; return the alerts. _RaisedError: the twin raised at an event."""
    try:
        return [alert for block in blocks for alert in twin.apply(block)]
    except OF_THE_MACHINE:
        raise
    except Exception as error:
        raise _RaisedError(error) from error


def _unpacked(items: Sequence[ReadItem]) -> _Inputs:
    batches = [item for item in items if item.kind == BLOCK]
    blocks = [EventBlock.unpack(item.payload) for item in batches]
    for block, item in zip(blocks, batches, strict=True):
        block.first = item.offset, item.index
    reports = [report for item in items if item.kind == REPORT for report in unpack_reports(item.payload)]
    marks = [item.payload == CAUGHT_UP for item in items if item.kind == MARK]
    spans = [record for item in items if item.kind == SPANS for record in unpack_spans(item.payload)]
    return _Inputs(blocks, [item.partition for item in batches], reports, marks[-1] if marks else None, spans)


@lru_cache(maxsize=4)
def source_bits(packed: PackedPlan) -> SourceBits:
    """Return the watched queue managers of a plan's estate."""
    return SourceBits(packed.unpack().estate)


@lru_cache(maxsize=4)
def open_twins(packed: PackedPlan, query: str) -> Twins:
    """Return the twins of a query in this process; they outlive the task."""
    prepare_worker()
    plan = packed.unpack()
    return Twins(plan.estate, query_directory(query, packed.digest) if query else None, plan.loss)


def _query_id() -> str:
    """Return the id of the query, which restarts keep; empty outside Spark."""
    context = TaskContext.get()
    return (context.getLocalProperty("sql.streaming.queryId") or "") if context is not None else ""


def _batch_number() -> int:
    """Return the number of the batch; -1 outside Spark."""
    context = TaskContext.get()
    return int(context.getLocalProperty("streaming.sql.batchId") or -1) if context is not None else -1
