"""The cost of stores with few events, counted in calls of Python and of kernels: a quiet tick takes none."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest

from kernels import EVENT, event_loop, layout, meter_rows, meters, smds
from kernels.clock import HALF_HOUR_TICKS, TICK
from tests.support.many_stores import many_stores
from tests.support.rows import with_attributes
from tests.support.workloads import START_US
from twin.estate import Estate, load_estate
from twin.events import EventBlock
from twin.forecast.rises import Puts
from twin.stores.measurement import depths_of
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.warm_up import warm

ROOT = Path(__file__).resolve().parents[2]
DAY_TICKS = 48 * HALF_HOUR_TICKS


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    warm()
    return load_estate(many_stores(tmp_path_factory.mktemp("few"), 3)[0])


@pytest.fixture
def twin(estate: Estate) -> MessageStore:
    """A store at its first tick."""
    twin = open_message_store(estate, min(estate.stores))
    twin.apply(events(twin, [0]))
    return twin


def events(twin: MessageStore, ticks: Any, op: int = layout.HEARTBEAT) -> EventBlock:
    rows = np.zeros(len(ticks), EVENT)
    rows["time"], rows["op"], rows["count"], rows["seq"] = START_US + TICK * np.array(ticks), op, 1, -1
    route = next(
        number
        for number, route in enumerate(twin.estate.routes)
        if route.store == twin.name and (route.queue is not None or op == layout.HEARTBEAT)
    )
    rows["route"], rows["length"] = route, 100
    return EventBlock(twin.name, rows, {})


def calls_of(work: Callable[[], Any]) -> Counter[str]:
    """Return the calls of functions of twin/ ("python") and of kernels ("kernel") that some work takes."""
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT / "twin"):
            calls["python"] += 1
        elif event == "call" and path.parent == ROOT / "kernels":
            calls["kernel"] += frame.f_code.co_name == "__call__"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.fixture
def rows_applied() -> Iterator[list[int]]:
    """The number of events by call of the event loop."""
    applied: list[int] = []
    apply = event_loop.apply

    def counted(*args: Any) -> tuple[int, int]:
        row, reason = apply(*args)
        applied.append(row - args[4])
        return row, reason

    with patch.object(event_loop, "apply", counted):
        yield applied


def test_a_quiet_tick_calls_no_function(twin: MessageStore) -> None:
    few, many = events(twin, range(1, 3)), events(twin, range(3, 100))
    twin.apply(events(twin, [0]))
    assert calls_of(lambda: twin.apply(few)) == calls_of(lambda: twin.apply(many))


def test_puts_and_gets_at_quiet_ticks_call_no_function(twin: MessageStore) -> None:
    twin.apply(events(twin, [0], layout.PUT))
    blocks = [events(twin, range(start, end), layout.PUT) for start, end in ((1, 5), (5, 13))]
    for block in blocks:
        block.events["op"][1::2] = layout.GET
    assert calls_of(lambda: twin.apply(blocks[0])) == calls_of(lambda: twin.apply(blocks[1]))


def test_the_event_loop_notes_the_puts_of_half_hours_and_does_not_stop_for_them(
    twin: MessageStore, rows_applied: list[int]
) -> None:
    twin.apply(events(twin, [0], layout.PUT))
    day = events(twin, range(1, DAY_TICKS + 1))
    rows_applied.clear()
    with patch.object(Puts, "note", autospec=True, side_effect=Puts.note) as note:
        calls = calls_of(lambda: twin.apply(day))
    assert rows_applied == [DAY_TICKS]
    assert note.call_count == 48
    assert calls["python"] < 48 * 3 + 50
    assert twin.monitor.memory.puts.by_half_hour()[1:] == [0] * 46  # from the first one that begins


def test_half_hours_beyond_the_room_for_notes_stop_the_event_loop_once(
    twin: MessageStore, rows_applied: list[int]
) -> None:
    rows_applied.clear()
    twin.apply(events(twin, range(1, 2 * DAY_TICKS)))
    assert len(rows_applied) == 1 + 96 // layout.NOTED
    assert len(twin.monitor.memory.puts.by_half_hour()) == 94  # from the first one that begins


def test_the_size_after_all_expansions_of_a_data_set_is_worked_out_once(
    twin: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, grown = [], smds._grown.py_func  # type: ignore[attr-defined]
    monkeypatch.setattr(smds, "_grown", lambda *sizes: steps.append(sizes) or grown(*sizes))  # type: ignore[func-returns-value]
    store = twin.tables.store
    store.usage[:] = np.zeros(1, layout.USAGE)
    python = store._replace(**{name: with_attributes(getattr(store, name)) for name in ("params", "datasets", "usage")})

    def maximum() -> int:
        return int(smds.max_blocks.py_func(python, 0))  # type: ignore[attr-defined]

    largest = maximum()
    assert [maximum() for _ in range(3)] == [largest] * 3
    assert len(steps) == 1
    store.datasets["blocks_total"][0] += 100
    assert maximum() != largest
    assert len(steps) == 2
    meters.read_usage(store)
    assert int(store.usage["maximum"][meter_rows.DATA_SETS]) == maximum()


def test_attributes_are_copied_only_where_they_have_changed(twin: MessageStore) -> None:
    with patch.object(msgspec, "to_builtins", side_effect=msgspec.to_builtins) as copied:
        for _ in range(3):
            twin.header()
        assert copied.call_count == 0
        block = events(twin, [1], layout.ALTER)
        block.extras[0] = b'{"full_threshold": 70}'
        twin.apply(block)
        twin.header()
        twin.header()
        assert copied.call_count == 1


def test_a_batch_of_a_calm_store_calls_few_functions_and_kernels(twin: MessageStore) -> None:
    def batch(tick: int) -> None:
        twin.apply(events_by_tick[tick])
        twin.state()
        list(twin.dirty_pages())
        twin.header()

    events_by_tick = [events(twin, [tick], layout.PUT if tick == 1 else layout.HEARTBEAT) for tick in range(4)]
    batch(1)
    batch(2)
    calls = calls_of(lambda: batch(3))
    assert calls["kernel"] <= 6  # the event loop; of the record USAGE, the offload rules, and three for the demand
    assert calls["python"] < 100


def test_a_store_is_opened_with_few_calls(estate: Estate) -> None:
    first, second, third = sorted(estate.stores)
    open_message_store(estate, first)
    calls = calls_of(lambda: open_message_store(estate, second))
    assert calls["kernel"] <= 3  # a new index each
    assert calls["python"] < 120
    assert calls_of(lambda: open_message_store(estate, third)) == calls


def test_what_stores_share_of_their_description_is_worked_out_once(estate: Estate) -> None:
    first, *others = sorted(estate.stores)
    open_message_store(estate, first)
    with patch("twin.estate.model.OffloadRule") as rule, patch("twin.state.tables._sizes") as sizes:
        for name in others:
            open_message_store(estate, name)
    assert (rule.call_count, sizes.call_count) == (0, 0)


def test_kernels_take_the_arrays_of_another_store_without_a_look_at_their_types(
    estate: Estate, twin: MessageStore
) -> None:
    meters.read_usage(twin.tables.store)
    other = open_message_store(estate, max(estate.stores))
    kernel: Any = meters.read_usage
    with patch("kernels._compile.numba.typeof") as typeof, patch.object(kernel, "_outer") as dispatcher:
        meters.read_usage(other.tables.store)
    assert (typeof.call_count, dispatcher.call_count) == (0, 0)
    assert (
        other.tables.store.usage.tobytes()
        == twin.tables.store.usage.tobytes()
        != bytes(other.tables.store.usage.nbytes)
    )


def test_depths_of_a_measurement_are_found_without_a_look_at_every_queue() -> None:
    looks = []

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            looks.append(other)
            return str.__eq__(self, other)

    names = [f"Q{number}" for number in range(1000)]
    measured = {"queues": [{"name": name, "depth": 1} for name in names]}
    assert depths_of(measured, [Name(name) for name in names]) == dict.fromkeys(names, 1)
    assert len(looks) <= 2 * len(names)
