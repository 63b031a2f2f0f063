"""What the stores that others share have in common: a coupling facility, a uniform cluster.

Such a store holds no messages. It is fed by the reports of its message stores and by events of its own (HEARTBEAT,
RESTART, ALTER, MEASURE). Both are acted on by event time: an event of its own counts at the first tick after it, as
those of a message store do, or at the first tick not yet acted on. Where no store reports to it, nothing is waited for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from kernels import OPS
from kernels.clock import TICK
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.alerts.findings import STEP
from twin.alerts.resource_view import CALM_FOR
from twin.estate import CouplingFacility, Estate, EstateError, UniformCluster, parse_attributes
from twin.state.tables import StateError
from twin.stores.drift import judge, present
from twin.stores.reports import Report, sources_of
from twin.stores.shared_header import VERSION, Kept, Own
from twin.units import as_text

if TYPE_CHECKING:
    from twin.events import EventBlock

DRIFT_TOLERANCE_PCT = 5.0  # contract section 7: the default, no attribute of a shared store

_ALTER, _MEASURE = OPS.index("ALTER"), OPS.index("MEASURE")

Config = TypeVar("Config", CouplingFacility, UniformCluster)


class SharedStore(ABC, Generic[Config]):
    """See the module. `config`: the attributes as they are now; `sources`: who reports, as the estate has it."""

    kind: str
    alterable: tuple[str, ...]  # attributes that ALTER may change
    settles_after: int  # ticks after the last report by which time has changed all it can

    def __init__(self, estate: Estate, name: str, header: bytes | None = None) -> None:
        described = estate.stores[name]
        if described.kind != self.kind:
            raise StateError(f"store {name} is a {described.kind}, not a {self.kind}")
        self.name = name
        self.estate = estate
        self.config: Config = described  # type: ignore[assignment]  # kind and class go together
        self.sources = sources_of(estate, name)
        self.kept = Kept() if header is None else msgspec.msgpack.decode(header, type=Kept)
        if self.kept.version != VERSION:
            raise StateError(
                f"state of {name} has version {self.kept.version}; this program reads {VERSION}: "
                "begin with a new checkpoint"
            )
        self.episodes = Episodes(name, self.kept.episodes, self.kept.turns)
        self._open(self.kept.contents)
        described_now = self._attributes()
        if header is not None:
            self._adopt(described_now)
        self.kept.described, self.kept.sources = described_now, list(self.sources)

    def _adopt(self, described: dict[str, Any]) -> None:
        """Take over what the estate says differently since the store was last opened; the rest stays as it was."""
        before = self.kept.described
        changed = {name for name, value in described.items() if before.get(name) != value}
        as_left = {name: value for name, value in self.kept.attributes.items() if name not in changed}
        self.config = _with(self.config, as_left)
        gone = [source for source in self.kept.sources if source not in self.sources]
        self.kept.frontier.forget(gone)
        for source in gone:
            self._leave(source)

    # --- events and reports ----------------------------------------------------------------------------------------

    def apply(self, block: EventBlock) -> list[Alert]:
        """Apply a block of this store's own events; the alerts they bring, in order."""
        alerts: list[Alert] = []
        for row, event in enumerate(block.events):
            before = self.kept.clock.time
            time = self.kept.clock.after(int(event["time"]))
            self.kept.events += 1
            if before is not None and time < before:
                self._take_own_back(time)
            op = int(event["op"])
            if op in (_ALTER, _MEASURE):
                self.kept.own.append(Own(time, op, block.extras.get(row, b"{}")))
            if not self._waits:
                alerts += self._act_at_once(time)
        return alerts + self._act()

    def take(self, reports: Iterable[Report]) -> list[Alert]:
        """Take reports in, in any order but each source's own; the alerts they bring, in order."""
        self.kept.frontier.take(reports)
        if self.kept.frontier.turn_back(self.expected(), self.sources):
            self._turn_back((self.kept.frontier.acted or 0) * TICK)
        return self._act()

    def _take_own_back(self, time: int) -> None:
        """Let its own events of a clock that has gone back count from that time, microseconds, on."""
        for event in self.kept.own:
            event.time = min(event.time, time)
        if not self._waits:
            self._turn_back(time)

    def _turn_back(self, now: int) -> None:
        """Go on from an earlier time, microseconds: what was kept of the future is taken as of now."""
        self.kept.turns += 1
        self.kept.now = now
        if self.kept.settled is not None:
            self.kept.settled = now // TICK + self.settles_after
        self.episodes.turn_back(now, self.kept.turns)
        self._turned_back(now)

    def drain_reports(self) -> list[Report]:
        """What it reports itself: nothing, shared stores share no others."""
        return []

    @property
    def _waits(self) -> bool:
        return bool(self.expected() or self.kept.frontier.passed)

    def expected(self) -> list[str]:
        """The sources to wait for."""
        return list(self.sources)

    def _act_at_once(self, time: int) -> list[Alert]:
        """Where no store reports: what an event changes, at its own time."""
        self.kept.now = max(time, self.kept.now or time)
        self._begin(self.kept.now)
        own, self.kept.own = self.kept.own, []
        alerts = [alert for event in own for alert in self._control(event)]
        return alerts + self._look(self.kept.now)

    def _act(self) -> list[Alert]:
        """Act on every tick that all who report have passed, and at which there is anything to do."""
        alerts: list[Alert] = []
        while (tick := self._next_tick()) is not None:
            self.kept.now = max(tick * TICK, self.kept.now or 0)
            own = [event for event in self.kept.own if event.time < self.kept.now]
            self._begin(self.kept.now)
            reports = self.kept.frontier.due(tick)
            if own or reports:
                self.kept.settled = tick + self.settles_after
            self.kept.own = self.kept.own[len(own) :]  # its times only grow
            for report in reports:
                self._take_in(report, tick)
            for event in own:
                alerts += self._control(event)
            self.kept.frontier.acted = tick
            alerts += self._look(self.kept.now)
        return alerts

    def _take_in(self, report: Report, tick: int) -> None:
        if not self._counts(report):
            return
        self.kept.late_reports += report.tick < tick
        if report.values is None:
            self._leave(report.source)
        else:
            self._hear(report)

    def _next_tick(self) -> int | None:
        """The next tick to act on; None where it must wait. Ticks at which nothing can change are passed over."""
        frontier = self.kept.frontier
        bound = frontier.bound(self.expected(), self.sources)
        if bound is None:
            return None
        acted = frontier.acted
        waiting = [frontier.first_waiting(), self.kept.own[0].time // TICK + 1 if self.kept.own else None]
        ticks = [tick if acted is None else max(tick, acted + 1) for tick in waiting if tick is not None]
        if acted is not None and self.kept.settled is not None and acted < self.kept.settled:
            ticks.append(acted + 1)
        tick = min(ticks, default=bound + 1)
        if tick <= bound:
            return tick
        if acted is not None and bound > acted:
            frontier.acted = bound
            self.kept.now = max(bound * TICK, self.kept.now or 0)
        return None

    # --- events of its own -----------------------------------------------------------------------------------------

    def _control(self, event: Own) -> list[Alert]:
        content = msgspec.json.decode(event.content)
        if event.op == _MEASURE:
            return self._measure(present(content))
        try:
            changes = parse_attributes(self.config, "ALTER", content)
        except EstateError:  # checked when it was decoded, by the estate of then
            changes = None
        if changes is None or not self._takes(changes):
            self.kept.refused_alters += 1
        else:
            before, self.config = self.config, _with(self.config, changes)
            self._changed(before)
        return []

    def _measure(self, measured: dict[str, Any]) -> list[Alert]:
        drift = self.kept.drift
        if drift.baseline is None:
            drift.baseline = self._baseline(measured)
        self._draw_down(measured)
        compared = self._compared(measured)
        now = self.kept.now or 0
        return judge(drift, compared, DRIFT_TOLERANCE_PCT, self.episodes, now, self._drifted)

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _follow(
        self,
        condition: str,
        resource: str,
        *,
        holds: bool,
        is_over: bool,
        finding: Callable[[str | None], Finding],
        over: Callable[[str], Finding],
    ) -> list[Alert]:
        """Open, update or clear the alert of one condition, as for a message store: see `twin.alerts.findings`.

        holds: it is there; is_over: it is no longer, with its hysteresis; finding, over: what to say then, given the
        severity as last published.
        """
        now = self.kept.now or 0
        episode = self.episodes.get(condition, resource)
        if episode is None:
            return [self.episodes.open(finding(None), now)] if holds else []
        if is_over:
            if episode.calm_since is None:
                episode.calm_since = now
            if now - episode.calm_since < CALM_FOR:
                return []
            return [self.episodes.clear(episode, over(episode.severity), now)]
        episode.calm_since = None
        found = finding(episode.severity)
        if found.severity == episode.severity and (found.usage_pct or 0.0) < episode.usage_pct + STEP:
            return []
        return [self.episodes.update(episode, found, now)]

    # --- state -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state record of contract section 3, JSON-ready."""
        times = [time for time in (self.kept.now, self.kept.clock.time) if time is not None]
        return {
            "store": self.name,
            "kind": self.kind,
            "time": as_text(max(times)) if times else None,
            "messages": 0,  # those of its message stores are theirs
            "bytes": 0,
            "uncommitted": 0,
            "queues": [],
            "events": self.kept.events,
            "duplicates": 0,  # its own events have no numbers
            "gaps": 0,
            "unmatched_gets": 0,
            "full_puts": 0,
            "overfull_puts": 0,
            "refused_alters": self.kept.refused_alters,
            "baseline": self.kept.drift.baseline,
            "drift_pct": self.kept.drift.pct,
            "forecast": None,
            **self._fields(),
            "late_reports": self.kept.late_reports,
        }

    def header(self) -> bytes:
        """All of its state."""
        self.kept.episodes = self.episodes.as_list()
        self.kept.attributes = self._attributes()
        self.kept.contents = self._contents()
        return msgspec.msgpack.encode(self.kept)

    def dirty_pages(self) -> Iterator[tuple[int, bytes]]:
        """A shared store has no pages."""
        return iter(())

    def _attributes(self) -> dict[str, Any]:
        """What ALTER may change, as it is now, as plain values."""
        values = {name: getattr(self.config, name) for name in self.alterable}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    # --- what a kind of store adds ---------------------------------------------------------------------------------

    @abstractmethod
    def _open(self, contents: bytes) -> None:
        """Stand as `_contents` left it; at first where that is empty."""

    @abstractmethod
    def _contents(self) -> bytes:
        """Its own part of the header."""

    def _begin(self, now: int) -> None:
        """Let go of what is too old at the time `now`, microseconds, before anything else happens then."""

    def _turned_back(self, now: int) -> None:
        """Take what the kind keeps of the future as of `now`, microseconds."""

    def _counts(self, report: Report) -> bool:  # noqa: ARG002 -- most kinds take every report
        """Whether a report is of one who shares the store."""
        return True

    def _changed(self, before: Config) -> None:
        """An ALTER has changed the attributes, which were `before`."""

    @abstractmethod
    def _hear(self, report: Report) -> None:
        """Take in one report, in the order of ticks."""

    @abstractmethod
    def _leave(self, source: str) -> None:
        """Forget a source that shares the store no longer."""

    @abstractmethod
    def _look(self, now: int) -> list[Alert]:
        """Look at every condition at the time `now`, microseconds."""

    @abstractmethod
    def _takes(self, changes: dict[str, Any]) -> bool:
        """Whether the estate knows what an ALTER names."""

    @abstractmethod
    def _baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        """What the first measurement finds beyond the model."""

    @abstractmethod
    def _draw_down(self, measured: dict[str, Any]) -> None:
        """Lower the baseline to what a measurement finds beyond the model: the rest has been worked off."""

    @abstractmethod
    def _compared(self, measured: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
        """(model, measured, total) by resource measured."""

    @abstractmethod
    def _drifted(self, resource: str) -> Finding:
        """What to say of drift."""

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """The fields of its kind of state record."""


def _with(config: Config, changes: dict[str, Any]) -> Config:
    tuples = {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
    return replace(config, **tuples)  # type: ignore[arg-type]  # names and types are checked by parse_attributes
