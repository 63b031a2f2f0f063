"""Alarms and predictions held against what happened: small cases worked by hand.

Unless said otherwise the filling begins at minute 100, its first 2192 is at 200 and its last at 210, of 600 minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.by_hand import alarm, line
from tests.tools.score.judge import JudgedStore, StorePages, WarnedFilling, judge, judge_pages
from tests.tools.score.samples import filling, predict, series
from tests.tools.score.series import Predictions
from tests.tools.score.truth import Filling
from twin.playback.pages import Alarm

SERIES = series(line(600, (0, 0), (600, 0)))
FILLING = filling(100, 200, 210)


def judged(
    *alarms: Alarm,
    fillings: tuple[Filling, ...] = (FILLING,),
    predictions: Predictions | None = None,
    withdrawing_counts: bool = True,
) -> JudgedStore:
    return judge(SERIES, fillings, alarms, predictions, withdrawing_counts=withdrawing_counts)


def warned(*alarms: Alarm, **others: Any) -> WarnedFilling:
    [item] = judged(*alarms, **others).warned
    return item


# -- alarms


def test_an_alarm_in_the_filling_that_stays_recalls_it():
    result = judged(alarm(170, 220))
    assert (result.alarms, result.false, result.withdrawn, result.early, result.undecided) == (1, 0, 0, 0, 0)
    assert result.warned[0].lead == 30 * 60
    assert result.warned[0].clear == 10 * 60
    assert result.warned[0].reopened == 0
    assert result.days == pytest.approx(600.5 / 1440)


@pytest.mark.parametrize(("opened", "false"), [(94.9, 1), (95, 0), (210, 0), (210.1, 1)])
def test_an_alarm_is_true_from_five_minutes_before_the_onset_to_the_last_2192(opened, false):
    assert judged(alarm(opened, 250)).false == false


def test_one_that_opened_earlier_and_stays_recalls_but_is_false():
    result = judged(alarm(20, 220))
    assert (result.false, result.early) == (1, 1)
    assert result.warned[0].lead == 105 * 60  # from five minutes before the onset


def test_without_an_alarm_nothing_is_recalled():
    assert warned().lead is None
    assert warned().clear is None


def test_an_alarm_that_opens_with_the_first_2192_has_not_warned():
    result = warned(alarm(200, 230))
    assert result.lead is None
    assert result.clear == 20 * 60


def test_a_moment_before_is_a_warning():
    assert warned(alarm(199.5, 230)).lead == 30


def test_an_alarm_withdrawn_before_the_2192_is_false_where_that_counts():
    result = judged(alarm(150, 160))
    assert (result.false, result.withdrawn, result.warned[0].lead) == (1, 1, None)
    result = judged(alarm(150, 160), withdrawing_counts=False)
    assert (result.false, result.withdrawn, result.warned[0].lead) == (0, 0, None)


def test_opening_again_in_a_filling_is_reported():
    assert warned(alarm(120, 130), alarm(150, 205), alarm(207, 240)).reopened == 2
    assert warned(alarm(80, 110), alarm(150, 240)).reopened == 1  # the first was open when it began
    assert warned(alarm(80, 90), alarm(150, 240)).reopened == 0


def test_an_alarm_without_a_filling_is_false():
    assert judged(alarm(20, 40), alarm(60, 80), fillings=()).false == 2


def test_one_still_open_at_the_end_is_undecided_if_it_opened_within_two_hours_of_it():
    result = judged(alarm(481, None), fillings=())
    assert (result.false, result.undecided) == (0, 1)
    result = judged(alarm(479, None), fillings=())
    assert (result.false, result.undecided) == (1, 0)


def test_each_filling_has_its_own_warning():
    first, second = judged(alarm(190, 230), alarm(380, 420), fillings=(FILLING, filling(350, 400, 405))).warned
    assert (first.lead, second.lead) == (10 * 60, 20 * 60)


def test_one_alarm_over_two_fillings_recalls_both():
    result = judged(alarm(190, 420), fillings=(FILLING, filling(350, 400, 405)))
    assert [item.lead for item in result.warned] == [10 * 60, 55 * 60]
    assert result.false == 0


# -- who fills


@pytest.mark.parametrize(("named", "right"), [("A", True), ("B", False), ("C", False), (None, None)])
def test_the_queue_named_first_should_be_the_one_that_fills(named, right):
    assert warned(alarm(150, 220, named)).named is right


def test_of_two_that_fill_alike_either_is_right():
    alike = filling(100, 200, 210, grown=(("A", 0.52), ("B", 0.48)))
    assert warned(alarm(150, 220, "B"), fillings=(alike,)).named is True


def test_where_nobody_warned_nobody_was_named():
    assert warned(alarm(200, 220, "A")).named is None


# -- predictions


def test_the_error_is_relative_to_the_time_that_was_left():
    predictions = predict((140, 10, 45, 90, 1), (170, 10, 36, 90, 1), (185, 10, 15, 90, 1), (195, 1, 3, 9, 1))
    errors = warned(predictions=predictions).errors
    assert errors == {60: pytest.approx(0.25), 30: pytest.approx(0.2), 15: 0.0, 5: pytest.approx(0.4)}


def test_a_word_ages_with_the_time_since():
    predictions = predict((169, 10, 31, 90, 1))
    assert warned(predictions=predictions).errors[30] == pytest.approx(0.0)


def test_no_word_lately_and_beyond_the_horizon_are_infinite_errors():
    errors = warned(predictions=predict((167, 10, 33, 90, 1), (185, np.inf, np.inf, np.inf, 0))).errors
    assert (errors[30], errors[15]) == (np.inf, np.inf)


def test_no_error_is_asked_for_before_the_filling_has_shown_itself():
    of_an_hour = (filling(139, 200, 210),)  # minute 140 is its first, minute 145.1 the end of its first tenth
    assert set(warned(fillings=of_an_hour, predictions=predict((0, 1, 1, 1, 0))).errors) == {30, 15, 5}
    of_six_minutes = (filling(193.9, 200, 210),)
    assert warned(fillings=of_six_minutes, predictions=predict((0, 1, 1, 1, 0))).errors == {}


def test_a_method_without_predictions_has_no_errors():
    result = judged(alarm(150, 220))
    assert (result.warned[0].errors, result.points) == ({}, [])


def test_intervals_are_looked_at_every_five_minutes_of_the_last_hour():
    result = judged(predictions=predict(*((minute, 20, 30, 40, 1) for minute in range(600))))
    assert [point.came / 60 for point in result.points] == list(range(5, 65, 5))
    assert {(point.p10, point.p50, point.p90) for point in result.points} == {(1200, 1800, 2400)}


def test_lines_say_a_time_for_an_interval():
    lines = Predictions(SERIES.times, np.zeros((len(SERIES.times), 3)))
    result = judged(predictions=lines)
    assert {(point.p10, point.p50, point.p90) for point in result.points} == {(0.0, 0.0, 0.0)}
    assert not result.chances.is_probability
    assert result.warned[0].errors[5] == 1.0


# -- pages


def pages(
    *pages: Alarm, fillings: tuple[Filling, ...] = (FILLING,), withdrawing_counts: bool = True, **fields: Any
) -> StorePages:
    level = series(line(600, (0, 0), (600, 0)), **fields)
    return judge_pages(level, fillings, pages, withdrawing_counts=withdrawing_counts)


@pytest.mark.parametrize(
    ("opened", "over", "false"),
    [(94.9, 250, 1), (95, 250, 0), (210, 250, 0), (210.1, 250, 1), (150, 160, 1), (20, 30, 1)],
)
def test_a_page_is_right_as_an_alarm_is_true(opened, over, false):
    assert pages(alarm(opened, over)).false == judged(alarm(opened, over)).false == false


def test_a_page_that_was_over_before_the_2192_is_right_where_withdrawing_does_not_count():
    assert pages(alarm(150, 160), withdrawing_counts=False).false == 0


def test_a_page_before_puts_got_2053_is_right():
    assert pages(alarm(20, 30), queue_full=(25,)).false == 0
    assert pages(alarm(20, 30), queue_full=(31,)).false == 1
    assert pages(alarm(20, None), queue_full=(590,)).false == 0


def test_a_page_at_the_end_is_undecided_and_neither_right_nor_false():
    counts = pages(alarm(500, None), fillings=())
    assert (counts.pages, counts.false, counts.undecided) == (1, 0, 1)


@pytest.mark.parametrize(
    ("opened", "over", "lead", "unheard"),
    [(170, 220, 1800, 0), (200, 230, None, 0), (210, 230, None, 0), (150, 199, None, 1), (211, 230, None, 1)],
)
def test_a_filling_is_late_without_a_page_before_it_and_unheard_without_one_at_all(opened, over, lead, unheard):
    counts = pages(alarm(opened, over))
    assert (counts.leads, counts.unheard) == ((lead,), unheard)


def test_a_store_is_called_again_within_ten_minutes_of_the_end():
    assert pages(alarm(20, 30), alarm(39.9, 50), alarm(60, 70)).again == 1
    assert pages(alarm(20, 40), alarm(30, 50)).again == 0  # one that is open has not ended
    assert pages(alarm(20, None)).again == 0


def test_messages_are_the_pages_and_their_escalations():
    counts = pages(Alarm(alarm(150, 0).opened, None, notices=3), alarm(300, 310))
    assert (counts.pages, counts.notices, counts.fillings) == (2, 4, 1)
