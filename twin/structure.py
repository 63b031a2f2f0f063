"""The live twin of one coupling facility structure with its shared message data sets.

Blocks of events in, alerts and state out. Everything is a function of the events in their order: a block may end
anywhere. `header` and `dirty_pages` give what a state store keeps; `StructureTwin` with both stands as before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from kernels import clock, held, layout, smds, structure, watch
from twin import alteration, fillers, measurement, structure_state
from twin.alerts import Alert, Episode, Episodes
from twin.arrays import Array, Arrays
from twin.estate import Estate, Route, Structure
from twin.findings import CALM_AFTER_FULL, CALM_FOR, DATASET_BITS, POOL_BITS, STEP, Viewer
from twin.tables import StateError, Tables

if TYPE_CHECKING:
    from twin.events import EventBlock

_VERSION = 1
_SWEEP_EVERY = 6  # ticks between two looks for gets held aside too long


def _store_of(route: Route) -> str:
    return route.store


class _Names(msgspec.Struct):
    """What the numbers of a store's rows stand for; rows are only ever added."""

    qmgrs: list[str] = []
    queues: list[str] = []
    flows: list[tuple[str, str]] = []  # queue manager, queue as events name it


class _Header(msgspec.Struct, kw_only=True):
    """What is kept beside the pages: counters and everything small."""

    version: int
    rows: dict[str, int]
    names_size: int
    scalars: bytes
    datasets: bytes
    described: dict[str, Any]  # attributes as the estate had them when last opened
    attributes: dict[str, Any]  # as they are now, after ALTER and REBUILD
    size_now: int
    ratio: int
    episodes: list[Episode]
    drift: measurement.Drift


def _rows(content: bytes, dtype: np.dtype[Any]) -> Array:
    """Rows from their bytes. Padding is zero, which a plain copy leaves undefined: the same state, the same header."""
    rows = np.zeros(len(content) // dtype.itemsize, dtype)
    rows[:] = np.frombuffer(content, dtype)
    return rows


class StructureTwin:
    """See the module. `config`: the attributes as they are now."""

    kind = "structure"

    def __init__(
        self,
        estate: Estate,
        name: str,
        arrays: Arrays,
        header: bytes | None = None,
        pages: Iterable[tuple[int, bytes]] | None = (),
    ) -> None:
        described = estate.stores[name]
        if not isinstance(described, Structure):
            raise StateError(f"store {name} is a {described.kind}, not a structure")
        self.name = name
        self.config = described
        self._described = alteration.attributes_of(described)
        if header is None:
            self._new(arrays)
        else:
            self._restore(msgspec.msgpack.decode(header, type=_Header), arrays, pages)
        self._register(estate)
        self._new_datasets()
        alteration.set_params(self)

    # --- opening ---------------------------------------------------------------------------------------------------

    def _new(self, arrays: Arrays) -> None:
        self.tables = Tables(arrays)
        self._names = _Names()
        scalars = self.tables.store.scalars[0]
        for name in ("clock", "far", "tick", "last_full_ents", "last_full_elems"):
            scalars[name] = layout.NEVER
        for name in ("message_free", "held_free", "unit_free", "block_free"):
            scalars[name] = layout.NONE
        scalars["armed"] = 0xFF
        self.size_now, self.ratio = alteration.allocation(self.config)
        self.episodes = Episodes(self.name, [])
        self.drift = measurement.Drift()

    def _restore(self, header: _Header, arrays: Arrays, pages: Iterable[tuple[int, bytes]] | None) -> None:
        if header.version != _VERSION:
            raise StateError(f"state of {self.name} has version {header.version}; this program reads {_VERSION}")
        self.tables = Tables(arrays, header.rows, header.names_size)
        self.tables.store = self.tables.store._replace(
            scalars=_rows(header.scalars, layout.SCALARS), datasets=_rows(header.datasets, layout.DATASET)
        )
        if pages is not None:
            self.tables.load(pages)
            self.tables.build_indexes()
        self._names = msgspec.msgpack.decode(self.tables.names, type=_Names)
        self.size_now, self.ratio = header.size_now, header.ratio
        self.episodes = Episodes(self.name, header.episodes)
        self.drift = header.drift
        self.config = alteration.with_attributes(self.config, header.attributes)
        alteration.adopt(self, header.described, self._described)

    def _register(self, estate: Estate) -> None:
        """Give every route of the store its rows: queue manager, queue, numbering."""
        start = bisect_left(estate.routes, self.name, key=_store_of)  # routes are in the order of their stores
        end = bisect_right(estate.routes, self.name, key=_store_of)
        numbers = range(start, end)
        self._base = start
        self._routes = np.full(end - start, layout.NONE, layout.ROUTE)
        qmgrs = {name: row for row, name in enumerate(self._names.qmgrs)}
        queues = {name: row for row, name in enumerate(self._names.queues)}
        flows = {name: row for row, name in enumerate(self._names.flows)}
        before = len(qmgrs), len(queues), len(flows)
        for number in numbers:
            route = estate.routes[number]
            place = self._routes[number - self._base]
            place["qmgr"] = qmgrs.setdefault(route.qmgr, len(qmgrs))
            if route.queue is not None and route.reported is not None:
                place["queue"] = queues.setdefault(route.queue, len(queues))
                place["flow"] = flows.setdefault((route.qmgr, route.reported), len(flows))
        if (len(qmgrs), len(queues), len(flows)) == before:
            return
        self._names = _Names(list(qmgrs), list(queues), list(flows))
        self.tables.set_names(msgspec.msgpack.encode(self._names))
        self._new_rows(before[1], before[2])

    def _new_rows(self, queues: int, flows: int) -> None:
        """Fill the rows of queues and numberings beyond those there were."""
        tables, names = self.tables, self._names
        tables.reserve("queues", len(names.queues))
        tables.reserve("chains", len(names.queues) * layout.PRIORITIES)
        tables.reserve("flows", len(names.flows))
        tables.reserve("seen", len(names.flows) * layout.SEEN_WORDS)
        for field in ("keyed_head", "keyed_tail", "any_head", "any_tail"):
            tables.store.queues[field][queues : len(names.queues)] = layout.NONE
        tables.store.chains[queues * layout.PRIORITIES : len(names.queues) * layout.PRIORITIES] = layout.NONE
        qmgrs = {name: row for row, name in enumerate(names.qmgrs)}
        tables.store.flows["qmgr"][flows : len(names.flows)] = [qmgrs[qmgr] for qmgr, _ in names.flows[flows:]]
        for dirty in ("queues_dirty", "chains_dirty", "flows_dirty"):
            getattr(tables.store, dirty)[:] = 1

    def _new_datasets(self) -> None:
        """Add the data sets of queue managers not seen before."""
        old = self.tables.store.datasets
        datasets = np.zeros(len(self._names.qmgrs), layout.DATASET)
        datasets[: old.size] = old
        for row in range(old.size, datasets.size):
            alteration.describe_dataset(datasets[row], self.config, self._names.qmgrs[row])
        self.tables.store = self.tables.store._replace(datasets=datasets)

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
        at = 0
        nothing = np.zeros(0, np.int64)
        while True:
            at, why = structure.apply(
                self.tables.store, block.events, self._routes, self._base, at, len(self._names.flows), False, nothing
            )
            if why == structure.DONE:
                return alerts
            if why == structure.TICK_DUE:
                alerts += self._ticks(int(clock.clock_after(self.tables.store, block.events[at]["time"])) // clock.TICK)
            elif why == structure.NO_ROOM:
                self._make_room(block.events[at])
            elif why == structure.CONTROL:
                alerts += self._control(block.events[at], block.extras.get(at, b"{}"))
                at += 1
            alerts += self._fired()

    def demand(self, events: Array) -> Array:
        """Apply demands instead of facts: what does not fit or is not there gets its reason, written into `events`.

        events: EVENT[n] of queue operations, each of count 1; returns i8[n], the age (order of its put, from 0) of the
        message each get took, NONE where it took none.
        """
        ages = np.full(events.size, layout.NONE, np.int64)
        at, why = 0, structure.NO_ROOM
        while why != structure.DONE:
            at, why = structure.apply(
                self.tables.store, events, self._routes, self._base, at, len(self._names.flows), True, ages
            )
            if why == structure.TICK_DUE:
                self._ticks(int(clock.clock_after(self.tables.store, events[at]["time"])) // clock.TICK)
            elif why == structure.NO_ROOM:
                self._make_room(events[at])
            elif why == structure.FIRED:
                self._fired()
            elif why == structure.CONTROL:
                raise ValueError(f"{layout.OPS[events[at]['op']]} is no demand: operations on queues are")
        return ages

    def _make_room(self, event: Any) -> None:
        """Let the tables grow for an event, at least doubling what is too small."""
        scalars = self.tables.store.scalars[0]
        count = int(event["count"])
        self.tables.reserve("units", int(scalars["unit_high"]) + 1)
        if event["op"] == layout.PUT:
            self.tables.reserve("messages", int(scalars["message_high"]) + count)
            blocks = int(smds.blocks_at_most(self.tables.store, int(event["length"]), count))
            self.tables.reserve("blocks", int(scalars["block_high"]) + blocks)
        elif event["op"] == layout.GET:
            self.tables.reserve("held", int(scalars["held_high"]) + count)

    def _control(self, event: Any, extra: bytes) -> list[Alert]:
        """ALTER, REBUILD and MEASURE: what changes the twin rather than its messages."""
        content = msgspec.json.decode(extra)
        alerts: list[Alert] = []
        if event["op"] == layout.ALTER:
            alteration.alter(self, content)
        elif event["op"] == layout.REBUILD:
            alteration.rebuild(self, content)
        else:
            alerts = measurement.measure(self, content)
        for dataset in range(self.tables.store.datasets.size):
            watch.look(self.tables.store, dataset)
        return alerts

    # --- alerts ----------------------------------------------------------------------------------------------------

    def viewer(self) -> Viewer:
        """Findings about the store as it is now."""
        return Viewer(self.config, self.tables.store, self._names.qmgrs, self._names.queues)

    def _fired(self) -> list[Alert]:
        """Open an alert for every condition that fired."""
        scalars = self.tables.store.scalars[0]
        datasets = self.tables.store.datasets
        if not scalars["fired"] and not datasets["fired"].any():
            return []
        now = int(scalars["clock"])
        fired = [kind for bit, kind in POOL_BITS.items() if int(scalars["fired"]) & bit]
        for row, qmgr in enumerate(self._names.qmgrs):
            bits = int(datasets[row]["fired"])
            fired += [(condition, f"smds/{qmgr}") for bit, condition in DATASET_BITS.items() if bits & bit]
        scalars["fired"] = 0
        datasets["fired"] = 0
        viewer = self.viewer()
        return [self.episodes.open(viewer.finding(condition, resource, None), now) for condition, resource in fired]

    def _arm(self, condition: str, resource: str) -> None:
        scalars = self.tables.store.scalars[0]
        for bit, kind in POOL_BITS.items():
            if kind == (condition, resource):
                scalars["armed"] |= np.uint8(bit)
        if resource.startswith("smds/"):
            row = self._names.qmgrs.index(resource.partition("/")[2])
            for bit, name in DATASET_BITS.items():
                if name == condition:
                    self.tables.store.datasets["armed"][row] |= np.uint8(bit)

    def _ticks(self, until: int) -> list[Alert]:
        """Act at every tick up to `until`, as long as there is anything time alone can change."""
        scalars = self.tables.store.scalars[0]
        settled = (int(scalars["clock"]) + CALM_AFTER_FULL + CALM_FOR) // clock.TICK + 1
        alerts: list[Alert] = []
        tick = int(scalars["tick"])
        while tick < until:
            before = tick
            tick = tick + 1 if self.episodes.any_open and tick < settled else until
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
        alerts: list[Alert] = []
        for episode in self.episodes:
            if episode.condition != measurement.DRIFT:
                alerts += self._review(episode, now)
        return alerts

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

    # --- state -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state record of contract section 3, JSON-ready."""
        return structure_state.record(self, self._names.qmgrs, self._names.queues)

    def header(self) -> bytes:
        """Everything that is not in pages: counters, open alerts, attributes, sizes of tables."""
        return msgspec.msgpack.encode(
            _Header(
                version=_VERSION,
                rows=self.tables.rows(),
                names_size=self.tables.names_size,
                scalars=self.tables.store.scalars.tobytes(),
                datasets=self.tables.store.datasets.tobytes(),
                described=self._described,
                attributes=alteration.attributes_of(self.config),
                size_now=self.size_now,
                ratio=self.ratio,
                episodes=self.episodes.as_list(),
                drift=self.drift,
            )
        )

    def dirty_pages(self) -> Iterator[tuple[int, bytes]]:
        """(page number, bytes) of what changed since the last call."""
        return self.tables.dirty_pages()
