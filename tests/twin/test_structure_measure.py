"""Baseline and drift of a structure: precision, restart of the twin. The rules: tests/cases/stores/measure.events."""

import pytest

from tests.support.twin_driver import TwinDriver
from twin.records.bounds import DATA_SET_BLOCKS_MAX, DATA_SET_PAGES_MAX


def test_the_worst_resource_is_found_before_rounding() -> None:
    driver = TwinDriver(size=400_000_000)
    total = driver.state()["ents_max"]
    driver.measure(ents_used=0)
    driver.put(count=total // 10)
    entries = driver.state()["ents_used"]
    assert driver.measure(ents_used=entries + 1)["drift_pct"] == pytest.approx(-100 / total, abs=1e-4)


def test_a_senseless_measurement_leaves_numbers_that_are_numbers() -> None:
    driver = TwinDriver()
    limit = 2**53 - 1  # what an event may say; messages: 2**31 - 1, a data set: 16 TB
    data_sets = {"QM01": {"blocks_used": DATA_SET_BLOCKS_MAX, "pages_used": DATA_SET_PAGES_MAX}}
    driver.measure(ents_used=limit, elems_used=limit, messages=2**31 - 1, smds=data_sets)
    driver.get(count=1_000_000)
    state = driver.put(1_000)
    assert state["ents_used"] > 2**40
    assert state["usage_pct"] > 0
    assert 0 < state["elems_used"] < 2**49


def test_baseline_and_drift_outlast_a_restart_of_the_twin() -> None:
    driver = TwinDriver()
    driver.measure(ents_used=10, elems_used=100)
    before = driver.get(count=2)
    assert driver.reopen().state() == before
    assert driver.get()["ents_used"] == 7


@pytest.mark.parametrize("qmgrs", [1, 2, 3, 7])
def test_a_sample_is_corrected_however_many_queue_managers_put(qmgrs: int) -> None:
    names = tuple(f"QM{number:02d}" for number in range(1, qmgrs + 1))
    driver = TwinDriver(size=40_000_000, queue_managers=names)
    for name in names:
        driver.put(count=30, qmgr=name)
    for ents in (600, 700, 800):
        state = driver.measure(ents_used=ents * qmgrs)
    assert state["ents_used"] == 800 * qmgrs
