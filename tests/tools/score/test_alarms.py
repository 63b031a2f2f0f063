"""Alarms from alerts."""

from __future__ import annotations

from tests.support.by_hand import STORE, alarm
from tests.tools.score.alarms import from_alerts
from tests.tools.score.samples import alert
from twin.base.conditions import CLEARED, OPENED, UPDATED
from twin.records import Filler


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
