"""The rows between the stages of the query, as schemas of Spark and of Arrow.

Each row carries an event batch, not an event, because shuffle, sort and the stateful operator have a cost per row.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from streams.kafka.dead_letters import DeadLetter
from twin.events import Event

# Kinds of rows between the decode stage and the processor.
BLOCK, SPANS, REPORT, MARK, DEAD = "block", "spans", "report", "mark", "dead"
CAUGHT_UP, BEHIND = b"\1", b"\0"  # payloads of a mark: see `streams.query.report_records`
DEAD_KEY = "#dlq/"  # pseudo keys of dead letters; no store's name begins with #
FIRST_OTLP_PARTITION = 1 << 24  # partition 0 of the OpenTelemetry topic: behind all of the events topic
DEAD_KEYS = 16  # number of pseudo keys, spread over the state partitions; they have no state

# Spark bounds the rows of an Arrow batch; to bound its bytes, too, it would compute its size again after each row, 6 %
# of the CPU time of single JSON events. So long values and payloads pass in pieces, a row each: an Arrow batch has at
# most 32 MB of values, or 256 MB of payloads (`streams.query.session.ARROW_BATCH_RECORDS`).
VALUE_PIECE_BYTES = 4 * 1024
PAYLOAD_PIECE_BYTES = 32 * 1024

# Decode stage to processor. partition, offset, index: position of the first event of the payload, with `kind` its
# identity in a store; piece: number of the row among those of the payload.
BLOCK_DDL = "store string, kind string, partition int, offset long, index int, piece int, payload binary"
BLOCK_ROWS = pa.schema(
    [
        ("store", pa.string()),
        ("kind", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("index", pa.int32()),
        ("piece", pa.int32()),
        ("payload", pa.binary()),
    ]
)

# Processor to sink: a Kafka record, and figures, which Spark sums up for the log line of the batch. The figures are one
# column because PySpark takes time per column and store to pass rows, however few. Behind these come two that are not
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


def unpack_spans(payload: bytes) -> list[StoreSpans]:
    """Return the spans of a payload; see `pack_spans`."""
    return _records_of_spans.decode(payload)


_letters = msgspec.msgpack.Decoder(list[DeadLetter])


def pack_letters(letters: Iterable[DeadLetter]) -> bytes:
    """Return the payload of a row of dead letters."""
    return msgspec.msgpack.encode(list(letters))


def unpack_letters(payload: bytes) -> list[DeadLetter]:
    """Return the dead letters of a payload; see `pack_letters`."""
    return _letters.decode(payload)
