"""The place of a run: a broker, the job under its supervisor, a producer, a consumer of committed records."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from deploy.java.broker import Broker
from streams.checkpoint.files import Offsets
from streams.checkpoint.local_files import CheckpointFiles
from streams.kafka.admin import admin_client, end_offsets, prepare_topics
from streams.kafka.clients import LastError, new_producer
from streams.kafka.topics import Topics
from streams.seams import VARIABLE
from tests.support.java import QUICK_SPARK
from tests.system import harness
from tests.system.job_process import name_of
from tests.tools.fire.clock import Clock
from tests.tools.fire.instants import Orders
from tests.tools.fire.job import JobProcess
from tests.tools.fire.oracle import Outputs
from tests.tools.fire.plan import Flaw, Plan, Whom
from tests.tools.fire.traffic import CONTENT_TYPES, Record
from twin.base.errors import MqtwinError

LIVENESS_SECONDS = 180.0  # after the last fault, until nothing is left to read; on a busy machine
FLUSH_SECONDS = 120.0
DISK_MB = 64
WRONG_CLOCK_MS = 30 * 60 * 1000  # Kafka takes an hour at most
_PRODUCER = {"linger.ms": 2, "enable.idempotence": True, "message.max.bytes": 8_000_000}


class StalledError(MqtwinError):
    """The job did not process what there was in time, or ended for good."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ends of the batches of a checkpoint by number, and the last one that is committed; -1: none is."""

    batches: Mapping[int, Offsets]
    committed: int

    @property
    def last(self) -> int:
        """The last batch that was planned; -1: there is none."""
        return max(self.batches, default=-1)

    def ends(self, topic: str, batch: int | None = None) -> dict[int, int]:
        """Return the end of a batch in a topic by partition. batch: None is the last one that is committed."""
        return dict(self.batches.get(self.committed if batch is None else batch, {}).get(topic, {}))


class Subscriber:
    """A consumer of the committed records of the topics that the job writes.

    Attributes:
        outputs: all that came so far.
    """

    def __init__(self, servers: str, topics: Topics) -> None:
        settings = {"bootstrap.servers": servers, "group.id": "fire", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed", "log_level": 0})
        self._kafka, self._topics = {"bootstrap.servers": servers}, topics
        self._next: dict[tuple[str, int], int] = {}
        self.outputs = Outputs()

    def read(self) -> Outputs:
        """Read up to the present end of the topics; return all that came so far."""
        for topic in (self._topics.alerts, self._topics.state, self._topics.dlq):
            for record in read_from(self._consumer, self._kafka, topic, self._next):
                self._take(topic, record)
        return self.outputs

    def _take(self, topic: str, record: harness.Record) -> None:
        key = (record.key or b"").decode()
        if topic == self._topics.state:
            self.outputs.states[key] = record.value
            return
        if topic == self._topics.alerts:
            known: dict[str, Any] = self.outputs.alerts
            name, value = alert_id(record.value), record.value
        else:
            known, name, value = self.outputs.letters, key, (record.value, tuple(record.headers.items()))
        if known.setdefault(name, value) != value:
            self.outputs.clashes.append(name)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def alert_id(value: bytes) -> str:
    """Return the id of the CloudEvent of an alert."""
    return str(msgspec.json.decode(value)["id"])


def read_from(
    consumer: Consumer,
    kafka: dict[str, str],
    topic: str,
    positions: dict[tuple[str, int], int],
    seconds: float = FLUSH_SECONDS,
) -> Iterator[harness.Record]:
    """Yield the records of a topic from `positions`, which are moved on, to its present end."""
    ends = end_offsets(kafka, topic)
    behind = {number: end for number, end in ends.items() if positions.get((topic, number), 0) < end}
    consumer.assign([TopicPartition(topic, number, positions.get((topic, number), 0)) for number in behind])
    deadline = time.monotonic() + seconds
    while behind:
        if time.monotonic() > deadline:
            raise StalledError(f"topic {topic}: partitions {sorted(behind)} are not read to their end")
        for message in consumer.consume(10_000, 0.2):
            if message.error() is not None:
                continue
            number, offset = message.partition(), message.offset()
            assert number is not None and offset is not None
            positions[topic, number] = offset + 1
            headers = {name: (value or b"").decode() for name, value in message.headers() or ()}
            yield harness.Record(number, offset, message.key(), message.value(), headers)
        behind = {number: end for number, end in behind.items() if positions.get((topic, number), 0) < end}


class World:
    """A broker and a job. A context manager, for one plan.

    Args:
        broker: a running broker, which outlives the world.
        prefix: prefix of its topics.
        folder: for everything else.
        plan: says if the checkpoint is on a disk of `DISK_MB`, and if the job has a clock of its own.
        say: takes a line for the user.
        is_long: for hours: all compilers of Java run, and the checkpoint keeps as many batches as it does by default,
            so that somebody has to ask for `bounds` at least every ten seconds.

    Attributes:
        published: events that the broker has acknowledged, by partition.
        batches: monotonic seconds at which the job logged a batch.
        restarts: causes of restarts by the supervisor.
        on_entry: called with each entry of the job's log.
    """

    def __init__(
        self,
        broker: Broker,
        prefix: str,
        folder: Path,
        plan: Plan,
        *,
        say: Callable[[str], None],
        is_long: bool = False,
    ) -> None:
        self.broker, self.topics, self.folder = broker, Topics(prefix), folder
        self._say = say
        self._is_long = is_long
        self.kafka = {"bootstrap.servers": broker.bootstrap_servers}
        self.checkpoint = folder / "disk" / "checkpoint"
        self.local = folder / "local"
        self._orders_folder = folder / "orders"
        for path in (folder / "disk", self.local, self._orders_folder):
            path.mkdir()
        self._small_disk = plan.small_disk and _mount(folder / "disk")
        self._clock = Clock(folder) if plan.faked_clock and Clock.is_possible() else None
        self.orders = Orders(self._orders_folder)
        self.limits = prepare_topics(self.topics, self.kafka)
        self._producer: Producer = new_producer(self.kafka, _PRODUCER, LastError())
        self._others: list[Producer] = []  # that have published beside it since the last flush
        self.subscriber = Subscriber(broker.bootstrap_servers, self.topics)
        self.published: Counter[int] = Counter()
        self.lost: list[str] = []
        self.batches: list[float] = []
        self.restarts: list[str] = []
        self.on_entry: Callable[[dict[str, Any]], None] = lambda _: None
        self._job: JobProcess | None = None
        self._ends: dict[int, Offsets] = {}
        self._ends_lock = threading.Lock()
        self._options: list[str] = []
        self.is_ready = threading.Event()  # the query has started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        self.subscriber.close()
        if self._small_disk:
            subprocess.run(["umount", "--lazy", str(self.folder / "disk")], check=True)

    # --- the job -----------------------------------------------------------------------------------------------------

    def start(self, estate: Path, max_records: int, cores: int) -> None:
        """Start the job; it is ready a while later."""
        options = ["--estate", str(estate), "--checkpoint", str(self.checkpoint), "--restart", "always"]
        options += ["--bootstrap-servers", self.broker.bootstrap_servers, "--topic-prefix", self.topics.prefix]
        options += ["--max-records", str(max_records), "--master", f"local[{cores}]"]
        if not self._is_long:  # the bounds of all batches stay, which the oracle needs for the topic of reports
            options += ["--conf", "spark.sql.streaming.minBatchesToRetain=1000000"]
        self._options = [*options, "--conf", f"spark.local.dir={self.local}"]
        self.start_again()

    def start_again(self) -> None:
        """Start the job as it was started last."""
        self.is_ready.clear()
        environment = {**({} if self._is_long else QUICK_SPARK), VARIABLE: str(self._orders_folder)}
        if self._clock is not None:
            environment |= self._clock.environment
        self._job = JobProcess(self._options, self.folder / "job.log", self._note, environment)

    def _note(self, entry: dict[str, Any]) -> None:
        self.on_entry(entry)
        if entry["event"] == "query started":
            self.is_ready.set()
        elif entry["event"] == "batch":
            self.batches.append(time.monotonic())
        elif entry["event"] == "restarting":
            self.is_ready.clear()
            self.restarts.append(str(entry["cause"]))

    @property
    def job(self) -> JobProcess:
        """The job and its supervisor."""
        assert self._job is not None
        return self._job

    def wait_until_ready(self) -> None:
        """Return once the query runs. StalledError: it does not."""
        if not self.is_ready.wait(LIVENESS_SECONDS) or not self.job.is_running:
            raise StalledError(f"the job did not start: {self.job.last_line[:500]}")

    def set_clock(self, seconds: int) -> bool:
        """Set the wall clock of the job and of all it starts. Return False where that cannot be done.

        Args:
            seconds: by which it is wrong from now on.
        """
        if self._clock is not None:
            self._clock.set(seconds)
        return self._clock is not None

    def stop(self) -> None:
        """Ask the job to stop, as a service manager does. StalledError: it did not end with status 0."""
        status = self.job.stop()
        if status != 0:
            raise StalledError(f"asked to stop, the job ended with status {status}: {self.job.last_line[:300]}")

    def kill_all(self) -> None:
        """Kill the supervisor, the driver and all that they have started."""
        if self._job is not None and self._job.is_running:
            self._job.kill()

    def family(self) -> list[psutil.Process]:
        """Return the supervisor and all that it has started; the supervisor first."""
        return self._job.family() if self._job is not None else []

    def processes(self, whom: Whom) -> list[psutil.Process]:
        """Return the processes of a kind that live now."""
        if whom == "broker":
            return [psutil.Process(self.broker.pid)] if self.broker.pid else []
        family = self.family()
        java = [process for process in family if name_of(process) == "java"]
        java = [min(java, key=psutil.Process.create_time)] if java else []  # what Java forks bears its name for a while
        daemons = [process for parent in java for process in _children(parent) if "python" in name_of(process)]
        return {
            "all": family,
            "driver": [process for process in _children(family[0]) if "python" in name_of(process)] if family else [],
            "java": java,
            "daemon": daemons,
            "worker": [worker for daemon in daemons for worker in _children(daemon)],
        }[whom]

    # --- Kafka -------------------------------------------------------------------------------------------------------

    def publish(self, records: Iterable[Record], *, flaw: Flaw = "") -> None:
        """Hand records over to the producer, in their order.

        Args:
            records: the records.
            flaw: two: a new producer gets every other record, so that their orders mix; clock: every other record has
                the time of a producer whose clock is wrong.
        """
        producers = [self._producer]
        if flaw == "two":
            producers.append(new_producer(self.kafka, _PRODUCER, LastError()))
            self._others.append(producers[-1])
        for number, record in enumerate(records):

            def note(error: Any, message: Any, events: int = record.events) -> None:
                if error is not None:
                    self.lost.append(str(error))
                else:
                    self.published[message.partition()] += events

            headers: list[tuple[str, str | bytes | None]] = [("content-type", CONTENT_TYPES[record.form])]
            wrong_ms = WRONG_CLOCK_MS * (-1) ** (number // 2) if flaw == "clock" and number % 2 else 0
            producer = producers[number % len(producers)]
            producer.produce(
                self.topics.events,
                record.value,
                record.key,
                headers=headers,
                on_delivery=note,
                timestamp=time.time_ns() // 1_000_000 + wrong_ms,
            )
            producer.poll(0)
        for producer in producers:
            producer.flush(0.01)

    def flush(self) -> None:
        """Wait until all records are delivered. MqtwinError: some were not."""
        left = sum(producer.flush(FLUSH_SECONDS) for producer in (self._producer, *self._others))
        if left or self.lost:
            raise MqtwinError(f"the runner's own records were not delivered: {self.lost[:1]}")
        self._others.clear()

    def add_partitions(self, count: int) -> None:
        """Add partitions to the events topic, and begin to publish to them."""
        self.flush()
        topic = self.topics.events
        partitions = len(end_offsets(self.kafka, topic)) + count
        admin = admin_client(self.kafka)
        for future in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result()
        deadline = time.monotonic() + FLUSH_SECONDS
        while len(end_offsets(self.kafka, topic)) < partitions and time.monotonic() < deadline:
            time.sleep(0.1)
        self._producer = new_producer(self.kafka, _PRODUCER, LastError())  # the other one would learn of them later

    def restart_broker(self) -> None:
        """Start the broker again after it was killed."""
        self.broker.stop()
        self.broker.start()

    def read_all(self, topic: str) -> dict[int, list[harness.Record]]:
        """Return all records of a topic, by partition."""
        records: dict[int, list[harness.Record]] = defaultdict(list)
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "fire-all", "log_level": 0}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        try:
            for record in read_from(consumer, self.kafka, topic, {}):
                records[record.partition].append(record)
        finally:
            consumer.close()
        return records

    # --- the checkpoint ----------------------------------------------------------------------------------------------

    def bounds(self) -> Bounds:
        """Return the batches of the checkpoint. OSError, ValueError: a file is being written."""
        with self._ends_lock:
            files = CheckpointFiles(self.checkpoint)
            for batch in files.batches:
                if batch not in self._ends:
                    self._ends[batch] = files.read_offsets(batch).offsets
            last = files.batches[-1] if files.batches else -1
            committed = files.commits[-1] if files.commits else -1
            return Bounds({batch: ends for batch, ends in self._ends.items() if batch <= last}, min(committed, last))

    def is_drained(self) -> bool:
        """Return True if all events that exist are committed."""
        try:
            ends = {topic: end_offsets(self.kafka, topic) for topic in self.topics.read}
            bounds = self.bounds()
        except (
            OSError,
            ValueError,
            MqtwinError,
        ):  # a file is being written, or a broker that was stopped has no leaders
            return False
        return bounds.committed == bounds.last and all(
            bounds.ends(topic).get(number, 0) == end for topic in ends for number, end in ends[topic].items()
        )

    def drain(self) -> float:
        """Wait until all events are committed; return the seconds that it took. StalledError: it takes too long."""
        began = time.monotonic()
        while not self.is_drained():
            if not self.job.is_running:
                raise StalledError(f"the job ended for good: {self.job.last_line[:500]}")
            if time.monotonic() - began > LIVENESS_SECONDS:
                raise StalledError(f"not all is read after {LIVENESS_SECONDS:.0f} s: {self.job.last_line[:300]}")
            time.sleep(0.1)
        return time.monotonic() - began

    def mirrors(self) -> list[Path]:
        """Return the directories of mirrors."""
        return list(self.local.glob("**/mqtwin-mirror-*"))

    def fill_disk(self) -> Path:
        """Fill the small disk; return the file that does."""
        filler = self.folder / "disk" / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                return filler


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.NoSuchProcess:
        return []


def _mount(folder: Path) -> bool:
    """Mount a small disk in memory; return False where that is not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "mqtwin-fire", str(folder)]
    return (
        shutil.which("mount") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
