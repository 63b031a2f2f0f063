"""Scenarios whose getters work in turns: the backlog rises and is drained, completely or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from twin.simulation.arrivals import Array, Flow, constant
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site


@scenario
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


@scenario
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
