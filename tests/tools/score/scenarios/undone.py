"""Scenarios that mislead: work that is backed out, trouble in another store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from kernels.layout import BACKOUT, COMMIT
from twin.base.errors import UsageError
from twin.simulation.arrivals import Array, Flow, LongUnit, between, constant
from twin.simulation.scenario import HOUR, StoreScenario, parameter
from twin.simulation.site import Site, stores_of


@dataclass(frozen=True, kw_only=True)
class LongUnitOfWork(StoreScenario):
    """Uncommitted messages keep their space until they all go at once."""

    name = "long-unit-of-work"
    sentence = "One unit of work puts and puts for hours without a commit; it backs out, and usage falls at once."

    begin: float = parameter(0.5, "hours until the unit of work begins", drawn=((0.5, 2.0),))
    lasts: float = parameter(2.0, "hours it lasts", low=0.01, drawn=((1.0, 4.0),))
    reach: float = parameter(
        0.7, "of what fits: how much there would be at its end", low=0.01, high=10, drawn=((0.35, 0.7), (1.15, 2.0))
    )
    commits: float = parameter(0, "1: it commits instead, and is got", high=1, drawn=((0, 0), (0, 1)))

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self.lasts + 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.reach * site.capacity(self.traffic, rng).messages / (self.lasts * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin, end = self.begin * HOUR, (self.begin + self.lasts) * HOUR
        unit = LongUnit(until=end, ended_by=COMMIT if self.commits else BACKOUT)
        batch = site.puts(between(begin, end, rate, 0.0), self.traffic)
        return [
            *(replace(flow, unit=unit) for flow in batch),
            *site.put_and_drain(constant(rate * 0.5), self.traffic, site.queue),
            *site.beside(rate, self.traffic),
        ]


@dataclass(frozen=True, kw_only=True)
class TwoStores(StoreScenario):
    """Usage of one store says nothing about the other."""

    name = "two-stores"
    sentence = "A getter stops and one structure fills; another one climbs and is emptied as it always is."

    outage_after: float = parameter(1.0, "hours until the getter stops", drawn=((1.0, 3.0),))
    outage: float = parameter(2.0, "hours the getter stands still", low=0.01, drawn=((0.75, 3.0),))
    full_at: float = parameter(
        0.8,
        "share of the outage after which the first 2192 comes; more than 1: it ends in time",
        low=0.01,
        drawn=((0.4, 0.95), (1.4, 3.0)),
    )
    other_peak: float = parameter(
        0.6, "of what fits into the other one: how much there is at the end of a climb", high=10, drawn=((0.4, 0.75),)
    )
    period: float = parameter(
        60.0, "minutes from one emptying of the other one to the next", low=1, drawn=((45.0, 120.0),)
    )

    _CLIMBS = 0.7  # share of the period

    @property
    @override
    def story_hours(self) -> float:
        return self.outage_after + self.outage + 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng).messages / (self.full_at * self.outage * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Raise UsageError if there is only one store with queues."""
        begin = self.outage_after * HOUR
        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(between(begin, begin + self.outage * HOUR, 0.0, rate * 3), self.traffic),
            *self._other(self._other_site(site)),
        ]

    def _other_site(self, site: Site) -> Site:
        names = [name for name in stores_of(site.estate) if name != site.store.name]
        if not names:
            raise UsageError(f"{self.name}: there is only {site.store.name}; expected: two stores with queues")
        return Site.find(site.estate, names[0], None, site.chance)

    def _other(self, site: Site) -> list[Flow]:
        period = self.period * 60
        fits = site.capacity(self.traffic, site.chance).messages
        rate = self.other_peak * fits / (self._CLIMBS * period)

        def gets(seconds: Array) -> Array:
            return np.where((seconds + 0.4 * period) % period < self._CLIMBS * period, 0.0, rate * 5)

        return [*site.puts(constant(rate), self.traffic), *site.gets(gets, self.traffic)]
