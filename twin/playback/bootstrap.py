"""Bootstrap by recording: how much a figure depends on which recordings there happened to be.

What one recording holds belongs together, so whole recordings are drawn, with replacement, as many as there are. Every
figure is computed from sums or from the values of the recordings drawn, weighted by how often each was drawn; its
interval is from the 2.5th to the 97.5th percentile of these [Efron and Tibshirani: An introduction to the bootstrap,
chapter 13]. The numbers are drawn from a fixed seed: the same recordings give the same interval.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from twin.state.arrays import Array

RESAMPLES = 1000
LEAST_RECORDINGS = 10  # with fewer there are too few ways to draw them [assumed]
_SEED = 0xB007
_TAILS = (2.5, 97.5)  # percentiles


class Bounds(NamedTuple):
    """Interval of a figure that contains it with 95 % confidence."""

    low: float
    high: float


class Figure(NamedTuple):
    """A figure, and its interval; None: nothing to measure, or no resamples."""

    value: float | None
    bounds: Bounds | None = None


class Resamples:
    """The recordings as they are, and drawn again."""

    def __init__(self, recordings: int, resamples: int = 0) -> None:
        """Draw the recordings again; not at all if there are fewer than LEAST_RECORDINGS."""
        # f8[1 + resamples, recordings], how often each recording counts; in the first row once
        self.weights = _weights(recordings, resamples if recordings >= LEAST_RECORDINGS else 0)

    def total(self, values: Array | Sequence[float]) -> Array:
        """Return f8[1 + resamples, ...], sums over the recordings. values: f8[recordings, ...]."""
        return np.tensordot(self.weights, np.asarray(values, float), 1)

    def ratio(self, parts: Array | Sequence[float], wholes: Array | Sequence[float]) -> Figure:
        """Return the ratio of two sums over the recordings. parts, wholes: f8[recordings]."""
        return figure(share(self.total(parts), self.total(wholes)))

    def quantile(self, values: Sequence[Sequence[float]], rank: float) -> Figure:
        """Return a quantile of the values of all recordings, interpolated as by `numpy.quantile`."""
        flat = np.array([value for own in values for value in own], float)
        if not flat.size:
            return Figure(None)
        owners = np.repeat(np.arange(len(values)), [len(own) for own in values])
        order = np.argsort(flat, kind="stable")
        flat, counts = flat[order], np.cumsum(self.weights[:, owners[order]], axis=1)
        places = rank * np.maximum(counts[:, -1] - 1, 0)
        low = np.floor(places + 1e-9)
        ends = []
        for place in (low, low + 1):
            rows = (counts <= np.minimum(place, counts[:, -1] - 1)[:, None]).sum(axis=1)
            ends.append(flat[np.minimum(rows, flat.size - 1)])
        part = np.maximum(places - low, 0.0)
        with np.errstate(invalid="ignore"):  # inf - inf, where both are the same
            between = np.where((part == 0) | (ends[0] == ends[1]), ends[0], ends[0] + part * (ends[1] - ends[0]))
        return figure(np.where(counts[:, -1] > 0, between, np.nan))


@functools.cache
def _weights(recordings: int, resamples: int) -> Array:
    weights = np.ones((1 + resamples, recordings))
    if resamples:
        rng = np.random.default_rng((_SEED, recordings))
        weights[1:] = rng.multinomial(recordings, np.full(recordings, 1.0 / recordings), resamples)
    weights.flags.writeable = False
    return weights


def share(parts: Array, wholes: Array) -> Array:
    """Return parts / wholes, nan where the whole is 0."""
    return np.asarray(np.divide(parts, wholes, out=np.full(np.shape(wholes), np.nan), where=wholes != 0))


def figure(values: Array) -> Figure:
    """Return the first of some values as a figure, with the interval of the others that are not nan."""
    value, known = float(values[0]), values[1:][~np.isnan(values[1:])]
    if np.isnan(value):
        return Figure(None)
    if not known.size:
        return Figure(value)
    low, high = np.quantile(known, np.array(_TAILS) / 100, method="inverted_cdf").tolist()
    return Figure(value, Bounds(low, high))
