"""Scenarios of page sets, of queue files, and of a uniform cluster whose load rises.

Source of the cluster's ramp: [IBM: MQ, uniform cluster scaling, Test Scenario and Table 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from kernels.layout import GET, PUT
from twin.capacity.clusters import achieved, host_of, laws_of
from twin.errors import UsageError
from twin.estate import Estate, PageSet, QueueFile, UniformCluster
from twin.simulation.arrivals import Array, Flow, Traffic, constant, steps
from twin.simulation.scenario import HOUR, Scenario, StoreScenario, lasting, parameter, scenario
from twin.simulation.site import Site
from twin.simulation.stories.filling import GetterOutage

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
