"""Cases for the scorecard: the same for the same number, of all kinds, and what a recording should be like."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.profile import IS_LARGE
from tests.tools.score.cases import draw_case, draw_in, scenario_of
from tests.tools.score.scenarios import HELD_OUT, STEADY, STORIES
from twin.base.errors import UsageError
from twin.estate import load_estate
from twin.simulation import simulate
from twin.simulation.site import ALL_KINDS

A_ROUND = 3 * len(STORIES)


def test_a_number_has_one_case_and_the_two_sets_differ() -> None:
    case, again, other, test = (
        draw_case(3, "tuning"),
        draw_case(3, "tuning"),
        draw_case(4, "tuning"),
        draw_case(3, "test"),
    )
    assert case == again
    assert case.scenario != other.scenario
    assert type(case.scenario) is type(test.scenario)
    assert case.scenario != test.scenario
    assert case.name == f"tuning-0003-{case.scenario.name}"


def test_no_seed_is_in_both_sets() -> None:
    seeds = [draw_case(number, split).seed for split in ("tuning", "test") for number in range(6)]  # type: ignore[arg-type]
    assert len(set(seeds)) == len(seeds)


def test_any_stretch_has_all_scenarios_and_two_thirds_are_hard() -> None:
    tuning, test = ([scenario_of(number, split) for number in range(A_ROUND)] for split in ("tuning", "test"))
    assert {kind.name for kind in tuning} == STORIES.keys() - HELD_OUT
    assert {kind.name for kind in test} == STORIES.keys()
    assert Counter(kind.name in STEADY for kind in tuning)[False] == A_ROUND * 2 // 3


def test_cases_are_of_their_scenarios_and_of_every_kind_of_store() -> None:
    numbers = range(0, A_ROUND, 1 if IS_LARGE else 7)
    cases = [draw_case(number, "tuning") for number in numbers]
    kinds = [scenario_of(number, "tuning") for number in numbers]
    assert [type(case.scenario) for case in cases] == kinds
    assert [case.class_ == "hard" for case in cases] == [kind.name not in STEADY for kind in kinds]
    assert {case.estate.stores[case.store].kind for case in cases} == {"structure", "page_set", "queue_file"}


def test_a_case_says_what_it_is_about(tmp_path: Path) -> None:
    case = draw_case(5, "test")
    path = tmp_path / "estate.toml"
    path.write_text(case.estate_text, encoding="utf-8")
    assert load_estate(path).stores == case.estate.stores
    store = case.estate.stores[case.store]
    assert isinstance(store, ALL_KINDS)
    assert case.filler in store.queues
    assert case.scenario.sentence in case.story
    assert f"{case.filler} of {case.store}" in case.story
    assert case.estate.source == "case test 5"


@pytest.mark.parametrize("number", range(0, A_ROUND, 7 if IS_LARGE else 16))
def test_a_recording_has_some_ten_thousand_events_of_some_hours(number: int, tmp_path: Path) -> None:
    case = draw_case(number, "tuning")
    outcome = simulate(case.scenario, case.estate, tmp_path / "a.arrow", case.seed)
    assert 8_000 < outcome.events < 350_000
    assert 2 * 3.5e9 < outcome.last - outcome.first < 121 * 3.6e9
    assert all(item.refused == 0 for name, item in outcome.stores.items() if name != case.store)
    assert sum(table.num_rows for table in case.play()) == outcome.events


def test_cases_that_are_not_there_are_answered_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="there are no cases of all; expected: tuning or test"):
        draw_case(1, "all")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the case is -1; expected: 0 or more"):
        draw_case(-1, "test")


def test_a_number_is_drawn_from_its_range() -> None:
    rng = np.random.default_rng(1)
    wide = [draw_in((1.0, 1000.0), rng) for _ in range(400)]
    assert min(wide) >= 1
    assert max(wide) <= 1000
    assert sorted(wide)[200] == pytest.approx(1000**0.5, rel=0.5)  # even in the logarithm
    assert {draw_in((2, 4), rng) for _ in range(100)} == {2, 3, 4}
