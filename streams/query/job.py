"""The streaming job: one Spark query from Kafka through the live twin of every store to Kafka.

The query reads the topics of events and of reports. Stores report to the stores they share by the latter: the query
writes it in one batch and reads it in a later one. `explain` states the cause of a failed stream on one line, because
Spark's own text often leaves it out.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import structlog

from streams.checkpoint.guard import CheckpointGuard
from streams.checkpoint.manifest import local_directory
from streams.checkpoint.relocate import skip_record
from streams.checkpoint.snapshots import SnapshotWriter
from streams.errors import one_line
from streams.host.java_process import DEATH_SECONDS, explain_java_exit, kill_java
from streams.host.resources import measure_session
from streams.host.signals import stop_requests
from streams.kafka.admin import end_offsets, explain_refusal, missing_topics, prepare_topics, watch_transactions
from streams.kafka.settings import for_spark, redact
from streams.plan import Loss, PackedPlan, Plan
from streams.query.definition import JobSettings, start_query
from streams.query.preflight import Bound, check_executors, choose_bound
from streams.query.progress import BatchLog, ClockSetBackError
from streams.query.report_records import ReadMarks
from streams.query.rows import RestartLog, SourceBits
from streams.query.session import check_master, is_local, open_session
from streams.query.silence import SourceGuard
from streams.query.status import StatusFile
from streams.state.mirror import remove_mirrors
from twin.base.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOSS_VARIABLE = "MQTWIN_TEST_LOSE_CACHE"  # for tests: see streams.plan.Loss
_POLL_SECONDS = 0.05
_LISTENER_SECONDS = 10.0  # Spark calls listeners a moment after the end of a batch

FULL_BYTES = 16 << 20  # a disk with less free space is full for a state store
FULL_FILES = 100  # of a file system with a fixed number of them (inodes); a batch makes some dozen
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|not enough space", re.IGNORECASE)
_FILES = re.compile(r"STATE_STORE|java\.io\.|RocksDB|checkpoint", re.IGNORECASE)
_NO_TOPIC = re.compile(r"UnknownTopicOrPartition|does not host this topic|not present in metadata")
_TIME = re.compile(r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+) that overflows")
_KILLED = re.compile(
    r"Python worker exited unexpectedly|java\.io\.EOFException|IOException: Stream closed|Connection reset"
    r"|ClosedChannelException",
)

_log = structlog.get_logger("mqtwin.stream")


def run_job(settings: JobSettings, *, on_batch: Callable[[dict[str, Any]], None] | None = None) -> None:
    """Run the job until SIGTERM or SIGINT, which let the running batch finish, or until it is done (`available_now`).
    UsageError: a setting is wrong. MqtwinError: the query failed; the message is the cause on one line.
    """
    with stop_requests() as stop:
        job = start_job(settings, on_batch=on_batch)
        try:
            job.wait(stop)
        except ClockSetBackError:
            kill_java()  # it would not stop either: its tasks wait for Kafka's clients and cannot be interrupted
            raise
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
    """Prepare topics, Spark and executors, and start the query. UsageError: a setting is wrong. MqtwinError: Kafka does
    not answer, or an executor lacks something.
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
    _skip_records(settings, guard)
    session = session or _open_session(settings)
    if "spark.sql.shuffle.partitions" not in settings.conf:  # Spark's default is 200, each of which costs a batch 60 ms
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    executors = check_executors(session, settings.checkpoint)
    directories = set(executors.values()) if is_local(session.sparkContext.master or "") else set()
    loss = Loss.parse(os.environ.get(LOSS_VARIABLE, "0"))
    has_watched_sources = SourceBits(settings.estate).names and not settings.available_now
    sources = SourceGuard(settings.estate, settings.client, settings.topics) if has_watched_sources else None
    marks = ReadMarks(settings.estate, settings.client, settings.topics)
    directory = local_directory(settings.checkpoint)
    log = BatchLog(
        on_batch,
        measure_session(session),
        ends=lambda topic: end_offsets(settings.client, topic),
        guard=sources,
        marks=None if settings.available_now else marks,
        status=StatusFile(settings.status_file, settings.trigger) if settings.status_file is not None else None,
        transactions=watch_transactions(settings.client, settings.topics.read),
        restarts=RestartLog(settings.estate),
        snapshots=SnapshotWriter(directory, settings.snapshot_hours) if directory and settings.snapshot_hours else None,
    )
    explain_failure = partial(_explain_failure, settings, guard, directories)
    session.streams.addListener(log)
    marks.tell(caught_up=False)  # there may be a backlog
    written = end_offsets(settings.client, settings.topics.reports)
    partitions = guard.note_start(int(session.conf.get("spark.sql.shuffle.partitions") or 0))
    packed = PackedPlan.pack(Plan(settings.estate, settings.topics, limits, loss, settings.spans, partitions))
    if settings.max_records is None:
        names = (settings.topics.events, *((settings.otlp_topic,) if settings.otlp_topic is not None else ()))
        bound = min((choose_bound(settings.client, name) for name in names), key=lambda bound: bound.records)
    else:
        bound = Bound(settings.max_records)
    settings = replace(settings, max_records=bound.records)
    query = start_query(settings, session, packed, limits, explain_failure)
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
        return start_query(settings, session, packed, limits, explain_failure)

    if sources is not None:
        sources.start()
    return Job(session, query, log, directories, read_reports, explain_failure, guard, sources)


def _skip_records(settings: JobSettings, guard: CheckpointGuard) -> None:
    directory = local_directory(settings.checkpoint)
    for place in settings.skip:
        if directory is None:
            raise UsageError(f"--skip {place}: checkpoint {settings.checkpoint}; expected: one on this machine")
        skip_record(directory, place, settings.client, settings.topics, guard.note_skipped)


def _explain_failure(
    settings: JobSettings, guard: CheckpointGuard, directories: Iterable[Path], error: BaseException
) -> str:
    """Return the cause of a failure on one line. directories: directories of the executors on this machine."""
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
        local_checkpoint=local_directory(settings.checkpoint) is not None,
    )


class Job:
    """A running query. `restart` starts one that has ended by itself again, or returns None if that is not needed."""

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
        self.session, self.query = session, query
        self._batches = log
        self._local_directories, self._restart, self._guard, self._sources = local_directories, restart, guard, sources
        self._explain_failure = explain_failure

    def wait(self, stop: threading.Event | None = None) -> None:
        """Wait for the end of the query or, once `stop` is set, for the end of the running batch. MqtwinError: the
        query failed; the message is the cause on one line.
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
                self._guard.note_read()
        if self.query.isActive:
            self._finish_batch()
        failure = self.query.exception()
        if failure is not None:
            raise MqtwinError(f"the stream failed: {self._explain_failure(failure)}{self._batches.shortage(failure)}")

    def _finish_batch(self) -> None:
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


def explain(
    error: BaseException,
    *,
    checkpoint: str = "",
    directories: Iterable[Path] = (),
    kafka: Mapping[str, str],
    topics: Mapping[str, Sequence[str]],
) -> str:
    """Return the cause of a failed query or a failed call of Spark on one line.

    Checked in this order: Java has ended, a disk is full, a record has a time that Spark cannot read, a topic of the
    job was deleted, a Python worker was killed. Otherwise it is the innermost message of Spark's text.
    """
    java_exit = explain_java_exit(DEATH_SECONDS)
    if java_exit:
        return java_exit
    text = str(error)
    local = [Path(unquote(urlparse(checkpoint).path))] if urlparse(checkpoint).scheme in ("", "file") else []
    full = _find_full_disks([*local, *directories]) if _FILES.search(text) or _NO_SPACE.search(text) else []
    if full or _NO_SPACE.search(text):
        room = "; make room: started again, the job continues where it was"
        return f"disk full: {'; '.join(full) + room if full else one_line(text)}"
    if of_time := _explain_time(text):
        return of_time
    with suppress(MqtwinError):  # no broker answers, and Spark's own text has to do
        if _NO_TOPIC.search(text) and (missing := missing_topics(kafka, topics)):
            return f"deleted in Kafka while the job ran: topic {', '.join(missing)}; starting again creates it anew"
    if _KILLED.search(text) and "Traceback (most recent call last)" not in text:  # which Python did not raise
        return f"a Python worker was killed (out of memory?): {one_line(text)}"
    return one_line(text)


def _explain_time(text: str) -> str:
    time = _TIME.search(text)
    if time is None:
        return ""
    place = "/".join(time.groups()[:3])
    return (
        f"record {place} has the time {time[4]} ms, which Spark cannot read: start again with --skip {place}, "
        "which makes it a dead letter; where records before it are not yet read, a second start passes it"
    )


def _find_full_disks(places: Iterable[Path]) -> list[str]:
    """Return one sentence per disk with less than `FULL_BYTES` free space, or no room for another file."""
    sentences = {}
    for place in places:
        existing = next((path for path in (place, *place.parents) if path.exists()), None)
        if existing is not None:
            disk = shutil.disk_usage(existing)
            if disk.free < FULL_BYTES:
                sentences[existing] = f"{place}: {disk.free / 1e6:.1f} of {disk.total / 1e6:,.0f} MB free"
            elif (files := os.statvfs(existing)).f_files and files.f_favail < FULL_FILES:
                sentences[existing] = f"{place}: {files.f_favail:,} of {files.f_files:,} files (inodes) free"
    return list(sentences.values())
