"""Rows of tables and records in earlier formats of state, which a twin reads and writes again in the present one.

A field that such rows lack is 0, but for those of `_INITIAL`. What is added to a row here needs the dtype as it was: a
field taken out of the present dtype, or the whole dtype once other fields have changed, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels import layout, meter_rows
from kernels.meter_rows import TOTAL_TIDE
from twin.state.arrays import Array

OLDEST = 10  # format of a store that holds messages, from which on it is read


def _without(dtype: np.dtype[Any], *names: str) -> np.dtype[Any]:
    """Return an aligned dtype without some of its fields."""
    fields = [(name, dtype[name]) for name in dtype.names or () if name not in names]
    return np.dtype(fields, align=True)


# format -> table or record -> dtype of its rows; those of any other one are as they are now.
_DTYPES: dict[int | None, dict[str, np.dtype[Any]]] = {
    10: {
        "scm": _without(layout.SCM_USE, "bound"),
        "rises": _without(meter_rows.RISE, "tide"),
        "tides": _without(meter_rows.TIDE, "apart"),
    }
}
_INITIAL = {("rises", "tide"): TOTAL_TIDE}  # only the rises of what a store holds in all were kept


def changed_tables(version: int | None) -> frozenset[str]:
    """Return the tables and records whose rows were others in an earlier format."""
    return frozenset(_DTYPES.get(version, ()))


def read_rows(content: bytes, name: str, dtype: np.dtype[Any], version: int | None) -> Array:
    """Return rows from their bytes, with zero padding, so that the same state gives the same bytes. `version`: format
    of the bytes; None: the present one. ValueError: the bytes are no whole number of rows.
    """
    written = np.frombuffer(content, _DTYPES.get(version, {}).get(name, dtype))
    rows = np.zeros(written.size, dtype)
    if written.dtype == dtype:
        rows[:] = written
        return rows
    for field in written.dtype.names or ():
        rows[field] = written[field]
    for (table, field), value in _INITIAL.items():
        if table == name:
            rows[field] = value
    return rows
