"""What really happened: the fillings of a store that ended in 2192, from the recording's own refused puts.

Two refused puts belong to one filling unless 15 minutes without any lie between them and the resource that was full
fell below 90 % meanwhile. A filling has an onset, a first and a last 2192.

The onset is when usage last began to climb from its level before. Going back from the first 2192, that level is

- the lowest point behind a fall that took back more than half of what was climbed since (and more than 5 points), or
- the level of a stretch of at least half an hour, and as long as the climb since, in which usage stayed within 15 % of
  what it climbed since (or 2 points; a twentieth of the looks aside at either end), or
- the lowest since the recording began, where neither is found;

and the onset is the last moment at which usage was no more than a twentieth of the climb (at least 1 point) above that
level. It is found for the resource that was full and for the bytes of the messages held, and the earlier one counts:
a data set begins to climb only when the offload rules say so, but messages piled up before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from twin.scoring.series import STEP, Series
from twin.state.arrays import Array

MINUTE = 60 * SECOND
PAUSE = 15 * MINUTE  # without a 2192, after which a filling may be over
WELL_BELOW = 90.0  # percent: it is over where usage fell below in the pause
FALL = 5.0  # points a fall has at least that ends the search for the onset
LEAST_CLIMB = 10.0  # points of climb before a level stretch can count as where it began
STRETCH = 30 * MINUTE  # a level stretch lasts at least so long
LEVEL, LEVEL_LEAST = 0.15, 2.0  # of the climb, points: within so much a stretch is level
NEAR, NEAR_LEAST = 0.05, 1.0  # of the climb, points: so near the level before, usage is not yet climbing
_COUNTED = {"entries": 0, "elements": 1, "scm": 1}  # column of Series.holdings; pages for any other resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Times in microseconds since 1970. refused: puts with 2192; grown: by queue, its share of what the full resource
    took up since the onset, the largest first; empty where no queue grew.
    """

    store: str
    resource: str
    onset: int
    first: int
    last: int
    refused: int
    grown: tuple[tuple[str, float], ...]

    @property
    def seconds(self) -> float:
        """From the onset to the first 2192."""
        return (self.first - self.onset) / SECOND


def fillings(series: Series) -> list[Filling]:
    """Those of a store, in the order of time."""
    found = []
    for start, end in _runs(series):
        first, last = int(series.refused[start]), int(series.refused[end - 1])
        at = _sample(series, first)
        column = _full_resource(series, first)
        began = min(onset(series.usage[: at + 1, column]), onset(_of_the_end(series.size[: at + 1])))
        grown = _grown(series, series.resources[column], began, at)
        found.append(
            Filling(
                store=series.store,
                resource=series.resources[column],
                onset=min(int(series.times[began]), first),
                first=first,
                last=last,
                refused=end - start,
                grown=grown,
            )
        )
    return found


def onset(usage: Array) -> int:
    """The place at which the climb to the last value began. usage: f8[n], percent, STEP apart, n > 0."""
    end = len(usage) - 1
    top = level = float(usage[end])
    start = lowest = end
    for at in range(end, -1, -1):
        here = float(usage[at])
        if here <= level:
            lowest, level = at, here
        start = at
        if here - level > max(FALL, (top - level) / 2):
            start = lowest
            break
        length = max(STRETCH // STEP, end - at)
        if at >= length and top - here >= LEAST_CLIMB and _is_level(usage[at - length : at + 1], top - here):
            start = at - length // 2
            level = min(level, float(np.median(usage[at - length : start])))
            break
    near = level + max(NEAR_LEAST, NEAR * (top - level))
    still = np.flatnonzero(usage[start:] <= near)
    return start + (int(still[-1]) if still.size else 0)


def _is_level(stretch: Array, climb: float) -> bool:
    low, high = np.quantile(stretch, [0.05, 0.95])
    return bool(high - low <= max(LEVEL_LEAST, LEVEL * climb))


def _runs(series: Series) -> list[tuple[int, int]]:
    """The refused puts that belong together: first and behind the last of each."""
    refused = series.refused
    if not refused.size:
        return []
    edges = [0]
    for at in (np.flatnonzero(np.diff(refused) >= PAUSE) + 1).tolist():
        before, after = _sample(series, int(refused[at - 1])), _sample(series, int(refused[at]))
        column = _full_resource(series, int(refused[edges[-1]]))
        if series.usage[before : after + 1, column].min() < WELL_BELOW:
            edges.append(at)
    return list(zip(edges, [*edges[1:], refused.size], strict=True))


def _sample(series: Series, time: int) -> int:
    """The place of the last look before a time, or the first of all."""
    return max(0, int(np.searchsorted(series.times, time, side="right")) - 1)


def _full_resource(series: Series, time: int) -> int:
    """Column of the resource that was fullest in the looks before and after a refused put."""
    at = _sample(series, time)
    return int(np.argmax(series.usage[at : at + 2].max(axis=0)))


def _of_the_end(size: Array) -> Array:
    """As percent of the last value."""
    return 100.0 * size / max(1, int(size[-1]))


def _grown(series: Series, resource: str, began: int, at: int) -> tuple[tuple[str, float], ...]:
    held = series.holdings[:, :, _COUNTED.get(resource, 2)]
    grown = np.maximum(held[at] - held[began], 0)
    order = np.argsort(-grown, kind="stable")
    total = max(1, int(grown.sum()))
    return tuple((series.queues[row], int(grown[row]) / total) for row in order.tolist() if grown[row])
