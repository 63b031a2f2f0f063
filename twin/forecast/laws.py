"""Laws of how the rises of a store end, each believed as far as it described those that have ended.

A rise ends after a time, after a climb, at a height, or at an hour of the day; other rises tell of it if they were
alike in cause, and in pace or hour besides, or whatever their pace and hour; and like rises differ by little or much.
Every combination is an expert. It is scored by the density with which it foretells each harmless rise from the others,
and weighs by the product of these densities: an expert that was wrong about this store eleven times has no weight left.

All is measured in the logarithm of the time or of the climb from the beginning of a rise. With the pace of a rise given
these are the same scale, so that densities compare. The loops are in `kernels.rise_laws`.

Sources: [published: Vovk, "Aggregating strategies", 1990] (experts weighted by the logarithm of what they predicted);
[published: Stone, "Cross-validatory choice and assessment of statistical predictions", 1974] (each from the others);
[published: Rosenblatt, "Remarks on some nonparametric estimates of a density function", 1956] (the smoothed past).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kernels import rise_laws
from kernels.meter_rows import RISE
from kernels.rise_laws import LAWS, SIMILAR, Experts
from twin.state.arrays import Array

WIDTHS = np.array([0.012, 0.04, 0.12, 0.3, 0.8])  # of the logarithm by which like rises differ
_PRIOR = np.log(  # of each expert, before any rise has ended: of ways to be alike, laws, widths [assumed]
    np.array([0.6, 0.35, 0.05])[:, None, None]
    * np.array([0.32, 0.32, 0.32, 0.04])[:, None]
    * np.array([0.05, 0.1, 0.33, 0.38, 0.14])
)
_CAUSE_BANDWIDTH = 0.35  # of the share of the puts that stayed
_CACHED = 1024  # stores whose scores stay in memory; they are computed again when a rise has ended


def went_on(rows: Array) -> Array:
    """Return bool[n], True for rises that ended in 2192. rows: RISE[n], as for every function of this module."""
    return np.asarray(rows["refused"] > 0)


def alike(rows: Array, climb: float, pace: float, stays: float, began: int) -> Array:
    """Return f8[SIMILAR, n], how much each rise counts for another one: by cause alone, by pace too, by hour too.

    Args:
        rows: RISE[n], the rises.
        climb: utilisation of the other one from its beginning on.
        pace: utilisation a tick.
        stays: share of the messages put that stayed.
        began: tick.
    """
    weights = np.empty((SIMILAR, rows.size))
    rise_laws.compare(rows, climb, pace, stays, began, _CAUSE_BANDWIDTH, weights)
    return weights


@lru_cache(_CACHED)
def foretold(packed: bytes) -> Array:
    """Return f8[SIMILAR, LAWS, WIDTHS, n], the log density with which each expert foretells each rise from the others.

    Of a rise that ended in 2192, and where there is but one harmless rise, it is 0. packed: the bytes of RISE[n].
    """
    rows = np.frombuffer(packed, RISE).copy()
    score = np.empty((SIMILAR, LAWS, WIDTHS.size, rows.size))
    rise_laws.foretell(rows, experts(rows.size), np.empty((SIMILAR, rows.size)), score)
    return score


def outlast(rows: Array, low: float, began: int, weights: Array, places: Array, unseen: Array) -> Array:
    """Return f8[1 + k], the share of the rises that go on to some places, by the experts' trust: the first is now.

    Args:
        rows: RISE[n], past rises.
        low: utilisation at the beginning of the rise under way.
        began: tick at which it began.
        weights: f8[SIMILAR, n], how much each past rise counts.
        places: f8[2, 1 + k], the ticks since it began, and the utilisation above `low`, reached at the places;
            overwritten.
        unseen: f8[1 + k], share of the rises of a kind not seen yet that go on to them; overwritten.
    """
    rise_laws.outlast(rows, low, began, weights, foretold(rows.tobytes()), experts(rows.size), places, unseen)
    return unseen


def experts(rises: int) -> Experts:
    """Return the experts, with working space for a number of past rises."""
    trusted, grid = np.empty(_PRIOR.shape), np.empty((2, rise_laws.GRID))
    return Experts(_PRIOR, WIDTHS, _CAUSE_BANDWIDTH, trusted, grid, np.empty(rises))
