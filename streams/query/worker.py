"""Preparation of a Python worker before its first event batch, and before each of its tasks."""

from __future__ import annotations

import gc
import itertools
from functools import cache

from twin.warm import warm

THAW_TASKS = 256  # tasks between two collections of everything
_tasks = itertools.count(1)


@cache
def prepare_worker() -> None:
    """Load the compiled kernels and exempt all existing objects from garbage collection; once per process.

    Spark's worker collects all garbage after every task. With numba, pandas and pyarrow imported it would traverse half
    a million objects, most of the Python time of a small batch; frozen objects are not traversed.
    """
    warm()
    gc.collect()
    gc.freeze()


def begin_task() -> None:
    """Exempt what outlives tasks from garbage collection; for the start of each task.

    Spark's worker has collected all garbage after its last task, so that everything alive now outlives tasks, above all
    the twins: a worker with 2,500 of them spent a third of its time traversing them after tasks that changed little.
    What this task has allocated before this call is exempted too and may become garbage, as may twins that the cache
    drops, so after every `THAW_TASKS` tasks the collection is of everything.
    """
    if next(_tasks) % THAW_TASKS == 0:
        gc.unfreeze()
    else:
        gc.freeze()
