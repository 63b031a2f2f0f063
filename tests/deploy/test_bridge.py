"""The bridge to Alertmanager, against a fake server."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from deploy import bridge as delivery
from deploy.bridge import (
    AlertmanagerBridge,
    PostableAlert,
    SentIncidents,
    kind_of,
)
from deploy.cli import main
from streams.kafka.topic_reader import AlertEntry, Latest
from streams.kafka.topics import Topics
from tests.support.alert_entries import OPENED_US, Receiver, alert, entry, topic_record
from tests.support.processes import free_port
from tests.support.surfaces import wait_until
from twin.base.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, UPDATED, WARNING
from twin.records import PART, ROOT, IncidentRole

NOW_S = OPENED_US / 1e6 + 600


def applied(*entries: AlertEntry) -> SentIncidents:
    incidents = SentIncidents()
    for record in entries:
        incidents.apply(record)
    return incidents


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def ends(payload: list[PostableAlert]) -> dict[str, float]:
    """Return when each alert ends, by urgency."""
    return {sent.labels["urgency"]: seconds(sent.ends_at) for sent in payload}


def ends_by_site(payload: list[PostableAlert]) -> dict[str, bool]:
    """Return whether each alert has ended, by site."""
    return {sent.labels.get("site", ""): seconds(sent.ends_at) < NOW_S + 70 for sent in payload}


def role(role: str = ROOT, id_: str = "QSG1/APP1/1") -> IncidentRole:
    return IncidentRole(id=id_, role=role, opened="2026-11-20T01:33:40.000000Z")


def labels(entry: AlertEntry) -> dict[str, str]:
    """Return the labels of an incident of one alert."""
    (sent,) = applied(entry).payload(NOW_S)
    return sent.labels


# --- labels and annotations ------------------------------------------------------------------------------------------


def test_labels_are_identity_and_annotations_are_news() -> None:
    record = entry().alert.data
    (sent,) = applied(entry(incident=role())).payload(NOW_S)
    assert sent.labels == {
        "alertname": "MqtwinIncident",
        "incident": "QSG1/APP1/1",
        "kind": "structure",
        "platform": "ZOS",
        "qsg": "QSG1",
        "severity": "warning",
        "store": "QSG1/APP1",
        "structure": "APP1",
        "urgency": "page",
    }
    texts = sent.annotations
    assert texts["alert_id"] == record.alert_id and texts["cause"] == record.cause
    assert texts["summary"] == "QSG1/APP1 smds/QM01: full-forecast"
    assert (texts["condition"], texts["resource"]) == ("full-forecast", "smds/QM01")
    assert texts["actions"].splitlines() == [
        "Start more getters on ORDERS",
        "  1. See when it was last got from: DISPLAY QSTATUS(ORDERS) TYPE(QUEUE) ALL",
        "  risk: none",
        "Add volumes",
    ]
    assert (texts["usage"], texts["full_probability"]) == ("79.9 %", "0.69")
    assert (texts["time_to_full_p10"], texts["time_to_full_p90"]) == ("1316 s", "2120 s")
    assert "parts" not in texts


def test_no_label_changes_while_the_root_changes_and_the_parts_are_listed() -> None:
    incidents = applied(entry(severity=CRITICAL, incident=role()))
    (before,) = incidents.payload(NOW_S)
    silent = {"condition": "source-silent", "resource": "source/QM01", "severity": INFO}
    incidents.apply(entry(**silent, incident=role(PART)))
    incidents.apply(entry(UPDATED, 1, severity=CRITICAL, incident=role(PART)))
    incidents.apply(entry(condition="in-doubt", resource="units", severity=CRITICAL, incident=role()))
    (after,) = incidents.payload(NOW_S)
    assert after.labels == before.labels
    assert after.annotations["summary"] == "QSG1/APP1 units: in-doubt"
    assert after.annotations["parts"] == "smds/QM01: full-forecast\nsource/QM01: source-silent"


@pytest.mark.parametrize(
    ("severity", "expected", "urgency"),
    [
        (INFO, "info", "watch"),
        (WARNING, "warning", "page"),
        (CRITICAL, "critical", "critical"),
        (FULL, "critical", "full"),
    ],
)
def test_the_severity_is_that_of_the_urgency(severity: str, expected: str, urgency: str) -> None:
    of_full = labels(entry(condition="full", severity=severity))
    assert (of_full["severity"], of_full["urgency"]) == (expected, urgency)


def test_resources_that_passed_a_line_together_are_one_summary() -> None:
    (sent,) = applied(entry(resources=("smds/QM01", "elements"))).payload(NOW_S)
    assert sent.annotations["summary"] == "QSG1/APP1 smds/QM01, elements: full-forecast"


def test_the_brief_of_the_root_is_its_summary() -> None:
    brief = (
        "full ~02:01 UTC (in 20 min): SMDS blocks of QM01",
        "ORDERS: no get for 71 min",
        "DISPLAY QSTATUS(ORDERS) ALL",
    )
    (sent,) = applied(entry(brief=brief)).payload(NOW_S)
    assert (sent.annotations["summary"], sent.annotations["brief"]) == (brief[0], "\n".join(brief))


def test_puts_that_succeed_again_end_the_alert_that_they_fail_and_fire_a_page() -> None:
    incidents = applied(entry(written_s=NOW_S - 20, condition="full", severity=FULL, incident=role()))
    eased = msgspec.structs.replace(role(), recovered="2026-11-20T02:55:10.000000Z")
    brief = ("puts succeed again: SMDS blocks of QM01",)
    for number in (1, 2):
        incidents.apply(
            entry(
                UPDATED, number, written_s=NOW_S - 10, condition="full", severity=WARNING, incident=eased, brief=brief
            )
        )
    payload = incidents.payload(NOW_S)
    assert ends(payload)["full"] <= NOW_S < ends(payload)["page"]
    assert len(payload) == 2
    (page,) = (sent for sent in payload if sent.labels["urgency"] == "page")
    assert page.annotations["summary"] == brief[0]


@pytest.mark.parametrize(
    ("store", "resource", "kind"),
    [
        ("QM01/PS04", "pages", "page_set"),
        ("QMD1/INVOICES", "file", "queue_file"),
        ("CF01", "scm", "coupling_facility"),
        ("QSG1/APP1", "scm", "structure"),
        ("QSG1/APP1", "elements", "structure"),
        ("UC01", "capacity", "uniform_cluster"),
        ("QM01/PS04", "source/QM01", ""),
    ],
)
def test_the_kind_of_a_store_follows_from_the_resource(store: str, resource: str, kind: str) -> None:
    assert kind_of(store, resource) == kind


def test_a_page_set_has_the_labels_of_mq_prometheus() -> None:
    of_page_set = labels(entry(store="QM01/PS04", resource="pages"))
    assert (of_page_set["qmgr"], of_page_set["pageset"], of_page_set["platform"]) == ("QM01", "4", "ZOS")
    assert "structure" not in of_page_set and "qsg" not in of_page_set


def test_the_site_is_that_of_the_alerts_unless_it_is_given() -> None:
    assert "site" not in labels(entry())
    assert labels(entry(site="prod"))["site"] == "prod"
    incidents = SentIncidents("mine")
    incidents.apply(entry(site="prod"))
    assert incidents.payload(NOW_S)[0].labels["site"] == "mine"


def test_a_site_that_gets_its_name_while_an_incident_is_open_has_one_alert() -> None:
    incidents = applied(entry(written_s=NOW_S), entry(UPDATED, 1, site="prod", written_s=NOW_S + 60))
    assert ends_by_site(incidents.payload(NOW_S + 70)) == {"prod": False, "": True}


# --- what is sent ----------------------------------------------------------------------------------------------------


def test_an_open_alert_ends_in_an_hour_unless_it_is_sent_again() -> None:
    """A bridge that dies does not end an incident before somebody can start it again."""
    incidents = applied(entry(written_s=NOW_S))
    (sent,) = incidents.payload(NOW_S + 1000)
    assert seconds(sent.starts_at) == OPENED_US / 1e6
    assert seconds(sent.ends_at) == NOW_S + 1000 + 3600


def test_a_cleared_alert_is_sent_for_five_minutes_with_its_end() -> None:
    incidents = applied(entry(written_s=NOW_S))
    assert incidents.payload(NOW_S)
    incidents.apply(entry(CLEARED, 1, written_s=NOW_S + 360))
    for later_s in (360, 659):
        (sent,) = incidents.payload(NOW_S + later_s)
        assert seconds(sent.ends_at) == NOW_S + 360
    assert incidents.payload(NOW_S + 661) == []


def test_what_ended_while_no_bridge_ran_is_sent_by_the_next_one() -> None:
    """Alertmanager has it as open, for up to an hour."""
    for dead_s, count in ((3500, 1), (3700, 0)):
        incidents = applied(entry(written_s=NOW_S), entry(CLEARED, 1, written_s=NOW_S + 60))
        assert len(incidents.payload(NOW_S + 60 + dead_s)) == count
        assert incidents.payload(NOW_S + 60 + dead_s + 301) == []


def test_the_end_of_an_incident_does_not_end_the_one_that_comes_back() -> None:
    second_us = OPENED_US + 120_000_000
    incidents = applied(
        entry(written_s=NOW_S, incident=role()),
        entry(CLEARED, 1, written_s=NOW_S + 60, incident=role()),
        entry(opened_us=second_us, written_s=NOW_S + 120, incident=role()),
    )
    (sent,) = incidents.payload(NOW_S + 130)
    assert sent.annotations["alert_id"].endswith(str(second_us))
    assert seconds(sent.ends_at) == NOW_S + 130 + 3600
    incidents.apply(
        entry(CLEARED, 2, written_s=NOW_S + 140, incident=role())
    )  # the first one, after a crash of the job
    (sent,) = incidents.payload(NOW_S + 150)
    assert seconds(sent.ends_at) == NOW_S + 150 + 3600


def test_an_escalation_ends_the_alert_of_the_lower_urgency_and_nothing_goes_down() -> None:
    incidents = applied(entry(severity=INFO, written_s=NOW_S), entry(UPDATED, 1, written_s=NOW_S + 50))
    assert ends(incidents.payload(NOW_S + 60)) == {"page": NOW_S + 3660, "watch": NOW_S + 50}
    incidents.apply(entry(UPDATED, 2, severity=CRITICAL, written_s=NOW_S + 70))
    incidents.apply(entry(UPDATED, 3, written_s=NOW_S + 75))
    assert ends(incidents.payload(NOW_S + 80)) == {
        "critical": NOW_S + 80 + 3600,
        "page": NOW_S + 70,
        "watch": NOW_S + 50,
    }
    incidents.apply(entry(CLEARED, 4, written_s=NOW_S + 90))
    assert ends(incidents.payload(NOW_S + 95)) == {"critical": NOW_S + 90, "page": NOW_S + 70, "watch": NOW_S + 50}


def test_an_incident_is_over_when_no_page_is_left_whatever_watches_are() -> None:
    incidents = applied(
        entry(written_s=NOW_S, incident=role()),
        entry(condition="threshold", severity=INFO, written_s=NOW_S, incident=role(PART)),
        entry(CLEARED, 1, written_s=NOW_S + 60, incident=role()),
        entry(UPDATED, 1, condition="threshold", severity=INFO, written_s=NOW_S + 60, incident=role()),
    )
    assert ends(incidents.payload(NOW_S + 70)) == {"page": NOW_S + 60}


def test_after_a_restart_the_kind_of_an_incident_stays_what_was_known_first() -> None:
    incidents = applied(entry(condition="queue-full", resource="queue/ORDERS", incident=role()))
    incidents.apply(entry(incident=role(PART)))
    (sent,) = incidents.payload(NOW_S)
    assert "kind" not in sent.labels


def test_an_alert_of_a_clock_ahead_does_not_start_after_its_end() -> None:
    """Alertmanager refuses such an alert, and the whole request with it."""
    ahead_us = int((NOW_S + 10_000) * 1e6)
    (sent,) = applied(entry(opened_us=ahead_us, written_s=NOW_S)).payload(NOW_S)
    assert seconds(sent.starts_at) == NOW_S


# --- the latest records ----------------------------------------------------------------------------------------------


def test_the_fold_ignores_repeated_records() -> None:
    latest = Latest(Topics())
    now_s = wait_until(lambda: entry().written_s)
    for change, number in ((OPENED, 0), (UPDATED, 1), (OPENED, 0), (CLEARED, 2), (UPDATED, 1)):
        latest.apply(topic_record("mqtwin.alerts", alert(change, number).record(), now_s))
    (kept_entry,) = latest.alerts.values()
    assert not kept_entry.is_open
    latest.apply(topic_record("mqtwin.alerts", None, key=kept_entry.alert.data.alert_id))
    assert latest.alerts == {}


def test_an_alert_cleared_long_ago_is_forgotten() -> None:
    latest = Latest(Topics(), keep_cleared_s=300)
    now_s = entry().written_s
    latest.apply(topic_record("mqtwin.alerts", alert().record(), now_s - 500))
    assert latest.apply(topic_record("mqtwin.alerts", alert(CLEARED, 1).record(), now_s - 400)) is not None
    assert latest.alerts == {}
    latest.apply(topic_record("mqtwin.alerts", alert(CLEARED, 1).record(), now_s - 299.5))
    assert len(latest.alerts) == 1
    wait_until(lambda: latest.forget_cleared() or not latest.alerts)


def test_records_that_are_neither_states_nor_alerts_are_counted() -> None:
    latest = Latest(Topics())
    for topic, value in (("mqtwin.alerts", b"{}"), ("mqtwin.state", b"\xff"), ("mqtwin.state", b'{"store": 1}')):
        latest.apply(topic_record(topic, value))
    assert latest.unreadable == 3 and not latest.alerts and not latest.states


# --- delivery --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_MIN_WAIT_S", 0.01)
    monkeypatch.setattr(delivery, "_MAX_WAIT_S", 0.02)


def test_every_peer_gets_every_alert_and_gets_it_again() -> None:
    with (
        Receiver.run() as first,
        Receiver.run() as second,
        AlertmanagerBridge([first.url, second.url], {"Authorization": "Bearer hush"}, resend_s=0.1) as bridge,
    ):
        bridge.apply([entry()])
        for peer in (first, second):
            wait_until(lambda peer=peer: len(peer.requests) >= 3)
            path, headers, _ = peer.requests[0]
            assert (path, headers["authorization"]) == ("/api/v2/alerts", "Bearer hush")
            assert {sent[0]["annotations"]["condition"] for sent in peer.json()} == {"full-forecast"}


def test_a_peer_that_is_away_does_not_hold_up_the_others_and_gets_what_is_open_then() -> None:
    port = free_port()
    with (
        Receiver.run() as present,
        AlertmanagerBridge([f"http://127.0.0.1:{port}", present.url], resend_s=60) as bridge,
    ):
        bridge.apply([entry(), entry(condition="threshold")])
        wait_until(lambda: present.requests)
        bridge.apply([entry(CLEARED, 1)])
        wait_until(lambda: len(present.requests) >= 2)
        with Receiver.run(port) as returned:
            wait_until(lambda: returned.requests)
            (sent,) = returned.json()
    is_open = {alert["annotations"]["condition"]: seconds(alert["endsAt"]) > entry().written_s for alert in sent}
    assert is_open == {"threshold": True, "full-forecast": False}


@pytest.mark.parametrize("refusal", [400, 302])
def test_errors_of_the_server_are_tried_again_and_refusals_are_not(refusal: int) -> None:
    with Receiver.run(0, 500, 503, 429) as peer, AlertmanagerBridge([peer.url], resend_s=60) as bridge:
        bridge.apply([entry()])
        wait_until(lambda: len(peer.requests) == 4)
        peer.statuses = [refusal]
        bridge.apply([entry(UPDATED, 1)])
        wait_until(lambda: len(peer.requests) == 5)
        time.sleep(2 * delivery._MIN_WAIT_S)  # in which it would be tried again
        assert len(peer.requests) == 5
        bridge.apply([entry(UPDATED, 2)])  # the bridge still delivers
        wait_until(lambda: len(peer.requests) == 6)
    causes = [sent["annotations"]["cause"] for (sent,) in peer.json()]
    assert causes == [f"SMDS blocks of QM01: record {number}." for number in (0, 0, 0, 0, 1, 2)]


def test_a_record_written_in_another_unit_of_time_does_not_end_a_sender() -> None:
    """A producer may write any time with a record, such as nanoseconds, and any time of opening into an id."""
    beyond = entry(written_s=9e14, condition="threshold")
    early = entry(written_s=-9e14, condition="drift")
    huge = entry(alert_id=f"QSG1/APP1/full/smds/QM01/{'9' * 400}", condition="full")
    with Receiver.run() as peer, AlertmanagerBridge([peer.url], resend_s=60) as bridge:
        bridge.apply([beyond, early, huge])
        wait_until(lambda: peer.requests)
        bridge.apply([entry()])
        wait_until(lambda: len(peer.requests) == 2)
    assert {sent["annotations"]["condition"] for sent in peer.json()[1]} == {
        "full-forecast",
        "threshold",
        "drift",
        "full",
    }


def test_whatever_a_sender_raises_the_next_content_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [ZeroDivisionError("a defect")]
    payload = SentIncidents.payload

    def fail_once(self: SentIncidents, now_s: float) -> list[dict[str, Any]]:
        if failures:
            raise failures.pop()
        return payload(self, now_s)

    monkeypatch.setattr(SentIncidents, "payload", fail_once)
    with (
        capture_logs() as lines,
        Receiver.run() as peer,
        AlertmanagerBridge([peer.url], resend_s=0.1) as bridge,
    ):
        bridge.apply([entry()])
        wait_until(lambda: peer.requests)
    assert [line["why"] for line in lines if line["event"] == "not delivered"] == ["ZeroDivisionError: a defect"]


def test_many_alerts_are_several_requests() -> None:
    with Receiver.run() as peer, AlertmanagerBridge([peer.url], resend_s=60) as bridge:
        bridge.apply([entry(store=f"QSG1/APP{number}") for number in range(150)])
        wait_until(lambda: len(peer.requests) == 3)
        assert [len(sent) for sent in peer.json()] == [64, 64, 22]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["alertmanager", "--url", "host:9093"], "expected: http://HOST:PORT"),
        (["alertmanager", "--url", "https://host", "--token-file", "missing"], "--token-file missing"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bridge", *options, "--bootstrap-servers", "127.0.0.1:9"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line and "hush" not in line
