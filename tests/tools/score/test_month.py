"""Ordinary months (tests/tools/score/month.py): their rhythm, which of them fill, and what is counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from tests.support.by_hand import STORE, alarm, line
from tests.tools.score.judge import judge_pages
from tests.tools.score.laws import SLOTS
from tests.tools.score.month import DAY, DAYS, CountedMonth, draw_month, month_of, readme_line, section, total_backlog
from tests.tools.score.recordings import Recorded
from tests.tools.score.samples import filling, series
from tests.tools.score.score import METHODS
from twin.base.errors import UsageError

CASE = Recorded(
    number=0, split="test", scenario="month", class_="month", store=STORE, filler="A", story="", stem="month-0000"
)
MONTH = DAYS * DAY


def load(days: int, seed: int = 0) -> str:
    """Return a file of counts by the hour, half as many on Saturdays and Sundays."""
    rng, begin = np.random.default_rng(seed), datetime.fromisoformat("2015-03-03")
    rows = []
    for slot in range(days * SLOTS + 1):
        time = begin + timedelta(minutes=5 * slot)
        count = (100 + 80 * np.sin(2 * np.pi * time.hour / 24)) * (0.5 if time.weekday() > 4 else 1.0)
        rows.append(f"{time},{count + rng.integers(5):.0f}")
    return "\n".join(["timestamp,value", *rows]) + "\n"


def test_a_month_keeps_the_rhythm_of_day_and_week() -> None:
    counts = month_of(load(16), np.random.default_rng(1))
    assert counts.size == MONTH
    by_hour = counts.reshape(DAYS, 24, 60).mean(axis=2)
    assert set(by_hour.argmax(axis=1).tolist()) == {6}
    days = by_hour.mean(axis=1)
    weekends = [1, 2, 8, 9, 15, 16, 22, 23, 29]  # the month begins on a Friday
    assert days[weekends].max() < 0.7 * np.delete(days, weekends).min()
    with pytest.raises(UsageError, match="5 days; expected: a week"):
        month_of(load(5), np.random.default_rng(1))


def test_every_third_store_is_full_once_and_the_same_number_is_the_same_month() -> None:
    texts = {name: load(16, seed) for seed, name in enumerate("AB")}
    for number in range(4):
        month, again = (draw_month(number, texts, np.random.default_rng(number)) for _ in range(2))
        levels = total_backlog(month.parts)
        assert np.array_equal(levels, total_backlog(again.parts))
        held = levels.max() / month.reach
        assert (month.reach > 1) == (number == 1)
        if number == 1:
            begin, end = month.parts[0].odd or (0, 0)
            full = np.flatnonzero(levels > held)
            assert begin < full.min() and full.max() < end + DAY
            assert levels[:begin].max() < 0.9 * held


def month(pages: int, *, fills: bool) -> CountedMonth:
    """Return a month with pages a day apart; where it fills, the first is the right one."""
    levels = series(line(MONTH, (0, 20), (MONTH, 20)))
    filled = [filling(100, 200, 210)] if fills else []
    alarms = [alarm(150 + DAY * day, 220 + DAY * day) for day in range(pages)]
    judged = [judge_pages(levels, filled, alarms, withdrawing_counts=True)]
    return CountedMonth(CASE, dict.fromkeys(METHODS, judged), ["a page"] * pages, 1_000)


def test_pages_are_counted_by_month_and_those_for_nothing_apart() -> None:
    months = [month(2, fills=True), month(0, fills=False), month(1, fills=False), month(0, fills=False)]
    text = section(months, "the command")
    rows = {cells[1].strip(): cells[2].strip() for row in text.splitlines() if len(cells := row.split("|")) > 4}
    assert (rows["pages a store and month"], rows["of these for nothing"]) == ("0.75", "0.50")
    assert rows["pages a store in which nothing fills"] == "0.33"
    assert (rows["fillings"], rows["fillings unheard"]) == ("1", "0")
    assert "4 stores of 30 days each, 1,000 events a month" in text
    assert "a store has 0.75 pages, 0.50 of them for nothing" in readme_line(months)
