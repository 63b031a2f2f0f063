"""The rows between the stages of the query, and what Spark reports about a batch.

- Rows: their schemas, of Spark and of Arrow, and the keys of the shuffle. Each row carries event batches of many
  stores, not an event, because shuffle, sort and the stateful operator have a cost per row.
- Reports: the progress of a batch, and the figures of all tasks, which Spark combines. Beside sums there are the bits
  of the queue managers with events (see `streams.query.silence`), and the number of a producer whose `seq` has started
  again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import structlog

from kernels.clock import FAR
from streams.kafka.dead_letters import DeadLetter
from twin.base.errors import MqtwinError
from twin.estate import Estate
from twin.events import Event, EventBlock
from twin.stores.watches import is_report, watched_queue_managers

# Kinds of items between the decode stage and the processor.
BLOCK, SPANS, REPORT, MARK, DEAD = "block", "spans", "report", "mark", "dead"
CAUGHT_UP, BEHIND = b"\1", b"\0"  # payloads of a mark: see `streams.query.report_records`
FIRST_OTLP_PARTITION = 1 << 24  # partition 0 of the OpenTelemetry topic: behind all of the events topic


class Item(msgspec.Struct, array_like=True, frozen=True):
    """Output of the decode stage for a store, "" for dead letters; with partition, offset, index of the first event."""

    store: str
    partition: int
    offset: int
    index: int
    kind: str
    payload: bytes | memoryview

    @property
    def place(self) -> tuple[str, int, int, int]:
        """The store, and the place in the topic: the order in which items are applied."""
        return self.store, self.partition, self.offset, self.index


class ReadItem(Item, array_like=True, frozen=True):
    """An item after the shuffle; its payload is a view of the row's."""

    payload: memoryview


# Spark bounds the rows of an Arrow batch; to bound its bytes, too, it would compute its size again after each row, 6 %
# of the CPU time of single JSON events. So long values and items pass in pieces, a row each: an Arrow batch has at most
# 32 MB of values, or 256 MB of items (`streams.query.session.ARROW_BATCH_RECORDS`).
VALUE_PIECE_BYTES = 4 * 1024
ITEMS_PIECE_BYTES = 32 * 1024

# Decode stage to processor: what a task flushes for a bucket, see `pack_items`, in pieces. The column of the
# bucket has this name because it is the key of the state, too, which is by store.
BLOCK_DDL = "store string, task int, flush int, piece int, items binary"
BLOCK_ROWS = pa.schema(
    [("store", pa.string()), ("task", pa.int32()), ("flush", pa.int32()), ("piece", pa.int32()), ("items", pa.binary())]
)
_ITEMS = BLOCK_ROWS.get_field_index("items")
_PLACE = slice(1, _ITEMS)  # of a row: task, flush, piece

_items = msgspec.msgpack.Decoder(list[ReadItem])


def pack_items(bucket: str, task: int, flush: int, items: Iterable[Item]) -> Iterator[tuple[str, int, int, int, bytes]]:
    """Yield the rows of `BLOCK_ROWS` for items."""
    packed = msgspec.msgpack.encode(list(items))
    for piece, start in enumerate(range(0, len(packed), ITEMS_PIECE_BYTES)):
        yield bucket, task, flush, piece, packed[start : start + ITEMS_PIECE_BYTES]


def unpack_items(rows: Iterable[tuple[Any, ...]]) -> list[ReadItem]:
    """Return the items of rows of a bucket, in any order, by store and place; see `pack_items`."""
    pieces = sorted(rows, key=lambda row: row[_PLACE])
    flushes = groupby(pieces, lambda row: (row[1], row[2]))
    items = [item for _, own in flushes for item in _items.decode(b"".join([row[_ITEMS] for row in own]))]
    items.sort(key=lambda item: item.place)
    return items


# Processor to sink: a Kafka record, and figures, which Spark sums up for the log line of the batch. The figures are one
# column because PySpark takes time per column to pass rows. Behind these come two that are not summed up: RESTARTED and
# CLOCK.
FIGURES = (
    *("events", "duplicates", "blocks", "alerts", "dead_letters", "reports", "stores"),
    *("new", "kept", "attached", "loaded", "unmirrored", "pages", "page_bytes", "open_us", "apply_us", "write_us"),
    *("spans", "spans_twice", "spans_late", "spans_unsized"),
)
RECORD_DDL = (
    "topic string, key binary, value binary, headers array<struct<key string, value binary>>, figures array<long>"
)
RECORD_DDL += ", heard array<long>"  # queue managers that had events: see HEARD


StoreSpans = list[tuple[bytes, Event]]
"""Spans of one store from one record of the OpenTelemetry topic, in its order: key and event of each."""

_records_of_spans = msgspec.msgpack.Decoder(list[StoreSpans])


def pack_spans(records: list[StoreSpans]) -> bytes:
    """Return the payload of a row of spans, a list per record."""
    return msgspec.msgpack.encode(records)


def unpack_spans(payload: bytes | memoryview) -> list[StoreSpans]:
    """Return the spans of a payload; see `pack_spans`."""
    return _records_of_spans.decode(payload)


_letters = msgspec.msgpack.Decoder(list[DeadLetter])


def pack_letters(letters: Iterable[DeadLetter]) -> bytes:
    """Return the payload of a row of dead letters."""
    return msgspec.msgpack.encode(list(letters))


def unpack_letters(payload: bytes | memoryview) -> list[DeadLetter]:
    """Return the dead letters of a payload; see `pack_letters`."""
    return _letters.decode(payload)


BUCKET_STORES = 256  # in a bucket, at most about: the output of a bucket is in memory at once
_SEED = 42  # of Spark's partitioning: HashPartitioning, Murmur3Hash
_WORD, _LOW = 4, 0xFFFF_FFFF


class Buckets:
    """The buckets of a query: the keys by which rows of many stores go through the shuffle together.

    A key costs Spark about 0.3 ms of CPU a batch, however few rows it has: its rows become Arrow batches of their own,
    and so does its output. A bucket has no state: that of a store stays under the store's name, in the partition that
    Spark's hash gives it, and a bucket holds only stores of one partition, so no reader of a checkpoint knows of them.
    """

    def __init__(self, stores: Iterable[str], partitions: int) -> None:
        self._partitions = partitions
        self._keys: list[list[str]] = [[] for _ in range(partitions)]
        self._each = 1 + len(set(stores)) // (partitions * BUCKET_STORES)
        number = missing = 0
        while missing < partitions * self._each:
            keys = self._keys[self.partition_of(str(number))]
            if len(keys) < self._each:
                keys.append(str(number))
                missing += 1
            number += 1
        self.key_of = cache(self._key_of)

    def partition_of(self, key: str) -> int:
        """Return the state partition of a key, a store's name or a bucket's."""
        return spark_hash(key) % self._partitions

    def _key_of(self, store: str) -> str:
        """Return the bucket of a store, which is in the store's partition."""
        number, partition = divmod(spark_hash(store), self._partitions)
        return self._keys[partition][number % self._each]

    def key_of_task(self, task: int) -> str:
        """Return a bucket for rows without state; those of different tasks are spread over the partitions."""
        return self._keys[task % self._partitions][0]

    def check(self, key: str, partition: int) -> None:
        """Check that a bucket came to the partition of its stores' state. MqtwinError: they would begin anew."""
        if self.partition_of(key) != partition:
            raise MqtwinError(
                f"bucket {key} of {self._partitions} state partitions came to partition {partition}; expected: "
                f"{self.partition_of(key)}; does the checkpoint have another number of partitions?"
            )


def spark_hash(text: str) -> int:
    """Return Spark's hash of a string, i4, as its SQL function `hash` does.

    Source: Spark 4.2, Murmur3_x86_32.hashUnsafeBytes: MurmurHash3 of whole words, then each byte left, with its sign,
    as a word of its own.
    """
    data = text.encode()
    whole = len(data) - len(data) % _WORD
    words = [int.from_bytes(data[start : start + _WORD], "little") for start in range(0, whole, _WORD)]
    words += [byte - 256 & _LOW if byte > 127 else byte for byte in data[whole:]]
    state = _SEED
    for word in words:
        mixed = _rotated(word * 0xCC9E2D51 & _LOW, 15) * 0x1B873593 & _LOW
        state = (_rotated(state ^ mixed, 13) * 5 + 0xE6546B64) & _LOW
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _LOW
    state = (state ^ state >> 13) * 0xC2B2AE35 & _LOW
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _LOW


# --- reports of Spark about a batch -----------------------------------------------------------------------------------
# A producer whose `seq` has started again: the twins take its events for duplicates until it passes the old numbers. A
# repeated delivery has old times, a producer that numbers from the beginning has new ones: most events of a store in a
# batch are duplicates, and younger than the store's clock. That is a warning of the job only: it changes no state.

OBSERVED = "mqtwin"  # name of the observation
HEARD = "heard"  # column of RECORD_DDL, and prefix of the names of the observed words
_WORD_BITS = 62  # used bits of a signed 64-bit number
RESTARTED = "restarted_route"  # observed name: the largest number of a route with such a producer, plus one
CLOCK = "clock"  # observed name: the latest event time of a store, microseconds
MIN_EVENTS = 10  # of a store in a batch, for a judgement

_log = structlog.get_logger("mqtwin.stream")

Offsets = dict[str, dict[int, int]]  # topic -> partition -> offset of the next record


class _Source(msgspec.Struct, frozen=True, rename="camel"):
    """The source of the query. metrics: Spark's, as text."""

    end_offset: Offsets | None = None
    latest_offset: Offsets | None = None
    metrics: dict[str, str] | None = None


class StateOperator(msgspec.Struct, frozen=True, rename="camel"):
    """The state stores of the query. commit_time_ms: sum over all partitions."""

    memory_used_bytes: int = 0
    commit_time_ms: int = 0


class BatchReport(msgspec.Struct, frozen=True, rename="camel"):
    """Spark's progress report of a batch [Spark: StreamingQueryProgress, JSON]; what it leaves out is empty. Durations
    are in milliseconds of wall time by phase.
    """

    batch_id: int
    num_input_rows: int = 0
    duration_ms: dict[str, int] = {}
    state_operators: tuple[StateOperator, ...] = ()
    sources: tuple[_Source, ...] = ()
    observed_metrics: dict[str, dict[str, int | None]] = {}

    @property
    def _source(self) -> _Source:
        return self.sources[0] if self.sources else _Source()

    @property
    def end_offsets(self) -> Offsets:
        """Offset of the next record after the batch."""
        return self._source.end_offset or {}

    @property
    def latest_offsets(self) -> Offsets:
        """Ends of the topics at the start of the batch; empty if Spark did not ask for them."""
        return self._source.latest_offset or {}

    @property
    def behind(self) -> float | None:
        """Mean number of records per partition up to the last stable offset, not yet read; None if not known."""
        text = (self._source.metrics or {}).get("avgOffsetsBehindLatest")
        return None if text is None else float(text)

    @property
    def observed(self) -> dict[str, int]:
        """The job's own figures; a sum over nothing is left out."""
        return {name: value for name, value in self.observed_metrics.get(OBSERVED, {}).items() if value is not None}


class SourceBits:
    """The watched queue managers of an estate, a bit for each, so that Spark can combine those of all tasks."""

    def __init__(self, estate: Estate) -> None:
        self.names = sorted(watched_queue_managers(estate))
        bits = {name: bit for bit, name in enumerate(self.names)}
        unwatched = len(self.names)
        self._route_bits = np.array([bits.get(route.qmgr, unwatched) for route in estate.routes], np.int32)

    @property
    def columns(self) -> list[str]:
        """Names of the observed words; empty if no queue manager is watched."""
        return [f"{HEARD}_{i}" for i in range(-(-len(self.names) // _WORD_BITS))]

    def words(self, blocks: Iterable[EventBlock]) -> list[int]:
        """Return words with a bit for each watched queue manager with an event; reports of silence do not count."""
        if not self.names:
            return []
        heard = np.zeros(len(self.names) + 1, np.bool_)
        for block in blocks:
            bits = self._route_bits[block.events["route"]]
            heard[bits[~is_report(block)] if block.extras else bits] = True
        words = [0] * len(self.columns)
        for bit in np.flatnonzero(heard[:-1]).tolist():
            words[bit // _WORD_BITS] |= 1 << bit % _WORD_BITS
        return words

    def heard(self, observed: Mapping[str, int]) -> list[str]:
        """Return the queue managers in the observed words of a batch."""
        words = [observed.get(name, 0) for name in self.columns]
        return [name for bit, name in enumerate(self.names) if words[bit // _WORD_BITS] >> bit % _WORD_BITS & 1]


def plausible_clock(clock_us: int) -> int:
    """Return the clock of a store; 0 if it is more than a day ahead of this machine's: it would stop all snapshots."""
    return clock_us if 0 < clock_us < time.time() * 1_000_000 + FAR else 0


def restarted_route(blocks: Iterable[EventBlock], duplicates: int, clock: int) -> int:
    """Return the number, plus one, of the route with most young duplicates of a store in a batch; 0 if they are few.
    Events that were applied are not younger than the clock of the store after the batch.
    """
    total, young = 0, []
    for block in blocks:
        total += len(block)
        young.append(block.events["route"][(block.events["time"] > clock) & (block.events["seq"] >= 0)])
    count = min(duplicates, sum(map(len, young)))
    if total < MIN_EVENTS or 2 * count <= total:
        return 0
    routes, counts = np.unique(np.concatenate(young), return_counts=True)
    return int(routes[np.argmax(counts)]) + 1


class RestartLog:
    """Warnings of producers whose `seq` has started again, one for each store and queue manager."""

    def __init__(self, estate: Estate) -> None:
        self._routes = estate.routes
        self._named: set[tuple[str, str]] = set()

    def on_batch(self, observed: Mapping[str, int], duplicates: int) -> None:
        """Warn of the producer that a batch names. observed: its metrics; duplicates: in the whole batch."""
        number = observed.get(RESTARTED, 0)
        if not number:
            return
        route = self._routes[number - 1]
        if (route.store, route.qmgr) in self._named:
            return
        self._named.add((route.store, route.qmgr))
        _log.warning(
            "a producer's seq has started again",
            store=route.store,
            qmgr=route.qmgr,
            duplicates=duplicates,
            effect="its events are taken for duplicates, which change nothing, until seq passes its old numbers",
            remedy="let it continue its numbers, or leave seq out; then send a MEASURE for the store",
        )
