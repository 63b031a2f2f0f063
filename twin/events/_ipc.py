"""Arrow IPC streams out of Kafka values: nothing in a value may do more harm than lose that value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.ipc

_FILE_MAGIC = b"ARROW1"
_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False, ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
# What reading a stream of arbitrary bytes has been seen to raise: see tests/twin/events/test_damage.py.
_DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError)


class Damage(NamedTuple):
    """A value that is not to its end a stream: which, rows read before the damage, what is wrong, all its bytes."""

    record: int
    rows: int
    detail: str
    value: bytes


@dataclass(slots=True)
class Group:
    """Record batches of one schema. record: which value each is from; first: row within that value of its first row."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    record: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)


def read_streams(values: pa.LargeBinaryArray) -> tuple[list[Group], list[Damage]]:
    """The checked batches of all values, by schema, and the values that are damaged."""
    groups: dict[pa.Schema, Group] = {}
    damages = []
    for record, value in enumerate(values):
        buffer = value.as_buffer() if value.is_valid else pa.py_buffer(b"")
        rows = 0
        try:
            for batch in _batches(buffer):
                if batch.schema not in groups:
                    for column in batch.schema:
                        _read_names(column)
                group = groups.setdefault(batch.schema, Group())
                group.batches.append(batch)
                group.record.append(record)
                group.first.append(rows)
                rows += batch.num_rows
        except _DAMAGE as error:
            damages.append(Damage(record, rows, _detail(buffer, error), buffer.to_pybytes()))
    return list(groups.values()), damages


def _batches(buffer: pa.Buffer) -> Iterator[pa.RecordBatch]:
    source = pa.BufferReader(buffer)
    reader = pa.ipc.open_stream(source, options=_OPTIONS)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        batch.validate(full=True)  # offsets, places in dictionaries and UTF-8 are as the sender wrote them
        if batch.num_rows:
            yield batch.replace_schema_metadata(None)
    if source.tell() < buffer.size:
        raise ValueError(f"{buffer.size - source.tell()} bytes follow the end of the stream")


def _read_names(column: pa.Field) -> None:
    """UnicodeDecodeError where a name in a schema is not UTF-8: Arrow does not check it."""
    kind = column.type
    str(column.name)
    if pa.types.is_timestamp(kind):
        str(kind.tz)
    for number in range(kind.num_fields):
        _read_names(kind.field(number))


def _detail(buffer: pa.Buffer, error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if buffer.slice(0, min(len(_FILE_MAGIC), buffer.size)).to_pybytes() == _FILE_MAGIC:
        text = "an Arrow IPC file"
    return f"{text}; right: one whole Arrow IPC stream"
