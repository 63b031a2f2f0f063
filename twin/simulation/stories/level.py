"""Scenarios whose messages stay for a time: the backlog follows the rate of puts and stops growing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from twin.estate import Structure
from twin.simulation.arrivals import Flow, constant, rising
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site


@scenario
@dataclass(frozen=True, kw_only=True)
class FlatNearLimit(StoreScenario):
    """High and steady is not full."""

    name = "flat-near-limit"
    sentence = "Every message is got an hour after its put: the structure stays close to its limit, and stays."

    hard = False

    hours: float = parameter(5.0, "length of the recording, hours of event time", **lasting(7.0, 12.0))
    level: float = parameter(0.7, "of what fits: how much there is", high=10, drawn=((0.45, 0.78),))
    kept_for: float = parameter(1.0, "hours a message stays", low=0.01, drawn=((0.5, 1.5),))
    grown_in: float = parameter(0.0, "hours until there are as many puts as will be", drawn=((3.0, 5.0),))

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.level * site.capacity(self.traffic, rng).messages / (self.kept_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        return [
            *site.put_and_get(rising(rate, self.grown_in * HOUR), self.traffic, self.kept_for * HOUR),
            *site.beside(rate, self.traffic),
        ]


@scenario
@dataclass(frozen=True, kw_only=True)
class OffloadStopsGrowth(StoreScenario):
    """A line through the climb sees the structure full within the hour; the rules never let it be."""

    name = "offload-stops-growth"
    sentence = "The backlog grows; at the offload thresholds data goes to the data sets, and growth stops for good."
    plays_on = (Structure,)
    wants = "rules"

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    length: float = parameter(16_000.0, "mean bytes of a message", low=64, high=1_000_000, drawn=((6_000.0, 40_000.0),))
    spread: float = parameter(0.5, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.2, 0.8),))
    level: float = parameter(
        0.7, "of what fits, data sets included: how much there is in the end", high=10, drawn=((0.4, 0.8), (1.8, 3.0))
    )
    kept_for: float = parameter(1.0, "hours a message stays", low=0.01, drawn=((0.5, 1.5),))
    grown_in: float = parameter(3.0, "hours until there are as many puts as will be", drawn=((2.5, 5.0),))

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return self.level * site.capacity(self.traffic, rng).messages / (self.kept_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        beside = replace(self.traffic, length=constant(1_000.0))
        puts = rising(rate, self.grown_in * HOUR)
        return [*site.put_and_get(puts, self.traffic, self.kept_for * HOUR), *site.beside(rate, beside)]
