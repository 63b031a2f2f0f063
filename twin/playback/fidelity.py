"""Fidelity of a resource: how much of what was measured the twin held too, if a little earlier or later.

A global alignment (Needleman and Wunsch) in which snapshots match within a tolerance, after Munoz, Wimmer, Troya and
Vallecillo, "Measuring the fidelity of digital twin systems", IEEE TSE 2024: percentage of matched snapshots, and the
mean distance of those matched. Model and measurement are sampled at the same times, so only a lag of a few samples is
looked for, which takes n * (2 * MAX_LAG + 1) steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import msgspec
import numpy as np

from kernels.clock import SECOND
from twin.base.units import as_text

MAX_POINTS = 10_000  # of a resource; then every second one is dropped
_HOUR = 3600 * SECOND
MAX_LAG = 3  # samples, either way
_GAP = -0.5  # for a sample of one trace without a partner: as many of both as a pair that does not match
_MISMATCH = -1.0
NEARNESS = 0.1  # of the score of a pair: it decides between alignments that match about as many
_PAIR, _MODEL_ALONE, _MEASURED_ALONE = 0, 1, 2
_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class DriftPoint:
    """Model and measurement of a resource at a time (microseconds since 1970), in its unit."""

    time: int
    model: float
    measured: float
    total: float

    @property
    def pct(self) -> float:
        """Model minus measurement, percent of the total."""
        return 100.0 * (self.model - self.measured) / self.total


@dataclass(slots=True)
class DriftPoints:
    """Points of a resource in order of time."""

    resource: str
    points: list[DriftPoint] = field(default_factory=list)
    _every: int = 1
    _skipped: int = 0

    def add(self, point: DriftPoint) -> None:
        """Append a point. Beyond MAX_POINTS every second one is dropped, but never the latest."""
        if len(self.points) >= MAX_POINTS:
            self.points = [*self.points[:-1:2], self.points[-1]]
            self._every *= 2
        if self._skipped and self.points:
            self.points.pop()  # the latest, which was kept only as such
        self.points.append(point)
        self._skipped = (self._skipped + 1) % self._every


class HourApart(msgspec.Struct, frozen=True, kw_only=True):
    """An hour in which twin and measurement of a resource part. worst_pct: twin less measurement, of the total."""

    hour: str
    measurements: int
    matched: int
    worst_pct: float


class ResourceFidelity(msgspec.Struct, frozen=True, kw_only=True):
    """How a resource of the twin followed its measurements, the twin as it was just before each."""

    resource: str  # the resource, as in alerts
    measurements: int  # those that tested the twin, at most 10,000 of them
    matched: int  # those within the tolerance
    alignment: Alignment  # what matches if the twin may be a few measurements late or early
    lag_s: float | None  # its lag in seconds, by the usual distance of measurements; None without a match
    apart: tuple[HourApart, ...]  # the hours in which they part, in order
    points: tuple[DriftPoint, ...]  # model and measurement

    @property
    def share(self) -> float:
        """Share of the measurements matched."""
        return self.matched / self.measurements

    @property
    def worst(self) -> DriftPoint:
        """Point of the largest drift, either way."""
        return _worst(self.points)


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """How two traces of the same length lie on each other."""

    matched: int  # pairs within the tolerance, of at most one per sample
    distance_pct: float | None  # mean distance of these pairs; None without any
    lag: int  # samples by which the twin is usually late; below 0: it is early


def fidelity_of(
    resource: str, points: Sequence[DriftPoint], tolerance_pct: float, since: int | None
) -> ResourceFidelity | None:
    """Return how a resource followed its measurements since a time, microseconds, or None; tolerance: percent of the
    total.
    """
    own = [point for point in points if since is None or point.time >= since]
    if not own:
        return None
    pcts = np.array([(100.0 * point.model / point.total, 100.0 * point.measured / point.total) for point in own])
    alignment = align(pcts[:, 0].tolist(), pcts[:, 1].tolist(), tolerance_pct)
    gap_s = median(after.time - before.time for before, after in pairwise(own)) / SECOND if len(own) > 1 else 0.0
    return ResourceFidelity(
        resource=resource,
        measurements=len(own),
        matched=sum(abs(point.pct) <= tolerance_pct for point in own),
        alignment=alignment,
        lag_s=alignment.lag * gap_s if alignment.matched else None,
        apart=tuple(_hours_apart(own, tolerance_pct)),
        points=tuple(own),
    )


def _hours_apart(points: Sequence[DriftPoint], tolerance_pct: float) -> list[HourApart]:
    by_hour: dict[int, list[DriftPoint]] = {}
    for point in points:
        by_hour.setdefault(point.time // _HOUR, []).append(point)
    return [
        HourApart(
            hour=as_text(hour * _HOUR),
            measurements=len(own),
            matched=sum(abs(point.pct) <= tolerance_pct for point in own),
            worst_pct=round(_worst(own).pct, 4),
        )
        for hour, own in sorted(by_hour.items())
        if any(abs(point.pct) > tolerance_pct for point in own)
    ]


def _worst(points: Sequence[DriftPoint]) -> DriftPoint:
    return max(points, key=lambda point: abs(point.pct))


# --- alignment -------------------------------------------------------------------------------------------------------


def align(model: Sequence[float], measured: Sequence[float], tolerance_pct: float) -> Alignment:
    """Return the alignment of two traces that were sampled at the same times.

    A pair scores 1 if it is equal, down to 0.9 at the tolerance. Of equal alignments that without lag is taken.
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
