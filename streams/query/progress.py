"""What each micro-batch did, as one log line, and what the query died of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from streams.host.resources import FDS_REMEDY, Resources
from streams.query.rows import FIGURES
from streams.query.silence import read_offsets
from twin.errors import MqtwinError
from twin.events import Reason

if TYPE_CHECKING:
    from streams.query.silence import SourceGuard

OBSERVED = "mqtwin"  # name under which the figures of `streams.query.rows.FIGURES` are observed
LETTERS = {f"dlq_{reason.name.lower()}": str(reason) for reason in Reason}  # observed names of counts -> the reasons

# Spark's names of a batch's phases -> ours, milliseconds.
_DURATIONS = {
    "triggerExecution": "batch_ms",
    "addBatch": "run_ms",
    "queryPlanning": "plan_ms",
    "latestOffset": "offsets_ms",
    "walCommit": "log_ms",
    "commitOffsets": "commit_ms",
}


def batch_figures(progress: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a batch from Spark's progress report (as its JSON), named for a person.

    records: Kafka records read; behind: records not yet read; the names of `streams.query.rows.FIGURES`;
    dead_letter_reasons: counts by reason, only where there are any; state_bytes: memory of the state stores;
    state_commit_ms: of all state partitions together; durations in milliseconds of wall time.
    """
    figures: dict[str, Any] = {"batch": progress["batchId"], "records": progress.get("numInputRows", 0)}
    sources = progress.get("sources") or [{}]
    behind = (sources[0].get("metrics") or {}).get("avgOffsetsBehindLatest")
    if behind is not None:
        figures["behind"] = round(float(behind))
    observed = (progress.get("observedMetrics") or {}).get(OBSERVED) or {}
    figures |= {name: int(observed.get(name) or 0) for name in FIGURES}
    reasons = {reason: int(observed[name]) for name, reason in LETTERS.items() if observed.get(name)}
    if reasons:
        figures["dead_letter_reasons"] = reasons
    for operator in progress.get("stateOperators") or ():
        figures["state_bytes"] = operator.get("memoryUsedBytes", 0)
        figures["state_commit_ms"] = operator.get("commitTimeMs", 0)
    durations = progress.get("durationMs") or {}
    figures |= {ours: durations[theirs] for theirs, ours in _DURATIONS.items() if theirs in durations}
    return figures


def measure_behind(progress: Mapping[str, Any], ends: Callable[[str], Mapping[int, int]]) -> int:
    """Return how many records of a partition are not yet read, on average.

    Spark says so itself, but not of the batch that it runs again after it was killed: of that it has not asked Kafka.

    Args:
        progress: Spark's report, as its JSON.
        ends: gives the end of each partition of a topic. MqtwinError: Kafka does not answer.
    """
    unread = [
        max(0, ends_now[number] - read)
        for topic, places in read_offsets(progress).items()
        for ends_now in (ends(topic),)
        for number, read in places.items()
        if number in ends_now
    ]
    return round(sum(unread) / len(unread)) if unread else 0


class BatchLog(StreamingQueryListener):
    """Logs every batch with data, and tells whoever waits that one, or the query, has ended.

    Args:
        on_batch: called with the figures of each batch with data, after they were logged.
        resources: what the job's processes use, for the figures; None: not known.
        ends: see `measure_behind`; None: `behind` is left out where Spark does not say it.
        guard: told of every batch; None: no source is watched.
    """

    def __init__(
        self,
        on_batch: Callable[[dict[str, Any]], None] | None = None,
        resources: Resources | None = None,
        *,
        ends: Callable[[str], Mapping[int, int]] | None = None,
        guard: SourceGuard | None = None,
    ) -> None:
        self._ends = ends
        self._guard = guard
        self._log = structlog.get_logger("mqtwin.stream")
        self._on_batch = on_batch
        self._resources = resources
        self._warned_of_memory = False
        self.batch_ended = threading.Event()
        self.query_ended = threading.Event()

    @property
    def _jlistener(self) -> Any:
        """What Spark calls. PySpark's own asks the JVM for every field of a report; this one for its JSON."""
        from pyspark import SparkContext

        if not hasattr(self, "_wrapped"):
            jvm = SparkContext._jvm  # noqa: SLF001 -- where PySpark's listener looks, too
            self._wrapped = jvm.PythonStreamingQueryListenerWrapper(_Callbacks(self))  # type: ignore[union-attr]
        return self._wrapped

    def progressed(self, report: str) -> None:
        """A batch has ended; `report` is Spark's JSON."""
        progress = msgspec.json.decode(report)
        figures = batch_figures(progress)
        if self._guard is not None:
            self._guard.progressed(progress)
        if "behind" not in figures and figures["records"] and self._ends is not None:
            try:
                behind = {"behind": measure_behind(progress, self._ends)}
            except MqtwinError as error:
                self._log.warning("how far the job is behind is not known", why=str(error))
            else:
                figures = {"batch": figures["batch"], "records": figures["records"]} | behind | figures
        if figures["records"] or figures["events"] or figures["dead_letters"]:
            if self._resources is not None:
                figures |= self._resources.figures()
            self._log.info("batch", **figures)
            self._warn(figures)
            if self._on_batch is not None:
                self._on_batch(figures)
        self.batch_ended.set()

    def idle(self, timestamp: str) -> None:
        """A trigger, begun at that time (ISO 8601), found nothing to read."""
        if self._guard is not None:
            self._guard.idle(timestamp)

    def _warn(self, figures: dict[str, Any]) -> None:
        """Log once that arrays are not in the mirror, and once for each limit that is near."""
        if figures["unmirrored"] and not self._warned_of_memory:
            self._warned_of_memory = True
            self._log.warning(
                "no room in the mirror: workers keep stores in their memory and load them when they change workers",
                stores=figures["unmirrored"],
                do=f"make room in spark.local.dir; where descriptors are near their limit, {FDS_REMEDY}",
            )
        if self._resources is not None:
            self._resources.warn_once(figures)

    def shortage(self, error: BaseException) -> str:
        """Return what the end of the query has to do with limits, to be put behind its text; empty where nothing."""
        return self._resources.shortage(error) if self._resources is not None else ""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 -- Spark's names
        """Spark's: the query runs; `streams.query.job` says so itself."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Spark's: a batch has ended."""
        self.progressed(event.progress.json)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        """Spark's: the query ended, all batches have been told of; `streams.query.job` reports why."""
        self.query_ended.set()
        self.batch_ended.set()


class _Callbacks:
    """The Java interface of a listener, by way of Py4J."""

    def __init__(self, log: BatchLog) -> None:
        self._batches = log

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 -- Spark's names
        """Not of interest."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch has ended."""
        self._batches.progressed(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """There was nothing to read."""
        self._batches.idle(str(event.timestamp()))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ARG002, N802
        """The query has ended."""
        self._batches.query_ended.set()
        self._batches.batch_ended.set()

    class Java:
        """What Py4J asks for."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
