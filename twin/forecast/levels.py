"""Forecast of a store whose puts and gets nothing reports, from the levels that were measured.

Each resync leaves a level of each resource. The levels since the last fall are extended by a line, or, where their rise
has become slower, by a curve that levels off [published: Gardner, McKenzie, "Forecasting trends in time series", 1985:
the damped trend]. The errors of slope and damping are drawn for each path. How earlier rises ended is not known, as
nothing is metered between two measurements: a rise is expected to last for as long as it has lasted so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

import msgspec
import numpy as np

from kernels import chance, resources
from twin.forecast.fill_model import FillModel
from twin.forecast.flows import LATER, PATHS
from twin.forecast.outlook import SECONDS, Outlook, seed_of, usage
from twin.forecast.rises import Past, Rise, goes_on
from twin.state.arrays import Array

MIN_LEVELS = 5  # of a rise, before it is extended
MAX_LEVELS = 90  # that are kept: an hour and a half of RMF's minutes
_FALL = 0.02  # share of the resource by which a level falls where a rise has ended
_MIN_DAMPED = 8  # levels from which a rise may be seen to slow down
_MIN_ERRORS = 2.0  # standard errors by which the later half must be slower
_STALE_GAPS = 5  # usual times between two levels, after which the last one says nothing about now [assumed]
_DAMPING_ERROR = 0.3  # standard deviation of the logarithm of the damping [assumed]
_NOTHING = np.zeros(0)
_NO_PAST = Past(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, np.zeros(0, np.bool_))
_LEAST_ERROR = 0.05  # of a slope, as a share of it [assumed]


class Levels(msgspec.Struct, kw_only=True):
    """Measured levels of a store, oldest first.

    Attributes:
        ticks: of the measurements.
        shares: by name of a resource, its use at each tick, as a share of what it holds.
    """

    ticks: list[int] = []
    shares: dict[str, list[float]] = {}

    def note(self, tick: int, fill: FillModel) -> None:
        """Add the levels of a store that has just taken over a measurement.

        Args:
            tick: of the measurement; a second one of the same tick replaces the first.
            fill: the fill model as of then.
        """
        levels = {name: usage(fill, number) for number, name in enumerate(fill.resources)}
        if self.ticks and (tick < self.ticks[-1] or levels.keys() != self.shares.keys()):
            self.ticks, self.shares = [], {}
        if self.ticks and tick == self.ticks[-1]:
            self.ticks.pop()
            for shares in self.shares.values():
                shares.pop()
        self.ticks = [*self.ticks, tick][-MAX_LEVELS:]
        self.shares = {name: [*self.shares.get(name, []), level][-MAX_LEVELS:] for name, level in levels.items()}


class Extension(NamedTuple):
    """Line or curve through the levels of a resource since its last fall.

    Attributes:
        levels: their number.
        age: ticks from the first to the last.
        low: share at the first.
        height: share at the last.
        slope: share a tick, at the last.
        error: standard deviation of it.
        damping: of the slope, a tick; 0: it does not slow down.
    """

    levels: int
    age: int
    low: float
    height: float
    slope: float
    error: float
    damping: float

    @classmethod
    def fit(cls, ticks: list[int], shares: list[float]) -> Self | None:
        """Return the extension of levels; None where they do not rise, or too few do."""
        start = _last_fall(shares)
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

    def full_at(self, doubts: Array) -> Array:
        """Return f8[n], ticks until the resource is full, inf where it never is. doubts: normal, f8[n, 3]."""
        left = max(0.0, 1.0 - self.height)
        slopes = np.maximum(self.slope + self.error * doubts[:, 0], 1e-12)
        ticks = left / slopes
        if self.damping:
            damping = self.damping * np.exp(_DAMPING_ERROR * doubts[:, 1])
            reached = left * damping / slopes
            ticks = np.where(reached < 1.0, -np.log1p(-np.minimum(reached, 1 - 1e-12)) / damping, np.inf)
        return np.asarray(ticks * np.exp(LATER * doubts[:, 2]))


def look_ahead(name: str, fill: FillModel, levels: Levels, tick: int, horizon: int) -> Outlook | None:
    """Return the outlook of a store from its levels; None where they do not rise, too few do, or the last is old.

    Args:
        name: the store's name, from which the random numbers come.
        fill: its fill model.
        levels: measured.
        tick: the present.
        horizon: ticks.
    """
    shares = {number: levels.shares.get(resource, []) for number, resource in enumerate(fill.resources)}
    fits = {number: fit for number in shares if (fit := Extension.fit(levels.ticks, shares[number])) is not None}
    if not fits or tick - levels.ticks[-1] > _STALE_GAPS * float(np.median(np.diff(levels.ticks))):
        return None
    doubts = np.empty((PATHS, 3))
    chance.normal(np.uint64(seed_of(name, tick)), doubts[: PATHS // 2])
    doubts[PATHS // 2 :] = -doubts[: PATHS // 2]
    full_at, full_of = _first_full(fits, doubts, tick - levels.ticks[-1], horizon)
    first = max(fits.values(), key=lambda fit: fit.slope)
    rise = Rise(float(max(1, first.age)), first.low, first.height, 1.0)
    filled = np.flatnonzero(full_of >= 0)
    ahead = np.append(full_at[filled], 60.0 / SECONDS)
    chances = goes_on(rise, _NO_PAST, first.slope, first.age, ahead, first.height + first.slope * ahead)
    weights = np.zeros(PATHS)
    weights[filled] = chances[:-1]
    return Outlook(
        fill,
        None,
        horizon,
        0.0,
        full_at * SECONDS,
        full_of,
        weights,
        rise,
        _NO_PAST,
        1.0 - float(chances[-1]),
        0.0,
        first,
    )


def _first_full(fits: Mapping[int, Extension], doubts: Array, waited: int, horizon: int) -> tuple[Array, Array]:
    """Return (ticks until full or inf, resource or -1) of every path. waited: ticks since the last level."""
    full_at, full_of = np.full(PATHS, np.inf), np.full(PATHS, resources.NOTHING_FULL)
    for number, fit in fits.items():
        ticks = np.maximum(0.0, fit.full_at(doubts) - waited)
        sooner = (ticks < full_at) & (ticks <= horizon)
        full_at, full_of = np.where(sooner, ticks, full_at), np.where(sooner, number, full_of)
    return full_at, full_of


def _last_fall(shares: list[float]) -> int:
    """Return the index of the lowest level since levels last fell by _FALL from one to the next."""
    falls = [i for i in range(1, len(shares)) if shares[i] < shares[i - 1] - _FALL]
    start = falls[-1] if falls else 0
    return start + int(np.argmin(shares[start:]))


def _line(times: Array, levels: Array) -> tuple[float, float]:
    """Return the slope of a line through levels, and its standard error."""
    centred = times - times.mean()
    square = float(centred @ centred)
    if square <= 0.0:
        return 0.0, np.inf
    slope = float(centred @ levels) / square
    rest = levels - levels.mean() - slope * centred
    return slope, float(np.sqrt(float(rest @ rest) / max(1, times.size - 2) / square))
