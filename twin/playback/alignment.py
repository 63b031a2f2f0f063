"""Alignment of two traces: how much of what was measured the twin went through too, if a little earlier or later.

A global alignment (Needleman and Wunsch) in which snapshots match within a tolerance, after Munoz, Wimmer, Troya and
Vallecillo, "Measuring the fidelity of digital twin systems", IEEE TSE 2024: percentage of matched snapshots, and the
mean distance of those matched. Model and measurement are sampled at the same times, so only a lag of a few samples is
looked for, which takes n * (2 * MAX_LAG + 1) steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

MAX_LAG = 3  # samples, either way
_GAP = -0.5  # for a sample of one trace without a partner: as many of both as a pair that does not match
_MISMATCH = -1.0
NEARNESS = 0.1  # of the score of a pair: it decides between alignments that match about as many
_PAIR, _MODEL_ALONE, _MEASURED_ALONE = 0, 1, 2
_NEVER = float("-inf")


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """How two traces of the same length lie on each other.

    Attributes:
        matched: pairs within the tolerance, of at most one per sample.
        distance_pct: mean distance of these pairs; None without any.
        lag: samples by which the twin is usually late; below 0: it is early.
    """

    matched: int
    distance_pct: float | None
    lag: int


def align(model: Sequence[float], measured: Sequence[float], tolerance_pct: float) -> Alignment:
    """Return the alignment of two traces that were sampled at the same times.

    A pair scores 1 if it is equal, down to 0.9 at the tolerance. Of equal alignments that without lag is taken.

    Args:
        model: percent of the total, n.
        measured: likewise, n.
        tolerance_pct: distance within which a pair matches.
    """
    count, width = len(model), 2 * MAX_LAG + 1
    steps = bytearray((count + 1) * width)
    before = [_NEVER] * width
    for row in range(count + 1):  # samples of the model so far; those measured are row + place - MAX_LAG
        scores = [_NEVER] * width
        for place in range(width):
            column = row + place - MAX_LAG
            if not 0 <= column <= count:
                continue
            if row == column == 0:
                scores[place] = 0.0
                continue
            best, step = _NEVER, _PAIR
            if row and column:
                best = before[place] + _score(abs(model[row - 1] - measured[column - 1]), tolerance_pct)
            if row and place + 1 < width and before[place + 1] + _GAP > best:
                best, step = before[place + 1] + _GAP, _MODEL_ALONE
            if column and place and scores[place - 1] + _GAP > best:
                best, step = scores[place - 1] + _GAP, _MEASURED_ALONE
            scores[place] = best
            steps[row * width + place] = step
        before = scores
    return _follow(steps, model, measured, tolerance_pct)


def _score(distance: float, tolerance_pct: float) -> float:
    if distance > tolerance_pct:
        return _MISMATCH
    return 1.0 - (NEARNESS * distance / tolerance_pct if tolerance_pct else 0.0)


def _follow(steps: bytearray, model: Sequence[float], measured: Sequence[float], tolerance_pct: float) -> Alignment:
    """Return the alignment whose last step of each pair of lengths is given."""
    width = 2 * MAX_LAG + 1
    row = column = len(model)
    distances: list[float] = []
    lags: Counter[int] = Counter()
    while row or column:
        step = steps[row * width + column - row + MAX_LAG]
        row -= step != _MEASURED_ALONE
        column -= step != _MODEL_ALONE
        if step == _PAIR:
            distance = abs(model[row] - measured[column])
            if distance <= tolerance_pct:
                distances.append(distance)
                lags[row - column] += 1
    lag = min(lags, key=lambda own: (-lags[own], abs(own)), default=0)
    mean = round(sum(distances) / len(distances), 4) if distances else None
    return Alignment(matched=len(distances), distance_pct=mean, lag=lag)
