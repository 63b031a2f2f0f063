"""The streaming job: Kafka in, the live twin of every store, Kafka out. One query, one sink.

The query reads the events, and the reports that stores write to those they share: its own topic, written in one batch
and read in a later one.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from streams.checkpoint.guard import CheckpointGuard
from streams.checkpoint.manifest import local_directory
from streams.errors import one_line
from streams.host.java_process import gone_java
from streams.host.resources import resources_of
from streams.kafka.rights import explain_refusal
from streams.kafka.settings import for_spark, redact
from streams.kafka.topics import Topics, end_offsets, partitions_of, prepare_topics
from streams.plan import Loss, PackedPlan, Plan
from streams.query.bound import Bound, choose_bound
from streams.query.decode_stage import KAFKA_COLUMNS, decode_function
from streams.query.failure import explain
from streams.query.master import check_master
from streams.query.preflight import check_executors
from streams.query.progress import LETTERS, OBSERVED, BatchLog
from streams.query.rows import BLOCK_DDL, FIGURES, RECORD_DDL
from streams.query.session import is_local, open_session
from streams.query.silence import SourceGuard
from streams.query.source_bits import HEARD, SourceBits
from streams.state.mirror import remove_mirrors
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "0 seconds"  # the next batch begins when the last one has ended
FETCH_BYTES = 16 * 1024 * 1024  # of a partition at a time; a larger record is still taken, alone
LOSS_VARIABLE = "MQTWIN_TEST_LOSE_CACHE"  # for tests: see streams.plan.Loss
_OFFSETS = {"earliest": -2, "latest": -1}  # Spark's numbers
_POLL_SECONDS = 0.05
_SAME_REQUEST_SECONDS = 0.5
_LISTENER_SECONDS = 10.0  # Spark tells listeners of a batch a moment after its end

# Kafka's consumer and producer; a user's --kafka settings win.
_SOURCE_SETTINGS = {
    "kafka.max.partition.fetch.bytes": str(FETCH_BYTES),
    "kafka.fetch.max.bytes": str(4 * FETCH_BYTES),
    "kafka.max.poll.records": "10000",
}
# A record waits so long for its topic to be found; after that the task fails and is tried again.
_SINK_SETTINGS = {"kafka.compression.type": "zstd", "kafka.max.block.ms": "15000"}

# The header named content-type, mostly the first: looking there before filtering saves a fifth of what a record costs
# the JVM. Header names are case-sensitive. (`lower` would also cost the first batch two seconds: it loads all of ICU.)
CONTENT_TYPE = (
    "if(get(headers, 0).key = 'content-type', get(headers, 0).value, "
    "get(filter(headers, h -> h.key = 'content-type'), 0).value) as content_type"
)

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """What `mqtwin stream` was asked to do.

    estate, bootstrap_servers, checkpoint: as on the command line; `checkpoint` is a directory or any URI Spark can
    write.
    kafka: Kafka client settings; see `streams.kafka.settings`. conf: Spark settings.
    trigger: least time between the beginnings of two batches, as Spark writes it ("2 seconds").
    available_now: work off what is there, and the reports that come of it, then end.
    max_records: at most so many Kafka records in a batch; 0: no limit; None: see `streams.query.bound`.
    starting_offsets: "earliest", "latest" or Spark's JSON; only for a new checkpoint.
    fail_on_data_loss: end when records were deleted before they were read; False: log nothing and go on with the next.
    jars, java_home: see `streams.query.session.open_session`.
    """

    estate: Estate
    bootstrap_servers: str
    checkpoint: str
    prefix: str = "mqtwin"
    kafka: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    trigger: str = TRIGGER
    available_now: bool = False
    max_records: int | None = None
    starting_offsets: str = "earliest"
    fail_on_data_loss: bool = True
    jars: tuple[Path, ...] = ()
    java_home: Path | None = None

    @property
    def client(self) -> dict[str, str]:
        """All Kafka client settings, the servers among them."""
        return {**self.kafka, "bootstrap.servers": self.bootstrap_servers}

    @property
    def topics(self) -> Topics:
        """The topics' names."""
        return Topics(self.prefix)


def run_job(settings: JobSettings, *, on_batch: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Run the job until it is stopped (SIGTERM, SIGINT: after the running batch) or, with `available_now`, done.

    Args:
        settings: see there.
        on_batch: called with the figures of each batch, see `streams.query.progress.batch_figures`.

    Raises:
        UsageError: a wrong setting.
        MqtwinError: the query failed; the message is the cause on one line.
    """
    with stop_requests() as stop:
        job = start_job(settings, on_batch=on_batch)
        try:
            job.wait(stop)
        finally:
            if not gone_java():
                job.stop()
                job.session.stop()


def start_job(
    settings: JobSettings,
    *,
    session: SparkSession | None = None,
    on_batch: Callable[[dict[str, Any]], None] | None = None,
) -> Job:
    """Prepare topics, Spark and executors, and start the query.

    Args:
        settings: see there.
        session: a session to use; None: one is opened.
        on_batch: see `run_job`.

    Raises:
        UsageError: a wrong setting.
        MqtwinError: Kafka or an executor is not fit.
    """
    for_spark(settings.client)  # wrong settings are told before anything is started
    if session is None:
        check_master(settings.master or settings.conf.get("spark.master", ""))
    guard = CheckpointGuard(
        settings.checkpoint,
        estate=settings.estate,
        topics=settings.topics,
        conf=settings.conf,
        client=settings.client,
        tolerate=not settings.fail_on_data_loss,
    )
    try:
        guard.claim()
        return _start_guarded(settings, guard, session, on_batch)
    except BaseException:
        guard.release()
        raise


def _start_guarded(
    settings: JobSettings,
    guard: CheckpointGuard,
    session: SparkSession | None,
    on_batch: Callable[[dict[str, Any]], None] | None,
) -> Job:
    began = time.monotonic()
    if not guard.is_local:
        session = session or _open_session(settings)
        guard.claim_through(session)
    limits = prepare_topics(settings.topics, settings.client)
    _log.info("topics ready", topics=[settings.topics.events, *settings.topics.out])
    session = session or _open_session(settings)
    if "spark.sql.shuffle.partitions" not in settings.conf:  # Spark's default is 200, each costs a batch 60 ms
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    executors = check_executors(session)
    directories = set(executors.values()) if is_local(session.sparkContext.master or "") else set()
    loss = Loss.parse(os.environ.get(LOSS_VARIABLE, "0"))
    packed = PackedPlan.of(Plan(settings.estate, settings.topics, limits, loss))
    watched = SourceBits(settings.estate).names and not settings.available_now
    sources = SourceGuard(settings.estate, settings.client, settings.topics) if watched else None
    log = BatchLog(
        on_batch, resources_of(session), ends=lambda topic: end_offsets(settings.client, topic), guard=sources
    )

    def explain_failure(error: BaseException) -> str:
        refusal = explain_refusal(str(error), settings.topics.rights)
        if refusal is not None:
            return str(refusal)
        cause = explain(
            error,
            checkpoint=settings.checkpoint,
            directories=directories,
            kafka=settings.client,
            topics=settings.topics.rights,
        )
        return guard.explain(cause)

    session.streams.addListener(log)
    written = end_offsets(settings.client, settings.topics.reports)
    guard.note_start(int(session.conf.get("spark.sql.shuffle.partitions") or 0))
    if settings.max_records is None:
        bound = choose_bound(settings.client, settings.topics.events)
    else:
        bound = Bound(settings.max_records)
    settings = replace(settings, max_records=bound.records)
    query = _start_query(settings, session, packed, str(limits.request), explain_failure)
    _log.info(
        "query started",
        stores=len(settings.estate.stores),
        executors=len(executors),
        checkpoint=settings.checkpoint,
        max_records=bound.records,
        record_bytes=bound.record_bytes,
        seconds=round(time.monotonic() - began, 1),
        kafka=redact(settings.client),
    )

    def read_reports() -> StreamingQuery | None:
        """The query again, to read the reports it wrote: what is there is settled when it starts."""
        if not settings.available_now or end_offsets(settings.client, settings.topics.reports) == written:
            return None
        return _start_query(settings, session, packed, str(limits.request), explain_failure)

    if sources is not None:
        sources.start()
    return Job(session, query, log, directories, read_reports, explain_failure, guard, sources)


def _open_session(settings: JobSettings) -> SparkSession:
    return open_session(
        master=settings.master,
        jars=settings.jars,
        java_home=settings.java_home,
        conf=settings.conf,
        local_checkpoint=is_local_path(settings.checkpoint),
    )


def _start_query(
    settings: JobSettings,
    session: SparkSession,
    packed: PackedPlan,
    request_bytes: str,
    explain_failure: Callable[[BaseException], str],
) -> StreamingQuery:
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

    sink = {
        **_SINK_SETTINGS,
        "kafka.max.request.size": request_bytes,
        "kafka.buffer.memory": str(max(2 * int(request_bytes), 32 << 20)),
    }
    records = twin_frame(events_frame(session, settings), packed, settings.topics.events)
    writer = records.writeStream.format("kafka").options(**{**sink, **for_spark(settings.client)})
    writer = (
        writer.option("checkpointLocation", settings.checkpoint)
        .queryName(f"{settings.prefix} twin")
        .outputMode("update")
    )
    trigger = {"availableNow": True} if settings.available_now else {"processingTime": settings.trigger}
    try:
        return writer.trigger(**trigger).start()
    except (AnalysisException, IllegalArgumentException, ValueError) as error:
        raise UsageError(f"the query does not start: {one_line(error)}") from error
    except (PySparkException, Py4JError) as error:
        raise MqtwinError(f"the query does not start: {explain_failure(error)}") from error


def events_frame(session: SparkSession, settings: JobSettings) -> DataFrame:
    """The topics of events and reports as a streaming frame of `KAFKA_COLUMNS`: value, content type, place."""
    topics = settings.topics
    options = {
        **_SOURCE_SETTINGS,
        **for_spark(settings.client),
        "subscribe": f"{topics.events},{topics.reports}",
        "includeHeaders": "true",
        "startingOffsets": _starting_offsets(settings),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        # A topic of fewer partitions than cores is read by all cores; blocks carry their offsets, so order is not lost.
        "minPartitions": str(session.sparkContext.defaultParallelism),
    }
    if settings.max_records:
        options["maxOffsetsPerTrigger"] = str(settings.max_records)
    source = session.readStream.format("kafka").options(**options).load()
    place = f"if(topic = '{topics.reports}', -1 - partition, partition) as partition"
    return source.selectExpr("value", CONTENT_TYPE, place, "offset").select(*KAFKA_COLUMNS)


def _starting_offsets(settings: JobSettings) -> str:
    """Where a new checkpoint begins, as Spark's JSON.

    Of the reports, at their end: those of an earlier job are of its state, this one writes its own.
    """
    topics, told = settings.topics, settings.starting_offsets
    if told in _OFFSETS:
        places = {topics.events: dict.fromkeys(partitions_of(settings.client, topics.events), _OFFSETS[told])}
    else:
        places = msgspec.json.decode(told)
    reports = dict.fromkeys(partitions_of(settings.client, topics.reports), _OFFSETS["latest"])
    return msgspec.json.encode({topics.reports: reports, **places}).decode()


def twin_frame(events: DataFrame, packed: PackedPlan, source: str) -> DataFrame:
    """Kafka records (`KAFKA_COLUMNS`) to Kafka records (topic, key, value, headers); figures are observed."""
    from pyspark.sql import functions as f

    from streams.query.processor import TwinProcessor

    blocks = events.mapInArrow(decode_function(packed, source), BLOCK_DDL)
    records = blocks.groupBy("store").transformWithStateInPandas(TwinProcessor(packed), RECORD_DDL, "Update", "None")
    sums = [f.sum(f.col("figures")[i]).alias(FIGURES[i]) for i in range(len(FIGURES))]
    plan = packed.open()
    words = [f.bit_or(f.get(HEARD, f.lit(i))).alias(name) for i, name in enumerate(SourceBits(plan.estate).columns)]
    is_letter = f.col("topic") == plan.topics.dlq
    reason = f.get("headers", f.lit(0))["value"]  # the first header: `streams.query.rows.DeadLetter.headers`
    letters = [f.count_if(is_letter & (reason == f.lit(code.encode()))).alias(name) for name, code in LETTERS.items()]
    return records.observe(OBSERVED, *sums, *words, *letters).select("topic", "key", "value", "headers")


class Job:
    """A running query.

    again: starts it once more when it has ended by itself; None where that is not needed.
    explain_failure: returns the cause of a failure on one line.
    guard: of its checkpoint.
    sources: watches for sources that go silent; None: no queue manager is watched.
    """

    def __init__(
        self,
        session: SparkSession,
        query: StreamingQuery,
        log: BatchLog,
        local_directories: set[Path],
        again: Callable[[], StreamingQuery | None] = lambda: None,
        explain_failure: Callable[[BaseException], str] = one_line,
        guard: CheckpointGuard | None = None,
        sources: SourceGuard | None = None,
    ) -> None:
        self.session = session
        self.query = query
        self._batches = log
        self._local_directories = local_directories
        self._again = again
        self._guard = guard
        self._sources = sources
        self._explain_failure = explain_failure

    def wait(self, stop: threading.Event | None = None) -> None:
        """Return when the query has ended, or when `stop` is set and the batch then running has ended.

        Raises:
            MqtwinError: the query failed; the message is the cause on one line.
        """
        from py4j.protocol import Py4JError

        try:
            self._wait_for_all(stop)
        except (Py4JError, OSError, EOFError) as error:  # the connection to Java broke
            raise MqtwinError(f"the stream failed: {self._explain_failure(error)}") from error

    def _wait_for_all(self, stop: threading.Event | None) -> None:
        self._wait(stop)
        if not (stop is not None and stop.is_set()):
            self._batches.query_ended.wait(_LISTENER_SECONDS)
            self._batches.query_ended.clear()
            query = self._again()
            if query is None:
                self._batches.query_ended.set()
            else:
                self.query = query
                self._wait(stop)

    def _wait(self, stop: threading.Event | None) -> None:
        while self.query.isActive and not (stop is not None and stop.wait(_POLL_SECONDS)):
            if stop is None:
                time.sleep(_POLL_SECONDS)
        if self.query.isActive:
            self._finish_batch()
        failure = self.query.exception()
        if failure is not None:
            raise MqtwinError(f"the stream failed: {self._explain_failure(failure)}{self._batches.shortage(failure)}")

    def _finish_batch(self) -> None:
        """Wait for the end of the batch that is running; at once where none is."""
        _log.info("stopping", after="the running batch")
        self._batches.batch_ended.clear()
        while (
            self.query.isActive
            and self.query.status["isTriggerActive"]
            and not self._batches.batch_ended.wait(_POLL_SECONDS)
        ):
            pass

    def stop(self) -> None:
        """End the query now, give back what it kept on this host. Its checkpoint is where it goes on."""
        if self._sources is not None:
            self._sources.stop()
        query_id = self.query.id
        try:
            self.query.stop()
        finally:
            if self._guard is not None:
                self._guard.release()
        if not self._batches.query_ended.wait(_LISTENER_SECONDS):
            _log.warning("the last batches are not in the log", waited_seconds=_LISTENER_SECONDS)
        self.session.streams.removeListener(self._batches)
        for directory in self._local_directories:
            remove_mirrors(directory, query_id)
        _log.info("stopped")


@contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """While it lasts, SIGTERM and SIGINT set the event instead of ending the process; a second one ends it.

    One that comes within `_SAME_REQUEST_SECONDS` is the same request: `timeout` signals its command and then the whole
    process group, which is the command again.
    """
    stop = threading.Event()
    requested = 0.0

    def request(number: int, _: FrameType | None) -> None:
        nonlocal requested
        if not stop.is_set():
            requested = time.monotonic()
            stop.set()
        elif time.monotonic() - requested > _SAME_REQUEST_SECONDS:
            raise SystemExit(128 + number)

    before = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_local_path(location: str) -> bool:
    """Whether a checkpoint is a path on this machine: no scheme, or ``file``."""
    return local_directory(location) is not None
