"""Rows of structured arrays for kernels that run as Python: fields are attributes, as in compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np


class IndexedFromStart(np.ndarray):  # type: ignore[type-arg]
    """An array without negative indexes, with which compiled kernels would read and write outside of it."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_from_the_start(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_from_the_start(key), value)


def _from_the_start(key: Any) -> Any:
    if isinstance(key, int | np.integer) and key < 0:
        raise IndexError(f"a kernel used the index {key}; expected: 0 or more")
    return key


def with_attributes(rows: Any) -> Any:
    """Return a view of a structured array, or of a row of one, whose rows have their fields as attributes."""
    return rows.view(_dtype_of(rows.dtype))


@cache
def _dtype_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype of the same fields whose rows have them as attributes."""
    assert dtype.names is not None
    fields = {name: property(itemgetter(name), _setter(name)) for name in dtype.names}
    return np.dtype((type("Row", (np.void,), fields), dtype))


def _setter(name: str) -> Callable[[Any, Any], None]:
    def put(row: Any, value: Any) -> None:
        row[name] = value

    return put
