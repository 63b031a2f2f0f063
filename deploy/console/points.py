"""Usage over time, with a bound that keeps the peaks.

When the bound is reached, time is cut into intervals, and of each of them the samples stay in which a resource was
highest or lowest. The intervals are twice as long as often as it needs; extremes of a longer interval are extremes of
the shorter ones in it, so a peak is never lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any, NamedTuple

MIN_POINTS = 60
MAX_POINTS = 480  # of a store: about a point per two pixels of a chart
MAX_TOTAL_POINTS = 200_000  # of all stores
_SHORTEST_S = 1.0  # interval of the first thinning
_LEAST_FALL_PCT = 0.5  # of a resource, by which it has to be below its peak to be called falling
_LEAST_FALL_S = 60.0  # since its peak
_LAST_POINTS = 3  # in which it may not have risen
_SHARE_LEFT = 0.75  # share of the bound that a thinning may leave


class Point(NamedTuple):
    """A store at one time. time_s: event time; pct: usage by resource; times: p10, p50, p90 in seconds, or None."""

    time_s: float
    pct: Mapping[str, float]
    times: tuple[float, float, float] | None


class History:
    """The points of a store, by event time."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._interval_s = _SHORTEST_S

    def __len__(self) -> int:
        return len(self._points)

    def add(self, point: Point, max_points: int) -> None:
        """Add a point. One of the same time replaces the last; an earlier one begins a new history."""
        points = self._points
        if points and point.time_s == points[-1].time_s:
            points[-1] = point
            return
        if points and point.time_s < points[-1].time_s:
            points.clear()  # another recording, or a job that began anew
            self._interval_s = _SHORTEST_S
        points.append(point)
        if len(points) > max_points:
            self._thin(max(2, int(_SHARE_LEFT * max_points)))

    def _thin(self, max_extremes: int) -> None:
        """Keep the extremes of each interval, and the last point. max_extremes: their number."""
        *older, last = self._points
        extremes = list(_extremes(older, self._interval_s))
        while len(extremes) >= max_extremes and self._interval_s < last.time_s - older[0].time_s:
            self._interval_s *= 2
            extremes = list(_extremes(extremes, self._interval_s))
        step = -(-len(extremes) // (max_extremes - 1))  # above 1 only where a store has more resources than points
        self._points = [*extremes[::step], last]

    def falling_since(self, name: str) -> float | None:
        """Return the time at which a resource was last fullest, seconds since 1970; None: it does not fall."""
        known = [(point.pct[name], point.time_s) for point in self._points if name in point.pct]
        if not known:
            return None
        pct, time_s = max(known)
        is_falling = pct - known[-1][0] >= _LEAST_FALL_PCT and known[-1][1] - time_s >= _LEAST_FALL_S
        is_falling = is_falling and all(before[0] >= after[0] for before, after in pairwise(known[-_LAST_POINTS:]))
        return time_s if is_falling else None

    def columns(self) -> dict[str, Any]:
        """Return the points as columns for a chart, JSON-ready."""
        names = sorted({name for point in self._points for name in point.pct})
        return {
            "times": [round(point.time_s, 3) for point in self._points],
            "pct": {name: [point.pct.get(name) for point in self._points] for name in names},
            "time_to_full_s": [point.times for point in self._points],
        }


def _extremes(points: list[Point], interval_s: float) -> Iterator[Point]:
    """Yield, of each interval, the first point and those in which a resource is highest or lowest, in their order."""
    for _, interval in groupby(points, lambda point: point.time_s // interval_s):
        own = list(interval)
        places = {0}
        for name in {name for point in own for name in point.pct}:
            known = [(i, point.pct[name]) for i, point in enumerate(own) if name in point.pct]
            places.add(max(known, key=lambda item: item[1])[0])
            places.add(min(known, key=lambda item: item[1])[0])
        yield from (own[place] for place in sorted(places))


def points_per_store(stores: int) -> int:
    """Return the bound for each store. stores: their number."""
    return max(MIN_POINTS, min(MAX_POINTS, MAX_TOTAL_POINTS // max(1, stores)))
