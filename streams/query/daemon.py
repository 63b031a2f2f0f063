"""Spark's Python daemon, which imports everything and loads every kernel before it forks workers.

Spark starts one daemon per executor and forks a worker from it if none is idle; idle workers end after a minute. A
worker forked from this daemon is ready at once and shares its memory; one of Spark's own daemon first imports and loads
for three seconds on a busy machine. Threads at the time of a fork would be unsafe: the imports here start none.
"""

from __future__ import annotations

import os
import sys
import traceback

MODULE = "streams.query.daemon"  # for spark.python.daemon.module

# Libraries read these when they are imported; they keep OpenBLAS and Arrow's jemalloc from starting threads.
_NO_THREADS = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def preload() -> None:
    """Import the modules of both stages, load the kernels, and exempt all of it from garbage collection."""
    os.environ.update(_NO_THREADS)
    import google.protobuf  # noqa: F401 -- the protocol of the stateful operator
    import pyarrow.compute  # noqa: F401
    import pyspark.sql.pandas.serializers
    import pyspark.sql.streaming.proto.StateMessage_pb2
    import pyspark.sql.streaming.stateful_processor_util
    import pyspark.testing.utils  # PySpark imports it, and with it pandas, at the first write of a state
    import pyspark.worker  # noqa: F401

    import streams.query.decode_stage
    import streams.query.processor  # noqa: F401
    from streams.query.worker import prepare_worker

    prepare_worker()


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
