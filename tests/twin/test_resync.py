"""A MEASURE with resync: the twin takes over what was measured."""

from __future__ import annotations

import pytest

from tests.naive.private_estates import page_set, queue_file
from tests.support.twin_driver import TwinDriver
from twin.base.conditions import Pool
from twin.stores.resources import STRUCTURE, read_usage


def elements_of(driver):
    """Return the elements in use in the model, which the state record has only if they were counted or measured."""
    return int(read_usage(driver.twin.tables.store)["used"][STRUCTURE[Pool.ELEMENTS].row])


def test_elements_that_were_not_measured_are_as_full_as_the_structure():
    driver = TwinDriver()
    maximum = driver.state()["elems_max"]
    state = driver.measure(resync=True, ents_used=driver.state()["ents_max"] // 4, usage_pct=60)
    assert elements_of(driver) == round(0.6 * maximum)
    assert state["usage_pct"] == pytest.approx(60, abs=0.01)
    assert (state["elems_used"], state["measured"]) == (None, ["ents_used", "usage_pct"])  # nobody has counted them
    state = driver.measure(resync=True, ents_used=0, elems_used=7, usage_pct=60)
    assert state["elems_used"] == 7


def test_elements_are_at_most_as_full_as_before_where_entries_are_the_fuller_ones():
    driver = TwinDriver()
    maximum, entries = driver.state()["elems_max"], driver.state()["ents_max"]
    driver.measure(resync=True, ents_used=entries // 10, usage_pct=40)
    driver.measure(resync=True, ents_used=entries // 2, usage_pct=50)
    assert elements_of(driver) == round(0.4 * maximum)
    driver.measure(resync=True, ents_used=entries // 5, usage_pct=20)
    assert elements_of(driver) == round(0.2 * maximum)


def test_a_drift_alert_is_cleared_by_a_resync():
    driver = TwinDriver()
    driver.measure(ents_used=0)
    driver.put(1_000, count=25)
    for _ in range(3):
        driver.wait(10)
        driver.measure(ents_used=0)
    assert ("opened", "drift", "entries") in driver.alert_changes()
    driver.wait(10)
    driver.measure(resync=True, ents_used=0)
    assert ("cleared", "drift", "entries") in driver.alert_changes()


@pytest.mark.parametrize(("config", "dropped"), [(page_set(), 8), (queue_file(), 9)])
def test_private_stores_resync_too(config, dropped):
    driver = TwinDriver()
    driver.open(config)
    driver.put(5_000, count=9)
    before = driver.state()
    used, field = ("pages_used", "pages_used") if "pages_used" in before else ("blocks_nonpersistent",) * 2
    state = driver.measure(resync=True, **{field: 3})
    assert state[used] == 3
    assert state["baseline"]["dropped_messages"] == dropped


def test_a_resync_outlasts_a_restart_of_the_twin():
    driver = TwinDriver()
    driver.put(1_000, count=20)
    state = driver.measure(resync=True, ents_used=5, elems_used=30)
    assert driver.reopen().state() == state
