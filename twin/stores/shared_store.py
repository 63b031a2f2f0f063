"""Base class of the live twins of shared stores: coupling facilities, uniform clusters, logs of queue managers.

A shared store holds no messages. Its input is the reports of its message stores and events of its own (HEARTBEAT,
RESTART, ALTER, MEASURE), both processed by event time: an event of its own takes effect at the first tick after it that
has not been processed. If no store reports to it, its own events take effect at once. Source: docs/shared-stores.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import UNSET

from kernels import OPS
from kernels.clock import TICK
from kernels.layout import NEVER
from twin.alerts.episodes import STEP, Alert, Episodes, Finding
from twin.alerts.texts import Facts, runbook_of
from twin.base.conditions import Condition, Resource
from twin.base.units import as_text
from twin.estate import CouplingFacility, Estate, EstateError, QueueManagerLog, UniformCluster, parse_attributes
from twin.estate.attributes import settings_of
from twin.records import Baseline, StateRecord
from twin.state.tables import StateError
from twin.stores.drift import SizeMeasured, drift_finding, judge
from twin.stores.headers import PendingEvent, SharedState, decode_shared_state
from twin.stores.reports import Report, Values, sources_of

if TYPE_CHECKING:
    from twin.events import EventBlock, Measured
from twin.events.fields import has_levels, without_nulls

DRIFT_TOLERANCE_PCT = 5.0  # shared stores have no attribute for it (docs/alerts.md, "Conditions")

_ALTER, _MEASURE = OPS.index("ALTER"), OPS.index("MEASURE")

Config = TypeVar("Config", CouplingFacility, UniformCluster, QueueManagerLog)
Reported = TypeVar("Reported", bound=Values)


class SharedStore(ABC, Generic[Config, Reported]):
    """The twin of a store that message stores share."""

    kind: str  # kind of store, as in the estate
    takes: type[Reported]  # the values of reports that it takes; it ignores others
    measurable: tuple[str, ...] = ()  # fields of the state record that a baseline takes over
    settling_ticks: int  # ticks after the last input during which time alone may change something
    clock: ClassVar[int] = NEVER  # its time is that of reports
    duplicates: ClassVar[int] = 0  # its own events have no sequence numbers
    tables: ClassVar[None] = None  # it has no arrays

    def __init__(self, estate: Estate, name: str, header: bytes | None = None) -> None:
        described = estate.stores[name]
        if described.kind != self.kind:
            raise StateError(f"store {name} is a {described.kind}, not a {self.kind}")
        self.name = name
        self.estate = estate
        # estate entry with the current attributes, after ALTER
        self.config: Config = described  # type: ignore[assignment]  # kind and class go together
        self.sources = sources_of(estate, name)  # the message stores that report, by name, as the estate describes them
        self._state = SharedState() if header is None else decode_shared_state(header, name)
        # open alerts
        self.episodes = Episodes(
            name,
            self._state.episodes,
            self._state.turns,
            self._state.incident,
            zone=estate.site.clock,
            runbook=runbook_of(estate.runbook),
            site=estate.site.name,
        )
        self._restore(self._state.kind_state)
        estate_attributes = self._attributes()
        if header is not None:
            self._restore_attributes(estate_attributes)
        self._state.described, self._state.sources = estate_attributes, list(self.sources)

    def _restore_attributes(self, described: dict[str, Any]) -> None:
        """Restore the attributes that events left, except where the estate has changed; drop sources it dropped."""
        before = self._state.described
        changed = {name for name, value in described.items() if before.get(name) != value}
        restored = {name: value for name, value in self._state.attributes.items() if name not in changed}
        self.config = _with(self.config, restored)
        dropped = [source for source in self._state.sources if source not in self.sources]
        self._state.frontier.forget(dropped)
        for source in dropped:
            self._on_source_left(source)

    # --- events and reports ----------------------------------------------------------------------------------------

    def apply(self, block: EventBlock) -> list[Alert]:
        """Apply a block of this store's own events; return the alerts they cause, in order."""
        alerts: list[Alert] = []
        for row, event in enumerate(block.events):
            before = self._state.clock.time
            time = self._state.clock.advance(int(event["time"]))
            self._state.events += 1
            if before is not None and time < before:
                self._turn_back_events(time)
            op = int(event["op"])
            if op in (_ALTER, _MEASURE):
                self._state.pending_events.append(PendingEvent(time, op, block.extras.get(row, b"{}")))
            if not self._has_sources:
                alerts += self._apply_at_once(time)
        return alerts + self._run_ticks()

    def try_event(self, block: EventBlock, row: int) -> None:
        """Apply the content of an event with content at once; what it raises is what the event is refused for."""
        event = PendingEvent(int(block.events[row]["time"]), int(block.events[row]["op"]), block.extras[row])
        if event.op in (_ALTER, _MEASURE):
            self._control(event)
        self._check_conditions(event.time)

    def take(self, reports: Iterable[Report], *, caught_up: bool | None = None) -> list[Alert]:
        """Add reports, each source's in order; return the alerts they cause, in order. `caught_up` is True from when on
        all events that exist have been read: then what has never reported is no source, and a silent one is waited for
        by minutes; False while a backlog is read, as at first; None: as before.
        """
        frontier = self._state.frontier
        frontier.take(reports)
        if caught_up is not None:
            frontier.caught_up = caught_up
        if frontier.turn_back(self.expected(), self.sources):
            self._turn_back((frontier.processed_tick or 0) * TICK)
        return self._run_ticks()

    def _turn_back_events(self, time: int) -> None:
        """Reduce the times of pending events to that of a clock that has gone back, microseconds."""
        for event in self._state.pending_events:
            event.time = min(event.time, time)
        if not self._has_sources:
            self._turn_back(time)

    def _turn_back(self, now: int) -> None:
        """Continue from an earlier time, microseconds, to which later times in the state are set."""
        self._state.turns += 1
        self._state.now = now
        if self._state.settled_tick is not None:
            self._state.settled_tick = now // TICK + self.settling_ticks
        self.episodes.turn_back(now, self._state.turns)
        self._on_turn_back(now)

    def drain_reports(self) -> list[Report]:
        """Return no reports: a shared store shares no other."""
        return []

    @property
    def is_untouched(self) -> bool:
        """True if the store has had neither an event nor a report."""
        return not (self._state.events or self._state.frontier.last_ticks)

    @property
    def _has_sources(self) -> bool:
        """True if any store reports, or is expected to."""
        return bool(self.expected() or self._state.frontier.last_ticks)

    def expected(self) -> list[str]:
        """Return the sources to wait for."""
        return list(self.sources)

    def _apply_at_once(self, time: int) -> list[Alert]:
        self._state.now = max(time, self._state.now or time)
        self._expire(self._state.now)
        events, self._state.pending_events = self._state.pending_events, []
        alerts = [alert for event in events for alert in self._control(event)]
        return alerts + self._check_conditions(self._state.now)

    def _run_ticks(self) -> list[Alert]:
        """Process every tick that all sources have passed, except where nothing can change."""
        alerts = self._run_released()
        while (late := self._state.frontier.release(self.expected(), self.sources)) is not None:
            self._state.late_reports += sum(map(self._is_relevant, late))
            alerts += self._run_released()
        return alerts

    def _run_released(self) -> list[Alert]:
        """Process the ticks that the released reports allow."""
        alerts: list[Alert] = []
        while (tick := self._next_tick()) is not None:
            now = self._state.now = max(tick * TICK, self._state.now or 0)
            events = [event for event in self._state.pending_events if event.time < now]
            self._expire(now)
            reports = self._state.frontier.due(tick)
            if events or reports:
                self._state.settled_tick = tick + self.settling_ticks
            self._state.pending_events = self._state.pending_events[len(events) :]  # their times never decrease
            for report in filter(self._is_relevant, reports):
                if report.values is None:
                    self._on_source_left(report.source)
                elif isinstance(report.values, self.takes):
                    self._on_report(report, report.values)
            for event in events:
                alerts += self._control(event)
            self._state.frontier.processed_tick = tick
            alerts += self._check_conditions(now)
        return alerts

    def _next_tick(self) -> int | None:
        """Return the next tick at which anything can change; None where sources must pass it first.

        Ticks that sources have passed without a change count as processed.
        """
        frontier = self._state.frontier
        bound = frontier.bound(self.expected(), self.sources)
        if bound is None:
            return None
        processed, settled, events = frontier.processed_tick, self._state.settled_tick, self._state.pending_events
        due = [frontier.first_pending_tick(), events[0].time // TICK + 1 if events else None, self._due_tick()]
        ticks = [tick if processed is None else max(tick, processed + 1) for tick in due if tick is not None]
        if processed is not None and settled is not None and processed < settled:
            ticks.append(processed + 1)
        tick = min(ticks, default=bound + 1)
        if tick <= bound:
            return tick
        if processed is not None and bound > processed:
            frontier.processed_tick = bound
            self._state.now = max(bound * TICK, self._state.now or 0)
        return None

    # --- own events ------------------------------------------------------------------------------------------------

    def _control(self, event: PendingEvent) -> list[Alert]:
        """Apply an ALTER or MEASURE; return the alerts it opens or clears."""
        content = msgspec.json.decode(event.content)
        if event.op == _MEASURE:
            return self._measure(without_nulls(content)) if has_levels(content) else []
        try:
            changes = parse_attributes(self.config, "ALTER", content)
        except EstateError:  # the estate has changed since the event was decoded and checked
            changes = None
        if changes is None or not self._can_alter(changes):
            self._state.refused_alters += 1
        else:
            before, self.config = self.config, _with(self.config, changes)
            self._on_altered(before)
        return []

    def _measure(self, measured: Measured) -> list[Alert]:
        """Take a measurement, fields of the state record; return the alerts it opens or clears."""
        drift = self._state.drift
        is_first = drift.baseline is None
        if is_first:
            drift.take({name for name in self.measurable if name in measured}, self._set_baseline(measured))
        self._draw_down(measured)
        compared, sizes = self._compare(measured), self._compare_sizes(measured)
        now = self._state.now or 0
        tested = {} if is_first else compared
        return judge(drift, tested, compared, sizes, DRIFT_TOLERANCE_PCT, self.episodes, now, self._drift_finding)

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _update_alert(
        self,
        condition: str,
        resource: Resource,
        *,
        holds: bool,
        is_over: bool,
        make_finding: Callable[[str | None], Finding],
        make_cleared: Callable[[str], Finding],
        is_news: Callable[[Finding], bool] = lambda _: False,
    ) -> list[Alert]:
        """Open, update or clear the alert of one condition, by the rules for message stores (docs/alerts.md). `is_over`
        has hysteresis included; `make_finding` gets the severity last published, or None.
        """
        now = self._state.now or 0
        episode = self.episodes.get(condition, resource)
        if episode is None:
            return self.episodes.open(make_finding(None), now) if holds else []
        cleared = self.episodes.settle(episode, lambda: make_cleared(episode.severity), now, is_over=is_over)
        if is_over:
            return cleared
        finding = make_finding(episode.severity)
        is_worse = finding.severity != episode.severity or (finding.usage_pct or 0.0) >= episode.usage_pct + STEP
        if not is_worse and not is_news(finding):
            return []
        return self.episodes.update(episode, finding, now)

    # --- state -----------------------------------------------------------------------------------------------------

    def state(self) -> StateRecord:
        """Return the state record (docs/state.md)."""
        times = [time for time in (self._state.now, self._state.clock.time) if time is not None]
        drift = self._state.drift
        return self._record(
            StateRecord(
                store=self.name,
                kind=self.kind,
                site=self.estate.site.name or UNSET,
                time=as_text(max(times)) if times else None,
                messages=0,  # messages are counted in the stores that hold them
                bytes=0,
                uncommitted=0,
                in_doubt=0,
                expired_held=0,
                queues=(),
                events=self._state.events,
                duplicates=0,  # own events have no sequence numbers
                gaps=0,
                unmatched_gets=0,
                full_puts=0,
                queue_full_puts=0,
                overfull_puts=0,
                refused_alters=self._state.refused_alters,
                baseline=drift.baseline,
                measured=tuple(drift.measured),
                drift_pct=drift.pct,
                fidelity=drift.fidelity,
                sizes_measured=drift.sizes_by_resource(),
                forecast=None,
            )
        )

    def header(self) -> bytes:
        """Return the whole state."""
        self._state.episodes, self._state.incident = self.episodes.as_list(), self.episodes.incident
        self._state.attributes = self._attributes()
        self._state.kind_state = self._kind_state()
        return msgspec.msgpack.encode(self._state)

    def dirty_pages(self) -> Iterator[tuple[int, bytes]]:
        """Return no pages: a shared store has none."""
        return iter(())

    def _is_known(self, field: str, *, reported: bool) -> bool:
        """Return True if a usage was counted, by reports, or measured; field: field of the state record."""
        return reported or field in self._state.drift.measured

    def _attributes(self) -> dict[str, Any]:
        """Return the current attributes that ALTER may change, as plain values."""
        values = {name: getattr(self.config, name) for name in settings_of(self.config.rows)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    # --- hooks of a kind -------------------------------------------------------------------------------------------

    @abstractmethod
    def _restore(self, kind_state: bytes) -> None:
        """Restore the state that `_kind_state` returned; empty for a new store."""

    @abstractmethod
    def _kind_state(self) -> bytes:
        """Return the state that only this kind has, encoded."""

    def _expire(self, now: int) -> None:
        """Drop what is too old at the time `now`, microseconds, before events and reports of that time."""

    def _due_tick(self) -> int | None:
        """Return the tick from which on time alone changes something beyond alerts, or None."""
        return None

    def _on_turn_back(self, now: int) -> None:
        """Set times of the kind's state that are after `now`, microseconds, to it."""

    def _is_relevant(self, report: Report) -> bool:  # noqa: ARG002 -- most kinds take every report
        return True

    def _on_altered(self, before: Config) -> None:
        """Handle changed attributes; before: the estate entry before the ALTER."""

    @abstractmethod
    def _on_report(self, report: Report, values: Reported) -> None:
        """Take the values of a report; reports come in the order of ticks."""

    @abstractmethod
    def _on_source_left(self, source: str) -> None:
        """Drop the values of a source that no longer shares the store."""

    @abstractmethod
    def _check_conditions(self, now: int) -> list[Alert]:
        """Check every condition at the time `now`, microseconds; return the alerts that change."""

    @abstractmethod
    def _can_alter(self, changes: dict[str, Any]) -> bool:
        """Return True if the estate has everything that an ALTER names."""

    def _set_baseline(self, measured: Measured) -> Baseline:  # noqa: ARG002 -- some kinds are not measured
        """Set the baseline to what the real system holds beyond the model; return the state record's `baseline`."""
        return {}

    def _draw_down(self, measured: Measured) -> None:
        """Lower the baseline where a measurement shows less beyond the model."""

    def _compare(self, measured: Measured) -> dict[Resource, tuple[float, float, float]]:  # noqa: ARG002 -- the same
        """Return (model, measured, total) by resource measured."""
        return {}

    def _compare_sizes(self, measured: Measured) -> list[SizeMeasured]:  # noqa: ARG002 -- most kinds have none
        return []

    def _drift_finding(self, resource: Resource) -> Finding:
        """Return the finding about a resource that drifts; a kind that is measured adds its usage."""
        actions = self.episodes.runbook.actions(Condition.DRIFT, Facts(frozenset((self.kind,)), {"store": self.name}))
        return drift_finding(self.name, resource, self._state.drift, DRIFT_TOLERANCE_PCT, actions=actions)

    @abstractmethod
    def _record(self, common: StateRecord) -> StateRecord:
        """Return the state record of the kind. common: its fields that every kind has."""


def _with(config: Config, changes: dict[str, Any]) -> Config:
    """Return an estate entry with changed attributes, lists as tuples."""
    tuples = {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
    return replace(config, **tuples)  # type: ignore[arg-type]  # names and types are checked by parse_attributes
