"""The log line of each micro-batch, and the listener events at its end and at the end of the query."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog
from pyspark.sql.streaming.listener import StreamingQueryListener

from streams.checkpoint.snapshots import SnapshotWriter
from streams.host.resources import FDS_REMEDY, Resources
from streams.kafka.admin import HeldRecords, TransactionWatch
from streams.query.report_records import ReadMarks
from streams.query.rows import CLOCK, FIGURES, BatchReport, RestartLog
from streams.query.silence import SourceGuard
from streams.query.status import StatusFile
from twin.base.errors import MqtwinError
from twin.events import Reason

SLOW_SECONDS = 60.0  # of a batch, until a warning
CLOCK_BACK_SECONDS = 10.0  # by which the wall clock may go back unnoticed
LETTERS = {f"dlq_{reason.name.lower()}": str(reason) for reason in Reason}  # reason by the observed name of its count

# Names of the phases of a batch in Spark's report, and in the log line; milliseconds.
_DURATIONS = {
    "triggerExecution": "batch_ms",
    "addBatch": "run_ms",
    "queryPlanning": "plan_ms",
    "latestOffset": "offsets_ms",
    "walCommit": "log_ms",
    "commitOffsets": "commit_ms",
}


class ClockSetBackError(MqtwinError):
    """A batch stands still since the wall clock was set back."""


def batch_figures(report: BatchReport, held: HeldRecords | None = None) -> dict[str, Any]:
    """Return the figures of a batch with readable names.

    Spark's figure of unread records ends at the last stable offset; `held` counts those behind that.

    | figure | meaning |
    | --- | --- |
    | `records` | Kafka records read |
    | `behind` | records per partition not yet read, those held back by open transactions among them |
    | `held` | records held back by open transactions; missing if they are not known |
    | names of `FIGURES` | see `streams.query.rows` |
    | `dead_letter_reasons` | counts by reason; missing if there are none |
    | `state_bytes` | memory of the state stores |
    | `state_commit_ms` | sum over all state partitions |
    | durations | milliseconds of wall time |
    """
    figures: dict[str, Any] = {"batch": report.batch_id, "records": report.num_input_rows}
    if report.behind is not None:
        figures["behind"] = math.ceil(report.behind + (held.mean if held is not None else 0.0))
    if held is not None:
        figures["held"] = held.records
    observed = report.observed
    figures |= {name: observed.get(name, 0) for name in FIGURES}
    reasons = {reason: observed[name] for name, reason in LETTERS.items() if observed.get(name)}
    if reasons:
        figures["dead_letter_reasons"] = reasons
    for operator in report.state_operators:
        figures["state_bytes"] = operator.memory_used_bytes
        figures["state_commit_ms"] = operator.commit_time_ms
    durations = report.duration_ms
    figures |= {ours: durations[theirs] for theirs, ours in _DURATIONS.items() if theirs in durations}
    return figures


def measure_behind(report: BatchReport, ends: Callable[[str], Mapping[int, int]]) -> int:
    """Return the mean number of records per partition that are not yet read.

    Spark reports it too, except for a batch that it runs again after it was killed: for that it did not ask Kafka.
    """
    unread = [
        max(0, end_offsets[number] - offset)
        for topic, offsets in report.end_offsets.items()
        for end_offsets in (ends(topic),)
        for number, offset in offsets.items()
        if number in end_offsets
    ]
    return math.ceil(sum(unread) / len(unread)) if unread else 0


class BatchLog(StreamingQueryListener):
    """A listener that logs batches with data, and sets events at their ends and the query's. None: not notified."""

    def __init__(
        self,
        on_batch: Callable[[dict[str, Any]], None] | None = None,
        resources: Resources | None = None,
        *,
        ends: Callable[[str], Mapping[int, int]] | None = None,
        guard: SourceGuard | None = None,
        marks: ReadMarks | None = None,
        status: StatusFile | None = None,
        transactions: TransactionWatch | None = None,
        restarts: RestartLog | None = None,
        snapshots: SnapshotWriter | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._restarts, self._monotonic, self._wall = restarts, monotonic, wall
        self._latest_s = wall()  # the highest that the wall clock ever was
        self._beat_s = monotonic()  # end of the last batch, or of the last look that found nothing to read
        self._slow_s = SLOW_SECONDS
        self._ends, self._transactions, self._status, self._guard = ends, transactions, status, guard
        self._listeners: list[Callable[[BatchReport], None]] = [
            listener.on_batch for listener in (guard, marks) if listener is not None
        ]
        if snapshots is not None:
            self._listeners.append(lambda report: snapshots.on_batch(report.batch_id, report.observed.get(CLOCK, 0)))
        self._log = structlog.get_logger("mqtwin.stream")
        self._on_batch, self._resources = on_batch, resources
        self._warned_of_memory = False
        self.batch_ended = threading.Event()
        self.query_ended = threading.Event()

    @property
    def _jlistener(self) -> Any:
        """The listener that Spark calls: this one, which asks the JVM for a report's JSON, and not for every field."""
        from pyspark import SparkContext

        if not hasattr(self, "_wrapped"):
            jvm: Any = SparkContext._jvm  # noqa: SLF001 -- PySpark's listener uses it too
            self._wrapped = jvm.PythonStreamingQueryListenerWrapper(self)
        return self._wrapped

    def on_progress(self, text: str) -> None:
        """Log a batch. text: Spark's report, JSON."""
        self._note_progress()
        report = msgspec.json.decode(text, type=BatchReport)
        held = self._look_at_transactions()
        figures = batch_figures(report, held)
        for listener in self._listeners:
            listener(report)
        if "behind" not in figures and figures["records"] and self._ends is not None:
            figures = self._with_behind(figures, report, self._ends)
        if figures["records"] or figures["events"] or figures["dead_letters"]:
            if self._resources is not None:
                figures |= self._resources.figures()
            self._log.info("batch", **figures)
            if self._restarts is not None:
                self._restarts.on_batch(report.observed, figures["duplicates"])
            if self._status is not None:
                self._status.on_batch(figures)
            self._warn(figures)
            if self._on_batch is not None:
                self._on_batch(figures)
        elif self._status is not None:
            self._status.on_idle(_behind(held))
        self.batch_ended.set()

    def on_idle(self, timestamp: str) -> None:
        """Notify guard and status file of a trigger, started at a time (ISO 8601), without anything to read."""
        self._note_progress()
        held = self._look_at_transactions()
        if self._status is not None:
            self._status.on_idle(_behind(held))
        if self._guard is not None:
            self._guard.on_idle(timestamp)

    def _with_behind(
        self, figures: dict[str, Any], report: BatchReport, ends: Callable[[str], Mapping[int, int]]
    ) -> dict[str, Any]:
        try:
            behind = {"behind": measure_behind(report, ends)}
        except MqtwinError as error:
            self._warn_of_unknown(error)
            return figures
        return {"batch": figures["batch"], "records": figures["records"]} | behind | figures

    def _note_progress(self) -> None:
        self._beat_s, self._slow_s = self._monotonic(), SLOW_SECONDS

    def warn_if_slow(self, is_running: Callable[[], bool]) -> None:
        """Log a batch that runs for more than `SLOW_SECONDS`, and again after twice the time. To be called often.
        ClockSetBackError: the wall clock was set back. Kafka's Java clients count their pauses before they connect
        again by it, and stand still until it is where it was; new ones do not.
        """
        wall_s = self._wall()
        self._latest_s = max(self._latest_s, wall_s)
        seconds = self._monotonic() - self._beat_s
        if seconds < self._slow_s:
            return
        if not is_running():
            self._note_progress()
            return
        back_s = self._latest_s - wall_s
        if back_s > CLOCK_BACK_SECONDS:
            raise ClockSetBackError(
                f"no batch has ended for {seconds:.0f} s, and the system clock was set back by {back_s:.0f} s, so long "
                "may Kafka's clients wait; the job continues when it is started again"
            )
        self._slow_s *= 2
        self._log.warning(
            "a batch runs for long",
            seconds=round(seconds),
            look="a first batch loads everything, --max-records bounds those of a backlog; else Kafka may not take its "
            "records: brokers are away, or max.message.bytes of a topic was lowered since the start",
        )

    def report_left(self) -> None:
        """Warn of the records that a job with an end has not read because of open transactions."""
        if self._transactions is not None:
            try:
                self._transactions.report_left()
            except MqtwinError as error:
                self._warn_of_unknown(error)

    def _look_at_transactions(self) -> HeldRecords | None:
        if self._transactions is None:
            return None
        try:
            return self._transactions.look()
        except MqtwinError as error:
            self._warn_of_unknown(error)
            return None

    def _warn_of_unknown(self, error: MqtwinError) -> None:
        self._log.warning("how far the job is behind is not known", why=str(error))

    def _warn(self, figures: dict[str, Any]) -> None:
        """Log once that arrays are not in the mirror, and once per limit that is near."""
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
        """Return the limit that an error comes from, as a suffix of its message; empty if from none."""
        return self._resources.shortage(error) if self._resources is not None else ""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 -- Spark's names
        """Do nothing: `streams.query.job` logs the start itself."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Log a batch."""
        self.on_progress(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Pass on that there was nothing to read."""
        self.on_idle(str(event.timestamp()))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ARG002, N802
        """Set both events: the query has ended and all batches are logged. `streams.query.job` reports the cause."""
        self.query_ended.set()
        self.batch_ended.set()

    class Java:
        """The name of the interface, as Py4J expects it."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def _behind(held: HeldRecords | None) -> int:
    """Return the unread records per partition of a job that has nothing it may read."""
    return math.ceil(held.mean) if held is not None else 0
