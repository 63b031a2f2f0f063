"""The live twin of a uniform cluster: the load on its members, and the number of members it needs.

Sources: [IBM: MQ Uniform Cluster Scaling Example, Table 1]: members are added one by one, and the rate achieved is what
they carry. The same, "Comparisons": rate and queue depth as "trigger points for starting additional cluster members";
"a uniform cluster can be contracted as demand decreases by issuing 'endmqm -r <QM>'". docs/alerts.md, "Conditions".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict
from typing_extensions import override

from kernels.clock import SECOND, TICK
from twin.alerts import texts
from twin.alerts.episodes import CALM_TICKS, Alert, Finding
from twin.alerts.findings import CRITICAL_FROM_PCT, CRITICAL_UNTIL_PCT
from twin.alerts.texts import Facts
from twin.base.conditions import CAPACITY, CRITICAL, INFO, WARNING, Condition, Resource
from twin.base.units import percent
from twin.capacity import Candidate, ClusterCapacity, Plan, host_of, laws_of, message_cpu_us
from twin.estate import UniformCluster
from twin.events import Measured
from twin.records import Action, Baseline, HostState, StateRecord, UniformClusterState, sentences_of
from twin.stores.reports import QueueFileValues, Report
from twin.stores.shared_store import SharedStore

WINDOW_TICKS = 60 * SECOND // TICK  # of the measurement of rate and activity
_WINDOW_S = WINDOW_TICKS * TICK // SECOND

# Load with one member fewer, percent of what the others carry. Stopping a member must not open the alert again.
# [assumed]
SPARE_PCT = 70.0
SPARE_CLEAR_PCT = 75.0
SPARE_HOLD_US = 15 * 60 * SECOND  # bridges the lulls between "surges of rates ... at peak times" [assumed]
DRAIN_S = 15 * 60  # time within which members are to deliver the messages that wait [assumed]


class _ClusterState(msgspec.Struct):
    """State of a uniform cluster beside that of any shared store."""

    puts: dict[int, int] = {}  # messages by tick, over the window
    last_active: dict[str, int] = {}  # last tick with a put or get, by member
    depths: dict[str, int] = {}  # messages by queue file
    joined: dict[str, int] = {}  # tick of the ALTER that added a member, by member
    is_surplus: bool = False  # the open alert says that a member can be spared
    spare_since: int | None = None  # time since which a member can be spared, microseconds
    base_depth: int = 0  # baseline, messages
    advice: tuple[str, ...] = ()  # actions of the open alert, as last published


class UniformClusterTwin(SharedStore[UniformCluster, QueueFileValues]):
    """The twin of a uniform cluster."""

    kind = "uniform_cluster"
    takes = QueueFileValues
    measurable = ("depth",)
    settling_ticks = WINDOW_TICKS + CALM_TICKS + 2  # the window passes, then that time of calm

    @override
    def _restore(self, kind_state: bytes) -> None:
        self._cluster = msgspec.msgpack.decode(kind_state, type=_ClusterState) if kind_state else _ClusterState()

    @override
    def _kind_state(self) -> bytes:
        return msgspec.msgpack.encode(self._cluster)

    @override
    def expected(self) -> list[str]:
        return [name for name in self.sources if self._member(name) in self.config.queue_managers]

    def _member(self, source: str) -> str | None:
        """Return the queue manager of a queue file."""
        config = self.sources.get(source)
        return None if config is None else config.queue_managers[0]

    @override
    def _is_relevant(self, report: Report) -> bool:
        """Return True if a report is of a current member, since it joined: earlier ones were not waited for."""
        member = self._member(report.source)
        if member is None or member not in self.config.queue_managers:
            return False
        return report.tick > self._cluster.joined.get(member, report.tick - 1)

    @override
    def _on_altered(self, before: UniformCluster) -> None:
        for member in sorted(set(self.config.queue_managers) - set(before.queue_managers)):
            self._cluster.joined[member] = (self._state.now or 0) // TICK

    @override
    def _on_report(self, report: Report, values: QueueFileValues) -> None:
        cluster, member = self._cluster, self._member(report.source)
        if member is None:
            return
        if report.tick > (self._state.now or 0) // TICK - WINDOW_TICKS:  # else it is traffic before a silence
            cluster.puts[report.tick] = cluster.puts.get(report.tick, 0) + values.puts
            if values.puts or values.gets:
                cluster.last_active[member] = max(report.tick, cluster.last_active.get(member, report.tick))
        cluster.depths[report.source] = values.depth

    @override
    def _on_source_left(self, source: str) -> None:
        self._cluster.depths.pop(source, None)

    @override
    def _can_alter(self, changes: dict[str, Any]) -> bool:
        return all(name in self.estate.queue_managers for name in changes.get("queue_managers", ()))

    # --- load and capacity -----------------------------------------------------------------------------------------

    def _active_members(self) -> list[str]:
        return sorted(name for name in self._cluster.last_active if name in self.config.queue_managers)

    def _host_of(self, member: str) -> str | None:
        return host_of(self.estate, member)

    def _candidates(self, members: Iterable[str]) -> list[Candidate]:
        return [Candidate(name, self._host_of(name)) for name in members]

    def _hosts(self) -> list[str | None]:
        return [self._host_of(name) for name in self._active_members()]

    def _laws(self) -> ClusterCapacity:
        return laws_of(self.estate, self.config)

    def _rate(self) -> float:
        """Return the messages/s put over the window."""
        return sum(self._cluster.puts.values()) / _WINDOW_S

    def _depth(self) -> int:
        """Return the messages that wait in the queues of members."""
        members = self.config.queue_managers
        depths = self._cluster.depths.items()
        return self._cluster.base_depth + sum(depth for source, depth in depths if self._member(source) in members)

    def _capacity(self) -> float:
        """Return the messages/s that the active members carry."""
        return self._laws().carried(self._hosts())

    @property
    def load(self) -> float:
        """The messages/s put, plus those that it takes to deliver the waiting messages in time."""
        return self._rate() + self._depth() / DRAIN_S

    def _wanted_rate(self) -> float:
        """Return the rate that members are to carry so that the load stays below the trigger."""
        return self.load * 100.0 / self.config.trigger_pct

    def _is_short(self) -> bool:
        """True if the load is at what the active members carry: they may be what limits it."""
        return 0 < self._capacity() <= self._wanted_rate()

    def _plan(self) -> Plan:
        """Return the members to add where the active ones fall short."""
        return self.plan_for(1.0)

    def plan_for(self, factor: float) -> Plan:
        """Return the members that carry `factor` times the present load: the active ones and as many others."""
        idle = [name for name in self.config.queue_managers if name not in self._active_members()]
        return self._laws().plan(self._wanted_rate() * factor, self._hosts(), self._candidates(idle))

    def fewest_for(self, factor: float) -> int:
        """Return the number of active members, the preferred first, that carry `factor` times the present load."""
        return self._laws().members_for(self._wanted_rate() * factor, self._candidates(self._active_members()))

    def _needed_members(self) -> int:
        """Return the number of members that carry the load."""
        if self._is_short():
            return self._plan().members
        return self.fewest_for(1.0)

    def _usage_pct(self) -> float:
        """Return the load in percent of the capacity, 0 without capacity."""
        return percent(self.load, self._capacity())

    def _spare_member(self) -> tuple[str | None, float]:
        """Return the member to stop, the last that leaves most capacity, and the load in percent of what is left."""
        active, laws = self._active_members(), self._laws()
        left = {name: laws.carried([self._host_of(other) for other in active if other != name]) for name in active}
        name = max(active, key=lambda member: (left[member], member), default=None)
        return name, percent(self.load, left[name]) if name is not None else 0.0

    # --- alerts ----------------------------------------------------------------------------------------------------

    @override
    def _expire(self, now: int) -> None:
        cluster, since = self._cluster, now // TICK - WINDOW_TICKS
        cluster.puts = {tick: puts for tick, puts in cluster.puts.items() if tick > since}
        cluster.last_active = {name: tick for name, tick in cluster.last_active.items() if tick > since}

    @override
    def _on_turn_back(self, now: int) -> None:
        cluster, now_tick = self._cluster, now // TICK
        cluster.puts = {tick: puts for tick, puts in cluster.puts.items() if tick <= now_tick}
        cluster.last_active = {name: min(tick, now_tick) for name, tick in cluster.last_active.items()}
        cluster.joined = {name: min(tick, now_tick) for name, tick in cluster.joined.items()}
        if cluster.spare_since is not None:
            cluster.spare_since = min(cluster.spare_since, now)

    @override
    def _check_conditions(self, now: int) -> list[Alert]:
        cluster, active = self._cluster, len(self._active_members())
        _, reduced_pct = self._spare_member()
        if active < 2 or reduced_pct >= SPARE_PCT:
            cluster.spare_since = None
        elif cluster.spare_since is None:
            cluster.spare_since = now
        is_short = self._is_short()
        can_spare = cluster.spare_since is not None and now - cluster.spare_since >= SPARE_HOLD_US
        if is_short or self.episodes.get(Condition.CAPACITY, CAPACITY) is None:
            cluster.is_surplus = can_spare and not is_short
        is_surplus_over = active < 2 or reduced_pct >= SPARE_CLEAR_PCT
        alerts = self._update_alert(
            Condition.CAPACITY,
            CAPACITY,
            holds=is_short or can_spare,
            is_over=is_surplus_over if cluster.is_surplus else self._enough_members(),
            make_finding=self._capacity_finding,
            make_cleared=self._cleared,
            is_news=lambda finding: sentences_of(finding.runbook) != cluster.advice,
        )
        if alerts:
            cluster.advice = alerts[-1].actions
        return alerts

    def _enough_members(self) -> bool:
        """True if the load is below the trigger by more than it may vary by chance in the window."""
        deviation = math.sqrt(sum(self._cluster.puts.values())) / _WINDOW_S  # of a Poisson process
        return self._usage_pct() + percent(deviation, self._capacity()) < self.config.trigger_pct

    def _capacity_finding(self, severity_before: str | None) -> Finding:
        """Return the finding that members are missing, that one can be spared, or that it is to be seen if enough run.

        severity_before: as last published, None where the alert opens.
        """
        active, usage_pct = self._active_members(), self._usage_pct()
        if self._cluster.is_surplus:
            name, _ = self._spare_member()
            severity = INFO
            facts = Facts().adding(self.kind, "member_spare", store=self.name, member=name or active[-1])
        else:
            is_critical = usage_pct >= (CRITICAL_UNTIL_PCT if severity_before == CRITICAL else CRITICAL_FROM_PCT)
            severity = CRITICAL if is_critical else WARNING
            plan = self._plan()
            missing = plan.members - len(active) - len(plan.start)
            facts = texts.member_facts(self.name, plan.start, plan.create, missing)
        cause = texts.members_wanted(
            self.name, len(active), self._capacity(), self._rate(), self._depth(), self._needed_members()
        )
        actions = self.episodes.runbook.actions(Condition.CAPACITY, facts)
        return self._finding(severity, usage_pct, cause, actions)

    def _cleared(self, severity: str) -> Finding:
        """Return the finding of an alert that clears; severity: as last published."""
        active = len(self._active_members())
        cause = texts.load_is_over(self.name, active, self._capacity(), self._rate(), self._depth())
        return self._finding(severity, self._usage_pct(), cause, ())

    def _finding(self, severity: str, usage_pct: float, cause: str, actions: tuple[Action, ...]) -> Finding:
        return Finding(
            condition=Condition.CAPACITY,
            resource=CAPACITY,
            severity=severity,
            usage_pct=usage_pct,
            cause=cause,
            runbook=actions,
        )

    # --- measurements ----------------------------------------------------------------------------------------------

    @override
    def _set_baseline(self, measured: Measured) -> Baseline:
        self._cluster.base_depth = max(0, measured.get("depth", 0) - self._depth())
        return {"depth": self._cluster.base_depth if "depth" in measured else None}

    @override
    def _draw_down(self, measured: Measured) -> None:
        if "depth" in measured:
            model = self._depth() - self._cluster.base_depth
            self._cluster.base_depth = min(self._cluster.base_depth, max(0, measured["depth"] - model))

    @override
    def _compare(self, measured: Measured) -> dict[Resource, tuple[float, float, float]]:
        if "rate" not in measured:
            return {}
        return {CAPACITY: (self._rate(), measured["rate"], self._capacity())}

    @override
    def _drift_finding(self, resource: Resource) -> Finding:
        return msgspec.structs.replace(super()._drift_finding(resource), usage_pct=self._usage_pct())

    @override
    def _record(self, common: StateRecord) -> UniformClusterState:
        has_reports = bool(self._cluster.depths)
        return UniformClusterState(
            **asdict(common),
            members=len(self._active_members()) if has_reports else None,
            rate=round(self._rate(), 3) if has_reports else None,
            load=round(self.load, 3) if has_reports else None,
            capacity=round(self._capacity(), 3) if has_reports else None,
            usage_pct=self._usage_pct() if has_reports else None,
            members_needed=self._needed_members() if has_reports else None,
            hosts=self._host_states() if has_reports else {},
            depth=self._depth() if self._is_known("depth", reported=has_reports) else None,
            late_reports=self._state.late_reports,
        )

    def _host_states(self) -> dict[str, HostState]:
        """Return active members, capacity and estimated CPU of each host, of this cluster alone."""
        hosts, laws = self._hosts(), self._laws()
        is_short = self._is_short()
        states = {}
        for name, rate in laws.host_rates.items():
            members = hosts.count(name)
            carried = self._rate() * members / len(hosts) if hosts else 0.0
            is_saturated = is_short and laws.is_limit(name, hosts)
            cpu_us = message_cpu_us(carried / rate, is_saturated=is_saturated, cpu_us=self.config.cpu_us)
            cpu_pct = percent(carried * cpu_us / 1e6, self.estate.hosts[name])
            states[name] = HostState(members=members, capacity=round(rate, 3), cpu_pct=round(cpu_pct, 2))
        return states
