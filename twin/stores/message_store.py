"""Base class of the live twins of stores that hold messages: structures, page sets, queue files.

A twin takes blocks of events and returns alerts and a state record. The result depends only on the events and their
order, not on where blocks end. A twin opened with the `header` and all `dirty_pages` of another one continues from its
state. `StoreKind` has what differs by kind: attributes, conditions, findings, fields of the state record.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import msgspec
import numpy as np
from typing_extensions import override

from kernels import clock, event_loop, layout, messages, meter_rows, meters, scm, watch
from kernels.meter_rows import DATA_SETS
from twin.alerts.episodes import Alert, Episode, Episodes, Finding
from twin.alerts.readers import Readers
from twin.alerts.texts import runbook_of
from twin.base.conditions import Condition
from twin.estate import Estate
from twin.estate.planned import StoreHistory
from twin.events import EventBlock, Measured
from twin.events.fields import NOTE, OPS, PLAN, without_nulls
from twin.forecast import rises
from twin.forecast.monitor import ForecastMemory, ForecastMonitor
from twin.forecast.outlook import Forecast
from twin.state.arrays import Array, Arrays
from twin.state.tables import Names, StateError, Tables, give_queues, give_rows
from twin.stores import alerting, measurement, watches
from twin.stores.changes import IS_CHANGE, ActionMemory, Watched, read_change
from twin.stores.drift import Drift
from twin.stores.estimate import Estimate
from twin.stores.headers import MESSAGE_VERSION, Header, decode_header
from twin.stores.kind import StoreKind
from twin.stores.reports import Report, Reporter
from twin.stores.resources import depth_lead_s, has_counted
from twin.stores.watches import due_ticks, run_scans, scan_interval_us

MAX_KEPT_MESSAGES = 1 << 25  # per store [assumed] (docs/storage-model.md, "What a twin keeps")
_NO_AGES = np.zeros(0, np.int64)
_OF_TOPIC = ("events", "far", "support", "back")  # SCALARS that only events of the topic change
MAX_FOREIGN_QUEUES = 200  # that the estate lacks, of a store [assumed]
MAX_KEPT_OVERFULL = 1 << 20  # messages among them that did not fit when they were put [assumed]


class MessageStore(StoreKind):
    """The twin of one store that holds messages."""

    acts: ActionMemory  # memory of operators' actions on it
    is_untouched: ClassVar[bool] = False  # it is opened at its first event

    def __init__(
        self,
        estate: Estate,
        name: str,
        arrays: Arrays,
        header: bytes | None = None,
        pages: Iterable[tuple[int, bytes]] | None = (),
        *,
        forecasts: bool = True,
    ) -> None:
        described = estate.message_stores.get(name)
        if described is None or described.kind != self.kind:
            raise StateError(f"store {name} is a {estate.stores[name].kind}, not a {self.kind}")
        self.name = name
        self.estate = estate
        self.config = described
        self._plain: tuple[object, dict[str, Any]] = None, {}  # the last result of `_attributes`, and of which config
        self._own_queues = frozenset(described.queues)
        self._described = self._attributes()
        self._forecasts = forecasts
        if header is None:
            self._new(arrays)
        else:
            self._restore(header, arrays, pages)
        self._register(estate)
        if header is None:
            past = estate.history.get(name, StoreHistory())
            rises.begin_with(self.tables.store, past.rises, self.qmgrs)
            if past.puts is not None:
                self.monitor.memory.puts.begin_with(past.puts)
        self.tables.store.params["most_messages"] = MAX_KEPT_MESSAGES
        self.tables.store.params["most_overfull"] = MAX_KEPT_OVERFULL
        self.tables.store.params["trust"] = clock.TRUST
        self.tables.store.params["low"] = np.inf
        self.set_params()
        self._describe_ticks()
        self._reporter = Reporter(estate, self.config, int(self.tables.store.scalars[0]["turns"]))

    # --- opening ---------------------------------------------------------------------------------------------------

    def _new(self, arrays: Arrays) -> None:
        self.tables = Tables(arrays)
        self._names = Names()
        store = self.tables.store
        for name in ("clock", "far", "back", "tick", "last_full_ents", "last_full_elems"):
            store.scalars[name] = layout.NEVER
        for name in ("message_free", "held_free", "unit_free", "unit_head", "unit_tail", "block_free"):
            store.scalars[name] = layout.NONE
        store.scalars["armed"] = 0xFFFF_FFFF
        self.monitor = self._new_monitor(ForecastMemory())
        self.episodes = Episodes(
            self.name,
            refreshed=self._refresher(),
            on_record=self.monitor.note_alert,
            zone=self.estate.site.clock,
            runbook=runbook_of(self.estate.runbook),
            site=self.estate.site.name,
        )
        self.drift, self.tested, self.found_sizes = Drift(), {}, ()
        self.began = None
        self.counted, self.acts, self.readers = set(), ActionMemory(), Readers()
        self.is_counted = False
        self.estimate = Estimate()
        self.tables.new_meters()
        self._begin()

    def _restore(self, content: bytes, arrays: Arrays, pages: Iterable[tuple[int, bytes]] | None) -> None:
        header = decode_header(content, self.kind, self.name)
        self.tables = Tables(arrays, header.rows, header.names_size, header.journals)
        self.tables.restore_records(header.records, header.version)
        if pages is not None:
            self.tables.load(pages, header.version)
            self.tables.build_indexes()
        self._names = msgspec.msgpack.decode(self.tables.names, type=Names)
        turns = int(self.tables.store.scalars[0]["turns"])
        self.monitor = self._new_monitor(header.forecasts)
        self.episodes = Episodes(
            self.name,
            header.episodes,
            turns,
            header.incident,
            self._refresher(),
            self.monitor.note_alert,
            self.estate.site.clock,
            runbook_of(self.estate.runbook),
            self.estate.site.name,
        )
        self.drift, self.tested, self.found_sizes = header.drift, {}, ()
        self.began = header.began
        self.counted, self.acts, self.readers = set(header.counted), header.acts, header.readers
        self.is_counted = header.is_counted
        self.estimate = header.estimate
        known = {field.name for field in fields(self.config)}  # an earlier release had others
        attributes = {name: value for name, value in header.attributes.items() if name in known}
        self._take_over(header.described, attributes, header.kind_state)

    def _new_monitor(self, memory: ForecastMemory) -> ForecastMonitor:
        planned = self.estate.planned.get(self.name, ())
        return ForecastMonitor(memory, enabled=self._forecasts, planned=planned, zone=self.estate.site.clock)

    def _register(self, estate: Estate) -> None:
        """Assign rows to the store's routes, queue managers and queues, and reserve those of its meters."""
        # Routes are in the order of their stores.
        start = bisect_left(estate.routes, self.name, key=attrgetter("store"))
        end = bisect_right(estate.routes, self.name, key=attrgetter("store"))
        self._base = start
        self._names, self._routes = give_rows(self.tables, self._names, estate.routes[start:end])
        max_depths = estate.max_depths.get(self.name, {})
        self.tables.store.queues["max_depth"][: len(self.queues)] = [max_depths.get(name, 0) for name in self.queues]
        self._on_new_qmgrs()
        self.tables.reserve("stocks", (len(self.qmgrs) + 1) * meter_rows.CLASSES)
        self.tables.reserve("tides", len(self.qmgrs) + DATA_SETS)
        self.tables.reserve("rises", meter_rows.RISES)

    def _describe_ticks(self) -> None:
        """Write to PARAMS what decides which ticks need the twin (see `kernels.watch`)."""
        store = self.tables.store
        params = store.params[0]
        params["queues"] = len(self.queues)
        params["limits"] = store.queues["max_depth"][: len(self.queues)].any()
        params["lead_s"] = depth_lead_s(self.config)
        params["scan_us"] = scan_interval_us(self.estate, self.config)
        self.monitor.describe(params, self.config.forecast_horizon_s)

    def _attributes(self) -> dict[str, Any]:
        """Return the current attributes that ALTER, REBUILD or the estate may change, as plain values."""
        config, attributes = self._plain
        if config is not self.config:
            plain = msgspec.to_builtins(self.config)
            attributes = {name: value for name, value in plain.items() if name not in self.identity}
            self._plain = self.config, attributes
        return attributes

    # --- events ----------------------------------------------------------------------------------------------------

    def apply(self, block: EventBlock, *, demands: bool = False) -> list[Alert]:
        """Apply a block of this store's events; return the alerts they cause, in order. With `demands` puts and gets,
        each of count 1, are decided, and the MQ reason codes of what is refused are written into the events; otherwise
        they are facts.
        """
        alerts: list[Alert] = []
        start = 0
        changed = [(row, 0, None) for row in IS_CHANGE[block.events["op"]].nonzero()[0].tolist()]
        silences = [(change.row, 1, change) for change in self._find_silences(block)]
        for row, _, silent in sorted([*changed, *silences], key=itemgetter(0, 1)):
            end = row if silent is None else row + 1
            alerts += self._apply(block, start, end, demands) if start < end else []
            if silent is None:
                alerts += self._apply_change(block, row, demands)
            else:
                content = block.extras[row] if silent.is_silent else b""
                alerts += watches.make_silence_alerts(
                    silent, block.events[row], content, self.episodes, self.name, self.clock
                )
            start = row + 1
        return alerts + self._apply(block, start, len(block), demands)

    def _apply_change(self, block: EventBlock, row: int, demands: bool) -> list[Alert]:
        """Apply an event that may be a change by people: an open alert about filling says what it changes."""
        event, content = block.events[row], block.extras.get(row, b"{}")
        queue = self.estate.routes[int(event["route"])].reported or ""
        change, self.acts.sized = read_change(event, content, queue, self.config, self.acts.sized)
        if change is None or self.episodes.filling is None or not self.monitor.enabled:
            return self._apply(block, row, row + 1, demands)
        watched = Watched(self, change)
        alerts = self._apply(block, row, row + 1, demands)
        if watched.is_slight(self):
            return alerts
        return alerts + self.episodes.note_done(watched.done(self, int(event["time"])), self.clock)

    def _find_silences(self, block: EventBlock) -> list[watches.SilenceChange]:
        """Return the rows of a block at which queue managers go silent or are heard from again."""
        if not block.extras and not any(episode.condition == Condition.SOURCE_SILENT for episode in self.episodes):
            return []
        qmgr_rows = self._routes["qmgr"][block.events["route"] - self._base]
        return watches.find_silence_changes(block, qmgr_rows, self.qmgrs, self.config.queue_managers, self.episodes)

    def _apply(self, block: EventBlock, row: int, end: int, demands: bool) -> list[Alert]:
        """Apply the events of a block from `row` up to, not including, `end`; return the alerts they cause."""
        alerts: list[Alert] = []
        events = block.events[:end]
        if row < end and self.tables.store.scalars[0]["clock"] == layout.NEVER:
            self.began = int(events[row]["time"])
            self.monitor.begin(self.began)
        ages = np.zeros(end, np.int64) if demands else _NO_AGES
        while True:
            row, reason, caused = self._advance(events, row, demands, ages)
            if reason == event_loop.DONE:
                return alerts
            alerts += caused
            if reason == event_loop.CONTROL:
                alerts += self._control(events[row], block.extras.get(row, b"{}"))
                row += 1
            alerts += alerting.open_fired(self)

    def take(self, reports: Iterable[Report], *, caught_up: bool | None = None) -> list[Alert]:  # noqa: ARG002
        """Return no alerts: no store reports to it."""
        return []

    def demand(self, events: Array) -> Array:
        """Execute queue operations, EVENT[n] of count 1, as the real system would, refusing those that cannot be done:
        puts that do not fit and gets without a message get their MQ reason codes.

        Return i8[n]: age (order of its put, from 0) of the message each get took; NONE where it took none. ValueError:
        an event has the route of another store, or is no operation on a queue.
        """
        places = events["route"] - self._base
        wrong = events["route"][(places < 0) | (places >= self._routes.size)]
        if wrong.size:
            last = self._base + self._routes.size - 1
            raise ValueError(f"route {wrong[0]} is none of {self.name}; expected: {self._base} to {last}")
        ages = np.full(events.size, layout.NONE, np.int64)
        row, reason = 0, event_loop.NO_ROOM
        while reason != event_loop.DONE:
            row, reason, _ = self._advance(events, row, True, ages)
            if reason == event_loop.FIRED:
                alerting.open_fired(self)
            elif reason == event_loop.CONTROL:
                raise ValueError(f"{OPS[events[row]['op']]} is not a demand; expected: an operation on a queue")
        return ages

    def _advance(self, events: Array, row: int, demands: bool, ages: Array) -> tuple[int, int, list[Alert]]:
        """Apply events from `row` up to the first at which the event loop stops, and do what most stops ask for. Return
        the row of that event, why the loop stopped (CONTROL and FIRED are left to the caller), and the alerts.
        """
        self._set_stops()
        first = row
        row, reason = event_loop.apply(
            self.tables.store, events, self._routes, self._base, row, len(self._names.flows), demands, ages
        )
        self.monitor.take_noted(self.tables.store.params[0])
        self.is_counted = self.is_counted or has_counted(events[first:row])
        if not demands:
            self.counted.update(
                self.queues[i] for i in measurement.counted_rows(events[first:row], self._routes, self._base)
            )
        alerts: list[Alert] = []
        if reason == event_loop.TICK_DUE:
            alerts = self._run_ticks(int(clock.clock_after(self.tables.store, events[row]["time"])) // clock.TICK)
        elif reason == event_loop.TICKED:
            tick = int(self.tables.store.scalars[0]["tick"])
            alerts = alerting.foresee(self, tick) + self._note_getters(tick)
        elif reason == event_loop.CLOCK_WRONG:
            self._turn_back(int(events[row]["time"]))
        elif reason == event_loop.NO_ROOM:
            self._make_room(events[row])
        return row, reason, alerts

    def _set_stops(self) -> None:
        """Write to PARAMS at which ticks the event loop has to stop."""
        store = self.tables.store
        params = store.params[0]
        params["attended"] = self.episodes.any_open or self._reporter.is_due or self._awaits_mix
        self.monitor.attend(params, int(store.scalars[0]["clock"]))

    def _make_room(self, event: np.void) -> None:
        """Grow the tables that are too small for an event."""
        store = self.tables.store
        scalars = store.scalars[0]
        count = int(event["count"])
        self.tables.reserve("units", int(scalars["unit_high"]) + 1)
        if event["op"] == layout.PUT:
            self.tables.reserve("counts", meter_rows.BINS * meter_rows.COUNTS)
            if event["reason"] != 0:  # it is counted, and takes no storage
                return
            max_kept = int(messages.max_stored(store, count))
            free = int(scalars["message_high"]) - int(scalars["messages"])
            self.tables.reserve("messages", int(scalars["message_high"]) + max(0, max_kept - free))
            if store.scm[0]["enrolled"]:
                self.tables.reserve("order", self.tables.store.messages.size)
            self._reserve_for_put(int(event["length"]), max_kept)
        elif event["op"] == layout.GET:
            self.tables.reserve("held", int(scalars["held_high"]) + 1)

    def alter(self, attributes: dict[str, Any]) -> bool:
        """Take an ALTER of a copy, as an event of it would, of parsed attributes; return False where it is refused."""
        scalars = self.tables.store.scalars
        refused = int(scalars[0]["refused_alters"])
        self._change(layout.ALTER, attributes)
        return int(scalars[0]["refused_alters"]) == refused

    def _control(self, event: np.void, extra: bytes) -> list[Alert]:
        """Apply an ALTER, REBUILD, MEASURE, PLAN or NOTE; then check every condition, as limits may have changed."""
        content, op = msgspec.json.decode(extra), int(event["op"])
        if op == NOTE:
            self.monitor.memory.outcomes.take_word(content["opened"], content["word"])
            return []
        if op == PLAN:
            self.monitor.plans.note(content, self.clock)
            return []
        if op == layout.MEASURE:
            alerts = measurement.take(self, without_nulls(content), int(event["time"]))
        else:
            sizes = self.sizes()
            alerts = self._change(op, content)
            self.note_sizes(sizes)
        store = self.tables.store
        self._describe_ticks()
        self._reporter.retarget(self.config, int(store.scalars[0]["tick"]))
        for row in range(len(self._names.qmgrs)):
            watch.look(store, row)
        if store.scm[0]["enrolled"]:
            watch.move(store, int(store.scalars[0]["clock"]) * scm.NANOSECONDS)
        return alerts

    @override
    def take_in(self, measured: Measured) -> None:
        # Their puts and gets are dead letters until the estate has them.
        known = set(self.queues)
        new = [own["name"] for own in measured["queues"] if own.get("depth") and own["name"] not in known]
        room = MAX_FOREIGN_QUEUES - (len(known) - len(known.intersection(self._own_queues)))
        if new and room > 0 and self.takes_in_queues:
            self._names = give_queues(self.tables, self._names, list(dict.fromkeys(new))[:room])

    @override
    def forget(self, surplus: int, depths: Mapping[int, int]) -> list[Alert]:
        store = self.tables.store
        scalars = store.scalars[0]
        row = int(scalars["bin"])
        lanes = slice(row * meter_rows.COUNTS, (row + 1) * meter_rows.COUNTS)
        counts, lag, is_counted = store.counts[lanes].copy(), int(store.bins[row]["lag"]), self.is_counted
        topic = {name: int(scalars[name]) for name in _OF_TOPIC}
        expired = measurement.surplus_events(
            store, self._routes, self._base, len(self.queues), surplus, self.clock, depths
        )
        scalars["far"] = layout.NEVER
        alerts = self._apply(EventBlock(self.name, expired, {}), 0, len(expired), demands=False)
        store = self.tables.store
        store.counts[lanes], store.bins[row]["lag"], self.is_counted = counts, lag, is_counted
        for name, value in topic.items():
            store.scalars[0][name] = value
        return alerts

    def _refresher(self) -> Callable[[Episode, int], Finding]:
        """Return what gives the finding about an open alert as of a time, microseconds.

        It is not a method of the twin: in a circle of references its mapped pages would outlive it.
        """
        reference = weakref.ref(self)

        def refreshed(episode: Episode, now: int) -> Finding:
            twin = reference()
            assert twin is not None, "the episodes are the twin's"
            return alerting.refreshed(twin, episode, now)

        return refreshed

    def _turn_back(self, time: int) -> None:
        """Set back a clock that most events contradict; later times in the state are set to the new time."""
        scalars = self.tables.store.scalars[0]
        before = int(scalars["clock"])
        watch.turn_back(self.tables.store, time, len(self._names.queues))
        self.monitor.take_shares(self.tables.store.params[0])
        now = int(scalars["clock"])
        self.episodes.turn_back(now, int(scalars["turns"]))
        self.monitor.turn_back(before, now)
        self.acts.turn_back(now // clock.TICK)
        self.readers = Readers()
        self.estimate.turn_back()
        self.monitor.memory.estimated_at = None
        self.began = None
        self._reporter.turns = int(scalars["turns"])

    # --- ticks --------------------------------------------------------------------------------------------------------

    def _run_ticks(self, until: int) -> list[Alert]:
        """Process the ticks up to `until`, skipping those at which nothing can change."""
        alerts: list[Alert] = []
        for before, tick in due_ticks(self.tables, until, self.episodes, self._is_busy):
            alerts += self._run_tick(before, tick)
        self.tables.store.scalars[0]["tick"] = until
        return alerts

    def _run_tick(self, before: int, tick: int) -> list[Alert]:
        """Process one tick that is not quiet; `kernels.watch.pass_quietly` does the same of one that is."""
        watch.begin_tick(self.tables.store, before, tick)
        alerts = self._on_tick(before, tick)
        run_scans(self.tables.store, before, tick)
        meters.meter_usage(self.tables.store, before, tick)
        alerts += alerting.check_tick(self, tick)
        alerts += self._note_getters(tick)
        self._reporter.report(before, tick, self._report_values)
        return alerts

    def _note_getters(self, tick: int) -> list[Alert]:
        """Count the gets of the queue that fills the store; return the record where its getters are back."""
        done = self.acts.note_getters(self, tick) if self.monitor.enabled else None
        return self.episodes.note_done(done, tick * clock.TICK)

    # --- what others read ---------------------------------------------------------------------------------------------

    def drain_reports(self) -> list[Report]:
        """Return the reports to a shared store since the last call, in order."""
        return self._reporter.drain()

    def drain_forecasts(self) -> list[Forecast]:
        """Return the forecasts since the last call, at most the latest few thousand."""
        forecasts = list(self.monitor.forecasts)
        self.monitor.forecasts.clear()
        return forecasts

    # --- state -----------------------------------------------------------------------------------------------------

    def header(self) -> bytes:
        """Return the state that is not in pages: counters, open alerts, attributes, sizes of tables."""
        self.monitor.take_shares(self.tables.store.params[0])
        return msgspec.msgpack.encode(
            Header(
                version=MESSAGE_VERSION,
                kind=self.kind,
                rows=self.tables.rows(),
                names_size=self.tables.names_size,
                journals=self.tables.journals(),
                records=self.tables.records(),
                described=self._described,
                attributes=self._attributes(),
                kind_state=msgspec.Raw(msgspec.msgpack.encode(self._kind_state())),
                episodes=self.episodes.as_list(),
                incident=self.episodes.incident,
                drift=self.drift,
                forecasts=self.monitor.memory,
                began=self.began,
                counted=sorted(self.counted),
                is_counted=self.is_counted,
                acts=self.acts,
                readers=self.readers,
                estimate=self.estimate,
            )
        )

    def dirty_pages(self) -> Iterator[tuple[int, bytes]]:
        """Return (page number, bytes) of the pages changed since the last call."""
        return self.tables.dirty_pages()
