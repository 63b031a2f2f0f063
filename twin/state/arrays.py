"""Allocators of the arrays of a store: process memory here, a memory-mapped file in `streams.state.mirror`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

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
        return sum(array.nbytes for array in self._arrays.values())
