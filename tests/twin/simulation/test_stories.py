"""Stories that a straight line gets wrong: each does what its sentence says, on a structure that fills soon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.estates import small_estate
from tests.twin.simulation.recorded import Recorded
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
