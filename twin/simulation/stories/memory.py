"""Scenarios of structures with storage class memory, SCMALGORITHM(KEYPRIORITY1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from twin.errors import UsageError
from twin.estate import CouplingFacility, Structure
from twin.simulation.arrivals import Flow, Traffic, between, constant, rising
from twin.simulation.scenario import HOUR, StoreScenario, parameter, scenario
from twin.simulation.site import Site, stores_of
from twin.simulation.stories.filling import GetterOutage


def scm_of(site: Site, story: str) -> int:
    """Return SCMMAXSIZE of the structure. Raise UsageError, naming the story, if it has none."""
    assert isinstance(site.store, Structure)
    if site.store.scm_max_size is None:
        raise UsageError(
            f"{story}: {site.store.name} has no storage class memory; expected: a structure with scm_max_size, on a "
            "coupling facility with scm"
        )
    return site.store.scm_max_size


@scenario
@dataclass(frozen=True, kw_only=True)
class ScmFillsBehind(GetterOutage):
    """The structure is at 90 % and stays there: whoever looks at it alone sees a line that has become flat."""

    name = "scm-fills-behind"
    sentence = "The getter stops; the structure is held at 90 % while storage class memory fills behind it."
    hard = True
    plays_on = (Structure,)
    wants = "scm"

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the structure has no SCM."""
        scm_of(site, self.name)
        return super().default_rate(site, rng)


@scenario
@dataclass(frozen=True, kw_only=True)
class PriorityInversion(StoreScenario):
    """KEYPRIORITY1 takes what is least likely to be got next: the lowest priority. Here that is what is got."""

    name = "priority-inversion"
    sentence = "Urgent messages that nobody gets keep their place; the others, got all the time, wait in SCM for it."
    plays_on = (Structure,)
    wants = "scm"

    begin: float = parameter(1.0, "hours until nobody gets the urgent messages", drawn=((0.8, 2.0),))
    lasts: float = parameter(2.0, "hours that lasts", low=0.01, drawn=((1.0, 4.0),))
    level: float = parameter(40.0, "percent of the structure the others take", low=1, high=89, drawn=((25.0, 60.0),))
    kept_for: float = parameter(0.3, "hours each of the others stays", low=0.01, drawn=((0.2, 0.5),))
    full_at: float = parameter(
        0.8,
        "share of these hours after which the urgent ones alone would have filled structure and SCM",
        low=0.01,
        drawn=((0.4, 0.95), (1.4, 3.0)),
    )

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self.lasts + 0.5

    @property
    def traffic(self) -> Traffic:
        """Properties of the urgent messages."""
        return replace(super().traffic, priorities=((7, 0.5), (9, 0.5)))

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the structure has no SCM."""
        scm_of(site, self.name)
        return site.capacity(self.traffic, rng).messages / (self.full_at * self.lasts * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Raise UsageError if the structure has only one queue."""
        others = site.other_queue(self.name)
        patient = replace(self.traffic, priorities=((0, 1.0),))
        fits = site.capacity(patient, site.chance, percent=self.level).messages
        begin, end = self.begin * HOUR, (self.begin + self.lasts) * HOUR
        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(between(begin, end, 0.0, rate * 3), self.traffic),
            *site.put_and_get(
                rising(fits / (self.kept_for * HOUR), begin * 0.6), patient, self.kept_for * HOUR, queue=others
            ),
        ]


@scenario
@dataclass(frozen=True, kw_only=True)
class ScmOverCommitted(StoreScenario):
    """Each structure has SCM left, by its own SCMMAXSIZE."""

    name = "scm-over-committed"
    sentence = "Two structures fill, each with room by its SCMMAXSIZE; the SCM they share is not enough for both."
    plays_on = (Structure,)
    wants = "scm-over-committed"

    begin: float = parameter(0.5, "hours until both getters stop", drawn=((0.5, 2.0),))
    lasts: float = parameter(2.0, "hours they stand still", low=0.01, drawn=((1.0, 4.0),))
    reach: float = parameter(
        0.85,
        "of what fits into each one alone: how much there would be in the end",
        low=0.01,
        high=10,
        drawn=((0.25, 0.4), (0.75, 0.95)),
    )

    @property
    @override
    def story_hours(self) -> float:
        return self.begin + self.lasts + 0.5

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the structure has no SCM."""
        scm_of(site, self.name)
        return self.reach * site.capacity(self.traffic, rng).messages / (self.lasts * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Raise UsageError if no other structure shares more SCM with it than there is."""
        other = self._other(site)
        own = self.default_rate(other, site.chance)
        return [*self._filled(site, rate), *self._filled(other, own)]

    def _filled(self, site: Site, rate: float) -> list[Flow]:
        begin = self.begin * HOUR
        gets = between(begin, begin + self.lasts * HOUR, 0.0, rate * 3)
        return [*site.puts(constant(rate), self.traffic), *site.gets(gets, self.traffic)]

    def _other(self, site: Site) -> Site:
        assert isinstance(site.store, Structure)
        facility = site.estate.stores.get(site.store.coupling_facility or "")
        total = facility.scm or 0 if isinstance(facility, CouplingFacility) else 0
        for name, store in stores_of(site.estate, (Structure,)).items():
            if isinstance(store, Structure) and store.coupling_facility == site.store.coupling_facility:
                both = scm_of(site, self.name) + (store.scm_max_size or 0)
                if name != site.store.name and store.scm_max_size and both > total > 0:
                    return Site.find(site.estate, name, None, site.chance)
        raise UsageError(
            f"{self.name}: {site.store.name} is alone; expected: two structures on {site.store.coupling_facility} "
            "whose SCMMAXSIZE is more than its SCM together"
        )
