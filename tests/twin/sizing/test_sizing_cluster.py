"""Cores for the job: batches in equilibrium, the fewest cores, and the tables of docs/capacity.md."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.base.errors import UsageError
from twin.sizing import ClusterLoad, Costs, batch_seconds, plan_cluster
from twin.sizing.cluster import COSTS, MAX_SHARE, batch_parts

PAGE = Path(__file__).resolve().parents[3] / "docs" / "capacity.md"
# As the defaults once were; what is measured later changes no test but those of the page.
COST = Costs(arrow_us=0.73, store_ms=2.0, state_partition_ms=68.0, read_task_ms=34.0, batch_ms=60.0, task_ms=1.0)
loads = st.builds(ClusterLoad, st.floats(1, 1e8), st.integers(1, 10**6), st.sampled_from(("json", "ndjson", "arrow")))


def test_a_batch_is_the_driver_and_the_work_of_all_cores_over_what_events_leave():
    """With events in all stores: (driver + (stores + partitions + tasks) / cores) / (1 - share)."""
    load = ClusterLoad(1e6, 1_000, "arrow")
    work = (1_000 * 2.0 + 8 * 68.0 + 8 * 34.0) / 8 / 1e3
    expected = ((60 + 16) / 1e3 + work) / (1 - 1e6 * 0.73e-6 / 8)
    assert batch_seconds(load, 8, COST) == pytest.approx(expected)


def test_a_batch_has_no_more_stores_than_events():
    seconds = batch_seconds(ClusterLoad(50, 10_000), 4, COST)
    assert batch_parts(ClusterLoad(50, 10_000), 4, COST)["stores"] == pytest.approx(50 * seconds * 2e-3 / 4)


@given(load=loads, cores=st.integers(1, 2000))
def test_the_events_of_a_batch_are_those_that_arrive_during_it(load, cores):
    parts, seconds = batch_parts(load, cores), batch_seconds(load, cores)
    share = load.events_per_second * COSTS.event_us(load.content_type) / 1e6 / cores
    if math.isfinite(seconds):
        assert parts["events"] == pytest.approx(share * seconds)
    else:
        assert share >= 1


@given(load=loads, rate=st.floats(1, 1e8), latency=st.floats(0.05, 10))
def test_more_events_a_second_never_need_fewer_cores(load, rate, latency):
    other = dataclasses.replace(load, events_per_second=rate)
    fewer, more = sorted((load, other), key=lambda each: each.events_per_second)
    plans = [plan_cluster(each, latency_s=latency) for each in (fewer, more)]
    assert plans[0].cores <= plans[1].cores


@given(load=loads, latency=st.floats(0.05, 10))
def test_a_plan_has_the_fewest_cores_with_short_batches_or_those_with_the_shortest(load, latency):
    plan = plan_cluster(load, latency_s=latency)
    share = load.events_per_second * COSTS.event_us(load.content_type) / 1e6 / plan.cores
    assert plan.batch_s == batch_seconds(load, plan.cores) and share <= MAX_SHARE + 1e-9
    fewer = max(1, plan.cores - 1)
    if plan.batch_s <= latency:
        too_few = batch_seconds(load, fewer) > latency or share * plan.cores / fewer > MAX_SHARE
        assert plan.cores == 1 or too_few
    else:
        assert "more than" in plan.warnings[0]
        assert batch_seconds(load, plan.cores + 1) >= plan.batch_s


@pytest.mark.parametrize(
    ("load", "measured"), [(ClusterLoad(1_000, 39), 0.141), (ClusterLoad(100_000, 23, "arrow"), 0.180)]
)
def test_batches_that_were_measured_on_two_cores_are_predicted(load, measured):
    """docs/performance.md, From event to alert: the stores are those with events in a batch."""
    assert batch_seconds(load, 2) == pytest.approx(measured, rel=0.3)


def test_one_machine_is_enough_up_to_its_cores():
    few, many = ClusterLoad(1e5, 100), ClusterLoad(1e7, 1_000)
    assert plan_cluster(few).is_one_machine and not plan_cluster(many).is_one_machine
    plan = plan_cluster(many)
    assert plan_cluster(many, machine_cores=plan.cores).is_one_machine
    assert not plan_cluster(many, machine_cores=plan.cores - 1).is_one_machine


def test_a_store_with_more_events_than_a_core_has_room_for_is_named():
    assert "no cluster helps it" in plan_cluster(ClusterLoad(15e6, 1, "arrow"), latency_s=10).warnings[-1]
    assert plan_cluster(ClusterLoad(15e6, 2, "arrow"), latency_s=10).warnings == ()


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ((0, 1), "0 events/s; expected: more than 0"),
        ((math.nan, 1), "nan events/s"),
        ((1, 0), "0 stores; expected: 1 to 10,000,000"),
    ],
)
def test_a_load_out_of_range_is_wrong_use(values, complaint):
    with pytest.raises(UsageError, match=complaint):
        ClusterLoad(*values)


def test_no_cores_and_no_time_are_wrong_use():
    with pytest.raises(UsageError, match="0 cores of a machine; expected: at least 1"):
        plan_cluster(ClusterLoad(1, 1), machine_cores=0)
    with pytest.raises(UsageError, match="batches of 0 s; expected: more than 0 s"):
        plan_cluster(ClusterLoad(1, 1), latency_s=0)


# --- docs/capacity.md -------------------------------------------------------------------------------------------------


def table(heading: str) -> list[str]:
    """Return the rows of the first table under a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    lines = re.search(r"^\| ---[^\n]*\n((?:\|[^\n]*\n)+)", text, re.MULTILINE)
    assert lines, f"no table under {heading}"
    return lines[1].splitlines()


def test_the_page_has_every_constant():
    documented = {cells[1].strip(" `"): cells[2] for cells in (line.split("|") for line in table("### Constants"))}
    values = {field.name: getattr(COSTS, field.name) for field in dataclasses.fields(Costs)}
    units = {"us": "µs", "ms": "ms"}
    expected = {name: f" {value:,} {units[name.rpartition('_')[2]]} " for name, value in values.items()}
    assert documented == expected


def test_the_page_has_the_shortest_batches():
    lines = []
    for stores in (100, 1_000, 10_000, 100_000):
        plan = plan_cluster(ClusterLoad(1e6, stores, "arrow"), latency_s=0.001)
        longest = max(plan.parts_s, key=lambda name: plan.parts_s[name])
        lines.append(f"| {stores:,} | {plan.cores:,} | {plan.batch_s:.2f} s | {longest} |")
    assert table("### The shortest batch") == lines
