"""Event batches of one store: rows in memory, and compact bytes between the processes of a job.

The bytes are private to a job: they carry a version, and no other version reads them. Layout, little-endian: magic
"MQB", version u1, length of the store name u2, the name in UTF-8, rows u4, extras u4; one column for each field of
`kernels.EVENT` in `_COLUMNS`' order; the extras, each row u4, length u4, record i8, index i8, bytes. A column is a head
(kind u1, width u1, first i8, low i8) and its numbers, `width` bytes each, unsigned, above `low`. The smallest of four
encodings is chosen: a constant column costs 18 bytes per batch, a queue 1 byte per event, a unit of work 1 bit per
event outside one.

* CONSTANT: no numbers; every row is `low`.
* PLAIN: one number per row.
* STEPS: rows - 1 numbers, the differences between consecutive rows; the first row is `first`.
* SPARSE: one bit per row, then `first` numbers; rows whose bit is not set are 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels import EVENT
from kernels.packing import CONSTANT, PLAIN, SPARSE, STEPS, pack_column, unpack_column

VERSION = 3

_MAGIC = b"MQB"
_HEAD = struct.Struct("<3sBH")
_COUNTS = struct.Struct("<II")
_COLUMN = struct.Struct("<BBqq")
_EXTRA = struct.Struct("<IIqq")
_WIDTHS = (1, 2, 4, 8)

Words = npt.NDArray[np.int64]


class _Part(NamedTuple):
    """A column as a part of a row's words; see `kernels.packing`."""

    word: int
    left: int
    right: int
    is_signed: bool


def _part(name: str) -> _Part:
    assert EVENT.fields is not None
    dtype, offset = EVENT.fields[name][:2]
    below = offset % 8 * 8
    return _Part(offset // 8, 64 - below - 8 * dtype.itemsize, 64 - 8 * dtype.itemsize, dtype.kind == "i")


_NAMES = tuple(name for name in EVENT.names or () if name != "pad")
_PARTS = tuple(_part(name) for name in _NAMES)


def _as_signed() -> np.dtype[Any]:
    """Return the type of a row with columns of 64 bits as signed numbers, as the heads of columns have them."""
    assert EVENT.fields is not None
    fields = [EVENT.fields[name][:2] for name in _NAMES]
    return np.dtype(
        {
            "names": list(_NAMES),
            "formats": ["i8" if dtype.itemsize == 8 else dtype for dtype, _ in fields],
            "offsets": [offset for _, offset in fields],
            "itemsize": EVENT.itemsize,
        }
    )


_SIGNED = _as_signed()


def take_rows(events: npt.NDArray[Any], places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return EVENT[m], the rows at m places. As words: numpy copies rows of a structured type 30 times more slowly."""
    return np.take(_as_words(events), places, axis=0).view(EVENT).reshape(-1)


def join_rows(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return EVENT[...], the rows of all parts, at least one."""
    return np.concatenate([_as_words(part) for part in parts]).view(EVENT).reshape(-1)


def _as_words(events: npt.NDArray[Any]) -> Words:
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
    places: dict[int, tuple[int, int]] = field(default_factory=dict, compare=False)  # the same, of rows with extras

    def __len__(self) -> int:
        return int(self.events.size)

    def pack(self) -> bytes:
        """Return the batch as bytes: for usual traffic about 15 per event."""
        name = self.store.encode()
        parts = [_HEAD.pack(_MAGIC, VERSION, len(name)), name, _COUNTS.pack(self.events.size, len(self.extras))]
        if self.events.size:
            parts += _packed(self.events)
        for row, text in sorted(self.extras.items()):
            parts += (_EXTRA.pack(row, len(text), *self.place_of(row)), text)
        return b"".join(parts)

    def place_of(self, row: int) -> tuple[int, int]:
        """Return (record, index) of an event; of one without an extra those of the first event, which is not later."""
        return self.places.get(row, self.first)

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> EventBlock:
        """Return the batch of packed bytes. Raise BlockError unless they are a whole batch of this version."""
        try:
            return cls._unpacked(memoryview(data))
        except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
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
            offset = _unpack_into(events, data, offset)
        extras, places = {}, {}
        for _ in range(extra_count):
            row, length, *place = _EXTRA.unpack_from(data, offset)
            offset += _EXTRA.size + length
            extras[row] = bytes(data[offset - length : offset])
            places[row] = (place[0], place[1])
        if offset != len(data):
            raise BlockError(f"a block has {len(data)} bytes; expected: {offset}")
        return cls(store, events, extras, places=places)


def _packed(events: npt.NDArray[Any]) -> list[bytes]:
    """Return heads and numbers of all columns of at least one row."""
    if events.size == 1:
        first = events.view(_SIGNED)[0].item()
        return [_COLUMN.pack(CONSTANT, 0, 0, value) for value in first]
    words = _as_words(np.ascontiguousarray(events))
    values, bits = np.empty(events.size, np.int64), np.empty((events.size + 7) // 8, np.uint8)
    out, head = np.empty(8 * events.size, np.uint8), np.empty(5, np.int64)
    parts = []
    for part in _PARTS:
        pack_column(words, *part, values, bits, out, head)
        kind, width, first, low, size = head.tolist()
        parts.append(_COLUMN.pack(kind, width, first, low))
        if kind == SPARSE:
            parts.append(bits.tobytes())
        parts.append(out[:size].tobytes())
    return parts


def _unpack_into(events: npt.NDArray[Any], data: memoryview, offset: int) -> int:
    """Unpack all columns into rows that are zero, and return the offset behind them."""
    words, head = _as_words(events), np.empty(4, np.int64)
    octets = np.frombuffer(data, np.uint8)
    octets.flags.writeable = False  # compiled code is made for one kind of array
    for name, part in zip(_NAMES, _PARTS, strict=True):
        kind, width, first, low = column = _COLUMN.unpack_from(data, offset)
        offset += _COLUMN.size
        if kind == CONSTANT:  # of a few events all columns are: numpy costs less than a call of a kernel
            if low:
                events[name] = low if part.is_signed else low & (1 << 64 - part.right) - 1
            continue
        head[:] = column
        size = _size(kind, width, first, events.size)
        if offset + size > len(data):
            raise BlockError(f"a block has {len(data)} bytes; expected: at least {offset + size}")
        if kind == SPARSE and int.from_bytes(data[offset : offset + (events.size + 7) // 8]).bit_count() != first:
            raise BlockError(f"a block has a column of other than {first} numbers; expected: one for each of its bits")
        unpack_column(octets, offset, head, words, part.word, part.left, part.right)
        offset += size
    return offset


def _size(kind: int, width: int, first: int, rows: int) -> int:
    """Return the bytes of a column behind its head, that has numbers. BlockError: the head is damaged."""
    if kind not in (PLAIN, STEPS, SPARSE) or width not in _WIDTHS:
        raise BlockError(
            f"a block has a column of kind {kind}, width {width}; expected: kinds 0 to 3, widths 1, 2, 4, 8"
        )
    if kind == SPARSE:
        return (rows + 7) // 8 + first * width
    return (rows if kind == PLAIN else rows - 1) * width
