"""Alarms from alerts and from conditions."""

from __future__ import annotations

import numpy as np

from tests.twin.scoring.samples import STORE, alarm, alert, time_at
from twin.conditions import CLEARED, OPENED, UPDATED
from twin.records import Filler
from twin.scoring.alarms import from_alerts, from_condition, merge


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
