"""Forecasts of stores that only measurements feed, and of stores whose model has drifted."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from tests.naive.private_estates import page_set
from tests.support.twin_driver import TwinDriver
from twin.forecast.levels import fall_of, last_peak
from twin.forecast.outlook import Extension

MINUTE = 60.0
LARGE = {"size": 64 << 20}


def level_fed(driver: TwinDriver, share: Callable[[float], float], minutes: int) -> list[dict]:
    """Measure a share of the space each minute, with resync; return the forecasts by minute, {} without one."""
    state = driver.state()
    field, total = ("elems_used", "elems_max") if "elems_max" in state else ("pages_used", "pages_total")
    forecasts = []
    for minute in range(minutes):
        measured = {field: int(state[total] * share(minute))}
        if field == "elems_used":
            measured["ents_used"] = measured[field] // 20
        forecast = driver.measure(resync=True, **measured)["forecast"]
        driver.wait(MINUTE)
        forecasts.append(forecast["resources"][0] if forecast else {})
    return forecasts


def filled_by_line() -> tuple[TwinDriver, list[dict]]:
    driver = TwinDriver(**LARGE)
    return driver, level_fed(driver, lambda minute: 0.012 * minute, 75)


def test_a_steady_rise_of_levels_is_forecast_and_alerted() -> None:
    driver, forecasts = filled_by_line()
    assert all(not forecast for forecast in forecasts[:5])
    for minute in (30, 45, 60):
        forecast, left = forecasts[minute], (1 / 0.012 - minute) * MINUTE
        assert forecast["resource"] == "elements"
        assert forecast["time_to_full_s"]["p10"] < left < forecast["time_to_full_s"]["p90"]
    probabilities = [forecast["full_probability"] for forecast in forecasts[10::10]]
    assert all(before < after for before, after in pairwise(probabilities))
    assert ("opened", "full-forecast", "elements") in driver.alert_changes()


def test_the_evidence_says_that_levels_are_extended() -> None:
    driver, _ = filled_by_line()
    alert = next(alert for alert in driver.alerts if alert.condition == "full-forecast")
    assert any("no puts and gets are reported" in reason and "levels" in reason for reason in alert.evidence)


def test_a_rise_that_levels_off_is_not_taken_for_a_line() -> None:
    driver = TwinDriver(**LARGE)
    forecasts = level_fed(driver, lambda minute: 0.7 * (1 - math.exp(-minute / 20)), 90)
    assert "full-forecast" not in {condition for _, condition, _ in driver.alert_changes()}
    assert all(forecast.get("full_probability", 0.0) < 0.1 for forecast in forecasts[50:])


def test_pages_are_forecast_from_levels_too() -> None:
    driver = TwinDriver()
    driver.open(page_set(pages=20_000))
    forecasts = level_fed(driver, lambda minute: 0.010 * minute, 40)
    assert forecasts[-1]["resource"] == "pages"
    assert forecasts[-1]["full_probability"] > 0.2


def test_levels_are_kept_with_the_state() -> None:
    whole, reopened = TwinDriver(**LARGE), TwinDriver(**LARGE)
    assert level_fed(whole, lambda minute: 0.012 * minute, 8)
    level_fed(reopened, lambda minute: 0.012 * minute, 8)
    reopened.reopen()
    for driver in (whole, reopened):
        driver.wait(MINUTE)
    assert reopened.state() == whole.state()
    assert whole.state()["forecast"] is not None


def test_a_forecast_ends_when_measurements_do() -> None:
    driver = TwinDriver(**LARGE)
    level_fed(driver, lambda minute: 0.010 * minute, 40)
    assert driver.wait(MINUTE)["forecast"] is not None
    for _ in range(60):
        state = driver.wait(MINUTE)
    assert state["forecast"] is None
    assert "full-forecast" not in {condition for _, condition, _ in driver.alert_changes()}


def test_a_store_that_is_taken_over_again_and_again_is_forecast_from_its_levels_beside_puts() -> None:
    plain = LARGE | {"offload": "NONE", "cf_level": 4}  # its rules would offload what the levels have in the structure
    alone, beside = TwinDriver(**plain), TwinDriver(**plain)
    beside.put(1000)
    for driver in (alone, beside):
        level_fed(driver, lambda minute: 0.012 * minute, 30)
    ours, theirs = (driver.state()["forecast"]["resources"][0]["time_to_full_s"]["p50"] for driver in (beside, alone))
    assert ours == pytest.approx(theirs, rel=0.05)  # the rules of the store rolled forward, and a line
    for _ in range(60):  # measurements end, events continue: by flows again
        beside.put(1000)
        beside.wait(MINUTE)
    assert beside.state()["levels"] is None


def test_a_store_that_is_only_tested_is_forecast_from_its_puts() -> None:
    driver = TwinDriver(**LARGE)
    for minute in range(30):
        driver.put(1000, count=10)
        driver.measure(ents_used=10 * (minute + 1))
        driver.wait(MINUTE)
    assert driver.state()["levels"] is None
    assert not driver.twin.monitor.is_by_levels(driver.twin, driver.twin.clock // 10_000_000)


@pytest.mark.parametrize("seed", range(5))
def test_extensions_of_noisy_lines_hold_the_truth_about_as_often_as_they_say(seed: int) -> None:
    chance, normal, held = np.random.default_rng(seed), np.random.default_rng(99), 0
    for _ in range(40):
        slope, ticks = chance.uniform(0.0005, 0.003), [*range(0, 180, 6)]
        shares = [float(0.1 + slope * tick + chance.normal(0, 0.004)) for tick in ticks]
        fit = Extension.fit(ticks, shares)
        assert fit is not None
        low, high = np.quantile(fit.full_at(normal.normal(size=(400, 3))), (0.1, 0.9), method="inverted_cdf")
        held += low < (0.9 / slope - ticks[-1]) < high
    assert 24 <= held <= 40


def test_a_fall_begins_a_new_rise_and_falling_levels_are_not_extended() -> None:
    up = [0.1 + 0.01 * number for number in range(10)]
    fit = Extension.fit([*range(0, 120, 6)], [*up, *up])
    assert fit is not None
    assert fit.levels == 10
    assert Extension.fit([*range(0, 60, 6)], up[::-1]) is None
    assert Extension.fit([0, 6, 12], up[:3]) is None
    assert Extension.fit([0, 6, 12], []) is None  # a resource that no measurement names


def filled_by_puts(driver: TwinDriver, measured_share: float | None = None) -> tuple[float, str]:
    """Fill a store, measured once if asked for; return p90 / p10 of a forecast after that, and the evidence."""
    width = 0.0
    for number in range(450):
        driver.put(1000, count=60)
        state = driver.wait(10)
        if number == 200 and measured_share is not None:
            driver.measure(elems_used=int(state["elems_used"] * measured_share))
        if number == 380:
            times = state["forecast"]["resources"][0]["time_to_full_s"]
            width = times["p90"] / times["p10"]
    return width, "; ".join(next(alert for alert in driver.alerts if alert.condition == "full-forecast").evidence)


def drifting(measured_share: float) -> tuple[float, str]:
    """Return `filled_by_puts` of a store whose model has drifted from a measurement."""
    driver = TwinDriver(**LARGE)
    driver.measure(ents_used=0, elems_used=0)
    return filled_by_puts(driver, measured_share)


def test_a_large_drift_makes_the_forecast_wider_and_says_so() -> None:
    (exact, none), (drifted, reason) = drifting(1.0), drifting(0.5)
    assert drifted > 1.3 * exact > 1.0
    assert "than was measured" not in none
    assert "the model holds 20.0 points more of the elements than was measured" in reason


def test_a_forecast_that_no_measurement_has_confirmed_says_so() -> None:
    _, reason = filled_by_puts(TwinDriver(**LARGE))
    assert "not checked against DISPLAY: the figures are the model's" in reason


def unconfirmed(lost: int) -> tuple[float, str]:
    """Return `filled_by_puts` of a store that nobody measures, after events were lost."""
    driver = TwinDriver(**LARGE)
    for number in (1, lost + 2):
        driver.get(seq=number)
    return filled_by_puts(driver)


def test_lost_events_make_the_forecast_of_an_unconfirmed_model_wider_and_it_says_so() -> None:
    (few, none), (many, reason) = unconfirmed(10), unconfirmed(400)
    assert many > 1.3 * few > 1.0
    assert "lost" not in none
    assert "not checked against DISPLAY: the figures are the model's; 37 %" in reason
    assert reason.endswith("% of the events are lost: the times are wider")


@pytest.mark.parametrize("kind", ["structure", "page_set"])
def test_an_alert_of_levels_that_fall_says_so_and_clears(kind: str) -> None:
    """The rise that the alert extends is over: levels that fall were never looked at again."""
    driver = TwinDriver(**LARGE)
    if kind == "page_set":
        driver.open(page_set(pages=20_000))
    level_fed(driver, lambda minute: 0.012 * minute, 75)
    top = driver.time
    level_fed(driver, lambda minute: 0.888 - 0.02 * minute, 18)
    foreseen = [alert for alert in driver.alerts if alert.condition == "full-forecast"]
    assert foreseen[0].change == "opened" and foreseen[0].time_to_full_s is not None
    falling = [alert for alert in foreseen if "falling since" in alert.cause]
    assert falling and all(alert.time_to_full_s is None and not alert.runbook for alert in falling)
    assert all(alert.severity in ("info", "warning") and "full in" not in alert.cause for alert in falling)
    assert top < falling[0].time < foreseen[-1].time
    assert foreseen[-1].change == "cleared"


def test_a_resource_that_appears_leaves_the_levels_of_the_others() -> None:
    """The first message offloaded ended every forecast for five levels, at the threshold at which it matters."""
    driver = TwinDriver(**LARGE)
    level_fed(driver, lambda minute: 0.012 * minute, 60)
    driver.measure(resync=True, smds={"QM02": {"blocks_total": 1024, "blocks_used": 20, "messages": 4}})
    forecasts = level_fed(driver, lambda minute: 0.72 + 0.012 * minute, 5)
    assert all(forecast["resource"] == "elements" for forecast in forecasts)


def test_equal_levels_of_a_whole_percentage_do_not_end_a_fall() -> None:
    assert falling_at([0.5, 0.9, 0.88, 0.86]) == 1
    assert falling_at([0.5, 0.9, 0.88, 0.88, 0.88]) == 1
    assert falling_at([0.5, 0.9, 0.88, 0.88, 0.89]) is None
    assert falling_at([0.5, 0.9, *[0.88] * 7]) is None  # it rests
    assert falling_at([0.5, 0.9, 0.899]) == 1
    assert falling_at([0.5, 0.9, 0.899, 0.899]) is None  # a message less, counted exactly
    assert falling_at([0.9]) is None


def falling_at(shares: list[float]) -> int | None:
    return fall_of(list(range(len(shares))), shares)


@pytest.mark.parametrize(
    ("held", "place"),
    [
        ([0, 10, 20, 30, 20, 10], 3),
        ([0, 30, 30, 20], 2),  # the last of several
        ([0, 40, 10, 35, 30], 3),  # the fall before the last rise is another one
        ([0, 30, 18, 19, 10], 1),  # a pause is none
        ([30, 20, 10], 0),
    ],
)
def test_a_fall_begins_at_its_peak(held: list[float], place: int) -> None:
    assert last_peak(held) == place
