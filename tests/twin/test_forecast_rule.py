"""The alert rule: when a forecast is a watch, a page, or no danger any more."""

from __future__ import annotations

from typing import Any

import pytest

from twin.estate import ForecastSettings
from twin.forecast.rule import (
    FLOOR_PROBABILITY,
    Danger,
    Situation,
    hold_s,
    is_calm,
    is_danger,
    is_worth_a_page,
    needed,
    paying,
    situation_of,
)

CONFIG = ForecastSettings(forecast_probability=0.4, forecast_lead_s=1800.0)
NEAR, FAR = (600.0, 900.0, 1200.0), (3000.0, 4600.0, 7000.0)


@pytest.mark.parametrize(
    ("probability", "times", "danger", "calm"),
    [
        (0.4, NEAR, True, False),
        (0.39, NEAR, False, False),
        (0.12, NEAR, False, False),
        (0.11, NEAR, False, True),
        (0.9, FAR, False, True),  # beyond 2.5 times the lead
        (0.9, (1000.0, 1801.0, 2500.0), False, False),
    ],
)
def test_between_danger_and_calm_there_is_a_band_in_which_nothing_changes(
    probability: float, times: tuple[float, float, float], danger: bool, calm: bool
) -> None:
    assert is_danger(probability, probability, times, CONFIG) is danger
    assert is_calm(probability, times, CONFIG) is calm


def test_where_nothing_fills_it_is_calm() -> None:
    assert is_calm(0.0, None, CONFIG)


def test_a_danger_holds_for_a_share_of_the_time_left_but_at_most_a_minute() -> None:
    assert [hold_s(times) for times in (NEAR, FAR)] == [pytest.approx(36.0), 60.0]


@pytest.mark.parametrize(("usage", "turned"), [(0.9, True), (0.7, False), (0.7, True)])
def test_a_page_is_surer_where_the_store_is_low_or_rises_like_this_one_have_turned_back(
    usage: float, turned: bool
) -> None:
    sure, likely = (page(probability, usage=usage, turned_before=turned) for probability in (0.92, 0.91))
    assert is_worth_a_page(sure, CONFIG)
    assert not is_worth_a_page(likely, CONFIG)
    assert is_worth_a_page(page(0.75), CONFIG)
    assert not is_worth_a_page(page(0.74), CONFIG)


def test_a_page_is_for_what_fills_within_the_time_that_a_person_needs() -> None:
    assert is_worth_a_page(page(0.95, 1800.0), CONFIG)
    assert not is_worth_a_page(page(0.95, 1801.0), CONFIG)


def test_a_page_needs_less_where_getters_stopped_and_more_where_they_keep_up() -> None:
    for danger, least in (
        (page(0.0, usage=0.3)._replace(is_clear=True), 0.7),
        (page(0.0)._replace(keeps_up=True), 0.9),
        (page(0.0, turned_before=True)._replace(keeps_up=True), 0.92),
        (page(0.0, is_asked=True)._replace(keeps_up=True), 0.75),
    ):
        assert is_worth_a_page(danger._replace(probability=least), CONFIG)
        assert not is_worth_a_page(danger._replace(probability=least - 0.01), CONFIG)


def test_what_passes_its_threshold_just_now_is_a_page_within_twice_that_time() -> None:
    asked = page(0.65, 3600.0, usage=0.7, turned_before=True, is_asked=True)
    assert is_worth_a_page(asked, CONFIG)
    for other in (
        asked._replace(probability=0.64),
        asked._replace(times=(3600.0, 3601.0, 7200.0)),
        asked._replace(is_asked=False),
    ):
        assert not is_worth_a_page(other, CONFIG)


@pytest.mark.parametrize("choice", [0.1, 0.5, 1.5])
def test_with_ten_minutes_left_no_choice_and_no_situation_makes_a_page_later(choice: float) -> None:
    config = ForecastSettings(needless_per_saved=choice)
    near = page(0.85, 600.0, usage=0.3, turned_before=True)
    for danger in (near, near._replace(usage=0.9, turned_before=False, keeps_up=True)):
        assert is_worth_a_page(danger, config, lambda _: 0.25)
        assert not is_worth_a_page(danger._replace(probability=0.84), config, lambda _: 0.25)
    assert not is_worth_a_page(near._replace(times=(300.0, 601.0, 900.0)), config, lambda _: 0.25)


@pytest.mark.parametrize("limit", [0.65, 0.7, 0.75, 0.9, 0.92])
def test_the_odds_that_a_page_needs_fall_as_a_saved_filling_is_worth_more(limit: float) -> None:
    assert paying(limit, 1.5) == limit  # to the last bit: the choice of an estate that makes none
    odds = [paying(limit, needless) / (1 - paying(limit, needless)) for needless in (0.5, 1.5, 4.0)]
    assert odds == pytest.approx([3 * odds[1], odds[1], odds[1] * 1.5 / 4])


@pytest.mark.parametrize(
    ("choice", "watch", "needed"),
    [
        ({}, 0.5, 0.75),
        ({"policy": "balanced"}, 0.5, 0.75),
        ({"policy": "quiet"}, 0.5, 0.9),  # a watch wakes nobody
        ({"policy": "early"}, 0.273, 0.53),
        ({"needless_per_saved": 6.0}, 0.2, 0.429),
    ],
)
def test_a_site_that_pays_more_for_a_filling_is_warned_sooner(
    choice: dict[str, Any], watch: float, needed: float
) -> None:
    config, times = ForecastSettings(**choice), (450.0, 900.0, 1800.0)
    for above, holds in ((0.01, True), (-0.01, False)):
        assert is_danger(0.0, watch + above, times, config) is holds
        assert is_worth_a_page(page(needed + above), config) is holds


def page(
    probability: float,
    left: float = 900.0,
    usage: float = 0.9,
    turned_before: bool = False,
    is_asked: bool = False,
) -> Danger:
    times = (left, left, 2 * left)
    return Danger(probability, times, usage, turned_before=turned_before, is_asked=is_asked)


@pytest.mark.parametrize(
    ("left", "least"), [(3600.0, 0.65), (1800.0, 0.575), (900.0, 0.5), (450.0, 0.375), (0.0, 0.25)]
)
def test_the_less_time_is_left_the_less_likely_a_danger_has_to_be_for_a_watch(left: float, least: float) -> None:
    times, config = (left / 2, left, 2 * left), ForecastSettings()
    assert is_danger(0.76, least + 0.001, times, config)
    assert not is_danger(0.76, least - 0.001, times, config)


@pytest.mark.parametrize(("left", "least"), [(7200.0, 0.9), (5400.0, 0.845), (3600.0, 0.77), (1800.0, 0.77)])
def test_earlier_a_watch_has_to_be_likely_within_the_horizon(left: float, least: float) -> None:
    times, config = (left / 2, left, 2 * left), ForecastSettings()
    assert is_danger(least + 0.001, 0.1, times, config)
    assert not is_danger(least - 0.001, 0.1, times, config)
    assert not is_danger(1.0, 1.0, (7000.0, 7201.0, 8000.0), config)
    assert not is_danger(0.94, 0.1, times, ForecastSettings(forecast_probability=0.95))


@pytest.mark.parametrize("situation", Situation)
def test_words_make_a_page_of_their_situation_need_more_or_less_but_not_in_the_last_ten_minutes(
    situation: Situation,
) -> None:
    in_it = {
        Situation.ASKED: {"is_asked": True},
        Situation.ASKED_KEEPING_UP: {"is_asked": True, "keeps_up": True},
        Situation.CLEAR: {"is_clear": True},
        Situation.TURNED: {"turned_before": True},
        Situation.KEEPING_UP: {"keeps_up": True},
        Situation.USUAL: {},
    }[situation]

    def least(left: float, worth: float) -> float:
        dangers = (page(0.0, left)._replace(probability=p / 1000, **in_it) for p in range(1001))  # type: ignore[arg-type]
        calls = (own for own in dangers if is_worth_a_page(own, CONFIG, lambda own: worth if own == situation else 1.0))
        return next(calls).probability

    fitted = least(601.0, 1.0)
    assert fitted == pytest.approx(needed(situation, CONFIG), abs=0.001)
    assert least(601.0, 2.0) < fitted
    assert least(600.0, 0.25) == min(fitted, FLOOR_PROBABILITY)
    if situation not in (Situation.ASKED, Situation.ASKED_KEEPING_UP):  # the ordinary rule follows the asked one
        assert least(601.0, 0.25) == pytest.approx(paying(fitted, 1.5 * 0.25), abs=0.001)
    certain = page(0.99, 601.0)._replace(**in_it)  # type: ignore[arg-type]
    assert situation_of(certain, CONFIG) == situation
