"""The streaming job: one Spark query from Kafka through the live twin of every store to Kafka.

The query reads the topics of events and of reports. Stores report to the stores they share by the latter: the query
writes it in one batch and reads it in a later one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from streams.checkpoint.guard import CheckpointGuard
from streams.checkpoint.manifest import local_directory
from streams.checkpoint.skip import Place, skip_record
from streams.errors import one_line
from streams.host.java_process import explain_java_exit
from streams.host.resources import measure_session
from streams.host.signals import stop_requests
from streams.kafka.admin import end_offsets, explain_refusal, partitions_of, prepare_topics
from streams.kafka.settings import for_spark, redact
from streams.kafka.topics import Limits, Topics
from streams.kafka.transactions import COMMITTED, ISOLATION, watch_transactions
from streams.plan import Loss, PackedPlan, Plan
from streams.query.bound import Bound, choose_bound
from streams.query.decode_stage import KAFKA_COLUMNS, decode_function
from streams.query.failure import explain
from streams.query.observed import HEARD, OBSERVED, RESTARTED, RestartLog, SourceBits
from streams.query.preflight import check_executors
from streams.query.progress import LETTERS, BatchLog
from streams.query.read_marks import ReadMarks
from streams.query.rows import BLOCK_DDL, FIGURES, FIRST_OTLP_PARTITION, RECORD_DDL
from streams.query.session import SparkJava, check_master, is_local, open_session
from streams.query.silence import SourceGuard
from streams.query.status import StatusFile
from streams.query.stored_state import check_format
from streams.state.mirror import remove_mirrors
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.feeds import FeedOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "0 seconds"  # the next batch starts when the previous one has ended
FETCH_BYTES = 16 * 1024 * 1024  # per partition and fetch; a larger record is fetched alone
LOSS_VARIABLE = "MQTWIN_TEST_LOSE_CACHE"  # for tests: see streams.plan.Loss
_OFFSETS = {"earliest": -2, "latest": -1}  # Spark's numbers
_POLL_SECONDS = 0.05
_LISTENER_SECONDS = 10.0  # Spark calls listeners a moment after the end of a batch

# Settings of Kafka's consumer and producer; the user's --kafka settings override them.
_SOURCE_SETTINGS = {
    f"kafka.{ISOLATION}": COMMITTED,  # as librdkafka by default, and so every other reader of the topic
    "kafka.max.partition.fetch.bytes": str(FETCH_BYTES),
    "kafka.fetch.max.bytes": str(4 * FETCH_BYTES),
    "kafka.max.poll.records": "10000",
}
PRODUCER_BATCH_BYTES = 16 * 1024  # Kafka's default of batch.size
# Milliseconds that a record waits for metadata of its topic; after that the task fails and is tried again.
_SINK_SETTINGS = {"kafka.compression.type": "zstd", "kafka.max.block.ms": "15000"}

# The header content-type, which is mostly the first one: checking that before filtering saves a fifth of the JVM's time
# per record. Header names are case-sensitive; `lower` would load all of ICU, two seconds of the first batch.
CONTENT_TYPE = (
    "if(get(headers, 0).key = 'content-type', get(headers, 0).value, "
    "get(filter(headers, h -> h.key = 'content-type'), 0).value) as content_type"
)

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """The settings of a job, as given to `mqtwin stream`.

    Args:
        estate: stores, queues and queue managers.
        bootstrap_servers: Kafka's addresses.
        checkpoint: a directory or any URI that Spark can write.
        prefix: of the names of topics.
        kafka: client settings, see `streams.kafka.settings`.
        conf: settings of Spark.
        master: see `streams.query.session.open_session`.
        trigger: minimum time between the starts of two batches, in Spark's notation ("2 seconds").
        available_now: process the records that exist now, and the reports that result, then end.
        max_records: maximum number of Kafka records per batch; 0: no limit; None: see `streams.query.bound`.
        starting_offsets: "earliest", "latest" or Spark's JSON; only for a new checkpoint.
        fail_on_data_loss: fail if records were deleted before they were read; False: continue silently with the next.
        jars: see `streams.query.session.open_session`.
        java: see `streams.query.session.open_session`.
        status_file: file for the figures of the last batch, see `streams.query.status`; None: no file.
        skip: records to leave out, see `streams.checkpoint.skip`; the checkpoint is on this machine.
        otlp_topic: topic of an OpenTelemetry collector, which is read beside the events; None: none.
        spans: facts that its spans lack.
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
    java: SparkJava | None = None
    status_file: Path | None = None
    skip: tuple[Place, ...] = ()
    otlp_topic: str | None = None
    spans: FeedOptions = field(default_factory=FeedOptions)

    @property
    def client(self) -> dict[str, str]:
        """All Kafka client settings, ``bootstrap.servers`` among them."""
        return {**self.kafka, "bootstrap.servers": self.bootstrap_servers}

    @property
    def topics(self) -> Topics:
        """Names of the topics."""
        return Topics(self.prefix, self.otlp_topic)


def run_job(settings: JobSettings, *, on_batch: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Run the job until SIGTERM or SIGINT, which let the running batch finish, or until it is done (`available_now`).

    Args:
        settings: of the job.
        on_batch: called with the figures of each batch, see `streams.query.progress.batch_figures`.

    Raises:
        UsageError: a setting is wrong.
        MqtwinError: the query failed; the message is the cause on one line.
    """
    with stop_requests() as stop:
        job = start_job(settings, on_batch=on_batch)
        try:
            job.wait(stop)
        finally:
            if not explain_java_exit():
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
        settings: of the job.
        session: session to use; None: a new one.
        on_batch: see `run_job`.

    Raises:
        UsageError: a setting is wrong.
        MqtwinError: Kafka does not answer, or an executor lacks something.
    """
    for_spark(settings.client)  # wrong settings are reported before anything is started
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
    _skip_records(settings)
    session = session or _open_session(settings)
    if "spark.sql.shuffle.partitions" not in settings.conf:  # Spark's default is 200, each of which costs a batch 60 ms
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    executors = check_executors(session, settings.checkpoint)
    if guard.is_of_unknown_format:
        check_format(session, settings.checkpoint)
    directories = set(executors.values()) if is_local(session.sparkContext.master or "") else set()
    loss = Loss.parse(os.environ.get(LOSS_VARIABLE, "0"))
    packed = PackedPlan.pack(Plan(settings.estate, settings.topics, limits, loss, settings.spans))
    has_watched_sources = SourceBits(settings.estate).names and not settings.available_now
    sources = SourceGuard(settings.estate, settings.client, settings.topics) if has_watched_sources else None
    marks = ReadMarks(settings.estate, settings.client, settings.topics)
    log = _batch_log(settings, session, sources, None if settings.available_now else marks, on_batch)
    explain_failure = partial(_explain_failure, settings, guard, directories)
    session.streams.addListener(log)
    marks.tell(caught_up=False)  # there may be a backlog
    written = end_offsets(settings.client, settings.topics.reports)
    guard.note_start(int(session.conf.get("spark.sql.shuffle.partitions") or 0))
    if settings.max_records is None:
        names = (settings.topics.events, *((settings.otlp_topic,) if settings.otlp_topic is not None else ()))
        bound = min((choose_bound(settings.client, name) for name in names), key=lambda bound: bound.records)
    else:
        bound = Bound(settings.max_records)
    settings = replace(settings, max_records=bound.records)
    query = _start_query(settings, session, packed, limits, explain_failure)
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
        """Start the query again to read the reports it wrote: it reads only what existed at its start."""
        if not settings.available_now:
            return None
        marks.tell(caught_up=True)
        if end_offsets(settings.client, settings.topics.reports) == written:
            return None
        return _start_query(settings, session, packed, limits, explain_failure)

    if sources is not None:
        sources.start()
    return Job(session, query, log, directories, read_reports, explain_failure, guard, sources)


def _skip_records(settings: JobSettings) -> None:
    directory = local_directory(settings.checkpoint)
    for place in settings.skip:
        if directory is None:
            raise UsageError(f"--skip {place}: checkpoint {settings.checkpoint}; expected: one on this machine")
        skip_record(directory, place, settings.client, settings.topics)


def _batch_log(
    settings: JobSettings,
    session: SparkSession,
    sources: SourceGuard | None,
    marks: ReadMarks | None,
    on_batch: Callable[[dict[str, Any]], None] | None,
) -> BatchLog:
    return BatchLog(
        on_batch,
        measure_session(session),
        ends=lambda topic: end_offsets(settings.client, topic),
        guard=sources,
        marks=marks,
        status=StatusFile(settings.status_file, settings.trigger) if settings.status_file is not None else None,
        transactions=watch_transactions(settings.client, settings.topics.read),
        restarts=RestartLog(settings.estate),
    )


def _explain_failure(
    settings: JobSettings, guard: CheckpointGuard, directories: Iterable[Path], error: BaseException
) -> str:
    """Return the cause of a failure on one line. directories: of the executors on this machine."""
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


def _open_session(settings: JobSettings) -> SparkSession:
    return open_session(
        master=settings.master,
        jars=settings.jars,
        java=settings.java,
        conf=settings.conf,
        local_checkpoint=is_local_path(settings.checkpoint),
    )


def _start_query(
    settings: JobSettings,
    session: SparkSession,
    packed: PackedPlan,
    limits: Limits,
    explain_failure: Callable[[BaseException], str],
) -> StreamingQuery:
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

    sink = {
        **_SINK_SETTINGS,
        "kafka.max.request.size": str(limits.request),
        "kafka.buffer.memory": str(max(2 * limits.request, 32 << 20)),
        # A larger batch than a topic takes is refused, and halved at batch.size again and again.
        "kafka.batch.size": str(min(PRODUCER_BATCH_BYTES, limits.smallest)),
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
    """Return the topics that the job reads as a streaming frame of `KAFKA_COLUMNS`."""
    topics = settings.topics
    options = {
        **_SOURCE_SETTINGS,
        **for_spark(settings.client),
        "subscribe": ",".join(topics.read),
        "includeHeaders": "true",
        "startingOffsets": _starting_offsets(settings),
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        # All cores read a topic with fewer partitions than cores; the offsets of event batches restore the order.
        "minPartitions": str(session.sparkContext.defaultParallelism),
    }
    if settings.max_records:
        options["maxOffsetsPerTrigger"] = str(settings.max_records)
    source = session.readStream.format("kafka").options(**options).load()
    partition = f"if(topic = '{topics.reports}', -1 - partition, partition)"
    if topics.otlp is not None:
        partition = f"if(topic = '{topics.otlp}', {FIRST_OTLP_PARTITION} + partition, {partition})"
    frame = source.selectExpr("value", CONTENT_TYPE, f"{partition} as partition", "offset").select(*KAFKA_COLUMNS)
    if is_local(session.sparkContext.master or ""):  # a task has a cost: one for each core, not for each partition
        frame = frame.coalesce(session.sparkContext.defaultParallelism)
    return frame


def _starting_offsets(settings: JobSettings) -> str:
    """Return the starting offsets of a new checkpoint, as Spark's JSON.

    The reports are read from their end: existing ones belong to the state of an earlier job.
    """
    topics, start = settings.topics, settings.starting_offsets
    offsets = {} if start in _OFFSETS else msgspec.json.decode(start)
    for name in topics.read:
        if name != topics.reports and (start in _OFFSETS or name == topics.otlp):
            first = _OFFSETS.get(start, _OFFSETS["earliest"])
            offsets.setdefault(name, dict.fromkeys(partitions_of(settings.client, name), first))
    reports = dict.fromkeys(partitions_of(settings.client, topics.reports), _OFFSETS["latest"])
    return msgspec.json.encode({topics.reports: reports, **offsets}).decode()


def twin_frame(events: DataFrame, packed: PackedPlan, source: str) -> DataFrame:
    """Return the output of the query as a frame of Kafka records: topic, key, value, headers.

    Args:
        events: input records, of `KAFKA_COLUMNS`.
        packed: the plan.
        source: topic of the events, as named in dead letters.
    """
    from pyspark.sql import functions as f

    from streams.query.processor import TwinProcessor

    blocks = events.mapInArrow(decode_function(packed, source), BLOCK_DDL)
    records = blocks.groupBy("store").transformWithState(TwinProcessor(packed), RECORD_DDL, "Update", "None")
    sums = [f.sum(f.col("figures")[i]).alias(FIGURES[i]) for i in range(len(FIGURES))]
    plan = packed.unpack()
    sums.append(f.max(f.col("figures")[len(FIGURES)]).alias(RESTARTED))
    words = [f.bit_or(f.get(HEARD, f.lit(i))).alias(name) for i, name in enumerate(SourceBits(plan.estate).columns)]
    is_letter = f.col("topic") == plan.topics.dlq
    reason = f.get("headers", f.lit(0))["value"]  # the first header: `streams.query.rows.DeadLetter.headers`
    letters = [f.count_if(is_letter & (reason == f.lit(code.encode()))).alias(name) for name, code in LETTERS.items()]
    return records.observe(OBSERVED, *sums, *words, *letters).select("topic", "key", "value", "headers")


class Job:
    """A running query.

    Args:
        session: that runs it.
        query: the query.
        log: its listener.
        local_directories: directories of executors on this machine, from which `stop` removes mirrors.
        restart: called when the query has ended by itself; starts it again, or returns None if that is not needed.
        explain_failure: returns the cause of a failure on one line.
        guard: of its checkpoint.
        sources: the watch over sources; None: no queue manager is watched.
    """

    def __init__(
        self,
        session: SparkSession,
        query: StreamingQuery,
        log: BatchLog,
        local_directories: set[Path],
        restart: Callable[[], StreamingQuery | None] = lambda: None,
        explain_failure: Callable[[BaseException], str] = one_line,
        guard: CheckpointGuard | None = None,
        sources: SourceGuard | None = None,
    ) -> None:
        self.session = session
        self.query = query
        self._batches = log
        self._local_directories = local_directories
        self._restart = restart
        self._guard = guard
        self._sources = sources
        self._explain_failure = explain_failure

    def wait(self, stop: threading.Event | None = None) -> None:
        """Wait for the end of the query or, once `stop` is set, for the end of the running batch.

        Raises:
            MqtwinError: the query failed; the message is the cause on one line.
        """
        from py4j.protocol import Py4JError

        try:
            self._wait_with_restart(stop)
        except (Py4JError, OSError, EOFError) as error:  # the connection to Java broke
            raise MqtwinError(f"the stream failed: {self._explain_failure(error)}") from error

    def _wait_with_restart(self, stop: threading.Event | None) -> None:
        self._wait(stop)
        if not (stop is not None and stop.is_set()):
            self._batches.query_ended.wait(_LISTENER_SECONDS)
            self._batches.query_ended.clear()
            query = self._restart()
            if query is None:
                self._batches.query_ended.set()
            else:
                self.query = query
                self._wait(stop)
            self._batches.report_left()

    def _wait(self, stop: threading.Event | None) -> None:
        while self.query.isActive and not (stop is not None and stop.wait(_POLL_SECONDS)):
            if stop is None:
                time.sleep(_POLL_SECONDS)
            self._batches.warn_if_slow(lambda: bool(self.query.status["isTriggerActive"]))
            if self._guard is not None:
                self._guard.check_held()
        if self.query.isActive:
            self._finish_batch()
        failure = self.query.exception()
        if failure is not None:
            raise MqtwinError(f"the stream failed: {self._explain_failure(failure)}{self._batches.shortage(failure)}")

    def _finish_batch(self) -> None:
        """Wait for the end of the running batch, if there is one."""
        _log.info("stopping", after="the running batch")
        self._batches.batch_ended.clear()
        while (
            self.query.isActive
            and self.query.status["isTriggerActive"]
            and not self._batches.batch_ended.wait(_POLL_SECONDS)
        ):
            pass

    def stop(self) -> None:
        """Stop the query, release its checkpoint and remove its mirrors. A later job resumes from the checkpoint."""
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


def is_local_path(location: str) -> bool:
    """Return True if a checkpoint is a path on this machine: it has no scheme, or ``file``."""
    return local_directory(location) is not None
