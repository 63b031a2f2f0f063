"""Where it is measured: one broker, one Spark, jobs on topics of their own, and the CPU time of every process."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
from py4j.protocol import Py4JError

from deploy.java.broker import Broker
from deploy.java.jars import SPARK_CONNECTOR, ensure_jars, find_spark_java
from streams.kafka.admin import prepare_topics
from streams.kafka.publish import PublishResult, Record, Sender, publish
from streams.kafka.topics import Topics
from streams.plan import PackedPlan, Plan
from streams.query.decode_stage import decode_function
from streams.query.definition import JobSettings, events_frame
from streams.query.job import Job, start_job
from streams.query.progress import BatchLog
from streams.query.rows import BLOCK_DDL
from streams.query.session import open_session
from tests.tools.bench import site
from twin.base.errors import MqtwinError
from twin.estate import Estate
from twin.recordings.files import RecordingWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROCESSES = ("spark", "python", "broker", "driver")
THREADS = ("tasks", "compilers", "collector")  # of Spark's JVM, where the system names threads
BATCH_SECONDS = 180.0  # a batch that takes longer is a defect, and ends the measuring

# Spark keeps what its consumers fetched ahead for five minutes: here, where one query follows the other, gigabytes.
_FORGET = {
    "spark.kafka.consumer.cache.timeout": "5s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}

Say = Callable[[str], None]
_THREAD_NAMES = {  # as the kernel cuts them
    "Executor task": "tasks",
    "C1 Compiler": "compilers",
    "C2 Compiler": "compilers",
    "Sweeper": "compilers",
    "GC Thread": "collector",
    "G1 ": "collector",
    "VM Thread": "collector",
}


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch. ended: monotonic seconds; cpu: seconds so far by PROCESSES and THREADS; figures: the job's."""

    ended: float
    cpu: dict[str, float]
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Figures between the ends of two batches. cpu: seconds by PROCESSES and THREADS; sums: sums of its figures."""

    events: int
    records: int
    batches: int
    seconds: float
    cpu: dict[str, float]
    sums: dict[str, float]

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds an event, all processes."""
        return sum(self.us(name) for name in PROCESSES)

    def us(self, name: str) -> float:
        """CPU microseconds an event of one of PROCESSES or THREADS."""
        return 1e6 * self.cpu.get(name, 0.0) / self.events


def span(batches: Sequence[Batch], first: int, last: int, events_a_record: float | None = None) -> Span:
    """Batches first up to last, as in a slice. events_a_record: where the query does not count events itself."""
    before, measured = batches[first - 1], batches[first:last]
    if not measured:
        raise MqtwinError(f"{len(batches)} batches, of which {first} were for warming up: nothing to measure")
    sums: Counter[str] = Counter()
    for batch in measured:
        sums.update({name: value for name, value in batch.figures.items() if name != "batch"})
    events = sums["events"] if events_a_record is None else round(sums["records"] * events_a_record)
    end = measured[-1]
    cpu = {name: end.cpu[name] - before.cpu.get(name, 0.0) for name in end.cpu}
    return Span(events, sums["records"], len(measured), end.ended - before.ended, cpu, dict(sums))


@dataclass(slots=True)
class Rig:
    """See the module. Made by `open_rig`."""

    folder: Path
    broker: Broker
    session: SparkSession
    estate: Estate
    _jobs: int = field(default=0)
    _collected_ms: float = field(default=0.0)
    _collectors: list[Any] = field(default_factory=list)

    @property
    def kafka(self) -> dict[str, str]:
        """Client settings."""
        return {"bootstrap.servers": self.broker.bootstrap_servers}

    def publish(
        self,
        prefix: str,
        tables: Iterable[pa.Table],
        content_type: str,
        *,
        estate: Estate | None = None,
        by_partition: bool = False,
    ) -> PublishResult:
        """Events into a new topic as a user publishes them: from a recording. estate: None: that of the rig."""
        path = self.folder / f"{prefix}.arrow"
        with RecordingWriter(path) as writer:
            for table in tables:
                writer.write(table)
        prepare_topics(Topics(prefix), self.kafka)
        try:
            topics = Topics(prefix)
            return publish(
                path, estate or self.estate, self.kafka, topics, content_type=content_type, by_partition=by_partition
            )
        finally:
            path.unlink()

    def send(self, prefix: str, records: Iterable[Record], *, partitions: int = 1) -> None:
        """Records as they are, in their order."""
        prepare_topics(Topics(prefix), self.kafka, partitions=partitions)
        with Sender(self.kafka, Topics(prefix), PublishResult(), linger_ms=5, create_topics=False) as sender:
            for record in records:
                sender.send(record)

    def settings(self, prefix: str, **more: Any) -> JobSettings:
        """Of a job on the topics of a prefix, with a checkpoint of its own."""
        self._jobs += 1
        checkpoint = str(self.folder / f"checkpoint-{self._jobs}")
        servers = self.broker.bootstrap_servers
        estate = more.pop("estate", self.estate)
        return JobSettings(estate=estate, bootstrap_servers=servers, checkpoint=checkpoint, prefix=prefix, **more)

    def run_job(
        self,
        settings: JobSettings,
        *,
        max_batches: int | None = None,
        on_batch: Callable[[int], None] | None = None,
        on_end: Callable[[Job, list[Batch]], None] | None = None,
    ) -> list[Batch]:
        """Run the job of `mqtwin stream` until it has processed the topic, or `max_batches` batches.

        on_batch: called with the number of batches so far. on_end: called before the job is stopped.
        """
        with self.job(replace(settings, available_now=True), on_batch) as (job, batches):
            last = time.monotonic()
            while job.query.isActive and (max_batches is None or len(batches) < max_batches):
                if time.monotonic() - max([last, *(batch.ended for batch in batches[-1:])]) > BATCH_SECONDS:
                    raise MqtwinError(f"no batch has ended for {BATCH_SECONDS:.0f} seconds")
                time.sleep(0.02)
            if not job.query.isActive:
                job.wait()  # raises what it failed of
            if on_end is not None:
                on_end(job, batches)
        return batches

    @contextlib.contextmanager
    def job(
        self, settings: JobSettings, on_batch: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Job, list[Batch]]]:
        """A job while it lasts, and the batches that have ended."""
        batches: list[Batch] = []

        def note(figures: dict[str, Any]) -> None:
            batches.append(self._batch(figures))
            if on_batch is not None:
                on_batch(len(batches))

        jvm = self.jvm()
        job = start_job(settings, session=self.session, on_batch=note)
        try:
            yield job, batches
        finally:
            with _unless_gone(jvm):
                job.stop()
            shutil.rmtree(settings.checkpoint, ignore_errors=True)

    def run_ceiling(self, settings: JobSettings) -> list[Batch]:
        """Spark's connector alone: the job's source with the job's options, into nothing."""
        return self.run_frame(settings, events_frame(self.session, settings))

    def run_decoding(self, settings: JobSettings) -> list[Batch]:
        """The job's source and first stage, into nothing."""
        limits = prepare_topics(settings.topics, settings.client)
        packed = PackedPlan.pack(Plan(settings.estate, settings.topics, limits))
        decode = decode_function(packed, settings.topics.events)
        return self.run_frame(settings, events_frame(self.session, settings).mapInArrow(decode, BLOCK_DDL))

    def run_frame(self, settings: JobSettings, frame: DataFrame, *, mode: str = "append") -> list[Batch]:
        """Run any query over the topic, into nothing, until it has read all. mode: Spark's output mode."""
        batches: list[Batch] = []
        log = BatchLog(lambda figures: batches.append(self._batch(figures)))
        self.session.streams.addListener(log)
        try:
            writer = frame.writeStream.format("noop").option("checkpointLocation", settings.checkpoint)
            writer.outputMode(mode).trigger(availableNow=True).start().awaitTermination()
            log.query_ended.wait(BATCH_SECONDS)
        finally:
            self.session.streams.removeListener(log)
            shutil.rmtree(settings.checkpoint, ignore_errors=True)
        return batches

    def _batch(self, figures: dict[str, Any]) -> Batch:
        return Batch(time.monotonic(), self._cpu(), figures | {"collector_ms": self._collector_ms()})

    def _collector_ms(self) -> float:
        """Return the milliseconds of the JVM's garbage collections since the call before."""
        if not self._collectors:
            management: Any = self.session._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
            self._collectors = list(management.getGarbageCollectorMXBeans())
        before, self._collected_ms = self._collected_ms, float(sum(b.getCollectionTime() for b in self._collectors))
        return self._collected_ms - before

    def jvm(self) -> psutil.Process:
        """Spark's Java."""
        broker = {self.broker.pid, *(child.pid for child in psutil.Process(self.broker.pid).children(recursive=True))}
        for process in psutil.Process().children(recursive=True):
            if "java" in process.name() and process.pid not in broker:
                return process
        raise MqtwinError("Spark's Java is not among the processes this one started")

    def daemons(self) -> list[int]:
        """Process ids of Spark's Python daemons, the parents of its workers."""
        return [child.pid for child in self.jvm().children() if "python" in child.name()]

    def _cpu(self) -> dict[str, float]:
        """CPU seconds so far, user and system; processes that have ended count with who waited for them."""
        jvm, own = self.jvm(), psutil.Process().cpu_times()
        return {
            "spark": _seconds([jvm]),
            "python": _seconds(jvm.children(recursive=True)),
            "broker": _seconds([psutil.Process(self.broker.pid)]),
            "driver": own.user + own.system,
            **_threads(jvm.pid),
        }


def _seconds(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker that has just ended: its daemon has its time
            times = process.cpu_times()
            total += times.user + times.system
            total += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return total


def _threads(pid: int) -> dict[str, float]:
    """CPU seconds of a JVM's threads by THREADS; nothing where the system does not name threads."""
    seconds_by_group = dict.fromkeys(THREADS, 0.0)
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.is_dir():
        return {}
    tick = os.sysconf("SC_CLK_TCK")
    for task in tasks.iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            head, _, rest = (task / "stat").read_text(encoding="utf-8").rpartition(")")
            name = head.partition("(")[2]
            group = next((group for start, group in _THREAD_NAMES.items() if name.startswith(start)), None)
            if group is not None:
                user, system = rest.split()[11:13]
                seconds_by_group[group] += (int(user) + int(system)) / tick
    return seconds_by_group


@contextlib.contextmanager
def open_rig(folder: Path, say: Say) -> Iterator[Rig]:
    """Broker and Spark, ended afterwards."""
    estate = site.load(folder)
    say("starting Kafka")
    with Broker(data=folder / "kafka") as broker:
        say("starting Spark")
        session = open_session(
            name="mqtwin bench",
            jars=ensure_jars(SPARK_CONNECTOR),
            java=find_spark_java(),
            conf={"spark.local.dir": str(folder / "spark"), **_FORGET},
        )
        rig = Rig(folder, broker, session, estate)
        try:
            yield rig
        finally:
            with _unless_gone(rig.jvm()):
                session.stop()


@contextlib.contextmanager
def _unless_gone(jvm: psutil.Process) -> Iterator[None]:
    """Ignore errors while Spark stops, if its Java has died: that is the error to report."""
    try:
        yield
    except (Py4JError, OSError):
        if jvm.is_running() and jvm.status() != psutil.STATUS_ZOMBIE:
            raise
