"""The rows between the stages of the query, as schemas of Spark and of Arrow, and the keys of the shuffle.

Each row carries event batches of many stores, not an event, because shuffle, sort and the stateful operator have a cost
per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any

import msgspec
import pyarrow as pa

from streams.kafka.dead_letters import DeadLetter
from twin.errors import MqtwinError
from twin.events import Event

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

# Decode stage to processor: what a task flushes for a bucket, see `streams.query.rows`, in pieces. The column of the
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
# column because PySpark takes time per column to pass rows. Behind these come two that are not
# summed up: see `streams.query.observed`, RESTARTED and CLOCK.
FIGURES = (
    *("events", "duplicates", "blocks", "alerts", "dead_letters", "reports", "stores"),
    *("new", "kept", "attached", "loaded", "unmirrored", "pages", "page_bytes", "open_us", "apply_us", "write_us"),
    *("spans", "spans_twice", "spans_late", "spans_unsized"),
)
RECORD_DDL = (
    "topic string, key binary, value binary, headers array<struct<key string, value binary>>, figures array<long>"
)
RECORD_DDL += ", heard array<long>"  # queue managers that had events: see `streams.query.observed`


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
