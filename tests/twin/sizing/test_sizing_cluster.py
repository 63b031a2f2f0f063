"""A Spark cluster: batches in equilibrium, the smallest cluster, limits, memory, and the tables of docs/sizing.md."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.errors import UsageError
from twin.sizing import ClusterLoad, ClusterPlan, Costs, Partitions, assess_cluster, batch_seconds, plan_cluster
from twin.sizing.cluster import COSTS, MAX_SHARE, batch_of, most_stores
from twin.units import GIB, MIB

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sizing.md"
# As the defaults once were; what is measured later changes no test but those of the page.
COST = Costs(
    json_us=2.96,
    arrow_us=0.73,
    apply_us=0.23,
    kernel_us=0.115,
    store_ms=2.0,
    state_partition_ms=68.0,
    read_task_ms=34.0,
    batch_ms=60.0,
    task_ms=1.0,
    arrow_events=3_847,
    held_bytes=103,
    store_bytes=23_040,
)
TYPES = ("json", "ndjson", "arrow")

rates = st.floats(1, 1e8)
loads = st.builds(ClusterLoad, rates, st.integers(1, 10**6), st.sampled_from(TYPES))
partitions = st.builds(Partitions, st.integers(1, 2000), st.integers(1, 2000))


def test_a_batch_is_the_driver_and_the_work_of_all_cores_over_what_events_leave():
    """With a core for each state partition: (driver + (stores + partitions + tasks) / cores) / (1 - share)."""
    load = ClusterLoad(1e6, 1_000, "arrow")
    work = (1_000 * 2.0 + 8 * 68.0 + 8 * 34.0) / 8 / 1e3
    expected = ((60 + 16) / 1e3 + work) / (1 - 1e6 * 0.73e-6 / 8)
    assert batch_seconds(load, 8, Partitions(8, 8), COST) == pytest.approx(expected)


def test_a_batch_has_no_more_stores_than_events():
    batch = batch_of(ClusterLoad(50, 10_000), 4, Partitions(4, 4), COST)
    assert batch.stores == batch.events == pytest.approx(50 * batch.seconds)
    assert batch.stores_s == pytest.approx(batch.stores * 2e-3 / 4)


@given(load=loads, cores=st.integers(1, 2000), tasks=partitions)
def test_the_events_of_a_batch_are_those_that_arrive_during_it(load, cores, tasks):
    batch = batch_of(load, cores, tasks)
    if math.isfinite(batch.seconds):
        assert sum(batch.parts().values()) == pytest.approx(batch.seconds)
        assert batch.events == pytest.approx(load.events_per_second * batch.seconds)
    else:
        assert load.events_per_second * COSTS.event_us(load.content_type) / 1e6 >= min(cores, load.stores, tasks.state)


@given(load=loads, cores=st.integers(1, 2000), more=st.integers(1, 2000), tasks=partitions)
def test_more_cores_never_make_a_batch_longer(load, cores, more, tasks):
    assert batch_seconds(load, cores + more, tasks) <= batch_seconds(load, cores, tasks) * (1 + 1e-9)


@given(load=loads, rate=rates, latency=st.floats(0.05, 10), width=st.sampled_from([1, 4, 16]))
def test_more_events_a_second_never_need_fewer_cores(load, rate, latency, width):
    other = dataclasses.replace(load, events_per_second=rate)
    fewer, more = sorted((load, other), key=lambda each: each.events_per_second)
    plans = [plan_cluster(each, cores_per_executor=width, latency_s=latency) for each in (fewer, more)]
    assert plans[0].cores <= plans[1].cores


@given(load=loads, latency=st.floats(0.05, 10), width=st.sampled_from([1, 4, 16]))
def test_a_plan_keeps_the_latency_or_says_which_limit_forbids_it(load, latency, width):
    plan = plan_cluster(load, cores_per_executor=width, latency_s=latency)
    seconds = batch_seconds(load, plan.cores, Partitions(plan.cores, plan.state_partitions))
    assert plan.batch.seconds == seconds
    assert plan.limits[0].used <= 1 + 1e-9
    if plan.keeps_limits:
        assert seconds <= latency
        assert plan.max_events_per_second >= load.events_per_second * (1 - 1e-9)
        assert plan.executors == 1 or any(limit.used > 1 for limit in changed(plan, -1).limits)
    else:
        assert f"the limit is the {plan.first}" in plan.warnings[0]
        assert seconds > latency or plan.limits[2].used > 1
    if not plan.keeps_limits and plan.limits[2].used <= 1:
        others = [changed(plan, more) for more in (-1, 1, plan.executors) if plan.executors + more > 0]
        assert all(other.batch.seconds >= seconds for other in others if other.limits[0].used <= 1)


def changed(plan: ClusterPlan, more: int) -> ClusterPlan:
    """Return the plan of a cluster with more executors."""
    executors, width = plan.executors + more, plan.cores_per_executor
    return assess_cluster(plan.load, executors, cores_per_executor=width, latency_s=plan.latency_s)


@given(load=loads, executors=st.integers(1, 200))
def test_a_cluster_keeps_its_limits_up_to_the_largest_rate(load, executors):
    plan = assess_cluster(load, executors)
    if plan.max_events_per_second >= 1:
        at_most = dataclasses.replace(load, events_per_second=plan.max_events_per_second)
        assert assess_cluster(at_most, executors).batch.seconds <= plan.latency_s
        beyond = dataclasses.replace(load, events_per_second=min(1e9, plan.max_events_per_second * 1.001))
        assert any(limit.used > 1 for limit in assess_cluster(beyond, executors).limits)


@pytest.mark.parametrize(
    ("load", "measured"), [(ClusterLoad(1_000, 64), 0.237), (ClusterLoad(100_000, 34, "arrow"), 0.268)]
)
def test_batches_that_were_measured_on_two_cores_are_foretold(load, measured):
    """docs/performance.md, From event to alert: the stores are those with events in a batch."""
    assert batch_seconds(load, 2, Partitions(2, 2)) == pytest.approx(measured, rel=0.3)


def test_one_store_is_advanced_by_one_core():
    many, single = (batch_of(ClusterLoad(8e6, stores, "arrow"), 64, Partitions(64, 64), COST) for stores in (64, 1))
    assert single.seconds > 10 * many.seconds
    assert batch_seconds(ClusterLoad(9e6, 1, "arrow"), 10**6, Partitions(1, 1), COST) == math.inf
    plan = plan_cluster(ClusterLoad(6e6, 1, "arrow"), COST, latency_s=10)
    assert (plan.keeps_limits, plan.batch.seconds < 10) == (False, True)
    assert plan.warnings == ("no room is left to work off a backlog; the limit is the rate of one store",)


def test_more_partitions_than_cores_or_stores_are_not_planned():
    plan = assess_cluster(ClusterLoad(1e6, 5), 3)
    assert (plan.cores, plan.topic_partitions, plan.state_partitions) == (12, 5, 5)


def test_a_batch_of_a_backlog_takes_all_cores_for_two_seconds():
    plan = assess_cluster(ClusterLoad(1e6, 1_000, "arrow"), 2, COST)
    assert plan.max_records == math.ceil(8 * 2e6 / 0.73 / 3_847)
    slow = assess_cluster(ClusterLoad(1e6, 100_000), 2, COST)
    assert slow.batch.seconds > 2
    assert slow.max_records == math.ceil(8 * slow.batch.seconds * 1e6 / 2.96)


def test_memory_is_that_of_the_executor_with_most_stores():
    load = ClusterLoad(1e6, 1_000, held=10_000_000)
    memory = assess_cluster(load, 4, COST, cores_per_executor=2).memory
    assert memory.stores == most_stores(1_000, 4) > 250
    assert memory.held_bytes == memory.stores * 10_000 * 103
    assert memory.stores_bytes == memory.stores * 23_040
    assert memory.workers_bytes == 2 * 300 * MIB
    assert memory.heap_bytes == 2 * GIB
    assert assess_cluster(load, 1, COST).memory.held_bytes == 1_030_000_000


@given(stores=st.integers(1, 10**6), executors=st.integers(1, 1000))
def test_the_most_stores_of_an_executor_are_no_fewer_than_the_mean(stores, executors):
    assert stores / executors <= most_stores(stores, executors) <= stores


def test_a_lost_executor_is_warned_of_if_the_others_do_not_keep_up():
    assert (
        assess_cluster(ClusterLoad(1e5, 4), 1, COST).warnings[-1].startswith("with one executor nothing is processed")
    )
    assert "events take 4.4 of 4 cores" in assess_cluster(ClusterLoad(1.5e6, 4), 2, COST).warnings[-1]
    assert assess_cluster(ClusterLoad(1.5e6, 4), 3, COST).warnings == ()


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ((0, 1), "0 events/s; expected: more than 0"),
        ((math.nan, 1), "nan events/s"),
        ((1, 0), "0 stores; expected: 1 to 10,000,000"),
        ((1, 1, "json", -1), "-1 messages held; expected: 0 or more"),
    ],
)
def test_a_load_out_of_range_is_wrong_use(values, complaint):
    with pytest.raises(UsageError, match=complaint):
        ClusterLoad(*values)


def test_no_cores_and_no_time_are_wrong_use():
    with pytest.raises(UsageError, match="0 cores an executor; expected: at least 1"):
        plan_cluster(ClusterLoad(1, 1), cores_per_executor=0)
    with pytest.raises(UsageError, match="batches of 0 s; expected: more than 0 s"):
        plan_cluster(ClusterLoad(1, 1), latency_s=0)


# --- docs/sizing.md --------------------------------------------------------------------------------------------------


def table(heading: str) -> list[str]:
    """Return the rows of the first table under a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    lines = re.search(r"^\| ---[^\n]*\n((?:\|[^\n]*\n)+)", text, re.MULTILINE)
    assert lines, f"no table under {heading}"
    return lines[1].splitlines()


def test_the_page_has_every_constant():
    documented = {cells[1].strip(" `"): cells[2] for cells in (line.split("|") for line in table("### Its constants"))}
    values = {field.name: getattr(COSTS, field.name) for field in dataclasses.fields(Costs)}
    units = {"us": "µs", "ms": "ms", "bytes": "bytes", "events": "events"}
    expected = {name: f" {value:,} {units[name.rpartition('_')[2]]} " for name, value in values.items()}
    assert documented == expected


def test_the_page_says_which_limit_is_reached_first():
    lines = []
    for content_type in TYPES:
        for cores in (10, 100, 1000):
            plan = assess_cluster(ClusterLoad(1e7, 10**5, content_type), cores // 10, cores_per_executor=10)
            batch, share = plan.batch, 100 * MAX_SHARE * plan.limits[0].used
            parts = (batch.driver_s, batch.read_tasks_s + batch.state_partitions_s, batch.stores_s, batch.events_s)
            cells = [
                content_type,
                f"{cores:,}",
                f"{share:.0f} %",
                *map(seconds_of, (batch.seconds, *parts)),
                plan.first,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    assert table("### Which limit is reached first") == lines


def seconds_of(seconds: float) -> str:
    return f"{seconds:.2f} s" if math.isfinite(seconds) else "no end"


def test_the_page_has_the_shortest_batches():
    lines = []
    for stores in (100, 1_000, 10_000, 100_000):
        plan = plan_cluster(ClusterLoad(1e6, stores, "arrow"), cores_per_executor=1, latency_s=0.001)
        batch = plan.batch
        cells = [f"{stores:,}", f"{plan.cores:,}", seconds_of(batch.seconds), batch.longest]
        lines.append(f"| {' | '.join(cells)} |")
    assert table("### The shortest batch") == lines
