"""Cores for the job, by one formula: the duration of a batch whose events are those that arrive during it.

The duration is ``T = driver + (C read_task + P state_partition + min(S, R T) store + R T event) / C`` with C cores,
P = min(C, S) state partitions, S stores, R events a second, and driver = batch + (C + P) task. A batch starts when the
one before has ended. docs/capacity.md has the constants and their consequences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from twin.base.errors import UsageError

ContentType = Literal["json", "ndjson", "arrow"]

MAX_EVENTS_PER_SECOND = 10**9
MAX_STORES = 10**7
MAX_SHARE = 0.65  # of the cores' CPU, for events: the rest works off a backlog, or bears the loss of one core of three


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of the job in the steady state, CPU time of one core. Sources: docs/performance.md, by its headings."""

    json_us: float = 1.84  # an event, all of the job (From Kafka to Kafka, less the compilers of Cost by step)
    ndjson_us: float = 1.29  # the same
    arrow_us: float = 0.57  # the same
    store_us: float = 0.052  # microseconds an event of one store, which one core advances (The kernel alone)
    # milliseconds a store with events in a batch (Many stores: 1,000 of them, in records of a partition, less the
    # events as of 4)
    store_ms: float = 1.33
    # milliseconds a state partition in each batch: task, commit, sink (Where a batch waits, at 1,000 events/s, less the
    # stores)
    state_partition_ms: float = 24.0
    read_task_ms: float = 58.5  # milliseconds a task that reads in each batch (the same)
    # milliseconds of the driver in each batch, serial: planning, offsets, logs (From event to alert)
    batch_ms: float = 60.0
    task_ms: float = 1.0  # milliseconds of the driver for each task of a batch, serial

    def event_us(self, content_type: ContentType) -> float:
        """Return the microseconds of an event of that content type."""
        return {"json": self.json_us, "ndjson": self.ndjson_us, "arrow": self.arrow_us}[content_type]


COSTS = Costs()


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """Traffic of a job. Events are spread evenly over the stores. UsageError: a number is out of range."""

    events_per_second: float
    stores: int
    content_type: ContentType = "json"

    def __post_init__(self) -> None:
        if not 0 < self.events_per_second <= MAX_EVENTS_PER_SECOND:
            raise UsageError(
                f"{self.events_per_second} events/s; expected: more than 0, at most {MAX_EVENTS_PER_SECOND:,}"
            )
        if not 1 <= self.stores <= MAX_STORES:
            raise UsageError(f"{self.stores} stores; expected: 1 to {MAX_STORES:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Plan of the cores for a load."""

    load: ClusterLoad
    latency_s: float  # largest permitted duration of a batch, seconds
    cores: int  # number of cores
    partitions: int  # state partitions, `spark.sql.shuffle.partitions`
    batch_s: float  # duration of a batch, seconds; infinite if events arrive faster than they are processed
    parts_s: dict[str, float]  # parts of it by name, seconds
    machine_cores: int  # cores of one machine
    is_one_machine: bool  # True if one machine is enough
    warnings: tuple[str, ...]  # what to know about the plan, one per line


def batch_parts(load: ClusterLoad, cores: int, costs: Costs = COSTS) -> dict[str, float]:
    """Return the parts of a batch by name, seconds; infinite if events arrive faster than they are processed."""
    rate, partitions = load.events_per_second, min(cores, load.stores)
    driver = (costs.batch_ms + costs.task_ms * (cores + partitions)) / 1e3
    tasks = (costs.read_task_ms * cores + costs.state_partition_ms * partitions) / cores / 1e3
    a_store, an_event = costs.store_ms / 1e3 / cores, costs.event_us(load.content_type) / 1e6 / cores
    seconds = _equilibrium(driver + tasks, rate * (an_event + a_store))  # each event in another store
    if rate * seconds > load.stores:
        seconds = _equilibrium(driver + tasks + load.stores * a_store, rate * an_event)
    stores = min(float(load.stores), rate * seconds) * a_store
    return {"driver": driver, "tasks": tasks, "stores": stores, "events": rate * seconds * an_event}


def batch_seconds(load: ClusterLoad, cores: int, costs: Costs = COSTS) -> float:
    """Return the duration of a batch, seconds. Arguments as of `batch_parts`."""
    return sum(batch_parts(load, cores, costs).values())


def _equilibrium(fixed: float, growth: float) -> float:
    """Return T of T = fixed + growth * T; infinite if there is none."""
    return fixed / (1 - growth) if growth < 1 else math.inf


def plan_cluster(
    load: ClusterLoad, costs: Costs = COSTS, *, latency_s: float = 1.0, machine_cores: int = 16
) -> ClusterPlan:
    """Return the fewest cores whose batches are short enough, in seconds; if there are none, those with the shortest
    batches. UsageError: a number is out of range.
    """
    if machine_cores < 1:
        raise UsageError(f"{machine_cores} cores of a machine; expected: at least 1")
    if not latency_s > 0:
        raise UsageError(f"batches of {latency_s} s; expected: more than 0 s")
    cores = math.ceil(load.events_per_second * costs.event_us(load.content_type) / 1e6 / MAX_SHARE)
    best, best_s = cores, batch_seconds(load, cores, costs)
    # With more cores, the driver alone takes longer than the best batch so far.
    while best_s > latency_s and batch_parts(load, cores, costs)["driver"] < best_s:
        cores += 1
        seconds = batch_seconds(load, cores, costs)
        if seconds < best_s:
            best, best_s = cores, seconds
    parts = batch_parts(load, best, costs)
    warnings = []
    if best_s > latency_s:
        longest = max(parts, key=lambda name: parts[name])
        warnings.append(f"batches take {best_s:.2f} s, more than {latency_s:g} s: most of it is {longest}")
    if load.events_per_second / load.stores * costs.store_us / 1e6 > MAX_SHARE:
        warnings.append("a store has more events than its one core has room for; no cluster helps it")
    return ClusterPlan(
        load=load,
        latency_s=latency_s,
        cores=best,
        partitions=min(best, load.stores),
        batch_s=best_s,
        parts_s=parts,
        machine_cores=machine_cores,
        is_one_machine=best <= machine_cores,
        warnings=tuple(warnings),
    )
