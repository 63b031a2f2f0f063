"""Where a store's arrays live: plain memory here; memory-mapped files in the stream (streams/mirror.py)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Arrays(Protocol):
    """An allocator of named arrays that can grow."""

    def table(self, name: str, dtype: np.dtype[Any], rows: int) -> Array:
        """The array `name`, dtype[rows], C-contiguous and writable; all zero where it is new."""

    def grow(self, name: str, rows: int) -> Array:
        """The array `name` with `rows` rows: what it held, then zeros. Earlier views of it are not used any more."""


class MemoryArrays:
    """Arrays in this process's memory."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def table(self, name: str, dtype: np.dtype[Any], rows: int) -> Array:
        """See `Arrays.table`."""
        self._arrays[name] = np.zeros(rows, dtype)
        return self._arrays[name]

    def grow(self, name: str, rows: int) -> Array:
        """See `Arrays.grow`."""
        old = self._arrays[name]
        new = np.zeros(rows, old.dtype)
        new[: old.size] = old
        self._arrays[name] = new
        return new
