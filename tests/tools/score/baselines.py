"""Baselines: common monitoring rules (fixed and straight lines), applied to the same series as the twin.

- Fixed and straight lines of `twin.playback.pages`. 85 % is the default of a common monitor for MQ; the straight line
  is also drawn over 6 hours, as in node-exporter's mixin: warning if it is below zero 24 hours ahead, critical 4 hours
  ahead, each for 1 hour. predict_linear uses the history available, at least two samples (Prometheus, functions).
- Sliding window: a line through the last 15 minutes predicts full within 60.

None of them names a queue or gives an interval. As pages they are grouped like the twin's incidents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from tests.tools.score.series import Predictions
from twin.playback.pages import (
    CALM_FOR,
    FULL,
    IN_MINUTES,
    Alarm,
    LineRule,
    from_condition,
    merge,
    predict_linear,
    static,
    static_pages,
    straight_line,
)
from twin.playback.samples import STEP
from twin.playback.timeline import Series
from twin.state.arrays import Array

MINUTE, HOUR = 60.0, 3600.0  # seconds


@dataclass(frozen=True, slots=True)
class Baseline:
    """Monitoring rule."""

    name: str  # in tables
    judge: Callable[[Series], tuple[list[Alarm], Predictions | None]]  # returns alarms, and predictions if it makes any
    call: Callable[[Series], list[Alarm]]  # returns pages


def seconds_to_full(level: Array, slope: Array) -> Array:
    """Return the seconds until a line reaches 100 percent, f8[n]: 0 if it is there, inf if it never will be."""
    left = np.maximum(FULL - level, 0.0)
    return np.where(slope > 0, left / np.where(slope > 0, slope, 1.0), np.where(left > 0, np.inf, 0.0))


def soonest_full(series: Series, window: float, least: int = 2) -> Array:
    """Return the seconds until any resource is full by a line through the last `window` seconds, f8[n]."""
    soonest = np.full(series.times.size, np.inf)
    for usage in series.usage.T:
        soonest = np.minimum(soonest, seconds_to_full(*predict_linear(usage, window, least)))
    return soonest


def sliding_window(series: Series, window: float, ahead: float) -> tuple[list[Alarm], Predictions]:
    """Return alarms that are open while a line through a whole window predicts full within `ahead` seconds."""
    soonest = soonest_full(series, window, least=round(window * SECOND / STEP) + 1)
    return from_condition(series.times, soonest <= ahead), _predictions(series, soonest)


def _predictions(series: Series, soonest: Array) -> Predictions:
    return Predictions(series.times, np.repeat(soonest[:, None], 3, axis=1))


NODE_EXPORTER = (LineRule(40, 6 * HOUR, 24 * HOUR, HOUR), LineRule(20, 6 * HOUR, 4 * HOUR, HOUR))


def _fixed(name: str, percent: float, *, structure_only: bool = False) -> Baseline:
    return Baseline(
        name,
        lambda series: (static(series, percent, structure_only=structure_only), None),
        lambda series: static_pages(series, percent, structure_only=structure_only),
    )


def _straight(name: str, rules: Sequence[LineRule]) -> Baseline:
    return Baseline(
        name,
        lambda series: (
            straight_line(series, rules),
            _predictions(series, soonest_full(series, rules[0].window)),
        ),
        lambda series: merge(straight_line(series, rules), CALM_FOR),
    )


def _trend(name: str, window: float, ahead: float) -> Baseline:
    return Baseline(
        name,
        lambda series: sliding_window(series, window, ahead),
        lambda series: merge(sliding_window(series, window, ahead)[0], CALM_FOR),
    )


BASELINES = (
    _fixed("static 80 %, structure", 80.0, structure_only=True),
    _fixed("static 80 %", 80.0),
    _fixed("static 85 %", 85.0),
    _straight("straight line, 6 h", NODE_EXPORTER),
    _straight("straight line, 6 min", IN_MINUTES),
    _trend("trend, 15 min", 15 * MINUTE, 60 * MINUTE),
)
OTHER_LINES = tuple(_fixed(f"static {percent} %", percent) for percent in (70, 90, 95))
"""Fixed lines that only the value of a forecast is held against: their tables would say little more."""
