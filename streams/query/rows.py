"""The rows between the stages of the query, as schemas of Spark and of Arrow.

Each row carries event batches of many stores, not an event, because shuffle, sort and the stateful operator have a cost
per row.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from streams.kafka.dead_letters import DeadLetter
from twin.events import Event

# Kinds of items between the decode stage and the processor.
BLOCK, SPANS, REPORT, MARK, DEAD = "block", "spans", "report", "mark", "dead"
CAUGHT_UP, BEHIND = b"\1", b"\0"  # payloads of a mark: see `streams.query.report_records`
FIRST_OTLP_PARTITION = 1 << 24  # partition 0 of the OpenTelemetry topic: behind all of the events topic


class Item(msgspec.Struct, array_like=True, frozen=True):
    """What the decode stage has for a store.

    Args:
        store: its name; empty: dead letters, which have no store.
        partition: of the first event.
        offset: of the first event.
        index: of the first event in its record.
        kind: BLOCK, SPANS, REPORT, MARK or DEAD.
        payload: as the kind says.
    """

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


# Decode stage to processor: the items of a bucket, see `streams.query.buckets`. The column has this name because it is
# the key of the state, too, which is by store.
BLOCK_DDL = "store string, items binary"
BLOCK_ROWS = pa.schema([("store", pa.string()), ("items", pa.binary())])

_items = msgspec.msgpack.Decoder(list[ReadItem])


def pack_items(items: Iterable[Item]) -> bytes:
    """Return the items of a row of `BLOCK_ROWS`."""
    return msgspec.msgpack.encode(list(items))


def unpack_items(packed: bytes) -> list[ReadItem]:
    """Return the items of a row; see `pack_items`."""
    return _items.decode(packed)


# Processor to sink: a Kafka record, and figures, which Spark sums up for the log line of the batch. The figures are one
# column because PySpark takes time per column to pass rows. Behind these come two that are not
# summed up: see `streams.query.observed`, RESTARTED and CLOCK.
FIGURES = (
    "events",
    "duplicates",
    "blocks",
    "alerts",
    "dead_letters",
    "reports",
    "stores",
    "new",
    "kept",
    "attached",
    "loaded",
    "unmirrored",
    "pages",
    "page_bytes",
    "open_us",
    "apply_us",
    "write_us",
    "spans",
    "spans_twice",
    "spans_late",
    "spans_unsized",
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
