"""Ramp of a uniform cluster: rising load, and members that are started when the others cannot carry it.

Source: [IBM: MQ, uniform cluster scaling, Test Scenario and Table 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from kernels.layout import GET, PUT
from twin.capacity.clusters import achieved, host_of, laws_of
from twin.errors import UsageError
from twin.estate import Estate, QueueFile, UniformCluster
from twin.simulation.arrivals import Flow, Traffic, steps
from twin.simulation.scenario import Scenario, parameter, scenario

_SENDERS = 180


@dataclass(frozen=True, slots=True)
class Row:
    """Row of Table 1."""

    target: float  # messages/s
    achieved: float  # messages/s
    members: int  # started


def table(step: float, members: int, capacity: float | Callable[[int], float]) -> list[Row]:
    """Return the rows of a load that rises until all members are started.

    When the started members miss the target, the row states what they achieve, and another one is started.

    Args:
        step: rise of the load per row, messages/s.
        members: number of members.
        capacity: capacity of each member, or of that many members together, messages/s.
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
            flows += self._member(estate, self._file_of(estate, cluster, qmgr), place, rows)
        return rng.spawn(2)[1], flows

    def rows(self, cluster: UniformCluster, estate: Estate | None = None) -> list[Row]:
        """Return the rows of Table 1. `rate` is the rise of the load per row.

        Args:
            cluster: the cluster; its members are started in the order of their names.
            estate: where its members have hosts; None: nowhere.
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

    def _file_of(self, estate: Estate, cluster: UniformCluster, qmgr: str) -> QueueFile:
        for file in estate.stores.values():
            if isinstance(file, QueueFile) and file.queue_manager == qmgr and self.queue in {None, file.queue}:
                return file
        expected = f'[queue_file."{qmgr}/{self.queue or "REQUEST"}"]'
        raise UsageError(f"member {qmgr} of {cluster.name} has no such queue; expected: {expected}")

    def _member(self, estate: Estate, file: QueueFile, place: int, rows: Sequence[Row]) -> list[Flow]:
        """Return a member's share of the achieved rate from the row in which it is started; nothing before."""
        begins = np.arange(len(rows)) * self.minutes * 60.0
        share = np.array([row.achieved / row.members if place < row.members else 0.0 for row in rows])
        queue = estate.route_of_queue(file.queue_manager, file.queue)
        quiet = Traffic(noise=0.0, unit_share=0.0)
        return [
            Flow(route=queue, op=PUT, rate=steps(begins, share), traffic=self.traffic),
            Flow(route=queue, op=GET, rate=steps(begins, 2 * share), traffic=quiet),
        ]
