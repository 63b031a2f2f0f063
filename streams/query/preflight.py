"""Work before the query starts: a check of every executor and of the shared checkpoint, and the bound of a batch.

- A failing import in the worker of a stateful operator kills the JVM of the executor and hides the cause. So a tiny job
  runs first: it imports the packages and loads the kernels on every executor, and reports on one line what is missing.
  On a cluster the checkpoint has to be shared.
- The bound on the Kafka records of a batch makes the job process a backlog in pieces.
"""

from __future__ import annotations

import contextlib
import platform
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams.checkpoint.manifest import WRITABLE, local_directory
from streams.errors import one_line
from streams.kafka.clients import LastError, check, is_end, new_consumer, offset_range, partitions_of
from streams.query.session import explain_stop, is_local
from twin.base.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# --- executors and checkpoint -----------------------------------------------------------------------------------------
# On a cluster the job also reads a random word that the driver has just written into the checkpoint, and writes a file
# there that the driver must see: with a checkpoint on each host, the state of an executor that is replaced would be
# lost.

ROUNDS = 5  # Spark does not promise a task on every executor, so the probe is repeated until all have answered
PACKAGES = ("pyarrow", "pandas", "numpy", "numba", "msgspec")


PROBE = "mqtwin.probe-"  # begin of the names of files that are in a checkpoint for the time of the check
_EXPECTED = "expected: a folder that the driver and all executors share, or hdfs://, s3a:// and the like"


def check_executors(session: SparkSession, checkpoint: str | None = None) -> dict[str, Path]:
    """Check every executor and return their local directories, by host and process id of the Python daemon. They must
    read and write the checkpoint, if it is given. UsageError: an executor does not see the checkpoint; the message
    names its host. MqtwinError: an executor lacks something, or has other versions than the driver; the message has the
    cause.
    """
    is_cluster = not is_local(session.sparkContext.master or "")
    directory = local_directory(checkpoint) if checkpoint is not None and is_cluster else None
    if directory is None:
        answers = _ask_executors(session.sparkContext, "", "")
        if checkpoint is not None and is_cluster:
            _check_file_system(session, checkpoint)
        return answers
    directory, word = directory.absolute(), secrets.token_hex(8)
    mark = directory / f"{PROBE}{word}"
    try:
        mark.write_text(word)
        answers = _ask_executors(session.sparkContext, str(directory), word)
        for executor in answers:
            if not (directory / _answer_name(word, executor)).exists():
                raise UsageError(
                    f"the driver does not see what executor {executor} writes into checkpoint {directory}; {_EXPECTED}"
                )
    except OSError as error:
        raise MqtwinError(f"checkpoint {directory} cannot be written: {error.strerror}; {WRITABLE}") from error
    finally:
        for path in directory.glob(f"{mark.name}*"):
            with contextlib.suppress(OSError):  # an empty file may stay
                path.unlink()
    return answers


def _ask_executors(context: SparkContext, directory: str, word: str) -> dict[str, Path]:
    """Run the probe until every executor has answered, and return their local directories. The directory is a
    checkpoint on this machine, to be read and written; "": none.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    probe = _make_probe(_versions(), directory, word)
    answers: dict[str, Path] = {}
    for _ in range(ROUNDS):
        executors = _count_executors(context)
        tasks = max(context.defaultParallelism, executors) * 2
        try:
            results = context.parallelize(range(tasks), tasks).mapPartitions(probe).collect()
        except (PySparkException, Py4JError) as error:
            raise MqtwinError(f"the executors cannot run Python: {explain_stop(error)}") from error
        for executor, local, problem, is_unseen in results:
            if is_unseen:
                raise UsageError(f"executor {executor} does not see the checkpoint {directory}: {problem}; {_EXPECTED}")
            if problem:
                raise MqtwinError(f"executor {executor}: {problem}")
            answers[executor] = Path(local)
        if len(answers) >= executors:
            break
    return answers


def _answer_name(word: str, executor: str) -> str:
    return f"{PROBE}{word}-{executor.replace('/', '-')}"


def _check_file_system(session: SparkSession, location: str) -> None:
    """Let tasks on all executors read and write in a checkpoint behind Hadoop's FileSystem. UsageError: one cannot."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from streams.checkpoint.remote import FileSystem

    context, word = session.sparkContext, secrets.token_hex(8)
    tasks = max(context.defaultParallelism, _count_executors(context)) * 2
    mark, out = f"{PROBE}{word}", f"{PROBE}{word}-out"
    system = FileSystem(location, session)
    try:
        system.write(mark, word.encode())
        words = context.textFile(",".join([f"{location}/{mark}"] * tasks), 1).collect()
        context.parallelize([word] * tasks, tasks).saveAsTextFile(f"{location}/{out}")
        written = [name for name in system.names(out) if name.startswith("part-")]
        if words != [word] * tasks or len(written) != tasks:
            raise UsageError(
                f"checkpoint {location}: {len(words)} of {tasks} tasks read what the driver wrote, and the driver sees "
                f"what {len(written)} wrote; {_EXPECTED}"
            )
    except (PySparkException, Py4JError, OSError) as error:
        seen = one_line(error)
        raise UsageError(f"an executor does not see the checkpoint {location}: {seen}; {_EXPECTED}") from error
    finally:
        with contextlib.suppress(OSError):  # small files may stay
            for name in system.names(out):
                system.delete(f"{out}/{name}")
            system.delete(out)
            system.delete(mark)
        system.close()


def _count_executors(context: SparkContext) -> int:
    """Return the current number of executors, at least 1."""
    known = int(context._jsc.sc().getExecutorMemoryStatus().size())  # noqa: SLF001 -- PySpark has no name for it
    return max(1, known if is_local(context.master or "") else known - 1)  # a cluster counts the driver too


def _versions() -> dict[str, str]:
    import importlib.metadata

    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def _make_probe(  # noqa: C901 -- one function, which is pickled by value
    expected: dict[str, str], directory: str, word: str
) -> Callable[[Iterable[int]], Iterator[tuple[str, str, str, bool]]]:
    """Return the function that runs on executors; it yields executor, directory, problem, and if the mark is unseen.

    It is defined inside a function so that it is pickled by value: whether an executor can import `streams` at all is
    part of the check.
    """
    prefix = PROBE

    def probe(_: Iterable[int]) -> Iterator[tuple[str, str, str, bool]]:
        import os
        import socket

        # The parent of a worker is the Python daemon of its executor, which has one.
        executor, problem = f"{socket.gethostname()}/{os.getppid()}", examine(expected)
        unseen = look(executor) if directory and not problem else ""
        yield executor, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0], problem or unseen, bool(unseen)

    def look(executor: str) -> str:
        try:
            with open(f"{directory}/{prefix}{word}", encoding="ascii") as mark:  # noqa: PTH123 -- pickled by value
                if mark.read() != word:
                    return "the file that the driver has just written there has another content"
            with open(f"{directory}/{prefix}{word}-{executor.replace('/', '-')}", "w", encoding="ascii"):  # noqa: PTH123
                return ""
        except OSError as error:
            return f"{error.strerror}: {error.filename}"

    def examine(expected: dict[str, str]) -> str:
        try:
            import importlib.metadata
            import platform as executor_platform

            if executor_platform.python_version_tuple()[:2] != tuple(expected["python"].split(".")[:2]):
                version = executor_platform.python_version()
                return f"Python {version}; the driver has {expected['python']}: install the same"
            for name, version in expected.items():
                if name != "python" and importlib.metadata.version(name) != version:
                    return f"{name} {importlib.metadata.version(name)}; the driver has {version}: install the same"
            import google.protobuf  # noqa: F401 -- without it the operator dies silently

            import streams.query.decode_stage
            import streams.query.processor  # noqa: F401
            from twin.stores.warm_up import warm

            warm()
        except ImportError as error:
            return f"{error}; install mqtwin there, as on the driver"
        except Exception as error:  # noqa: BLE001 -- the driver raises it
            return f"{type(error).__name__}: {error}"
        return ""

    return probe


# --- the default bound on the records of a batch ----------------------------------------------------------------------
# Spark bounds a batch by the number of records only, and records differ in size by five orders of magnitude: one JSON
# event, or an Arrow stream of thousands. The job therefore measures the size of records at its start, on a sample of
# the oldest and the newest records of each partition. The bound has no influence on alerts and state.

BATCH_BYTES = 256_000_000  # some seconds of work on two cores
MIN_RECORDS = 16
MAX_RECORDS = 1_000_000
UNKNOWN_RECORDS = 100_000  # the bound for a topic that is still empty
SAMPLE_RECORDS = 50  # per partition and end
SAMPLE_SECONDS = 5.0
SAMPLE_FETCH_BYTES = 1 << 20
# The user needs rights for this group; the job needs them for all groups of the prefix anyway.
_GROUP = "spark-kafka-mqtwin-sample"

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on a batch. 0 records: no bound; `record_bytes` is the measured mean."""

    records: int
    record_bytes: int | None = None


def choose_bound(kafka: Mapping[str, str], topic: str) -> Bound:
    """Return the number of records of a topic that have about `BATCH_BYTES`.

    It is `UNKNOWN_RECORDS` for a topic that is empty or cannot be read; the reason is logged.
    """
    try:
        size = measure_mean_size(kafka, topic)
    except (KafkaException, MqtwinError) as error:
        _log.warning("record size not measured", topic=topic, reason=str(error), max_records=UNKNOWN_RECORDS)
        size = None
    if size is None:
        return Bound(UNKNOWN_RECORDS)
    return Bound(min(max(round(BATCH_BYTES / max(size, 1.0)), MIN_RECORDS), MAX_RECORDS), round(size))


def measure_mean_size(kafka: Mapping[str, str], topic: str) -> float | None:
    """Return the larger of the mean sizes, in bytes, of the oldest and of the newest values; None without records.
    KafkaException: a broker does not answer, or refuses. MqtwinError: the same.
    """
    last_error = LastError()
    ours = {"group.id": _GROUP, "fetch.message.max.bytes": SAMPLE_FETCH_BYTES, "enable.partition.eof": True}
    consumer = new_consumer(kafka, ours, last_error)
    try:
        ranges = {}
        for number in partitions_of(consumer, topic, kafka, last_error):
            low, high = offset_range(consumer, topic, number)
            if high > low:
                ranges[number] = low, high
        oldest = {number: (low, min(low + SAMPLE_RECORDS, high)) for number, (low, high) in ranges.items()}
        newest = {number: (max(low, high - SAMPLE_RECORDS), high) for number, (low, high) in ranges.items()}
        means = [_measure_mean(consumer, topic, ranges) for ranges in (oldest, newest)]
        return max((mean for mean in means if mean is not None), default=None)
    finally:
        consumer.close()


def _measure_mean(consumer: Consumer, topic: str, ranges: Mapping[int, tuple[int, int]]) -> float | None:
    """Return the mean size of the records in a range of offsets of each partition; of those that arrive in time."""
    awaited = {number: end for number, (_, end) in ranges.items()}
    consumer.assign([TopicPartition(topic, number, begin) for number, (begin, _) in ranges.items()])
    count = total = 0
    deadline = time.monotonic() + SAMPLE_SECONDS
    while awaited and (left := deadline - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None:
            break
        number, offset = message.partition(), message.offset()
        if is_end(message):
            if number in awaited and (offset or 0) >= ranges[number][0]:  # what is missing was aborted or compacted
                del awaited[number]
            continue
        if not check(message.error(), topic):
            continue
        if number not in awaited or offset is None or offset < ranges[number][0]:  # one fetched before `assign`
            continue
        if offset < awaited[number]:
            count += 1
            total += len(message.value() or b"")
        if offset + 1 >= awaited[number]:
            del awaited[number]
    return total / count if count else None
