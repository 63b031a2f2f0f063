"""Event batches of one store: rows in memory, and compact bytes between the processes of a job.

The bytes are private to a job: they carry a version, and no other version reads them.

Layout, little-endian: magic "MQB", version u1, length of the store name u2, the name in UTF-8, rows u4, extras u4; one
column for each field of `kernels.EVENT` in `_COLUMNS`' order; the extras, each row u4, length u4, bytes. A column is a
head (kind u1, width u1, first i8, low i8) and its numbers, `width` bytes each, unsigned, above `low`:

* CONSTANT: no numbers; every row is `low`.
* PLAIN: one number per row.
* STEPS: rows - 1 numbers, the differences between consecutive rows; the first row is `first`.
* SPARSE: one bit per row, then `first` numbers; rows whose bit is not set are 0.

The smallest encoding is chosen: a constant column costs 18 bytes per batch, a queue 1 byte per event, a unit of work
1 bit per event without one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT

VERSION = 2

_MAGIC = b"MQB"
_HEAD = struct.Struct("<3sBH")
_COUNTS = struct.Struct("<II")
_COLUMN = struct.Struct("<BBqq")
_EXTRA = struct.Struct("<II")
_COLUMNS = tuple(name for name in EVENT.names or () if name != "pad")
_WIDTHS = (1, 2, 4, 8)
_UNSIGNED = {width: np.dtype(f"<u{width}") for width in _WIDTHS}

CONSTANT, PLAIN, STEPS, SPARSE = range(4)

Column = npt.NDArray[np.int64]


def take_rows(events: npt.NDArray[Any], places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return EVENT[m], the rows at m places. As words: numpy copies rows of a structured type 30 times more slowly."""
    return np.take(_as_words(events), places, axis=0).view(EVENT).reshape(-1)


def join_rows(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return EVENT[...], the rows of all parts, at least one."""
    return np.concatenate([_as_words(part) for part in parts]).view(EVENT).reshape(-1)


def _as_words(events: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return events.view(np.int64).reshape(events.size, EVENT.itemsize // 8)


class BlockError(ValueError):
    """Bytes that are not an event batch of this version."""


@dataclass(slots=True)
class EventBlock:
    """Events of one store, in order."""

    store: str
    events: npt.NDArray[Any]  # EVENT[n], C-contiguous, writable
    extras: dict[int, bytes]  # by row: JSON of the attributes (ALTER, REBUILD) or of the measurement (MEASURE)
    first: tuple[int, int] = field(default=(0, 0), compare=False)  # (record, index) of the first event, not packed

    def __len__(self) -> int:
        return int(self.events.size)

    def pack(self) -> bytes:
        """Return the batch as bytes: for usual traffic about 15 per event."""
        name = self.store.encode()
        parts = [_HEAD.pack(_MAGIC, VERSION, len(name)), name, _COUNTS.pack(self.events.size, len(self.extras))]
        if self.events.size:
            for column in _COLUMNS:
                parts += _packed(self.events[column])
        for row, text in sorted(self.extras.items()):
            parts += (_EXTRA.pack(row, len(text)), text)
        return b"".join(parts)

    @classmethod
    def unpack(cls, data: bytes) -> EventBlock:
        """Return the batch of packed bytes. Raise BlockError unless they are a whole batch of this version."""
        try:
            return cls._unpacked(memoryview(data))
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise BlockError(f"a block of {len(data)} bytes is cut short or damaged: {error}") from None

    @classmethod
    def _unpacked(cls, data: memoryview) -> EventBlock:
        magic, version, size = _HEAD.unpack_from(data)
        if magic != _MAGIC or version != VERSION:
            raise BlockError(f"a block starts with {bytes(data[:4])!r}; expected: {_MAGIC + bytes([VERSION])!r}")
        offset = _HEAD.size + size
        store = bytes(data[_HEAD.size : offset]).decode()
        rows, extra_count = _COUNTS.unpack_from(data, offset)
        offset += _COUNTS.size
        events = np.zeros(rows, EVENT)
        if rows:
            for column in _COLUMNS:
                offset = _unpack_into(events[column], data, offset)
        extras = {}
        for _ in range(extra_count):
            row, length = _EXTRA.unpack_from(data, offset)
            offset += _EXTRA.size + length
            extras[row] = bytes(data[offset - length : offset])
        if offset != len(data):
            raise BlockError(f"a block has {len(data)} bytes; expected: {offset}")
        return cls(store, events, extras)


def _width(span: int) -> int:
    """Return the number of bytes of a number from 0 to `span`."""
    return next(width for width in _WIDTHS if span < 1 << 8 * width)


def _packed(column: npt.NDArray[Any]) -> tuple[bytes, bytes]:
    """Return head and numbers of a column of at least one row."""
    values: Column = np.ascontiguousarray(column).view(np.int64) if column.itemsize == 8 else column.astype(np.int64)
    low, high = int(values.min()), int(values.max())
    if low == high:
        return _COLUMN.pack(CONSTANT, 0, 0, low), b""
    sizes = {PLAIN: values.size * _width(high - low)}
    steps = np.diff(values)
    # A step that does not fit 64 bits wraps around, and back again when the steps are summed up.
    step_low, step_high = int(steps.min()), int(steps.max())
    sizes[STEPS] = steps.size * _width(step_high - step_low)
    bits = (values.size + 7) // 8
    if bits + np.count_nonzero(values) < min(sizes.values()):  # with one byte for each number that is not 0
        present = values != 0
        nonzero = values[present]
        sizes[SPARSE] = bits + nonzero.size * _width(int(nonzero.max()) - int(nonzero.min()))
    kind = min(sizes, key=lambda kind: sizes[kind])
    if kind == STEPS:
        width = _width(step_high - step_low)
        return _COLUMN.pack(STEPS, width, int(values[0]), step_low), _narrow(steps, step_low, width)
    if kind == SPARSE:
        low = int(nonzero.min())
        width = _width(int(nonzero.max()) - low)
        numbers = np.packbits(present).tobytes() + _narrow(nonzero, low, width)
        return _COLUMN.pack(SPARSE, width, nonzero.size, low), numbers
    width = _width(high - low)
    return _COLUMN.pack(PLAIN, width, 0, low), _narrow(values, low, width)


def _narrow(values: Column, low: int, width: int) -> bytes:
    return (values - np.int64(low)).view(np.uint64).astype(_UNSIGNED[width]).tobytes()


def _unpack_into(out: npt.NDArray[Any], data: memoryview, offset: int) -> int:
    """Unpack one column into `out` and return the offset behind it."""
    kind, width, first, low = _COLUMN.unpack_from(data, offset)
    offset += _COLUMN.size
    if kind == CONSTANT:
        out[:] = np.int64(low).astype(out.dtype)
        return int(offset)
    if kind not in (PLAIN, STEPS, SPARSE) or width not in _UNSIGNED:
        raise BlockError(
            f"a block has a column of kind {kind}, width {width}; expected: kinds 0 to 3, widths 1, 2, 4, 8"
        )
    where: Any = slice(None)
    count = out.size if kind == PLAIN else out.size - 1
    if kind == SPARSE:
        bits = np.frombuffer(_part(data, offset, (out.size + 7) // 8), np.uint8)
        where = np.unpackbits(bits, count=out.size).view(np.bool_)
        offset += bits.size
        count = int(where.sum())
    part = _part(data, offset, count * width)
    numbers = np.frombuffer(part, _UNSIGNED[width]).astype(np.int64)
    numbers += np.int64(low)
    if kind == STEPS:
        np.cumsum(numbers, out=numbers)
        numbers += np.int64(first)
        out[0] = np.int64(first).astype(out.dtype)
        where = slice(1, None)
    out[where] = numbers.view(out.dtype) if out.dtype.itemsize == 8 else numbers
    return offset + len(part)


def _part(data: memoryview, offset: int, size: int) -> memoryview:
    if offset + size > len(data):
        raise BlockError(f"a block has {len(data)} bytes; expected: at least {offset + size}")
    return data[offset : offset + size]
