"""Spark's Python workers: the daemon that forks them, what they load first, and what their collector leaves out.

Spark starts one daemon per executor and forks a worker from it if none is idle; idle workers end after a minute. This
daemon imports everything and loads every kernel before it forks, so that a worker is ready at once and shares its
memory; one of Spark's own daemon first imports and loads for three seconds on a busy machine. Threads at the time of a
fork would be unsafe: the imports here start none.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from functools import cache

DAEMON = "streams.query.worker"  # this module, for spark.python.daemon.module

# Libraries read these when they are imported; they keep OpenBLAS and Arrow's jemalloc from starting threads.
_NO_THREADS = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
_PRELOADED = (
    "google.protobuf",  # the protocol of the stateful operator
    "pyarrow.compute",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.testing.utils",  # PySpark imports it, and with it pandas, at the first write of a state
    "pyspark.worker",
    "streams.query.decode_stage",
    "streams.query.processor",
)
MANY_TWINS = 16  # opened since the last exemption, from which another one pays: together a collection of 2 ms
THAW_EXEMPTIONS = 256  # between two collections of everything, each 0.1 s


@cache
def prepare_worker() -> None:
    """Load the compiled kernels and exempt all existing objects from garbage collection; once per process.

    Spark's worker collects all garbage after every task. With numba, pandas and pyarrow imported it would traverse half
    a million objects, most of the Python time of a small batch; frozen objects are not traversed.
    """
    from twin.stores.warm_up import warm  # not for the driver, which needs the name of this module only

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


def preload() -> None:
    """Import the modules of both stages, load the kernels, and exempt all of it from garbage collection."""
    os.environ.update(_NO_THREADS)
    for name in _PRELOADED:
        importlib.import_module(name)
    importlib.import_module(DAEMON).prepare_worker()  # in the daemon this module is __main__, and workers import it


def main() -> None:
    """Preload, then run Spark's daemon. If preloading fails, the workers meet the same error and report it."""
    from pyspark.daemon import manager

    standard_output = os.dup(1)  # the protocol with the JVM uses it, so no import may print to it
    os.dup2(2, 1)
    try:
        preload()
    except Exception:  # noqa: BLE001 -- the workers of the preflight raise it again, and Spark reports it
        traceback.print_exc(file=sys.stderr)
    finally:
        sys.stdout.flush()
        os.dup2(standard_output, 1)
        os.close(standard_output)
    manager()


if __name__ == "__main__":
    main()
