"""Baselines: common monitoring rules (fixed and straight lines), applied to the same series as the twin.

- Fixed line: IXC585E at or above the threshold, IXC586I below it again (z/OS structure full monitoring, threshold 80);
  85 % is the default of a common monitor for MQ. "structure" considers entries and elements, as XES does; the others
  consider every resource, shared message data sets included.
- Straight line: the rules NodeFilesystemSpaceFillingUp of node-exporter's mixin. Warning if less than 40 % are free and
  predict_linear over 6 hours is below zero 24 hours ahead, critical if less than 20 % are free and it is below zero 4
  hours ahead, each for 1 hour; and the same with minutes instead of hours, for faster fillings. predict_linear uses the
  history available, at least two samples (Prometheus, functions).
- Sliding window: a line through the last 15 minutes predicts full within 60.

None of them names a queue or gives an interval. Each is evaluated at every sample, twice as often as usual.

As pages they are grouped like the twin's incidents: the next one after ten minutes without. A fixed line is passed
until usage is two points below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twin.playback.samples import STEP
from twin.scoring.alarms import CALM_FOR, Alarm, from_condition, merge
from twin.scoring.series import Predictions, Series
from twin.state.arrays import Array

SECOND = 1_000_000  # microseconds
MINUTE, HOUR = 60.0, 3600.0  # seconds
FULL = 100.0  # percent
HYSTERESIS = 2.0  # points below a fixed line at which its page is over


@dataclass(frozen=True, slots=True)
class Baseline:
    """Monitoring rule."""

    name: str  # in tables
    judge: Callable[[Series], tuple[list[Alarm], Predictions | None]]  # returns alarms, and predictions if it makes any
    call: Callable[[Series], list[Alarm]]  # returns pages


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a straight line."""

    free: float  # percent: free space below which it applies
    window: float  # seconds of history
    ahead: float  # seconds to full below which it applies
    hold: float  # seconds for which both must hold


def static(series: Series, percent: float, *, structure_only: bool = False, hysteresis: float = 0.0) -> list[Alarm]:
    """Return the alarms of a fixed line: open at or above it, cleared below.

    Args:
        series: the store over time.
        percent: the line.
        structure_only: True: of entries and elements only.
        hysteresis: points below the line that still count as above it.
    """
    columns = [
        column for column, name in enumerate(series.resources) if not structure_only or name in {"entries", "elements"}
    ]
    usage = series.usage[:, columns].max(axis=1, initial=0.0)
    above: Array = usage >= percent
    decided = np.where(above | (usage < percent - hysteresis), np.arange(usage.size), 0)
    return from_condition(series.times, above[np.maximum.accumulate(decided)])


def static_pages(series: Series, percent: float, *, structure_only: bool = False) -> list[Alarm]:
    """Return the pages of a fixed line."""
    return merge(static(series, percent, structure_only=structure_only, hysteresis=HYSTERESIS), CALM_FOR)


def predict_linear(usage: Array, window: float, least: int = 2) -> tuple[Array, Array]:
    """Return level and slope of the least-squares line through the last `window` seconds, as in Prometheus.

    Args:
        usage: f8[n], percent, STEP apart.
        window: seconds.
        least: minimum number of samples for a slope.

    Returns:
        f8[n], current value of the line, percent, and f8[n], its slope, percent/s, 0 with fewer than `least` samples.
    """
    count = usage.size
    reach = round(window * SECOND / STEP)
    last = np.arange(count)
    first = np.maximum(last - reach, 0)
    size = (last - first + 1).astype(float)
    offset = usage - usage.mean() if count else usage  # keeps the sums small
    sums = np.concatenate([[0.0], np.cumsum(offset)])
    weighted = np.concatenate([[0.0], np.cumsum(offset * last)])
    y = sums[last + 1] - sums[first]
    xy = weighted[last + 1] - weighted[first] - last * y  # x: samples from now, 0 and below
    x = -(size - 1) * size / 2
    xx = (size - 1) * size * (2 * size - 1) / 6
    below = size * xx - x * x
    has_slope = size >= max(2, least)
    slope = np.where(has_slope, (size * xy - x * y) / np.where(has_slope, below, 1.0), 0.0)
    level = (y - slope * x) / size + (usage.mean() if count else 0.0)
    return level, slope / (STEP / SECOND)


def seconds_to_full(level: Array, slope: Array) -> Array:
    """Return the seconds until a line reaches 100 percent, f8[n]: 0 if it is there, inf if it never will be."""
    left = np.maximum(FULL - level, 0.0)
    return np.where(slope > 0, left / np.where(slope > 0, slope, 1.0), np.where(left > 0, np.inf, 0.0))


def hold_for(condition: Array, seconds: float) -> Array:
    """Return bool[n], True where a condition has held for `seconds`, as `for:` of a Prometheus rule."""
    last = np.arange(condition.size)
    since = np.maximum.accumulate(np.where(condition, -1, last))  # the last sample at which it did not hold
    return np.asarray(condition & (last - since - 1 >= seconds * SECOND / STEP))


def straight_line(series: Series, rules: tuple[Rule, ...]) -> tuple[list[Alarm], Predictions]:
    """Return alarms that are open while any rule holds for any resource, and predictions of the first rule."""
    fires = np.zeros(series.times.size, np.bool_)
    soonest = np.full(series.times.size, np.inf)
    for column in range(len(series.resources)):
        usage = series.usage[:, column]
        for number, rule in enumerate(rules):
            level, slope = predict_linear(usage, rule.window)
            predicted = level + slope * rule.ahead
            fires |= hold_for((FULL - usage < rule.free) & (predicted > FULL), rule.hold)
            if not number:
                soonest = np.minimum(soonest, seconds_to_full(level, slope))
    return from_condition(series.times, fires), _predictions(series, soonest)


def sliding_window(series: Series, window: float, ahead: float) -> tuple[list[Alarm], Predictions]:
    """Return alarms that are open while a line through a whole window predicts full within `ahead` seconds."""
    soonest = np.full(series.times.size, np.inf)
    for column in range(len(series.resources)):
        level, slope = predict_linear(series.usage[:, column], window, least=round(window * SECOND / STEP) + 1)
        soonest = np.minimum(soonest, seconds_to_full(level, slope))
    return from_condition(series.times, soonest <= ahead), _predictions(series, soonest)


def _predictions(series: Series, soonest: Array) -> Predictions:
    return Predictions(series.times, np.repeat(soonest[:, None], 3, axis=1))


NODE_EXPORTER = (Rule(40, 6 * HOUR, 24 * HOUR, HOUR), Rule(20, 6 * HOUR, 4 * HOUR, HOUR))
IN_MINUTES = (Rule(40, 6 * MINUTE, 24 * MINUTE, MINUTE), Rule(20, 6 * MINUTE, 4 * MINUTE, MINUTE))


def _fixed(name: str, percent: float, *, structure_only: bool = False) -> Baseline:
    return Baseline(
        name,
        lambda series: (static(series, percent, structure_only=structure_only), None),
        lambda series: static_pages(series, percent, structure_only=structure_only),
    )


def _line(name: str, judge: Callable[[Series], tuple[list[Alarm], Predictions]]) -> Baseline:
    return Baseline(name, judge, lambda series: merge(judge(series)[0], CALM_FOR))


BASELINES = (
    _fixed("static 80 %, structure", 80.0, structure_only=True),
    _fixed("static 80 %", 80.0),
    _fixed("static 85 %", 85.0),
    _line("straight line, 6 h", lambda series: straight_line(series, NODE_EXPORTER)),
    _line("straight line, 6 min", lambda series: straight_line(series, IN_MINUTES)),
    _line("trend, 15 min", lambda series: sliding_window(series, 15 * MINUTE, 60 * MINUTE)),
)
