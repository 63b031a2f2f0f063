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
    """Pieces of a buffer: data u1[...]; starts, ends i8[n], bytes; record i4[n]: which value; index i8[n]: its line."""

    data: Array
    starts: Array
    ends: Array
    record: Array
    index: Array

    def text(self, place: int) -> bytes:
        """The bytes of one piece."""
        return bytes(self.data[self.starts[place] : self.ends[place]].tobytes())

    def beginning(self, place: int, limit: int) -> bytes:
        """Return at most `limit` bytes of one piece."""
        start = int(self.starts[place])
        return bytes(self.data[start : min(start + limit, int(self.ends[place]))].tobytes())


def as_binary(values: Values) -> pa.LargeBinaryArray:
    """Values of any binary or string type as one array; a null stays null."""
    if isinstance(values, pa.ChunkedArray):
        return values.cast(pa.large_binary()).combine_chunks()
    if isinstance(values, pa.Array):
        return values.cast(pa.large_binary())
    return pa.array(values, pa.large_binary())


def whole_values(values: pa.LargeBinaryArray) -> Spans:
    """Each value as one piece; a null is empty."""
    offsets, data = buffers_of(values)
    starts, ends = offsets[:-1].copy(), offsets[1:].copy()
    if values.null_count:
        ends = np.where(values.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    return Spans(data, starts, ends, np.arange(starts.size, dtype=np.int32), np.zeros(starts.size, np.int64))


def too_many_lines(values: pa.LargeBinaryArray, limit: int) -> dict[int, int]:
    """Return the values with more lines than that, and how many they have, empty ones counted."""
    offsets, data = buffers_of(values)
    counts = {}
    for record in np.flatnonzero(np.diff(offsets) >= limit).tolist():
        if values[record].is_valid:
            text = data[offsets[record] : offsets[record + 1]]
            counts[record] = int(np.count_nonzero(text == _NEWLINE)) + int(text[-1] != _NEWLINE)
    return {record: count for record, count in counts.items() if count > limit}


def lines(values: pa.LargeBinaryArray, skipped: Sequence[int] = ()) -> Spans:
    """The lines of all values, without their ends (LF or CR LF); lines of nothing but white space are left out.

    skipped: values to be taken as empty.
    """
    whole = whole_values(values)
    for value in skipped:
        whole.ends[value] = whole.starts[value]
    low, high = (int(whole.starts[0]), int(whole.ends[-1])) if whole.starts.size else (0, 0)
    breaks = np.flatnonzero(whole.data[low:high] == _NEWLINE) + low
    most = breaks.size + whole.starts.size
    record, index = np.empty(most, np.int32), np.empty(most, np.int64)
    starts, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    count = split_lines(whole.data, breaks, whole.starts, whole.ends, record, index, starts, ends)
    return Spans(whole.data, starts[:count], ends[:count], record[:count], index[:count])
