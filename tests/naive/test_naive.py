"""The oracle of a structure on random workloads. Cases worked by hand: tests/domain."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.naive import NaiveStructure
from tests.naive.estates import structure, write_estate
from tests.support.profile import examples
from tests.support.workloads import Workload, random_workload, workloads


def check_invariants(twin: NaiveStructure) -> None:
    state = twin.state()
    if state["messages"] is None:  # nothing was counted or measured
        assert not twin.messages
        assert not twin.units.open_units
        return
    assert state["messages"] >= sum(depth for depth, _ in state["queues"].values())
    assert (state["bytes"] or 0) == sum(size for _, size in state["queues"].values())
    assert state["gaps"] >= 0
    open_operations = [message for unit in twin.units.open_units for _, message in unit.operations]
    assert len(open_operations) == len(set(open_operations)) == (state["uncommitted"] or 0)
    for qmgr, smds in twin.data_sets.items():
        parts = [part for m in twin.messages if m.qmgr == qmgr for part in m.where]
        for block, pages in enumerate(smds.blocks):
            assert pages == sum(n for number, n in parts if number == block) <= smds.pages_per_block()


@settings(max_examples=examples(120), deadline=None)
@given(workloads())
def test_nothing_is_lost_or_counted_twice_in_random_workloads(workload: Workload) -> None:
    twin = NaiveStructure(workload.config, workload.aliases)
    for event in workload.events:
        twin.apply(event)
        check_invariants(twin)


@pytest.mark.parametrize("profile", ["mixed", "filling", "units", "held", "smds", "attributes"])
def test_long_workloads_repeat_and_reach_what_they_are_for(profile: str) -> None:
    workload = random_workload(7, 1500, profile)
    assert workload.events == random_workload(7, 1500, profile).events
    twin = NaiveStructure(workload.config, workload.aliases)
    for event in workload.events:
        twin.apply(event)
    check_invariants(twin)
    assert twin.events + twin.duplicates == 1500


def test_the_estate_of_a_workload_is_toml_with_its_aliases_as_mqsc(tmp_path: Path) -> None:
    path = write_estate(tmp_path, structure(init_size=65_536), {"ALIAS.QUEUE": "A.QUEUE"})
    described = tomllib.loads(path.read_text())
    assert described["structure"]["QSG1/APP1"]["init_size"] == 65_536
    assert described["smds"]["QSG1/APP1/QM02"] == {"size": 10 * 1024**2}
    assert "QALIAS(ALIAS.QUEUE)" in (tmp_path / described["import"][0]["mqsc"]).read_text()
