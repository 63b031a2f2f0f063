"""Random scenarios: bursts of any height, getters that stop from time to time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from twin.simulation.arrivals import Array, Curve, Flow, constant
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter
from twin.simulation.site import Site


@dataclass(frozen=True, kw_only=True)
class HeavyTailedBursts(StoreScenario):
    """The mean says little: half of what comes, comes in bursts, and some are many times as high as the others."""

    name = "heavy-tailed-bursts"
    sentence = "Bursts of very different sizes come at any time, while the getters can do about what is put on average."

    hours: float = parameter(8.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    every: float = parameter(15.0, "minutes from burst to burst, on average", low=0.2, drawn=((8.0, 25.0),))
    lasts: float = parameter(5.0, "minutes a burst lasts", low=0.2, drawn=((3.0, 12.0),))
    tail: float = parameter(
        1.5, "of the sizes of bursts: exponent of their Pareto distribution", low=1.05, drawn=((1.3, 2.0),)
    )
    load: float = parameter(
        1.05, "puts on average, as a share of what the getters can do", low=0.01, drawn=((0.7, 0.9), (0.98, 1.06))
    )
    fits_for: float = parameter(1.0, "hours of puts that fit", low=0.01, drawn=((0.8, 3.0),))

    _IN_BURSTS = 0.5  # of the puts
    _HIGHEST = 12.0  # of a burst, as a multiple of the mean

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng).messages / (self.fits_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        return [
            *site.puts(self._puts(site, rate), self.traffic),
            *site.gets(constant(rate / self.load), self.traffic),
            *site.beside(rate * 0.5, self.traffic),
        ]

    def _puts(self, site: Site, rate: float) -> Curve:
        every, lasts = self.every * 60, self.lasts * 60
        count = site.chance.poisson(self.hours * HOUR / every)
        begins = np.sort(site.chance.uniform(min(HOUR, self.hours * HOUR / 4), self.hours * HOUR, count))
        sizes = np.minimum(site.chance.pareto(self.tail, count) * (self.tail - 1), self._HIGHEST)  # of mean 1
        heights = rate * self._IN_BURSTS * every / lasts * sizes

        def curve(seconds: Array) -> Array:
            total = np.full(seconds.shape, rate * (1 - self._IN_BURSTS))
            for begin, height in zip(begins, heights, strict=True):
                total += np.where((seconds >= begin) & (seconds < begin + lasts), height, 0.0)
            return total

        return curve


@dataclass(frozen=True, kw_only=True)
class ShortOutages(StoreScenario):
    """The tenth stop looks like the nine before it, for as long as they lasted."""

    name = "short-outages"
    sentence = "The getter stops again and again for some minutes, which is harmless; once it may stay away."

    hours: float = parameter(8.0, "length of the recording, hours of event time", **lasting(7.0, 12.0))
    every: float = parameter(60.0, "minutes from one stop to the next", low=1, drawn=((45.0, 90.0),))
    stops_for: float = parameter(15.0, "minutes a stop lasts, on average", low=0.2, drawn=((8.0, 20.0),))
    climbs: float = parameter(
        0.35,
        "of what fits: how much there is at the end of a stop, on average",
        low=0.01,
        high=10,
        drawn=((0.15, 0.4),),
    )
    stays_away: float = parameter(
        0, "number of the stop, from 1, that lasts until the structure is full; 0: none", drawn=((0, 0), (3, 6))
    )
    getter_speed: float = parameter(
        3.0, "what the getter can do, as a multiple of the puts", low=1.0, drawn=((2.5, 4.0),)
    )

    @property
    @override
    def story_hours(self) -> float:
        return ((self.stays_away + 0.5) * self.every + 1.3 * self.stops_for / self.climbs) / 60

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.climbs * site.capacity(self.traffic, rng).messages / (self.stops_for * 60)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        count = int(self.hours * 60 / self.every) + 1
        begins = (np.arange(count) + 0.5) * self.every * 60
        ends = begins + self.stops_for * 60 * site.chance.uniform(0.7, 1.3, count)
        if 0 < self.stays_away <= count:
            last = round(self.stays_away) - 1
            ends[last:] = begins[last] + 1.2 * self.stops_for * 60 / self.climbs

        def gets(seconds: Array) -> Array:
            away = ((seconds[:, None] >= begins) & (seconds[:, None] < ends)).any(axis=1)
            return np.where(away, 0.0, rate * self.getter_speed)

        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate, self.traffic),
        ]
