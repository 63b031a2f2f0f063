"""The rate that a uniform cluster carries, by its members and the hosts they run on.

Every figure is of [IBM: MQ Uniform Cluster Scaling Example]: members of 4 cores on two hosts of 24 cores, 180 senders
whose connections the cluster balances over the active members. A member alone carries 21,070 messages/s at its limit
(Table 1, second row), which the estate gives. A host carries what its CPU does: with all six members at their limit it
was 95.75 % busy, and a message took 184 us of CPU (16.12 % of 24 cores at 21,070/s), so that six members carry less
than six times one. Connections are spread evenly, so the member that can carry least limits all of them. Two members
without a limit of their own, one on each host, carried 248,100/s (Table 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from twin.estate import Estate, UniformCluster

USABLE_HOST_PCT = 95.75  # of a host's CPU at its limit [IBM: Table 1, the row of six members at their limit]
SATURATED_CPU_US = 184.0  # CPU of a message at the limit of a member [IBM: Table 1, second row]
FIRST_CPU_US = 127.0  # CPU of a message of the only member of a host, below its limit [IBM: Table 1, first row]
# CPU of a message on a host whose members carry nearly all that it can, and what is left of the difference to the first
# member's with each sixth of that: the values of the smallest error in all rows of Tables 1 and 2, both hosts [fitted].
BUSY_CPU_US = 178.0
BUSY_FALL = 0.37


def host_rate(cores: float, cpu_us: float = SATURATED_CPU_US) -> float:
    """Return the rate that a host carries, messages/s."""
    return cores * USABLE_HOST_PCT / 100.0 / cpu_us * 1e6


def message_cpu_us(load: float, *, is_saturated: bool, cpu_us: float = SATURATED_CPU_US) -> float:
    """Return the CPU of a message on a host, microseconds.

    "Initial QMs on a machine tend to consume less CPU than subsequent QMs, probably due to the lesser impact of context
    switching across the machine": 127 us where one of six members carries its sixth of what the host can, 184 us at the
    limit [IBM: Table 1]. It is the load of the host, not the number of its members, that counts: one without a limit of
    its own takes at full load as much as six [IBM: Table 2]. Below a sixth nothing is published: 127 us. The CPU of a
    host is within 5 percentage points in every row of both tables. A closer law of the load alone there is not: with
    six members at the same rate the published hosts were 97 and 87 % busy. A `load` of 1 is all that the host carries.
    """
    if is_saturated:
        return cpu_us
    sixths = max(1.0, 6.0 * load)
    us: float = BUSY_CPU_US - (BUSY_CPU_US - FIRST_CPU_US) * BUSY_FALL ** (sixths - 1.0)
    return us * cpu_us / SATURATED_CPU_US


def achieved(target: float, capacity: float) -> float:
    """Return the rate that a cluster delivers, messages/s [IBM: MQ Uniform Cluster Scaling Example, Table 1]."""
    return min(target, capacity)


class Candidate(NamedTuple):
    """A member that can be started. host: None if the estate does not place it."""

    name: str
    host: str | None


class Plan(NamedTuple):
    """Members that carry a load."""

    members: int
    start: tuple[Candidate, ...]  # existing members to start, the best first
    create: tuple[str | None, ...]  # hosts of the first to create; None: add one, or the estate has none


_MAX_PLANNED = 100  # members created one by one; beyond that their number is computed


class ClusterCapacity:
    """The laws of one cluster."""

    def __init__(self, member_rate: float, host_rates: Mapping[str, float]) -> None:
        self.member_rate = member_rate  # rate that a member carries where its host has room, messages/s
        self.host_rates = host_rates  # rate that each host carries, messages/s

    def carried(self, hosts: Sequence[str | None]) -> float:
        """Return the rate that active members carry, messages/s; hosts: host of each member."""
        return len(hosts) * self._share(hosts)

    def _share(self, hosts: Sequence[str | None]) -> float:
        """Return the rate of each member, messages/s: that of the one that can carry least."""
        counts = {host: hosts.count(host) for host in dict.fromkeys(hosts) if host in self.host_rates}
        shares = (self.host_rates[host] / count for host, count in counts.items() if host is not None)
        return min((self.member_rate, *shares))

    def is_limit(self, host: str, hosts: Sequence[str | None]) -> bool:
        """Return True if the members of a host are at their limit when all carry as much as they can together."""
        own = min(self.member_rate, self.host_rates[host] / max(1, hosts.count(host)))
        return own <= self._share(hosts)

    def room(self, host: str | None, hosts: Sequence[str | None]) -> float:
        """Return the rate that a host carries beyond what its active members carry alone, messages/s."""
        if host not in self.host_rates or host is None:
            return self.member_rate
        return self.host_rates[host] - hosts.count(host) * self.member_rate

    def best(self, candidates: Sequence[Candidate], hosts: Sequence[str | None]) -> Candidate | None:
        """Return the candidate to start next, or None where none raises the rate.

        It is the one that raises the rate most; of those that do so alike, one on the host with most room; of those the
        first.
        """
        ranked = [(self.carried([*hosts, other.host]), self.room(other.host, hosts), other) for other in candidates]
        if not ranked:
            return None
        rate, _, candidate = max(ranked, key=lambda entry: entry[:2])
        return candidate if rate > self.carried(hosts) else None

    def plan(self, load: float, hosts: Sequence[str | None], idle: Sequence[Candidate]) -> Plan:
        """Return the members that carry more than a load, messages/s: the active ones and those needed beside, idle
        first.
        """
        placed, left = list(hosts), list(idle)
        start: list[Candidate] = []
        while self.carried(placed) <= load and (candidate := self.best(left, placed)) is not None:
            start.append(candidate)
            left.remove(candidate)
            placed.append(candidate.host)
        create: list[str | None] = []
        places = [Candidate("", host) for host in self.host_rates]
        while self.carried(placed) <= load and len(create) < _MAX_PLANNED:
            place = self.best(places, placed)
            create.append(None if place is None else place.host)
            placed.append(create[-1])
        missing = load - self.carried(placed)
        more = int(missing / self._share(placed)) + 1 if missing >= 0.0 else 0
        return Plan(len(placed) + more, tuple(start), tuple(create))

    def members_for(self, load: float, known: Sequence[Candidate]) -> int:
        """Return the number of members, at least 1, that carry a load; known: all members, the preferred ones first."""
        return max(1, self.plan(load, (), known).members)


def host_of(estate: Estate, member: str) -> str | None:
    """Return the host of a queue manager, or None where the estate does not place it."""
    qmgr = estate.queue_managers.get(member)
    return None if qmgr is None else qmgr.host


def laws_of(estate: Estate, config: UniformCluster) -> ClusterCapacity:
    """Return the laws of a cluster, with the hosts on which the estate places its members."""
    hosts = {host_of(estate, name) for name in config.queue_managers} & estate.hosts.keys()
    rates = {name: host_rate(cores, config.cpu_us) for name, cores in estate.hosts.items() if name in hosts}
    return ClusterCapacity(config.messages_per_second, rates)
