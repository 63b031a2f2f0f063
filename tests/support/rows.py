"""Rows of structured arrays for kernels that run as Python: fields are attributes, as in compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np


class Row:
    """A row of a structured array, its fields being attributes."""

    __slots__ = ("_row",)

    def __init__(self, row: Any) -> None:
        object.__setattr__(self, "_row", row)

    def __getattr__(self, name: str) -> Any:
        return self._row[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._row[name] = value

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._row[name] = value


class Rows(np.ndarray):  # type: ignore[type-arg]  # of any shape
    """A structured array whose rows are `Row`."""

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return Row(value) if isinstance(value, np.void) else value
