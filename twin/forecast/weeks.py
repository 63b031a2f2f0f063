"""The long forecast: until Monday morning, and up to two weeks ahead, from a store's own hours.

The least and the largest share in use of each hour of the last four weeks are kept. Once an hour, paths of the coming
fourteen days are drawn from them: each coming day is one of the store's days by chance, rather one of the same weekday
and a recent one, the first of them rather one that began like this one; they begin at the least share of the last day.
A leak is a rise of these daily least shares that stands out of their differences [published: Theil, "A rank-invariant
method of linear and polynomial regression analysis", 1950]. A leak, and a rise beyond what the day drawn began with,
last the longer, the longer they have lasted. Planned work comes on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple, Self

import msgspec
import numpy as np

from kernels import forecast
from kernels.clock import HALF_HOUR_TICKS, SECOND, TICK
from twin.alerts.episodes import Alert, Episode, Finding
from twin.alerts.texts import NOTHING
from twin.base.conditions import SCM, Condition
from twin.base.units import as_text, in_zone
from twin.forecast.fill_model import ForecastView
from twin.forecast.outlook import seed_of, usage
from twin.forecast.plans import Plans, length_of, with_space
from twin.records import LongForecast, TimeToFull
from twin.state.arrays import Array

HOUR_TICKS = 2 * HALF_HOUR_TICKS
DAY = 24  # hours
HOURS = 28 * DAY  # that are kept
AHEAD = 14 * DAY  # hours that are foreseen
LEAST_KNOWN = 2 * DAY  # hours: with less there is no long forecast
_FRIDAY, _DECIDED_AT = 4, time(15)  # when it is decided whether the weekend lasts
_MONDAY, _BACK_AT = 0, time(8)  # when people are back
_LASTS = 0.5  # chance to last, below which it is said on Friday
_UNIT = 10_000.0  # in which shares are kept
_I2 = np.dtype("<i2")
LEAST_BYTES = LEAST_KNOWN * _I2.itemsize  # of `Weeks.lows`
_MAX_UNITS = np.iinfo(_I2).max
_PATHS = 128
_HOUR_US = 3600 * SECOND
_HALF_LIFE = 28.0  # days, after which a day counts half [tuned]
_SAME_WEEKDAY = 3.5  # times: how much likelier a day of the same weekday is drawn [tuned]
_ALIKE = 0.1  # share by which a day may begin differently [tuned]
_OTHER_LOAD = 0.15  # standard deviation of the logarithm of how large coming days are [tuned]
_LEAK_SPANS = (2, 3, 4, 5, 7, 10, 14, 21, 27)  # days
_LEAST_LEAK, _LARGEST_LEAK = 0.002, 0.05  # share a day: what rises faster is a rise like others [tuned],
_SURE_AFTER = 5  # days: after them it is a leak all the same [tuned]
_STANDS_OUT = 2.5  # standard errors, as a trend in `twin.forecast.flows`
_LEAST_NOISE = 0.001  # share
_MAD = 1.4826  # standard deviation of a normal distribution, in median absolute deviations
_UNSEEN_LEAK = 0.001  # standard deviation of a leak that does not stand out, share a day [tuned]
_LEAK_ERROR = 0.1  # of a slope, as a share of it [tuned]
_LEAK_TAIL = 3.0  # of how long leaks last: an exponent [tuned]
_MORE, _LEAST_RISE = 1.5, 0.01  # times, and share: what is more than a day began with is a rise of its own [tuned]
_FOOT = 0.1  # of a rise, that its foot is high
_TURNED = 0.1  # of a rise, by which it has fallen where it has turned back
_TAIL = 0.7  # of how long rises last: an exponent [tuned]
_PACE_ERROR = 0.7  # standard deviation of the logarithm of the pace of a rise [tuned]
_DRAINED = 2.0  # hours in which a rise is drained once it has ended [tuned]


class Weeks(msgspec.Struct):
    """Shares in use of a store by hours of event time, part of its state: at most 2.7 KB.

    It is the fullest resource at any time, storage class memory apart, which may be full for good.
    """

    # lows, highs: i2, little-endian: least and largest ten-thousandth in use in each of the last hours, oldest first
    lows: bytes = b""
    highs: bytes = b""
    slot: int = 0  # number of the hour under way since 1970; 0: no event yet
    share: float = 0.0  # share in use at its first tick
    low: float = math.inf  # low, high: least and largest share in it so far
    high: float = 0.0
    due: int = 0  # tick from which to decide whether the weekend lasts; 0: not known yet
    reviewed: int = 0  # hour at which the open watch about it was last reviewed; 0: none is open

    def begin(self, now: int, zone: tzinfo) -> None:
        """Begin the first hour, and set when a weekend is decided about: not before it can be. now: microseconds."""
        known = len(self.lows) // _I2.itemsize
        self.slot = self.slot or now // _HOUR_US
        self.due = next_friday(now + max(0, LEAST_KNOWN - known) * _HOUR_US, zone) // TICK

    def note(self, tick: int, share: float, low: float = math.inf, high: float = 0.0) -> None:
        """Advance to a tick. `low`, `high`: least and largest share since the last noted, unless they were taken."""
        self.low, self.high = min(self.low, low, share), max(self.high, high, share)
        slot = tick // HOUR_TICKS
        if slot <= self.slot:
            return
        silent = min(slot - self.slot - 1, HOURS)
        shares = np.array([[self.low, self.high], *([[share, share]] * silent)])
        units = np.minimum(np.rint(_UNIT * shares), _MAX_UNITS).astype(_I2)
        self.lows = (self.lows + units[:, 0].tobytes())[-HOURS * _I2.itemsize :]
        self.highs = (self.highs + units[:, 1].tobytes())[-HOURS * _I2.itemsize :]
        self.slot, self.share, self.low, self.high = slot, share, share, share

    def scale(self, times: float) -> None:
        """Multiply all shares, as the store has another size now."""
        for name in ("lows", "highs"):
            units = np.minimum(np.rint(np.frombuffer(getattr(self, name), _I2) * times), _MAX_UNITS)
            setattr(self, name, units.astype(_I2).tobytes())
        self.share, self.low, self.high = self.share * times, self.low * times, self.high * times

    def turn_back(self, tick: int) -> None:
        """Continue from an earlier tick; later hours are forgotten."""
        slot = tick // HOUR_TICKS
        if slot <= self.slot:
            size = max(0, len(self.lows) - (self.slot - slot) * _I2.itemsize)
            self.lows, self.highs = self.lows[:size], self.highs[:size]
            self.slot, self.low, self.high = slot, math.inf, 0.0
        self.due = 0


def next_friday(now: int, zone: tzinfo) -> int:
    """Return the next Friday, 15:00 of a zone. Times in microseconds since 1970."""
    return _next(now, zone, _FRIDAY, _DECIDED_AT)


def next_monday(now: int, zone: tzinfo) -> int:
    """Return the next Monday, 08:00 of a zone, until which a store has to last. Times in microseconds since 1970."""
    return _next(now, zone, _MONDAY, _BACK_AT)


def _next(now: int, zone: tzinfo, weekday: int, clock: time) -> int:
    local = in_zone(now, zone)
    day = local.date() + timedelta(days=(weekday - local.weekday()) % 7)
    moment = datetime.combine(day, clock, zone)
    if moment <= local:
        moment = datetime.combine(day + timedelta(days=7), clock, zone)
    return round(moment.timestamp()) * SECOND


# --- looking ahead ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LongLook:
    """Long forecast of a store by its own hours."""

    full_in: Array  # f8[_PATHS], hours until it is full, by path; inf: not in them
    leak: float  # share that it leaks a day; 0: none stands out

    def lasting(self, hours: float) -> float:
        """Return the probability that it is not full for some hours."""
        return float((self.full_in > hours).mean())

    def quantiles(self) -> tuple[float, float, float] | None:
        """Return the seconds until full (p10, p50, p90) of the paths on which it is full; None: on none."""
        filled = 3600.0 * self.full_in[np.isfinite(self.full_in)]
        if not filled.size:
            return None
        p10, p50, p90 = np.quantile(filled, (0.1, 0.5, 0.9)).tolist()
        return p10, p50, p90


@lru_cache(1024)
def look_weeks(lows: bytes, highs: bytes, share: float, seed: int, planned: bytes = b"") -> LongLook | None:
    """Return what a store's hours say of the next 14 days, or None; `planned`: f8[AHEAD], shares added, or b""."""
    low, high = (np.frombuffer(hours, _I2) / _UNIT for hours in (lows, highs))
    if low.size < LEAST_KNOWN:
        return None
    rng = np.random.default_rng(seed)
    base, days = float(low[-DAY:].min()), _Days.cut(low, high)
    leak = _leak_of(tuple(days.troughs.tolist()))
    ahead = np.arange(1.0, AHEAD + 1)
    courses, begins = _courses(days, share - base, rng)
    is_more = share - base > _MORE * begins + _LEAST_RISE
    risen = _rise(low, high, share, base, rng, ahead)
    level = base + _drift(leak, rng, ahead) + np.maximum(courses, np.where(is_more[:, None], risen, 0.0))
    if planned:
        level += np.frombuffer(planned)
    is_full = level >= 1.0
    full_in = np.where(is_full.any(axis=1), is_full.argmax(axis=1) + 1.0, np.inf)
    return LongLook(np.zeros(_PATHS) if share >= 1.0 else full_in, leak.slope)


class _Days(NamedTuple):
    """Days back from now, the last one first. A day is that of the hours before now, and so on."""

    courses: Array  # f8[days, DAY], largest share of each hour above the least of the day
    begins: Array  # f8[days], the same of the hour before its first
    troughs: Array  # f8[days], least share, oldest first

    @classmethod
    def cut(cls, low: Array, high: Array) -> Self:
        """Return the whole days of hours. low, high: f8[n], shares, oldest first."""
        days = low.size // DAY
        troughs = low[low.size - days * DAY :].reshape(days, DAY).min(axis=1)
        highs, least = high[high.size - days * DAY :].reshape(days, DAY)[::-1], troughs[::-1]
        before = np.append(highs[1:, -1], high[max(0, high.size - days * DAY - 1)])
        return cls(highs - least[:, None], before - least, troughs)


class Leak(NamedTuple):
    """Rise of the daily least shares. slope: share a day, 0: none; error: standard error of it; days: its length."""

    slope: float = 0.0
    error: float = 0.0
    days: int = 0


@lru_cache(1024)
def _leak_of(troughs: tuple[float, ...]) -> Leak:
    """Return the leak of daily least shares, oldest first: over the span in which it stands out most."""
    best, highest = Leak(), _STANDS_OUT
    for days in _LEAK_SPANS:
        if days >= len(troughs):
            break
        levels, before = np.array(troughs[-days - 1 :]), np.array(troughs[: -days - 1])
        if before.size and levels[-1] <= before.max() + _LEAST_LEAK:
            continue  # it was as high before, and fell again
        first, second = np.triu_indices(days + 1, 1)
        slope = float(np.median((levels[second] - levels[first]) / (second - first)))
        times = np.arange(days + 1) - days / 2
        noise = max(_LEAST_NOISE, float(np.std(levels - slope * times)))
        if before.size > 1:
            noise = max(
                noise, _MAD * float(np.median(np.abs(before - np.median(before)))), float(np.std(before[-7:])) / 2
            )
        error = noise / float(np.sqrt(times @ times))
        if _LEAST_LEAK < slope < (math.inf if days >= _SURE_AFTER else _LARGEST_LEAK) and slope / error > highest:
            best, highest = Leak(slope, error, days), slope / error
    return best


def _drift(leak: Leak, rng: np.random.Generator, ahead: Array) -> Array:
    """Return f8[_PATHS, n], what a leak adds. ahead: f8[n], hours."""
    slopes = _UNSEEN_LEAK * rng.standard_normal(_PATHS)
    lasts = np.full(_PATHS, math.inf)
    if leak.slope:
        slopes = np.maximum(
            0.0, leak.slope + math.hypot(leak.error, _LEAK_ERROR * leak.slope) * rng.standard_t(4, _PATHS)
        )
        lasts = leak.days * (rng.random(_PATHS) ** -_LEAK_TAIL - 1.0)
    return np.asarray(slopes[:, None] * np.minimum(ahead / DAY, lasts[:, None]))


def _courses(days: _Days, above: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return (f8[_PATHS, AHEAD], shares above the least one, of days that are drawn; f8[_PATHS], those before them)."""
    known, coming = days.begins.size, AHEAD // DAY
    back = np.arange(known)
    drawn = np.empty((_PATHS, coming), np.int64)
    for day in range(coming):
        weights = 0.5 ** (back / _HALF_LIFE)
        weights[(day + back + 1) % 7 == 0] *= _SAME_WEEKDAY
        if day == 0:
            weights *= np.exp(-np.abs(days.begins - above) / (_ALIKE + 0.5 * abs(above))) + 1e-12
        drawn[:, day] = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(_PATHS)).clip(0, known - 1)
    larger = np.exp(_OTHER_LOAD * rng.standard_normal(_PATHS))
    return days.courses[drawn].reshape(_PATHS, AHEAD) * larger[:, None], days.begins[drawn[:, 0]]


def _rise(low: Array, high: Array, share: float, base: float, rng: np.random.Generator, ahead: Array) -> Array:
    """Return f8[_PATHS, n], shares above the least one of the last day while the present rise lasts, and is drained
    after it. `low`, `high`: f8[n], by hour; `ahead`: f8[n], hours.
    """
    above = share - base
    at_foot = np.flatnonzero(low[::-1][: 3 * DAY] <= base + _FOOT * above)
    age = max(1, int(at_foot[0]) if at_foot.size else 3 * DAY)
    lately = min(age, 3)
    pace = max(0.0, ((1.0 - _FOOT) * above / age + (share - float(low[-lately])) / lately) / 2)
    highest = max(share, float(high[-3:].max()))
    has_turned = share < highest - _LEAST_RISE - _TURNED * (highest - base)
    lasts = np.zeros(_PATHS) if has_turned else age * (rng.random(_PATHS) ** -_TAIL - 1.0)
    paces = pace * np.exp(_PACE_ERROR * rng.standard_normal(_PATHS))
    risen = above + paces[:, None] * np.minimum(ahead, lasts[:, None])
    return np.asarray(risen * np.clip(1.0 - (ahead - lasts[:, None]) / _DRAINED, 0.0, 1.0))


# --- the state record, and the weekend --------------------------------------------------------------------------------


def record(weeks: Weeks, plans: Plans, view: ForecastView, zone: tzinfo) -> LongForecast | None:
    """Return the `long_forecast` of a state record; None while too little is known."""
    look = _look(weeks, plans, view)
    if look is None:
        return None
    now = weeks.slot * HOUR_TICKS * TICK
    until = next_monday(now, zone)
    times = look.quantiles()
    return LongForecast(
        time=as_text(now),
        until=as_text(until),
        lasts_probability=round(look.lasting((until - now) / _HOUR_US), 3),
        full_probability=round(1.0 - look.lasting(AHEAD), 3),
        time_to_full_s=None if times is None else TimeToFull(**dict(zip(("p10", "p50", "p90"), times, strict=True))),
        leak_pct_per_day=round(100.0 * look.leak, 2) or None,
    )


def _look(weeks: Weeks, plans: Plans, view: ForecastView) -> LongLook | None:
    if len(weeks.lows) < LEAST_BYTES:
        return None
    planned = _planned(plans, view, weeks.slot * HOUR_TICKS) if plans.are_due else b""
    return look_weeks(weeks.lows, weeks.highs, weeks.share, seed_of(view.name, weeks.slot), planned)


def _planned(plans: Plans, view: ForecastView, tick: int) -> bytes:
    """Return f8[AHEAD], the share that planned work adds by each coming hour; b"": nothing is planned.

    A plan that has run before is among the store's days already. What is put stays until the end of the window.
    """
    added, hours, now = np.zeros(AHEAD), np.arange(1.0, AHEAD + 1), tick * TICK
    fill = view.fill_model(tick)
    flows = [flow for run in plans.active(now) for flow in plans.of_run(view, run, tick, fill) if flow.rate > 0.0]
    for plan, window in plans.upcoming(now, AHEAD * HOUR_TICKS * TICK):
        if plan.id not in plans.memory.took:
            fill = with_space(view.tables.store, fill, length_of(view, plan))
            flows += plans.of_window(view, plan, window, tick, fill)
    scalars = fill.scalars[0]
    for flow in flows:
        space = float(fill.classes[flow.size, forecast.PUT_SPACE]) / float(scalars["space_max"])
        each = max(space, float(scalars["counts_ents"]) / float(scalars["ents_max"]))
        begin, end = flow.begin / HOUR_TICKS, flow.end / HOUR_TICKS
        done = np.clip(hours - begin, 0.0, end - begin)
        added += flow.rate * HOUR_TICKS * each * done * np.clip(1.0 - (hours - end) / _DRAINED, 0.0, 1.0)
    return added.tobytes() if added.any() else b""


def check(weeks: Weeks, plans: Plans, view: ForecastView, tick: int, zone: tzinfo) -> list[Alert]:
    """Open the watch about a weekend that does not last, on Friday, 15:00 of the site; clear it where it does.

    At the latest it clears when people are back.
    """
    now = tick * TICK
    episode = next((alert for alert in view.episodes if alert.condition == Condition.WEEKEND_DOES_NOT_LAST), None)
    if episode is not None:
        return _review(weeks, plans, view, episode, now, zone) if weeks.slot != weeks.reviewed else []
    weeks.reviewed = 0
    if not weeks.due or tick < weeks.due:
        return []
    decided_at = weeks.due * TICK
    weeks.due = next_friday(now, zone) // TICK
    own = record(weeks, plans, view, zone) if now < next_monday(decided_at, zone) else None
    if own is None or own.lasts_probability >= _LASTS:
        return []
    weeks.reviewed = weeks.slot
    return view.episodes.open(_finding(view, own, tick, zone), now)


def _review(weeks: Weeks, plans: Plans, view: ForecastView, episode: Episode, now: int, zone: tzinfo) -> list[Alert]:
    """Clear the open watch where the weekend lasts now, or is over."""
    weeks.reviewed = weeks.slot
    is_over = now >= next_monday(episode.opened, zone)
    if not is_over:
        own = record(weeks, plans, view, zone)
        is_over = own is None or own.lasts_probability >= _LASTS
    if not is_over:
        return []
    weeks.reviewed = 0
    return view.episodes.clear(
        episode, view.viewer().over(Condition.WEEKEND_DOES_NOT_LAST, episode.resource, episode.severity), now
    )


def _finding(view: ForecastView, own: LongForecast, tick: int, zone: tzinfo) -> Finding:
    fill = view.fill_model(tick)
    fillable = [number for number, resource in enumerate(fill.resources) if resource != SCM]
    resource = fill.resources[max(fillable, key=lambda number: usage(fill, number))]
    viewed = view.viewer().resource(resource)
    fillers = view.viewer().who_fills(resource)
    words = own.sentence_in(zone)
    return Finding(
        condition=Condition.WEEKEND_DOES_NOT_LAST,
        resource=resource,
        severity=Condition.WEEKEND_DOES_NOT_LAST.severity,
        usage_pct=viewed.usage_pct,
        fillers=fillers,
        headline=f"the weekend does not last: {words}",
        cause=f"{words[0].upper()}{words[1:]}, by the hours of up to four weeks. {viewed.text}: {viewed.usage}.",
        runbook=viewed.actions(Condition.WEEKEND_DOES_NOT_LAST, fillers, NOTHING, view.episodes.runbook),
    )
