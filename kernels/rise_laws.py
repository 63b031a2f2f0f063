"""The loops of `twin.forecast.rises`: past rises beside the one under way, by laws of how rises end.

An expert is a way to be alike, a law and a width. Laws are of the logarithm of a time or of a climb from the beginning
of a rise, by the numbers below. tests/naive/rise_laws.py is the same, slowly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels._compile import kernel, routine
from kernels.clock import SECOND, TICK
from kernels.layout import Array, Row

CAUSE, PACE, HOUR = range(3)  # ways to be alike: by cause alone, by pace too, by hour too
SIMILAR = 3
TIME, CLIMB, HEIGHT, HOUR_OF_END = range(4)  # what ends a rise
LAWS = 4
DAY_TICKS = 86_400 * SECOND // TICK
UNSEEN = 0.5  # rises of a kind not seen yet, beside those seen [assumed]
LEAST_CLIMB = 1e-6  # of which a logarithm is taken
GRID = 12  # places between which the share that continues is interpolated, dense at first
_BROAD = 0.05  # density of the logarithm, of a kind not seen yet [assumed]
_FADE = 0.95  # by which an older rise scores less than the next
_PACE_BANDWIDTH = 0.4  # of the logarithm of the pace
_HOUR_BANDWIDTH = 0.75 * DAY_TICKS / 24  # of the time of day at which rises begin
_MIN_CLIMB = 0.3  # of a rise: lower ones say nothing about it
_LEAST_WEIGHT = 0.01  # of an expert: below it the expert is left out
_LOGISTIC = 1.7  # times: a logistic curve as wide as a normal one
_STEEPEST = 50.0  # exponent of that curve
_ROOT_2_PI = np.sqrt(2 * np.pi)


class Experts(NamedTuple):
    """The experts, and working space.

    Attributes:
        prior: f8[SIMILAR, LAWS, w], the logarithm of what each weighs before any rise has ended.
        widths: f8[w], of the logarithm by which like rises differ.
        cause: bandwidth of the share of the puts that stayed.
        trusted: f8[SIMILAR, LAWS, w], written: what each weighs, together 1.
        grid: f8[2, GRID], working space.
        counted: f8[n], working space.
    """

    prior: Array
    widths: Array
    cause: float
    trusted: Array
    grid: Array
    counted: Array


@kernel
def _lasted(rise: Row) -> float:
    """Return the ticks that a past rise lasted."""
    return max(1.0, float(rise.ended - rise.began))


@kernel
def _climb(rise: Row) -> float:
    """Return the utilisation from the beginning to the end of a past rise."""
    return max(LEAST_CLIMB, rise.top - rise.low)


@kernel
def _stayed(rise: Row) -> float:
    """Return the share of the messages put during a past rise that stayed, 0..1."""
    return min(1.0, max(0.0, rise.stayed / max(1, rise.puts)))


@kernel
def _square(value: float) -> float:
    return value * value


@kernel
def _compare(rows: Array, climb: float, pace: float, stays: float, began: int, cause: float, weights: Array) -> None:
    """Write how much each rise counts for another, as `compare` does."""
    log_pace = np.log(pace)
    for number in range(rows.size):
        rise = rows[number]
        weight = 0.0
        if rise.refused > 0 or _climb(rise) >= _MIN_CLIMB * climb:
            weight = np.exp(-0.5 * _square((_stayed(rise) - stays) / cause))
        paces = np.log(_climb(rise) / _lasted(rise)) - log_pace
        hours = abs(rise.began - began) % DAY_TICKS
        hours = min(hours, DAY_TICKS - hours)
        weights[CAUSE, number] = weight
        weights[PACE, number] = weight * np.exp(-0.5 * _square(paces / _PACE_BANDWIDTH))
        weights[HOUR, number] = weight * np.exp(-0.5 * _square(hours / _HOUR_BANDWIDTH))


@routine
def compare(rows: Array, climb: float, pace: float, stays: float, began: int, cause: float, weights: Array) -> None:
    """Write how much each rise counts for another one, 0..1: by cause alone, by pace too, by hour too.

    Args:
        rows: RISE[n], past rises.
        climb: utilisation of the other one from its beginning on.
        pace: utilisation a tick.
        stays: share of the messages put that stayed.
        began: tick.
        cause: bandwidth of that share.
        weights: f8[SIMILAR, n], written.
    """
    _compare(rows, climb, pace, stays, began, cause, weights)


@kernel
def _end(rise: Row, law: int, low: float, began: int) -> float:
    """Return the logarithm at which a rise that began at a utilisation and a tick would end as a past one did."""
    if law == TIME:
        return float(np.log(_lasted(rise)))
    if law == CLIMB:
        return float(np.log(_climb(rise)))
    if law == HEIGHT:
        return float(np.log(max(LEAST_CLIMB, rise.top - low)))
    return float(np.log(max(1.0, float((rise.ended - began) % DAY_TICKS))))


@routine
def foretell(rows: Array, experts: Experts, weights: Array, score: Array) -> None:
    """Write the logarithm of the density that each expert gives each rise from the others.

    Of a rise that ended in 2192, and where there is but one harmless rise, it is 0. Older ones score less.

    Args:
        rows: RISE[n], past rises.
        experts: the experts; their widths and bandwidth are read.
        weights: f8[SIMILAR, n], working space.
        score: f8[SIMILAR, LAWS, w, n], written.
    """
    harmless = 0
    for number in range(rows.size):
        harmless += 1 if rows[number].refused == 0 else 0
        for similar in range(SIMILAR):
            for law in range(LAWS):
                for width in range(experts.widths.size):
                    score[similar, law, width, number] = 0.0
    for number in range(rows.size if harmless > 1 else 0):
        rise = rows[number]
        if rise.refused > 0:
            continue
        _compare(rows, _climb(rise), _climb(rise) / _lasted(rise), _stayed(rise), rise.began, experts.cause, weights)
        for similar in range(SIMILAR):
            for other in range(rows.size):
                if other == number or rows[other].refused > 0:
                    weights[similar, other] = 0.0
        fade = _FADE ** float(_newer(rows, number))
        for law in range(LAWS):
            reached = np.log(_lasted(rise) if law in (TIME, HOUR_OF_END) else _climb(rise))
            for other in range(rows.size):
                experts.counted[other] = reached - _end(rows[other], law, rise.low, rise.began)
            for width in range(experts.widths.size):
                _score(experts, weights, width, fade, score[:, law, width, number])


@kernel
def _newer(rows: Array, number: int) -> int:
    """Return how many harmless rises ended after one of them; of those that ended with it, the first is newest."""
    newer, ended = 0, rows[number].ended
    for other in range(rows.size):
        if rows[other].refused == 0 and (rows[other].ended > ended or (rows[other].ended == ended and other < number)):
            newer += 1
    return newer


@kernel
def _score(experts: Experts, weights: Array, width: int, fade: float, score: Array) -> None:
    """Write f8[SIMILAR], the scores of one law and width for a rise that is `experts.counted` apart from the others."""
    spread = experts.widths[width]
    for similar in range(SIMILAR):
        seen, total = 0.0, 0.0
        for other in range(weights.shape[1]):
            weight = weights[similar, other]
            if weight > 0.0:
                total += weight
                seen += weight * np.exp(-0.5 * _square(experts.counted[other] / spread)) / (spread * _ROOT_2_PI)
        score[similar] = np.log((seen + UNSEEN * _BROAD) / (total + UNSEEN)) * fade


@routine
def trust(weights: Array, score: Array, experts: Experts) -> float:
    """Write into `experts.trusted` what each expert weighs for rises of one kind; return the largest weight.

    Args:
        weights: f8[n], how much each past rise is of that kind.
        score: f8[SIMILAR, LAWS, w, n], as `foretell` writes it.
        experts: the experts.
    """
    trusted, largest = experts.trusted, -np.inf
    for similar in range(SIMILAR):
        for law in range(LAWS):
            for width in range(experts.widths.size):
                total = experts.prior[similar, law, width]
                for number in range(weights.size):
                    total += score[similar, law, width, number] * weights[number]
                trusted[similar, law, width] = total
                largest = max(largest, total)
    whole = 0.0
    for similar in range(SIMILAR):
        for law in range(LAWS):
            for width in range(experts.widths.size):
                trusted[similar, law, width] = np.exp(trusted[similar, law, width] - largest)
                whole += trusted[similar, law, width]
    for similar in range(SIMILAR):
        for law in range(LAWS):
            for width in range(experts.widths.size):
                trusted[similar, law, width] /= whole
    return 1.0 / whole


@routine
def outlast(
    rows: Array, low: float, began: int, weights: Array, score: Array, experts: Experts, places: Array, share: Array
) -> None:
    """Turn the share of the rises of an unseen kind that reach some places into that of all, by the experts' trust.

    Args:
        rows: RISE[n], past rises.
        low: utilisation at the beginning of the rise under way.
        began: tick at which it began.
        weights: f8[SIMILAR, n], how much each past rise counts.
        score: f8[SIMILAR, LAWS, w, n], as `foretell` writes it.
        experts: the experts.
        places: f8[2, 1 + k], the ticks, and the utilisation above `low`, that are reached at the places; overwritten.
            The first place is now.
        share: f8[1 + k], overwritten.
    """
    least = min(_LEAST_WEIGHT, trust(weights[CAUSE], score, experts))
    trusted = experts.trusted
    unseen = 0.0
    for similar in range(SIMILAR):
        total = UNSEEN
        for number in range(rows.size):
            total += weights[similar, number]
        for law in range(LAWS):
            for width in range(experts.widths.size):
                believed = trusted[similar, law, width] >= least
                trusted[similar, law, width] = trusted[similar, law, width] / total if believed else 0.0
                unseen += trusted[similar, law, width]
    for place in range(share.size):
        share[place] *= UNSEEN * unseen
        places[0, place] = np.log(places[0, place])
        places[1, place] = np.log(max(LEAST_CLIMB, places[1, place]))
    for law in range(LAWS):
        reached = places[0 if law in (TIME, HOUR_OF_END) else 1]
        if _spread_out(rows, law, low, began, weights, experts, reached):
            for place in range(share.size):
                share[place] += _between(experts.grid, reached[place])


@kernel
def _spread_out(
    rows: Array, law: int, low: float, began: int, weights: Array, experts: Experts, reached: Array
) -> bool:
    """Write `experts.grid`: places of a law, the share of past rises that reach them; False: no expert counts."""
    grid, counted, trusted = experts.grid, experts.counted, experts.trusted
    farthest = reached[0]
    for place in range(reached.size):
        farthest = max(farthest, reached[place])
    for place in range(GRID):
        grid[0, place] = reached[0] + (farthest - reached[0]) * _square(place / (GRID - 1.0))
        grid[1, place] = 0.0
    counts = False
    for width in range(experts.widths.size):
        total = trusted[CAUSE, law, width] + trusted[PACE, law, width] + trusted[HOUR, law, width]
        if total == 0.0:
            continue
        counts = True
        steepness = -_LOGISTIC / experts.widths[width]
        for number in range(rows.size):
            weight = 0.0
            for similar in range(SIMILAR):
                weight += trusted[similar, law, width] * weights[similar, number]
            went_on = rows[number].refused > 0
            counted[number] = 0.0 if went_on else _end(rows[number], law, low, began)
            for place in range(GRID):
                steep = -_STEEPEST if went_on else min(_STEEPEST, steepness * (counted[number] - grid[0, place]))
                grid[1, place] += weight / (1.0 + np.exp(steep)) if steep > -_STEEPEST else weight
    return counts


@kernel
def _between(grid: Array, place: float) -> float:
    """Return what a grid has at a place, interpolated."""
    if place >= grid[0, GRID - 1]:
        return float(grid[1, GRID - 1])
    if place <= grid[0, 0]:
        return float(grid[1, 0])
    after = 1
    while grid[0, after] <= place:
        after += 1
    slope = (grid[1, after] - grid[1, after - 1]) / (grid[0, after] - grid[0, after - 1])
    return float(grid[1, after - 1] + slope * (place - grid[0, after - 1]))
