"""Futures of a regime, a table for everything that is drawn: the oracle of `kernels.futures`.

The random numbers are those of `kernels.futures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import futures

Array = npt.NDArray[Any]


@dataclass
class NaiveFutures:
    """The futures, as `kernels.futures.Drawn`; `slope`: change of each flow from bin to bin."""

    slope: Array
    trend: Array
    starts: Array
    extra: Array
    larger: Array
    mix: Array
    pace: Array


def trend_of(bins: Array, weights: Array, spread: float) -> tuple[Array, float]:
    """Return (change of each flow from bin to bin; its standard error, in space)."""
    n = bins.shape[0]
    if n < 18:
        return np.zeros(bins.shape[1]), 0.0
    centred = np.arange(n) - (n - 1) / 2
    slopes = centred @ bins / (centred @ centred)
    error = float(np.sqrt(spread / (centred @ centred)))
    errors = abs(float(slopes @ np.concatenate([weights, -weights, -weights]))) / error if error > 0 else 0.0
    believed = max(0.0, 1 - (2.5 / errors) ** 2) if errors > 0 else 0.0
    return slopes * believed, error * believed


def settling(bins: Array, service: float, held: float, lengths: Array, factor: Array | None) -> Array:
    """Return the change of each flow at each step where gets follow the backlog; puts change by `factor`, or not."""
    mean, count = bins.mean(axis=0), bins.shape[1] // 3
    stay, leave = mean[:count], mean[count:]
    usual, middle = float(leave.sum()), np.cumsum(lengths) - lengths / 2
    shares = leave / usual if usual > 0 else np.full(2 * count, 0.5 / count)
    trend = np.zeros((lengths.size, bins.shape[1]))
    if factor is None:
        rest = float(stay.sum()) / service
        trend[:, count:] = np.outer(service * (rest + (held - rest) * np.exp(-service * middle)) - usual, shares)
        return trend
    for step, (length, times) in enumerate(zip(lengths.tolist(), factor.tolist(), strict=True)):
        rest = float(stay.sum()) * times / service
        after = rest + (held - rest) * float(np.exp(-service * length))
        trend[step, :count] = (times - 1) * stay
        trend[step, count:] = (service * (held + after) / 2 - usual) * shares
        held = after
    return trend


def draw(
    bins: Array,
    net: float,
    spread: float,
    service: float,
    held: float,
    whole: Array,
    lasts: float,
    weights: Array,
    sizes: Array,
    lengths: Array,
    hours: Array,
    paces: Array,
    seed: int,
    second: int,
) -> NaiveFutures:
    """Return the futures of a regime. Arguments as of `kernels.futures.draw`, and the fields of its `Present`."""
    n, count, paths = bins.shape[0], weights.size, paces.size
    middle = np.cumsum(lengths) - lengths / 2
    slope, error = trend_of(bins, weights, spread)
    ahead = 2.0 * n * (1 - np.exp(-middle / (2.0 * n)))
    puts = np.maximum(bins[:, :count].sum(axis=0), 0.0)
    mix = puts / puts.sum() if puts.sum() > 0 else np.full(count, 1.0 / count)
    doubts, starts = np.empty((paths, 4 + sizes.size)), np.empty((paths, lengths.size), np.int64)
    futures.normal(np.uint64(seed ^ 1), doubts[: paths // 2])
    doubts[paths // 2 :] = -doubts[: paths // 2]
    futures.below(np.uint64(seed), n, starts)
    if second:
        others = np.empty_like(starts)
        futures.below(np.uint64(seed ^ 2), whole.shape[0], others)
        for path in range(paths):
            leaves = -lasts * np.log((path * 37 % paths + 0.5) / paths)
            starts[path] = np.where(middle > leaves, second + others[path], starts[path])
    errors = np.stack(
        [np.full(lengths.size, np.sqrt(spread / n)), error * ahead, 0.2 * abs(net) * (middle / 360) ** 0.5]
    )
    trend = ahead[:, None] * slope
    if hours.size:
        factor, now, persistent, wandered = hours
        stay = bins[:, :count].mean(axis=0)
        trend[:, :count] = trend[:, :count] * now[:, None] + np.outer(factor - 1, stay)
        errors = np.stack([errors[0] * persistent, errors[1] * now, wandered * max(0.0, float(stay @ weights))])
    if service:
        trend = settling(bins, service, held, lengths, hours[0] if hours.size else None)
        errors *= np.exp(-service * middle)
    ranks = np.empty(paths, np.int64)
    ranks[np.argsort(doubts[:, 3], kind="stable")] = np.arange(paths)
    return NaiveFutures(
        slope=np.zeros_like(slope) if service else slope,
        trend=trend,
        starts=starts,
        extra=doubts[:, :3] @ errors / max(float(mix @ weights), 1e-9),
        larger=np.clip(1 + doubts[:, 4:] * sizes, 0.2, 5.0),
        mix=mix,
        pace=paces[ranks],
    )
