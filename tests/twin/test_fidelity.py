"""Fidelity: the share of the measurements of the last day that the twin matched (docs/state.md, "Fidelity")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.profile import examples
from tests.support.twin_driver import TwinDriver
from twin.alerts.episodes import Alert
from twin.stores.drift import LOW_FIDELITY, MIN_TESTS, Drift

HOUR_S = 3600
OFF = 10**6  # entries of no structure here
USED = 10  # of 40 entries


def counted() -> TwinDriver:
    """Return a driver of a structure of which a baseline is set and an operation was counted."""
    driver = TwinDriver()
    driver.put(count=USED)
    driver.measure(ents_used=USED)
    return driver


def measure_all(driver: TwinDriver, matches: Sequence[bool], gap_s: int = 60) -> dict[str, Any]:
    for is_match in matches:
        driver.wait(gap_s)
        driver.measure(ents_used=USED if is_match else OFF)
    state: dict[str, Any] = driver.state()
    return state


def test_it_is_null_until_ten_measurements_have_tested_the_twin() -> None:
    driver = counted()
    assert measure_all(driver, [True] * (MIN_TESTS - 1))["fidelity"] is None
    assert measure_all(driver, [False])["fidelity"] == 0.9


def test_a_store_of_measurements_alone_has_none() -> None:
    driver = TwinDriver()
    for used in range(30):
        driver.wait(60)
        driver.measure(ents_used=used)
    assert driver.state()["fidelity"] is None


def test_a_resync_is_held_against_the_model_that_it_replaces() -> None:
    driver = counted()
    for _ in range(MIN_TESTS):
        driver.wait(60)
        driver.put(count=40)
        driver.measure(resync=True, ents_used=OFF)
        driver.measure(resync=True, ents_used=0)
    assert driver.state()["fidelity"] == 0.0


def test_all_resources_of_a_measurement_have_to_match() -> None:
    driver = counted()
    for _ in range(MIN_TESTS):
        driver.wait(60)
        driver.measure(ents_used=USED, elems_used=OFF)
    assert driver.state()["fidelity"] == 0.0


def test_measurements_of_more_than_a_day_ago_are_forgotten() -> None:
    driver = counted()
    measure_all(driver, [False, True] * (MIN_TESTS // 2))  # two in a row that differ the same way are believed
    assert measure_all(driver, [True] * 23, HOUR_S)["fidelity"] == round(28 / 33, 4)
    assert measure_all(driver, [True], HOUR_S)["fidelity"] == 1.0


@settings(max_examples=examples(100), deadline=None)
@given(matches=st.lists(st.booleans(), max_size=120), gap_s=st.sampled_from([60, 900, 3600, 5000]))
def test_it_is_the_share_of_the_hours_of_the_last_day(matches: list[bool], gap_s: int) -> None:
    from twin.base.conditions import ENTRIES

    drift = Drift()
    times = [(number + 1) * gap_s for number in range(len(matches))]
    for time, is_match in zip(times, matches, strict=True):
        drift.note_test({ENTRIES: (50, 50 if is_match else 90, 100)}, 5.0, time * 10**6)
    last = times[-1] // HOUR_S if times else 0
    recent = [is_match for time, is_match in zip(times, matches, strict=True) if time // HOUR_S > last - 24]
    assert drift.fidelity == (round(sum(recent) / len(recent), 4) if len(recent) >= MIN_TESTS else None)
    assert len(drift.hours) <= 24


def test_a_clock_that_goes_back_forgets_later_hours() -> None:
    from twin.base.conditions import ENTRIES

    drift = Drift()
    for hour in (100, 101, 90):
        for _ in range(MIN_TESTS):
            drift.note_test({ENTRIES: (50, 50 if hour == 90 else 90, 100)}, 5.0, hour * HOUR_S * 10**6)
    assert (drift.fidelity, drift.tests) == (1.0, MIN_TESTS)


def test_it_outlasts_a_restart_and_a_header_of_before_begins_anew() -> None:
    driver = counted()
    before = measure_all(driver, [True, False] * MIN_TESTS)
    assert driver.reopen().state() == before
    without = {key: value for key, value in msgspec.to_builtins(Drift()).items() if key not in {"hours", "agreed"}}
    assert msgspec.convert(without, Drift).fidelity is None


def drifts_of(driver: TwinDriver) -> list[Alert]:
    """Return the records about drift; what is measured to be nearly full is watched besides."""
    return [alert for alert in driver.alerts if alert.condition == "drift"]


# --- the alert -------------------------------------------------------------------------------------------------------


def test_a_twin_that_is_wrong_now_and_then_drifts_without_three_in_a_row() -> None:
    driver = counted()
    measure_all(driver, [True, False] * 4)
    assert drifts_of(driver) == []
    measure_all(driver, [True, False])
    [alert] = drifts_of(driver)
    assert (alert.change, alert.condition, alert.resource) == ("opened", "drift", "entries")
    assert alert.cause.endswith("Of the 10 measurements of the last 24 hours 50 % matched.")
    measure_all(driver, [True, True, False, True, True])
    assert len(drifts_of(driver)) == 1
    measure_all(driver, [True])
    assert [alert.change for alert in drifts_of(driver)[1:]] == ["cleared"]


@pytest.mark.parametrize("matched", [3, 5])
def test_a_miss_in_four_opens_nothing(matched: int) -> None:
    driver = counted()
    state = measure_all(driver, ([True] * matched + [False]) * 12)
    assert state["fidelity"] >= LOW_FIDELITY
    assert drifts_of(driver) == []


def test_the_same_events_give_the_same_figure_in_any_pieces() -> None:
    at_once, other = counted(), counted()
    matches = [True, False, True, True] * 8
    whole = measure_all(at_once, matches)
    for is_match in matches:
        measure_all(other, [is_match])
        other.reopen()
    assert other.state() == whole
