"""The outlook of a store: when it will be full, and how probable that is; and the extension of measured levels.

- Outlook: the store's own rules are rolled forward over futures drawn from the present regime (`kernels.forecast`).
  Whether the rise continues until then is estimated from how the store's rises have ended before
  (`twin.forecast.rises`).
- Extension: by a line, or by a curve that levels off where the rise becomes slower. Source: [published: Gardner,
  McKenzie, "Forecasting trends in time series", 1985: the damped trend].
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import msgspec
import numpy as np

from kernels import forecast, meter_rows
from kernels.clock import HALF_HOUR_TICKS, TICK
from kernels.layout import Store
from kernels.meter_rows import CLASSES
from twin.forecast.fill_model import FillModel
from twin.forecast.flows import LATER, PATHS, READ, Flow, Futures, Reading, Regime, futures
from twin.forecast.rises import (
    SPANS,
    Past,
    Rise,
    Trust,
    chance_beyond_past,
    chance_to_last,
    past_of,
    tide_of,
    under_way,
)
from twin.records import TimeToFull
from twin.state.arrays import Array

# --- extension of measured levels of a resource -----------------------------------------------------------------------

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


# --- outlook ----------------------------------------------------------------------------------------------------------

SECONDS = TICK // 1_000_000  # of a bin
FINE_TICKS = 360  # in which a store that fills in them is rolled in steps of a tick
_MOST_TURNED = 3.0  # times: puts that count, beside what stays of them [assumed]
_MOST_WANDERED = 1.0  # of the logarithm of the time to full [assumed]
_ANNOUNCED = 0.95  # chance that a rise lasts as long as it is announced [assumed]
_MAIN = 0.5  # of the growth, from which what is announced is what fills [assumed]
_FEW = 0.3  # past rises, by weight, below which none is like the present one


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The prediction for one resource."""

    store: str
    time: int  # event time, microseconds
    resource: str
    usage_pct: float
    p10: float | None  # p10, p50, p90: seconds until it is full, if it fills; None: not within the horizon
    p50: float | None
    p90: float | None
    probability: float  # that it is full within the horizon
    first: bool  # True if no other resource of the store is likely to be full before

    @property
    def time_to_full_s(self) -> TimeToFull | None:
        """The quantiles together; None: not within the horizon."""
        if self.p10 is None or self.p50 is None or self.p90 is None:
            return None
        return TimeToFull(p10=self.p10, p50=self.p50, p90=self.p90)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Paths of a store from one moment on."""

    fill: FillModel  # the fill model that was rolled forward
    drawn: Futures | None  # the futures it was rolled over; None: it extends measured levels
    horizon: int  # ticks
    net: float  # elements, pages or blocks that a tick adds to the store, unoffloaded
    full_at: Array  # f8[PATHS], seconds until full, inf
    full_of: Array  # i8[PATHS], the resource that is full first, -1: none
    weights: Array  # f8[PATHS], probability that the rise continues until then
    rise: Rise  # the rise under way of the resource most likely to be full first
    past: Past  # rises before it that are like it
    rests_at_pct: float  # percent of the store at which the backlog rests, without rules; 0: it does not
    extended: Extension | None = None  # levels of the resource that rises fastest, where levels are extended
    reading: Reading = READ  # how the queues that fill the store are read
    has_stopped: bool = False  # True if a getter has stopped

    @property
    def is_clear(self) -> bool:
        """True if nobody reads what fills the store, or its getters stopped, or lag, as they never did.

        A stop is one without a rise like it, a lag one in the first rise of the store.
        """
        if self.reading.is_unread:
            return True
        if self.reading.is_absent(self.rise.age):
            return self.has_stopped and float(self.past.weights.sum()) < _FEW
        return not self.past.rows.size and self.reading.lags

    @property
    def keeps_up(self) -> bool:
        """True if the getters of the queue that fills the store get almost as much as is put."""
        return self.reading.keeps_up(self.rise.age)

    @property
    def probability(self) -> float:
        """Probability that any resource is full within the horizon."""
        return float(self.weights[self.full_of >= 0].sum()) / self.full_at.size

    def probability_within(self, seconds: float) -> float:
        """Return the probability that any resource is full within some seconds, at most the horizon."""
        return float(self.weights[(self.full_of >= 0) & (self.full_at <= seconds)].sum()) / self.full_at.size

    def probability_of(self, resource: int) -> float:
        """Return the probability that this resource is the first to be full."""
        return float(self.weights[self.full_of == resource].sum()) / self.full_at.size

    @property
    def first(self) -> int:
        """Resource most likely to be full first; -1: none on any path."""
        if not (self.full_of >= 0).any():
            return -1
        return int(np.argmax([self.probability_of(number) for number in range(len(self.fill.resources))]))

    def quantiles(self, resource: int | None = None) -> tuple[float, float, float] | None:
        """Return the seconds until full (p10, p50, p90) on the paths that fill one resource, or any; None: no path."""
        chosen = self.full_of >= 0 if resource is None else self.full_of == resource
        if not chosen.any():
            return None
        full_at, weights = self.full_at[chosen], self.weights[chosen]
        order = np.argsort(full_at, kind="stable")
        passed = np.cumsum(weights[order]) - weights[order] / 2
        p10, p50, p90 = np.interp(np.array([0.1, 0.5, 0.9]) * weights.sum(), passed, full_at[order]).tolist()
        return p10, p50, p90


def look_ahead(
    store: Store,
    name: str,
    fill: FillModel,
    now: Regime,
    tick: int,
    horizon: int,
    doubt: float = 0.0,
    fine: int = 0,
    longer: float = 0.0,
    trusted: Trust | None = None,
    wanders: Array | None = None,
    reading: Reading = READ,
    planned: Sequence[Flow] = (),
) -> Outlook:
    """Return the outlook of a store from a tick on; the same arguments give the same outlook.

    `doubt`: standard deviation of the time to full for a measured error of the model, as a share; `fine`: bins in which
    every step is of one bin: rules act sooner, and a roll costs more; `longer`: as for `twin.forecast.flows.steps`;
    `trusted`: of the puts of earlier days; `wanders`: f8[SPANS], as of `twin.forecast.rises.wandering`; `reading`: for
    what nobody reads the ends of earlier rises do not count.
    """
    now = replace(now, has_stopped=now.has_stopped or reading.has_stopped)
    scalars = fill.scalars.copy()
    scalars["wait"], scalars["served_share"] = now.wait, now.got
    fill = replace(fill, scalars=scalars)
    days = None if trusted is None else (trusted, tick)
    drawn = futures(now, fill, horizon, seed_of(name, tick), fine, longer, days, planned)
    full_at, full_of = roll(fill, drawn)
    is_announced = _is_announced(planned, now, full_at)
    wandered = 0.0 if wanders is None else _spread_of_time(fill, now, wanders, full_at)
    full_at *= drawn.pace ** (np.hypot(math.hypot(LATER, doubt), wandered) / LATER)
    is_beyond = full_at > horizon
    full_at[is_beyond], full_of[is_beyond] = np.inf, meter_rows.NOTHING_FULL
    filled = np.flatnonzero(full_of >= 0)
    tides = np.array([tide_of(store, tide) for tide in fill.tides])
    tides_of = tides[full_of[filled]]
    beyond = np.array([max(reading.unread, chance_beyond_past(store, tide)) for tide in fill.tides])
    weights, courses = np.zeros(PATHS), {}
    for tide in sorted(set(tides_of.tolist())) or [meter_rows.TOTAL_TIDE]:
        paths = filled[tides_of == tide]
        if tide == meter_rows.TOTAL_TIDE:
            pace = _pace(fill, now)
        else:
            left = 1.0 - float(store.tides[tide]["share"])
            pace = left / max(1.0, float(np.median(full_at[paths])))
        courses[tide] = _course(store, tick, tide, pace, now, full_at[paths])
        chance = beyond[full_of[paths]]
        weights[paths] = chance + (1.0 - chance) * courses[tide].chances
    weights[is_announced & (full_of >= 0)] = np.maximum(weights[is_announced & (full_of >= 0)], _ANNOUNCED)
    first = int(np.bincount(full_of[filled], weights[filled], tides.size).argmax())
    course = courses.get(int(tides[first]), courses[min(courses)])
    return Outlook(
        fill,
        drawn,
        horizon,
        now.net,
        full_at * SECONDS,
        full_of,
        weights,
        course.rise,
        course.past,
        _rests_at(fill, now),
        reading=reading,
        has_stopped=now.has_stopped,
    )


def _is_announced(planned: Sequence[Flow], now: Regime, full_at: Array) -> Array:
    """Return bool[PATHS], True if a path is full while what mainly fills it is announced. full_at: ticks."""
    announced = np.zeros(full_at.size, np.bool_)
    for flow in planned:
        growth = max(now.net_messages, 0.0) + max(flow.rate, 0.0)
        begin, end = (flow.begin, flow.end) if flow.rate > 0.0 else (0.0, flow.begin)
        if flow.is_sure and abs(flow.rate) >= _MAIN * growth:
            announced |= (full_at >= begin) & (full_at <= end)
    return announced


def look_closely(store: Store, name: str, fill: FillModel, now: Regime, tick: int, horizon: int) -> Outlook:
    """Return the outlook for a question; of a store that soon fills by steps of a tick. Arguments of `look_ahead`."""
    outlook = look_ahead(store, name, fill, now, tick, horizon)
    if np.quantile(outlook.full_at, 0.1, method="nearest") < FINE_TICKS * SECONDS:  # long steps let rules act late
        outlook = look_ahead(store, name, fill, now, tick, horizon, fine=min(horizon, FINE_TICKS))
    return outlook


class _Course(NamedTuple):
    """How a rise may continue. chances: f8[n], that it does until each of n paths is full."""

    rise: Rise
    past: Past
    chances: Array


def _course(store: Store, tick: int, tide: int, pace: float, now: Regime, full_at: Array) -> _Course:
    """Return how the rise of a row of `tides` may continue."""
    rise = under_way(store, tick, tide)
    past = past_of(store, rise, tide)
    chances = chance_to_last(rise, past, pace, now.bins.shape[0], full_at, has_stopped=now.has_stopped)
    return _Course(rise, past, chances)


def _spread_of_time(fill: FillModel, now: Regime, wanders: Array, full_at: Array) -> Array:
    """Return f8[PATHS], the standard deviation of the logarithm of the time to full, for puts that wander until then.

    Growth is the difference of puts and gets: where these are nearly equal, a small change of the puts changes it a
    lot.
    """
    stay = max(0.0, float(now.bins[:, :CLASSES].sum(axis=0) @ fill.weights)) / now.bins.shape[0]
    spans = np.minimum(full_at / HALF_HOUR_TICKS, SPANS[-1])
    variance = np.interp(spans, (0.0, *SPANS), (0.0, *(wanders**2).tolist()))
    turned = stay / max(now.net, stay / _MOST_TURNED) if stay > 0.0 else 0.0
    return np.asarray(np.minimum(np.sqrt(variance) * turned, _MOST_WANDERED))


def seed_of(store: str, tick: int) -> int:
    """Return a seed of 64 bits from a store and a tick."""
    return int.from_bytes(hashlib.blake2b(f"{store}\0{tick}".encode(), digest_size=8).digest(), "big")


def roll(fill: FillModel, drawn: Futures) -> tuple[Array, Array]:
    """Return (ticks until full or inf, resource or -1) of every path, as of `forecast.Scratch`."""
    some = drawn.classes
    model = forecast.Model(
        scalars=fill.scalars,
        classes=fill.classes.take(some, axis=0),
        offload=fill.offload.take(some, axis=1),
        sets=fill.sets,
        set_put=fill.set_put.take(some, axis=1),
        set_held=fill.set_held.take(some, axis=1),
    )
    flows = forecast.Flows(
        cumulated=drawn.cumulated,
        bins=drawn.bins,
        trend=drawn.trend,
        lengths=drawn.lengths,
        starts=drawn.starts,
        extra=drawn.extra,
        larger=drawn.larger,
        block=drawn.block,
        mix=drawn.mix,
        second=drawn.second,
        others=drawn.others,
    )
    scratch = forecast.new_scratch(model, flows)
    forecast.roll(model, flows, scratch)
    return scratch.full_at, scratch.full_of


def _rests_at(fill: FillModel, now: Regime) -> float:
    """Return the percent of a store at which a backlog that is served in proportion comes to rest, 0: none is."""
    if not now.service or now.held <= 0.0:
        return 0.0
    scalars = fill.scalars[0]
    puts = float(now.bins[:, :CLASSES].sum()) / now.bins.shape[0]
    usage_now = max(float(scalars["ents"] / scalars["ents_max"]), float(scalars["space"] / scalars["space_max"]))
    return float(100.0 * usage_now * puts / now.service / now.held)


def _pace(fill: FillModel, now: Regime) -> float:
    """Return the growth of the store's content in a tick, as `kernels.meters` measures it."""
    scalars = fill.scalars[0]
    space = now.net / float(scalars["space_max"])
    return space + now.net_messages / float(scalars["ents_max"]) if scalars["counts_ents"] else space


def usage(fill: FillModel, resource: int) -> float:
    """Return the share of a resource in use."""
    return float(forecast.usage_of(fill.scalars, fill.sets, resource))


def fullest(fill: FillModel) -> int:
    """Return the resource of which most is in use; entries only where the kind of store has them."""
    return int(forecast.fullest(fill.scalars, fill.sets))


def is_full(fill: FillModel) -> bool:
    """Return True if a resource whose exhaustion fails puts is used up; SCM is not one of them."""
    first = meter_rows.ENTRIES if fill.scalars[0]["counts_ents"] else meter_rows.SPACE
    numbers = range(first, meter_rows.FIRST_DATA_SET + fill.sets.shape[0])
    return any(usage(fill, number) >= 1.0 for number in numbers)
