"""Kafka values and lines as spans of one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kernels.line_split import split_lines
from twin.events._arrow import buffers_of

Array = npt.NDArray[Any]
Values: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[bytes | None]

_NEWLINE = ord("\n")


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
    """Return the lines of all values without line ends (LF or CR LF) and without blank lines.

    Args:
        values: values.
        skipped: indexes of values that are treated as empty.
    """
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
