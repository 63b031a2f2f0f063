"""Usage over time, with a bound: when it is full, every other point of its older half goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MIN_POINTS = 60
MAX_POINTS = 480  # of a store: about a point per two pixels of a chart
MAX_TOTAL_POINTS = 200_000  # of all stores


class Point(NamedTuple):
    """A store at one time. time_s: event time; pct: usage by resource; times: p10, p50, p90 in seconds, or None."""

    time_s: float
    pct: Mapping[str, float]
    times: tuple[float, float, float] | None


class History:
    """The points of a store, by event time."""

    def __init__(self) -> None:
        self._points: list[Point] = []

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
        points.append(point)
        while len(points) > max_points:
            half = len(points) // 2
            del points[1:half:2]

    def columns(self) -> dict[str, Any]:
        """Return the points as columns for a chart, JSON-ready."""
        names = sorted({name for point in self._points for name in point.pct})
        return {
            "times": [round(point.time_s, 3) for point in self._points],
            "pct": {name: [point.pct.get(name) for point in self._points] for name in names},
            "time_to_full_s": [point.times for point in self._points],
        }


def points_per_store(stores: int) -> int:
    """Return the bound for each store. stores: their number."""
    return max(MIN_POINTS, min(MAX_POINTS, MAX_TOTAL_POINTS // max(1, stores)))
