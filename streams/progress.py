"""What each micro-batch did, as one log line, and what the query died of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from streams.resources import FDS_REMEDY, Resources
from streams.rows import FIGURES

OBSERVED = "mqtwin"  # name under which the figures of `streams.rows.FIGURES` are observed

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

    records: Kafka records read; behind: records not yet read; the names of `streams.rows.FIGURES`; state_bytes: memory
    of the state stores; state_commit_ms: of all state partitions together; durations in milliseconds of wall time.
    """
    figures: dict[str, Any] = {"batch": progress["batchId"], "records": progress.get("numInputRows", 0)}
    sources = progress.get("sources") or [{}]
    behind = (sources[0].get("metrics") or {}).get("avgOffsetsBehindLatest")
    if behind is not None:
        figures["behind"] = round(float(behind))
    observed = (progress.get("observedMetrics") or {}).get(OBSERVED) or {}
    figures |= {name: int(observed.get(name) or 0) for name in FIGURES}
    for operator in progress.get("stateOperators") or ():
        figures["state_bytes"] = operator.get("memoryUsedBytes", 0)
        figures["state_commit_ms"] = operator.get("commitTimeMs", 0)
    durations = progress.get("durationMs") or {}
    figures |= {ours: durations[theirs] for theirs, ours in _DURATIONS.items() if theirs in durations}
    return figures


class BatchLog(StreamingQueryListener):
    """Logs every batch with data, and tells whoever waits that one, or the query, has ended.

    Args:
        on_batch: called with the figures of each batch with data, after they were logged.
        resources: what the job's processes use, for the figures; None: not known.
    """

    def __init__(
        self, on_batch: Callable[[dict[str, Any]], None] | None = None, resources: Resources | None = None
    ) -> None:
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
        figures = batch_figures(msgspec.json.decode(report))
        if figures["records"] or figures["events"] or figures["dead_letters"]:
            if self._resources is not None:
                figures |= self._resources.figures()
            self._log.info("batch", **figures)
            self._warn(figures)
            if self._on_batch is not None:
                self._on_batch(figures)
        self.batch_ended.set()

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
        """Spark's: the query runs; `streams.job` says so itself."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Spark's: a batch has ended."""
        self.progressed(event.progress.json)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        """Spark's: the query ended, all batches have been told of; `streams.job` reports why."""
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
        """Not of interest."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ARG002, N802
        """The query has ended."""
        self._batches.query_ended.set()
        self._batches.batch_ended.set()

    class Java:
        """What Py4J asks for."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
