"""A MEASURE with resync: the twin takes over what was measured."""

from __future__ import annotations

import pytest

from tests.naive.private_estates import page_set, queue_file
from tests.support.twin_driver import TwinDriver
from twin.conditions import Pool
from twin.stores.resources import STRUCTURE, read_usage


def test_a_model_above_the_measurement_takes_it_over():
    driver = TwinDriver()
    driver.measure(ents_used=0, elems_used=0)
    driver.put(1_000, count=20)
    events = driver.state()["events"]
    state = driver.measure(resync=True, ents_used=5, elems_used=30)
    assert (state["ents_used"], state["elems_used"], state["messages"]) == (5, 30, 5)
    assert state["baseline"]["dropped_messages"] == 15  # the other five are those that were measured
    assert state["baseline"]["resynced_at"] == state["time"]
    assert state["drift_pct"] == 0
    assert state["events"] == events + 1


def test_gets_draw_the_new_baseline_down():
    driver = TwinDriver()
    driver.put(1_000, count=20)
    driver.measure(resync=True, ents_used=10, elems_used=60)
    state = driver.get(count=5)
    assert (state["ents_used"], state["elems_used"]) == (5, 30)


def test_what_was_not_measured_stays_as_large_as_it_was():
    driver = TwinDriver()
    driver.put(1_000, count=20)
    before = driver.state()
    state = driver.measure(resync=True, ents_used=7)
    assert state["ents_used"] == 7
    assert state["elems_used"] == before["elems_used"]


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


def test_a_share_in_use_is_the_baseline_of_elements_and_tests_the_model_from_then_on():
    driver = TwinDriver()
    driver.put(1_000, count=20)
    maximum = driver.state()["elems_max"]
    state = driver.measure(ents_used=20, usage_pct=90)
    assert (state["elems_used"], state["drift_pct"]) == (round(0.9 * maximum), 0)
    state = driver.measure(ents_used=20, usage_pct=40)
    assert (state["elems_used"], state["drift_pct"]) == (round(0.9 * maximum), pytest.approx(50, abs=0.5))


def test_messages_of_open_units_of_work_stay():
    driver = TwinDriver()
    driver.put(1_000, count=3, uow="u")
    driver.put(1_000, count=4)
    state = driver.measure(resync=True, ents_used=5, elems_used=30)
    assert (state["ents_used"], state["uncommitted"]) == (5, 3)
    assert state["baseline"]["dropped_messages"] == 2  # 7 are known, 5 were measured


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


def test_without_the_request_the_model_stays():
    driver = TwinDriver()
    driver.measure(ents_used=0)
    driver.put(1_000, count=20)
    assert driver.measure(resync=False, ents_used=5)["ents_used"] == 20
    assert "resynced_at" not in driver.state()["baseline"]


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


def test_a_get_that_waits_takes_no_message_that_is_put_behind_the_measurement():
    """The messages that it took are those that nothing had told of: the measurement knows of their end."""
    driver = TwinDriver()
    driver.get(count=5)
    driver.measure(resync=True, ents_used=3, elems_used=18)
    state = driver.put(1_000, count=7)
    assert (state["ents_used"], state["messages"], state["unmatched_gets"]) == (10, 10, 5)
    assert driver.get(count=2)["ents_used"] == 8


def test_a_get_of_a_message_waits_for_it_behind_the_measurement():
    driver = TwinDriver()
    driver.get(msgid="a1")
    driver.measure(resync=True, ents_used=3, elems_used=18)
    assert driver.put(1_000, msgid="a1")["ents_used"] == 3


def test_depths_alone_keep_the_elements_that_a_share_in_use_has_shown():
    """DISPLAY QSTATUS follows DISPLAY CFSTATUS: no answer has elements, and the state record shows none."""
    driver = TwinDriver()
    entries = driver.state()["ents_max"] // 4
    driver.measure(resync=True, ents_used=entries, usage_pct=60)
    state = driver.measure(resync=True, messages=entries)
    assert state["usage_pct"] == pytest.approx(60, abs=0.01)
    state = driver.put(1_000)
    assert state["elems_used"] == round(0.6 * state["elems_max"]) + 6  # of the message
