"""Scenarios that turn back: getters in turns, and climbs that are emptied before anything is full, but for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from kernels.layout import BACKOUT
from twin.simulation.arrivals import Array, Flow, LongUnit, between, constant
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter
from twin.simulation.site import Site
from twin.simulation.stories.filling import GrowingLengths, LevellingFill

_OVER = 1.25  # of what fits: how much there is at the end of a climb that does not turn back


@dataclass(frozen=True, kw_only=True)
class Sawtooth(StoreScenario):
    """The straight line's nightmare."""

    name = "sawtooth"
    sentence = "The getter works in turns: the structure climbs for 40 minutes and is emptied, again and again."

    hours: float = parameter(4.0, "length of the recording, hours of event time", **lasting(5.0, 12.0))
    climb: float = parameter(40.0, "minutes the getter rests", low=0.2, drawn=((30.0, 110.0),))
    empty: float = parameter(20.0, "minutes the getter works", low=0.2, drawn=((15.0, 40.0),))
    peak: float = parameter(0.8, "of what fits: how much there is at the end of a climb", high=10, drawn=((0.4, 0.85),))
    growth: float = parameter(
        0.0,
        "of the puts, from one climb to the next: more than 0 lets the teeth grow",
        low=-1,
        drawn=((0, 0), (0.06, 0.2)),
    )
    begun: float = parameter(
        0.0, "share of the first climb that is over when the recording begins", high=1, drawn=((0.3, 0.7),)
    )
    getter_speed: float = parameter(
        4.0, "what the getter can do, as a multiple of the puts; at least what empties it", low=1.0, drawn=((3.0, 5.0),)
    )

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.peak * site.capacity(self.traffic, rng).messages / (self.climb * 60)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        period = (self.climb + self.empty) * 60

        begun = self.begun * self.climb * 60
        speed = max(self.getter_speed, 1 + 1.1 * self.climb / self.empty)

        def puts(seconds: Array) -> Array:
            return rate * (1 + self.growth) ** np.floor((seconds + begun) / period)

        def gets(seconds: Array) -> Array:
            return np.where((seconds + begun) % period < self.climb * 60, 0.0, puts(seconds) * speed)

        return [*site.puts(puts, self.traffic), *site.gets(gets, self.traffic), *site.beside(rate, self.traffic)]


@dataclass(frozen=True, kw_only=True)
class DriftingSawtooth(StoreScenario):
    """Each tooth looks like the last; the floor they stand on rises."""

    name = "drifting-sawtooth"
    sentence = "The getter works in turns and leaves a little more behind each time: the teeth rise until they touch."

    hours: float = parameter(8.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    climb: float = parameter(30.0, "minutes the getter rests", low=0.2, drawn=((20.0, 60.0),))
    empty: float = parameter(15.0, "minutes the getter works", low=0.2, drawn=((10.0, 30.0),))
    height: float = parameter(
        0.3, "of what fits: from the floor to the tip of a tooth", low=0.01, high=10, drawn=((0.15, 0.4),)
    )
    reach: float = parameter(
        1.2, "of what fits: where the tips would be in the end", low=0.01, high=10, drawn=((0.5, 0.75), (1.1, 1.6))
    )

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.height * site.capacity(self.traffic, rng).messages / (self.climb * 60)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        climb, empty = self.climb * 60, self.empty * 60
        teeth = max(1.0, self.hours * HOUR / (climb + empty))
        left = max(0.0, self.reach / self.height - 1) / teeth * rate * climb  # messages that a turn leaves behind
        get_rate = max(0.0, rate * (climb + empty) - left) / empty

        def gets(seconds: Array) -> Array:
            return np.where(seconds % (climb + empty) < climb, 0.0, get_rate)

        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate, self.traffic),
        ]


class _Climbs(NamedTuple):
    """Climbs of a recording: begins, lengths of the climb and of the emptying (seconds), heights (of what fits)."""

    begins: Array
    climbs: Array
    empties: Array
    heights: Array

    def find(self, seconds: Array) -> tuple[Array, Array]:
        """Return the number of the climb at each time, and the seconds since its beginning."""
        number = np.clip(np.searchsorted(self.begins, seconds, side="right") - 1, 0, self.begins.size - 1)
        return number, seconds - self.begins[number]


def _cut(hours: float, climbs: Array, empties: Array, heights: Array) -> _Climbs:
    """Put climbs one after the other, as many as a recording holds."""
    begins = np.concatenate([[0.0], np.cumsum(climbs + empties)[:-1]])
    some = max(1, int(np.searchsorted(begins, hours * HOUR)))
    return _Climbs(begins[:some], climbs[:some], empties[:some], heights[:some])


@dataclass(frozen=True, kw_only=True)
class ClimbsThatTurn(StoreScenario):
    """An operator has seen it eleven times; so has the store."""

    name = "climbs-that-turn"
    sentence = "Climb after climb is emptied at the same height or after the same time; the last one may go on."

    hours: float = parameter(12.0, "length of the recording, hours of event time", **lasting(12.0, 26.0))
    climb: float = parameter(45.0, "minutes of a climb", low=0.2, drawn=((20.0, 120.0),))
    empty: float = parameter(15.0, "minutes the getter works", low=0.2, drawn=((5.0, 40.0),))
    turn: float = parameter(
        0.85, "of what fits: how much there is at the end of a climb", low=0.01, high=0.99, drawn=((0.55, 0.92),)
    )
    varies: float = parameter(0.15, "by how much the pace of climbs differs, as a share", high=0.9, drawn=((0.0, 0.4),))
    by_time: float = parameter(0, "0: climbs turn at a height, 1: after a time", high=1, drawn=((0, 1),))
    shape: float = parameter(1.0, "1: straight climbs; more: ever faster", low=0.3, high=4, drawn=((0.7, 1.8),))
    goes_on: float = parameter(0, "number of a climb, from 1, that goes on; 0: none", drawn=((0, 0), (6, 10)))

    @property
    @override
    def story_hours(self) -> float:
        return (self.goes_on + 1.5) * (self.climb + self.empty) / 60

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.turn * site.capacity(self.traffic, rng).messages / (self.climb * 60)

    def _climbs(self, chance: np.random.Generator) -> _Climbs:
        count = int(self.hours * 60 / (self.climb + self.empty) * 3) + 2
        pace = 1 + self.varies * chance.uniform(-1.0, 0.0 if self.by_time else 1.0, count)
        climbs = self.climb * 60 / (np.ones(count) if self.by_time else pace)
        heights = self.turn * (pace if self.by_time else np.ones(count))
        if self.goes_on:
            number = round(self.goes_on) - 1
            climbs[number] *= _OVER / heights[number]
            heights[number] = _OVER
        return _cut(self.hours, climbs, np.full(count, self.empty * 60), heights)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        climbs = self._climbs(site.chance)
        fits = rate * self.climb * 60 / self.turn

        def puts(seconds: Array) -> Array:
            number, since = climbs.find(seconds)
            share = np.clip(since / climbs.climbs[number], 0.0, 1.0)
            steep = self.shape * np.maximum(share, 0.02) ** (self.shape - 1)
            mean = climbs.heights[number] * fits / climbs.climbs[number]
            return np.where(since < climbs.climbs[number], mean * steep, 0.3 * mean)

        def gets(seconds: Array) -> Array:
            number, since = climbs.find(seconds)
            speed = 1.3 * climbs.heights[number] * fits / climbs.empties[number]
            return np.where(since < climbs.climbs[number], 0.0, speed + puts(seconds))

        return [*site.puts(puts, self.traffic), *site.gets(gets, self.traffic), *site.beside(rate, self.traffic)]


@dataclass(frozen=True, kw_only=True)
class BeatingTeeth(StoreScenario):
    """Each queue by itself is simple; their sum is not."""

    name = "beating-teeth"
    sentence = "Two queues climb and are emptied at periods of their own; now and then their tips meet."

    hours: float = parameter(12.0, "length of the recording, hours of event time", **lasting(10.0, 20.0))
    period: float = parameter(50.0, "minutes between two emptyings of the first queue", low=1, drawn=((30.0, 90.0),))
    ratio: float = parameter(1.37, "period of the second queue, as a multiple", low=1.01, drawn=((1.2, 1.9),))
    both: float = parameter(
        0.85, "of what fits: how much there is where the tips meet", high=10, drawn=((0.6, 0.93), (1.1, 1.4))
    )
    part: float = parameter(0.5, "of that: of the first queue", low=0.05, high=0.95, drawn=((0.35, 0.65),))

    _CLIMBS = 0.75  # share of a period

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.both * site.capacity(self.traffic, rng).messages / (self.period * 60)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Raise UsageError if the store has only one queue."""
        other = site.other_queue(self.name)
        first, second = self.period * 60, self.period * self.ratio * 60
        both = rate * first
        return [
            *self._teeth(site, site.queue, first, self.part * both),
            *self._teeth(site, other, second, (1 - self.part) * both),
        ]

    def _teeth(self, site: Site, queue: str, period: float, tip: float) -> list[Flow]:
        climbs = self._CLIMBS * period
        rate = tip / climbs

        def gets(seconds: Array) -> Array:
            return np.where(seconds % period < climbs, 0.0, rate + 1.4 * tip / (period - climbs))

        return [*site.puts(constant(rate), self.traffic, queue), *site.gets(gets, self.traffic, queue)]


@dataclass(frozen=True, kw_only=True)
class ShiftingBursts(StoreScenario):
    """Each burst is a little larger than the last: only the envelope shows it."""

    name = "shifting-bursts"
    sentence = "Bursts come and are worked off; their load shifts slowly, until one may be more than fits."

    hours: float = parameter(12.0, "length of the recording, hours of event time", **lasting(10.0, 20.0))
    every: float = parameter(1.2, "hours from burst to burst", low=0.2, drawn=((0.7, 1.8),))
    lasts: float = parameter(20.0, "minutes a burst lasts", low=0.5, drawn=((10.0, 35.0),))
    first: float = parameter(0.35, "of what fits: height of the first burst", low=0.01, drawn=((0.3, 0.5),))
    last: float = parameter(1.3, "of what fits: height of the last burst", low=0.01, drawn=((0.55, 0.9), (1.15, 1.6)))

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.first * site.capacity(self.traffic, rng).messages / (self.lasts * 60)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        fits = rate * self.lasts * 60 / self.first
        service = 1.3 * max(self.first, self.last) * fits / ((self.every * HOUR) - self.lasts * 60)
        count = max(1.0, self.hours / self.every - 1)

        def puts(seconds: Array) -> Array:
            number, since = np.divmod(seconds, self.every * HOUR)
            height = self.first + (self.last - self.first) * np.minimum(number / count, 1.0)
            since = since - 0.4 * self.every * HOUR
            inside = (since >= 0) & (since < self.lasts * 60)
            return np.where(inside, service + height * fits / (self.lasts * 60), 0.3 * service)

        return [
            *site.puts(puts, self.traffic),
            *site.gets(constant(service), self.traffic),
            *site.beside(rate * 0.3, self.traffic),
        ]


@dataclass(frozen=True, kw_only=True)
class LevelsOffHigh(LevellingFill):
    """Where it levels off can be told from how it is served."""

    name = "levels-off-high"
    sentence = "The more there is, the more is got: the backlog levels off a little below what fits, or just above."

    hours: float = parameter(8.0, "length of the recording, hours of event time", **lasting(7.0, 12.0))
    begin: float = parameter(1.5, "hours until more is put", drawn=((1.0, 2.5),))
    before: float = parameter(0.4, "puts before, as a share", high=1, drawn=((0.3, 0.6),))
    kept_for: float = parameter(0.6, "hours a message stays, on average", low=0.01, drawn=((0.3, 1.2),))
    level: float = parameter(
        1.15, "of what fits: how much there is in the end", low=0.01, high=10, drawn=((0.84, 0.93), (1.06, 1.3))
    )

    _SETTLED_AFTER = 5

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        return self.levelling(site, rate)


@dataclass(frozen=True, kw_only=True)
class UnitsComeAndGo(StoreScenario):
    """Uncommitted messages go all at once, as they have gone before."""

    name = "units-come-and-go"
    sentence = "Long units of work fill part of the store and back out, one after the other; the last may not end."

    hours: float = parameter(10.0, "length of the recording, hours of event time", **lasting(9.0, 16.0))
    every: float = parameter(1.5, "hours from one unit of work to the next", low=0.2, drawn=((0.9, 1.8),))
    lasts: float = parameter(0.6, "of that: how long it lasts", low=0.05, high=0.95, drawn=((0.4, 0.8),))
    reach: float = parameter(
        0.75, "of what fits: how much there is at the end of a unit", low=0.01, high=0.99, drawn=((0.5, 0.9),)
    )
    stays: float = parameter(0, "number of a unit, from 1, that does not end; 0: none", drawn=((0, 0), (5, 7)))

    @property
    @override
    def story_hours(self) -> float:
        return (self.stays + 2) * self.every

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.reach * site.capacity(self.traffic, rng).messages / (self.lasts * self.every * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        every, lasts = self.every * HOUR, self.lasts * self.every * HOUR
        flows: list[Flow] = []
        for number in range(int(self.hours / self.every)):
            begin, end = number * every, number * every + lasts
            if number == self.stays - 1:
                end = begin + lasts * _OVER / self.reach
            batch = site.puts(between(begin, end, rate, 0.0), self.traffic)
            flows += [replace(flow, unit=LongUnit(until=end, ended_by=BACKOUT)) for flow in batch]
            if number == self.stays - 1:
                break
        return [
            *flows,
            *site.put_and_drain(constant(rate * 0.3), self.traffic, site.queue),
            *site.beside(rate * 0.5, self.traffic),
        ]


@dataclass(frozen=True, kw_only=True)
class LengthsStep(GrowingLengths):
    """The depth is what it was; what a message takes is not."""

    name = "lengths-step"
    sentence = "As many messages as ever are held, but their lengths step up now and then, across the offload sizes."

    hours: float = parameter(10.0, "length of the recording, hours of event time", **lasting(8.0, 14.0))
    length: float = parameter(
        1_000.0, "mean bytes of a message at the beginning", low=64, high=1_000_000, drawn=((300.0, 3_000.0),)
    )
    spread: float = parameter(0.3, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.1, 0.6),))
    every: float = parameter(1.5, "hours from one step to the next", low=0.1, drawn=((1.2, 2.5),))
    times: float = parameter(1.5, "lengths after a step, as a multiple", low=1.0, drawn=((1.2, 1.8),))
    kept_for: float = parameter(0.7, "hours a message stays", low=0.01, drawn=((0.4, 1.0),))
    full_at: float = parameter(
        0.6,
        "share of the time at whose lengths it would be full; more than 1: never",
        low=0.01,
        drawn=((0.5, 0.85), (1.1, 1.4)),
    )

    @override
    def length_at(self, seconds: Array) -> Array:
        """Return lengths that grow in steps."""
        return np.minimum(self.length * self.times ** np.floor(seconds / (self.every * HOUR)), 600_000.0)


@dataclass(frozen=True, kw_only=True)
class FlakyGetter(StoreScenario):
    """Breaks of minutes, of no fixed length; one day the getter does not return."""

    name = "flaky-getter"
    sentence = "The getter breaks off at any time, for minutes, and returns; once it may stay away."

    hours: float = parameter(10.0, "length of the recording, hours of event time", **lasting(9.0, 16.0))
    every: float = parameter(50.0, "minutes between breaks, on average", low=1, drawn=((30.0, 90.0),))
    breaks_for: float = parameter(10.0, "minutes a break lasts, at the median", low=0.1, drawn=((5.0, 20.0),))
    varies: float = parameter(0.4, "of the breaks: standard deviation of their logarithm", high=2, drawn=((0.1, 0.6),))
    climbs: float = parameter(0.3, "of what fits: what a median break leaves", low=0.01, high=1, drawn=((0.15, 0.4),))
    stays_away: float = parameter(0, "number of a break, from 1, that does not end; 0: none", drawn=((0, 0), (5, 8)))

    @property
    @override
    def story_hours(self) -> float:
        return (self.stays_away + 2) * (self.every + 2 * self.breaks_for) / 60

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.climbs * site.capacity(self.traffic, rng).messages / (self.breaks_for * 60)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        count = int(self.hours * 60 / self.every * 3) + 2
        between_breaks = 60 * self.every * site.chance.uniform(0.6, 1.4, count)
        longest = 0.92 / self.climbs * self.breaks_for * 60  # longer ones would fill the store
        lasting_for = np.exp(self.varies * site.chance.standard_normal(count)) * self.breaks_for * 60
        lasting_for = np.minimum(lasting_for, longest)
        if self.stays_away:
            lasting_for[round(self.stays_away) - 1] = _OVER / 0.92 * longest
        begins = np.cumsum(between_breaks + lasting_for) - lasting_for

        def gets(seconds: Array) -> Array:
            number = np.clip(np.searchsorted(begins, seconds, side="right") - 1, 0, count - 1)
            away = (seconds >= begins[number]) & (seconds < begins[number] + lasting_for[number])
            return np.where(away, 0.0, rate * 3)

        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate * 0.5, self.traffic),
        ]
