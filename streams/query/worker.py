"""Preparation of a Python worker before its first event batch."""

from __future__ import annotations

import gc
from functools import cache

from twin.warm import warm


@cache
def prepare_worker() -> None:
    """Load the compiled kernels and exempt all existing objects from garbage collection; once per process.

    Spark's worker collects all garbage after every task. With numba, pandas and pyarrow imported it would traverse half
    a million objects, most of the Python time of a small batch; frozen objects are not traversed.
    """
    warm()
    gc.collect()
    gc.freeze()
