"""Incidents as readers of the alerts topic see them: when they call, get worse, come back, are over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.base.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, PAGE, UPDATED, WARNING, WATCH, Condition
from twin.records import (
    PART,
    ROOT,
    URGENCIES,
    AlertData,
    AlertRecord,
    Change,
    Incident,
    IncidentRole,
    Incidents,
    incidents,
    urgency_of,
)

STORE = "QSG1/APP1"
A, B = f"{STORE}/1", f"{STORE}/2"


def record(
    condition: str,
    severity: str = INFO,
    role: str = ROOT,
    *,
    change: str = UPDATED,
    incident: str = A,
    store: str = STORE,
) -> AlertRecord:
    """Return a record of the only alert of a condition."""
    alert_id = f"{store}/{condition}"
    data = AlertData(
        alert_id=alert_id,
        severity=severity,
        store=store,
        resource="entries",
        condition=condition,
        time="2026-11-20T12:00:00.000000Z",
        usage_pct=80.0,
        status="open",
        incident=IncidentRole(id=incident, role=role, opened="2026-11-20T12:00:00.000000Z"),
    )
    return AlertRecord(id=alert_id, type=f"mqtwin.alert.{change}", subject=store, time=data.time, data=data)


def changes(*records: AlertRecord, into: Incidents | None = None) -> list[tuple[str, Change]]:
    """Return (id, change) of every change of the records."""
    those = Incidents() if into is None else into
    return [(incident.id, change) for alert in records for incident, change, _ in those.take(alert)]


WATCHED = record("threshold", change=OPENED)
FORECAST = (record("threshold", role=PART), record("full-forecast", change=OPENED))
PAGED = record("full-forecast", WARNING)
WORSE = record("full-forecast", CRITICAL)
FILLED = (record("full-forecast", CRITICAL, PART), record("full", FULL, change=OPENED))
FORECAST_OVER = record("full-forecast", CRITICAL, PART, change=CLEARED)
FULL_OVER = record("full", FULL, change=CLEARED)
LAST = (record("threshold"), record("threshold", change=CLEARED))
STORY = (WATCHED, *FORECAST, PAGED, WORSE, *FILLED, FORECAST_OVER, FULL_OVER, *LAST)


def test_an_incident_pages_once_reports_each_escalation_and_is_over_once() -> None:
    notices = [change for _, change in changes(*STORY) if change is not Change.UPDATED]
    assert notices == [Change.WATCHED, Change.PAGED, Change.ESCALATED, Change.ESCALATED, Change.OVER]


def test_people_are_notified_of_the_page_of_escalations_and_of_the_end() -> None:
    those = Incidents()
    notices = [change for alert in STORY for change in those.take(alert) if change.is_notice]
    assert [notice.record.data.severity for notice in notices] == [WARNING, CRITICAL, FULL, FULL]
    assert [notice.record.is_open for notice in notices] == [True, True, True, False]


def test_a_watch_that_ends_is_over_and_nobody_is_notified() -> None:
    those = Incidents()
    story = [those.take(alert)[-1] for alert in (WATCHED, record("threshold", change=CLEARED))]
    assert [change.change for change in story] == [Change.WATCHED, Change.OVER]
    assert not any(change.is_notice for change in story)


def test_the_root_is_the_open_root_and_then_the_one_that_cleared_last() -> None:
    those = Incidents()
    roots = []
    for alert in STORY:
        those.take(alert)
        incident = those.by_id[A]
        roots.append((incident.root.data.condition, len(incident.parts), incident.root.is_open))
    assert roots[0] == ("threshold", 0, True)
    assert roots[2:5] == [("full-forecast", 1, True)] * 3
    assert roots[6:8] == [("full", 2, True), ("full", 1, True)]
    assert roots[8] == ("full", 1, False)
    assert roots[-1] == ("threshold", 0, False)


def test_a_page_that_returns_in_its_incident_notifies_those_who_were_paged() -> None:
    again = record("full", FULL, change=OPENED)
    assert changes(PAGED, record("full-forecast", WARNING, change=CLEARED), record("full-forecast", WARNING)) == [
        (A, Change.PAGED),
        (A, Change.OVER),
        (A, Change.REOPENED),
    ]
    assert changes(PAGED, record("full-forecast", WARNING, change=CLEARED), again)[-1] == (A, Change.ESCALATED)


def test_an_alert_that_passes_to_the_next_incident_ends_the_former_without_a_word() -> None:
    those = Incidents()
    doubt = record("in-doubt", WARNING, change=OPENED)
    passed = record("in-doubt", WARNING, PART, incident=B)
    full = record("full", FULL, change=OPENED, incident=B)
    notices = [change for alert in (doubt, passed, full) for change in those.take(alert)]
    assert [(alert.incident.id, alert.change) for alert in notices] == [
        (A, Change.PAGED),
        (A, Change.OVER),
        (B, Change.WATCHED),
        (B, Change.PAGED),
    ]
    assert [alert.is_notice for alert in notices] == [True, False, False, True]
    assert list(those.by_id) == [B] and len(those.by_id[B].alerts) == 2


def test_a_record_without_an_incident_is_an_incident_of_its_own() -> None:
    data = msgspec.structs.replace(PAGED.data, incident=IncidentRole(id="", role=ROOT, opened=""))
    assert changes(msgspec.structs.replace(PAGED, data=data)) == [(PAGED.data.alert_id, Change.PAGED)]


def test_open_incidents_are_listed_the_most_urgent_first() -> None:
    those = Incidents()
    changes(
        *(record("full", severity, incident=severity, store=severity) for severity in (INFO, FULL, WARNING)), into=those
    )
    changes(record("full", CRITICAL, change=CLEARED, incident="over", store="over"), into=those)
    assert [incident.id for incident in those.open()] == [FULL, WARNING, INFO]


def test_an_incident_over_is_forgotten_when_its_store_has_another() -> None:
    those = Incidents()
    changes(*STORY, into=those)
    assert list(those.by_id) == [A]
    changes(record("full-forecast", change=OPENED, incident=B), into=those)
    assert list(those.by_id) == [B]


def test_a_deleted_key_takes_its_alert_away() -> None:
    those = Incidents()
    changes(*FORECAST, into=those)
    those.forget_alert(FORECAST[1].data.alert_id)
    assert [alert.data.condition for alert in those.by_id[A].alerts.values()] == ["threshold"]
    those.forget_alert(FORECAST[0].data.alert_id)
    those.forget_alert("unknown")
    assert those.by_id == {}


def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents, "_MAX_INCIDENTS", 3)
    those = Incidents()
    changes(*(record("full", FULL, incident=name, store=name) for name in "abcde"), into=those)
    assert list(those.by_id) == ["c", "d", "e"]
    changes(record("full", FULL, change=CLEARED, incident="a", store="a"), into=those)  # of one that is forgotten


def test_a_queue_at_its_maximum_is_a_page_and_no_full_store() -> None:
    assert URGENCIES[urgency_of(record(Condition.QUEUE_FULL, FULL).data)] == PAGE
    assert URGENCIES[urgency_of(record("full", FULL).data)] == FULL
    assert URGENCIES[urgency_of(record("threshold", INFO).data)] == WATCH


@pytest.mark.parametrize("order", list(permutations((*FILLED, record("threshold", role=PART)))))
def test_a_compacted_topic_gives_the_open_incident_in_any_order(order: Sequence[AlertRecord]) -> None:
    those = Incidents()
    changes(*order, into=those)
    (incident,) = those.open()
    assert (incident.root.data.condition, len(incident.parts), incident.urgency) == ("full", 2, 3)


def test_a_compacted_topic_remembers_by_its_cleared_alerts_how_bad_it_was() -> None:
    those = Incidents()
    notices = changes(FULL_OVER, record("full-forecast", CRITICAL), into=those)
    assert notices == [(A, Change.UPDATED), (A, Change.REOPENED)]
    assert those.by_id[A].urgency == URGENCIES.index(FULL)


@given(
    st.lists(
        st.builds(
            record,
            st.sampled_from(["threshold", "full-forecast", "full", "in-doubt"]),
            st.sampled_from([INFO, WARNING, CRITICAL, FULL]),
            st.sampled_from([ROOT, PART]),
            change=st.sampled_from([OPENED, UPDATED, CLEARED]),
            incident=st.sampled_from([A, B]),
        ),
        max_size=30,
    )
)
def test_whatever_comes_an_incident_calls_once_and_holds_its_open_alerts(records: Iterable[AlertRecord]) -> None:
    those = Incidents()
    latest: dict[str, AlertRecord] = {}
    paged: list[Incident] = []
    for alert in records:
        latest[alert.data.alert_id] = alert
        for incident, change, _ in those.take(alert):
            if change is Change.PAGED:
                assert incident not in paged
                paged.append(incident)
            assert change is not Change.ESCALATED or incident.urgency > 1
            assert incident.is_over or incident.root.is_open or incident.ended is not None
        still_open = {alert_id for alert_id, alert in latest.items() if alert.is_open}
        held = [alert_id for incident in those.by_id.values() for alert_id in incident.alerts]
        assert sorted(held) == sorted(still_open)
        assert all(latest[key].data.incident.id == incident.id for incident in those.open() for key in incident.alerts)


def recovered(alert: AlertRecord) -> AlertRecord:
    """Return a record of an incident whose puts succeed again."""
    incident = msgspec.structs.replace(alert.data.incident, recovered="2026-11-20T12:20:00.000000Z")
    return msgspec.structs.replace(alert, data=msgspec.structs.replace(alert.data, incident=incident))


def test_puts_that_succeed_again_are_reported_once_and_what_gets_worse_then_is_reported_anew() -> None:
    those = Incidents()
    changes(*STORY[:7], into=those)
    eased = (recovered(record("full", WARNING)), recovered(record("full", WARNING)))
    assert changes(*eased, into=those) == [(A, Change.RECOVERED), (A, Change.UPDATED)]
    assert those.by_id[A].urgency == URGENCIES.index(PAGE)
    assert changes(recovered(record("full", FULL)), into=those) == [(A, Change.ESCALATED)]
    over = (recovered(FORECAST_OVER), recovered(FULL_OVER))
    assert changes(*over, into=those)[-1] == (A, Change.OVER)


def test_who_was_not_notified_that_puts_fail_is_not_notified_that_they_succeed() -> None:
    notices = [change.change for change in Incidents().take(recovered(record("full", WARNING))) if change.is_notice]
    assert notices == [Change.PAGED]
