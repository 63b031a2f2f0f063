"""Predicted probabilities of 2192 within some horizons, held against what came, as counts that can be added.

Every five minutes in which a store is not full, the probability of a 2192 within each of HORIZONS is compared with the
outcome, unless the recording ends before the horizon does. A method that predicts no probability says yes or no: by its
predicted time, or else by its open alarm. Yes and no then count as the share of them that a 2192 followed in the same
recordings, so that no rule is worse off for a wrong scale. Scores, the lower the better [Gneiting and Raftery 2007:
Strictly proper scoring rules, prediction, and estimation]:

- **Brier score**: mean squared error of the probability. It is reliability - resolution + uncertainty, but for what
  varies within a bin [Murphy 1973]: how far the bins are from what came in them, how far what came in them is from the
  mean, and the score of who always says the mean (**climatology**).
- **CRPS**: the integral of the Brier score over all horizons up to REACH_S, in seconds. A store that does not fill
  within them counts, too [survival CRPS: Avati et al. 2019, Countdown regression].
- **Interval score** of p10, p50 and p90, in seconds: the weighted interval score [Bracher et al. 2021], which is the
  absolute error if all three are the same.
- **Skill**: 1 - score / score of a reference.
- **Value**: what acting on a prediction saves, as a share of what a perfect one saves over the better of acting always
  and never. Acting costs C, a 2192 without it L; who is told a probability acts on one above C/L [Richardson 2000:
  Skill and relative economic value of the ECMWF ensemble prediction system].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from kernels.clock import SECOND
from tests.tools.score.series import Predictions
from tests.tools.score.truth import Filling
from twin.forecast.outcomes import HORIZONS
from twin.playback.pages import MINUTE, Alarm
from twin.playback.timeline import Series
from twin.state.arrays import Array

EVERY = 5 * MINUTE  # between the times at which probabilities are compared
BIN_ENDS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # upper ends of the bins of the probability
COSTS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)  # C/L
REACH_S = 28_800.0  # up to which the CRPS looks, as far as a forecast by default
_CELLS = np.concatenate([np.arange(0.0, 3600.0, 60.0), np.arange(3600.0, REACH_S + 1, 300.0)])  # ends of its cells, s
_WIDTHS = np.diff(_CELLS)
Number = TypeVar("Number", float, Array)
_OUTSIDE = 0.2  # probability that an interval from p10 to p90 does not contain the time


@dataclass(frozen=True, slots=True)
class Chances:
    """Predictions of a method for one store, and what came.

    Attributes:
        within: f8[n, HORIZONS], predicted probability of a 2192, or 1 for yes and 0 for no.
        cells: f8[n, cells], probability within the middle of each cell of the CRPS; None: only yes or no.
        came: f8[n], seconds until the next first 2192; inf: none in the recording.
        left: f8[n], seconds until the end of the recording.
        begun: bool[n], True if the next filling had begun.
    """

    within: Array
    cells: Array | None
    came: Array
    left: Array
    begun: Array


@dataclass(frozen=True, slots=True)
class ChanceCounts:
    """Sums of Chances, which can be added.

    Attributes:
        bins: f8[HORIZONS, bins, 4]: predictions, those that a 2192 followed, those of them before the filling began,
            sum of the probabilities.
        squares: f8[HORIZONS], sum of the squared errors of the probabilities.
        crps: sum of the CRPS, seconds.
        waits: f8[2, cells]: seconds of each cell before a 2192, and after it, up to the end of the recording.
        count: number of predictions.
        is_probability: False: the method says yes or no.
        acts: f8[HORIZONS, COSTS, 2]: predictions above C/L, those of them that a 2192 followed.
    """

    bins: Array
    squares: Array
    crps: float
    waits: Array
    count: int
    is_probability: bool
    acts: Array


def chances_of(
    series: Series, fillings: Sequence[Filling], alarms: Sequence[Alarm], predictions: Predictions | None
) -> Chances:
    """Return what a method predicts for a store every five minutes in which it is not full.

    Args:
        series: the store over time.
        fillings: its fillings in order of time.
        alarms: alarms of the method.
        predictions: predictions of the method, if it makes any.
    """
    end = int(series.times[-1])
    times = np.arange(-(-int(series.times[0]) // EVERY) * EVERY, end, EVERY)
    for filling in fillings:
        times = times[(times < filling.first) | (times > filling.last)]
    firsts = np.array([filling.first for filling in fillings], np.int64)
    following = np.searchsorted(firsts, times)
    came = np.append(firsts.astype(float), np.inf)[following] - times
    begins = np.append([float(filling.onset) for filling in fillings], np.inf)[following]
    horizons = np.array(HORIZONS, float)
    cells = None
    if predictions is None:
        is_open = np.zeros(times.size, bool)
        for alarm in alarms:
            is_open |= (times >= alarm.opened) & (times < (np.inf if alarm.cleared is None else alarm.cleared))
        within = np.repeat(is_open[:, None].astype(float), horizons.size, axis=1)
    elif predictions.chance is None:
        ahead = np.array([predictions.times_at(time)[1] for time in times.tolist()])
        within = (ahead[:, None] <= horizons).astype(float)
    else:
        middles = (_CELLS[:-1] + _CELLS[1:]) / 2
        both = predictions.chances_at(times, np.concatenate([horizons, middles]))
        within, cells = both[:, : horizons.size], both[:, horizons.size :]
    return Chances(within, cells, came / SECOND, (end - times) / SECOND, times >= begins)


def count_chances(chances: Chances) -> ChanceCounts:
    """Return the sums of predictions and outcomes."""
    bins, squares = np.zeros((len(HORIZONS), len(BIN_ENDS), 4)), np.zeros(len(HORIZONS))
    acts = np.zeros((len(HORIZONS), len(COSTS), 2))
    for row, horizon in enumerate(HORIZONS):
        came = chances.came <= horizon
        known = chances.left >= horizon
        probabilities, came, begun = chances.within[known, row], came[known], chances.begun[known]
        places = np.minimum(np.searchsorted(BIN_ENDS, probabilities), len(BIN_ENDS) - 1)
        for column, weights in enumerate((np.ones(probabilities.size), came, came & ~begun, probabilities)):
            bins[row, :, column] = np.bincount(places, weights, len(BIN_ENDS))
        squares[row] = ((probabilities - came) ** 2).sum()
        is_acted = probabilities > np.array(COSTS)[:, None]
        acts[row] = np.stack([is_acted.sum(axis=1), (is_acted & came).sum(axis=1)], axis=1)
    waits = _waits(chances.came, chances.left)
    crps = 0.0 if chances.cells is None else float(survival_crps(chances.cells, chances.came, chances.left).sum())
    return ChanceCounts(bins, squares, crps, waits.sum(axis=1), chances.came.size, chances.cells is not None, acts)


def add_counts(counts: Iterable[ChanceCounts]) -> ChanceCounts:
    """Return the sums of several stores."""
    every = list(counts)
    return ChanceCounts(
        sum((own.bins for own in every), np.zeros((len(HORIZONS), len(BIN_ENDS), 4))),
        sum((own.squares for own in every), np.zeros(len(HORIZONS))),
        sum(own.crps for own in every),
        sum((own.waits for own in every), np.zeros((2, _WIDTHS.size))),
        sum(own.count for own in every),
        any(own.is_probability for own in every),
        sum((own.acts for own in every), np.zeros((len(HORIZONS), len(COSTS), 2))),
    )


def _waits(came: Array, left: Array) -> Array:
    """Return f8[2, n, cells]: seconds of each cell before a 2192, and after it, up to the end of the recording."""
    seen = np.clip(left[:, None] - _CELLS[:-1], 0.0, _WIDTHS)
    before = np.clip(came[:, None] - _CELLS[:-1], 0.0, seen)
    return np.stack([before, seen - before])


def survival_crps(cells: Array, came: Array, left: Array) -> Array:
    """Return f8[n], the survival CRPS up to REACH_S, seconds.

    Args:
        cells: f8[n, cells], probability of a 2192 by the middle of each cell.
        came: f8[n], seconds until it came; inf: it did not.
        left: f8[n], seconds for which that is known.
    """
    before, after = _waits(came, left)
    return np.asarray((before * cells**2 + after * (1.0 - cells) ** 2).sum(axis=1))


def climatology_crps(waits: Array) -> Array:
    """Return f8[...], the sum of the CRPS of who always says what comes on the average. waits: f8[..., 2, cells]."""
    before, after = waits[..., 0, :], waits[..., 1, :]
    both = before + after
    return np.asarray(np.divide(before * after, both, out=np.zeros_like(both), where=both > 0).sum(axis=-1))


def interval_score(p10: Array, p50: Array, p90: Array, came: Array) -> Array:
    """Return f8[n], the weighted interval score of p10, p50 and p90."""
    width = p90 - p10
    missed = 2.0 / _OUTSIDE * (np.maximum(p10 - came, 0.0) + np.maximum(came - p90, 0.0))
    return np.asarray((0.5 * np.abs(came - p50) + _OUTSIDE / 2 * (width + missed)) / 1.5)


def skill(score: ArrayLike, reference: ArrayLike) -> Array:
    """Return f8[...], 1 - score / reference: 0 no better than the reference, 1 without an error; nan: nothing came."""
    known = np.greater(reference, 0)
    return np.asarray(1.0 - np.divide(score, reference, out=np.full(np.shape(known), np.nan), where=known))


def economic_value(acted: Array, hits: Array, came: Array) -> Array:
    """Return f8[..., COSTS], the relative economic value of acting on predictions; nan: nothing came, or always.

    Args:
        acted: f8[..., COSTS], share of the predictions that were acted on at each C/L.
        hits: f8[..., COSTS], share that were acted on and that a 2192 followed.
        came: f8[...], share that a 2192 followed.
    """
    costs, base = np.array(COSTS), np.asarray(came)[..., None]
    expense, perfect = costs * acted + base - hits, costs * base
    reference = np.minimum(costs, base)
    saved = reference - perfect
    return np.asarray(np.divide(reference - expense, saved, out=np.full(np.shape(saved), np.nan), where=saved > 0))


def climatology_brier(came: Number) -> Number:
    """Return the Brier score of who always says the share that came."""
    return came * (1.0 - came)
