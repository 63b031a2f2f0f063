"""Pages of the twin and of rules, and verdicts on them: small cases worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.by_hand import MINUTE, STORE, alarm, filling, line, record, series, time_at
from twin.base.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, UPDATED
from twin.playback.pages import (
    IN_MINUTES,
    Alarm,
    Filling,
    Verdict,
    from_condition,
    from_incidents,
    hold_for,
    is_heard,
    lead_of,
    merge,
    page_verdicts,
    predict_linear,
    static,
    static_pages,
    straight_line,
)
from twin.records import PART

SERIES = line(600, (0, 0), (600, 0))
FILLING = filling(100, 200, 210)


def verdict(page: Alarm, *fillings: Filling, withdrawing_counts: bool = True, **fields: Any) -> Verdict:
    """Return the verdict on a page about a store that fills at minute 200 of 600."""
    [own] = page_verdicts(series(SERIES, **fields), fillings, [page], withdrawing_counts=withdrawing_counts)
    return own


@pytest.mark.parametrize(
    ("opened", "over", "expected"),
    [
        (94.9, 250, Verdict.FALSE),
        (95, 250, Verdict.IN_TIME),
        (200, 250, Verdict.LATE),
        (210, 250, Verdict.LATE),
        (210.1, 250, Verdict.FALSE),
        (150, 160, Verdict.FALSE),
        (20, 30, Verdict.FALSE),
    ],
)
def test_a_page_is_right_from_five_minutes_before_the_onset_to_the_last_2192(
    opened: float, over: float, expected: Verdict
) -> None:
    assert verdict(alarm(opened, over), FILLING) == expected


def test_a_page_that_was_over_before_the_2192_is_right_where_withdrawing_does_not_count() -> None:
    assert verdict(alarm(150, 160), FILLING, withdrawing_counts=False) == Verdict.IN_TIME


def test_a_page_before_puts_got_2053_is_right() -> None:
    assert verdict(alarm(20, 30), FILLING, queue_full=(25,)) == Verdict.IN_TIME
    assert verdict(alarm(20, 30), FILLING, queue_full=(31,)) == Verdict.FALSE
    assert verdict(alarm(20, None), FILLING, queue_full=(590,)) == Verdict.IN_TIME


@pytest.mark.parametrize(("opened", "expected"), [(481, Verdict.UNDECIDED), (479, Verdict.FALSE)])
def test_one_still_open_at_the_end_is_undecided_if_it_opened_within_two_hours_of_it(
    opened: float, expected: Verdict
) -> None:
    assert verdict(alarm(opened, None)) == expected


@pytest.mark.parametrize(
    ("opened", "over", "lead", "heard"),
    [
        (170, 220, 1800, True),
        (199.5, 230, 30, True),
        (20, 220, 105 * 60, True),  # from five minutes before the onset
        (200, 230, None, True),
        (210, 230, None, True),
        (150, 199, None, False),
        (211, 230, None, False),
    ],
)
def test_a_filling_is_late_without_a_page_before_it_and_unheard_without_one_at_all(
    opened: float, over: float, lead: float | None, heard: bool
) -> None:
    assert (lead_of(FILLING, [alarm(opened, over)]), is_heard(FILLING, [alarm(opened, over)])) == (lead, heard)


def test_what_is_open_at_the_same_time_is_one_alarm():
    assert merge([alarm(20, 30, "B"), alarm(10, 20), alarm(40, 50)]) == [alarm(10, 30, "B"), alarm(40, 50)]
    assert merge([alarm(10, 60), alarm(20, 30)]) == [alarm(10, 60)]
    assert merge([alarm(10, None), alarm(20, 30)]) == [alarm(10, None)]


def test_a_condition_is_an_alarm_from_its_first_look_to_the_first_without():
    times = np.array([time_at(minute) for minute in range(6)])
    assert from_condition(times, np.array([0, 1, 1, 0, 0, 1], bool)) == [alarm(1, 3), alarm(5, None)]
    assert from_condition(times, np.zeros(6, bool)) == []
    assert from_condition(times, np.ones(6, bool)) == [alarm(0, None)]


def test_open_is_open_before_not_at_the_very_moment():
    assert alarm(10, 20).is_open(time_at(15))
    assert alarm(10, 20).is_open(time_at(20))
    assert not alarm(10, 20).is_open(time_at(10))
    assert not alarm(10, 20).is_open(time_at(21))


# -- incidents


def with_notices(page: Alarm, notices: int) -> Alarm:
    return replace(page, notices=notices)


def test_an_incident_is_one_page_from_its_call_to_the_end_of_its_last_page():
    records = [
        record(OPENED, 10, "t", INFO, incident="i", condition="threshold"),
        record(OPENED, 12, "f", INFO, incident="i"),
        record(UPDATED, 20, "f", incident="i"),
        record(OPENED, 30, "u", incident="i", role=PART, condition="cannot-expand"),
        record(CLEARED, 40, "f", incident="i"),
        record(CLEARED, 50, "u", incident="i", role=PART, condition="cannot-expand"),
        record(CLEARED, 60, "t", INFO, incident="i", condition="threshold"),
    ]
    assert from_incidents(records, STORE) == [alarm(20, 50)]
    assert from_incidents(records, STORE, watches=True) == [with_notices(alarm(10, 60), 2)]


def test_an_incident_that_gets_worse_notifies_and_pages_nobody_again():
    records = [
        record(OPENED, 10, "f", incident="i"),
        record(UPDATED, 15, "f", CRITICAL, incident="i"),
        record(UPDATED, 16, "f", CRITICAL, incident="i"),
        record(OPENED, 20, "full", FULL, incident="i", condition="full"),
        record(CLEARED, 25, "f", incident="i", role=PART),
        record(CLEARED, 30, "full", FULL, incident="i", condition="full"),
    ]
    assert from_incidents(records, STORE) == [with_notices(alarm(10, 30), 3)]


def test_an_incident_that_pages_again_before_it_closes_is_the_same_page():
    pieces = [(OPENED, 10, "a"), (CLEARED, 20, "a"), (OPENED, 25, "b"), (CLEARED, 40, "b")]
    records = [record(change, minutes, alert_id, incident="i") for change, minutes, alert_id in pieces]
    assert from_incidents(records, STORE) == [alarm(10, 40)]
    assert from_incidents(records[:3], STORE) == [alarm(10, None)]


def test_every_condition_of_the_store_pages_and_no_other_store_does():
    records = [
        record(OPENED, 10, "q", incident="i", condition="queue-full"),
        record(OPENED, 11, "x", incident="other", store="QSG1/APP2"),
        record(CLEARED, 12, "q", incident="i", condition="queue-full"),
        record(OPENED, 30, "s", incident="j", condition="scm-exhausted"),
        record(OPENED, 31, "w", INFO, incident="k", condition="drift"),
    ]
    assert from_incidents(records, STORE) == [alarm(10, 12), alarm(30, None)]


def test_each_alert_of_a_record_without_incidents_is_a_page():
    records = [record(OPENED, 10, "a"), record(OPENED, 11, "b"), record(CLEARED, 20, "a"), record(CLEARED, 21, "b")]
    assert from_incidents(records, STORE) == [alarm(10, 20), alarm(11, 21)]


def test_what_is_calm_for_less_than_ten_minutes_is_one_page():
    alarms = [alarm(10, 20), alarm(30, 40), alarm(50.1, None)]
    assert merge(alarms, 10 * MINUTE) == [alarm(10, 40), alarm(50.1, None)]


# -- lines


STEADY = line(200, (0, 0), (200, 100))  # half a point a minute


def minutes(alarms: list[Alarm]) -> list[tuple[float, float | None]]:
    begin = time_at(0)
    return [
        ((item.opened - begin) / 60e6, None if item.cleared is None else (item.cleared - begin) / 60e6)
        for item in alarms
    ]


def test_a_line_opens_at_its_percentage_and_clears_below_it():
    usage = line(100, (0, 60), (40, 80), (60, 90), (100, 70))
    assert minutes(static(series(usage), 80.0)) == [(40.0, 80.5)]


def test_a_page_of_a_line_is_over_two_points_below_it_and_the_next_one_comes_after_ten_minutes():
    near = line(100, (0, 60), (40, 80), (50, 78.5), (60, 82), (70, 77), (75, 82), (80, 70), (91, 70), (100, 88))
    assert [opened for opened, _ in minutes(static(series(near), 80.0))] == [40.0, 54.5, 73.0, 96.0]
    assert minutes(static_pages(series(near), 80.0)) == [(40.0, 77.0), (96.0, None)]


def test_a_store_between_the_line_and_two_points_below_has_not_passed_it():
    assert static_pages(series(line(60, (0, 79), (60, 79))), 80.0) == []


def test_a_line_is_over_whatever_resource_is_above_it():
    low, high = line(60, (0, 10), (60, 20)), line(60, (0, 70), (60, 90))
    assert minutes(static(series(low, low, high), 80.0)) == [(30.0, None)]
    assert static(series(low, low, high), 80.0, structure_only=True) == []


def test_the_straight_line_of_a_line_is_the_line():
    level, slope = predict_linear(STEADY, 360.0)
    assert level[1:] == pytest.approx(STEADY[1:])
    assert slope[1:] == pytest.approx(0.5 / 60)
    assert slope[0] == 0  # one sample is no line


def test_the_straight_line_is_that_of_least_squares():
    usage = np.random.default_rng(3).uniform(0, 100, 60)
    level, slope = predict_linear(usage, 360.0)
    for last in (1, 5, 40, 59):
        first = max(0, last - 12)
        fitted = np.polyfit((np.arange(first, last + 1) - last) * 30.0, usage[first : last + 1], 1)
        assert slope[last] == pytest.approx(fitted[0])
        assert level[last] == pytest.approx(fitted[1])


def test_a_condition_counts_once_it_has_held():
    condition = np.array([1, 1, 0, 1, 1, 1, 1, 0], bool)
    assert hold_for(condition, 60.0).tolist() == [False, False, False, False, False, True, True, False]
    assert hold_for(condition, 0.0).tolist() == condition.tolist()


def test_in_minutes_they_wait_a_minute():
    [alarm] = minutes(straight_line(series(STEADY), IN_MINUTES))
    assert alarm == (177.5, None)  # more than full 24 minutes later from 176.5 on, and a minute
