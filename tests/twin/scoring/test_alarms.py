"""Alarms from alerts and from conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.twin.scoring.samples import MINUTE, STORE, alarm, alert, record, time_at
from twin.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, UPDATED
from twin.records import PART, Filler
from twin.scoring.alarms import Alarm, from_alerts, from_condition, from_incidents, merge


def test_an_alert_is_an_alarm_from_its_opening_to_its_clearing():
    records = [
        alert(OPENED, 10, "x", fillers=(Filler("A", 0.7), Filler("B", 0.3))),
        alert(UPDATED, 12, "x", fillers=(Filler("B", 1.0),)),
        alert(CLEARED, 20, "x"),
        alert(OPENED, 30, "y"),
    ]
    assert from_alerts(records, STORE) == [alarm(10, 20, "A"), alarm(30, None)]


def test_only_foreseen_and_full_count_and_only_of_the_store():
    records = [
        alert(OPENED, 10, "x", condition="threshold"),
        alert(OPENED, 11, "y", condition="full"),
        alert(OPENED, 12, "z", store="QSG1/APP2"),
    ]
    assert from_alerts(records, STORE) == [alarm(11, None)]


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


# -- pages


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


def test_an_incident_that_gets_worse_tells_and_calls_nobody_again():
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
