"""What flows in and out of a store now, and what may flow in the time ahead.

The present regime is found (kernels/regime.py); its bins are what futures are drawn from, in blocks, so that bursts
stay bursts. What is not known of the mean of few bins, and of how it will wander, is drawn for each future.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import chance, regime
from kernels.layout import NEVER, Store
from kernels.meter_rows import BINS, CLASSES
from twin.state.arrays import Array

PATHS = 128
WANDER = 0.2  # standard deviation by which a rate has wandered after an hour, as a share of it
UNTOLD = 0.19  # of the time to full: standard deviation of what no meter tells, so that p10..p90 holds 80 %
_TREND_FROM = 18  # bins: three minutes
LASTS = 2.0  # a trend is believed for so many times as long as it was seen
_SURE = 2.5  # standard errors from which a trend is believed in part, wholly when far beyond
_WINDOWS = (180, 90, 45)  # bins
_BLOCKS = 6  # blocks that a regime is cut into at least, on average
_LONGEST_BLOCK = 30  # bins
_STEPS = ((12, 1), (9, 2), (10, 3), (20, 6))  # (steps, bins of each): the first half hour
_LATER = 12  # bins of a step after it


@dataclass(frozen=True, slots=True)
class Regime:
    """bins: f8[n, 3 * CLASSES], messages by class: that stayed, that left the store itself, that left data sets.

    since: the tick of the first bin; net, net_messages: elements, pages or blocks of the store that a bin adds on
    average, unoffloaded, and messages; spread: the variance of a bin, in space; wait: bins from the put to the get of
    what does not leave soon; got: the share of what comes that is got, as many messages as leave of those that come.
    """

    bins: Array
    since: int
    net: float
    net_messages: float
    spread: float
    wait: float
    got: float


def present(store: Store, tick: int, weights: Array) -> Regime | None:
    """The regime at a tick; None where less than three bins tell of it. weights: f8[CLASSES], what a message takes."""
    flows, lags = np.empty((BINS, 3 * CLASSES)), np.empty((BINS, 2))
    since = int(store.scalars["steady_from"][0])
    n = 0 if since == NEVER else regime.read_flows(store, since, tick, flows, lags)
    if n < regime.MIN_BINS:
        return None
    flows = flows[:n]
    stay, leave = flows[:, :CLASSES], flows[:, CLASSES : 2 * CLASSES] + flows[:, 2 * CLASSES :]
    series = np.stack([stay @ weights, leave @ weights, stay.sum(axis=1), leave.sum(axis=1)])
    usual = float(weights @ (stay + leave).sum(axis=0)) / max(1.0, float((stay + leave).sum()))
    units = np.array([usual, usual, 1.0, 1.0])
    start = _start(series, units)
    net = series[0, start:] - series[1, start:]
    spread = float(regime.spread(net, 0, net.size)) if net.size > 3 else float(net.var(ddof=1))
    floor = float(np.abs(net).mean()) * usual
    left, lag, puts = float(leave[start:].sum()), float(lags[start:n, 0].sum()), float(lags[start:n, 1].mean())
    wait = lag / left / puts if left > 0 and puts > 0 else np.inf
    come = float(stay[start:].sum())
    return Regime(
        bins=flows[start:],
        since=tick - (n - start),
        net=float(net.mean()),
        net_messages=(come - left) / net.size,
        spread=max(spread, floor),
        wait=wait,
        got=min(1.0, left / come) if come > 0 else 1.0,
    )


def _start(series: Array, units: Array) -> int:
    """The bin since which flows run as they do now: along a line, if that is so for long, else at one mean."""
    n = series.shape[1]
    for window in (n, *(window for window in _WINDOWS if window < n)):
        tail = series[:, n - window :]
        at = np.arange(window) - (window - 1) / 2
        along = tail - np.outer(tail @ at / max(1.0, float(at @ at)), at)
        if int(regime.regime_start(along, window, units, np.empty(2))) == 0:
            return int(n - window)
    return int(regime.regime_start(series, n, units, np.empty(2)))


def steps(horizon: int) -> Array:
    """i8[s]: bins of each step, short ones first, in all `horizon` bins or just more."""
    lengths: list[int] = []
    for count, length in _STEPS:
        lengths += [length] * count
    lengths += [_LATER] * max(0, -(-(horizon - sum(lengths)) // _LATER))
    return np.array(lengths, np.int64)


@dataclass(frozen=True, slots=True)
class Futures:
    """What `kernels.forecast.roll` takes of flows; see there.

    mix: f8[CLASSES], shares of the puts by class; pace: f8[PATHS], by how many times later than rolled a path is full:
    what no meter tells.
    """

    cumulated: Array
    bins: int
    trend: Array
    lengths: Array
    starts: Array
    extra: Array
    larger: Array
    block: int
    mix: Array
    pace: Array


def futures(now: Regime, weights: Array, horizon: int, seed: int, sizes: Array) -> Futures:
    """Draw futures of a regime.

    weights: as `present`; horizon: bins; sizes: f8[1 + data sets], what is not known of how much messages will take of
    the store itself and of each data set, as a share.
    """
    n = now.bins.shape[0]
    lengths = steps(horizon)
    middle = np.cumsum(lengths) - lengths / 2
    slope, error = _trend(now, weights)
    ahead = LASTS * n * (1 - np.exp(-middle / (LASTS * n)))
    level = now.bins + slope * (n - 0.5 - np.arange(n))[:, None]
    block = int(np.clip(n // _BLOCKS, 1, _LONGEST_BLOCK))
    most = max(block, int(lengths.max()))
    cumulated = np.zeros((n + most + 1, now.bins.shape[1]))
    np.cumsum(level[np.arange(n + most) % n], axis=0, out=cumulated[1:])
    come = np.maximum(now.bins[:, :CLASSES].sum(axis=0), 0.0)
    mix = come / come.sum() if come.sum() > 0 else np.full(CLASSES, 1.0 / CLASSES)
    unsure = np.sqrt(now.spread / n)
    doubts, starts = np.empty((PATHS, 4 + sizes.size)), np.empty((PATHS, lengths.size), np.int64)
    chance.normal(np.uint64(seed ^ 1), doubts)
    chance.below(np.uint64(seed), n, starts)
    doubtful = np.stack([np.full(lengths.size, unsure), error * ahead, WANDER * abs(now.net) * np.sqrt(middle / 360)])
    return Futures(
        cumulated=cumulated,
        bins=n,
        trend=ahead[:, None] * slope,
        lengths=lengths,
        starts=starts,
        larger=np.clip(1 + doubts[:, 4:] * sizes, 0.2, 5.0),
        extra=doubts[:, :3] @ (doubtful / max(float(mix @ weights), 1e-9)),
        block=block,
        mix=mix,
        pace=np.exp(UNTOLD * doubts[:, 3]),
    )


def _trend(now: Regime, weights: Array) -> tuple[Array, float]:
    """(change of each flow from bin to bin, f8[3 * CLASSES]; what is not known of it, in space)."""
    n = now.bins.shape[0]
    if n < _TREND_FROM:
        return np.zeros(now.bins.shape[1]), 0.0
    at = np.arange(n) - (n - 1) / 2
    by_space = np.concatenate([weights, -weights, -weights])
    slopes = at @ now.bins / (at @ at)
    error = float(np.sqrt(now.spread / (at @ at)))
    sure = abs(float(slopes @ by_space)) / error if error > 0 else 0.0
    believed = max(0.0, 1 - (_SURE / sure) ** 2) if sure > 0 else 0.0
    return slopes * believed, error * believed
