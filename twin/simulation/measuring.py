"""Measurements of the simulated queue managers: who has a queue open, what it holds, how full its store is.

They are MEASUREs with what DISPLAY QSTATUS TYPE(QUEUE) shows of every queue, and on request with the levels of DISPLAY
CFSTATUS and USAGE. A flow has a handle open as long as it makes calls, or as it says itself (`Flow.handles`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kernels import FLAG_DIRECT
from kernels.clock import SECOND
from kernels.layout import FREE, GET, PUT
from twin.estate import Estate
from twin.events.convert import to_table
from twin.events.measured import MAX_QUEUES
from twin.records import StateRecord
from twin.simulation.arrivals import Flow
from twin.simulation.system import RealSystem
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.units import as_text

_LEVELS = (
    "ents_used",
    "ents_max",
    "elems_used",
    "elems_max",
    "pages_used",
    "pages_total",
    "file_bytes",
    "file_max_bytes",
)
_SMDS, _SCM = ("blocks_used", "blocks_total"), ("used", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """Measurements of every store with traffic.

    Attributes:
        every_s: seconds between two of them.
        levels: True: the usage of the store as well, to be taken over (`resync`).
    """

    every_s: float = 30.0
    levels: bool = False


class MeasuredSystem:
    """A simulated system that is measured at fixed intervals. It keeps eight bytes a put more: when that was."""

    def __init__(
        self, system: RealSystem, estate: Estate, flows: Sequence[Flow], start: int, seconds: float, what: Measuring
    ) -> None:
        self._system = system
        self._what = what
        self._routes = estate.routes
        grid = np.arange(what.every_s, seconds, what.every_s)
        self._times = start + np.round(grid * SECOND).astype(np.int64)
        self._done = 0  # measurements
        self._queues: dict[str, dict[str, _Queue]] = defaultdict(dict)
        for flow in flows:
            self._queue(flow.route).add(flow.op, _open_handles(flow, grid))
            if flow.got_by is not None:
                self._queue(flow.got_by).add(GET, np.ones(grid.size, np.int64))
        self._put_at: dict[str, list[Array]] = defaultdict(list)  # times of the messages stored, in the order of puts
        stores = list(self._queues)
        self._qmgrs = {name: sorted({route.qmgr for route in self._routes if route.store == name}) for name in stores}

    def serve(self, demands: Iterable[Array]) -> Iterator[pa.Table]:
        """Serve all demands (see `RealSystem.serve`); yield events and measurements in order of time."""
        for piece in demands:
            begin, tables, measured = 0, [], []
            while self._done < self._times.size and piece.size and self._times[self._done] <= piece["time"][-1]:
                end = int(np.searchsorted(piece["time"], self._times[self._done]))
                if end > begin:
                    tables.append(self._serve(piece[begin:end]))
                measured += self._measure()
                begin = end
            tables.append(self._serve(piece[begin:]))
            yield _in_order(tables, measured)
        yield to_table([event for _ in range(self._done, self._times.size) for event in self._measure()])

    def _serve(self, piece: Array) -> pa.Table:
        table = self._system.serve(piece)
        done = piece[piece["reason"] == 0]
        for route in np.unique(done["route"]).tolist():
            own = done[done["route"] == route]
            self._queue(route).note(own)
        is_stored = (done["op"] == PUT) & (done["flags"] & FLAG_DIRECT == 0)
        stored = done[is_stored]
        names = np.array([self._routes[route].store for route in stored["route"].tolist()], object)
        for name in set(names.tolist()):
            self._put_at[name].append(stored["time"][names == name])
        return table

    def _queue(self, route: int) -> _Queue:
        queue = self._routes[route].reported
        assert queue is not None
        return self._queues[self._routes[route].store].setdefault(queue, _Queue())

    def _measure(self) -> list[dict[str, Any]]:
        time = int(self._times[self._done])
        events: list[dict[str, Any]] = []
        for name in sorted(self._queues):
            twin = self._system.open_store(name)
            queues = self._measure_queues(name, twin, time)
            parts = [
                {"queues": queues[first : first + MAX_QUEUES], "asked": self._qmgrs[name]}
                for first in range(0, len(queues), MAX_QUEUES)
            ]
            if self._what.levels:
                parts[0] |= {"resync": True, **_levels_of(twin.state())}
            events += [
                {"time": time, "qmgr": self._qmgrs[name][0], "op": "MEASURE", "store": name, "measured": part}
                for part in parts
            ]
        self._done += 1
        return events

    def _measure_queues(self, name: str, twin: MessageStore, time: int) -> list[dict[str, Any]]:
        store = twin.tables.store
        messages = store.messages[: int(store.scalars[0]["message_high"])]
        held = messages[messages["state"] != FREE]
        put_at = np.concatenate([np.zeros(0, np.int64), *self._put_at[name]])
        self._put_at[name] = [put_at]
        measured: list[dict[str, Any]] = []
        for queue, own in sorted(self._queues[name].items()):
            row = store.queues[twin.queues.index(queue)]
            ages = held["age"][held["queue"] == twin.queues.index(queue)]
            fields = {
                "name": queue,
                "depth": int(row["depth"] - row["uncommitted_gets"]),
                "getters": own.handles(GET, self._done),
                "putters": own.handles(PUT, self._done),
                "oldest_s": (time - int(put_at[ages.min()])) // SECOND if ages.size else None,
                "last_get": own.last(GET),
                "last_put": own.last(PUT),
                "uncommitted": int(row["uncommitted"]),
            }
            measured.append({field: value for field, value in fields.items() if value is not None})
        return measured


class _Queue:
    """Handles of a queue by the time of measurement, and the times of its last calls, by operation."""

    def __init__(self) -> None:
        self._handles: dict[int, Array] = {}
        self._last: dict[int, int] = {}

    def add(self, op: int, handles: Array) -> None:
        self._handles[op] = self._handles.get(op, 0) + handles

    def note(self, events: Array) -> None:
        """Take calls that succeeded, in order of time."""
        for op in (PUT, GET):
            times = events["time"][events["op"] == op]
            if times.size:
                self._last[op] = int(times[-1])

    def handles(self, op: int, number: int) -> int:
        return int(self._handles[op][number]) if op in self._handles else 0

    def last(self, op: int) -> str | None:
        """Return the time of the last call to the second, as LGETTIME and LPUTTIME; None where there was none."""
        return as_text(self._last[op] // SECOND * SECOND) if op in self._last else None


def _in_order(tables: Sequence[pa.Table], measured: Sequence[dict[str, Any]]) -> pa.Table:
    """Return events and measurements in order of time, a measurement before the events of its time."""
    table = pa.concat_tables([to_table(measured), *tables]).unify_dictionaries().combine_chunks()
    times = table["time"].cast(pa.int64()).to_numpy()
    return table.take(np.argsort(times, kind="stable"))


def _open_handles(flow: Flow, grid: Array) -> Array:
    if flow.handles is not None:
        return np.asarray(flow.handles(grid)).astype(np.int64)
    return np.asarray(flow.rate(grid) > 0).astype(np.int64)


def _levels_of(state: StateRecord) -> dict[str, Any]:
    """Return the fields of a MEASURE that the commands would show."""
    fields = msgspec.to_builtins(state)
    smds, scm = fields.get("smds") or {}, fields.get("scm")
    levels = {name: fields.get(name) for name in _LEVELS}
    levels["messages"] = None if fields.get("file_bytes") is None else fields["messages"]
    levels["smds"] = {qmgr: {name: data_set[name] for name in _SMDS} for qmgr, data_set in smds.items()} or None
    levels["scm"] = {name: scm[name] for name in _SCM} if scm else None
    return {name: value for name, value in levels.items() if value is not None}
