"""Cost of stores with few events each, without Kafka and Spark: ticks, a day replayed, what a batch costs a store."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from pyspark.sql import Row

from kernels import EVENT, layout
from kernels.clock import SECOND, TICK
from streams.kafka.topics import Limits, Topics
from streams.plan import PackedPlan, Plan
from streams.query import processor
from streams.query.rows import BLOCK, Item, pack_items
from streams.state.mirror import block_directory, mirror_root
from tests.support.many_stores import many_stores, qmgr_of
from tests.tools.bench.rig import Say
from tests.tools.bench.traffic import START_US
from twin.estate import Estate, load_estate
from twin.events import ARROW_SCHEMA, EventBlock
from twin.playback.replays import replay
from twin.stores.open import open_message_store
from twin.stores.warm_up import warm

STORES = (4, 100, 1_000)
DAY_HOURS = 24
_DAY = DAY_HOURS * 3600 * SECOND  # microseconds
EVENTS, QUICK_EVENTS = 1_000_000, 200_000  # of a day
TICK_US, DAY_RATE, FIRST_TOUCH_MS, TOUCH_MS, IDLE_BYTES = 10.0, 300_000, 2.0, 0.5, 32 * 1024  # targets
_TICKS = 20_000
_BATCH_ROWS = 1 << 16  # of the recording
_LENGTH = 2048
_BATCHES = 3  # that touch every store


@dataclass(frozen=True, slots=True)
class Sparse:
    """tick_us: CPU of an event that comes with a tick; in_tick_us: the same of one that comes without.

    replayed: events a second of a day, by number of stores. first_touch_ms, touch_ms: CPU of the stateful stage for a
    heartbeat of a store, the first and a later one, medians. idle_bytes: written to the state store for a store without
    messages; array_bytes: bytes of its mirror, mostly its arrays. events: events of the day.
    """

    events: int
    tick_us: float
    in_tick_us: float
    replayed: dict[int, float]
    first_touch_ms: float
    touch_ms: float
    idle_bytes: int
    array_bytes: int


class _StateStore:
    """A stand-in for the handle of a processor: header and pages of each key, in memory."""

    def __init__(self) -> None:
        self.store = ""
        self.rows: dict[tuple[str, str], Any] = {}
        self.pages: dict[str, dict[int, bytes]] = {}

    def getValueState(self, name: str, _: Any) -> _Value:  # noqa: N802 -- Spark's name
        return _Value(self, name)

    def getMapState(self, *_: Any) -> _Pages:  # noqa: N802 -- Spark's name
        return _Pages(self)

    def setGroupingKey(self, store: str) -> None:  # noqa: N802 -- PySpark's tester has it
        self.store = store

    def bytes_of(self, store: str) -> int:
        """Header and pages of a store."""
        header = sum(len(part) for part in self.rows[store, "header"])
        return header + sum(map(len, self.pages[store].values()))


@dataclass(frozen=True, slots=True)
class _Value:
    state: _StateStore
    name: str

    def get(self) -> Any:
        return self.state.rows.get((self.state.store, self.name))

    def update(self, value: Any) -> None:
        self.state.rows[self.state.store, self.name] = value


@dataclass(frozen=True, slots=True)
class _Pages:
    state: _StateStore

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:  # noqa: N802 -- Spark's name
        self.state.pages.setdefault(self.state.store, {})[key[0]] = value[0]


def measure(folder: Path, say: Say, *, quick: bool) -> Sparse:
    """CPU time of this process, but for the replay, which is by wall clock."""
    warm()
    estates = {}
    for stores in STORES:
        own = folder / f"{stores}-stores"
        own.mkdir()
        estates[stores] = load_estate(many_stores(own, stores)[0])
    say("ticks of one store")
    tick_us, in_tick_us = _tick_us(estates[STORES[0]], TICK), _tick_us(estates[STORES[0]], 1)
    replayed, events = {}, QUICK_EVENTS if quick else EVENTS
    for stores, estate in estates.items():
        say(f"a day of {stores:,} stores replayed")
        replayed[stores] = _replayed(folder / f"{stores}.arrow", estate, events)
    say("the stateful stage, a heartbeat for each store")
    return Sparse(events, tick_us, in_tick_us, replayed, *_touched(folder / "spark", estates[STORES[-1]]))


def _tick_us(estate: Estate, step: int) -> float:
    """CPU microseconds of an event, the median; step: microseconds of event time between two."""
    name = min(estate.stores)
    twin = open_message_store(estate, name)
    durations, now = [], START_US
    for _ in range(6):
        block = _heartbeats(estate, name, now + step * np.arange(_TICKS))
        began = time.process_time()
        twin.apply(block)
        durations.append((time.process_time() - began) * 1e6 / _TICKS)
        now += step * _TICKS
    return statistics.median(durations[1:])


def _heartbeats(estate: Estate, store: str, times: Any) -> EventBlock:
    events = np.zeros(times.size, EVENT)
    events["time"], events["op"], events["count"], events["seq"] = times, layout.HEARTBEAT, 1, -1
    events["route"] = next(i for i, route in enumerate(estate.routes) if route.store == store)
    return EventBlock(store, events, {})


def _replayed(path: Path, estate: Estate, count: int) -> float:
    """Events a second of a day, spread evenly over its stores: a put and a get of the message in turn."""
    queues = {route.store: route.queue for route in estate.routes if route.queue is not None}
    names = list(queues)
    with pa.ipc.new_file(path, ARROW_SCHEMA) as writer:
        for start in range(0, count, _BATCH_ROWS):
            numbers = np.arange(start, min(count, start + _BATCH_ROWS))
            writer.write_table(_in_turn(numbers, _DAY // count, names, list(queues.values())))
    replayed = replay(path, estate, course=False)
    return replayed.events / replayed.seconds


def _in_turn(numbers: Any, step: int, stores: list[str], queues: list[str | None]) -> pa.Table:
    """Return the events of these numbers. step: microseconds of event time from one to the next."""
    store, is_put = numbers % len(stores), numbers // len(stores) % 2 == 0
    groups = sorted({qmgr_of(name) for name in stores})
    qmgr = np.array([groups.index(qmgr_of(name)) for name in stores], np.int16)[store]
    columns: dict[str, Any] = {
        "time": pa.array(START_US + step * numbers).cast(ARROW_SCHEMA.field("time").type),
        "qmgr": pa.DictionaryArray.from_arrays(pa.array(qmgr), pa.array(groups)),
        "op": pa.DictionaryArray.from_arrays(pa.array((~is_put).astype(np.int8)), pa.array(["PUT", "GET"])),
        "queue": pa.DictionaryArray.from_arrays(pa.array(store.astype(np.int32)), pa.array(queues)),
        "length": pa.array(np.full(numbers.size, _LENGTH, np.int32), mask=~is_put),
    }
    for name in ARROW_SCHEMA.names:
        columns.setdefault(name, pa.nulls(numbers.size, ARROW_SCHEMA.field(name).type))
    return pa.table({name: columns[name] for name in ARROW_SCHEMA.names}, schema=ARROW_SCHEMA)


def _touched(folder: Path, estate: Estate) -> tuple[float, float, int, int]:
    """Return first_touch_ms, touch_ms, idle_bytes and array_bytes of `Sparse`."""
    packed = PackedPlan.pack(Plan(estate, Topics(), Limits(*[1 << 20] * 4)))
    state = _StateStore()
    job: Any = processor.TwinProcessor(packed)
    job.init(state)
    first: list[float] = []
    later: list[float] = []
    with _workers_directory(folder):
        for batch in range(_BATCHES):
            durations = later if batch else first
            for name in estate.stores:
                row = _row(_heartbeats(estate, name, START_US + 10 * SECOND * batch + np.arange(1)))
                began = time.process_time()
                list(job.handleInputRows((name,), iter([row]), None))
                durations.append(1000 * (time.process_time() - began))
        array_bytes = sum(path.stat().st_size for path in mirror_root(block_directory()).glob("*/*")) // len(first)
    idle_bytes = max(map(state.bytes_of, estate.stores))
    return statistics.median(first), statistics.median(later), idle_bytes, array_bytes


def _row(block: EventBlock) -> Row:
    """Return the row that the shuffle hands over for a block."""
    return Row(store="0", items=pack_items([Item(block.store, 0, 0, 0, BLOCK, block.pack())]))


@contextmanager
def _workers_directory(folder: Path) -> Iterator[None]:
    """Let this process keep mirrors below a folder, as a worker of Spark does."""
    own_folder = patch.dict(os.environ, SPARK_LOCAL_DIRS=str(folder / "blocks"))
    with own_folder, patch.object(processor, "_query_id", return_value="bench-many-stores"):
        yield
