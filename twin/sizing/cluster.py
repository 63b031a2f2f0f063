"""A Spark cluster for the job: executors, partitions, memory, the duration of a batch, and what is exhausted first.

A batch starts when the one before has ended. So its events are those that arrived while that ran, and its duration is
the one T at which both agree:

    T = driver + max of
        (tasks that read + state partitions + stores + R T (read + apply)) / cores
        (tasks that read + R T read) / cores + (state partitions + stores + R T kernel) / advancing cores

The second line counts where there are more cores than state partitions or stores: a store is advanced by one core.
docs/sizing.md has the constants and what follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from twin.errors import UsageError
from twin.units import GIB, MIB, as_count

ContentType = Literal["json", "ndjson", "arrow"]

MAX_EVENTS_PER_SECOND = 10**9
MAX_STORES = 10**7
# Of the cores' CPU, for events, and of the core of a store: the rest works off a backlog, or bears the loss of an
# executor of three.
MAX_SHARE = 0.65
_BACKLOG_SECONDS = 2.0  # of all cores, for the events of a batch of a backlog
_HOUR = 3600.0
_DRIVER_CORES = 2  # planning is serial; the second core is for the scheduler and the garbage collector
_BISECTIONS = 50


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of the job in the steady state: CPU time of one core, and memory.

    Sources: docs/performance.md, by its headings, and docs/operations.md where that is named.

    Attributes:
        json_us: microseconds an event, all of the job (From Kafka to Kafka, less the compilers of Cost by step).
        ndjson_us: the same.
        arrow_us: the same.
        apply_us: the part of the stateful stage, where an event is 15 bytes, whatever it came from (Cost by step, of
            Arrow, less the compilers' share).
        kernel_us: the part of the process that advances a store: kernel and unpacking (The kernel alone, gets of any
            message with 10,000 held).
        store_ms: milliseconds a store with events in a batch (Many stores: 1,000 of them, in records of a partition,
            less the events as of 4).
        state_partition_ms: milliseconds a state partition in each batch: task, commit, sink (Where a batch waits, at
            1,000 events/s, less the stores).
        read_task_ms: milliseconds a task that reads in each batch (the same).
        batch_ms: milliseconds of the driver in each batch, serial: planning, offsets, logs (From event to alert).
        task_ms: milliseconds of the driver for each task of a batch, serial.
        json_events: events a record (From Kafka to Kafka).
        ndjson_events: the same.
        arrow_events: the same.
        held_bytes: a held message in the arrays (Memory and restart).
        store_bytes: arrays of a store without messages (Stores with few events).
        worker_bytes: a Python worker (docs/operations.md, How large a machine).
        heap_bytes: heap of a JVM; with two cores this and `heap_core_bytes` are the 2 GB of docs/operations.md.
        heap_core_bytes: heap of an executor for each core.
        task_bytes: heap of the driver for each task of a batch [assumed].
    """

    json_us: float = 3.14
    ndjson_us: float = 2.03
    arrow_us: float = 0.99
    apply_us: float = 0.35
    kernel_us: float = 0.124
    store_ms: float = 2.3
    state_partition_ms: float = 45.0
    read_task_ms: float = 41.0
    batch_ms: float = 60.0
    task_ms: float = 1.0
    json_events: int = 1
    ndjson_events: int = 960
    arrow_events: int = 3_847
    held_bytes: int = 103
    store_bytes: int = 23_360
    worker_bytes: int = 300 * MIB
    heap_bytes: int = GIB
    heap_core_bytes: int = GIB // 2
    task_bytes: int = MIB

    def event_us(self, content_type: ContentType) -> float:
        """Return the microseconds of an event of that content type."""
        return {"json": self.json_us, "ndjson": self.ndjson_us, "arrow": self.arrow_us}[content_type]

    def events_per_record(self, content_type: ContentType) -> int:
        """Return the events of a record of that content type."""
        return {"json": self.json_events, "ndjson": self.ndjson_events, "arrow": self.arrow_events}[content_type]


COSTS = Costs()


@dataclass(frozen=True, slots=True)
class ClusterLoad:
    """Traffic and state of a job. Events and held messages are spread evenly over the stores.

    Raises:
        UsageError: a number is out of range.
    """

    events_per_second: float
    stores: int
    content_type: ContentType = "json"
    held: int = 0  # messages, of all stores

    def __post_init__(self) -> None:
        if not 0 < self.events_per_second <= MAX_EVENTS_PER_SECOND:
            raise UsageError(
                f"{self.events_per_second} events/s; expected: more than 0, at most {MAX_EVENTS_PER_SECOND:,}"
            )
        if not 1 <= self.stores <= MAX_STORES:
            raise UsageError(f"{self.stores} stores; expected: 1 to {MAX_STORES:,}")
        if self.held < 0:
            raise UsageError(f"{self.held} messages held; expected: 0 or more")


@dataclass(frozen=True, slots=True)
class Partitions:
    """Tasks of a batch: those that read the events, and the state partitions."""

    read: int
    state: int


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """A batch in equilibrium: its events, its stores with events, its duration and the parts of that, in seconds.

    All but the stores are infinite if events arrive faster than they can be processed.
    """

    events: float
    stores: float
    seconds: float
    driver_s: float
    read_tasks_s: float
    state_partitions_s: float
    stores_s: float
    events_s: float

    def parts(self) -> dict[str, float]:
        """Return the seconds of each part."""
        return {
            "driver": self.driver_s,
            "tasks that read": self.read_tasks_s,
            "state partitions": self.state_partitions_s,
            "stores": self.stores_s,
            "events": self.events_s,
        }

    @property
    def longest(self) -> str:
        """Name of the longest part."""
        parts = self.parts()
        return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True, slots=True)
class ExecutorMemory:
    """Memory of the executor with most stores, in bytes.

    Attributes:
        stores: number of its stores.
        held_bytes: arrays of messages held.
        stores_bytes: arrays of its stores without messages.
        workers_bytes: Python workers.
        heap_bytes: heap of the JVM, `spark.executor.memory`.
    """

    stores: int
    held_bytes: int
    stores_bytes: int
    workers_bytes: int
    heap_bytes: int

    @property
    def overhead_bytes(self) -> int:
        """Memory beside the heap, `spark.executor.memoryOverhead`."""
        return self.held_bytes + self.stores_bytes + self.workers_bytes

    @property
    def total_bytes(self) -> int:
        """Memory of an executor."""
        return self.heap_bytes + self.overhead_bytes


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a cluster, and how much of it is used: 1.0 is all."""

    name: str
    used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Plan of a cluster for a load.

    Attributes:
        load: the load.
        executors: number of executors.
        cores_per_executor: cores of each.
        cores: cores of all.
        topic_partitions: partitions of the events topic.
        state_partitions: spark.sql.shuffle.partitions.
        latency_s: largest duration of a batch that was asked for, seconds.
        keeps_limits: False if no cluster keeps all limits; of those for the events this one has the shortest batches.
        batch: a batch.
        memory: memory of an executor.
        driver_cores: cores of the driver.
        driver_bytes: heap of the driver, `spark.driver.memory`.
        max_records: maximum number of Kafka records of a batch: those of a backlog take all cores for seconds.
        backlog_s: seconds in which the backlog of an hour is worked off in such batches; infinite: never.
        limits: throughput, duration of a batch, the rate of one store.
        first: the limit that is reached first as events/s grow, or that is exceeded most; for the duration of a batch
            with its longest part.
        max_events_per_second: the largest rate for which this cluster keeps all limits.
        settings: options of `mqtwin stream`.
        warnings: what to know about the plan, one per line.
    """

    load: ClusterLoad
    executors: int
    cores_per_executor: int
    cores: int
    topic_partitions: int
    state_partitions: int
    latency_s: float
    keeps_limits: bool
    batch: BatchPlan
    memory: ExecutorMemory
    driver_cores: int
    driver_bytes: int
    max_records: int
    backlog_s: float
    limits: tuple[Limit, ...]
    first: str
    max_events_per_second: float
    settings: tuple[str, ...]
    warnings: tuple[str, ...]


def batch_seconds(load: ClusterLoad, cores: int, partitions: Partitions, costs: Costs = COSTS) -> float:
    """Return the duration of a batch in equilibrium, seconds; infinite if events arrive faster than they are processed.

    Args:
        load: the traffic.
        cores: cores of all executors.
        partitions: tasks of a batch.
        costs: measured costs.
    """
    return batch_of(load, cores, partitions, costs).seconds


def batch_of(load: ClusterLoad, cores: int, partitions: Partitions, costs: Costs = COSTS) -> BatchPlan:
    """Return a batch in equilibrium; see `batch_seconds`."""
    advancing = min(cores, partitions.state, load.stores)
    balanced = _solve(load, cores, cores, costs.apply_us, partitions, costs)
    advanced = _solve(load, cores, advancing, costs.kernel_us, partitions, costs)
    return max(balanced, advanced, key=lambda batch: batch.seconds)


def _solve(
    load: ClusterLoad, cores: int, advancing: int, apply_us: float, partitions: Partitions, costs: Costs
) -> BatchPlan:
    """Return the batch whose events are those that arrive during it.

    Args:
        load: the traffic.
        cores: cores that read.
        advancing: cores that advance stores.
        apply_us: microseconds of an event there.
        partitions: tasks of a batch.
        costs: measured costs.
    """
    rate = load.events_per_second
    driver = (costs.batch_ms + costs.task_ms * (partitions.read + partitions.state)) / 1e3
    read_tasks = costs.read_task_ms / 1e3 * partitions.read / cores
    committing = min(cores, max(advancing, partitions.state))  # partitions without stores commit, too
    state_partitions = costs.state_partition_ms / 1e3 * partitions.state / committing
    a_store = costs.store_ms / 1e3 / advancing
    an_event = ((costs.event_us(load.content_type) - costs.apply_us) / cores + apply_us / advancing) / 1e6
    fixed = driver + read_tasks + state_partitions
    seconds = _equilibrium(fixed, rate * (an_event + a_store))  # each event in another store
    if rate * seconds > load.stores:
        seconds = _equilibrium(fixed + load.stores * a_store, rate * an_event)
    stores = min(float(load.stores), rate * seconds)
    return BatchPlan(
        events=rate * seconds,
        stores=stores,
        seconds=seconds,
        driver_s=driver,
        read_tasks_s=read_tasks,
        state_partitions_s=state_partitions,
        stores_s=stores * a_store,
        events_s=rate * seconds * an_event,
    )


def _equilibrium(fixed: float, growth: float) -> float:
    """Return T of T = fixed + growth * T; infinite if there is none."""
    return fixed / (1 - growth) if growth < 1 else math.inf


def plan_cluster(
    load: ClusterLoad, costs: Costs = COSTS, *, cores_per_executor: int = 4, latency_s: float = 1.0
) -> ClusterPlan:
    """Return the smallest cluster that keeps all limits; if there is none, that with the shortest batches.

    A store that has more events than a core advances is planned as if it had as many, because no cluster helps it.

    Args:
        load: traffic and state.
        costs: measured costs.
        cores_per_executor: cores of an executor.
        latency_s: largest duration of a batch, seconds.

    Raises:
        UsageError: a number is out of range.
    """
    if cores_per_executor < 1:
        raise UsageError(f"{cores_per_executor} cores an executor; expected: at least 1")
    if not latency_s > 0:
        raise UsageError(f"batches of {latency_s} s; expected: more than 0 s")
    executors = math.ceil(_cores_for_events(load, costs) / MAX_SHARE / cores_per_executor)
    bounded = replace(load, events_per_second=min(load.events_per_second, _max_store_rate(load, costs)))
    best, best_seconds = executors, math.inf
    while True:
        cores = executors * cores_per_executor
        batch = batch_of(bounded, cores, _partitions_for(load, cores), costs)
        if batch.seconds < best_seconds:
            best, best_seconds = executors, batch.seconds
        # With more executors, the driver alone takes longer than the best batch so far.
        if best_seconds <= latency_s or batch.driver_s >= best_seconds:
            return assess_cluster(load, best, costs, cores_per_executor=cores_per_executor, latency_s=latency_s)
        executors += 1


def _cores_for_events(load: ClusterLoad, costs: Costs) -> float:
    """Return the cores that events take, all else aside."""
    return load.events_per_second * costs.event_us(load.content_type) / 1e6


def _max_store_rate(load: ClusterLoad, costs: Costs) -> float:
    """Return the events/s of all stores at which each has as many as a core advances."""
    return load.stores * MAX_SHARE * 1e6 / costs.kernel_us


def _partitions_for(load: ClusterLoad, cores: int) -> Partitions:
    """Return the tasks of a batch: Spark has a task for each core read; there is no use of more partitions than stores.

    The option minPartitions of Spark's Kafka source, which the job sets to the number of cores, splits the offsets of
    a partition where cores are more than partitions.
    """
    return Partitions(read=cores, state=min(cores, load.stores))


def assess_cluster(
    load: ClusterLoad, executors: int, costs: Costs = COSTS, *, cores_per_executor: int = 4, latency_s: float = 1.0
) -> ClusterPlan:
    """Return the plan of a cluster with that number of executors; see `plan_cluster`."""
    cores = executors * cores_per_executor
    partitions = _partitions_for(load, cores)
    batch = batch_of(load, cores, partitions, costs)
    limits = _limits(load, cores, batch, latency_s, costs)
    max_rate = _max_rate(load, cores, latency_s, costs)
    first = _first(replace(load, events_per_second=max(load.events_per_second, max_rate)), cores, latency_s, costs)
    memory = _memory(load, executors, cores_per_executor, costs)
    driver_bytes = 2 * costs.heap_bytes + costs.task_bytes * (partitions.read + partitions.state)
    max_records = _max_records(load, cores, batch, costs)
    return ClusterPlan(
        load=load,
        executors=executors,
        cores_per_executor=cores_per_executor,
        cores=cores,
        topic_partitions=min(cores, load.stores),
        state_partitions=partitions.state,
        latency_s=latency_s,
        keeps_limits=all(limit.used <= 1 for limit in limits),
        batch=batch,
        memory=memory,
        driver_cores=_DRIVER_CORES,
        driver_bytes=driver_bytes,
        max_records=max_records,
        backlog_s=_backlog_seconds(load, batch, max_records * costs.events_per_record(load.content_type)),
        limits=limits,
        first=first,
        max_events_per_second=max_rate,
        settings=(
            f"--max-records {max_records}",
            f"--conf spark.sql.shuffle.partitions={partitions.state}",
            f"--conf spark.executor.instances={executors}",
            f"--conf spark.executor.cores={cores_per_executor}",
            f"--conf spark.cores.max={cores}",
            f"--conf spark.executor.memory={_mebibytes(memory.heap_bytes)}m",
            f"--conf spark.executor.memoryOverhead={_mebibytes(memory.overhead_bytes)}m",
            f"--conf spark.driver.memory={_mebibytes(driver_bytes)}m",
        ),
        warnings=(
            *_exceeded(limits, batch, latency_s, first),
            *_warnings_of_loss(load, executors, cores_per_executor, costs),
        ),
    )


def _limits(
    load: ClusterLoad, cores: int, batch: BatchPlan, latency_s: float, costs: Costs
) -> tuple[Limit, Limit, Limit]:
    return (
        Limit("CPU for events", _cores_for_events(load, costs) / cores / MAX_SHARE),
        Limit("duration of a batch", batch.seconds / latency_s),
        Limit("rate of one store", load.events_per_second / _max_store_rate(load, costs)),
    )


def _first(load: ClusterLoad, cores: int, latency_s: float, costs: Costs) -> str:
    """Return the name of the limit that is used most; the duration of a batch with its longest part.

    That is long because of too many events, if they exceed another limit.
    """
    batch = batch_of(load, cores, _partitions_for(load, cores), costs)
    cpu, duration, store = _limits(load, cores, batch, latency_s, costs)
    throughput = max(cpu, store, key=lambda limit: limit.used)
    if throughput.used > 1 or throughput.used >= duration.used:
        return throughput.name
    return f"{duration.name}: {batch.longest}"


def _max_records(load: ClusterLoad, cores: int, batch: BatchPlan, costs: Costs) -> int:
    """Return the records whose events take all cores as long as a batch, at least `_BACKLOG_SECONDS`."""
    seconds = max(_BACKLOG_SECONDS, batch.seconds) if math.isfinite(batch.seconds) else _BACKLOG_SECONDS
    record_us = costs.event_us(load.content_type) * costs.events_per_record(load.content_type)
    return math.ceil(cores * seconds * 1e6 / record_us)


def _backlog_seconds(load: ClusterLoad, batch: BatchPlan, events: int) -> float:
    """Return the seconds in which the backlog of an hour is worked off. events: those of a batch of the backlog."""
    if not math.isfinite(batch.seconds):
        return math.inf
    stores = batch.stores_s / batch.stores * load.stores
    fixed = batch.driver_s + batch.read_tasks_s + batch.state_partitions_s + stores
    processed = events / (fixed + batch.events_s / batch.events * events)
    surplus = processed - load.events_per_second
    return _HOUR * load.events_per_second / surplus if surplus > 0 else math.inf


def _max_rate(load: ClusterLoad, cores: int, latency_s: float, costs: Costs) -> float:
    """Return the largest rate at which a cluster keeps all limits, events/s; 0.0 if it keeps them at none."""
    partitions = _partitions_for(load, cores)
    of_cores = cores * MAX_SHARE * 1e6 / costs.event_us(load.content_type)
    low, high = 0.0, min(of_cores, _max_store_rate(load, costs), float(MAX_EVENTS_PER_SECOND))
    if batch_seconds(replace(load, events_per_second=high), cores, partitions, costs) <= latency_s:
        return high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if batch_seconds(replace(load, events_per_second=middle), cores, partitions, costs) <= latency_s:
            low = middle
        else:
            high = middle
    return low


def _memory(load: ClusterLoad, executors: int, cores_per_executor: int, costs: Costs) -> ExecutorMemory:
    stores = most_stores(load.stores, executors)
    held = math.ceil(load.held * stores / load.stores)
    return ExecutorMemory(
        stores=stores,
        held_bytes=held * costs.held_bytes,
        stores_bytes=stores * costs.store_bytes,
        workers_bytes=cores_per_executor * costs.worker_bytes,
        heap_bytes=costs.heap_bytes + cores_per_executor * costs.heap_core_bytes,
    )


def most_stores(stores: int, executors: int) -> int:
    """Return the number of stores that hardly an executor exceeds, as a hash spreads them.

    It is the bound by Bernstein's inequality that one of all executors exceeds at most: with the mean m and
    L = ln(executors), m + L / 3 + sqrt(L * L / 9 + 2 m L).
    """
    mean, log = stores / executors, math.log(executors)
    return min(stores, math.ceil(mean + log / 3 + math.sqrt(log * log / 9 + 2 * mean * log)))


def _mebibytes(size_bytes: int) -> int:
    return math.ceil(size_bytes / MIB)


def _exceeded(limits: tuple[Limit, Limit, Limit], batch: BatchPlan, latency_s: float, first: str) -> Iterator[str]:
    """Yield a warning if a limit is exceeded."""
    cpu, duration, store = limits
    if not math.isfinite(batch.seconds):
        yield f"events arrive faster than this cluster processes them; the limit is the {first}"
    elif duration.used > 1:
        yield f"batches take {batch.seconds:.2f} s, more than {latency_s:g} s; the limit is the {first}"
    elif max(cpu.used, store.used) > 1:
        yield f"no room is left to work off a backlog; the limit is the {first}"


def _warnings_of_loss(load: ClusterLoad, executors: int, cores_per_executor: int, costs: Costs) -> Iterator[str]:
    """Yield a warning if the cluster does not keep up without one executor."""
    needed, left = _cores_for_events(load, costs), (executors - 1) * cores_per_executor
    if executors == 1:
        yield "with one executor nothing is processed until Spark has replaced it, if it is lost"
    elif needed >= left:
        text = f"events take {needed:.1f} of {as_count(left, 'core')}"
        yield f"if an executor is lost, a backlog grows until Spark has replaced it: {text}"
