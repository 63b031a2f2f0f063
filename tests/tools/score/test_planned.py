"""The measure of plans, and of words on pages."""

from __future__ import annotations

import pytest

from tests.tools.score.planned import (
    _ESTATE,
    ENTRIES,
    KINDS,
    Heard,
    Played,
    draw,
    draw_month,
    draw_story,
    events,
    month_table,
    play_month,
    play_night,
    play_story,
    table,
    words_table,
)
from twin.estate import Estate, load_estate

UNPAGED, EARLY, LATE = Played(None, None, False), Played(100.0, 130.0, True), Played(125.0, 130.0, False)


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    path = tmp_path_factory.mktemp("planned") / "estate.toml"
    path.write_text(_ESTATE, encoding="utf-8")
    return load_estate(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_one_more_event_of_the_same_night(kind: str) -> None:
    planned, other = (list(events(draw(kind, 3), is_planned=is_planned)) for is_planned in (True, False))
    assert [event["op"] for event in planned].count("PLAN") == 1
    assert planned[1:] == other == list(events(draw(kind, 3), is_planned=False))


def test_jobs_that_fit_and_those_that_fill_the_store_are_announced_so() -> None:
    shares = {kind: [draw(kind, number).announced / ENTRIES for number in range(20)] for kind in ("fits", "fills")}
    assert max(shares["fits"]) < 1.0 < min(shares["fills"])


def test_the_table_counts_nights_without_a_plan_and_with_it() -> None:
    measured = {kind: [(LATE, EARLY), (UNPAGED, UNPAGED)] for kind in KINDS}
    lines = table(measured).splitlines()
    assert lines[2] == "| 2 jobs that fit: nights with a page | 1 | 1 |"
    assert lines[4] == "| 2 jobs that fill the store: paged 10 min before full | 0 | 1 |"
    assert lines[5] == "| said before they begin that they do not fit | 0 | 1 |"
    wrong = "| 1 fillings beside a wrong plan, not run: paged 10 min before full |"
    assert lines[6] == f"{wrong} 0 | 1; 0 of 1 pages more than 2 min later, at most -25 min |"
    measured["not run"] = [(EARLY, UNPAGED)]
    assert "1 of 1 pages more than 2 min later, at most inf min" in table(measured)


def test_a_job_that_does_not_fit_is_said_before_it_begins(estate: Estate) -> None:
    played = play_night(draw("fills", 0), estate, is_planned=True)
    assert played.unfit and played.is_in_time


def test_nights_after_the_tenth_word_are_compared() -> None:
    before = [Heard(90.0, None, 0), Heard(90.0, None, 0), Heard(100.0, 130.0, 0), Heard(100.0, 130.0, 0)]
    after = [Heard(90.0, None, 9), Heard(None, None, 10), Heard(104.0, 130.0, 10), Heard(131.0, 130.0, 10)]
    lines = words_table([(before, after)]).splitlines()
    assert lines[0] == "| 1 stores, nights after the tenth word | without words | with them |"
    assert lines[2:6] == [
        "| 1 harmless nights: needless calls | 1 | 0 |",
        "| 2 fillings: called before full | 2 | 1 |",
        "| minutes from the call until full, mean | 30 | 26 |",
        "| fillings that nobody hears of any more | | 1 |",
    ]


def test_a_store_is_told_of_its_pages_alone_and_by_chance_wrongly(estate: Estate) -> None:
    story = draw_story(0, 3)
    silent, answered = (play_story(0, story, estate, is_answered=is_answered) for is_answered in (False, True))
    assert [night.words for night in silent] == [0, 0, 0]
    assert [night.words for night in answered] == [
        sum(night.page is not None for night in answered[:number]) for number in range(3)
    ]
    assert answered[0] == silent[0]


def test_a_month_is_counted_without_a_plan_and_with_it(estate: Estate) -> None:
    without = [Heard(100.0, None, 0), Heard(None, None, 0), Heard(125.0, 130.0, 0), Heard(90.0, 130.0, 0)]
    planned = [Heard(None, None, 0), Heard(None, None, 0), Heard(100.0, 130.0, 0), Heard(110.0, 130.0, 0)]
    assert month_table([(without, planned)]).splitlines()[2:5] == [
        "| 2 nights as planned: nights with a page | 1 | 0 |",
        "| 2 nights on which it does not end: paged 10 min before full | 1 | 2 |",
        "| lead of their pages, p50 | 22 min | 25 min |",
    ]
    announced, month = draw_month(0, 2)
    assert 0.5 < announced / ENTRIES < 0.85
    assert [own.page for own in play_month(announced, month, estate, is_planned=True)] == [None, None]
