"""Rows of structured arrays for kernels that run as Python: fields are attributes, as in compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np


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
