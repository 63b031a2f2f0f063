"""The baselines on lines drawn by hand: steady, sawtooth, flat."""

from __future__ import annotations

import numpy as np
import pytest

from tests.twin.scoring.samples import line, series, time_at
from twin.scoring.alarms import Alarm
from twin.scoring.baselines import (
    BASELINES,
    IN_MINUTES,
    NODE_EXPORTER,
    hold_for,
    predict_linear,
    seconds_to_full,
    sliding_window,
    static,
    static_pages,
    straight_line,
)

STEADY = line(200, (0, 0), (200, 100))  # half a point a minute
FLAT = line(600, (0, 78), (600, 78))
SAWTOOTH = np.tile(line(59.5, (0, 10), (40, 70), (59.5, 10)), 8)


def minutes(alarms: list[Alarm]) -> list[tuple[float, float | None]]:
    begin = time_at(0)
    return [
        ((item.opened - begin) / 60e6, None if item.cleared is None else (item.cleared - begin) / 60e6)
        for item in alarms
    ]


def test_a_line_opens_at_its_percentage_and_clears_below_it():
    usage = line(100, (0, 60), (40, 80), (60, 90), (100, 70))
    assert minutes(static(series(usage), 80.0)) == [(40.0, 80.5)]


def test_a_page_of_a_line_is_over_two_points_below_it_and_the_next_one_comes_after_ten_minutes():
    near = line(100, (0, 60), (40, 80), (50, 78.5), (60, 82), (70, 77), (75, 82), (80, 70), (91, 70), (100, 88))
    assert [opened for opened, _ in minutes(static(series(near), 80.0))] == [40.0, 54.5, 73.0, 96.0]
    assert minutes(static_pages(series(near), 80.0)) == [(40.0, 77.0), (96.0, None)]


def test_a_store_between_the_line_and_two_points_below_has_not_passed_it():
    assert static_pages(series(line(60, (0, 79), (60, 79))), 80.0) == []


def test_a_line_is_over_whatever_resource_is_above_it():
    low, high = line(60, (0, 10), (60, 20)), line(60, (0, 70), (60, 90))
    assert minutes(static(series(low, low, high), 80.0)) == [(30.0, None)]
    assert static(series(low, low, high), 80.0, structure_only=True) == []


def test_the_straight_line_of_a_line_is_the_line():
    level, slope = predict_linear(STEADY, 360.0)
    assert level[1:] == pytest.approx(STEADY[1:])
    assert slope[1:] == pytest.approx(0.5 / 60)
    assert slope[0] == 0  # one sample is no line
    assert seconds_to_full(level, slope)[100] == pytest.approx(150 * 60)


def test_the_straight_line_is_that_of_least_squares():
    usage = np.random.default_rng(3).uniform(0, 100, 60)
    level, slope = predict_linear(usage, 360.0)
    for last in (1, 5, 40, 59):
        first = max(0, last - 12)
        fitted = np.polyfit((np.arange(first, last + 1) - last) * 30.0, usage[first : last + 1], 1)
        assert slope[last] == pytest.approx(fitted[0])
        assert level[last] == pytest.approx(fitted[1])


def test_a_condition_counts_once_it_has_held():
    condition = np.array([1, 1, 0, 1, 1, 1, 1, 0], bool)
    assert hold_for(condition, 60.0).tolist() == [False, False, False, False, False, True, True, False]
    assert hold_for(condition, 0.0).tolist() == condition.tolist()


def test_the_rules_of_node_exporter_wait_for_an_hour_below_40_percent_free():
    [alarm] = minutes(straight_line(series(STEADY), NODE_EXPORTER)[0])
    assert alarm == (180.5, None)  # 60 percent at minute 120, then an hour


def test_in_minutes_they_wait_a_minute():
    [alarm] = minutes(straight_line(series(STEADY), IN_MINUTES)[0])
    assert alarm == (177.5, None)  # more than full 24 minutes later from 176.5 on, and a minute


def test_a_steady_line_is_foreseen_an_hour_before_by_the_trend():
    alarms, predictions = sliding_window(series(STEADY), 900.0, 3600.0)
    assert minutes(alarms) == [(140.0, None)]
    assert predictions.times_at(time_at(170))[1] == pytest.approx(30 * 60)
    assert predictions.chance is None


def test_the_trend_needs_its_whole_window():
    steep = line(20, (0, 0), (20, 90))
    assert minutes(sliding_window(series(steep), 900.0, 3600.0)[0]) == [(15.0, None)]


def test_on_a_flat_line_only_a_fixed_line_above_it_is_silent():
    counts = {item.name: len(item.judge(series(FLAT))[0]) for item in BASELINES}
    assert set(counts.values()) == {0}
    assert len(static(series(FLAT + 3), 80.0)) == 1


def test_a_sawtooth_frightens_the_trend_at_every_tooth():
    alarms, _ = sliding_window(series(SAWTOOTH), 900.0, 3600.0)
    assert len(alarms) == 8
    assert straight_line(series(SAWTOOTH), NODE_EXPORTER)[0] == []
