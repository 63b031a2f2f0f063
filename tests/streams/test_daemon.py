"""The daemon that forks the workers."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")


def test_the_daemon_has_no_second_thread_when_it_forks() -> None:
    """A fork copies only the calling thread: a lock that another one holds (of malloc) would stay locked for ever."""
    code = "import os, streams.query.worker as d; d.preload(); print(len(os.listdir('/proc/self/task')))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert answer.stdout.strip() == "1", answer.stderr


def test_a_forked_worker_has_nothing_left_to_import_or_compile() -> None:
    code = """
import io, os, sys, streams.query.worker as d
d.preload()
before = set(sys.modules)
pid = os.fork()
if pid == 0:
    from kernels._compile import compiled_here
    from pyspark.serializers import CPickleSerializer
    from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
    from streams.query.worker import prepare_worker
    loaded = compiled_here()
    import streams.query.decode_stage, streams.query.processor
    prepare_worker()
    schema = streams.state.twins.HEADER_TYPE
    client = StatefulProcessorApiClient.__new__(StatefulProcessorApiClient)
    client.pickleSer = CPickleSerializer()
    client._serialize_to_bytes(schema, (b"token", b"header"))  # as a write of the state does
    rows = [streams.query.processor.Row(token=b"token", header=b"header")]
    try:  # as the output of a store does
        from pyspark.sql.pandas.serializers import TransformWithStateInPySparkRowSerializer
        serializer = TransformWithStateInPySparkRowSerializer(arrow_max_records_per_batch=10)
        serializer.dump_stream([[(rows, schema)]], io.BytesIO())
    except ImportError:  # since Spark 4.3 the worker itself does
        import pyarrow as pa
        from pyspark.worker import ArrowBatchTransformer, to_arrow_type
        fields = pa.schema(list(to_arrow_type(schema, timezone="UTC", prefers_large_types=False)))
        ArrowBatchTransformer.wrap_struct(pa.RecordBatch.from_pylist([row.asDict(True) for row in rows], schema=fields))
    print(sorted(set(sys.modules) - before), flush=True)
    os._exit(0 if set(sys.modules) == before and compiled_here() == loaded else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, answer.stdout + answer.stderr


EXEMPTIONS = """
import gc, weakref
from streams.query.worker import MANY_TWINS, THAW_EXEMPTIONS, exemptions

class Twin:
    def __init__(self):
        self.itself = self

def run_task(opened):
    exemptions.begin_task()
    for _ in range(opened):
        exemptions.note_opened()
    gc.collect()  # as Spark's worker does after a task

def traversed():
    return len(gc.get_objects())  # without what is exempt
"""


def run_with_exemptions(code: str) -> list[str]:
    """Run code after EXEMPTIONS in a process of its own; return what it prints, in words."""
    answer = subprocess.run(
        [sys.executable, "-c", EXEMPTIONS + code], capture_output=True, text=True, check=False, timeout=300
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_collections_leave_out_twins_that_outlive_tasks() -> None:
    """Collections after tasks would take longer with every twin that a worker keeps."""
    code = """
kept = [[number] for number in range(100_000)]
run_task(MANY_TWINS - 1)
run_task(0)
few = traversed()
run_task(1)
run_task(0)
print(few > 100_000, traversed() < 50_000)
"""
    assert run_with_exemptions(code) == ["True", "True"]


def test_garbage_among_them_is_collected_in_the_end() -> None:
    code = """
twin = Twin()
gone = weakref.ref(twin)
run_task(MANY_TWINS)
run_task(0)
del twin
run_task(0)
print(gone() is not None)
for _ in range(THAW_EXEMPTIONS):
    run_task(MANY_TWINS)
print(gone() is None)
kept = [[number] for number in range(100_000)]
run_task(0)
run_task(0)
print(traversed() < 50_000)  # exempt again
"""
    assert run_with_exemptions(code) == ["True", "True", "True"]
