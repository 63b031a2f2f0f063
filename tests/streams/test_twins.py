"""Where a worker finds a twin: whatever it finds, it is the one the state store has."""

from __future__ import annotations

import multiprocessing
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streams.host.resources import count_mappings, count_open_files, map_limit, memory_limit
from streams.plan import Loss
from streams.state import mirror as mirrors
from streams.state import twins as twins_module
from streams.state.mirror import NO_ROOM, Mirror
from streams.state.twins import ATTACHED, KEEP_VARIABLE, KEPT, LOADED, NEW, Bounds, Saved, Twins, query_directory
from tests.streams.stage_help import START_US, as_json, put
from tests.support.estates import small_estate
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.replays import Player

STORE = "QSG1/APP1"


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return load_estate(small_estate(tmp_path))


class StateStore:
    """What Spark's state store keeps of one key; a batch is committed or not."""

    def __init__(self) -> None:
        self.saved: Saved | None = None
        self.pages: dict[int, bytes] = {}
        self.reads = 0

    def read(self) -> Iterator[tuple[int, bytes]]:
        self.reads += 1
        return iter(self.pages.items())


def events(batch: int) -> list[dict[str, Any]]:
    """Puts and gets of a batch, on many pages after some batches."""
    puts = [put(batch * 200 + n) for n in range(200)]
    gets = [{"time": e["time"], "qmgr": "QM02", "op": "GET", "queue": "ORDERS", "msgid": e["msgid"]} for e in puts[::3]]
    return puts + gets


def run(
    twins: Twins,
    estate: Estate,
    store: StateStore,
    batch: int,
    *,
    commit: bool = True,
    fail: bool = False,
    mirrored: bool | None = None,
) -> tuple[str, dict]:
    """A batch: how the twin was found, and its state after it."""
    decoder = Decoder(estate)
    (block,) = decoder.json([as_json(event) for event in events(batch)]).blocks(estate)
    with twins.hold(STORE, batch, store.saved, store.read) as held:
        held.twin.apply(block)
        if fail:
            raise RuntimeError("the worker failed")
        pages = dict(held.twin.dirty_pages())
        header = held.twin.header()
        state = held.twin.state()
        found, token = held.found, held.token
    assert mirrored is None or held.is_mirrored == mirrored
    if commit:
        store.pages |= pages
        store.saved = Saved(token, header)
    return found, state


def replayed(estate: Estate, batches: int) -> dict[str, Any]:
    """The state after so many batches, by the twin alone."""
    player = Player(estate)
    decoder = Decoder(estate)
    for batch in range(batches):
        player.feed(decoder.json([as_json(event) for event in events(batch)]))
    return player.states()[STORE]


def test_one_worker_keeps_its_twin(estate: Estate, tmp_path: Path) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors"), StateStore()
    found = [run(twins, estate, store, batch) for batch in range(4)]
    assert [how for how, _ in found] == [NEW, KEPT, KEPT, KEPT]
    assert found[-1][1] == replayed(estate, 4)
    assert store.reads == 0


def test_two_workers_in_turn_attach_and_never_load(estate: Estate, tmp_path: Path) -> None:
    one, two, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    found = [run((one, two)[batch % 2], estate, store, batch) for batch in range(8)]
    assert [how for how, _ in found] == [NEW, *[ATTACHED] * 7]
    assert found[-1][1] == replayed(estate, 8)
    assert store.reads == 0


def test_without_a_mirror_the_other_worker_loads(estate: Estate) -> None:
    one, two, store = Twins(estate, None), Twins(estate, None), StateStore()
    found = [run((one, one, two, two)[batch], estate, store, batch) for batch in range(4)]
    assert [how for how, _ in found] == [NEW, KEPT, LOADED, KEPT]
    assert found[-1][1] == replayed(estate, 4)


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_batch_whose_commit_failed_leaves_no_trace(estate: Estate, tmp_path: Path, mirrored: bool) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors" if mirrored else None), StateStore()
    run(twins, estate, store, 0)
    run(twins, estate, store, 1, commit=False)
    found, state = run(twins, estate, store, 1)
    assert found == LOADED
    assert state == replayed(estate, 2)


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_batch_that_failed_half_way_leaves_no_trace(estate: Estate, tmp_path: Path, mirrored: bool) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors" if mirrored else None), StateStore()
    run(twins, estate, store, 0)
    with pytest.raises(RuntimeError):
        run(twins, estate, store, 1, fail=True)
    found, state = run(twins, estate, store, 1)
    assert found == LOADED
    assert state == replayed(estate, 2)


def test_the_very_first_batch_can_fail(estate: Estate, tmp_path: Path) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors"), StateStore()
    run(twins, estate, store, 0, commit=False)
    found, state = run(twins, estate, store, 0)
    assert found == NEW
    assert state == replayed(estate, 1)


def test_while_another_holds_the_mirror_a_worker_works_from_the_state_store(estate: Estate, tmp_path: Path) -> None:
    one, two, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    run(one, estate, store, 0)
    with one.hold(STORE, 1, store.saved, store.read):  # a worker that is being killed, still at it
        found, state = run(two, estate, store, 1)
    assert found == LOADED
    assert state == replayed(estate, 2)
    assert run(one, estate, store, 2)[1] == replayed(estate, 3)  # its token is not that of the state store


def test_a_restart_attaches_to_what_the_last_run_left(estate: Estate, tmp_path: Path) -> None:
    store = StateStore()
    run(Twins(estate, tmp_path / "mirrors"), estate, store, 0)
    found, state = run(Twins(estate, tmp_path / "mirrors"), estate, store, 1)
    assert (found, state) == (ATTACHED, replayed(estate, 2))


def test_a_state_store_set_back_to_an_earlier_batch_wins(estate: Estate, tmp_path: Path) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors"), StateStore()
    run(twins, estate, store, 0)
    before = store.saved, dict(store.pages)
    run(twins, estate, store, 1)
    run(twins, estate, store, 2)
    store.saved, store.pages = before
    found, state = run(twins, estate, store, 1)
    assert (found, state) == (LOADED, replayed(estate, 2))


@pytest.mark.parametrize("seed", range(3))
def test_caches_that_vanish_at_random_change_nothing(estate: Estate, tmp_path: Path, seed: int) -> None:
    loss = Loss(0.5, seed)
    one, two, store = Twins(estate, tmp_path / "m", loss), Twins(estate, tmp_path / "m", loss), StateStore()
    found = [run((one, two)[(batch * 7 + seed) % 3 % 2], estate, store, batch) for batch in range(12)]
    assert LOADED in {how for how, _ in found}
    assert found[-1][1] == replayed(estate, 12)


def heartbeat(twins: Twins, estate: Estate, name: str, store: StateStore) -> str:
    """A batch of one store with a heartbeat: how the twin was found."""
    (block,) = (
        Decoder(estate)
        .json([as_json({"time": START_US, "qmgr": "QM01", "op": "HEARTBEAT", "store": name})])
        .blocks(estate)
    )
    with twins.hold(name, 0, store.saved, store.read) as held:
        held.twin.apply(block)
        pages, header = dict(held.twin.dirty_pages()), held.twin.header()
    store.pages |= pages
    store.saved = Saved(held.token, header)
    return held.found


def many_stores(folder: Path, count: int) -> tuple[Estate, dict[str, StateStore]]:
    """An estate of so many structures, and what is saved of each."""
    path = folder / "many.toml"
    parts = ['schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ["QM01"]\n']
    parts += [f'[structure."QSG1/S{n}"]\nsize = "16M"\ncf_level = 4\n' for n in range(count)]
    path.write_text("".join(parts), encoding="utf-8")
    return load_estate(path), {f"QSG1/S{n}": StateStore() for n in range(count)}


def test_twins_not_used_lately_are_dropped(tmp_path: Path) -> None:
    estate, stores = many_stores(tmp_path, 4)
    twins = Twins(estate, tmp_path / "mirrors", bounds=Bounds(twins=2, memory_bytes=0))
    one, two, three, four = stores
    assert {heartbeat(twins, estate, name, stores[name]) for name in stores} == {NEW}
    found = [(name, heartbeat(twins, estate, name, stores[name])) for name in (four, three, one, three, four, two)]
    assert found == [(four, KEPT), (three, KEPT), (one, ATTACHED), (three, KEPT), (four, ATTACHED), (two, ATTACHED)]
    assert not any(store.reads for store in stores.values())


def test_twins_in_memory_are_dropped_by_their_bytes(tmp_path: Path) -> None:
    estate, stores = many_stores(tmp_path, 3)
    one, two, three = stores
    with Twins(estate, None).hold(one, 0, None, lambda: ()) as held:
        size = held.arrays.memory_bytes
    twins = Twins(estate, None, bounds=Bounds(twins=100, memory_bytes=2 * size))
    for name in (one, two, three):
        heartbeat(twins, estate, name, stores[name])
    found = [(name, heartbeat(twins, estate, name, stores[name])) for name in (three, two, one, three)]
    assert found == [(three, KEPT), (two, KEPT), (one, LOADED), (three, LOADED)]
    only = Twins(estate, None, bounds=Bounds(twins=100, memory_bytes=0))
    assert [heartbeat(only, estate, one, stores[one]) for _ in range(2)] == [LOADED, KEPT]  # the last one stays


def test_the_bounds_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEEP_VARIABLE, raising=False)
    bounds = Bounds.of_process()
    assert 1000 < bounds.twins <= (map_limit() or 65_530) // 2
    assert 0 < bounds.memory_bytes <= memory_limit() // 4
    monkeypatch.setenv(KEEP_VARIABLE, "3")
    assert Bounds.of_process().twins == 3


def test_many_stores_of_two_workers_stay_within_a_few_descriptors(tmp_path: Path) -> None:
    count = 80
    estate, stores = many_stores(tmp_path, count)
    one, two = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors")
    before = count_open_files(os.getpid())
    maps = count_mappings(os.getpid())
    for batch in range(4):
        for number, (name, store) in enumerate(stores.items()):
            heartbeat((one, two)[(number + batch) % 2], estate, name, store)
    assert count_open_files(os.getpid()) <= before + 5
    after = count_mappings(os.getpid())
    assert maps is None or after is None or after - maps <= 2 * count + 100  # both workers' are of this process here
    assert not any(store.reads for store in stores.values())


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """This process has no descriptor left, and may have no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 512), hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for file in taken:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_descriptor_a_worker_works_in_memory(estate: Estate, tmp_path: Path) -> None:
    one, two, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    run(one, estate, store, 0, mirrored=True)
    with no_descriptor_left():
        found = [run(twins, estate, store, batch, mirrored=False)[0] for batch, twins in enumerate((two, two, one), 1)]
    assert found == [LOADED, KEPT, LOADED]
    assert run(two, estate, store, 4, mirrored=True) == (LOADED, replayed(estate, 5))
    assert run(one, estate, store, 5, mirrored=True) == (ATTACHED, replayed(estate, 6))


@pytest.mark.parametrize("number", sorted(NO_ROOM))
def test_without_a_mapping_a_worker_works_in_memory(
    estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    one, two, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    run(one, estate, store, 0, mirrored=True)
    with monkeypatch.context() as short:
        short.setattr(mirrors, "map_shared", refuse)
        found = [run(twins, estate, store, batch, mirrored=False)[0] for batch, twins in enumerate((two, two, one), 1)]
    assert found == [LOADED, KEPT, LOADED]
    assert run(two, estate, store, 4, mirrored=True) == (LOADED, replayed(estate, 5))


def test_a_mirror_that_may_not_be_opened_is_an_error_all_the_same(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "mirrors" / "QSG1%2FAPP1").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        run(Twins(estate, tmp_path / "mirrors"), estate, StateStore(), 0)


def test_a_mirror_of_other_arrays_is_loaded_anew(estate: Estate, tmp_path: Path) -> None:
    """As a version of the program with another layout would leave it, with the right token."""
    store = StateStore()
    run(Twins(estate, tmp_path / "mirrors"), estate, store, 0)
    assert store.saved is not None
    mirror = Mirror.claim(tmp_path / "mirrors" / "QSG1%2FAPP1")
    assert mirror is not None
    mirror.reset()
    mirror.tables({"messages": (np.dtype("u1"), 77)})
    mirror.validate(store.saved.token)
    mirror.release()
    found, state = run(Twins(estate, tmp_path / "mirrors"), estate, store, 1, mirrored=True)
    assert (found, state) == (LOADED, replayed(estate, 2))


def test_mirrors_of_other_kernels_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "blocks"))
    ours = query_directory("query", "plan")
    assert ours == query_directory("query", "plan") != query_directory("query", "another estate")
    monkeypatch.setattr(twins_module, "CACHE_FOLDER", Path("another version"))
    other = query_directory("query", "plan")
    assert ours is not None and other is not None
    assert ours != other
    assert ours.parent == other.parent


def _in_another_process(folder: Path, store: StateStore, batch: int, answers: Any) -> None:
    estate = load_estate(small_estate(folder))
    found, state = run(Twins(estate, folder / "mirrors"), estate, store, batch)
    answers.put((found, state, store))


def test_another_process_attaches_to_the_same_arrays(tmp_path: Path) -> None:
    estate, store = load_estate(small_estate(tmp_path)), StateStore()
    twins = Twins(estate, tmp_path / "mirrors")
    run(twins, estate, store, 0)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_in_another_process, args=(tmp_path, store, 1, answers))
    process.start()
    found, state, store = answers.get(timeout=60)
    process.join(30)
    assert (found, state) == (ATTACHED, replayed(estate, 2))
    assert store.reads == 0
    assert run(twins, estate, store, 2) == (ATTACHED, replayed(estate, 3))
