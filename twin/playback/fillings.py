"""Fillings of a store that ended in 2192, from the refused puts of the recording.

Two refused puts belong to one filling unless 15 minutes without one lie between them and the resource that was full
fell below 90 % in that time. The onset is determined for that resource and for the bytes of the messages held, and the
earlier one counts: a data set begins to rise only when the offload rules apply, but messages piled up before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND
from twin.playback.samples import STEP
from twin.playback.series import Series
from twin.state.arrays import Array

MINUTE = 60 * SECOND
PAUSE = 15 * MINUTE  # time without a 2192 after which a filling may be over
WELL_BELOW = 90.0  # percent: it is over if usage fell below this in the pause
FALL = 5.0  # points: minimum fall that ends the search for the onset
MIN_RISE = 10.0  # points: minimum rise after a level stretch
STRETCH = 30 * MINUTE  # minimum length of a level stretch
LEVEL, MIN_LEVEL = 0.15, 2.0  # range of a level stretch: share of the rise, points
NEAR, MIN_NEAR = 0.05, 1.0  # distance from the base level below which usage is not rising: share of the rise, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Filling of a store. Times in microseconds since 1970."""

    store: str
    resource: str
    onset: int
    first: int  # 2192
    last: int  # 2192
    refused: int  # number of puts with 2192

    @property
    def seconds(self) -> float:
        """Seconds from the onset to the first 2192."""
        return (self.first - self.onset) / SECOND


def fillings(series: Series) -> list[Filling]:
    """Return the fillings of a store in order of time."""
    result = []
    for start, end in _runs(series):
        first, last = int(series.refused[start]), int(series.refused[end - 1])
        sample = _sample(series, first)
        column = _full_resource(series, first)
        began = min(onset(series.usage[: sample + 1, column]), onset(_of_the_end(series.size[: sample + 1])))
        result.append(
            Filling(
                store=series.store,
                resource=series.resources[column],
                onset=min(int(series.times[began]), first),
                first=first,
                last=last,
                refused=end - start,
            )
        )
    return result


def onset(usage: Array) -> int:
    """Return the index in `usage`, f8[n], percent, STEP apart, at which the rise to the last value began: the last one
    near the base level before it.

    The base level is, going back, the first of: the lowest point after a fall of more than half of the rise since then,
    and more than FALL; the level of a stretch of at least STRETCH, and as long as the rise since then, in which usage
    stayed within LEVEL of that rise; the minimum.
    """
    end = len(usage) - 1
    top = level = float(usage[end])
    start = lowest = end
    for i in range(end, -1, -1):
        value = float(usage[i])
        if value <= level:
            lowest, level = i, value
        start = i
        if value - level > max(FALL, (top - level) / 2):
            start = lowest
            break
        length = max(STRETCH // STEP, end - i)
        if i >= length and top - value >= MIN_RISE and _is_level(usage[i - length : i + 1], top - value):
            start = i - length // 2
            level = min(level, float(np.median(usage[i - length : start])))
            break
    near = level + max(MIN_NEAR, NEAR * (top - level))
    still = np.flatnonzero(usage[start:] <= near)
    return start + (int(still[-1]) if still.size else 0)


def _is_level(stretch: Array, rise: float) -> bool:
    low, high = np.quantile(stretch, [0.05, 0.95])
    return bool(high - low <= max(MIN_LEVEL, LEVEL * rise))


def _runs(series: Series) -> list[tuple[int, int]]:
    """Return the runs of refused puts of one filling: (first, index behind the last)."""
    refused = series.refused
    if not refused.size:
        return []
    edges = [0]
    for i in (np.flatnonzero(np.diff(refused) >= PAUSE) + 1).tolist():
        before, after = _sample(series, int(refused[i - 1])), _sample(series, int(refused[i]))
        column = _full_resource(series, int(refused[edges[-1]]))
        if series.usage[before : after + 1, column].min() < WELL_BELOW:
            edges.append(i)
    return list(zip(edges, [*edges[1:], refused.size], strict=True))


def _sample(series: Series, time: int) -> int:
    """Return the index of the last sample before a time, at least 0."""
    return max(0, int(np.searchsorted(series.times, time, side="right")) - 1)


def _full_resource(series: Series, time: int) -> int:
    """Return the column of the resource with the highest usage in the samples around a refused put."""
    sample = _sample(series, time)
    return int(np.argmax(series.usage[sample : sample + 2].max(axis=0)))


def _of_the_end(size: Array) -> Array:
    """Return sizes as percent of the last one."""
    return 100.0 * size / max(1, int(size[-1]))
