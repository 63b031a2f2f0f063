"""How past rises predict others, a table for every law and expert: the oracle of `kernels.rise_laws`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DAY_TICKS = 8640
SIMILAR, LAWS = 3, 4


def lasted(rows: Array) -> Array:
    return np.asarray(np.maximum(1.0, (rows["ended"] - rows["began"]).astype(float)))


def climbs(rows: Array) -> Array:
    return np.asarray(np.maximum(1e-6, rows["top"] - rows["low"]))


def stayed(rows: Array) -> Array:
    return np.asarray(np.clip(rows["stayed"] / np.maximum(1, rows["puts"]), 0.0, 1.0))


def alike(rows: Array, climb: float, pace: float, stays: float, began: int, bandwidth: float) -> Array:
    """Return f8[SIMILAR, n], how much each rise counts for another: by cause alone, by pace too, by hour too."""
    cause = np.exp(-0.5 * ((stayed(rows) - stays) / bandwidth) ** 2)
    cause *= (climbs(rows) >= 0.3 * climb) | (rows["refused"] > 0)
    paces = np.log(climbs(rows) / lasted(rows)) - np.log(pace)
    hours = np.abs(rows["began"] - began) % DAY_TICKS
    hours = np.minimum(hours, DAY_TICKS - hours)
    by_pace, by_hour = np.exp(-0.5 * (paces / 0.4) ** 2), np.exp(-0.5 * (hours / 270) ** 2)
    return np.asarray(cause * np.stack([np.ones_like(cause), by_pace, by_hour]))


def ends(rows: Array, low: float, began: int) -> Array:
    """Return f8[LAWS, n], the logarithm at which a rise would end if it ended as each of `rows` did."""
    height = np.log(np.maximum(1e-6, rows["top"] - low))
    hour = np.log(np.maximum(1.0, (rows["ended"] - began) % DAY_TICKS))
    return np.stack([np.log(lasted(rows)), np.log(climbs(rows)), height, hour])


def foretold(rows: Array, widths: Array, bandwidth: float) -> Array:
    """Return f8[SIMILAR, LAWS, w, n], the score of each expert for each rise, from the others."""
    score = np.zeros((SIMILAR, LAWS, widths.size, rows.size))
    harmless = np.flatnonzero(rows["refused"] == 0)
    if harmless.size < 2:
        return score
    by_age = sorted(harmless.tolist(), key=lambda number: -int(rows["ended"][number]))
    for newer, number in enumerate(by_age):
        others, rise = rows[harmless[harmless != number]], rows[number : number + 1]
        long, high = float(lasted(rise)[0]), float(climbs(rise)[0])
        began, low = int(rise["began"][0]), float(rise["low"][0])
        weights = alike(others, high, high / long, float(stayed(rise)[0]), began, bandwidth)
        reached = np.log([long, high, high, long])
        for law, there in enumerate(ends(others, low, began)):
            for place, width in enumerate(widths):
                density = np.exp(-0.5 * ((reached[law] - there) / width) ** 2) / (width * np.sqrt(2 * np.pi))
                seen = (weights @ density + 0.5 * 0.05) / (weights.sum(axis=1) + 0.5)
                score[:, law, place, number] = np.log(seen) * 0.95**newer
    return score


def outlast(
    rows: Array, low: float, began: int, weights: Array, score: Array, prior: Array, widths: Array, places: Array
) -> Array:
    """Return f8[1 + k], the share of the rises that go on to some places, by the experts' trust.

    Args:
        rows: RISE[n], past rises.
        low: utilisation at the beginning of the rise under way.
        began: tick at which it began.
        weights: f8[SIMILAR, n], how much each past rise counts.
        score: f8[SIMILAR, LAWS, w, n], the scores of all experts.
        prior: f8[SIMILAR, LAWS, w], logarithms.
        widths: f8[w].
        places: f8[3, 1 + k], ticks, utilisation above `low`, share of the rises of an unseen kind that go on.
    """
    trusted = np.exp(score @ weights[0] + prior)
    trusted /= trusted.sum()
    least = min(0.01, float(trusted.max()))
    times, heights = np.log(places[0]), np.log(np.maximum(1e-6, places[1]))
    went_on, total = rows["refused"] > 0, np.zeros(places.shape[1])
    for similar, law, width in np.argwhere(trusted >= least).tolist():
        share = trusted[similar, law, width] / (weights[similar].sum() + 0.5)
        reached = np.maximum((times, heights, heights, times)[law], (times, heights, heights, times)[law][0])
        grid = reached[0] + (reached.max() - reached[0]) * np.linspace(0.0, 1.0, 12) ** 2
        apart = ends(rows, low, began)[law][:, None] - grid
        lasting = 1.0 / (1.0 + np.exp(np.minimum(-1.7 / widths[width] * apart, 50.0)))
        lasting[went_on] = 1.0
        total += share * (np.interp(reached, grid, weights[similar] @ lasting) + 0.5 * places[2])
    return total
