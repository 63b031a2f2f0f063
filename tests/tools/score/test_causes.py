"""Causes of false alarms."""

from __future__ import annotations

import pytest

from tests.support.by_hand import alarm, line
from tests.tools.score.judge import Cause, cause_of, judge
from tests.tools.score.measures import measure
from tests.tools.score.samples import filling, series

TEETH = line(400, (0, 10), (60, 85), (70, 10), (130, 85), (140, 10), (400, 10))


def cause(usage: object, opened: float, cleared: float | None, *fillings: object, withdrawn: bool = False) -> str:
    return cause_of(series(usage), alarm(opened, cleared), fillings, withdrawn=withdrawn)  # type: ignore[arg-type]


def test_the_first_tooth_is_new_and_the_second_is_known() -> None:
    assert cause(TEETH, 50, 80) == Cause.NEW
    assert cause(TEETH, 120, 150) == Cause.KNOWN


def test_a_second_tooth_that_is_much_higher_is_new() -> None:
    assert cause(line(300, (0, 10), (60, 60), (70, 10), (130, 95), (140, 10), (300, 10)), 120, 150) == Cause.NEW


@pytest.mark.parametrize("level", [80, 60])
def test_a_store_that_stays_where_it_is_has_not_turned_back(level: float) -> None:
    assert cause(line(400, (0, 10), (60, 85), (70, level), (400, level)), 50, 300) == Cause.LEVEL


def test_an_alarm_that_was_open_at_the_2192_opened_too_early() -> None:
    assert cause(line(400, (0, 10), (300, 100), (400, 100)), 20, None, filling(250, 300, 310)) == Cause.EARLY


def test_one_that_was_cleared_in_the_filling_was_withdrawn() -> None:
    assert cause(TEETH, 50, 55, filling(40, 60, 61), withdrawn=True) == Cause.WITHDRAWN


def test_an_alarm_at_the_last_sample_has_a_cause() -> None:
    assert cause(line(60, (0, 10), (60, 85)), 60, None) == Cause.LEVEL


def test_false_alarms_are_counted_by_cause() -> None:
    judged = judge(series(TEETH), [], [alarm(50, 80), alarm(120, 150)], None, withdrawing_counts=True)
    assert judged.causes == (Cause.NEW, Cause.KNOWN)
    assert (judged.false, measure([[judged]]).causes) == (2, {Cause.NEW: 1, Cause.KNOWN: 1})
