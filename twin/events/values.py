"""Kafka values taken apart: texts and lines as spans of one buffer, Arrow IPC streams as checked batches.

A damaged value costs that value only. The memory that a stream needs is read from its metadata (`kernels.buffers`)
before Arrow allocates it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from kernels.buffers import scan_streams, split_lines
from twin.events.arrow_columns import buffers_of
from twin.events.refusals import MAX_BYTES, Reason, maybe_oversized, oversized

Array = npt.NDArray[Any]
Values: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bytes | None]

_NEWLINE = ord("\n")
_FILE_MAGIC = b"ARROW1"
_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False, ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of a buffer."""

    data: Array  # u1[...]
    starts: Array  # i8[n], bytes
    ends: Array  # i8[n], bytes
    record: Array  # i4[n], index of the value
    index: Array  # i8[n], line within the value

    def text(self, place: int) -> bytes:
        """Return the bytes of a span."""
        return bytes(self.data[self.starts[place] : self.ends[place]].tobytes())

    def beginning(self, place: int, limit: int) -> bytes:
        """Return the first bytes of a span, up to `limit`."""
        start = int(self.starts[place])
        return bytes(self.data[start : min(start + limit, int(self.ends[place]))].tobytes())


def as_binary(values: Values) -> pa.LargeBinaryArray:
    """Return values of any binary or string type as one array; a null stays null."""
    if isinstance(values, pa.ChunkedArray):
        return values.cast(pa.large_binary()).combine_chunks()
    if isinstance(values, pa.Array):
        return values.cast(pa.large_binary())
    return pa.array(values, pa.large_binary())


def whole_values(values: pa.LargeBinaryArray) -> Spans:
    """Return one span per value; that of a null is empty."""
    offsets, data = buffers_of(values)
    starts, ends = offsets[:-1].copy(), offsets[1:].copy()
    if values.null_count:
        ends = np.where(values.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    return Spans(data, starts, ends, np.arange(starts.size, dtype=np.int32), np.zeros(starts.size, np.int64))


def too_many_lines(values: pa.LargeBinaryArray, limit: int) -> dict[int, int]:
    """Return the number of lines, empty ones included, of the values with more than `limit`, by record."""
    offsets, data = buffers_of(values)
    counts = {}
    for record in np.flatnonzero(np.diff(offsets) >= limit).tolist():
        if values[record].is_valid:
            text = data[offsets[record] : offsets[record + 1]]
            counts[record] = int(np.count_nonzero(text == _NEWLINE)) + int(text[-1] != _NEWLINE)
    return {record: count for record, count in counts.items() if count > limit}


def lines(values: pa.LargeBinaryArray, skipped: Sequence[int] = ()) -> Spans:
    """Return the lines of all values without line ends (LF or CR LF), blank lines and the values at `skipped`."""
    whole = whole_values(values)
    for value in skipped:
        whole.ends[value] = whole.starts[value]
    low, high = (int(whole.starts[0]), int(whole.ends[-1])) if whole.starts.size else (0, 0)
    breaks = np.flatnonzero(whole.data[low:high] == _NEWLINE) + low
    max_lines = breaks.size + whole.starts.size
    record, index = np.empty(max_lines, np.int32), np.empty(max_lines, np.int64)
    starts, ends = np.empty(max_lines, np.int64), np.empty(max_lines, np.int64)
    count = split_lines(whole.data, breaks, whole.starts, whole.ends, record, index, starts, ends)
    return Spans(whole.data, starts[:count], ends[:count], record[:count], index[:count])


# --- Arrow streams ----------------------------------------------------------------------------------------------------


class Damage(NamedTuple):
    """Value that was not read to its end."""

    record: int  # index of the value
    rows: int  # number of rows read from it
    detail: str
    value: pa.Buffer  # all its bytes
    reason: Reason = Reason.BAD_ARROW


@dataclass(slots=True)
class Group:
    """Record batches of one schema. views: its columns of views; None: not known yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    record: list[int] = field(default_factory=list)  # index of the value of each batch
    first: list[int] = field(default_factory=list)  # row within the value of the first row of each batch
    views: list[int] | None = None

    def of_record(self, record: int) -> Group:
        """Return the batches of one value."""
        places = [place for place, other in enumerate(self.record) if other == record]
        return Group([self.batches[p] for p in places], [record] * len(places), [self.first[p] for p in places])


class _OversizedError(ValueError):
    """Stream whose batches exceed the bounds once read."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Metadata of streams; see `kernels.buffers.scan_streams`."""

    value_bytes: Array
    rows: Array
    longest: Array
    sizes: Array
    sound: Array

    def refusal(self, record: int) -> str | None:
        """Return the reason to refuse a value before it is read, or None."""
        return oversized(*(int(array[record]) for array in (self.rows, self.longest, self.sizes, self.value_bytes)))

    def refusals(self) -> dict[int, str]:
        """Return the reasons to refuse values before they are read, by index of the value."""
        reasons = {record: self.refusal(record) for record in maybe_oversized(self.rows, self.longest, self.sizes)}
        return {record: reason for record, reason in reasons.items() if reason is not None}


def scan(values: pa.LargeBinaryArray) -> Scan:
    """Read the metadata of the streams in all values."""
    offsets, data = buffers_of(values)
    starts, ends = offsets[:-1].copy(), offsets[1:].copy()
    if values.null_count:
        ends = np.where(values.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    return _scan(data, starts, ends)


def scan_buffer(buffer: pa.Buffer) -> Scan:
    """Read the metadata of one stream of any length."""
    data = np.frombuffer(buffer, np.uint8) if buffer.size else np.zeros(0, np.uint8)
    data.flags.writeable = False
    return _scan(data, np.zeros(1, np.int64), np.array([data.size], np.int64))


def _scan(data: Array, starts: Array, ends: Array) -> Scan:
    dimensions = [np.zeros(starts.size, np.int64) for _ in range(4)]
    scan_streams(data, starts, ends, *dimensions)
    return Scan(ends - starts, *dimensions)


def read_streams(values: pa.LargeBinaryArray) -> tuple[list[Group], list[Damage]]:
    """Return the checked batches of all values by schema, and the values that are damaged or exceed the bounds."""
    groups: dict[bytes, Group] = {}
    damages = []
    scanned = scan(values)
    refusals, sound = scanned.refusals(), scanned.sound.tolist()
    for record, value in enumerate(values):
        buffer = value.as_buffer() if value.is_valid else pa.py_buffer(b"")
        if record in refusals:
            damages.append(Damage(record, 0, refusals[record], buffer, Reason.OVERSIZED))
            continue
        batches: list[pa.RecordBatch] = []
        group = groups.setdefault(_first_message(buffer), Group())
        damage = None
        try:
            for batch in _batches(buffer, sound[record], group):
                batches.append(batch)  # noqa: PERF402  # those before the damage are kept
        except _OversizedError as error:
            damages.append(Damage(record, 0, str(error), buffer, Reason.OVERSIZED))
            continue
        except Exception as error:  # noqa: BLE001  # arbitrary bytes raise anything, MemoryError too: see the detail
            damage = _detail(buffer, error)
        rows = 0
        for batch in batches:
            group.batches.append(batch)
            group.record.append(record)
            group.first.append(rows)
            rows += batch.num_rows
        if damage is not None:
            damages.append(Damage(record, rows, damage, buffer))
    return [group for group in groups.values() if group.batches], damages


def _first_message(buffer: pa.Buffer) -> bytes:
    """Return the bytes of the first message of a stream: its schema. Comparing schemas takes longer than reading."""
    head = buffer.slice(0, min(8, buffer.size)).to_pybytes()
    start = 8 if head[:4] == b"\xff\xff\xff\xff" else 4
    size = int.from_bytes(head[start - 4 : start], "little", signed=True)
    return bytes(buffer.slice(0, min(max(0, start + size), buffer.size)).to_pybytes())


def _batches(buffer: pa.Buffer, sound: int, group: Group) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream whose messages are whole in its first `sound` bytes. group: group of its schema."""
    source = pa.BufferReader(buffer.slice(0, sound))
    reader = pa.ipc.open_stream(source, options=_OPTIONS)
    if group.views is None:
        schema = reader.schema
        for column in schema:
            _read_names(column)
        group.views = [number for number, column in enumerate(schema) if _holds_views(column.type)]
    viewed = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        batch.validate(full=True)  # the sender may have written wrong offsets, dictionary indexes and UTF-8
        for number in group.views:
            viewed += _viewed_bytes(batch.column(number))
        if viewed > MAX_BYTES:
            raise _OversizedError(f"{viewed} bytes in columns of views; expected: at most {MAX_BYTES} bytes")
        if batch.num_rows:
            yield batch.replace_schema_metadata(None)
    if sound < buffer.size:
        raise ValueError(f"the message at byte {sound} is cut short or damaged")
    if source.tell() < buffer.size:
        raise ValueError(f"{buffer.size - source.tell()} bytes follow the end of the stream")


def _holds_views(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _viewed_bytes(values: pa.Array) -> int:
    """Return the bytes of the texts of a column of views, or of its dictionary; they may share memory."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary
    if not len(values):
        return 0
    lengths = np.frombuffer(values.buffers()[1], np.int32)[::4][values.offset : values.offset + len(values)]
    return int(lengths[np.asarray(values.is_valid())].sum(dtype=np.int64))


def _read_names(column: pa.Field) -> None:
    """Raise UnicodeDecodeError if a name in a schema is not UTF-8, which Arrow does not check."""
    kind = column.type
    str(column.name)
    if pa.types.is_timestamp(kind):
        str(kind.tz)
    for number in range(kind.num_fields):
        _read_names(kind.field(number))


def _detail(buffer: pa.Buffer, error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, (pa.ArrowException, OSError, ValueError)):
        text = f"{type(error).__name__}: {text}"
    if buffer.slice(0, min(len(_FILE_MAGIC), buffer.size)).to_pybytes() == _FILE_MAGIC:
        text = "an Arrow IPC file"
    return f"{text}; expected: one whole Arrow IPC stream"
