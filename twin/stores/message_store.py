"""The live twin of one store that holds messages, whatever its kind.

Blocks of events in, alerts and state out. Everything is a function of the events in their order: a block may end
anywhere. `header` and `dirty_pages` give what a state store keeps; a twin opened with both stands as before. What a
kind adds (attributes, conditions, words, fields of the state record) is in its subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from kernels import clock, event_loop, held, layout, messages, meter_rows, scm, smds, turn, watch
from kernels.resources import FIRST_DATA_SET_TIDE
from twin.alerts import fillers
from twin.alerts.episodes import Alert, Episode, Episodes
from twin.alerts.findings import CALM_AFTER_FULL, CALM_FOR, STEP, Viewer
from twin.estate import Estate, Route
from twin.forecast.monitor import CONDITION, Foresight, Sight
from twin.forecast.outlook import Forecast
from twin.state.arrays import Array, Arrays
from twin.state.names import Names, give_rows
from twin.state.tables import StateError, Tables
from twin.stores import drift, silence, state_record
from twin.stores.reports import Report, Reporter, Values

if TYPE_CHECKING:
    from twin.events import EventBlock
    from twin.forecast.fill_model import Rules

VERSION = 4
MOST_MESSAGES = 1 << 25  # that the twin of one store keeps, about 100 bytes of memory each
MOST_OVERFULL = 1 << 20  # of them, that did not fit when they were put
_SWEEP_EVERY = 6  # ticks between two looks for gets held aside too long
_CALM_TICKS = (CALM_AFTER_FULL + CALM_FOR) // clock.TICK + 2  # after the last change, until no alert changes any more


def _store_of(route: Route) -> str:
    return route.store


class _Header(msgspec.Struct, kw_only=True):
    """What is kept beside the pages: counters and everything small."""

    version: int
    kind: str
    rows: dict[str, int]
    names_size: int
    records: dict[str, bytes]
    described: dict[str, Any]  # attributes as the estate had them when last opened
    attributes: dict[str, Any]  # as they are now, after ALTER and REBUILD
    own: dict[str, Any]  # what else the kind keeps
    episodes: list[Episode]
    drift: drift.Drift
    sight: Sight


class MessageStore(ABC):
    """See the module. `config`: the attributes as they are now."""

    kind: ClassVar[str]
    is_foreseen: ClassVar[bool] = False  # `rules` are known
    check_against: ClassVar[str]  # where an administrator looks, when the twin drifts
    config: Any
    tables: Tables
    episodes: Episodes
    drift: drift.Drift
    foresight: Foresight

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
        if described.kind != self.kind:
            raise StateError(f"store {name} is a {described.kind}, not a {self.kind}")
        self.name = name
        self.estate = estate
        self.config = described
        self._described = self._attributes()
        self._forecasts = forecasts and self.is_foreseen
        if header is None:
            self._new(arrays)
        else:
            self._restore(msgspec.msgpack.decode(header, type=_Header), arrays, pages)
        self._register(estate)
        self.tables.store.params["most_messages"] = MOST_MESSAGES
        self.tables.store.params["most_overfull"] = MOST_OVERFULL
        self.tables.store.params["trust"] = clock.TRUST
        self._set_params()
        self._reporter = Reporter(estate, self.config, int(self.tables.store.scalars[0]["turns"]))

    # --- what a kind adds ------------------------------------------------------------------------------------------

    @abstractmethod
    def _attributes(self) -> dict[str, Any]:
        """What may change about the store, as plain values."""

    @abstractmethod
    def _begin(self) -> None:
        """Set what a new store of the kind begins with."""

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """What the kind keeps in the header beside records and attributes; JSON-ready."""

    @abstractmethod
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], own: dict[str, Any]) -> None:
        """Stand as the header says, but for what the estate says differently than when the store was last opened."""

    @abstractmethod
    def _set_params(self) -> None:
        """Write the attributes as they are now where kernels read them."""

    @abstractmethod
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        """Take an ALTER, REBUILD or MEASURE; the alerts it brings at once."""

    @abstractmethod
    def _conditions(self) -> dict[int, tuple[str, str]]:
        """Bits of scalars.fired -> (condition, resource), in the order in which alerts of one event are published."""

    @abstractmethod
    def set_baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Keep what the real system holds beyond the model, at the first MEASURE; what the state record says of it."""

    @abstractmethod
    def compared(self, measured: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
        """(model, measured, total) of each resource measured."""

    @abstractmethod
    def viewer(self) -> Viewer:
        """Findings about the store as it is now."""

    def rules(self, tick: int) -> Rules:
        """What the forecast rolls forward, as it stands at a tick."""
        raise NotImplementedError(f"a {self.kind} is not foreseen")

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """The fields of the state record that the kind has."""

    def _report_values(self) -> Values | None:
        """What it reports at a tick to a store it shares; None where its kind shares nothing."""
        return None

    def _at_tick(self, before: int, tick: int) -> list[Alert]:  # noqa: ARG002 -- most kinds have nothing to do
        """Do what time alone does to a store of the kind. before: the tick acted at last."""
        return []

    def _is_busy(self) -> bool:
        """Whether the next tick may change more than alerts, without any event."""
        return False

    def _new_qmgrs(self) -> None:  # noqa: B027 -- most kinds keep nothing by queue manager
        """Make rows for queue managers that were not there before."""

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
        self.episodes = Episodes(self.name, [])
        self.drift = drift.Drift()
        self.foresight = Foresight(Sight(), enabled=self._forecasts)
        self.tables.new_meters()
        self._begin()

    def _restore(self, header: _Header, arrays: Arrays, pages: Iterable[tuple[int, bytes]] | None) -> None:
        if header.version != VERSION or header.kind != self.kind:
            raise StateError(
                f"state of {self.name} is of a {header.kind}, version {header.version}; "
                f"this program reads that of a {self.kind}, version {VERSION}: begin with a new checkpoint"
            )
        self.tables = Tables(arrays, header.rows, header.names_size)
        self.tables.restore_records(header.records)
        if pages is not None:
            self.tables.load(pages)
            self.tables.build_indexes()
        self._names = msgspec.msgpack.decode(self.tables.names, type=Names)
        self.episodes = Episodes(self.name, header.episodes, int(self.tables.store.scalars[0]["turns"]))
        self.drift = header.drift
        self.foresight = Foresight(header.sight, enabled=self._forecasts)
        self._take_over(header.described, header.attributes, header.own)

    def _register(self, estate: Estate) -> None:
        """Give every route of the store, and what its meters count by, their rows."""
        start = bisect_left(estate.routes, self.name, key=_store_of)  # routes are in the order of their stores
        end = bisect_right(estate.routes, self.name, key=_store_of)
        self._base = start
        self._names, self._routes = give_rows(self.tables, self._names, estate.routes[start:end])
        self._new_qmgrs()
        self.tables.reserve("stocks", (len(self.qmgrs) + 1) * meter_rows.CLASSES)
        self.tables.reserve("tides", len(self.qmgrs) + FIRST_DATA_SET_TIDE)
        self.tables.reserve("rises", (len(self.qmgrs) + FIRST_DATA_SET_TIDE) * meter_rows.RISES)

    @property
    def qmgrs(self) -> list[str]:
        """Queue managers by their row, also those no longer in the estate."""
        return self._names.qmgrs

    @property
    def queues(self) -> list[str]:
        """Queues by their row, also those no longer in the estate."""
        return self._names.queues

    # --- events ----------------------------------------------------------------------------------------------------

    def apply(self, block: EventBlock) -> list[Alert]:
        """Apply a block of this store's events; the alerts they bring, in order."""
        alerts: list[Alert] = []
        start = 0
        for change in self._silences(block):
            alerts += self._apply(block, start, change.row + 1)
            start = change.row + 1
            silent_s = msgspec.json.decode(block.extras[change.row])["silent_s"] if change.is_silent else 0
            now = int(self.tables.store.scalars[0]["clock"])
            event = block.events[change.row]
            alerts.append(silence.make_alert(change, event, silent_s, self.episodes, self.name, now))
        return alerts + self._apply(block, start, len(block))

    def _silences(self, block: EventBlock) -> list[silence.Change]:
        """Return where in a block queue managers go silent, or are heard from again."""
        if not block.extras and not any(episode.condition == silence.CONDITION for episode in self.episodes):
            return []
        qmgr_rows = self._routes["qmgr"][block.events["route"] - self._base]
        return silence.find_changes(block, qmgr_rows, self.qmgrs, self.config.queue_managers, self.episodes)

    def _apply(self, block: EventBlock, at: int, end: int) -> list[Alert]:
        """Apply the events of a block from row `at` to `end`."""
        alerts: list[Alert] = []
        events = block.events[:end]
        nothing = np.zeros(0, np.int64)
        while True:
            at, why = event_loop.apply(
                self.tables.store, events, self._routes, self._base, at, len(self._names.flows), False, nothing
            )
            if why == event_loop.DONE:
                return alerts
            if why == event_loop.TICK_DUE:
                alerts += self._ticks(int(clock.clock_after(self.tables.store, events[at]["time"])) // clock.TICK)
            elif why == event_loop.CLOCK_WRONG:
                self._turn_back(int(events[at]["time"]))
            elif why == event_loop.NO_ROOM:
                self._make_room(events[at])
            elif why == event_loop.CONTROL:
                alerts += self._control(events[at], block.extras.get(at, b"{}"))
                at += 1
            alerts += self._fired()

    def demand(self, events: Array) -> Array:
        """Apply demands instead of facts: what does not fit or is not there gets its reason, written into `events`.

        events: EVENT[n] of queue operations, each of count 1; returns i8[n], the age (order of its put, from 0) of the
        message each get took, NONE where it took none.
        """
        ages = np.full(events.size, layout.NONE, np.int64)
        at, why = 0, event_loop.NO_ROOM
        while why != event_loop.DONE:
            at, why = event_loop.apply(
                self.tables.store, events, self._routes, self._base, at, len(self._names.flows), True, ages
            )
            if why == event_loop.TICK_DUE:
                self._ticks(int(clock.clock_after(self.tables.store, events[at]["time"])) // clock.TICK)
            elif why == event_loop.CLOCK_WRONG:
                self._turn_back(int(events[at]["time"]))
            elif why == event_loop.NO_ROOM:
                self._make_room(events[at])
            elif why == event_loop.FIRED:
                self._fired()
            elif why == event_loop.CONTROL:
                raise ValueError(f"{layout.OPS[events[at]['op']]} is no demand: operations on queues are")
        return ages

    def _make_room(self, event: Any) -> None:
        """Let the tables grow for an event, at least doubling what is too small."""
        store = self.tables.store
        scalars = store.scalars[0]
        count = int(event["count"])
        self.tables.reserve("units", int(scalars["unit_high"]) + 1)
        if event["op"] == layout.PUT:
            kept = int(messages.max_stored(store, count))
            free = int(scalars["message_high"]) - int(scalars["messages"])
            self.tables.reserve("messages", int(scalars["message_high"]) + max(0, kept - free))
            if store.scm[0]["enrolled"]:
                self.tables.reserve("order", self.tables.store.messages.size)
            if self.kind == "structure":
                blocks = int(smds.max_rows(store, int(event["length"]), kept))
                self.tables.reserve("blocks", int(scalars["block_high"]) + blocks)
            elif store.params[0]["packs"]:
                self.tables.reserve("packed", int(store.page_use[0]["high"]) + kept)
        elif event["op"] == layout.GET:
            self.tables.reserve("held", int(scalars["held_high"]) + 1)

    def _control(self, event: Any, extra: bytes) -> list[Alert]:
        """ALTER, REBUILD and MEASURE: what changes the twin rather than its messages."""
        alerts = self._change(int(event["op"]), msgspec.json.decode(extra))
        store = self.tables.store
        self._reporter.moved(self.config, int(store.scalars[0]["tick"]))
        for row in range(len(self._names.qmgrs)):
            watch.look(store, row)
        if store.scm[0]["enrolled"]:
            watch.move(store, int(store.scalars[0]["clock"]) * scm.NANOSECONDS)
        return alerts

    def _turn_back(self, time: int) -> None:
        """Let a clock that most events contradict go back, at an event of that time.

        What was kept of a time that now lies in the future is taken as of now.
        """
        scalars = self.tables.store.scalars[0]
        before = int(scalars["clock"])
        turn.turn_back(self.tables.store, time, len(self._names.queues))
        now = int(scalars["clock"])
        self.episodes.turn_back(now, int(scalars["turns"]))
        self.foresight.turn_back(before, now)
        self._reporter.turns = int(scalars["turns"])

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _fired(self, now: int | None = None) -> list[Alert]:
        """Open an alert for every condition that fired. now: microseconds; the store's clock, unless given."""
        scalars = self.tables.store.scalars[0]
        datasets = self.tables.store.datasets
        if not scalars["fired"] and not datasets["fired"].any():
            return []
        now = int(scalars["clock"]) if now is None else now
        fired = [kind for bit, kind in self._conditions().items() if int(scalars["fired"]) & bit]
        fired += self._fired_elsewhere()
        scalars["fired"] = 0
        datasets["fired"] = 0
        viewer = self.viewer()
        return [self.episodes.open(viewer.finding(condition, resource, None), now) for condition, resource in fired]

    def _fired_elsewhere(self) -> list[tuple[str, str]]:
        """(condition, resource) of what fired and is not in scalars."""
        return []

    def _arm(self, condition: str, resource: str) -> None:
        """Let a condition fire again."""
        for bit, kind in self._conditions().items():
            if kind == (condition, resource):
                self.tables.store.scalars[0]["armed"] |= np.uint32(bit)

    def _ticks(self, until: int) -> list[Alert]:
        """Act at every tick up to `until`, as long as there is anything time alone can change."""
        scalars = self.tables.store.scalars[0]
        settled = (int(scalars["clock"]) + CALM_AFTER_FULL + CALM_FOR) // clock.TICK + 1
        alerts: list[Alert] = []
        tick = int(scalars["tick"])
        while tick < until:
            before = tick
            busy = self._is_busy()
            if busy:
                settled = max(settled, tick + _CALM_TICKS)
            tick = tick + 1 if busy or (self.episodes.any_open and tick < settled) else until
            alerts += self._tick(before, tick)
        scalars["tick"] = until
        return alerts

    def _tick(self, before: int, tick: int) -> list[Alert]:
        """Act at one tick; before: the tick acted at last."""
        now = tick * clock.TICK
        marks = now // fillers.MARK - before * clock.TICK // fillers.MARK
        if marks > 0:
            for _ in range(min(2, marks)):
                fillers.mark(self.tables.store.queues[: len(self._names.queues)])
            self.tables.store.queues_dirty[:] = 1
        sweeps = tick // _SWEEP_EVERY - before // _SWEEP_EVERY
        if sweeps > 0 and self.tables.store.scalars[0]["held_open"] > 0:
            held.sweep(self.tables.store, len(self._names.queues))
        alerts = self._at_tick(before, tick) + self.foresight.tick(self, before, tick)
        for episode in self.episodes:
            if episode.condition not in (drift.DRIFT, CONDITION, silence.CONDITION):
                alerts += self._review(episode, now)
        self._reporter.report(before, tick, self._report_values)
        return alerts

    def drain_reports(self) -> list[Report]:
        """What it has reported to a store it shares since the last call."""
        return self._reporter.drain()

    def _review(self, episode: Episode, now: int) -> list[Alert]:
        """What a tick changes about an open alert: cleared when calm long enough, updated when it got worse."""
        viewer = self.viewer()
        if viewer.is_over(episode.condition, episode.resource, now):
            if episode.calm_since is None:
                episode.calm_since = now
            if now - episode.calm_since < CALM_FOR:
                return []
            finding = viewer.over(episode.condition, episode.resource, episode.severity)
            self._arm(episode.condition, episode.resource)
            return [self.episodes.clear(episode, finding, now)]
        episode.calm_since = None
        usage = viewer.usage_pct(episode.resource)
        severity = viewer.severity(episode.condition, usage, episode.severity)
        if severity == episode.severity and usage < episode.usage_pct + STEP:
            return []
        finding = viewer.finding(episode.condition, episode.resource, episode.severity)
        return [self.episodes.update(episode, finding, now)]

    def drain_forecasts(self) -> list[Forecast]:
        """The forecasts made since the last call, the last few thousand of them at most."""
        made = list(self.foresight.forecasts)
        self.foresight.forecasts.clear()
        return made

    # --- state -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state record of contract section 3, JSON-ready."""
        return state_record.common(self) | self._fields()

    def header(self) -> bytes:
        """Everything that is not in pages: counters, open alerts, attributes, sizes of tables."""
        return msgspec.msgpack.encode(
            _Header(
                version=VERSION,
                kind=self.kind,
                rows=self.tables.rows(),
                names_size=self.tables.names_size,
                records=self.tables.records(),
                described=self._described,
                attributes=self._attributes(),
                own=self._own(),
                episodes=self.episodes.as_list(),
                drift=self.drift,
                sight=self.foresight.sight,
            )
        )

    def dirty_pages(self) -> Iterator[tuple[int, bytes]]:
        """(page number, bytes) of what changed since the last call."""
        return self.tables.dirty_pages()
