"""First stage of the query: it decodes Kafka records into event batches per store, reports, and dead letters.

It runs before the shuffle, in Spark's `mapInArrow`. It joins the events of all records of a task into one event batch
per store and partition, so that records of single JSON events cost the next stage as little as Arrow streams do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streams import seams
from streams.kafka.dead_letters import DeadLetter
from streams.plan import PackedPlan, Plan
from streams.query.report_records import ReadMark, ReportError, pack_reports, read_record
from streams.query.rows import (
    BEHIND,
    BLOCK,
    BLOCK_ROWS,
    CAUGHT_UP,
    DEAD,
    FIRST_OTLP_PARTITION,
    MARK,
    REPORT,
    SPANS,
    VALUE_PIECE_BYTES,
    Buckets,
    Item,
    StoreSpans,
    pack_items,
    pack_letters,
    pack_spans,
)
from streams.query.worker import exemptions, prepare_worker
from twin.events import Decoder, EventBlock, Reason, Reject
from twin.events.decoded import join_rows
from twin.events.refusals import DETAIL_CHARACTERS, Limits
from twin.stores.reports import Report

if TYPE_CHECKING:
    from streams.query.span_stage import SpanReader

FLUSH_EVENTS = 262_144  # decoded events that trigger a flush: 4 MB of shuffle at 15 bytes per event
FLUSH_BYTES = 16 * 1024 * 1024  # bytes of dead letters, reports and extras that trigger a flush

# Columns of `streams.query.definition.events_frame`. Partition n of the reports topic is given as -1 - n, that of the
# OpenTelemetry topic as FIRST_OTLP_PARTITION + n: a column with the topic's name would cost time for every event. The
# pieces of a long value are rows that follow each other.
KAFKA_COLUMNS = ("value", "content_type", "partition", "offset")


def decode_function(packed: PackedPlan, source: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow`, from record batches of `KAFKA_COLUMNS` to those of `BLOCK_ROWS`."""

    def decode(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        exemptions.begin_task()
        context = TaskContext.get()
        yield from decode_task(packed, source, context.partitionId() if context is not None else 0, batches)

    return decode


def decode_task(
    packed: PackedPlan, source: str, task: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Decode the record batches of a task. The number of the task spreads dead letters over buckets."""
    plan = packed.unpack()
    span_reader = open_span_reader(packed) if plan.topics.otlp is not None else None
    buffer = OutputBuffer(open_decoder(packed), plan, source, open_buckets(packed), task, span_reader)
    for batch in whole_records(batches):
        if seams.ACTIVE is not None:
            seams.ACTIVE.reach(seams.READING)
        yield from buffer.add(batch)
    if not buffer.is_empty:
        yield buffer.flush()


def whole_records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join the pieces of long values, see `VALUE_PIECE_BYTES`. Both have `KAFKA_COLUMNS`; the pieces of a value may be
    in several batches.

    Yields:
        Record batches of a row per record.
    """
    begun: list[pa.RecordBatch] = []  # pieces of the last record, which may go on in the next batch
    for batch in batches:
        rows = pa.concat_batches([*begun, batch]) if begun else batch
        begun = []
        if rows.num_rows == 0:
            continue
        offsets, partitions = rows.column("offset").to_numpy(), rows.column("partition").to_numpy()
        is_first = np.ones(rows.num_rows, np.bool_)
        is_first[1:] = (offsets[1:] != offsets[:-1]) | (partitions[1:] != partitions[:-1])
        firsts = np.flatnonzero(is_first)
        last = rows.column("value")[-1]
        if last.is_valid and len(last.as_buffer()) == VALUE_PIECE_BYTES:
            begun = [rows.slice(firsts[-1])]
            rows, firsts = rows.slice(0, firsts[-1]), firsts[:-1]
        if firsts.size:
            yield rows if firsts.size == rows.num_rows else _joined(rows, firsts)
    for rows in begun:
        yield _joined(rows, np.zeros(1, np.int64))


def _joined(rows: pa.RecordBatch, firsts: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Return one row for the pieces from each of `firsts` up to the next."""
    values, others = rows.column("value"), rows.take(pa.array(firsts))
    ends = np.append(firsts, rows.num_rows)
    _, offsets, data = values.buffers()
    places = np.frombuffer(offsets, np.int32)[values.offset + ends]
    is_valid = pa.array(others.column("value").is_valid())
    whole = pa.Array.from_buffers(pa.binary(), firsts.size, [is_valid.buffers()[1], pa.py_buffer(places), data])
    return others.set_column(others.schema.get_field_index("value"), "value", whole)


@lru_cache(maxsize=4)
def open_decoder(packed: PackedPlan) -> Decoder:
    """Return the decoder of a plan's estate; one per process and plan."""
    prepare_worker()
    plan = packed.unpack()
    return Decoder(plan.estate, Limits(value_bytes=plan.limits.dlq))


@lru_cache(maxsize=4)
def open_buckets(packed: PackedPlan) -> Buckets:
    """Return the buckets of a plan's estate; one object per process and plan."""
    plan = packed.unpack()
    return Buckets(plan.estate.stores, plan.partitions)


@lru_cache(maxsize=4)
def open_span_reader(packed: PackedPlan) -> SpanReader:
    """Return the reader of spans of a plan's estate; one per process and plan. Only jobs with spans load protobuf."""
    from streams.query.span_stage import SpanReader

    plan = packed.unpack()
    return SpanReader(plan.estate, plan.spans, open_decoder(packed))


@dataclass(slots=True)
class _Blocks:
    """Event batches of a store from a partition, in the topic's order, with offset and index of the first."""

    offset: int
    index: int
    blocks: list[EventBlock] = field(default_factory=list)


@dataclass(slots=True)
class _Reports:
    """Reports for a shared store from a partition, in the topic's order. The offset is that of the first record."""

    offset: int
    reports: list[Report] = field(default_factory=list)


@dataclass(slots=True)
class _Spans:
    offset: int
    records: list[StoreSpans] = field(default_factory=list)


class OutputBuffer:
    """Decoded output of a task that is not yet sent. task: spreads dead letters over buckets, and names flushes."""

    def __init__(
        self,
        decoder: Decoder,
        plan: Plan,
        source: str,
        buckets: Buckets,
        task: int = 0,
        span_reader: SpanReader | None = None,
    ) -> None:
        self._decoder, self._plan, self._source, self._buckets, self._task = decoder, plan, source, buckets, task
        self._flushes = 0
        self._span_reader = span_reader
        self._clear()

    def _clear(self) -> None:
        self._stores: dict[tuple[str, int], _Blocks] = {}
        self._reports: dict[tuple[str, int], _Reports] = {}
        self._marks: dict[tuple[str, int], tuple[int, bool]] = {}  # the last one: offset, what it says
        self._spans: dict[tuple[str, int], _Spans] = {}
        self._letters: list[DeadLetter] = []
        self._events = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """True if it is time to flush."""
        return self._events >= FLUSH_EVENTS or self._bytes >= FLUSH_BYTES

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to send."""
        return not (self._stores or self._reports or self._marks or self._spans or self._letters)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Decode a record batch of `KAFKA_COLUMNS`, and yield the buffered output whenever the buffer is full.

        The batch may have records of several partitions, those of each in the order of their offsets.
        """
        partitions = batch.column("partition")
        numbers = pc.unique(partitions).to_pylist()
        for number in numbers:
            rows = batch if len(numbers) == 1 else batch.filter(pc.equal(partitions, number))
            if number < 0:
                self._add_reports(-1 - int(number), rows)
            elif number >= FIRST_OTLP_PARTITION:
                yield from self._add_spans(int(number) - FIRST_OTLP_PARTITION, rows)
            else:
                yield from self._add_partition(int(number), rows)
        if self.is_full:
            yield self.flush()

    def _add_partition(self, partition: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        offsets = rows.column("offset").to_numpy()
        for decoded in self._decoder.pieces(rows.column("value"), rows.column("content_type")):
            if self.is_full:
                yield self.flush()
            for block in decoded.blocks(self._plan.estate):
                self._add_block(partition, offsets, block)
            for reject in decoded.rejects:
                self._add_letter(self._source, partition, int(offsets[reject.record]), reject)

    def _add_reports(self, partition: int, rows: pa.RecordBatch) -> None:
        for offset, value in zip(rows.column("offset").to_pylist(), rows.column("value").to_pylist(), strict=True):
            try:
                reports = read_record(value, self._plan.estate)
            except ReportError as error:
                reject = Reject(0, 0, Reason.BAD_REPORT, str(error), value or b"")
                self._add_letter(self._plan.topics.reports, partition, offset, reject)
                continue
            if isinstance(reports, ReadMark):
                self._marks[reports.store, partition] = offset, reports.caught_up
                continue
            entry = self._reports.setdefault((reports[0].target, partition), _Reports(offset))
            entry.reports += reports
            self._bytes += len(value)

    def _add_spans(self, partition: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        assert self._span_reader is not None
        topic = self._plan.topics.otlp or ""
        for offset, value in zip(rows.column("offset").to_pylist(), rows.column("value").to_pylist(), strict=True):
            if self.is_full:
                yield self.flush()
            stores, rejects = self._span_reader.read(value or b"")
            for store, spans in stores.items():
                self._spans.setdefault((store, partition), _Spans(offset)).records.append(spans)
            for reject in rejects:
                self._add_letter(topic, partition, offset, reject)
            self._bytes += len(value or b"")

    def _add_block(self, partition: int, offsets: npt.NDArray[np.int64], block: EventBlock) -> None:
        record, index = block.first
        block.places = {row: (int(offsets[record]), index) for row, (record, index) in block.places.items()}
        entry = self._stores.get((block.store, partition))
        if entry is None:
            entry = self._stores[block.store, partition] = _Blocks(int(offsets[record]), index)
        entry.blocks.append(block)
        self._events += len(block)
        self._bytes += sum(map(len, block.extras.values()))

    def _add_letter(self, topic: str, partition: int, offset: int, reject: Reject) -> None:
        value = reject.value[: self._plan.limits.dlq]
        letter = DeadLetter(
            reason=str(reject.reason),
            detail=reject.detail[:DETAIL_CHARACTERS],
            topic=topic,
            partition=partition,
            offset=offset,
            index=reject.index,
            value=value,
            length=reject.length,
        )
        self._letters.append(letter)
        self._bytes += len(value) + len(letter.detail)

    def flush(self) -> pa.RecordBatch:
        """Return the buffered output as rows of `BLOCK_ROWS` and empty the buffer."""
        rows: dict[str, list[Item]] = {}
        for item in self._items():
            rows.setdefault(self._buckets.key_of(item.store), []).append(item)
        if self._letters:
            first = self._letters[0]
            letters = Item("", first.partition, first.offset, first.index, DEAD, pack_letters(self._letters))
            rows.setdefault(self._buckets.key_of_task(self._task), []).append(letters)
        self._clear()
        self._flushes += 1
        packed = [row for key, items in rows.items() for row in pack_items(key, self._task, self._flushes, items)]
        columns = zip(*packed, strict=True)
        return pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, BLOCK_ROWS.types, strict=True)], BLOCK_ROWS
        )

    def _items(self) -> Iterator[Item]:
        for (store, partition), blocks in self._stores.items():
            yield Item(store, partition, blocks.offset, blocks.index, BLOCK, join_blocks(blocks.blocks).pack())
        for (store, partition), reports in self._reports.items():
            yield Item(store, partition, reports.offset, 0, REPORT, pack_reports(reports.reports))
        for (store, partition), (offset, caught_up) in self._marks.items():
            yield Item(store, partition, offset, 0, MARK, CAUGHT_UP if caught_up else BEHIND)
        for (store, partition), spans in self._spans.items():
            yield Item(store, FIRST_OTLP_PARTITION + partition, spans.offset, 0, SPANS, pack_spans(spans.records))


def join_blocks(blocks: list[EventBlock]) -> EventBlock:
    """Concatenate event batches, at least one, of one store."""
    if len(blocks) == 1:
        return blocks[0]
    extras: dict[int, bytes] = {}
    places: dict[int, tuple[int, int]] = {}
    start = 0
    for block in blocks:
        extras |= {start + row: text for row, text in block.extras.items()}
        places |= {start + row: place for row, place in block.places.items()}
        start += len(block)
    return EventBlock(blocks[0].store, join_rows([block.events for block in blocks]), extras, blocks[0].first, places)
