"""MEASURE: the baseline, what draws it down, and the drift (docs/events.md)."""

import pytest

from tests.support.twin_driver import TwinDriver


def test_the_worst_resource_is_found_before_rounding() -> None:
    driver = TwinDriver(size=400_000_000)
    total = driver.state()["ents_max"]
    driver.measure(ents_used=0)
    driver.put(count=total // 10)
    entries = driver.state()["ents_used"]
    assert driver.measure(ents_used=entries + 1)["drift_pct"] == pytest.approx(-100 / total, abs=1e-4)


def test_baseline_and_drift_outlast_a_restart_of_the_twin() -> None:
    driver = TwinDriver()
    driver.measure(ents_used=10, elems_used=100)
    before = driver.get(count=2)
    assert driver.reopen().state() == before
    assert driver.get()["ents_used"] == 7
