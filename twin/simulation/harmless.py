"""Scenarios that frighten a straight line and end in no 2192: nothing here is a reason to call anybody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.simulation.arrivals import Array, Curve, Flow, constant
from twin.simulation.scenario import HOUR, Scenario, lasting, parameter, scenario
from twin.simulation.site import Site


@scenario
@dataclass(frozen=True, kw_only=True)
class Sawtooth(Scenario):
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

    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """See Scenario."""
        return self.peak * site.capacity(self.traffic, rng).messages / (self.climb * 60)

    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """See Scenario."""
        period = (self.climb + self.empty) * 60

        begun = self.begun * self.climb * 60
        speed = max(self.getter_speed, 1 + 1.1 * self.climb / self.empty)

        def puts(seconds: Array) -> Array:
            return rate * (1 + self.growth) ** np.floor((seconds + begun) / period)

        def gets(seconds: Array) -> Array:
            return np.where((seconds + begun) % period < self.climb * 60, 0.0, puts(seconds) * speed)

        return [*site.puts(puts, self.traffic), *site.gets(gets, self.traffic), *site.beside(rate, self.traffic)]


@scenario
@dataclass(frozen=True, kw_only=True)
class NightlyBatch(Scenario):
    """Every night up to nine tenths, every morning down: no reason to wake anybody, but for the one night that is."""

    name = "nightly-batch"
    sentence = "A batch fills most of the structure from 01:00 to 04:00 and drains it by 07:00, night after night."

    hours: float = parameter(72.0, "length of the recording, hours of event time", **lasting(72.0, 120.0))
    peak: float = parameter(
        93.0, "percent of the structure in use at the end of the batch", high=100, drawn=((75, 93),)
    )
    first: float = parameter(1.0, "height of the first night, as a share of the others", high=10, drawn=((0.6, 0.85),))
    varies: float = parameter(0.0, "by how much nights differ: share of the height", high=1, drawn=((0.0, 0.08),))
    bad_night: float = parameter(
        0, "number of a night, from 1, that brings more than fits; 0: none", drawn=((0, 0), (2, 4))
    )
    bad_by: float = parameter(
        1.2, "what the bad night brings, as a multiple of what fits", low=0.01, drawn=((1.15, 1.8),)
    )
    by_day: float = parameter(0.03, "puts beside the batch, as a share of the batch's", drawn=((0.01, 0.05),))

    @property
    def told_after(self) -> float:
        """See Scenario."""
        return 24 * self.bad_night

    _BEGIN, _END, _DRAINED = 1.0, 4.0, 7.0  # o'clock, UTC

    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """See Scenario."""
        return site.capacity(self.traffic, rng, percent=self.peak).messages / ((self._END - self._BEGIN) * HOUR)

    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """See Scenario."""
        first = (self.start // 1_000_000) % 86_400  # seconds of the day when it starts
        heights = 1 + self.varies * site.chance.uniform(
            -1.0, 0.0, math.ceil(self.hours / 24) + 1
        )  # of the nights, from 1
        heights[0] *= self.first
        if 0 < self.bad_night <= heights.size:
            fits = site.capacity(self.traffic, site.chance).messages
            heights[round(self.bad_night) - 1] = self.bad_by * fits / (rate * (self._END - self._BEGIN) * HOUR)

        def puts(seconds: Array) -> Array:
            day, hour = np.divmod(seconds + first, 86_400)
            hour = hour / HOUR
            height = heights[day.astype(np.int64)]
            return rate * np.where((hour >= self._BEGIN) & (hour < self._END), height, self.by_day)

        def gets(seconds: Array) -> Array:
            hour = (seconds + first) % 86_400 / HOUR
            by_day = np.where((hour >= self._BEGIN) & (hour < self._END), 0.0, 5 * self.by_day)
            return rate * np.where((hour >= self._END) & (hour < self._DRAINED), 1.3, by_day)

        return [
            *site.puts(puts, self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate * self.by_day, self.traffic),
        ]


@scenario
@dataclass(frozen=True, kw_only=True)
class FlatNearLimit(Scenario):
    """High and steady is not full."""

    name = "flat-near-limit"
    sentence = "Every message is got an hour after its put: the structure stays close to its limit, and stays."

    hard = False

    hours: float = parameter(5.0, "length of the recording, hours of event time", **lasting(7.0, 12.0))
    level: float = parameter(0.7, "of what fits: how much there is", high=10, drawn=((0.5, 0.85),))
    kept_for: float = parameter(1.0, "hours a message stays", low=0.01, drawn=((0.5, 1.5),))
    grown_in: float = parameter(0.0, "hours until there are as many puts as will be", drawn=((3.0, 5.0),))

    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """See Scenario."""
        return self.level * site.capacity(self.traffic, rng).messages / (self.kept_for * HOUR)

    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """See Scenario."""
        return [
            *site.kept(self._puts(rate), self.traffic, self.kept_for * HOUR),
            *site.beside(rate, self.traffic),
        ]

    def _puts(self, rate: float) -> Curve:
        seconds = self.grown_in * HOUR
        return (lambda at: rate * np.minimum(1.0, at / seconds)) if seconds else constant(rate)
