"""The rows that travel between the stages of the query, in Spark's and in Arrow's words.

Few rows, each a block: what is paid by the row (shuffle, sort, stateful operator) is then paid seldom.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa

BLOCK, REPORT, DEAD = "block", "report", "dead"  # kinds of rows between decode stage and processor
DEAD_KEY = "#dlq/"  # pseudo keys of dead letters; no store's name begins with #
DEAD_KEYS = 16  # so many pseudo keys, spread over the state partitions; nothing is kept of them

# Decode stage -> processor. partition, offset, index: where the first event of the row stood.
BLOCK_DDL = "store string, kind string, partition int, offset long, index int, payload binary"
BLOCK_ROWS = pa.schema(
    [
        ("store", pa.string()),
        ("kind", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("index", pa.int32()),
        ("payload", pa.binary()),
    ]
)

# Processor -> sink: a Kafka record, and figures that are summed up for the batch's log line and go no further. They are
# one column: PySpark takes 0.1 ms per column and store to hand a frame over, however few rows it has.
FIGURES = (
    "events",
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
)
RECORD_DDL = (
    "topic string, key binary, value binary, headers array<struct<key string, value binary>>, figures array<long>"
)
RECORD_DDL += ", heard array<long>"  # queue managers that had events: see `streams.query.source_bits`


class DeadLetter(msgspec.Struct, frozen=True, array_like=True):
    """An event that cannot be used, as contract section 5 wants it published.

    index: its place within the record. value: its bytes, cut to what the topic takes. length: how many they were.
    """

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    index: int
    value: bytes
    length: int

    def headers(self) -> list[dict[str, Any]]:
        """The headers of its record; `original-length` only where bytes were cut off."""
        texts = {
            "reason": self.reason,
            "detail": self.detail,
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
            "index": str(self.index),
        }
        if self.length != len(self.value):
            texts["original-length"] = str(self.length)
        return [{"key": key, "value": text.encode()} for key, text in texts.items()]


_letters = msgspec.msgpack.Decoder(list[DeadLetter])


def pack_letters(letters: Iterable[DeadLetter]) -> bytes:
    """The payload of a row of dead letters."""
    return msgspec.msgpack.encode(list(letters))


def unpack_letters(payload: bytes) -> list[DeadLetter]:
    """What `pack_letters` packed."""
    return _letters.decode(payload)
