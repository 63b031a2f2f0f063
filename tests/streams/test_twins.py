"""Where a worker finds a twin: whatever it finds, it is the one the state store has."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.plan import Loss
from streams.twins import ATTACHED, KEPT, LOADED, NEW, Saved, Twins
from tests.estates import small_estate
from tests.streams.stage_help import as_json, put
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.replay import Player

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
    twins: Twins, estate: Estate, store: StateStore, batch: int, *, commit: bool = True, fail: bool = False
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
