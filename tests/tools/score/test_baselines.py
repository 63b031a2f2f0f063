"""The baselines on lines drawn by hand: steady, sawtooth, flat."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.by_hand import line, time_at
from tests.tools.score.baselines import BASELINES, NODE_EXPORTER, seconds_to_full, sliding_window
from tests.tools.score.samples import series
from twin.playback.pages import Alarm, predict_linear, static, straight_line

STEADY = line(200, (0, 0), (200, 100))  # half a point a minute
FLAT = line(600, (0, 78), (600, 78))
SAWTOOTH = np.tile(line(59.5, (0, 10), (40, 70), (59.5, 10)), 8)


def minutes(alarms: list[Alarm]) -> list[tuple[float, float | None]]:
    begin = time_at(0)
    return [
        ((item.opened - begin) / 60e6, None if item.cleared is None else (item.cleared - begin) / 60e6)
        for item in alarms
    ]


def test_the_rules_of_node_exporter_wait_for_an_hour_below_40_percent_free():
    [alarm] = minutes(straight_line(series(STEADY), NODE_EXPORTER))
    assert alarm == (180.5, None)  # 60 percent at minute 120, then an hour


def test_a_line_reaches_full_after_what_is_left():
    assert seconds_to_full(*predict_linear(STEADY, 360.0))[100] == pytest.approx(150 * 60)


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
    assert straight_line(series(SAWTOOTH), NODE_EXPORTER) == []
