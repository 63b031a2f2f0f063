"""The oracle of the scorecard: what it knows, and what it cannot know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernels.clock import SECOND
from tests.tools.score.cases import Case, draw_case
from tests.tools.score.oracle import Foreseen, event_numbers, foresee
from tests.tools.score.scenarios import STORIES
from tests.tools.score.scenarios.turning import ClimbsThatTurn
from tests.tools.score.series import play
from tests.tools.score.truth import Filling, fillings
from twin.estate import load_estate
from twin.recordings.files import RecordingWriter
from twin.simulation.scenario import START

pytestmark = pytest.mark.nightly

ESTATE = """
schema = 1

[queue_sharing_group.QSG1]
queue_managers = ["QM01"]

[structure."QSG1/APP1"]
size = "24M"
cf_level = 4

[queue."QSG1/ORDERS"]
structure = "APP1"
"""
STORE = "QSG1/APP1"


def played(folder: Path, goes_on: int) -> tuple[list[Filling], Foreseen | None]:
    """Return the fillings and the oracle's alarms of climbs of 40 minutes that turn at 85 %; one of them may go on."""
    path = folder / "estate.toml"
    path.write_text(ESTATE, encoding="utf-8")
    estate = load_estate(path)
    settings = {"hours": 5.0, "climb": 40.0, "empty": 10.0, "turn": 0.85, "varies": 0.0, "goes_on": goes_on}
    scenario = ClimbsThatTurn(store=STORE, queue="ORDERS", **settings)
    case: Case = replace(
        draw_case(0, "tuning"), scenario=scenario, estate=estate, store=STORE, filler="ORDERS", seed=11
    )
    recording = folder / "case.arrow"
    with RecordingWriter(recording) as writer:
        for table in case.play():
            writer.write(table)
    series = play(recording, estate).series[STORE]
    filled = fillings(series)
    return filled, foresee(case, series, filled)


def test_climbs_before_the_first_that_can_go_on_are_no_danger_to_it(tmp_path: Path) -> None:
    filled, foreseen = played(tmp_path, 0)
    assert filled == []
    assert foreseen is not None
    assert foreseen.pages == []
    sixth = START + 5 * 50 * 60 * SECOND  # the first of those that may go on
    assert all(watch.opened > sixth for watch in foreseen.watches)


def test_the_climb_that_continues_is_seen_once_it_is_higher_than_the_others(tmp_path: Path) -> None:
    [filling], foreseen = played(tmp_path, 4)
    assert foreseen is not None
    [page] = foreseen.pages
    assert filling.onset < page.opened < filling.first


@pytest.mark.parametrize(
    ("scenario", "names"), [("climbs-that-turn", {"goes_on"}), ("slow-consumer", set()), ("sawtooth", set())]
)
def test_it_does_not_know_the_numbers_of_events(scenario: str, names: set[str]) -> None:
    assert set(event_numbers(STORIES[scenario]())) == names
