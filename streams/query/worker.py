"""What a Python worker does once, before its first block of events."""

from __future__ import annotations

import gc
from functools import cache

from twin.warm import warm


@cache
def prepare_worker() -> None:
    """Load the compiled kernels; keep the garbage collector off what stays for good.

    Spark's worker collects all garbage after every task. With numba, pandas and pyarrow imported that is a walk over
    half a million objects, most of a small batch's work in Python; frozen objects are not walked.
    """
    warm()
    gc.collect()
    gc.freeze()
