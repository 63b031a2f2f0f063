"""Laws of how the rises of a store end, each believed as far as it described those that have ended.

A rise ends after a time, after a climb, at a height, or at an hour of the day; other rises tell of it if they were
alike in cause, and in pace or hour besides, or whatever their pace and hour; and like rises differ by little or much.
Every combination is an expert. It is scored by the density with which it foretells each harmless rise from the others,
and weighs by the product of these densities: an expert that was wrong about this store eleven times has no weight left.

All is measured in the logarithm of the time or of the climb from the beginning of a rise. With the pace of a rise given
these are the same scale, so that densities compare.

Sources: [published: Vovk, "Aggregating strategies", 1990] (experts weighted by the logarithm of what they predicted);
[published: Stone, "Cross-validatory choice and assessment of statistical predictions", 1974] (each from the others);
[published: Rosenblatt, "Remarks on some nonparametric estimates of a density function", 1956] (the smoothed past).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kernels.clock import SECOND, TICK
from kernels.meter_rows import RISE
from twin.state.arrays import Array

DAY_TICKS = 86_400 * SECOND // TICK
WIDTHS = np.array([0.012, 0.04, 0.12, 0.3, 0.8])  # of the logarithm by which like rises differ
SIMILAR, LAWS = 3, 4  # ways to be alike: cause alone, pace, hour; time, climb, height, hour of the end
UNSEEN = 0.5  # rises of a kind not seen yet, beside those seen [assumed]
_PRIOR = np.log(  # of each expert, before any rise has ended: of ways to be alike, laws, widths [assumed]
    np.array([0.6, 0.35, 0.05])[:, None, None]
    * np.array([0.32, 0.32, 0.32, 0.04])[:, None]
    * np.array([0.05, 0.1, 0.33, 0.38, 0.14])
)
_BROAD = 0.05  # density of the logarithm, of a kind not seen yet [assumed]
_FADE = 0.95  # by which an older rise scores less than the next
_PACE_BANDWIDTH = 0.4  # of the logarithm of the pace
_HOUR_BANDWIDTH = 0.75 * DAY_TICKS / 24  # of the time of day at which rises begin
_CAUSE_BANDWIDTH = 0.35  # of the share of the puts that stayed
_MIN_CLIMB = 0.3  # of a rise: lower ones say nothing about it
_LEAST_WEIGHT = 0.01  # of an expert: below it the expert is left out
LEAST_CLIMB = 1e-6  # of which a logarithm is taken
_GRID = np.linspace(0.0, 1.0, 12) ** 2  # places, dense at first, between which the share that goes on is interpolated
_LOGISTIC = 1.7  # times: a logistic curve as wide as a normal one
_CACHED = 1024  # stores whose scores stay in memory; they are computed again when a rise has ended


class Traits(NamedTuple):
    """Past rises in the numbers that others are compared by: f8[n] each, but for `went_on`, bool[n].

    Attributes:
        stayed: share of the messages put that stayed, 0..1.
        climb: utilisation from the beginning to the end.
        went_on: True for rises that ended in 2192.
        log_lasted: logarithm of the ticks that they lasted.
        log_climb: logarithm of `climb`.
        log_pace: logarithm of the utilisation a tick.
    """

    stayed: Array
    climb: Array
    went_on: Array
    log_lasted: Array
    log_climb: Array
    log_pace: Array


@lru_cache(_CACHED)
def traits(packed: bytes) -> Traits:
    """Return the traits of rises. packed: the bytes of RISE[n]."""
    rows = np.frombuffer(packed, RISE)
    long, high = lasted(rows), climbs(rows)
    return Traits(stayed(rows), high, went_on(rows), np.log(long), np.log(high), np.log(high / long))


def lasted(rows: Array) -> Array:
    """Return f8[n], the ticks that rises lasted. rows: RISE[n], as for every function of this module."""
    return np.asarray(np.maximum(1.0, (rows["ended"] - rows["began"]).astype(float)))


def climbs(rows: Array) -> Array:
    """Return f8[n], utilisation from the beginning to the end of rises."""
    return np.asarray(np.maximum(LEAST_CLIMB, rows["top"] - rows["low"]))


def stayed(rows: Array) -> Array:
    """Return f8[n], the share of the messages put that stayed, 0..1."""
    return np.asarray(np.clip(rows["stayed"] / np.maximum(1, rows["puts"]), 0.0, 1.0))


def went_on(rows: Array) -> Array:
    """Return bool[n], True for rises that ended in 2192."""
    return np.asarray(rows["refused"] > 0)


def alike(rows: Array, climb: Array, pace: Array, stays: Array, began: Array) -> Array:
    """Return f8[SIMILAR, m, n], how much each rise counts for m others: by cause alone, by pace too, by hour too.

    Args:
        rows: RISE[n], the rises.
        climb: f8[m], of the others: utilisation from their beginning on.
        pace: f8[m], utilisation a tick.
        stays: f8[m], share of the messages put that stayed.
        began: i8[m], ticks.
    """
    past = traits(rows.tobytes())
    cause = np.exp(-0.5 * ((past.stayed - stays[:, None]) / _CAUSE_BANDWIDTH) ** 2)
    cause *= (past.climb >= _MIN_CLIMB * climb[:, None]) | past.went_on
    paces = past.log_pace - np.log(pace)[:, None]
    hours = np.abs(rows["began"] - began[:, None]) % DAY_TICKS
    hours = np.minimum(hours, DAY_TICKS - hours)
    by_pace = np.exp(-0.5 * (paces / _PACE_BANDWIDTH) ** 2)
    by_hour = np.exp(-0.5 * (hours / _HOUR_BANDWIDTH) ** 2)
    return np.asarray(cause * np.stack([np.ones_like(cause), by_pace, by_hour]))


def ends(rows: Array, low: Array, began: Array) -> Array:
    """Return f8[LAWS, m, n], the logarithm at which each of m rises would end if it ended as each of `rows` did.

    Args:
        rows: RISE[n], the rises.
        low: f8[m], utilisation at the beginning of the others.
        began: i8[m], ticks.
    """
    height = np.log(np.maximum(LEAST_CLIMB, rows["top"] - low[:, None]))
    hour = np.log(np.maximum(1.0, (rows["ended"] - began[:, None]) % DAY_TICKS))
    past, law = traits(rows.tobytes()), np.empty((LAWS, *height.shape))
    law[0], law[1], law[2], law[3] = past.log_lasted, past.log_climb, height, hour
    return law


@lru_cache(_CACHED)
def foretold(packed: bytes) -> Array:
    """Return f8[SIMILAR, LAWS, WIDTHS, n], the log density with which each expert foretells each rise from the others.

    Of a rise that ended in 2192, and where there is but one harmless rise, it is 0. packed: the bytes of RISE[n].
    """
    rows = np.frombuffer(packed, RISE)
    harmless = np.flatnonzero(~went_on(rows))
    score = np.zeros((SIMILAR, LAWS, WIDTHS.size, rows.size))
    if harmless.size < 2:
        return score
    rows = rows[harmless]
    long, high = np.log(lasted(rows)), np.log(climbs(rows))
    weights = alike(rows, climbs(rows), climbs(rows) / lasted(rows), stayed(rows), rows["began"])
    weights[:, np.arange(rows.size), np.arange(rows.size)] = 0.0
    apart = np.stack([long, high, high, long])[:, :, None] - ends(rows, rows["low"], rows["began"])
    density = np.exp(-0.5 * (apart[:, None] / WIDTHS[:, None, None]) ** 2)
    density /= WIDTHS[:, None, None] * np.sqrt(2 * np.pi)
    seen = np.einsum("smn,lwmn->slwm", weights, density)
    newer = np.argsort(np.argsort(-rows["ended"], kind="stable"), kind="stable")
    density = (seen + UNSEEN * _BROAD) / (weights.sum(axis=2)[:, None, None] + UNSEEN)
    score[..., harmless] = np.log(density) * _FADE**newer
    return score


def trust(rows: Array, weights: Array) -> Array:
    """Return f8[SIMILAR, LAWS, WIDTHS], the weight of each expert for rises of one kind, together 1.

    Args:
        rows: RISE[n], past rises.
        weights: f8[n], how much each is of that kind.
    """
    score = foretold(rows.tobytes()) @ weights + _PRIOR
    trusted = np.exp(score - score.max())
    return np.asarray(trusted / trusted.sum())


def outlast(rows: Array, low: float, began: int, weights: Array, places: Array, unseen: Array) -> Array:
    """Return f8[1 + k], the share of the rises that go on to some places, by the experts' trust: the first is now.

    Args:
        rows: RISE[n], past rises.
        low: utilisation at the beginning of the rise under way.
        began: tick at which it began.
        weights: f8[SIMILAR, n], how much each past rise counts.
        places: f8[LAWS, 1 + k], the logarithms reached at the places.
        unseen: f8[1 + k], share of the rises of a kind not seen yet that go on to them.
    """
    trusted = trust(rows, weights[0])
    chosen = np.nonzero(trusted >= min(_LEAST_WEIGHT, float(trusted.max())))
    similar, law, width = chosen
    places = np.maximum(places, places[:, :1])
    nearest, farthest = places.min(axis=1)[:, None], places.max(axis=1)[:, None]
    grid = nearest + (farthest - nearest) * _GRID
    apart = ends(rows, np.array([low]), np.array([began]))[:, 0][law][:, :, None] - grid[law][:, None, :]
    lasting = 1.0 / (1.0 + np.exp(np.minimum(-_LOGISTIC / WIDTHS[width][:, None, None] * apart, 50.0)))
    lasting[:, traits(rows.tobytes()).went_on] = 1.0
    counted = weights[similar]
    share = trusted[chosen] / (counted.sum(axis=1) + UNSEEN)
    on_grid = ((share[:, None] * counted)[:, None] @ lasting)[:, 0]
    seen = np.zeros_like(unseen)
    for number in sorted(set(law.tolist())):
        seen += np.interp(places[number], grid[number], on_grid[law == number].sum(axis=0))
    return np.asarray(seen + UNSEEN * share.sum() * unseen)
