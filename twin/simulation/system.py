"""Simulated queue managers: they serve demands, record the events, and are measured.

- Puts that do not fit fail with reason 2192 and are events; gets that find no message fail with 2033 and are not. The
  results are public events (docs/events.md), numbered by queue manager and queue, with message ids and units of work.
  The stores are twins whose events are demands (`MessageStore.demand`): the kernels that later follow the events decide
  what is possible.
- Measurements: who has a queue open, what it holds, how full its store is.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from kernels import FLAG_DIRECT, FLAG_HAS_UOW, FLAG_PERSISTENT
from kernels.clock import SECOND, TICK
from kernels.event_loop import MQRC_NO_MSG_AVAILABLE, MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import BACKOUT, CLEAR, COMMIT, FREE, GET, PUT
from twin.base.errors import UsageError
from twin.base.units import as_text
from twin.capacity import allocate
from twin.estate import CouplingFacility, Estate
from twin.estate.model import FIXED_AUGMENTED, facility_of, structures_of
from twin.events import ARROW_SCHEMA
from twin.events.convert import to_table
from twin.events.fields import MAX_QUEUES, OPS
from twin.records import StateRecord, StructureState
from twin.simulation.arrivals import Flow
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import MESSAGE_KINDS, open_message_store
from twin.stores.structure import StructureTwin

_SAMPLES = 64  # of the usage of a store per piece of demands
_MIN_STEP, _MAX_STEP = 32, 512  # demands between samples; a sample costs as much as 500
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UOW_DIGITS = 12
_TAG_MASK = 0xFF_FFFF


@dataclass(slots=True)
class StoreOutcome:
    """Outcome of one store. Usage is sampled at least every 512 demands."""

    puts: int = 0  # number of messages asked to be put
    refused: int = 0  # number of puts with 2192
    first_full: int | None = None  # time of the first 2192, microseconds since 1970; None: there is none
    peak_pct: float = 0.0  # highest usage of entries or elements, percent
    peak_smds_pct: dict[str, float] = field(default_factory=dict)  # of a data set, by queue manager
    offload_rule: int = 0  # highest rule, 1 to 3, that was in force; 0: none
    peak_scm_pct: float = 0.0  # highest usage of SCMMAXSIZE, percent
    faults: int = 0  # number of gets that waited for SCM


class RealSystem:
    """Simulated queue managers of an estate. Beside the stores they keep two bytes per put: its queue manager."""

    def __init__(self, estate: Estate, tag: int) -> None:
        """Start without messages. tag: number that determines the message ids."""
        self.outcomes: dict[str, StoreOutcome] = {}
        self._estate = estate
        self._tag = tag
        self._twins: dict[str, MessageStore] = {}
        self._putters: dict[str, _Putters] = {}
        names = sorted(estate.stores)
        place = {name: i for i, name in enumerate(names)}
        self._stores = names
        self._store_of = np.array([place[route.store] for route in estate.routes], np.int64)
        self._qmgrs = _Words([route.qmgr for route in estate.routes])
        self._queues = _Words([route.reported for route in estate.routes])
        self._own_stores = _Words([route.store if route.reported is None else None for route in estate.routes])
        self._ops = pa.array(OPS, pa.string())
        self._next_seq = np.zeros(len(estate.routes), np.int64)
        self._facilities = Facilities(estate)
        self._live = np.zeros(0, np.uint64)  # units of work with a successful call

    def serve(self, demands: Array) -> pa.Table:
        """Serve demands, EVENT[n] of PUT, GET, COMMIT, BACKOUT and HEARTBEAT (with the route of the store), each of
        count 1, in order of time, `uow` a number; their reasons are set. Return the events as a table of ARROW_SCHEMA.
        UsageError: a store is of a kind that is not simulated.
        """
        owners = np.full(demands.size, -1, np.int64)
        numbers = np.full(demands.size, -1, np.int64)
        tags = np.zeros(demands.size, np.uint64)
        for piece in by_tick(demands) if self._facilities else [slice(None)]:
            self._serve_piece(demands[piece], owners[piece], numbers[piece], tags[piece])
        happened = self._took_place(demands)
        ids = self._message_ids(owners[happened], numbers[happened], tags[happened])
        return self._table(demands[happened], ids)

    # --- stores ----------------------------------------------------------------------------------------------------

    def _serve_piece(self, demands: Array, owners: Array, numbers: Array, tags: Array) -> None:
        """Let each store serve its demands; results are written into all four arrays."""
        if self._facilities and demands.size:
            self._facilities.share_out(int(demands["time"][0]), self._twins)
        stores = self._store_of[demands["route"]]
        for store in np.flatnonzero(np.bincount(stores, minlength=0)).tolist():
            rows = np.flatnonzero(stores == store)
            own = demands[rows]
            owners[rows], numbers[rows] = self._serve_store(self._stores[store], own)
            tags[rows] = (self._tag + store) & _TAG_MASK
            demands["reason"][rows] = own["reason"]

    def _serve_store(self, name: str, demands: Array) -> tuple[Array, Array]:
        """Return (queue manager, number of the put) of the message of each call, i8[n] each, -1: none."""
        twin = self.open_store(name)
        outcome = self.outcomes[name]
        ages = np.empty(demands.size, np.int64)
        step = min(max(demands.size // _SAMPLES, _MIN_STEP), _MAX_STEP)
        for start in range(0, demands.size, step):
            piece = slice(start, start + step)
            ages[piece] = twin.demand(demands[piece])
            _look(twin, outcome)
        is_put = demands["op"] == PUT
        stored = is_put & (demands["reason"] == 0) & (demands["flags"] & FLAG_DIRECT == 0)
        refused = demands["reason"] == MQRC_STORAGE_MEDIUM_FULL
        if outcome.first_full is None and refused.any():
            outcome.first_full = int(demands["time"][refused][0])
        outcome.refused += int(refused.sum())
        outcome.puts += int(is_put.sum())
        putters = self._putters[name]
        ages[stored] = putters.add(self._qmgrs.codes[demands["route"][stored]])
        owners = np.full(demands.size, -1, np.int64)
        owners[ages >= 0] = putters.qmgrs_of(ages[ages >= 0])
        return owners, ages

    def open_store(self, name: str) -> MessageStore:
        """Return the twin of a store as it is. Raise UsageError as `serve`."""
        if name not in self._twins:
            kind = self._estate.stores[name].kind
            if kind not in MESSAGE_KINDS:
                right = " or ".join(MESSAGE_KINDS)
                raise UsageError(f"{name} is a {kind}, which is not simulated; expected: a queue of a {right}")
            self._twins[name] = open_message_store(self._estate, name, forecasts=False)
            self._putters[name] = _Putters()
            self.outcomes[name] = StoreOutcome()
        return self._twins[name]

    # --- events ----------------------------------------------------------------------------------------------------

    def _took_place(self, demands: Array) -> Array:
        """Return bool[n], False for gets without a message and ends of units of work without a successful call."""
        op = demands["op"]
        happened = ~((op == GET) & (demands["reason"] == MQRC_NO_MSG_AVAILABLE))
        in_unit = demands["flags"] & FLAG_HAS_UOW != 0
        done = in_unit & (op <= GET) & (demands["reason"] == 0)
        live = np.union1d(self._live, demands["uow"][done])
        ends = np.flatnonzero(in_unit & ((op == COMMIT) | (op == BACKOUT)))
        happened[ends] = np.isin(demands["uow"][ends], live)
        self._live = np.setdiff1d(live, demands["uow"][ends], assume_unique=False)
        return np.asarray(happened)

    def _seqs(self, routes: Array) -> Array:
        """Return the next sequence numbers of each route's queue, i8[n], in order."""
        order = np.argsort(routes, kind="stable")
        counts = np.bincount(routes, minlength=self._next_seq.size)
        firsts = np.repeat(self._next_seq - (np.cumsum(counts) - counts), counts)
        seqs = np.empty(routes.size, np.int64)
        seqs[order] = firsts + np.arange(routes.size)
        self._next_seq += counts
        return seqs

    def _table(self, events: Array, message_ids: pa.StringArray) -> pa.Table:
        rows = events.size
        is_put = events["op"] == PUT
        routes = events["route"].astype(np.int64)
        columns: dict[str, Any] = {
            "time": pa.array(events["time"]).cast(ARROW_SCHEMA.field("time").type),
            "qmgr": self._qmgrs.column(routes, "qmgr"),
            "seq": pa.array(self._seqs(routes), mask=events["op"] > CLEAR),
            "op": pa.DictionaryArray.from_arrays(pa.array(events["op"].astype(np.int8)), self._ops),
            "queue": self._queues.column(routes, "queue"),
            "store": self._own_stores.column(routes, "store"),
            "msgid": message_ids,
            "length": pa.array(events["length"], mask=~is_put),
            "priority": pa.array(events["priority"].astype(np.int8), mask=~is_put),
            "persistent": pa.array(events["flags"] & FLAG_PERSISTENT != 0, mask=~is_put),
            "direct": pa.array(events["flags"] & FLAG_DIRECT != 0, mask=~is_put),
            "uow": _texts(_hex_digits(events["uow"])[:, 16 - _UOW_DIGITS :], events["flags"] & FLAG_HAS_UOW != 0),
            "reason": pa.array(events["reason"]),
        }
        for name in ARROW_SCHEMA.names:
            columns.setdefault(name, pa.nulls(rows, ARROW_SCHEMA.field(name).type))
        return pa.table({name: columns[name] for name in ARROW_SCHEMA.names}, schema=ARROW_SCHEMA)

    def _message_ids(self, owners: Array, numbers: Array, tags: Array) -> pa.StringArray:
        """Return message ids in hexadecimal: "AMQ ", 12 characters of the queue manager's name, 8 unique bytes.

        This is the form of MQ [IBM: MQ, MQMD, MsgId]. The 8 bytes are 3 of run and store and 5 of the number of the
        put. Null without a message.
        """
        prefixes = np.stack([_hex_of(b"AMQ " + name.encode()[:12].ljust(12)) for name in self._qmgrs.words])
        own = (tags << np.uint64(40)) | (numbers.astype(np.uint64) & np.uint64(0xFF_FFFF_FFFF))
        ids = np.concatenate([prefixes[owners], _hex_digits(own)], axis=1)
        return _texts(ids, numbers >= 0)


class _Words:
    """Strings of a column by route; None: no string."""

    def __init__(self, words_by_route: Sequence[str | None]) -> None:
        self.words = sorted({word for word in words_by_route if word is not None})
        place = {word: i for i, word in enumerate(self.words)}
        self.codes = np.array([-1 if word is None else place[word] for word in words_by_route], np.int64)
        self._array = pa.array(self.words, pa.string())

    def column(self, routes: Array, name: str) -> pa.DictionaryArray:
        """Return the strings of routes, i8[n], as a column of ARROW_SCHEMA of that name."""
        kind = ARROW_SCHEMA.field(name).type.index_type
        codes = self.codes[routes]
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0).cast(kind), self._array)


class _Putters:
    """Queue managers of the puts, i2 by number of the put."""

    def __init__(self) -> None:
        self._qmgrs = np.zeros(1 << 16, np.int16)
        self._count = 0

    def add(self, qmgrs: Array) -> Array:
        """Append puts and return their numbers, i8[n]."""
        end = self._count + qmgrs.size
        if end > self._qmgrs.size:
            self._qmgrs = np.concatenate([self._qmgrs, np.zeros(max(self._qmgrs.size, qmgrs.size), np.int16)])
        self._qmgrs[self._count : end] = qmgrs
        numbers = np.arange(self._count, end)
        self._count = end
        return numbers

    def qmgrs_of(self, numbers: Array) -> Array:
        """Return the queue managers, i2[n], of puts by their numbers, i8[n]."""
        return self._qmgrs[numbers]


def tag_of(*words: object) -> int:
    """Return a 64-bit hash of words, the same on every machine."""
    return int.from_bytes(hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=8).digest(), "big")


def _look(twin: MessageStore, outcome: StoreOutcome) -> None:
    state = twin.state()
    outcome.peak_pct = max(outcome.peak_pct, state.usage_pct or 0.0)
    if not isinstance(state, StructureState):
        return
    outcome.offload_rule = max(outcome.offload_rule, state.offload_rule)
    scm = state.scm
    if scm is not None:
        used = 100 * (scm.used or 0) / max(1, twin.config.scm_max_size or 0)
        outcome.peak_scm_pct = max(outcome.peak_scm_pct, used)
        outcome.faults = scm.faults
    for qmgr, smds in state.smds.items():
        used = 100 * (smds.blocks_used or 0) / max(1, smds.blocks_total)
        outcome.peak_smds_pct[qmgr] = max(outcome.peak_smds_pct.get(qmgr, 0.0), used)


# --- text ------------------------------------------------------------------------------------------------------------


def _hex_of(data: bytes) -> Array:
    return np.frombuffer(data.hex().encode(), np.uint8)


def _hex_digits(numbers: Array) -> Array:
    """Return each number as 16 hexadecimal digits, u1[n, 16]."""
    octets = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
    digits = np.empty((numbers.size, 16), np.uint8)
    digits[:, 0::2] = _HEX[octets >> 4]
    digits[:, 1::2] = _HEX[octets & 15]
    return digits


def _texts(characters: Array, present: Array) -> pa.StringArray:
    """Return strings of one width, null where not present. characters: u1[n, width] of ASCII; present: bool[n]."""
    offsets = np.zeros(present.size + 1, np.int32)
    np.cumsum(present * characters.shape[1], out=offsets[1:])
    data = np.ascontiguousarray(characters[present])
    valid = np.packbits(present, bitorder="little")
    return pa.StringArray.from_buffers(
        present.size, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes()), pa.py_buffer(valid.tobytes())
    )


# --- shared resources of coupling facilities -------------------------------------------------------------------------


class Facilities:
    """Coupling facilities whose SCM several structures of an estate share. False if there are none.

    The twin of a structure knows its own bounds (`twin.capacity.bounds`). If several share a facility, each
    may use what it has and its part of the rest, which is divided again at every tick. Together they never use more
    than exists, and the result does not depend on the pieces of demands. SCMMAXSIZE may be over-committed, and storage
    for augmented space belongs to the coupling facility: docs/storage-model.md.
    """

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        sharing: dict[str, tuple[CouplingFacility, list[str]]] = {}
        self._tick = -1
        for store in structures_of(estate.stores.values()):
            facility = facility_of(estate.stores, store)
            if facility is not None and facility.size is not None and store.scm_max_size:
                sharing.setdefault(facility.name, (facility, []))[1].append(store.name)
        self._sharing = [(facility, structures) for facility, structures in sharing.values() if len(structures) > 1]

    def __bool__(self) -> bool:
        return bool(self._sharing)

    def share_out(self, time: int, twins: Mapping[str, MessageStore]) -> None:
        """Divide the rest, once per tick. time: microseconds; twins: opened so far, by store."""
        if time // TICK == self._tick:
            return
        self._tick = time // TICK
        for facility, structures in self._sharing:
            self._share(facility, [twin for store in structures if isinstance(twin := twins.get(store), StructureTwin)])

    def _share(self, facility: CouplingFacility, twins: list[StructureTwin]) -> None:
        """Set the SCM and augmented space that each structure may use."""
        if not twins:
            return
        memory = max(0, (facility.scm or 0) - sum(twin.scm_used for twin in twins)) // len(twins)
        storage = max(0, self._storage_left(facility) - sum(twin.aug_dynamic for twin in twins)) // len(twins)
        for twin in twins:
            params = twin.tables.store.params[0]
            params["scm_max"] = params["scm_most"] = min(twin.config.scm_max_size or 0, twin.scm_used + memory)
            params["aug_max"] = twin.aug_dynamic + storage

    def _storage_left(self, facility: CouplingFacility) -> int:
        """Return the bytes that neither structures nor fixed augmented space use."""
        on_it = structures_of(self._estate.stores[name] for name in facility.structures)
        fixed = FIXED_AUGMENTED * sum(bool(store.scm_max_size) for store in on_it)
        return (facility.size or 0) - fixed - sum(allocate(store).size for store in on_it)


def by_tick(demands: Array) -> Iterator[slice]:
    """Yield the slice of each tick. demands: EVENT[n] in order of time."""
    if not demands.size:
        return
    cuts = np.flatnonzero(np.diff(demands["time"] // TICK)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), demands.size]):
        yield slice(begin, end)


# --- measurements -----------------------------------------------------------------------------------------------------
# They are MEASUREs with what DISPLAY QSTATUS TYPE(QUEUE) shows of every queue, and on request with the levels of
# DISPLAY CFSTATUS and USAGE. A flow has a handle open as long as it makes calls, or as it says itself (`Flow.handles`).

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
