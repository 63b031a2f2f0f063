"""Bins of a regime, read and summed in a slow and obvious way: the oracle of `kernels.regime`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
