"""Cases about who reads, the four ways in which a store is known, and the figures of what the facts bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twin
from tests.support.estates import small_estate
from tests.tools.score.facts import BEGIN, END, WAYS, FactsCase, KnownStore, brought, by_calm_story, facts_case, section
from tests.tools.score.judge import StorePages
from tests.tools.score.readers import CALM, FILLS, MEASURED, NAMES, STORIES, recorded_reader, write_known
from tests.tools.score.recordings import Recorded
from twin.estate import load_estate
from twin.events import from_table
from twin.recordings.files import open_recording

SEEDS = range(6)


def events(path: Path) -> list[dict[str, Any]]:
    chunks = list(open_recording(path))
    return [event for chunk in chunks for event in from_table(chunk.table(np.arange(len(chunk))))]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Return the events of half an hour by way, and all of them."""
    folder = tmp_path_factory.mktemp("ways")
    scenario = twin.make_scenario("getter-outage", settings={"hours": 0.5, "outage_after": 0.1, "outage": 0.4})
    whole = folder / "whole.arrow"
    twin.simulate(scenario, load_estate(small_estate(folder)), whole, 3, measuring=MEASURED)
    known = {"whole": events(whole)}
    for way, (by_levels, facts) in WAYS.items():
        write_known(whole, folder / "known.arrow", by_levels=by_levels, facts=facts)
        known[way] = events(folder / "known.arrow")
    return known


# --- ways ------------------------------------------------------------------------------------------------------------


def test_a_pair_has_the_same_events_and_levels(ways: dict[str, list[dict[str, Any]]]) -> None:
    calls = [event for event in ways["whole"] if event["op"] != "MEASURE"]
    assert ways["events"] == calls
    assert [event for event in ways["events, facts"] if event["op"] != "MEASURE"] == calls
    assert {event["op"] for event in ways["levels"]} == {"MEASURE"}
    levels = [{k: v for k, v in e["measured"].items() if k not in {"queues", "asked"}} for e in ways["levels, facts"]]
    assert [event["measured"] for event in ways["levels"]] == levels
    assert all(own["resync"] and own["ents_max"] for own in levels)


def test_facts_beside_events_are_no_levels(ways: dict[str, list[dict[str, Any]]]) -> None:
    measured = [event["measured"] for event in ways["events, facts"] if event["op"] == "MEASURE"]
    assert {frozenset(own) for own in measured} == {frozenset({"queues", "asked"})}
    assert [own["queues"] for own in measured] == [event["measured"]["queues"] for event in ways["levels, facts"]]


# --- stories ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_backlog_is_highest_at_the_end_of_a_story_that_fills(name: str) -> None:
    make, class_, _ = STORIES[name]
    for seed in SEEDS:
        story = make(np.random.default_rng(seed))
        assert len(story.counts) == len(story.readers)
        pairs = zip(story.readers, story.counts, strict=True)
        backlog = np.sum([reader.backlog(counts, 60.0) for reader, counts in pairs], axis=0)
        assert (story.reach > 1) == (class_ == FILLS) or class_ not in {FILLS, CALM}
        if class_ == FILLS:
            assert backlog.argmax() >= backlog.size - 2
        else:
            assert backlog.max() > 0


def open_minutes(name: str) -> list[np.ndarray]:
    """Return whether the first queue is open for input, by minute, of some seeds."""
    readers = [STORIES[name][0](np.random.default_rng(seed)).readers[0] for seed in SEEDS]
    return [(reader.pace > 0) | reader.hangs for reader in readers]


def test_a_getter_that_hangs_keeps_the_queue_open_and_one_that_stops_does_not() -> None:
    assert all(is_open.all() for is_open in open_minutes("hanging"))
    assert all(is_open.all() for is_open in open_minutes("bursts"))
    assert all(not is_open[-45:].any() and is_open[:-300].mean() > 0.8 for is_open in open_minutes("stopped"))
    assert all(not is_open.any() for is_open in open_minutes("never-read"))


def test_a_slow_getter_has_the_queue_open_while_it_is_slow() -> None:
    assert all(is_open[-61:].all() for is_open in open_minutes("slow"))


def test_jobs_have_the_queue_open_only_while_they_run() -> None:
    for name in ("job-late", "job-missing", "nightly", "sawtooth"):
        assert all(0 < is_open.mean() < 0.4 for is_open in open_minutes(name)), name


# --- figures ---------------------------------------------------------------------------------------------------------


def pages(lead: float | None, count: int, fillings: int = 1) -> StorePages:
    return StorePages(
        store="S",
        days=0.5,
        fillings=fillings,
        unheard=0,
        pages=count,
        false=count if not fillings else 0,
        undecided=0,
        again=0,
        notices=count,
        leads=(lead,) * fillings,
    )


def case(story: str, leads: list[float | None], line: float | None = 600.0, lasted: float = 7200.0) -> FactsCase:
    """Return a case with a filling, or without one, and a page of each lead, by way."""
    fillings = int(lasted > 0)
    known = {
        way: KnownStore(pages(lead, lead is not None, fillings), pages(lead, 2, fillings), (0.5,), 3, (), 0)
        for way, lead in zip(WAYS, leads, strict=True)
    }
    recorded = Recorded(0, "tuning", story, FILLS, "S", "Q", "", "")
    return FactsCase(recorded, known, (line,) * fillings, (lasted,) * fillings, (fillings > 0,), 1.0)


FILLED = [
    case("stopped", [500.0, 700.0, None, 600.0]),  # the line has ten minutes
    case("stopped", [1700.0, 1800.0, 1700.0, 1800.0], line=None),
    case("hanging", [900.0, 850.0, 400.0, 300.0], line=3600.0, lasted=600.0),  # four fifths are eight minutes
]
QUIET = case("bursts", [None, 0.0, 0.0, 0.0], lasted=0.0)


def test_a_page_is_in_time_half_an_hour_ahead_or_like_the_line_or_most_of_a_short_filling() -> None:
    assert [case.due_leads for case in FILLED] == [[600.0], [1800.0], [480.0]]
    shares = [brought(FILLED, way).in_time.value for way in WAYS]
    assert shares == pytest.approx([1 / 3, 3 / 3, 0 / 3, 2 / 3])


def test_pages_are_compared_with_those_without_the_facts() -> None:
    figures = {way: brought(FILLED, way) for way in WAYS}
    assert [(own.earlier, own.worse) for own in figures.values()] == [(0, 0), (2, 0), (0, 0), (2, 1)]
    assert [(own.later, own.lines) for own in figures.values()] == [(2, 2), (1, 2), (2, 2), (1, 2)]


def test_calm_stores_are_counted_by_day() -> None:
    own = brought([*FILLED, QUIET], "events, facts")
    assert own.unread_per_day == 6.0
    assert own.watches_per_day == 4.0
    assert (own.pages.calm_pages, own.pages.per_calm_store) == (1, 1.0)
    assert (own.at_line, own.harmless) == (0.5, 0.5)


def test_the_section_has_its_marks_and_a_row_a_story() -> None:
    text = section([*FILLED, QUIET], "made by hand")
    assert text.startswith(BEGIN)
    assert text.endswith(END)
    assert "| stopped | 2 | 0 %, 18 min, 0 |" in text
    assert by_calm_story([*FILLED, QUIET])[0][:5] == ["bursts", "1", "0.5", "0, 2, 3", "1, 2, 3"]
    page = Path(__file__).with_name("facts.md").read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1


# --- cases -----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_case_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, again = (recorded_reader(4, "tuning", tmp_path / name) for name in ("a", "b"))
    assert first.recording.read_bytes() == again.recording.read_bytes()
    assert (first.scenario, first.class_) == ("hanging", FILLS)


def played(name: str, folder: Path) -> list[FactsCase]:
    """Return the first two cases of a story."""
    return [facts_case(NAMES.index(name) + len(NAMES) * seed, "tuning", folder) for seed in range(2)]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["stopped", "stopped-of-several", "hanging"])
def test_with_the_facts_pages_come_no_later_and_as_many_are_right(name: str, tmp_path: Path) -> None:
    cases = played(name, tmp_path)
    for known in ("events", "levels"):
        without, having = (brought(cases, way) for way in (known, f"{known}, facts"))
        assert having.worse == 0
        assert (having.in_time.value or 0.0) >= (without.in_time.value or 0.0)
        assert having.pages.right >= without.pages.right
        assert having.earlier > 0 or name in ("hanging", "stopped-of-several")


@pytest.mark.nightly
def test_a_page_about_a_getter_that_returns_is_cleared(tmp_path: Path) -> None:
    cases = played("getter-back", tmp_path)
    assert all(not own.open_at_end for case in cases for own in case.known.values())
    assert sum(case.known["events, facts"].unread for case in cases) == 4  # an absence of five minutes is a watch
