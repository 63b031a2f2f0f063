"""Bins of a regime, read and summed in a slow and obvious way: the oracle of `kernels.regime`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import regime

CLASSES, BINS = 12, 384


@dataclass
class NaiveBin:
    """Messages of one tick by class.

    lag: sum over the messages that left later: puts since their own. refused: puts for which there was no storage.
    """

    tick: int
    lag: int
    put: list[int]
    young: list[int]
    near: list[int]
    far: list[int]
    refused: list[int]


def read_flows(bins: Sequence[NaiveBin], since: int, until: int) -> list[list[float]]:
    """Return a row per bin of ticks since..until-1 that is among the last ones kept, in order of time.

    It has the messages by class that stayed or would have, that left from the store itself, that left from data sets;
    then the lag, all messages put, all that stayed or would have, all that left, and all that were refused.
    """
    rows = []
    for past in sorted(bins, key=lambda past: past.tick):
        if since <= past.tick < until and until - past.tick < BINS:
            stayed = [past.put[size] - past.young[size] + past.refused[size] for size in range(CLASSES)]
            left = sum(past.near) + sum(past.far)
            row = *stayed, *past.near, *past.far, past.lag, sum(past.put), sum(stayed), left, sum(past.refused)
            rows.append([float(number) for number in row])
    return rows


def cumulate(flows: Sequence[Sequence[float]], slope: Sequence[float], count: int) -> list[list[float]]:
    """Return the sums of the bins before each of `count` bins, the first bin coming again behind the last.

    Each bin is as it would be had it been at the end of the regime: it has changed by `slope` from bin to bin since.
    """
    n = len(flows)
    end = n - 0.5
    level = [[value + slope[lane] * (end - row) for lane, value in enumerate(flows[row])] for row in range(n)]
    sums = [[0.0] * len(slope)]
    for place in range(count):
        sums.append([before + value for before, value in zip(sums[-1], level[place % n], strict=True)])
    return sums


def service(stay: npt.NDArray[Any], leave: npt.NDArray[Any], held: float) -> float:
    """Return the share of the messages held that is got in a bin, 0 where gets do not follow the backlog.

    Args:
        stay: f8[n], messages that came and stayed.
        leave: f8[n], messages that left.
        held: messages held at the end.
    """
    bins = stay.size // 10
    if bins < 6:
        return 0.0
    some = bins * 10
    got = leave[-some:].reshape(10, bins).sum(axis=1)
    if got.sum() < 100:
        return 0.0
    net = (stay - leave)[-some:]
    depth = held - np.cumsum(net[::-1])[::-1] + net / 2
    backlog = np.maximum(depth.reshape(10, bins).sum(axis=1), 0.0)
    if backlog.min() <= 0.0 or backlog.max() < 1.25 * backlog.min():
        return 0.0
    share = float(got.sum() / backlog.sum())
    in_proportion = float(((got - share * backlog) ** 2 / (share * backlog)).sum())
    constant = float(((got - got.mean()) ** 2 / got.mean()).sum())
    return share if constant > 8.0 + 2.0 * in_proportion else 0.0


def settle(flows: npt.NDArray[Any], totals: npt.NDArray[Any], weights: npt.NDArray[Any]) -> tuple[float, ...]:
    """Return a regime in the order of `kernels.regime.SUMMARY`. Arguments as of `kernels.regime.settle`.

    Where means change is found by `kernels.regime.regime_start`, and how much bins vary by its `spread`.
    """
    n = flows.shape[0]
    lag, put, stayed, left, _ = np.ascontiguousarray(totals.T)
    stay, leave = flows[:, :CLASSES], flows[:, CLASSES : 2 * CLASSES] + flows[:, 2 * CLASSES :]
    series = np.stack([stay @ weights, leave @ weights, stayed, left])
    usual = float((series[0] + series[1]).sum()) / max(1.0, float((stayed + left).sum()))
    units = np.array([usual, usual, 1.0, 1.0])
    start = int(regime.regime_start(series, n, units, np.empty(2)))
    for window in [window for window in (45, 90, 180) if window < n] + [n]:
        tail, centred = series[:, n - window :], np.arange(window) - (window - 1) / 2
        detrended = tail - np.outer(tail @ centred / max(1.0, float(centred @ centred)), centred)
        if int(regime.regime_start(detrended, window, units, np.empty(2))) == 0:
            start = n - window  # the longest is the last
    changes = [start] if start else []
    while changes and changes[-1] > 6 and len(changes) < 20:
        before = int(regime.regime_start(series, changes[-1], units, np.empty(2)))
        if not before:
            break
        changes.append(before)
    net = series[0, start:] - series[1, start:]
    puts, gets = float(stayed[start:].sum()), float(left[start:].sum())
    spread = float(regime.spread(net, 0, net.size)) if net.size > 3 else float(net.var(ddof=1))
    rate = float(put[start:].mean())
    return (
        start,
        float(net.mean()),
        (puts - gets) / net.size,
        max(spread, float(np.abs(net).mean()) * usual),
        float(lag[start:].sum()) / gets / rate if gets > 0 and rate > 0 else np.inf,
        min(1.0, gets / puts) if puts > 0 else 1.0,
        rate,
        n / (len(changes) - 0.5) if changes else np.inf,
    )
