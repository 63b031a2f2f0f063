"""The scenario of the demo: three structures, on each of which a fixed line on its usage is wrong.

It is not among SCENARIOS, whose members are about one store and are drawn for the scorecard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from twin.errors import UsageError
from twin.estate import Estate, Structure
from twin.simulation.arrivals import Array, Flow, between, constant
from twin.simulation.scenario import HOUR, Scenario, lasting, parameter
from twin.simulation.site import Site, stores_of

_LEVELS_AFTER_PCT = 80.0  # of its usage, where the second offload rule takes over by default
_FULL_AT = 0.85  # share of the outage after which a data set is full


@dataclass(frozen=True, kw_only=True)
class SideBySide(Scenario):
    """A climb that levels off, a data set that fills behind a flat structure, teeth of which one goes on."""

    name = "side-by-side"
    sentence = (
        "Of three structures one levels off by its rules, one fills its data set, one has teeth until one goes on."
    )

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(5.0, 8.0))
    length: float = parameter(8_000.0, "mean bytes of a message", low=64, high=1_000_000)
    spread: float = parameter(0.3, "of the lengths: standard deviation of their logarithm", high=3)
    outage_after: float = parameter(0.5, "hours until the getters of the first two structures stop")
    outage: float = parameter(3.0, "hours they stand still", low=0.01)
    climb: float = parameter(40.0, "minutes of a tooth of the third structure", low=0.2)
    empty: float = parameter(15.0, "minutes in which its getter empties it", low=0.2)
    peak: float = parameter(0.9, "of what fits: how much there is at the end of a tooth", high=10)
    teeth: float = parameter(4.0, "teeth before the one that goes on", low=0)

    @override
    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        trial, arrivals, chance = rng.spawn(3)
        names = list(stores_of(estate, (Structure,)))
        if len(names) < 3:
            raise UsageError(f"{self.name}: {estate.source} has {len(names)}; expected: three structures with queues")
        sites = [Site.find(estate, name, None, chance, (Structure,)) for name in names[:3]]
        flows = [
            *self._level(sites[0], trial),
            *self._data_set(sites[1], trial),
            *self._teeth(sites[2], trial),
        ]
        return arrivals, flows

    def _level(self, site: Site, rng: np.random.Generator) -> list[Flow]:
        """Climb fast until the rules offload, then hardly at all: the climb to 80 % takes a third of the outage."""
        messages = site.capacity(self.traffic, rng, percent=_LEVELS_AFTER_PCT).messages
        return self._outage(site, messages / (self.outage / 3 * HOUR))

    def _data_set(self, site: Site, rng: np.random.Generator) -> list[Flow]:
        messages = site.capacity_of_data_sets(self.name, self.traffic, rng)
        return self._outage(site, messages / (_FULL_AT * self.outage * HOUR))

    def _outage(self, site: Site, rate: float) -> list[Flow]:
        begin = self.outage_after * HOUR
        getter = between(begin, begin + self.outage * HOUR, 0.0, 4 * rate)
        return [*site.puts(constant(rate), self.traffic), *site.gets(getter, self.traffic)]

    def _teeth(self, site: Site, rng: np.random.Generator) -> list[Flow]:
        climb, period = self.climb * 60, (self.climb + self.empty) * 60
        rate = self.peak * site.capacity(self.traffic, rng).messages / climb
        end = self.teeth * period

        def gets(seconds: Array) -> Array:
            is_emptied = (seconds % period >= climb) & (seconds < end)
            return np.where(is_emptied, rate * (1 + 1.2 * self.climb / self.empty), 0.0)

        return [*site.puts(constant(rate), self.traffic), *site.gets(gets, self.traffic)]
