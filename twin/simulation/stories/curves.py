"""Scenarios that fill along a curve of increasing or decreasing slope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from twin.simulation.arrivals import Array, Flow, between
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site


@scenario
@dataclass(frozen=True, kw_only=True)
class AcceleratingFill(StoreScenario):
    """Early on there is much time, by the slope; there is not."""

    name = "accelerating-fill"
    sentence = "The puts double and double again while the getters stay as they are: the structure fills ever faster."

    begin: float = parameter(0.5, "hours until the puts begin to grow", drawn=((0.5, 2.0),))
    grows_for: float = parameter(3.0, "hours they grow", low=0.01, drawn=((2.0, 5.0),))
    times: float = parameter(
        6.0, "puts at the end of the growth, as a multiple of those before", low=1.5, drawn=((3.0, 12.0),)
    )
    reach: float = parameter(
        1.5,
        "of what fits: how much there would be at the end of the growth",
        low=0.01,
        drawn=((0.35, 0.7), (1.15, 2.5)),
    )

    _SLACK = 1.05  # what the getters can do, as a multiple of the puts before they grow

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self.grows_for + 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        growing = (self.times - 1) / math.log(self.times)  # mean of the puts while they grow
        left = (growing - self._SLACK) * self.grows_for * HOUR
        return self.reach * site.capacity(self.traffic, rng).messages / left

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin, end = self.begin * HOUR, (self.begin + self.grows_for) * HOUR

        def puts(seconds: Array) -> Array:
            share = (seconds - begin) / (end - begin)
            return rate * np.where((share >= 0) & (share < 1), self.times ** np.clip(share, 0, 1), 1.0)

        gets = between(begin, end, rate * self._SLACK, rate * 4)
        return [
            *site.puts(puts, self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate, self.traffic),
        ]


@scenario
@dataclass(frozen=True, kw_only=True)
class LevellingFill(StoreScenario):
    """A line says full at every moment of the first hours, and is wrong at every one."""

    name = "levelling-fill"
    sentence = "More is put than before, and each message is got after a while: it fills fast, then less, then no more."

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    begin: float = parameter(0.5, "hours until more is put", drawn=((0.5, 2.0),))
    before: float = parameter(0.1, "puts before, as a share", high=1, drawn=((0.05, 0.3),))
    kept_for: float = parameter(1.0, "hours a message stays, on average", low=0.01, drawn=((0.7, 1.8),))
    level: float = parameter(
        0.6, "of what fits: how much there is in the end", low=0.01, high=10, drawn=((0.5, 0.85), (1.15, 1.8))
    )

    _SETTLED_AFTER = 4  # multiples of `kept_for` after which the level is reached

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self._SETTLED_AFTER * self.kept_for

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.level * site.capacity(self.traffic, rng).messages / (self.kept_for * HOUR)

    def levelling(self, site: Site, rate: float) -> list[Flow]:
        """Return the puts that increase to a rate, messages/s, and the gets of each message after a random time."""
        puts = between(0.0, self.begin * HOUR, rate * self.before, rate)
        return site.put_and_get(puts, self.traffic, self.kept_for * HOUR, at_random=True)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        return [*self.levelling(site, rate), *site.beside(rate, self.traffic)]
