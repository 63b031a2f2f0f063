"""Scenarios that mislead: each does what its sentence says, on a structure that fills soon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.estates import small_estate
from tests.tools.score.scenarios import STORIES
from tests.tools.score.scenarios.chance import HeavyTailedBursts
from tests.tools.score.scenarios.nights import NightlyBatch
from tests.tools.score.scenarios.turning import Sawtooth
from tests.tools.score.scenarios.undone import TwoStores
from tests.twin.simulation.recorded import Recorded
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.playback.replays import replay
from twin.simulation import SCENARIOS, START, Outcome, parameters, simulate
from twin.stores.open import open_message_store

pytestmark = pytest.mark.nightly

Tell = Callable[..., tuple[Outcome, Path]]
STORE = "QSG1/APP1"
HERE = sorted(STORIES.keys() - SCENARIOS.keys())
CLOSE = {"sawtooth", "nightly-batch"}  # and harmless
FAR = {"short-outages", "long-unit-of-work", "day-and-night"}  # as harmless
FAR |= {"beating-teeth", "climbs-that-turn", "flaky-getter", "units-come-and-go"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """Three queue managers; some ten thousand messages fill QSG1/APP1."""
    return load_estate(small_estate(tmp_path_factory.mktemp("small")))


@pytest.fixture(autouse=True)
def _without_forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay without forecasts, which would take most of the time: states and full stores are compared."""
    monkeypatch.setitem(open_message_store.__kwdefaults__, "forecasts", False)


@pytest.fixture
def tell(small: Estate, tmp_path: Path) -> Tell:
    """Plays a scenario with parameters."""

    def play(name: str, estate: Estate = small, **settings: float) -> tuple[Outcome, Path]:
        path = tmp_path / "told.arrow"
        return simulate(STORIES[name](**settings), estate, path, seed=1), path

    return play


def first_full_hours(outcome: Outcome) -> float:
    """Hours from the start to the first 2192 of the store the stories are about."""
    assert outcome.first_full is not None
    assert outcome.first_full[1] == STORE
    return (outcome.first_full[0] - START) / 3.6e9


@pytest.mark.parametrize("name", HERE)
def test_a_scenario_comes_close_or_ends_in_2192_and_the_twin_finds_nothing_impossible(
    tell: Tell, small: Estate, name: str
) -> None:
    outcome, path = tell(name)
    if name in CLOSE | FAR:
        assert outcome.first_full is None
        assert outcome.fullest == STORE
        assert outcome.stores[STORE].peak_pct > (88 if name in CLOSE else 50)
    else:
        assert first_full_hours(outcome) > 0
        assert outcome.stores[STORE].refused > 10
    replayed = replay(path, small)
    assert (replayed.events, replayed.dead_letters) == (outcome.events, 0)
    for store, state in replayed.states.items():
        wrong = {key: getattr(state, key) for key in ("duplicates", "gaps", "unmatched_gets", "overfull_puts")}
        assert wrong == dict.fromkeys(wrong, 0), store
        assert state.full_puts == outcome.stores[store].refused


@pytest.mark.parametrize("name", HERE)
def test_a_scenario_says_in_one_sentence_what_happens_and_explains_its_parameters(name: str) -> None:
    kind = STORIES[name]
    assert kind.sentence.endswith(".")
    assert all(text for _, text in parameters(kind).values())


def test_the_bad_night_of_the_batch_is_the_one_that_was_asked_for(small: Estate, tmp_path: Path) -> None:
    outcome = simulate(NightlyBatch(bad_night=2), small, tmp_path / "bad.arrow")
    assert 24 + 1 < first_full_hours(outcome) < 24 + 4


def test_sawteeth_that_grow_end_in_2192(small: Estate, tmp_path: Path) -> None:
    outcome = simulate(Sawtooth(growth=0.25), small, tmp_path / "teeth.arrow")
    assert first_full_hours(outcome) > 1


def test_bursts_are_of_very_different_sizes_and_chance_says_which(tell: Tell, small: Estate, tmp_path: Path) -> None:
    _, path = tell("heavy-tailed-bursts", load=0.7, fits_for=3)
    recorded = Recorded(path)
    puts = [
        (recorded.puts("ORDERS", i, i + 1 / 12) | ((recorded.reason == 2192) & (recorded.hours >= i))).sum()
        for i in np.arange(1, 8, 1 / 12)
    ]
    assert max(puts) > 4 * np.median(puts)
    scenario = HeavyTailedBursts(load=1.0, fits_for=1.0)
    times = set()
    for seed in (1, 2, 3, 4):
        outcome = simulate(scenario, small, tmp_path / f"{seed}.arrow", seed=seed)
        times.add(outcome.first_full[0] if outcome.first_full else None)
    assert len(times) > 1


def test_short_stops_are_harmless_until_the_one_that_lasts(tell: Tell) -> None:
    outcome, path = tell("short-outages")
    assert outcome.first_full is None
    before, after = Recorded(path).depth("ORDERS", 2.5, 2.74)
    assert after > 500 > before
    assert 3.5 < first_full_hours(tell("short-outages", stays_away=4)[0]) < 4.5


def test_a_unit_of_work_holds_its_place_until_it_backs_out(tell: Tell, small: Estate) -> None:
    outcome, path = tell("long-unit-of-work")
    assert outcome.first_full is None
    recorded = Recorded(path)
    ends = (recorded.op == "BACKOUT") & (np.abs(recorded.hours - 2.5) < 1e-6)
    assert ends.sum() == 3  # one a queue manager
    held = sum((recorded.uow == unit).sum() for unit in recorded.uow[ends])
    assert held > 3_000
    assert replay(path, small).states[STORE].messages < 100
    assert first_full_hours(tell("long-unit-of-work", reach=1.5)[0]) < 2.5
    _, path = tell("long-unit-of-work", commits=1)
    assert ((Recorded(path).op == "COMMIT") & (np.abs(Recorded(path).hours - 2.5) < 1e-6)).sum() == 3


def test_one_store_fills_and_the_other_does_what_it_always_does(tell: Tell) -> None:
    outcome, path = tell("two-stores")
    assert 2.0 < first_full_hours(outcome) < 3.0
    assert outcome.stores["QSG1/APP2"].refused == 0
    assert outcome.stores["QSG1/APP2"].peak_pct > 60
    full, empty = Recorded(path).depth("AUDIT", 2.29, 2.55)
    assert full > 4 * max(empty, 1)
    assert tell("two-stores", full_at=2)[0].first_full is None


def test_two_stores_are_needed_for_two(tmp_path: Path) -> None:
    text = small_estate(tmp_path).read_text(encoding="utf-8").replace('"QSG1/AUDIT" = {structure = "APP2"}\n', "")
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="two-stores: there is only QSG1/APP1; expected: two stores with queues"):
        simulate(TwoStores(), load_estate(tmp_path / "one.toml"), tmp_path / "x.arrow")


def test_the_floor_of_drifting_teeth_rises(tell: Tell) -> None:
    outcome, path = tell("drifting-sawtooth")
    assert first_full_hours(outcome) > 4
    floors = Recorded(path).depth("ORDERS", 0.75, 2.25, 3.75)
    assert floors[0] + 200 < floors[1] < floors[2] - 200
    assert tell("drifting-sawtooth", reach=0.6)[0].first_full is None


def test_evenings_are_harmless_but_for_the_busy_day(tell: Tell) -> None:
    outcome, path = tell("day-and-night")
    assert outcome.first_full is None
    evening, morning = Recorded(path).depth("ORDERS", 20.0, 32.0)
    assert evening > 20 * max(morning, 1)
    assert 24 + 8 < first_full_hours(tell("day-and-night", busy_day=2)[0]) < 48
    with pytest.raises(UsageError, match="the getters fall behind; expected: swing > 1 / load - 1"):
        tell("day-and-night", swing=0.1, load=0.5)
