"""Preparation of a Python worker before its first event batch, and before each of its tasks."""

from __future__ import annotations

import gc
from functools import cache

from twin.stores.warm_up import warm

MANY_TWINS = 16  # opened since the last exemption, from which another one pays: together a collection of 2 ms
THAW_EXEMPTIONS = 256  # between two collections of everything, each 0.1 s


@cache
def prepare_worker() -> None:
    """Load the compiled kernels and exempt all existing objects from garbage collection; once per process.

    Spark's worker collects all garbage after every task. With numba, pandas and pyarrow imported it would traverse half
    a million objects, most of the Python time of a small batch; frozen objects are not traversed.
    """
    warm()
    gc.collect()
    gc.freeze()


class Exemptions:
    """Exemption of the twins of a worker from its garbage collections.

    Spark's worker collects all garbage after every task: what is alive at the start of the next one outlives tasks. A
    worker with 2,500 twins spent a third of its time traversing them after tasks that changed little. What a task has
    allocated before it begins is exempted with them and may become garbage, as may twins that the cache drops, so one
    collection in `THAW_EXEMPTIONS` is of everything.
    """

    def __init__(self) -> None:
        self._opened = 0
        self._count = 0

    def note_opened(self) -> None:
        """Count a twin that was opened in a task."""
        self._opened += 1

    def begin_task(self) -> None:
        """Exempt everything alive if many twins were opened since the last time; for the start of each task."""
        if self._opened < MANY_TWINS:
            return
        self._count += 1
        if self._count % THAW_EXEMPTIONS == 0:
            gc.unfreeze()  # until the next task begins
        else:
            gc.freeze()
            self._opened = 0


exemptions = Exemptions()
