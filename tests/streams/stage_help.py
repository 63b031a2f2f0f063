"""Helpers for tests of the query's two stages: a plan, rows as Spark's Kafka source gives them, decoded output."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming import TwsTester

from streams.kafka.dead_letters import DeadLetter
from streams.kafka.topics import Limits, Topics
from streams.plan import Loss, PackedPlan, Plan
from streams.query.decode_stage import decode_task
from streams.query.processor import TwinProcessor, open_twins
from streams.query.rows import DEAD, FIGURES, ReadItem, unpack_items, unpack_letters
from tests.support.estates import small_estate
from twin.estate import load_estate
from twin.events import EventBlock

SOURCE = "mqtwin.events"
ARROW = b"application/vnd.apache.arrow.stream"
NDJSON = b"application/x-ndjson"
START_US = 1_795_176_000_000_000  # 2026-11-20T12:00:00Z
MEGABYTE = 1024 * 1024


def plan(
    folder: Path, *, dlq: int = MEGABYTE, state: int = MEGABYTE, loss: Loss | None = None, partitions: int = 1
) -> PackedPlan:
    """Return a plan of the small estate with the given limits."""
    estate = load_estate(small_estate(folder))
    limits = Limits(state=state, alerts=MEGABYTE, dlq=dlq)
    return PackedPlan.pack(Plan(estate, Topics(), limits, loss or Loss(), partitions=partitions))


def put(number: int, queue: str = "ORDERS", **other: Any) -> dict[str, Any]:
    """Return the put of message `number`; there is one per second."""
    event = {"time": START_US + number * 1_000_000, "qmgr": "QM01", "op": "PUT", "queue": queue, "seq": number}
    return event | {"msgid": f"m{number}", "length": 1000} | other


def as_json(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()


def rows(
    values: list[bytes | None],
    types: list[bytes | None] | bytes | None = None,
    partitions: list[int] | None = None,
    offsets: list[int] | None = None,
) -> pa.RecordBatch:
    """Return a record batch as the Kafka source gives it."""
    count = len(values)
    columns = {
        "value": pa.array(values, pa.binary()),
        "content_type": pa.array(types if isinstance(types, list) else [types] * count, pa.binary()),
        "partition": pa.array(partitions or [0] * count, pa.int32()),
        "offset": pa.array(offsets or list(range(count)), pa.int64()),
    }
    return pa.record_batch(columns)


def shuffled(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Return the rows of record batches of the decode stage as the processor gets them."""
    return [Row(**row) for batch in batches for row in batch.to_pylist()]


def items_of(batches: Iterable[pa.RecordBatch]) -> list[ReadItem]:
    """Return the items of record batches of the decode stage, of each in the order in which they are applied."""
    rows_of_batches = [batch.column("items").to_pylist() for batch in batches]
    return [
        item
        for items in rows_of_batches
        for item in sorted((item for row in items for item in unpack_items(row)), key=lambda item: item.place)
    ]


def new_tester(packed: PackedPlan) -> TwsTester:
    """Return the processor in PySpark's tester, without the twins of earlier tests."""
    open_twins.cache_clear()
    return TwsTester(TwinProcessor(packed))


def blocks_of(packed: PackedPlan, values: list[bytes], offset: int = 0, partition: int = 0) -> list[Row]:
    """Return the rows of these records after the shuffle."""
    offsets = list(range(offset, offset + len(values)))
    batch = rows(values, partitions=[partition] * len(values), offsets=offsets)
    return shuffled(decode_task(packed, SOURCE, 0, [batch]))


def figure(output: list[Row], name: str) -> int:
    """Return the sum of a figure over the rows, as the job observes it."""
    return sum(row.figures[FIGURES.index(name)] for row in output if row.figures is not None)


def of_topic(output: list[Row], topic: str) -> list[Row]:
    """Return the records for a topic."""
    return [row for row in output if row.topic == topic]


def decoded(
    packed: PackedPlan, *batches: pa.RecordBatch, task: int = 0
) -> tuple[list[tuple[int, int, int, EventBlock]], list[DeadLetter]]:
    """Decode record batches as a task does.

    Returns:
        (partition, offset, index, event batch) of each row, and the dead letters.
    """
    blocks, letters = [], []
    for item in items_of(decode_task(packed, SOURCE, task, list(batches))):
        if item.kind == DEAD:
            letters += unpack_letters(item.payload)
        else:
            block = EventBlock.unpack(item.payload)
            assert block.store == item.store
            blocks.append((item.partition, item.offset, item.index, block))
    return blocks, letters
