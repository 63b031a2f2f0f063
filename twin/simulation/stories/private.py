"""Scenarios of private stores: page sets and queue files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from twin.errors import UsageError
from twin.estate import PageSet, QueueFile
from twin.simulation.arrivals import Array, Flow, Traffic, constant
from twin.simulation.scenario import HOUR, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site
from twin.simulation.stories.filling import GetterOutage


@scenario
@dataclass(frozen=True, kw_only=True)
class PageSetExpandNone(GetterOutage):
    """A short message has a page of its own, a long one what is left of its last page for nobody else."""

    name = "page-set-expand-none"
    sentence = "The getter of a private queue stops; its page set, EXPAND(NONE), fills and no extent comes."
    plays_on = (PageSet,)
    wants = "no-expansion"

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the page set can expand."""
        if isinstance(site.store, PageSet) and site.store.expand != "NONE":
            raise UsageError(
                f'{self.name}: {site.store.name} has expand = "{site.store.expand}"; expected: a page set with expand'
                ' = "NONE", or getter-outage for this one'
            )
        return super().default_rate(site, rng)


@scenario
@dataclass(frozen=True, kw_only=True)
class QueueFileGrowth(StoreScenario):
    """Blocks that were free and allocated are free again after a checkpoint."""

    name = "queue-file-growth"
    sentence = "A queue file grows while the getter is away, is drained and cut back by a checkpoint, and grows again."
    plays_on = (QueueFile,)

    hours: float = parameter(4.5, "length of the recording, hours of event time", **lasting(2.0, 8.0))
    begin: float = parameter(0.5, "hours until the getter goes away", drawn=((0.3, 1.0),))
    first: float = parameter(1.0, "hours it is away, at most half of what fits", low=0.01, drawn=((0.5, 1.5),))
    drained_in: float = parameter(1.0, "hours until it goes away again", low=0.01, drawn=((0.8, 1.5),))
    second: float = parameter(1.5, "hours it is away then", low=0.01, drawn=((1.0, 3.0),))
    reach: float = parameter(
        1.3, "of what fits: how much there would be the second time", low=0.01, high=10, drawn=((0.35, 0.7), (1.1, 2.0))
    )

    _MAX_MESSAGES = 100_000  # that pile up, since the file may have 2 TB

    @property
    def traffic(self) -> Traffic:
        """Mostly persistent messages: a checkpoint truncates only the file of a queue with a persistent update."""
        return replace(super().traffic, persistent=0.9)

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self.first + self.drained_in + self.second + 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        fits = min(site.capacity(self.traffic, rng).messages, self._MAX_MESSAGES)
        return self.reach * fits / (self.second * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begins = np.array([self.begin, self.begin + self.first + self.drained_in]) * HOUR
        ends = begins + np.array([min(self.first, 0.5 * self.second / self.reach), self.second]) * HOUR

        def gets(seconds: Array) -> Array:
            away = ((seconds[:, None] >= begins) & (seconds[:, None] < ends)).any(axis=1)
            return np.where(away, 0.0, rate * 4)

        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(gets, self.traffic),
            *site.beside(rate, self.traffic),
        ]
