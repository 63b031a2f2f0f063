"""The twin of a lease equals the one in the state store, whatever its source."""

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
from streams.state.twins import KEEP_VARIABLE, Bounds, SavedState, Twins, TwinSource, query_directory
from tests.streams.stage_help import START_US, as_json, put
from tests.support.estates import small_estate
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.playback.replays import Player

STORE = "QSG1/APP1"
NEW, CACHED, MAPPED, RELOADED = TwinSource


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    return load_estate(small_estate(tmp_path))


class StateStore:
    """Spark's state store of one key; a batch is committed or not."""

    def __init__(self) -> None:
        self.saved_state: SavedState | None = None
        self.pages: dict[int, bytes] = {}
        self.reads = 0

    def read(self) -> Iterator[tuple[int, bytes]]:
        self.reads += 1
        return iter(self.pages.items())


def events(batch: int) -> list[dict[str, Any]]:
    """Return puts and gets of a batch, which touch many pages after some batches."""
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
) -> tuple[TwinSource, dict]:
    """Run a batch and return the source of the twin and its state afterwards."""
    decoder = Decoder(estate)
    (block,) = decoder.json([as_json(event) for event in events(batch)]).blocks(estate)
    with twins.lease(STORE, batch, store.saved_state, store.read) as lease:
        lease.twin.apply(block)
        if fail:
            raise RuntimeError("the worker failed")
        pages = dict(lease.twin.dirty_pages())
        header = lease.twin.header()
        state = lease.twin.state()
    assert mirrored is None or lease.is_mirrored == mirrored
    if commit:
        store.pages |= pages
        store.saved_state = SavedState(lease.token, header)
    return lease.source, state


def replay_state(estate: Estate, batches: int) -> dict[str, Any]:
    """Return the state after a number of batches, from the twin alone."""
    player = Player(estate)
    decoder = Decoder(estate)
    for batch in range(batches):
        player.feed(decoder.json([as_json(event) for event in events(batch)]))
    return player.states()[STORE]


def test_a_worker_caches_its_twin(estate: Estate, tmp_path: Path) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors"), StateStore()
    runs = [run(twins, estate, store, batch) for batch in range(4)]
    assert [source for source, _ in runs] == [NEW, CACHED, CACHED, CACHED]
    assert runs[-1][1] == replay_state(estate, 4)
    assert store.reads == 0


def test_two_workers_in_turn_map_the_mirror_and_never_reload(estate: Estate, tmp_path: Path) -> None:
    first, second, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    runs = [run((first, second)[batch % 2], estate, store, batch) for batch in range(8)]
    assert [source for source, _ in runs] == [NEW, *[MAPPED] * 7]
    assert runs[-1][1] == replay_state(estate, 8)
    assert store.reads == 0


def test_without_a_mirror_the_other_worker_reloads(estate: Estate) -> None:
    first, second, store = Twins(estate, None), Twins(estate, None), StateStore()
    runs = [run((first, first, second, second)[batch], estate, store, batch) for batch in range(4)]
    assert [source for source, _ in runs] == [NEW, CACHED, RELOADED, CACHED]
    assert runs[-1][1] == replay_state(estate, 4)


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_batch_whose_commit_failed_leaves_no_trace(estate: Estate, tmp_path: Path, mirrored: bool) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors" if mirrored else None), StateStore()
    run(twins, estate, store, 0)
    run(twins, estate, store, 1, commit=False)
    source, state = run(twins, estate, store, 1)
    assert source == RELOADED
    assert state == replay_state(estate, 2)


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_batch_that_failed_half_way_leaves_no_trace(estate: Estate, tmp_path: Path, mirrored: bool) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors" if mirrored else None), StateStore()
    run(twins, estate, store, 0)
    with pytest.raises(RuntimeError):
        run(twins, estate, store, 1, fail=True)
    source, state = run(twins, estate, store, 1)
    assert source == RELOADED
    assert state == replay_state(estate, 2)


def test_the_very_first_batch_can_fail(estate: Estate, tmp_path: Path) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors"), StateStore()
    run(twins, estate, store, 0, commit=False)
    source, state = run(twins, estate, store, 0)
    assert source == NEW
    assert state == replay_state(estate, 1)


def test_while_another_worker_has_the_mirror_a_worker_reloads(estate: Estate, tmp_path: Path) -> None:
    first, second, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    run(first, estate, store, 0)
    with first.lease(STORE, 1, store.saved_state, store.read):  # a worker that is being killed still has the lock
        source, state = run(second, estate, store, 1)
    assert source == RELOADED
    assert state == replay_state(estate, 2)
    assert run(first, estate, store, 2)[1] == replay_state(estate, 3)  # its token is not that of the state store


def test_a_restart_maps_the_mirror_of_the_last_run(estate: Estate, tmp_path: Path) -> None:
    store = StateStore()
    run(Twins(estate, tmp_path / "mirrors"), estate, store, 0)
    source, state = run(Twins(estate, tmp_path / "mirrors"), estate, store, 1)
    assert (source, state) == (MAPPED, replay_state(estate, 2))


def test_a_state_store_set_back_to_an_earlier_batch_wins(estate: Estate, tmp_path: Path) -> None:
    twins, store = Twins(estate, tmp_path / "mirrors"), StateStore()
    run(twins, estate, store, 0)
    before = store.saved_state, dict(store.pages)
    run(twins, estate, store, 1)
    run(twins, estate, store, 2)
    store.saved_state, store.pages = before
    source, state = run(twins, estate, store, 1)
    assert (source, state) == (RELOADED, replay_state(estate, 2))


@pytest.mark.parametrize("seed", range(3))
def test_caches_that_vanish_at_random_change_nothing(estate: Estate, tmp_path: Path, seed: int) -> None:
    loss = Loss(0.5, seed)
    first, second, store = Twins(estate, tmp_path / "m", loss), Twins(estate, tmp_path / "m", loss), StateStore()
    runs = [run((first, second)[(batch * 7 + seed) % 3 % 2], estate, store, batch) for batch in range(12)]
    assert RELOADED in {source for source, _ in runs}
    assert runs[-1][1] == replay_state(estate, 12)


def heartbeat(twins: Twins, estate: Estate, name: str, store: StateStore) -> TwinSource:
    """Run a batch with a heartbeat of one store and return the source of the twin."""
    (block,) = (
        Decoder(estate)
        .json([as_json({"time": START_US, "qmgr": "QM01", "op": "HEARTBEAT", "store": name})])
        .blocks(estate)
    )
    with twins.lease(name, 0, store.saved_state, store.read) as lease:
        lease.twin.apply(block)
        pages, header = dict(lease.twin.dirty_pages()), lease.twin.header()
    store.pages |= pages
    store.saved_state = SavedState(lease.token, header)
    return lease.source


def many_stores(folder: Path, count: int) -> tuple[Estate, dict[str, StateStore]]:
    """Return an estate of `count` structures, and a state store for each."""
    path = folder / "many.toml"
    parts = ['schema = 1\n[queue_sharing_group.QSG1]\nqueue_managers = ["QM01"]\n']
    parts += [f'[structure."QSG1/S{n}"]\nsize = "16M"\ncf_level = 4\n' for n in range(count)]
    path.write_text("".join(parts), encoding="utf-8")
    return load_estate(path), {f"QSG1/S{n}": StateStore() for n in range(count)}


def test_the_least_recently_used_twins_are_dropped(tmp_path: Path) -> None:
    estate, stores = many_stores(tmp_path, 4)
    twins = Twins(estate, tmp_path / "mirrors", bounds=Bounds(twins=2, memory_bytes=0))
    first, second, third, fourth = stores
    assert {heartbeat(twins, estate, name, stores[name]) for name in stores} == {NEW}
    turns = (fourth, third, first, third, fourth, second)
    sources = [heartbeat(twins, estate, name, stores[name]) for name in turns]
    assert sources == [CACHED, CACHED, MAPPED, CACHED, MAPPED, MAPPED]
    assert not any(store.reads for store in stores.values())


def test_twins_in_memory_are_dropped_by_their_bytes(tmp_path: Path) -> None:
    estate, stores = many_stores(tmp_path, 3)
    first, second, third = stores
    with Twins(estate, None).lease(first, 0, None, lambda: ()) as lease:
        size = lease.arrays.memory_bytes
    twins = Twins(estate, None, bounds=Bounds(twins=100, memory_bytes=2 * size))
    for name in (first, second, third):
        heartbeat(twins, estate, name, stores[name])
    sources = [heartbeat(twins, estate, name, stores[name]) for name in (third, second, first, third)]
    assert sources == [CACHED, CACHED, RELOADED, RELOADED]
    only = Twins(estate, None, bounds=Bounds(twins=100, memory_bytes=0))
    sources = [heartbeat(only, estate, first, stores[first]) for _ in range(2)]
    assert sources == [RELOADED, CACHED]  # the last twin stays


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
    first, second = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors")
    heartbeat(first, estate, "QSG1/S0", stores["QSG1/S0"])  # the first one imports pandas, of 270 mappings
    before = count_open_files(os.getpid())
    maps = count_mappings(os.getpid())
    for batch in range(4):
        for number, (name, store) in enumerate(stores.items()):
            heartbeat((first, second)[(number + batch) % 2], estate, name, store)
    assert count_open_files(os.getpid()) <= before + 5
    after = count_mappings(os.getpid())
    assert maps is None or after is None or after - maps <= 2 * count + 100  # both workers' are of this process here
    assert not any(store.reads for store in stores.values())


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Use up all file descriptors of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 512), hard))
    try:
        with suppress(OSError):
            while True:
                files.append(os.dup(0))
        yield
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_descriptor_a_worker_works_in_memory(estate: Estate, tmp_path: Path) -> None:
    first, second, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    run(first, estate, store, 0, mirrored=True)
    with no_descriptor_left():
        turns = enumerate((second, second, first), 1)
        sources = [run(twins, estate, store, batch, mirrored=False)[0] for batch, twins in turns]
    assert sources == [RELOADED, CACHED, RELOADED]
    assert run(second, estate, store, 4, mirrored=True) == (RELOADED, replay_state(estate, 5))
    assert run(first, estate, store, 5, mirrored=True) == (MAPPED, replay_state(estate, 6))


@pytest.mark.parametrize("number", sorted(NO_ROOM))
def test_without_a_mapping_a_worker_works_in_memory(
    estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    first, second, store = Twins(estate, tmp_path / "mirrors"), Twins(estate, tmp_path / "mirrors"), StateStore()
    run(first, estate, store, 0, mirrored=True)
    with monkeypatch.context() as short:
        short.setattr(mirrors, "map_shared", refuse)
        turns = enumerate((second, second, first), 1)
        sources = [run(twins, estate, store, batch, mirrored=False)[0] for batch, twins in turns]
    assert sources == [RELOADED, CACHED, RELOADED]
    assert run(second, estate, store, 4, mirrored=True) == (RELOADED, replay_state(estate, 5))


def test_a_mirror_that_may_not_be_opened_is_an_error_all_the_same(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "mirrors" / "QSG1%2FAPP1").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        run(Twins(estate, tmp_path / "mirrors"), estate, StateStore(), 0)


def test_a_twin_whose_mirror_has_other_arrays_is_reloaded(estate: Estate, tmp_path: Path) -> None:
    """Another version of the program left the right token and another layout."""
    store = StateStore()
    run(Twins(estate, tmp_path / "mirrors"), estate, store, 0)
    assert store.saved_state is not None
    mirror = Mirror.claim(tmp_path / "mirrors" / "QSG1%2FAPP1")
    assert mirror is not None
    mirror.reset()
    mirror.tables({"messages": (np.dtype("u1"), 77)})
    mirror.validate(store.saved_state.token)
    mirror.release()
    source, state = run(Twins(estate, tmp_path / "mirrors"), estate, store, 1, mirrored=True)
    assert (source, state) == (RELOADED, replay_state(estate, 2))


def test_mirrors_of_other_kernels_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "blocks"))
    directory = query_directory("query", "plan")
    assert directory == query_directory("query", "plan") != query_directory("query", "another estate")
    monkeypatch.setattr(twins_module, "CACHE_FOLDER", Path("another version"))
    other = query_directory("query", "plan")
    assert directory is not None and other is not None
    assert directory != other
    assert directory.parent == other.parent


def _in_another_process(folder: Path, store: StateStore, batch: int, answers: Any) -> None:
    estate = load_estate(small_estate(folder))
    source, state = run(Twins(estate, folder / "mirrors"), estate, store, batch)
    answers.put((source, state, store))


def test_another_process_maps_the_same_arrays(tmp_path: Path) -> None:
    estate, store = load_estate(small_estate(tmp_path)), StateStore()
    twins = Twins(estate, tmp_path / "mirrors")
    run(twins, estate, store, 0)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_in_another_process, args=(tmp_path, store, 1, answers))
    process.start()
    source, state, store = answers.get(timeout=60)
    process.join(30)
    assert (source, state) == (MAPPED, replay_state(estate, 2))
    assert store.reads == 0
    assert run(twins, estate, store, 2) == (MAPPED, replay_state(estate, 3))
