"""Base class of the live twins of stores that hold messages: structures, page sets, queue files.

A twin takes blocks of events and returns alerts and a state record. The result depends only on the events and their
order, not on where blocks end. A twin opened with the `header` and all `dirty_pages` of another one continues from its
state. `StoreKind` has what differs by kind: attributes, conditions, findings, fields of the state record.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from kernels import clock, event_loop, layout, messages, meter_rows, pools, scm, ticks, usage, watch
from kernels.meter_rows import DATA_SETS
from twin.alerts.episodes import Alert, Episode, Episodes, Finding
from twin.alerts.findings import Owned, Viewer
from twin.alerts.readers import Readers
from twin.alerts.resource_view import CRITICAL_FROM_PCT, HYSTERESIS_PCT, ResourceView
from twin.alerts.runbook import Facts, runbook_of
from twin.conditions import ENTRIES, Condition, Pool, Resource
from twin.estate import Estate, MessageStoreConfig
from twin.estate.past_rises import StoreHistory
from twin.events import EventBlock, Measured
from twin.events.fields import OPS, PLAN
from twin.events.measured import has_levels, without_nulls
from twin.forecast import rises
from twin.forecast.fill_model import FillModel, single_resource_model
from twin.forecast.monitor import ForecastMemory, ForecastMonitor
from twin.forecast.outlook import Forecast
from twin.records import DoneAction, MessageStoreState
from twin.records.usage import usage_pct
from twin.state.arrays import Array, Arrays
from twin.state.tables import Names, StateError, Tables, give_queues, give_rows
from twin.stores import alerting, silence, unread
from twin.stores.actions import IS_CHANGE, ActionMemory, Watched, read_change
from twin.stores.depth import QueueDepth, depth_lead_s
from twin.stores.drift import Compared, Drift, SizeMeasured, drift_finding, judge
from twin.stores.estimate import MANY, Estimate, Holding
from twin.stores.headers import MESSAGE_VERSION, Header, decode_header
from twin.stores.kind import StoreKind
from twin.stores.measurement import completed, counted_rows, depths_of, release_gets, surplus_events
from twin.stores.reports import Report, Reporter
from twin.stores.resources import LEAST, read_usage
from twin.stores.state_record import common_record, fields_to_take, has_counted, known_part, with_kept
from twin.stores.ticks import due_ticks, run_scans, scan_interval_us
from twin.units import as_text

MAX_KEPT_MESSAGES = 1 << 25  # per store [assumed] (docs/storage-model.md, "What a twin keeps")
_NO_AGES = np.zeros(0, np.int64)
_OF_TOPIC = ("events", "far", "support", "back")  # SCALARS that only events of the topic change
MAX_FOREIGN_QUEUES = 200  # that the estate lacks, of a store [assumed]
MAX_KEPT_OVERFULL = 1 << 20  # messages among them that did not fit when they were put [assumed]


class MessageStore(StoreKind):
    """The twin of one store that holds messages.

    Attributes:
        config: estate entry with the current attributes, after ALTER and REBUILD.
        tables: the arrays.
        episodes: open alerts.
        drift: baseline, and the drift of the last measurement.
        tested: (model, measured, total) by resource, as the last MEASURE found the model; empty if it tested nothing.
        found_sizes: the sizes that the last MEASURE had, beside those of the model just before it.
        monitor: the forecasts, and the alerts about them.
        began: time of the first event, microseconds; None: no event yet, or the clock has gone back since.
        counted: queues of which a PUT had a `count` above 1: their messages have a mean length.
        acts: memory of operators' actions on it.
        readers: facts about who reads its queues.
        is_counted: True once a queue operation was applied; before, only what was measured is known.
    """

    config: MessageStoreConfig
    tables: Tables
    episodes: Episodes
    drift: Drift
    tested: Compared
    found_sizes: Sequence[SizeMeasured]
    monitor: ForecastMonitor
    began: int | None
    counted: set[str]
    acts: ActionMemory
    readers: Readers
    is_counted: bool

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
        described = estate.stores[name]
        if not isinstance(described, MessageStoreConfig) or described.kind != self.kind:
            raise StateError(f"store {name} is a {described.kind}, not a {self.kind}")
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
        self._set_params()
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
        """Write to PARAMS what decides which ticks need the twin (see `kernels.ticks`)."""
        store = self.tables.store
        params = store.params[0]
        params["queues"] = len(self.queues)
        params["limits"] = store.queues["max_depth"][: len(self.queues)].any()
        params["lead_s"] = depth_lead_s(self.config)
        params["scan_us"] = scan_interval_us(self.estate, self.config)
        self.monitor.describe(params, self.config.forecast_horizon_s)

    @property
    def qmgrs(self) -> list[str]:
        """Names of queue managers by row, including those no longer in the estate."""
        return self._names.qmgrs

    @property
    def queues(self) -> list[str]:
        """Names of queues by row, including those no longer in the estate."""
        return self._names.queues

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
        """Apply a block of this store's events; return the alerts they cause, in order.

        Args:
            block: the events. With `demands` the MQ reason codes of what is refused are written into them.
            demands: True decides whether puts and gets, each of count 1, are possible; False takes them as facts.
        """
        alerts: list[Alert] = []
        start = 0
        for change in self._find_silences(block):
            alerts += self._apply_changes(block, start, change.row + 1, demands)
            start = change.row + 1
            silent_s = msgspec.json.decode(block.extras[change.row])["silent_s"] if change.is_silent else 0
            now = int(self.tables.store.scalars[0]["clock"])
            event = block.events[change.row]
            alerts += silence.make_alerts(change, event, silent_s, self.episodes, self.name, now)
        return alerts + self._apply_changes(block, start, len(block), demands)

    def _apply_changes(self, block: EventBlock, row: int, end: int, demands: bool) -> list[Alert]:
        """Apply events as `_apply`; what people change while an alert about filling is open is said by it."""
        alerts: list[Alert] = []
        for changed in (IS_CHANGE[block.events["op"][row:end]].nonzero()[0] + row).tolist():
            if changed > row:
                alerts += self._apply(block, row, changed, demands)
            alerts += self._apply_change(block, changed, demands)
            row = changed + 1
        return alerts + self._apply(block, row, end, demands)

    def _apply_change(self, block: EventBlock, row: int, demands: bool) -> list[Alert]:
        """Apply an event that may be a change by people; return the alerts."""
        event, content = block.events[row], block.extras.get(row, b"{}")
        queue = self.estate.routes[int(event["route"])].reported or ""
        change, self.acts.sized = read_change(event, content, queue, self.config, self.acts.sized)
        if change is None or self.episodes.filling is None or not self.monitor.enabled:
            return self._apply(block, row, row + 1, demands)
        watched = Watched(self, change)
        alerts = self._apply(block, row, row + 1, demands)
        if watched.is_slight(self):
            return alerts
        return alerts + self._tell(watched.done(self, int(event["time"])), self.clock)

    def _tell(self, done: DoneAction | None, now: int) -> list[Alert]:
        """Return the record in which the worst alert about filling says what was done, none where none is open."""
        worst = self.episodes.filling
        if done is None or worst is None:
            return []
        return self.episodes.note_done(done, worst, now)

    def value_of(self, attribute: str) -> object:
        """Return the present value of an attribute; None where the kind has none of that name."""
        return getattr(self.config, attribute, None)

    def _find_silences(self, block: EventBlock) -> list[silence.Change]:
        """Return the rows of a block at which queue managers go silent or are heard from again."""
        if not block.extras and not any(episode.condition == Condition.SOURCE_SILENT for episode in self.episodes):
            return []
        qmgr_rows = self._routes["qmgr"][block.events["route"] - self._base]
        return silence.find_changes(block, qmgr_rows, self.qmgrs, self.config.queue_managers, self.episodes)

    def _apply(self, block: EventBlock, row: int, end: int, demands: bool) -> list[Alert]:
        """Apply the events of a block from `row` up to, not including, `end`; return the alerts they cause."""
        alerts: list[Alert] = []
        events = block.events[:end]
        if row < end and self.tables.store.scalars[0]["clock"] == layout.NEVER:
            self.began = int(events[row]["time"])
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

    def demand(self, events: Array) -> Array:
        """Execute queue operations as the real system would, refusing those that cannot be done.

        The MQ reason codes of puts that do not fit and gets without a message are written into `events`.

        Args:
            events: EVENT[n]: queue operations, each of count 1.

        Returns:
            i8[n]: age (order of its put, from 0) of the message each get took; NONE where it took none.

        Raises:
            ValueError: an event has the route of another store, or is no operation on a queue.
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
        """Apply events from `row` up to the first at which the event loop stops, and do what most stops ask for.

        Returns:
            The row of that event, why the loop stopped (CONTROL and FIRED are left to the caller), and the alerts.
        """
        self._attend()
        first = row
        row, reason = event_loop.apply(
            self.tables.store, events, self._routes, self._base, row, len(self._names.flows), demands, ages
        )
        self.monitor.take_puts(self.tables.store.params[0])
        self.is_counted = self.is_counted or has_counted(events[first:row])
        if not demands:
            self.counted.update(self.queues[i] for i in counted_rows(events[first:row], self._routes, self._base))
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

    def _attend(self) -> None:
        """Write to PARAMS at which ticks the event loop has to stop."""
        params = self.tables.store.params[0]
        params["attended"] = self.episodes.any_open or self._reporter.is_due or self._awaits_mix
        self.monitor.attend(params)

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

    def _control(self, event: np.void, extra: bytes) -> list[Alert]:
        """Apply an ALTER, REBUILD, MEASURE or PLAN; then check every condition, as limits may have changed."""
        content, op, alerts = msgspec.json.decode(extra), int(event["op"]), list[Alert]()
        if op == PLAN:
            self.monitor.plans.note(content, self.clock)
            return []
        if op == layout.MEASURE:
            alerts = self._note_readers(without_nulls(content), int(event["time"]))
        if op != layout.MEASURE or has_levels(content):
            alerts += self._change(op, content)
        store = self.tables.store
        self._describe_ticks()
        self._reporter.retarget(self.config, int(store.scalars[0]["tick"]))
        for row in range(len(self._names.qmgrs)):
            watch.look(store, row)
        if store.scm[0]["enrolled"]:
            watch.move(store, int(store.scalars[0]["clock"]) * scm.NANOSECONDS)
        return alerts

    def _note_readers(self, measured: Measured, time: int) -> list[Alert]:
        """Take what a measurement of that time, microseconds, says about the queues; return the alerts it opens.

        The store looks ahead soon where getters stop or return.
        """
        if "queues" not in measured:
            return []
        self._take_in(measured)
        refused, rows = self.monitor.memory.refused_at, self.tables.store.queues
        refused_at = None if refused is None else refused * clock.TICK
        if self.readers.note(measured, min(time, self.clock), self.queues, rows, refused_at):
            self.monitor.look_soon()
        self.monitor.plans.forget_absences(self.readers, self.clock)
        return unread.check(self, self.clock, self.monitor.plans.away(self.clock))

    def _take_in(self, measured: Measured) -> None:
        """Give rows to queues that the estate lacks, where a measurement finds messages in them: their depths count.

        Their puts and gets are dead letters until the estate has them.
        """
        known = set(self.queues)
        new = [own["name"] for own in measured["queues"] if own.get("depth") and own["name"] not in known]
        room = MAX_FOREIGN_QUEUES - (len(known) - len(known.intersection(self._own_queues)))
        if new and room > 0 and self.takes_in_queues:
            self._names = give_queues(self.tables, self._names, list(dict.fromkeys(new))[:room])

    def _measure(self, content: Mapping[str, Any]) -> list[Alert]:
        """Take a measurement; return the alerts it opens or clears.

        Args:
            content: any fields of the state record; null counts as absent.
        """
        measured = without_nulls(content)
        is_test = self.is_counted and self.drift.baseline is not None
        self.found_sizes = self._compare_sizes(measured)
        sizes_before = read_usage(self.tables.store)["maximum"].copy()
        self._take_sizes(measured)
        rises.rescale(self.tables.store, sizes_before, read_usage(self.tables.store)["maximum"])
        seen, measured = measured, self._with_usage(measured)
        before = self._compare(measured)
        self.tested = self.estimate.unmoved(before) if is_test else {}
        alerts: list[Alert] = []
        new_fields = fields_to_take(measured, self.measurable, self._names_of_datasets())
        if "elems_used" in measured.keys() - seen.keys():  # by SIZEUSED: nobody has counted them
            new_fields = new_fields - {"elems_used"} | {"usage_pct"}
        holding = self._holding(measured)
        if is_taken := self._is_taken(measured, holding):
            self.estimate.note_moved(before, is_believed=bool(measured.get("resync")))
            alerts = self._take(measured, new_fields, holding)
        elif self.drift.baseline is None or (not self.is_counted and new_fields - set(self.drift.measured)):
            known = with_kept(measured, self._whole_record(), self.drift.measured)
            self.drift.take(new_fields, self._set_baseline(known))
        now = int(self.tables.store.scalars[0]["clock"])
        tolerance_pct = self.config.drift_tolerance_pct
        compared, sizes = self.estimate.unmoved(self._compare(measured)), self._compare_sizes(measured)
        alerts += judge(
            self.drift, self.tested, compared, sizes, tolerance_pct, self.episodes, now, self._drift_finding
        )
        if is_taken and self._calls and self.estimate.is_sample and not measured.get("resync"):
            self.drift.note(before)  # what is corrected is said, and no alert: events do not claim to be complete
        is_line = (
            is_taken and self.monitor.memory.estimated_at is None and (holding is None or self.estimate.is_partial)
        )
        alerts += self._guard(self._in_use(measured), is_line=is_line)
        if is_taken and self.monitor.memory.estimated_at is not None:
            usage.meter(self.tables.store, now // clock.TICK, now // clock.TICK)
            self.monitor.look_soon()
            alerts += self.monitor.tick(self, now // clock.TICK)
        return alerts + self.monitor.warn(self, now // clock.TICK)

    def _guard(self, in_use: Mapping[Resource, tuple[float, float]], *, is_line: bool) -> list[Alert]:
        """Open the alerts that measured shares call for, whatever the model says; return them.

        Args:
            is_line: True if a line through such levels says how the store fills, as no flows are known or estimated.
        """
        now, alerts = self.clock, list[Alert]()
        for resource, (used, total) in in_use.items():
            self.drift.note_share(resource, usage_pct(used, total), self._own_view(resource).usage_pct, now)
        if in_use or is_line:
            self.monitor.note_levels(self, now // clock.TICK, is_taken=is_line)
        for resource, (used, total) in in_use.items():
            if self.drift.shares[str(resource)].pct >= self.view(resource).watched_pct:
                alerts += alerting.fire(self, Condition.THRESHOLD, resource, now)
            if used + LEAST.get(resource.pool, 1) > total and resource in self._usage_rows():
                alerts += alerting.fire(self, Condition.FULL, resource, now)
        return alerts + alerting.open_fired(self, now)

    def beyond_pct(self, resource: Resource) -> float:
        """Return the points by which a resource was measured to be fuller than in the twin; 0: it was not."""
        share = self.drift.share_of(resource, self.clock)
        return 0.0 if share is None else share.beyond_pct

    def nearly_full(self) -> Resource | None:
        """Return the fullest resource that was measured at `CRITICAL_FROM_PCT` and rising, and still is; or None."""
        now, pressed = self.clock, dict[Resource, float]()
        for name, share in self.drift.shares.items():
            resource = Resource.parse(name)
            if share.is_rising and share.pct >= CRITICAL_FROM_PCT and self.drift.share_of(resource, now) is not None:
                pct = self.view(resource).usage_pct
                pressed |= {resource: pct} if pct >= CRITICAL_FROM_PCT - HYSTERESIS_PCT else {}
        return max(pressed, key=pressed.__getitem__, default=None)

    def _is_taken(self, measured: Measured, holding: Holding | None) -> bool:
        """Return True if a measurement is taken over, as it asks for that or as events are a sample of what happens."""
        is_sample = False
        if holding is not None:
            scalars, tick = self.tables.store.scalars[0], self.clock // clock.TICK
            known = int(scalars["messages"])
            left = int(pools.base_left(self.tables.store, int(scalars["base_messages"])))
            gap = holding.messages - (known + left if holding.known is None else holding.known)
            is_sample = self.estimate.note_agreement(tick, gap, self._calls, is_reported=self.is_counted)
            self.estimate.note_seen(known, round(holding.messages), self.clock)
            depths, rows = depths_of(measured, self.queues), self.tables.store.queues["depth"]
            pairs = {name: (int(rows[row]), depths[name]) for row, name in enumerate(self.queues) if name in depths}
            self.estimate.note_depths(pairs, self.clock)
            if not is_sample:
                self.monitor.memory.estimated_at = None
            if not is_sample and not self.estimate.odd:
                self.estimate.note(known, holding, self._calls, tick)
        return is_sample or bool(measured.get("resync"))

    @property
    def _calls(self) -> int:
        """Puts and gets of the store that events have reported."""
        store = self.tables.store
        return int(store.scalars[0]["ages"]) + int(store.queues["gets"][: len(self.queues)].sum())

    def _take(self, measured: Measured, new_fields: set[str], holding: Holding | None) -> list[Alert]:
        """Make a measurement the baseline, beyond the messages that events know; return the alerts that this causes.

        Messages that are no longer there by the measurement are removed, the oldest first.

        Args:
            measured: fields of the state record, without nulls.
            holding: what the store holds by it; None: it does not say how many messages.
        """
        state, now = self._whole_record(), self.clock
        before = int(self.tables.store.scalars[0]["messages"])
        alerts = self._remove_surplus(measured, holding)
        dropped = before - int(self.tables.store.scalars[0]["messages"])
        if dropped:
            depths = self.tables.store.queues["depth"][: len(self.queues)].tolist()
            self.estimate.note_dropped(dropped, dict(zip(self.queues, depths, strict=True)))
        release_gets(self.tables.store)
        if holding is not None and self._rolls_forward(holding):
            self.estimate.correct(
                self.tables, holding, self._calls, max(1, len(self.qmgrs)), self._block_bytes, now // clock.TICK
            )
            self.monitor.memory.estimated_at = now // clock.TICK
        elif holding is not None and self.estimate.is_partial:
            self.estimate.note(before - dropped, holding, self._calls, now // clock.TICK)
        baseline = self._set_baseline(completed(measured, state))
        self.drift.baseline = None
        self.drift.take(new_fields, {**baseline, "resynced_at": as_text(now), "dropped_messages": dropped})
        if measured.get("resync"):
            self.drift.streak = 0
        self._set_params()
        return alerts

    def _remove_surplus(self, measured: Measured, holding: Holding | None) -> list[Alert]:
        """Remove messages of events that are no longer there by a measurement; the meters count none of them."""
        store = self.tables.store
        known = int(store.scalars[0]["messages"])
        share = min((real / own for own, real in self._known_pools(measured) if own > real), default=1.0)
        surplus = known - int(known * share)
        if holding is not None:
            surplus = max(surplus, known - int(holding.messages))
        if surplus <= 0:
            return []
        scalars = store.scalars[0]
        row = int(scalars["bin"])
        lanes = slice(row * meter_rows.COUNTS, (row + 1) * meter_rows.COUNTS)
        counts, lag, is_counted = store.counts[lanes].copy(), int(store.bins[row]["lag"]), self.is_counted
        topic = {name: int(scalars[name]) for name in _OF_TOPIC}
        by_name = depths_of(measured, self.queues)
        depths = {row: by_name[name] for row, name in enumerate(self.queues) if name in by_name}
        expired = surplus_events(store, self._routes, self._base, len(self.queues), surplus, self.clock, depths)
        scalars["far"] = layout.NEVER
        alerts = self._apply(EventBlock(self.name, expired, {}), 0, len(expired), demands=False)
        store = self.tables.store
        store.counts[lanes], store.bins[row]["lag"], self.is_counted = counts, lag, is_counted
        for name, value in topic.items():
            store.scalars[0][name] = value
        return alerts

    def _rolls_forward(self, holding: Holding) -> bool:
        """Return True if flows are estimated: events report a part of them, or rules say which resource takes them."""
        return self.estimate.is_partial and (holding.has_rules or int(self.tables.store.scalars[0]["ages"]) > 0)

    @property
    def _block_bytes(self) -> int:
        """Bytes of a block of a data set."""
        return 1

    def _holding(self, measured: Measured) -> Holding | None:
        """Return what the store holds by a measurement; None: it does not say how many messages."""
        return self._holding_by_counts(measured)

    def _holding_by_counts(self, measured: Measured) -> Holding | None:
        """Return the messages that a measurement counts, in all or by queue; None: it does not."""
        depths = depths_of(measured, self.queues)
        if "messages" in measured:
            return Holding(float(measured["messages"]))
        if len(depths) == len(self.queues) and depths:
            return Holding(float(sum(depths.values())))
        return None

    def _by_space(self, measured: Measured, used: int | None, known: int) -> Holding | None:
        """Return what a store in which one resource fills holds by a measurement.

        Args:
            measured: fields of the state record, without nulls.
            used: pages or blocks in use; None: not measured.
            known: those that events and baseline have.
        """
        counted = self._holding_by_counts(measured)
        each = self.estimate.usual_space(self.tables.store)
        if counted is not None:
            is_many = used is not None and counted.messages >= MANY
            return counted._replace(each=max(1.0, used / counted.messages) if used and is_many else each or 0.0)
        each = each or 1.0
        return None if used is None else Holding(used / each, each=each, known=known / each)

    def _known_pools(self, measured: Measured) -> list[tuple[float, float]]:  # noqa: ARG002 -- of most kinds
        """Return (by events alone, measured) of the pools that a measurement has."""
        return []

    def compare(self, measured: Mapping[str, Any]) -> dict[Resource, tuple[int, int, int]]:
        """Return (model, measured, total) by resource of a measurement, whose nulls count as absent."""
        return self._compare(self._with_usage(without_nulls(measured)))

    @property
    def _awaits_mix(self) -> bool:
        """True while the messages held are to say what a baseline takes: each tick asks the kind."""
        return False

    @property
    def is_believed(self) -> bool:
        """True once a measurement was taken over."""
        return "resynced_at" in (self.drift.baseline or {})

    @property
    def has_levels_only(self) -> bool:
        """True if measurements were taken over and no put was ever reported."""
        return self.is_believed and int(self.tables.store.scalars[0]["ages"]) == 0

    @property
    def clock(self) -> int:
        """Latest event time, microseconds since 1970; `kernels.layout.NEVER` before the first event."""
        return int(self.tables.store.scalars[0]["clock"])

    @property
    def duplicates(self) -> int:
        """Number of events that were duplicates."""
        return int(self.tables.store.scalars[0]["duplicates"])

    def _drift_finding(self, resource: Resource) -> Finding:
        tolerance_pct, usage_pct = self.config.drift_tolerance_pct, self.view(resource).usage_pct
        facts = Facts(frozenset(("message_store",)), {"store": self.name}, {"look": self._displays()})
        actions = self.episodes.runbook.actions(Condition.DRIFT, facts)
        return drift_finding(self.name, resource, self.drift, tolerance_pct, usage_pct, actions)

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
        ticks.turn_back(self.tables.store, time, len(self._names.queues))
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
        """Process one tick that is not quiet; `kernels.ticks.pass_quietly` does the same of one that is."""
        ticks.begin(self.tables.store, before, tick)
        alerts = self._on_tick(before, tick)
        run_scans(self.tables.store, before, tick)
        usage.meter(self.tables.store, before, tick)
        alerts += alerting.check_tick(self, tick)
        alerts += self._note_getters(tick)
        self._reporter.report(before, tick, self._report_values)
        return alerts

    def _note_getters(self, tick: int) -> list[Alert]:
        """Count the gets of the queue that fills the store; return the record where its getters are back."""
        return self._tell(self.acts.note_getters(self, tick), tick * clock.TICK) if self.monitor.enabled else []

    # --- what others read ---------------------------------------------------------------------------------------------

    def viewer(self) -> Viewer:
        """Return what makes findings about the store as it is."""
        memory, tick = self.monitor.memory, self.clock // clock.TICK
        rise_began = memory.levels.rise_began
        if memory.estimated_at is not None and not rise_began:
            rise_began = int(self.tables.store.tides[meter_rows.TOTAL_TIDE]["began"])
        by_levels = memory.estimated_at is not None or self.monitor.is_by_levels(self, tick)
        return Viewer(
            self.tables.store,
            self.queues,
            self.view,
            self.began,
            self.readers,
            rise_began * clock.TICK,
            self.estate.site.clock,
            Owned(self._own_queues, self._entries_held),
            self.episodes.runbook,
            by_levels=by_levels,
        )

    def _entries_held(self) -> int | None:
        """Return the entries that the store holds, each a message; None of a store without entries."""
        row = next((row for resource, row in self._usage_rows().items() if resource == ENTRIES), None)
        return None if row is None else int(read_usage(self.tables.store)["used"][row])

    def view(self, resource: Resource) -> ResourceView:
        """Return the view of a resource of the store, or of the depth of one of its queues."""
        if resource.pool != Pool.QUEUE:
            view = self._own_view(resource)
            view.is_measured = self.drift.share_of(resource, self.clock) is not None
            view.beyond_pct = self.beyond_pct(resource)
            return view
        rows = self.tables.store.queues[: len(self.queues)]
        row, usage = self.queues.index(resource.owner), self.usage_of_maximum()
        return QueueDepth(self.tables.store, rows, row, resource, self.name, usage)

    def fill_model(self, tick: int) -> FillModel:
        """Return the fill model as of a tick: here of a store in which one resource fills."""
        (resource,) = self._usage_rows()
        return single_resource_model(resource, self.tables.store, tick)

    def usage_of_maximum(self) -> dict[Resource, float]:
        """Return the usage by resource, in percent of the largest size that the resource may have."""
        usage = read_usage(self.tables.store)
        used, maxima = usage["used"].tolist(), usage["maximum"].tolist()
        return {resource: usage_pct(used[row], maxima[row]) for resource, row in self._usage_rows().items()}

    def drain_reports(self) -> list[Report]:
        """Return the reports to a shared store since the last call, in order."""
        return self._reporter.drain()

    def drain_forecasts(self) -> list[Forecast]:
        """Return the forecasts since the last call, at most the latest few thousand."""
        forecasts = list(self.monitor.forecasts)
        self.monitor.forecasts.clear()
        return forecasts

    def _names_of_datasets(self) -> Sequence[str]:
        """Return the queue managers with a data set of the store."""
        return self.qmgrs[: self.tables.store.datasets.size]

    # --- state -----------------------------------------------------------------------------------------------------

    def state(self) -> MessageStoreState:
        """Return the state record (docs/state.md)."""
        record = self._whole_record()
        return record if self.is_counted else known_part(record, self.known_by, self.drift.measured)

    def _whole_record(self) -> MessageStoreState:
        """Return the state record with what the arrays have and nobody has counted, such as elements by SIZEUSED."""
        common = common_record(
            self.name,
            self.kind,
            self.tables.store,
            self.queues,
            self.readers,
            self.drift,
            self.monitor.levels(self),
            self.monitor.record(self),
            self.monitor.scores(self),
            self.estimate.coverage(),
            self.monitor.plans.record(self.clock),
        )
        return self._record(common)

    def header(self) -> bytes:
        """Return the state that is not in pages: counters, open alerts, attributes, sizes of tables."""
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
