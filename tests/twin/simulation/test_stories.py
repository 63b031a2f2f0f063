"""Stories that a straight line gets wrong: each does what its sentence says, on a structure that fills soon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.estates import small_estate
from tests.twin.simulation.recorded import Recorded
from twin.errors import UsageError
from twin.estate import Estate, load_estate
from twin.playback.replays import replay
from twin.simulation import START, Outcome, make_scenario, simulate

pytestmark = pytest.mark.nightly

Tell = Callable[..., tuple[Outcome, Path]]
STORE = "QSG1/APP1"


@pytest.fixture
def tell(small: Estate, tmp_path: Path) -> Tell:
    """Plays a scenario with parameters."""

    def play(name: str, estate: Estate = small, **settings: float) -> tuple[Outcome, Path]:
        path = tmp_path / "told.arrow"
        return simulate(make_scenario(name, settings=settings), estate, path, seed=1), path

    return play


def first_full_hours(outcome: Outcome) -> float:
    """Hours from the start to the first 2192 of the store the stories are about."""
    assert outcome.first_full is not None
    assert outcome.first_full[1] == STORE
    return (outcome.first_full[0] - START) / 3.6e9


def full_of(path: Path, estate: Estate) -> set[str]:
    """Return the resources that were full, by the alerts of the twin."""
    return {alert.resource for alert in replay(path, estate).alerts if alert.condition == "full"}


def test_the_offload_rules_stop_a_growth_that_would_fill_the_structure_without_them(tell: Tell, tmp_path: Path) -> None:
    with_rules, path = tell("offload-stops-growth")
    assert with_rules.first_full is None
    assert 60 < with_rules.stores[STORE].peak_pct < 95
    assert with_rules.stores[STORE].offload_rule >= 1
    early, late, end = Recorded(path).depth("ORDERS", 2.0, 4.0, 6.0)
    assert late > 1.5 * early
    assert end == pytest.approx(late, rel=0.15)
    text = small_estate(tmp_path).read_text(encoding="utf-8")
    off = "".join(f', offld{number}_sz = "64K"' for number in (1, 2, 3))
    (tmp_path / "off.toml").write_text(text.replace("cf_level = 5", f"cf_level = 5{off}"), encoding="utf-8")
    scenario = make_scenario("offload-stops-growth", rate=_rate_of(path))
    without = simulate(scenario, load_estate(tmp_path / "off.toml"), tmp_path / "off.arrow", seed=1)
    assert 1 < first_full_hours(without) < 5


def _rate_of(path: Path) -> float:
    """Puts a second in the last hour of the six."""
    return float(Recorded(path).puts("ORDERS", 5.0, 6.0).sum()) / 3600


def test_shorter_and_more_messages_fill_the_entries_while_the_elements_stay(tell: Tell, small: Estate) -> None:
    outcome, path = tell("elements-to-entries")
    recorded = Recorded(path)
    early, late = (recorded.puts("ORDERS", i, i + 0.5) for i in (1.5, 4.0))
    assert recorded.length[late].mean() < recorded.length[early].mean() / 5
    assert late.sum() > 3 * early.sum()
    assert first_full_hours(outcome) > 4
    assert "entries" in full_of(path, small)
    assert "elements" not in full_of(path, small)
    assert tell("elements-to-entries", last_length=1_200)[0].first_full is None


def test_a_structure_that_stands_still_hides_a_data_set_that_fills(tell: Tell, small: Estate) -> None:
    outcome, path = tell("flat-structure-full-data-set")
    assert 3 < first_full_hours(outcome) < 5
    assert 45 < outcome.stores[STORE].peak_pct < 60
    assert full_of(path, small) == {"smds/QM01", "smds/QM02"}
    assert tell("flat-structure-full-data-set", full_at=2)[0].first_full is None


def test_lengths_jump_across_the_rules(tell: Tell) -> None:
    outcome, path = tell("lengths-shift")
    assert first_full_hours(outcome) > 1
    recorded = Recorded(path)
    means = [recorded.length[recorded.puts("ORDERS", i, i + 0.25)].mean() for i in np.arange(0, 6, 0.25)]
    assert min(means) < 1_000
    assert max(means) > 30_000
    assert tell("lengths-shift", level=0.3)[0].first_full is None


def test_a_fill_that_levels_off_does(tell: Tell) -> None:
    outcome, path = tell("levelling-fill")
    assert outcome.first_full is None
    first, two, five, six = Recorded(path).depth("ORDERS", 1.0, 1.5, 5.0, 6.0)
    assert two > 1.4 * first
    assert six == pytest.approx(five, rel=0.1)
    assert 1 < first_full_hours(tell("levelling-fill", level=1.5)[0]) < 4


def test_a_fill_that_speeds_up_does_and_may_end_in_time(tell: Tell) -> None:
    outcome, path = tell("accelerating-fill")
    assert 2.5 < first_full_hours(outcome) < 3.5
    first, two, three = Recorded(path).depth("ORDERS", 1.0, 2.0, 2.9)
    assert three - two > 2.5 * (two - first) > 0
    assert tell("accelerating-fill", reach=0.6)[0].first_full is None


def test_bursts_are_of_very_different_sizes_and_chance_says_which(tell: Tell, small: Estate, tmp_path: Path) -> None:
    _, path = tell("heavy-tailed-bursts", load=0.7, fits_for=3)
    recorded = Recorded(path)
    puts = [
        (recorded.puts("ORDERS", i, i + 1 / 12) | ((recorded.reason == 2192) & (recorded.hours >= i))).sum()
        for i in np.arange(1, 8, 1 / 12)
    ]
    assert max(puts) > 4 * np.median(puts)
    scenario = make_scenario("heavy-tailed-bursts", settings={"load": 1.0, "fits_for": 1.0})
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
        simulate(make_scenario("two-stores"), load_estate(tmp_path / "one.toml"), tmp_path / "x.arrow")


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
