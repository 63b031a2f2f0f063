"""Scenarios that the mechanisms of a store decide: structures, page sets, queue files, a uniform cluster.

- Structures: offloading, storage class memory, entries beside elements.
- The uniform cluster is one whose load rises. Source of its ramp: [IBM: MQ, uniform cluster scaling, Test Scenario and
  Table 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from kernels.layout import GET, PUT
from twin.base.errors import UsageError
from twin.capacity import achieved, host_of, laws_of
from twin.estate import Estate, PageSet, QueueFile, Structure, UniformCluster
from twin.estate.model import facility_of, others_of
from twin.simulation.arrivals import Array, Flow, Traffic, between, constant, rising, steps
from twin.simulation.scenario import HOUR, Scenario, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site, stores_of
from twin.simulation.stories.filling import GetterOutage

# --- structures -------------------------------------------------------------------------------------------------------


@scenario
@dataclass(frozen=True, kw_only=True)
class FlatNearLimit(StoreScenario):
    """High and steady is not full."""

    name = "flat-near-limit"
    sentence = "Every message is got an hour after its put: the structure stays close to its limit, and stays."

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


def scm_of(site: Site, story: str) -> int:
    """Return SCMMAXSIZE of the structure. Raise UsageError, naming the story, if it has none."""
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
    plays_on = (Structure,)

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
    _phases = ("begin", "lasts")

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
    _phases = ("begin", "lasts")

    begin: float = parameter(0.5, "hours until both getters stop", drawn=((0.5, 2.0),))
    lasts: float = parameter(2.0, "hours they stand still", low=0.01, drawn=((1.0, 4.0),))
    reach: float = parameter(
        0.85,
        "of what fits into each one alone: how much there would be in the end",
        low=0.01,
        high=10,
        drawn=((0.25, 0.4), (0.75, 0.95)),
    )

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
        facility = facility_of(site.estate.stores, site.store)
        total = (facility.scm or 0) if facility is not None else 0
        for store in others_of(site.estate.stores, site.store, facility) if facility is not None else ():
            both = scm_of(site, self.name) + (store.scm_max_size or 0)
            if store.queues and store.scm_max_size and both > total > 0:
                return Site.find(site.estate, store.name, None, site.chance)
        raise UsageError(
            f"{self.name}: {site.store.name} is alone; expected: two structures on {site.store.coupling_facility} "
            "whose SCMMAXSIZE is more than its SCM together"
        )


@scenario
@dataclass(frozen=True, kw_only=True)
class ScmDay(Scenario):
    """Nobody notices that SCM holds the peaks. It is not drawn for the scorecard, as it plays on several structures."""

    name = "scm-day"
    sentence = (
        "A day with two outages of the getter: storage class memory holds what the structure cannot; no put fails."
    )

    hours: float = parameter(24.0, "length of the recording, hours of event time", **lasting(24.0, 48.0))
    short_after: float = parameter(9.0, "hours until the getter stops for the first time")
    short: float = parameter(0.8, "hours of the first outage", low=0.01)
    long_after: float = parameter(18.0, "hours until it stops again")
    long: float = parameter(2.0, "hours of the second outage", low=0.01)
    reach: float = parameter(
        0.6, "of what fits into structure and SCM: how much there is at the peak", low=0.01, high=10
    )
    later: float = parameter(1.5, "hours later that each further structure with SCM of the facility plays the same")
    getter_speed: float = parameter(3.0, "what the getter can do, as a multiple of the puts", low=1.0)

    @override
    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        trial, arrivals, chance = rng.spawn(3)
        first = Site.find(estate, self.store, self.queue, chance, (Structure,))
        scm_of(first, self.name)
        facility = first.store.coupling_facility
        others = [
            config.name
            for config in stores_of(estate, (Structure,)).values()
            if config.scm_max_size and config.name != first.store.name
            if facility is not None and config.coupling_facility == facility
        ]
        sites = [first, *(Site.find(estate, name, None, chance, (Structure,)) for name in others)]
        flows: list[Flow] = []
        for number, site in enumerate(sites):
            rate = self.reach * site.capacity(self.traffic, trial).messages / (self.long * HOUR)
            flows += self._flows(site, rate if self.rate is None or number else self.rate, number * self.later * HOUR)
        return arrivals, flows

    def _flows(self, site: Site, rate: float, later: float) -> list[Flow]:
        outages = ((self.short_after, self.short), (self.long_after, self.long))
        begins = [0.0, *(time * HOUR + later for after, lasts in outages for time in (after, after + lasts))]
        gets = rate * self.getter_speed
        getter = steps(np.array(begins), np.array([gets, 0.0, gets, 0.0, gets]))
        return [*site.puts(constant(rate), self.traffic), *site.gets(getter, self.traffic)]


@scenario
@dataclass(frozen=True, kw_only=True)
class ElementsToEntries(StoreScenario):
    """The structure looks the same for hours; what is short is something else."""

    name = "elements-to-entries"
    sentence = "Messages become ever shorter and more: elements in use stay, entries fill behind them."
    plays_on = (Structure,)

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    length: float = parameter(
        6_000.0, "mean bytes of a message at the beginning", low=64, high=1_000_000, drawn=((4_000.0, 16_000.0),)
    )
    last_length: float = parameter(
        100.0, "mean bytes of a message at the end", low=64, high=1_000_000, drawn=((64.0, 150.0), (900.0, 1_500.0))
    )
    spread: float = parameter(0.3, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.1, 0.4),))
    level: float = parameter(60.0, "percent of the elements in use", low=1, high=100, drawn=((45.0, 65.0),))
    kept_for: float = parameter(0.5, "hours a message stays", low=0.01, drawn=((0.3, 0.8),))
    grown_in: float = parameter(1.5, "hours until the elements are in use", drawn=((1.5, 2.5),))

    _HEADER, _ELEMENT = 372, 256  # bytes of a message's header in a structure, of an element: docs/storage-model.md

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        return site.capacity(self.traffic, rng, percent=self.level).messages / (self.kept_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        begin, end = (self.grown_in + self.kept_for) * HOUR, self.hours * HOUR
        rises = rising(rate, self.grown_in * HOUR)

        def length(seconds: Array) -> Array:
            share = np.clip((seconds - begin) / max(end - begin, 1.0), 0.0, 1.0)
            return self.length * (self.last_length / self.length) ** share

        def puts(seconds: Array) -> Array:
            return rises(seconds) * self._elements(self.length) / self._elements(length(seconds))

        shrinking = replace(self.traffic, length=length)
        return [*site.put_and_get(puts, shrinking, self.kept_for * HOUR), *site.beside(rate, self.traffic)]

    def _elements(self, length: float | Array) -> Array:
        return np.ceil((np.asarray(length) + self._HEADER) / self._ELEMENT)


@scenario
@dataclass(frozen=True, kw_only=True)
class FlatStructureFullDataSet(StoreScenario):
    """Nothing on the structure's own display moves."""

    name = "flat-structure-full-data-set"
    sentence = "A structure half full stands still; the large messages of one queue pile up in its data sets."
    plays_on = (Structure,)
    _phases = ("begin", "grows_for")

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(5.0, 10.0))
    length: float = parameter(
        90_000.0, "mean bytes of a large message", low=64_513, high=1_000_000, drawn=((70_000.0, 150_000.0),)
    )
    spread: float = parameter(0.3, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.1, 0.4),))
    level: float = parameter(50.0, "percent of the structure that stands still", low=1, high=100, drawn=((30.0, 60.0),))
    begin: float = parameter(2.0, "hours until nobody gets the large messages", drawn=((1.5, 3.0),))
    grows_for: float = parameter(3.0, "hours they are not got", low=0.01, drawn=((1.5, 4.0),))
    full_at: float = parameter(
        0.7,
        "share of these hours after which the first 2192 comes; more than 1: they end in time",
        low=0.01,
        drawn=((0.4, 0.95), (1.4, 3.0)),
    )

    _SMALL = 1_500.0  # bytes of the messages that stand still
    _STAY_H = 0.5  # hours each of them stays

    @property
    def traffic(self) -> Traffic:
        """Messages longer than the 63 KB that a structure holds."""
        return replace(super().traffic, shortest=64_513)

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the structure is full before any data set is."""
        return site.capacity_of_data_sets(self.name, self.traffic, rng) / (self.full_at * self.grows_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        """Raise UsageError if the structure has only one queue."""
        begin, end = self.begin * HOUR, (self.begin + self.grows_for) * HOUR
        small = replace(self.traffic, length=constant(self._SMALL), shortest=64)
        still = site.capacity(small, site.chance, percent=self.level).messages / (self._STAY_H * HOUR)
        return [
            *site.puts(constant(rate), self.traffic),
            *site.gets(between(begin, end, 0.0, rate * 3), self.traffic),
            *site.put_and_get(
                rising(still, begin * 0.7), small, self._STAY_H * HOUR, queue=site.other_queue(self.name)
            ),
        ]


@scenario
@dataclass(frozen=True, kw_only=True)
class LengthsShift(StoreScenario):
    """The same number of messages; which rule they meet changes from one half hour to the next."""

    name = "lengths-shift"
    sentence = "Each message stays a while; their lengths jump between hundreds of bytes and more than any rule's size."

    hours: float = parameter(6.0, "length of the recording, hours of event time", **lasting(6.0, 12.0))
    every: float = parameter(30.0, "minutes from one length to the next, on average", low=0.5, drawn=((15.0, 60.0),))
    kept_for: float = parameter(1.0, "hours a message stays", low=0.01, drawn=((0.5, 1.5),))
    level: float = parameter(
        1.5, "of what fits: how much there is on average", low=0.01, high=10, drawn=((0.35, 0.6), (0.8, 1.3))
    )
    spread: float = parameter(0.4, "of the lengths: standard deviation of their logarithm", high=3, drawn=((0.2, 0.6),))
    grown_in: float = parameter(1.5, "hours until there are as many puts as will be", drawn=((1.5, 3.0),))

    _LENGTHS = (500.0, 3_000.0, 10_000.0, 40_000.0, 90_000.0)  # means, bytes

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        fits = [site.capacity(replace(self.traffic, length=constant(length)), rng).messages for length in self._LENGTHS]
        return self.level / float(np.mean(1 / np.array(fits))) / (self.kept_for * HOUR)

    @override
    def flows(self, site: Site, rate: float) -> Sequence[Flow]:
        count = 2 + round(2 * self.hours * 60 / self.every)
        waits = self.every * 60 * (0.5 + site.chance.exponential(0.5, count))
        lengths = np.array(self._LENGTHS)[site.chance.integers(len(self._LENGTHS), size=count)]
        begins = np.concatenate([[0.0], np.cumsum(waits)[:-1]])
        shifting = replace(self.traffic, length=steps(begins, lengths))
        puts = rising(rate, self.grown_in * HOUR)
        return [*site.put_and_get(puts, shifting, self.kept_for * HOUR), *site.beside(rate, self.traffic)]


# --- page sets, queue files, a uniform cluster ------------------------------------------------------------------------

_SENDERS = 180


@scenario
@dataclass(frozen=True, kw_only=True)
class PageSetExpandNone(GetterOutage):
    """A short message takes a page of its own; nobody else can use the rest of the last page of a long one."""

    name = "page-set-expand-none"
    sentence = "The getter of a private queue stops; its page set, EXPAND(NONE), fills and no extent comes."
    plays_on = (PageSet,)

    @override
    def default_rate(self, site: Site, rng: np.random.Generator) -> float:
        """Raise UsageError if the page set can expand."""
        if site.store.expand != "NONE":
            raise UsageError(
                f'{self.name}: {site.store.name} has expand = "{site.store.expand}"; expected: a page set with '
                'expand = "NONE", or getter-outage for this one'
            )
        return super().default_rate(site, rng)


@scenario
@dataclass(frozen=True, kw_only=True)
class QueueFileGrowth(StoreScenario):
    """Blocks that were free and allocated are free again after a checkpoint."""

    name = "queue-file-growth"
    sentence = "A queue file grows while the getter is away, is drained and cut back by a checkpoint, and grows again."
    plays_on = (QueueFile,)
    _phases = ("begin", "first", "drained_in", "second")

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

        return self._served(site, rate, constant(rate), gets)


@dataclass(frozen=True, slots=True)
class Row:
    """Row of Table 1."""

    target: float  # messages/s
    achieved: float  # messages/s
    members: int  # started


def table(step: float, members: int, capacity: float | Callable[[int], float]) -> list[Row]:
    """Return the rows of a load that rises until all members are started.

    When the started members miss the target, the row states what they achieve, and another one is started.
    """

    def carried(started: int) -> float:
        return capacity(started) if callable(capacity) else started * capacity

    rows: list[Row] = []
    started, target = 1, step
    while True:
        rows.append(Row(target, achieved(target, carried(started)), started))
        is_short = target > carried(started)
        if started == members:  # the published test ends when all members are started and carry the load
            return rows
        if is_short:
            started += 1
        else:
            target += step


@scenario
@dataclass(frozen=True, kw_only=True)
class UniformClusterRamp(Scenario):
    """The published scaling test. Nothing fills: what is short is members."""

    name = "uniform-cluster-ramp"
    sentence = "180 senders put more and more 2 KB messages; whenever the members fall short another one is started."

    hours: float = parameter(0.8, "length of the recording, hours of event time", low=0.01, high=24 * 366)
    length: float = parameter(2_048.0, "bytes of a message", low=64, high=1_000_000)
    spread: float = parameter(0.0, "of the lengths: standard deviation of their logarithm", high=3)
    noise: float = parameter(0.0, "of the rates: how much they vary in 10 seconds; 0: a Poisson process", high=3)
    step: float = parameter(115.0, "messages a second that come to each sender's in a step", low=1)
    scale: float = parameter(
        0.001, "of all rates; messages_per_second of the estate is to be as small: 21.07 instead of 21,070", low=1e-4
    )
    minutes: float = parameter(2.0, "minutes a row of the table lasts", low=0.2)
    direct: float = parameter(0.9, "of the messages, those handed to a waiting getter", high=1)

    @property
    def traffic(self) -> Traffic:
        """Nonpersistent, without units of work."""
        return replace(super().traffic, persistent=0.0, unit_share=0.0, direct=self.direct, priorities=((0, 1.0),))

    @property
    @override
    def story_hours(self) -> float:
        """End of the story with the twelve members of the published test."""
        return 23 * self.minutes / 60

    @override
    def cast(self, estate: Estate, rng: np.random.Generator) -> tuple[np.random.Generator, Sequence[Flow]]:
        """Raise UsageError unless the members of a uniform cluster each have the queue."""
        cluster = self._cluster(estate)
        rows = self.rows(cluster, estate)
        flows: list[Flow] = []
        for place, qmgr in enumerate(cluster.queue_managers):
            flows += self._member(self._route(estate, cluster, qmgr), place, rows)
        return rng.spawn(2)[1], flows

    def rows(self, cluster: UniformCluster, estate: Estate | None = None) -> list[Row]:
        """Return the rows of Table 1. `rate` is the rise of the load per row. Members are started in the order of their
        names, on the hosts of the estate if one is given.
        """
        step = _SENDERS * self.step * self.scale if self.rate is None else self.rate
        members = cluster.queue_managers
        if estate is None:
            return table(step, len(members), cluster.messages_per_second)
        laws, hosts = laws_of(estate, cluster), [host_of(estate, name) for name in members]
        return table(step, len(members), lambda started: laws.carried(hosts[:started]))

    def _cluster(self, estate: Estate) -> UniformCluster:
        clusters = {name: store for name, store in estate.stores.items() if isinstance(store, UniformCluster)}
        if not clusters:
            raise UsageError(f"{estate.source}: there is no uniform cluster; expected: describe one for {self.name}")
        if self.store is not None and self.store not in clusters:
            raise UsageError(f"store {self.store} is no uniform cluster; expected: {', '.join(clusters)}")
        return clusters[self.store or next(iter(clusters))]

    def _route(self, estate: Estate, cluster: UniformCluster, qmgr: str) -> int:
        for file in estate.message_stores.values():
            if file.queue_managers == (qmgr,) and self.queue in {None, *file.queues}:
                return estate.route_of_queue(qmgr, file.queues[0])
        expected = f'[queue_file."{qmgr}/{self.queue or "REQUEST"}"]'
        raise UsageError(f"member {qmgr} of {cluster.name} has no such queue; expected: {expected}")

    def _member(self, queue: int, place: int, rows: Sequence[Row]) -> list[Flow]:
        """Return a member's share of the achieved rate from the row in which it is started; nothing before."""
        begins = np.arange(len(rows)) * self.minutes * 60.0
        share = np.array([row.achieved / row.members if place < row.members else 0.0 for row in rows])
        quiet = Traffic(noise=0.0, unit_share=0.0)
        return [
            Flow(route=queue, op=PUT, rate=steps(begins, share), traffic=self.traffic),
            Flow(route=queue, op=GET, rate=steps(begins, 2 * share), traffic=quiet),
        ]
