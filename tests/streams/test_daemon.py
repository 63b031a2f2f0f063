"""The daemon that forks the workers."""

from __future__ import annotations

import subprocess
import sys


def test_the_daemon_has_no_second_thread_when_it_forks() -> None:
    """A fork copies only the calling thread: a lock that another one holds (of malloc) would stay locked for ever."""
    code = "import os, streams.query.daemon as d; d.preload(); print(len(os.listdir('/proc/self/task')))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert answer.stdout.strip() == "1", answer.stderr


def test_a_forked_worker_has_nothing_left_to_import_or_compile() -> None:
    code = """
import io, os, sys, streams.query.daemon as d
d.preload()
before = set(sys.modules)
pid = os.fork()
if pid == 0:
    from kernels._compile import compiled_here
    from pyspark.serializers import CPickleSerializer
    from pyspark.sql.pandas.serializers import TransformWithStateInPySparkRowSerializer
    from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
    from streams.query.worker import prepare_worker
    loaded = compiled_here()
    import streams.query.decode_stage, streams.query.processor
    prepare_worker()
    schema = streams.query.processor._HEADER
    client = StatefulProcessorApiClient.__new__(StatefulProcessorApiClient)
    client.pickleSer = CPickleSerializer()
    client._serialize_to_bytes(schema, (b"token", b"header"))  # as a write of the state does
    rows = [streams.query.processor.Row(token=b"token", header=b"header")]
    serializer = TransformWithStateInPySparkRowSerializer(arrow_max_records_per_batch=10)
    serializer.dump_stream([[(rows, schema)]], io.BytesIO())  # as the output of a store does
    print(sorted(set(sys.modules) - before), flush=True)
    os._exit(0 if set(sys.modules) == before and compiled_here() == loaded else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_collections_leave_out_what_outlives_tasks() -> None:
    """Collections after tasks would take longer with every twin that a worker keeps."""
    code = """
import gc
from streams.query.worker import begin_task
kept = [[number] for number in range(100_000)]
begin_task()
print(len(gc.get_objects()) < 10_000)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert answer.stdout.strip() == "True", answer.stderr


def test_garbage_among_it_is_collected_in_the_end() -> None:
    code = """
import gc, weakref
from streams.query.worker import THAW_TASKS, begin_task
class Twin:
    pass
twin = Twin()
twin.itself, gone = twin, weakref.ref(twin)
begin_task()
del twin
alive = []
for _ in range(THAW_TASKS):
    gc.collect()  # as Spark's worker does after a task
    alive.append(gone() is not None)
    begin_task()
gc.collect()
print(alive[0], gone() is None)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert answer.stdout.split() == ["True", "True"], answer.stderr
