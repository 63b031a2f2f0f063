"""Extension of measured levels of a resource: by a line, or by a curve that levels off where the rise becomes slower.

Source: [published: Gardner, McKenzie, "Forecasting trends in time series", 1985: the damped trend].
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from twin.forecast.flows import LATER
from twin.state.arrays import Array

MIN_LEVELS = 5  # of a rise, before it is extended
_FALL = 0.02  # share of the resource by which a level falls where a rise has ended
_MIN_DAMPED = 8  # levels from which a rise may be seen to slow down
_MIN_ERRORS = 2.0  # standard errors by which the later half must be slower
_DAMPING_ERROR = 0.3  # standard deviation of the logarithm of the damping [assumed]
_LEAST_ERROR = 0.05  # of a slope, as a share of it [assumed]


class Extension(NamedTuple):
    """Line or curve through the levels of a resource since its last fall."""

    levels: int
    age: int  # ticks from the first to the last
    low: float  # share at the first
    height: float  # share at the last
    slope: float  # share a tick, at the last
    error: float  # standard deviation of it
    damping: float  # damping of the slope, a tick; 0: it does not slow down

    @classmethod
    def fit(cls, ticks: list[int], shares: list[float]) -> Self | None:
        """Return the extension of levels; None where they do not rise, or too few do."""
        if len(shares) < MIN_LEVELS:
            return None
        start = last_fall(shares)
        times, levels = np.array(ticks[start:], float), np.array(shares[start:])
        if times.size < MIN_LEVELS or times[-1] <= times[0]:
            return None
        slope, error = _line(times, levels)
        damping = 0.0
        if times.size >= _MIN_DAMPED:
            middle = times.size // 2
            before, first = _line(times[:middle], levels[:middle])
            after, second = _line(times[middle:], levels[middle:])
            apart = float(times[middle:].mean() - times[:middle].mean())
            if abs(before - after) > _MIN_ERRORS * float(np.hypot(first, second)):
                slope, error = after, second
                if 0.0 < after < before:
                    damping = float(np.log(before / after)) / apart
                    slope *= float(np.exp(-damping * (times[-1] - times[middle:].mean())))
        if slope <= 0.0:
            return None
        error = max(error, _LEAST_ERROR * slope)
        return cls(times.size, int(times[-1] - times[0]), float(levels[0]), float(levels[-1]), slope, error, damping)

    @property
    def rests_at(self) -> float:
        """Share at which the level comes to rest; inf: it does not."""
        return self.height + self.slope / self.damping if self.damping else np.inf

    def full_at(self, doubts: Array, limit: float = 1.0) -> Array:
        """Return f8[n], ticks until full or inf; the limit is above 1 where the resource becomes larger by itself."""
        left = max(0.0, limit - self.height)
        slopes = np.maximum(self.slope + self.error * doubts[:, 0], 1e-12)
        ticks = left / slopes
        if self.damping:
            damping = self.damping * np.exp(_DAMPING_ERROR * doubts[:, 1])
            reached = left * damping / slopes
            ticks = np.where(reached < 1.0, -np.log1p(-np.minimum(reached, 1 - 1e-12)) / damping, np.inf)
        return np.asarray(ticks * np.exp(LATER * doubts[:, 2]))


def known_levels(shares: list[float]) -> int:
    """Return the number of levels that can be extended, at most `MIN_LEVELS`: after a fall those of the new rise."""
    start = last_fall(shares) if shares else 0
    is_rise = bool(shares) and shares[-1] - shares[start] > _FALL
    return min(MIN_LEVELS, len(shares) - start if is_rise else len(shares))


def last_fall(shares: list[float]) -> int:
    """Return the index of the lowest level since levels last fell by _FALL from one to the next."""
    falls = [i for i in range(1, len(shares)) if shares[i] < shares[i - 1] - _FALL]
    start = falls[-1] if falls else 0
    return start + int(np.argmin(shares[start:]))


def _line(times: Array, levels: Array) -> tuple[float, float]:
    centred = times - times.mean()
    square = float(centred @ centred)
    if square <= 0.0:
        return 0.0, np.inf
    slope = float(centred @ levels) / square
    rest = levels - levels.mean() - slope * centred
    return slope, float(np.sqrt(float(rest @ rest) / max(1, times.size - 2) / square))
