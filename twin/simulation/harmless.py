"""Scenarios that frighten a straight line and end in no 2192: nothing here is a reason to call anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.simulation.arrivals import Array, Flow, constant
from twin.simulation.scenario import HOUR, Scenario, parameter, scenario
from twin.simulation.site import Site


@scenario
@dataclass(frozen=True, kw_only=True)
class Sawtooth(Scenario):
    """The straight line's nightmare."""

    name = "sawtooth"
    sentence = "The getter works in turns: the structure climbs for 40 minutes and is emptied, again and again."

    climb: float = parameter(40.0, "minutes the getter rests", low=0.2)
    empty: float = parameter(20.0, "minutes the getter works", low=0.2)
    peak: float = parameter(0.8, "of what fits: how much there is at the end of a climb", high=10)
    growth: float = parameter(0.0, "of the puts, from one climb to the next: more than 0 lets the teeth grow", low=-1)
    getter_speed: float = parameter(4.0, "what the getter can do, as a multiple of the puts", low=1.0)

    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """See Scenario."""
        return self.peak * site.capacity(self.traffic, rng).messages / (self.climb * 60)

    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """See Scenario."""
        period = (self.climb + self.empty) * 60

        def puts(seconds: Array) -> Array:
            return rate * (1 + self.growth) ** np.floor(seconds / period)

        def gets(seconds: Array) -> Array:
            return np.where(seconds % period < self.climb * 60, 0.0, puts(seconds) * self.getter_speed)

        return [*site.puts(puts, self.traffic), *site.gets(gets, self.traffic), *site.beside(rate, self.traffic)]


@scenario
@dataclass(frozen=True, kw_only=True)
class NightlyBatch(Scenario):
    """Every night up to nine tenths, every morning down: no reason to wake anybody, but for the one night that is."""

    name = "nightly-batch"
    sentence = "A batch fills most of the structure from 01:00 to 04:00 and drains it by 07:00, night after night."

    hours: float = parameter(72.0, "length of the recording, hours of event time", low=0.01, high=24 * 366)
    peak: float = parameter(0.78, "of what fits: how much there is at the end of the batch", high=10)
    bad_night: float = parameter(0, "number of a night, from 1, that brings half as much again; 0: none")
    by_day: float = parameter(0.03, "puts beside the batch, as a share of the batch's")

    _BEGIN, _END, _DRAINED = 1.0, 4.0, 7.0  # o'clock, UTC

    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """See Scenario."""
        return self.peak * site.capacity(self.traffic, rng).messages / ((self._END - self._BEGIN) * HOUR)

    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """See Scenario."""
        first = (self.start // 1_000_000) % 86_400  # seconds of the day when it starts

        def puts(seconds: Array) -> Array:
            day, hour = np.divmod(seconds + first, 86_400)
            hour = hour / HOUR
            height = np.where(day + 1 == self.bad_night, 1.5, 1.0)
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

    hours: float = parameter(5.0, "length of the recording, hours of event time", low=0.01, high=24 * 366)
    level: float = parameter(0.7, "of what fits: how much there is", high=10)
    kept_for: float = parameter(1.0, "hours a message stays", low=0.01)

    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """See Scenario."""
        return self.level * site.capacity(self.traffic, rng).messages / (self.kept_for * HOUR)

    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """See Scenario."""
        return [
            *site.kept(constant(rate), self.traffic, self.kept_for * HOUR),
            *site.beside(rate, self.traffic),
        ]
