"""The live twin of a uniform cluster: what its members carry together, and when another one is wanted.

Source: uniform-cluster-scaling.txt: Table 1 (members are added one by one, the rate achieved is what they carry);
"trigger points for starting additional cluster members" (queue depth among them); "a uniform cluster can be contracted
as demand decreases by issuing 'endmqm -r <QM>'". domain.md section 7 (rate and queue depth).
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from kernels.clock import SECOND, TICK
from twin.alerts import shared_texts
from twin.alerts.episodes import CRITICAL, WARNING, Alert, Finding
from twin.alerts.findings import CRITICAL_FROM, CRITICAL_UNTIL
from twin.estate import QueueFile, UniformCluster
from twin.stores.drift import DRIFT
from twin.stores.reports import QueueFileValues, Report
from twin.stores.shared_store import DRIFT_TOLERANCE_PCT, SharedStore

CAPACITY = "capacity"  # condition and resource
WINDOW_TICKS = 60 * SECOND // TICK  # over which rate and activity are measured
_WINDOW_SECONDS = WINDOW_TICKS * TICK // SECOND

# The seed raises the load in steps of 115 messages/s for each of 180 senders, 20,700 messages/s: "around 85% of 1 QMs
# messaging capability", 98 % of the 21,070 that Table 1 shows. At 98 % the members still carry all of it, but nothing
# more: the mark must lie below, so that there is time to start one.
THRESHOLD_PCT = 85.0
CLEAR_BELOW_PCT = 80.0  # the alert is over below it
# One can be spared where the others would stay well below the mark: stopping it must not bring the alert back.
SPARE_PCT = 70.0
SPARE_CLEAR_PCT = 75.0
SPARE_HOLD = 15 * 60 * SECOND  # "surges of rates ... at peak times" must not have members stopped between them
# Messages that wait count as load: what it takes to deliver them within a quarter of an hour. An assumption.
DRAIN_SECONDS = 15 * 60


def achieved(target: float, members: int, one: float) -> float:
    """Messages/s that `members` deliver of `target`; one: what a member carries. Source: the seed, Table 1."""
    return min(target, members * one)


def members_for(load: float, one: float) -> int:
    """The members that carry a load, messages/s, below the mark at which another one is wanted; at least 1."""
    return max(1, math.ceil(load * 100.0 / (THRESHOLD_PCT * one)))


class _Contents(msgspec.Struct):
    puts: dict[int, int] = {}  # by tick, of the last minute
    active: dict[str, int] = {}  # by member, the last tick with a put or get
    depths: dict[str, int] = {}  # by queue file
    joined: dict[str, int] = {}  # by member that ALTER added, the tick of it
    fewer: bool = False  # whether the open alert is that one can be spared
    spare_since: int | None = None
    base_depth: int = 0  # baseline, as measured first


class UniformClusterTwin(SharedStore[UniformCluster]):
    """See the module."""

    kind = "uniform_cluster"
    alterable = ("queue_managers", "messages_per_second")
    settles_after = 2 * WINDOW_TICKS + 2  # ticks: rate and activity run out, then a minute of calm

    def _open(self, contents: bytes) -> None:
        self._own = msgspec.msgpack.decode(contents, type=_Contents) if contents else _Contents()

    def _contents(self) -> bytes:
        return msgspec.msgpack.encode(self._own)

    def expected(self) -> list[str]:
        """The queue files of those who are members now."""
        return [name for name in self.sources if self._member(name) in self.config.queue_managers]

    def _member(self, source: str) -> str | None:
        config = self.sources.get(source)
        return config.queue_manager if isinstance(config, QueueFile) else None

    def _counts(self, report: Report) -> bool:
        """Whether it is of a member, and not of the time before it was one: nobody waited for those."""
        member = self._member(report.source)
        if member is None or member not in self.config.queue_managers:
            return False
        return report.tick > self._own.joined.get(member, report.tick - 1)

    def _changed(self, before: UniformCluster) -> None:
        for member in sorted(set(self.config.queue_managers) - set(before.queue_managers)):
            self._own.joined[member] = (self.kept.now or 0) // TICK

    def _hear(self, report: Report) -> None:
        values, member = report.values, self._member(report.source)
        if not isinstance(values, QueueFileValues) or member is None:
            return
        self._own.puts[report.tick] = self._own.puts.get(report.tick, 0) + values.puts
        if values.puts or values.gets:
            self._own.active[member] = max(report.tick, self._own.active.get(member, report.tick))
        self._own.depths[report.source] = values.depth

    def _leave(self, source: str) -> None:
        self._own.depths.pop(source, None)

    def _takes(self, changes: dict[str, Any]) -> bool:
        return all(name in self.estate.queue_managers for name in changes.get("queue_managers", ()))

    # --- what there is ---------------------------------------------------------------------------------------------

    def _active(self) -> list[str]:
        return sorted(name for name in self._own.active if name in self.config.queue_managers)

    def _rate(self) -> float:
        return sum(self._own.puts.values()) / _WINDOW_SECONDS

    def _depth(self) -> int:
        members = self.config.queue_managers
        return self._own.base_depth + sum(
            depth for source, depth in self._own.depths.items() if self._member(source) in members
        )

    def _capacity(self) -> float:
        return len(self._active()) * self.config.messages_per_second

    def _load(self) -> float:
        """Messages/s: what is put, and what delivering those that wait takes."""
        return self._rate() + self._depth() / DRAIN_SECONDS

    def _needed(self) -> int:
        return members_for(self._load(), self.config.messages_per_second)

    def _usage_pct(self, fewer_by: int = 0) -> float:
        """The load in percent of what the active members carry, or what so many fewer would; of none, 0."""
        capacity = (len(self._active()) - fewer_by) * self.config.messages_per_second
        return round(100.0 * self._load() / capacity, 3) if capacity > 0 else 0.0

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _begin(self, now: int) -> None:
        since = now // TICK - WINDOW_TICKS
        self._own.puts = {tick: puts for tick, puts in self._own.puts.items() if tick > since}
        self._own.active = {name: tick for name, tick in self._own.active.items() if tick > since}

    def _turned_back(self, now: int) -> None:
        own, tick = self._own, now // TICK
        own.puts = {at: puts for at, puts in own.puts.items() if at <= tick}
        own.active = {name: min(at, tick) for name, at in own.active.items()}
        own.joined = {name: min(at, tick) for name, at in own.joined.items()}
        if own.spare_since is not None:
            own.spare_since = min(own.spare_since, now)

    def _look(self, now: int) -> list[Alert]:
        usage, active = self._usage_pct(), len(self._active())
        spare = active > 1 and self._usage_pct(fewer_by=1) < SPARE_PCT
        if not spare:
            self._own.spare_since = None
        elif self._own.spare_since is None:
            self._own.spare_since = now
        more = self._capacity() > 0 and self._needed() > active
        is_open = self.episodes.get(CAPACITY, CAPACITY) is not None
        held = self._own.spare_since is not None and now - self._own.spare_since >= SPARE_HOLD
        if not is_open:
            self._own.fewer = held and not more
        spared = active < 2 or self._usage_pct(fewer_by=1) >= SPARE_CLEAR_PCT
        is_over = spared if self._own.fewer else usage < CLEAR_BELOW_PCT
        return self._follow(
            CAPACITY,
            CAPACITY,
            holds=more or held,
            is_over=is_over,
            finding=self._finding,
            over=self._over,
        )

    def _finding(self, before: str | None) -> Finding:
        active, one = self._active(), self.config.messages_per_second
        needed = self._needed()
        told = (self.name, len(active), one, self._rate(), self._depth(), needed)
        usage = self._usage_pct()
        if self._own.fewer:
            severity, actions = WARNING, shared_texts.fewer_members_actions(active)
        else:
            urgent = usage >= (CRITICAL_UNTIL if before == CRITICAL else CRITICAL_FROM)
            severity = CRITICAL if urgent else WARNING
            idle = [name for name in self.config.queue_managers if name not in active]
            actions = shared_texts.more_members_actions(self.name, idle, needed - len(active))
        return self._told(severity, usage, shared_texts.members_wanted(*told), actions)

    def _over(self, severity: str) -> Finding:
        told = (self.name, len(self._active()), self.config.messages_per_second, self._rate(), self._depth())
        return self._told(severity, self._usage_pct(), shared_texts.load_is_over(*told), ())

    def _told(
        self, severity: str, usage: float, cause: str, actions: tuple[str, ...], condition: str = CAPACITY
    ) -> Finding:
        return Finding(
            condition=condition,
            resource=CAPACITY,
            severity=severity,
            usage_pct=usage,
            full_probability=None,
            fillers=(),
            cause=cause,
            actions=actions,
        )

    # --- measurements ----------------------------------------------------------------------------------------------

    def _baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        self._own.base_depth = max(0, measured.get("depth", 0) - self._depth())
        return {"depth": self._own.base_depth}

    def _draw_down(self, measured: dict[str, Any]) -> None:
        if "depth" in measured:
            model = self._depth() - self._own.base_depth
            self._own.base_depth = min(self._own.base_depth, max(0, measured["depth"] - model))

    def _compared(self, measured: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
        if "rate" not in measured:
            return {}
        return {CAPACITY: (self._rate(), measured["rate"], self._capacity())}

    def _drifted(self, resource: str) -> Finding:  # noqa: ARG002 -- a cluster has one
        cause = shared_texts.drifted(self.name, CAPACITY, self.kept.drift.pct or 0.0, DRIFT_TOLERANCE_PCT)
        actions = (f"Look whether the events of all members of {self.name} reach the topic: DISPLAY QSTATUS, gaps.",)
        return self._told(WARNING, self._usage_pct(), cause, actions, DRIFT)

    def _fields(self) -> dict[str, Any]:
        return {
            "members": len(self._active()),
            "rate": round(self._rate(), 3),
            "capacity": round(self._capacity(), 3),
            "depth": self._depth(),
        }
