"""The plan of a cluster (`mqtwin size cluster`) against measured batches: one core, two cores, two workers of a core.

Two costs, of an event and of a store, are found on two cores; the other batches are predicted with them.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tests.support.spark_cluster import HOST, cluster
from tests.tools.bench import many, site
from tests.tools.bench.restart import next_batch, running_job
from tests.tools.bench.rig import Rig, Say
from tests.tools.bench.traffic import Traffic
from twin.estate import load_estate
from twin.events import ARROW
from twin.sizing.cluster import COSTS, Costs

SINGLE, BOTH, WORKERS = "one core", "two cores", "two workers of one core"
CORES = {SINGLE: 1, BOTH: 2, WORKERS: 2}
STORES = (4, 1_000)
_EVENTS, _QUICK_EVENTS = 1_000_000, 200_000  # of a batch, about
_WARM_UP, _MEASURED = 5, 3  # batches
_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of a batch, the median. events: its events."""

    where: str
    stores: int
    events: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Growth:
    """batches: measured ones; costs: costs of an event and of a store found on two cores, the others of the plan."""

    batches: list[Measured]
    costs: Costs

    def predicted(self, batch: Measured) -> float:
        """Return the seconds of a batch by the formula of the plan, for a number of events that is given."""
        return _fixed_s(CORES[batch.where], self.costs) + _work_s(batch, self.costs) / CORES[batch.where]

    def largest_error(self) -> float:
        """Return the largest error of a batch that was predicted, as a share of what was measured."""
        others = [batch for batch in self.batches if batch.where != BOTH]
        return max(abs(self.predicted(batch) / batch.seconds - 1) for batch in others)


def measure(rig: Rig, say: Say, *, quick: bool) -> Growth:
    """Measure each job in a process of its own, on the same topics."""
    events = _QUICK_EVENTS if quick else _EVENTS
    batches: list[Measured] = []
    for stores in STORES:
        prefix = f"bench-growth-{stores}"
        folder = rig.folder / prefix
        folder.mkdir()
        names = next(layout.stores for layout in many.LAYOUTS if len(layout.stores) == stores)
        estate = site.bench_estate(folder, names)
        say(f"growth: publishing events of {stores:,} stores")
        all_events = (_WARM_UP + _MEASURED) * events
        pieces = Traffic(tuple(names)).pieces(all_events, events)
        published = rig.publish(prefix, pieces, ARROW, estate=load_estate(estate), by_partition=True)
        records = str(max(1, round(published.records * events / published.events)))
        for where in CORES:
            say(f"growth: {stores:,} stores, {where}")
            own = folder / where.replace(" ", "-")
            with _master(where, folder) as options:
                arguments = (rig, prefix, estate, own, folder / f"checkpoint-{own.name}", "--max-records", records)
                with running_job(*arguments, *options) as (lines, process):
                    if where == SINGLE:  # of Spark's one task, Java and Python would run on two
                        psutil.Process(process.pid).cpu_affinity([0])
                    figures = [next_batch(lines, process) for _ in range(_WARM_UP + _MEASURED - 1)][_WARM_UP:]
            seconds = statistics.median(each["batch_ms"] for each in figures) / 1e3
            batches.append(Measured(where, stores, statistics.median(each["events"] for each in figures), seconds))
    return Growth(batches, fit(batches))


@contextmanager
def _master(where: str, folder: Path) -> Iterator[tuple[str, ...]]:
    if where != WORKERS:
        yield ("--master", f"local[{CORES[where]}]")
        return
    with cluster(folder, (), ()) as master:
        pairs = (f"spark.driver.host={HOST}", f"spark.executorEnv.PYTHONPATH={_ROOT}", "spark.sql.shuffle.partitions=2")
        yield ("--master", master, *itertools.chain.from_iterable(("--conf", pair) for pair in pairs))


def _fixed_s(cores: int, costs: Costs) -> float:
    """Return the seconds of a batch without events, where each core has a task that reads and a state partition."""
    driver = costs.batch_ms + 2 * cores * costs.task_ms
    return (driver + costs.read_task_ms + costs.state_partition_ms) / 1e3


def _work_s(batch: Measured, costs: Costs) -> float:
    """Return the seconds of one core for stores and events of a batch."""
    return batch.stores * costs.store_ms / 1e3 + batch.events * costs.arrow_us / 1e6


def fit(batches: list[Measured]) -> Costs:
    """Return the costs with those of a store and of an event that both batches on two cores have."""
    fewer, more = sorted((batch for batch in batches if batch.where == BOTH), key=lambda batch: batch.stores)
    work = [CORES[BOTH] * (batch.seconds - _fixed_s(CORES[BOTH], COSTS)) for batch in (fewer, more)]
    # work = stores * store + events * event, of both
    determinant = fewer.stores * more.events - more.stores * fewer.events
    store = (work[0] * more.events - work[1] * fewer.events) / determinant
    event = (fewer.stores * work[1] - more.stores * work[0]) / determinant
    return replace(COSTS, store_ms=1e3 * store, arrow_us=1e6 * event)
