"""One batch by wall clock: the phases of Spark's driver, and below them the tasks on each core."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.tools.bench.machine import cores
from twin.base.errors import MqtwinError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Phases of a trigger in their order, by their names in Spark's report of a batch.
PHASES = {
    "latestOffset": "offsets from Kafka",
    "walCommit": "offset log",
    "getBatch": "",
    "queryPlanning": "planning",
    "addBatch": "running",
    "commitBatch": "",
    "commitOffsets": "commit log",
}
STAGES = ("read and decode", "twin, state and sink")


@dataclass(frozen=True, slots=True)
class Bar:
    """A phase or a task. label: label of PHASES or STAGES; lane: -1 for the driver, else the core; start, end: ms."""

    label: str
    lane: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """A batch. events: its number of events; milliseconds: from its start to its end; bars: in order of their start."""

    name: str
    events: int
    milliseconds: float
    bars: list[Bar]

    @property
    def busy(self) -> float:
        """The share of the time of all cores in which a task runs."""
        return sum(map(self.milliseconds_of, STAGES)) / (cores() * self.milliseconds)

    def milliseconds_of(self, label: str) -> float:
        """Return the sum of all bars of a label."""
        return sum(bar.end - bar.start for bar in self.bars if bar.label == label)


def read_timeline(session: SparkSession, query: StreamingQuery, name: str, batch: Mapping[str, Any]) -> Timeline:
    """Return the timeline of a batch that Spark still remembers.

    Args:
        session: that ran it.
        query: that it is of.
        name: name of the batch, for the page.
        batch: the job's figures of it.

    Raises:
        MqtwinError: Spark does not have it any more.
    """
    progress = next((each for each in query.recentProgress if each["batchId"] == batch["batch"]), None)
    if progress is None:
        raise MqtwinError(f"Spark has no report of batch {batch['batch']} any more")
    began = dt.datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000
    durations = progress["durationMs"]
    bars, clock = [], 0.0
    for phase, label in PHASES.items():
        took = float(durations.get(phase, 0))
        if label and took:
            bars.append(Bar(label, -1, clock, clock + took))
        clock += took
    for stage, tasks in enumerate(_tasks(session, progress["runId"], progress["batchId"])):
        bars += _in_lanes(STAGES[stage], [(start - began, end - began) for start, end in tasks])
    total = max(float(durations["triggerExecution"]), *(bar.end for bar in bars))
    return Timeline(name, round(batch["events"]), total, sorted(bars, key=lambda bar: bar.start))


def _tasks(session: SparkSession, run: str, batch: int) -> list[list[tuple[float, float]]]:
    """Return (start, end) in milliseconds since 1970 of the tasks of both stages of a batch."""
    store = session.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    for place in range(jobs.size()):
        job = jobs.apply(place)
        description = job.description().get() if job.description().isDefined() else ""
        if f"runId = {run}" not in description or not description.endswith(f"batch = {batch}"):
            continue
        numbers = sorted(int(job.stageIds().apply(stage)) for stage in range(job.stageIds().size()))
        if len(numbers) == len(STAGES):
            return [_tasks_of(store, number) for number in numbers]
    raise MqtwinError(f"Spark has no job of {len(STAGES)} stages for batch {batch} any more")


def _tasks_of(store: Any, stage: int) -> list[tuple[float, float]]:
    tasks = store.taskList(stage, 0, 1_000)
    spans = []
    for place in range(tasks.size()):
        task = tasks.apply(place)
        start = float(task.launchTime().getTime())
        spans.append((start, start + float(task.duration().get())))
    return sorted(spans)


def _in_lanes(label: str, spans: Sequence[tuple[float, float]]) -> list[Bar]:
    """Return a bar for each task, on the core that is free first. Spark does not say which core a task has."""
    free = [0.0] * cores()
    bars = []
    for start, end in spans:
        lane = min(range(len(free)), key=lambda core: free[core])
        bars.append(Bar(label, lane, max(start, free[lane]), end))
        free[lane] = end
    return bars
