"""Where a store's arrays live: plain memory here; a memory-mapped file in the stream (streams/state/mirror.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Size = tuple[np.dtype[Any], int]  # of an array: its dtype, its rows


class Arrays(Protocol):
    """An allocator of the named arrays of one store, which can grow."""

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        """Return the store's arrays, C-contiguous and writable; all zero where they are new. Called once a twin."""

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        """Return all arrays, those in `rows` with as many rows: what they held, then zeros.

        No array that was returned earlier may be used any more, whether it grew or not: all may have moved.
        """

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays in this process's own memory; those in files are not counted."""


class MemoryArrays:
    """Arrays in this process's memory."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        """See `Arrays.tables`."""
        self._arrays = {name: np.zeros(rows, dtype) for name, (dtype, rows) in sizes.items()}
        return dict(self._arrays)

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        """See `Arrays.grow`."""
        for name, count in rows.items():
            old = self._arrays[name]
            new = np.zeros(count, old.dtype)
            new[: old.size] = old
            self._arrays[name] = new
        return dict(self._arrays)

    @property
    def memory_bytes(self) -> int:
        """See `Arrays.memory_bytes`."""
        return sum(array.nbytes for array in self._arrays.values())
