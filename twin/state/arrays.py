"""Arrays of a store: their allocators, and journals of changed rows.

- Allocators: process memory here, a memory-mapped file in `streams.state.mirror`.
- Journals save the changed rows of a table where whole pages would hold little that is new.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]
Size = tuple[np.dtype[Any], int]  # dtype and number of rows of an array
LARGE_BYTES = 1 << 20  # from here on an array may double where it is


def room(size: int) -> int:
    """Return the bytes to keep for an array of `size` bytes. No memory or disk is used for the rest until it grows."""
    return 1 << (size - 1).bit_length() if size >= LARGE_BYTES else size


def copy_bytes(source: Array, target: Array) -> None:
    """Copy an array into the first rows of another one, as bytes, so that padding is copied too."""
    target.view(np.uint8)[: source.nbytes] = source.view(np.uint8)


class Arrays(Protocol):
    """Allocator of the named arrays of one store, which can grow."""

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        """Return the arrays of the store, C-contiguous and writable; new ones are zero. Called once per twin."""

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        """Grow the arrays in `rows` to that many rows, the new ones zero, and return all arrays.

        Arrays returned earlier must not be used any more: all may have moved.
        """

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays in the memory of this process; those in files are not counted."""


class MemoryArrays:
    """Arrays in the memory of this process. contents: what some of them begin with, of the same sizes; copied."""

    def __init__(self, contents: Mapping[str, Array] | None = None) -> None:
        self._arrays: dict[str, Array] = {name: array.copy() for name, array in (contents or {}).items()}
        self._rooms: dict[str, Array] = {}  # of arrays that have grown, with the rows that they may have where they are

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        """Return the arrays of the store, zero where they have no contents."""
        self._arrays = {
            name: self._arrays[name] if name in self._arrays else np.zeros(rows, dtype)
            for name, (dtype, rows) in sizes.items()
        }
        return dict(self._arrays)

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        """Grow some arrays and return all."""
        for name, count in rows.items():
            array = self._arrays[name]
            if name not in self._rooms or count > self._rooms[name].size:
                self._rooms[name] = np.zeros(room(count * array.itemsize) // array.itemsize, array.dtype)
                copy_bytes(array, self._rooms[name])
            self._arrays[name] = self._rooms[name][:count]
        return dict(self._arrays)

    def copied(self) -> MemoryArrays:
        """Return a copy."""
        return MemoryArrays(self._arrays)

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(map(attrgetter("nbytes"), self._arrays.values()))  # without a call of Python for each


# --- journals ---------------------------------------------------------------------------------------------------------
# Gets of any message of a large backlog change a row or two in almost every page. A page with few changed rows is
# therefore not written: its changed rows go to a *journal*, one per table and batch.
#
# Journals are numbered. They use `SLOTS` slots of the state store in turn, so the rows of a journal must be in their
# pages before its slot is used again: with each journal some pages are written whole, those first that have waited
# longest. A page begins with the number of the journal up to which it is current; when a table is loaded, journals
# after that are applied to it. `SLOTS` journals have at most twice the rows of the table, or `SLOTS * _MIN_ROWS`.
#
# Pages and journals are compressed by columns of bytes, which takes a third of the space. Java needs 16 to 20 ms for
# each megabyte between Python and the state store, and compressing it takes 1 ms.

SLOTS = 32
_SHARE = 4  # a page is written whole if more than a quarter of its rows has changed
_MIN_ROWS = 1024  # rows that a journal of a small table may have
_PART_ROWS = 4096  # rows in one value of the state store
_SLOT_BITS = 16
_HEAD = struct.Struct("<II")  # of a page and of a part: number of a journal, rows
_NUMBER = np.dtype("<u4")
_CODEC = pa.Codec("lz4_raw")


def select_pages(changed: Array, waiting: Array, journal: int, page_rows: int) -> tuple[Array, Array]:
    """Return the pages to write whole and the pages whose changed rows go to the next journal, i8[] each. `changed`:
    i8[pages], rows of each; `waiting`: u4[pages], number of the first journal with rows that are not in the page yet,
    0: none. Without pages for the journal only changed pages are written.
    """
    is_whole = changed * _SHARE > page_rows
    sparse = np.flatnonzero((changed > 0) & ~is_whole)
    if not sparse.size:
        return np.flatnonzero(is_whole), sparse
    sparse = sparse[np.argsort(changed[sparse], kind="stable")]
    max_rows = max(_MIN_ROWS, changed.size * page_rows * 2 // SLOTS)
    is_whole[sparse[np.cumsum(changed[sparse]) > max_rows]] = True
    is_whole |= (waiting > 0) & (waiting.astype(np.int64) + SLOTS <= journal)  # the slot of that journal is next
    others = np.flatnonzero((waiting > 0) & ~is_whole)
    longest = np.argsort(waiting[others], kind="stable")[: others.size * 2 // SLOTS]
    is_whole[others[longest]] = True
    return np.flatnonzero(is_whole), np.flatnonzero((changed > 0) & ~is_whole)


def write_page(rows: Array, journal: int) -> bytes:
    """Return a page of rows that are current up to a journal."""
    return _HEAD.pack(journal, rows.size) + _pack(_transposed(rows))


def read_page(content: bytes, dtype: np.dtype[Any], page_rows: int) -> tuple[Array, int]:
    """Return the rows of a page, and the number of the journal up to which they are current. ValueError: damaged."""
    (journal, count), packed = _read_head(content, page_rows)
    return _rows(_unpack(packed, count * dtype.itemsize), dtype), journal


def write_journal(rows: Array, numbers: Array, journal: int) -> Iterator[tuple[int, bytes]]:
    """Yield (place, bytes) of the parts of a journal. The place is below 2**32."""
    slot = journal % SLOTS
    for part, start in enumerate(range(0, numbers.size, _PART_ROWS)):
        chosen = numbers[start : start + _PART_ROWS]
        content = _transposed(chosen.astype(_NUMBER)) + _transposed(rows[chosen])
        yield (slot << _SLOT_BITS) | part, _HEAD.pack(journal, chosen.size) + _pack(content)


def _read_part(part: bytes, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return numbers and rows of a part of a journal."""
    (_, count), packed = _read_head(part, _PART_ROWS)
    split = count * _NUMBER.itemsize
    content = _unpack(packed, split + count * dtype.itemsize)
    return _rows(content[:split], _NUMBER).astype(np.int64), _rows(content[split:], dtype)


def _read_head(content: bytes, max_rows: int) -> tuple[tuple[int, int], bytes]:
    """Return (journal, rows) and the compressed rest. ValueError: there is no head, or it has too many rows."""
    if len(content) < _HEAD.size:
        raise ValueError(f"{len(content)} bytes, expected: at least {_HEAD.size}")
    journal, count = _HEAD.unpack_from(content)
    if count > max_rows:
        raise ValueError(f"{count} rows, expected: at most {max_rows}")
    return (journal, count), content[_HEAD.size :]


def _transposed(rows: Array) -> bytes:
    """Return the first byte of all rows, then the second of all, and so on: neighbours have most bytes in common."""
    return rows.view(np.uint8).reshape(rows.size, rows.dtype.itemsize).T.tobytes()


def _rows(content: bytes, dtype: np.dtype[Any]) -> Array:
    """Return rows from the result of `_transposed`."""
    columns = np.frombuffer(content, np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(columns.T).view(dtype).reshape(-1)


def _pack(content: bytes) -> bytes:
    return bytes(_CODEC.compress(content, asbytes=True))


def _unpack(packed: bytes, size: int) -> bytes:
    """Return `size` bytes. ValueError: there are not as many."""
    try:
        return bytes(_CODEC.decompress(packed, size, asbytes=True))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from None


def apply_journals(rows: Array, waiting: Array, page_journals: Array, parts: Iterable[bytes], shift: int) -> None:
    """Apply journals to a table that was read from pages, and to `waiting` (see `select_pages`). `page_journals`:
    i8[pages], number of the journal up to which each page is current. ValueError: a part is damaged or has a row that
    the table has not.
    """
    numbered = sorted(((_read_head(part, _PART_ROWS)[0][0], part) for part in parts), key=lambda pair: pair[0])
    for journal, part in numbered:
        if journal + SLOTS <= numbered[-1][0]:
            continue  # of an earlier journal in the slot, which had more parts
        numbers, content = _read_part(part, rows.dtype)
        if numbers.size and int(numbers.max()) >= rows.size:
            raise ValueError(f"row {int(numbers.max())}, expected: less than {rows.size}")
        pages = numbers >> shift
        is_new = page_journals[pages] < journal
        rows[numbers[is_new]] = content[is_new]
        new_pages = np.unique(pages[is_new])
        waiting[new_pages[waiting[new_pages] == 0]] = journal
