"""Spark's Python daemon with everything imported and every kernel loaded before it forks its workers.

Spark starts one daemon an executor and forks a worker from it when there is none idle; idle workers end after a minute.
A worker forked from this daemon is ready at once and shares the daemon's memory; one forked from Spark's own imports
numba, pandas and pyarrow and loads the kernels first, three seconds on a busy machine, after every quiet minute.

Spark warns of threads at the time of a fork: what is imported here starts none (a test holds that).
"""

from __future__ import annotations

import os
import sys
import traceback

MODULE = "streams.query.daemon"  # for spark.python.daemon.module

# Read by libraries when they are imported: no thread of OpenBLAS, none of Arrow's jemalloc.
_NO_THREADS = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def preload() -> None:
    """Import what both stages of the query need, load the kernels, and keep the garbage collector off all of it."""
    os.environ.update(_NO_THREADS)
    import google.protobuf  # type: ignore[import-untyped]  # noqa: F401 -- what the stateful operator's connection speaks
    import pandas as pd  # noqa: F401
    import pyarrow.compute  # noqa: F401
    import pyspark.sql.pandas.serializers
    import pyspark.sql.streaming.proto.StateMessage_pb2
    import pyspark.sql.streaming.stateful_processor_util
    import pyspark.worker  # noqa: F401

    import streams.query.decode_stage
    import streams.query.processor  # noqa: F401
    from streams.query.worker import prepare_worker

    prepare_worker()


def main() -> None:
    """Preload, then be Spark's daemon. Where preloading fails the workers meet the same error and report it."""
    from pyspark.daemon import manager

    standard_output = os.dup(1)  # it belongs to the protocol with the JVM: nothing imported may print to it
    os.dup2(2, 1)
    try:
        preload()
    except Exception:  # noqa: BLE001 -- the preflight's workers raise it again, where Spark can report it
        traceback.print_exc(file=sys.stderr)
    finally:
        sys.stdout.flush()
        os.dup2(standard_output, 1)
        os.close(standard_output)
    manager()


if __name__ == "__main__":
    main()
