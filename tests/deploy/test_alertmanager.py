"""A real Alertmanager and the bridge: fire, update, silence, restarts, resolve; nothing lost, nothing twice."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from deploy.bridge import AlertmanagerBridge, PostableAlert, SentIncidents
from streams.kafka.topic_reader import AlertEntry
from tests.support.alert_entries import Receiver, entry
from tests.support.processes import free_port
from tests.support.surfaces import fetch, program, running, wait_until
from twin.base.conditions import CLEARED, CRITICAL, FULL, INFO, OPENED, UPDATED
from twin.records import PART, ROOT, IncidentRole, read_alert_record

SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "alertmanager" / "alertmanager.yml"


class Alertmanager:
    """A real one with the shipped configuration, faster, for a receiver of ours. It can be stopped and started."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self._folder = folder
        self._binary = program("prometheus-alertmanager")
        self.url = f"http://127.0.0.1:{free_port()}"
        self._stack = ExitStack()
        config = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
        config["receivers"] = [
            {"name": "test", "webhook_configs": [{"url": f"{receiver.url}/notify", "send_resolved": True}]}
        ]
        config["route"] |= {"receiver": "test", "routes": [], "group_wait": "1s", "group_interval": "1s"}
        config["templates"] = []
        (folder / "config.yml").write_text(json.dumps(config), encoding="utf-8")

    def start(self) -> None:
        address = self.url.removeprefix("http://")
        command = [self._binary, f"--config.file={self._folder / 'config.yml'}", "--cluster.listen-address="]
        command += [f"--storage.path={self._folder / 'data'}", f"--web.listen-address={address}", "--log.level=warn"]
        self._stack.enter_context(running(command, self._folder / "log"))
        wait_until(lambda: fetch(f"{self.url}/api/v2/status"))

    def stop(self) -> None:
        self._stack.close()

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that are active, silenced and inhibited ones included."""
        active: list[dict[str, Any]] = fetch(f"{self.url}/api/v2/alerts")
        return active

    def states(self) -> dict[str, str]:
        """Return the state by store."""
        return {alert["labels"]["store"]: alert["status"]["state"] for alert in self.alerts()}

    def silence(self, store: str) -> None:
        now = datetime.now(UTC)
        matcher = {"name": "store", "value": store, "isRegex": False, "isEqual": True}
        silence = {
            "matchers": [matcher],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "test",
            "comment": "test",
        }
        fetch(f"{self.url}/api/v2/silences", msgspec.json.encode(silence))


def notified(receiver: Receiver) -> list[tuple[str, str, str]]:
    """Return (status, store, urgency) of every alert of every notification, each once, in order."""
    notices = [
        (alert["status"], alert["labels"]["store"], alert["labels"]["urgency"])
        for notification in receiver.json()
        for alert in notification["alerts"]
    ]
    return list(dict.fromkeys(notices))


def of_incident(change: str = OPENED, number: int = 0, role: str = ROOT, **fields: Any) -> AlertEntry:
    """Return a record of an incident of QSG1/APP1."""
    reference = IncidentRole(id="QSG1/APP1/1", role=role, opened="2026-11-20T01:33:40.000000Z")
    return entry(change, number, incident=reference, **fields)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver.run() as served:
        yield served


@pytest.fixture
def alertmanager(tmp_path: Path, receiver: Receiver) -> Iterator[Alertmanager]:
    peer = Alertmanager(tmp_path, receiver)
    peer.start()
    try:
        yield peer
    finally:
        peer.stop()


@contextmanager
def bridge_to(*peers: Alertmanager, site: str = "") -> Iterator[AlertmanagerBridge]:
    with AlertmanagerBridge([peer.url for peer in peers], site=site, resend_s=0.5) as bridge:
        yield bridge


def test_the_shipped_configuration_is_sound() -> None:
    done = subprocess.run([program("amtool"), "check-config", SHIPPED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def mail_of(status: str, *alerts: PostableAlert) -> tuple[str, str]:
    """Return subject and text of a mail, by Alertmanager's own tool."""
    content = {"status": status, "externalURL": "http://alertmanager"}
    content["alerts"] = [{"status": status, **msgspec.to_builtins(alert)} for alert in alerts]
    command = [program("amtool"), "template", "render", f"--template.glob={SHIPPED.with_name('mqtwin.tmpl')}"]
    subject, text = (
        subprocess.run(
            [*command, f'--template.text={{{{ template "mqtwin.{name}" . }}}}', "--template.data=/dev/stdin"],
            input=json.dumps(content),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in ("subject", "text")
    )
    assert "<no value>" not in subject + text
    return subject.strip(), text


def test_the_mail_of_a_page_says_resource_number_time_and_action() -> None:
    page = (SHIPPED.parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    (example,) = re.findall(r'^```json title="alert"\n(.*?)\n```$', page, re.MULTILINE | re.DOTALL)
    record, sent = read_alert_record(example.encode()), SentIncidents()
    sent.apply(AlertEntry(record, time.time()))
    subject, text = mail_of("firing", *sent.payload(time.time()))
    assert subject == f"page: {record.data.brief[0]}"
    assert text.startswith("\n".join(record.data.brief))
    assert [line[2:] for line in text.splitlines() if line.startswith("- ")] == [
        line for line in record.data.instructions if not line.startswith(" ")
    ]
    assert record.data.cause in text
    assert "Since 2026-11-20 01:15 UTC." in text


def test_the_mail_of_the_end_has_the_last_record_and_nothing_to_do() -> None:
    sent = SentIncidents()
    for record in (of_incident(), of_incident(UPDATED, 1, severity=CRITICAL), of_incident(CLEARED, 2)):
        sent.apply(record)
    over = sent.payload(time.time())
    assert [alert.labels["urgency"] for alert in over] == ["page", "critical"]
    subject, text = mail_of("resolved", *over)
    assert subject == f"over: {over[1].annotations['summary']}"
    assert text.startswith("Over:\n\nSMDS blocks of QM01: record 2.\n\nSince 2026-11-20 01:33 UTC, over at ")
    assert "What to do" not in text


def test_the_mail_of_one_of_several_sites_begins_with_its_name() -> None:
    sent = SentIncidents("prod")
    sent.apply(of_incident())
    (page,) = sent.payload(time.time())
    summary = page.annotations["summary"]
    assert mail_of("firing", page)[0] == f"prod: page: {summary}"
    assert mail_of("resolved", page)[0] == f"prod: over: {summary}"


def test_a_page_of_one_site_does_not_silence_a_store_of_the_same_name_in_another(
    alertmanager: Alertmanager, receiver: Receiver
) -> None:
    def states() -> dict[str, str]:
        return {alert["labels"]["site"]: alert["status"]["state"] for alert in alertmanager.alerts()}

    with bridge_to(alertmanager, site="prod") as prod, bridge_to(alertmanager, site="test") as test:
        prod.apply([of_incident(severity=CRITICAL)])
        test.apply([of_incident(condition="threshold", severity=INFO)])
        wait_until(lambda: len(states()) == 2)
        assert states() == {"prod": "active", "test": "active"}
        wait_until(lambda: len(receiver.requests) == 2)
    assert {notification["groupLabels"]["site"] for notification in receiver.json()} == {"prod", "test"}


@pytest.mark.nightly
def test_fire_update_silence_restarts_resolve(alertmanager: Alertmanager, receiver: Receiver) -> None:
    other = {"store": "QSG1/APP2"}
    with bridge_to(alertmanager) as bridge:
        bridge.apply([of_incident()])
        (first,) = wait_until(alertmanager.alerts)
        assert first["annotations"]["resource"] == "smds/QM01"
        wait_until(lambda: notified(receiver) == [("firing", "QSG1/APP1", "page")])
        bridge.apply([of_incident(UPDATED, 1)])
        wait_until(lambda: alertmanager.alerts()[0]["annotations"]["cause"] == "SMDS blocks of QM01: record 1.")
        (second,) = alertmanager.alerts()
        assert (second["fingerprint"], second["startsAt"]) == (first["fingerprint"], first["startsAt"])
        alertmanager.silence("QSG1/APP2")
        bridge.apply([entry(**other)])
        wait_until(lambda: alertmanager.states() == {"QSG1/APP1": "active", "QSG1/APP2": "suppressed"})

    with bridge_to(alertmanager) as bridge:  # a restart of the bridge: it knows the last record of each alert
        bridge.apply([of_incident(UPDATED, 1), entry(**other)])
        wait_until(lambda: alertmanager.states() == {"QSG1/APP1": "active", "QSG1/APP2": "suppressed"})
        alertmanager.stop()  # a restart of Alertmanager: it forgets alerts, and remembers silences and notifications
        alertmanager.start()
        wait_until(lambda: alertmanager.states() == {"QSG1/APP1": "active", "QSG1/APP2": "suppressed"})
        (third,) = [active for active in alertmanager.alerts() if active["labels"]["store"] == "QSG1/APP1"]
        assert (third["fingerprint"], third["startsAt"]) == (first["fingerprint"], first["startsAt"])
        time.sleep(2.5)  # several group intervals, in which a second notification would come
        bridge.apply([of_incident(CLEARED, 2), entry(CLEARED, 1, **other)])
        wait_until(lambda: alertmanager.states() == {})
        wait_until(lambda: ("resolved", "QSG1/APP1", "page") in notified(receiver))
    assert len(receiver.requests) == 2
    assert notified(receiver) == [("firing", "QSG1/APP1", "page"), ("resolved", "QSG1/APP1", "page")]


def test_what_happened_while_alertmanager_was_away_reaches_it(alertmanager: Alertmanager, receiver: Receiver) -> None:
    with bridge_to(alertmanager) as bridge:
        bridge.apply([entry()])
        wait_until(lambda: notified(receiver) == [("firing", "QSG1/APP1", "page")])
        alertmanager.stop()
        bridge.apply([entry(CLEARED, 1), entry(store="QSG1/APP2")])
        alertmanager.start()
        wait_until(lambda: ("firing", "QSG1/APP2", "page") in notified(receiver))
        wait_until(lambda: ("resolved", "QSG1/APP1", "page") in notified(receiver))
        assert alertmanager.states() == {"QSG1/APP2": "active"}
    assert len(notified(receiver)) == 3


def test_people_hear_of_the_call_of_each_escalation_and_of_the_end_and_of_no_part(
    alertmanager: Alertmanager, receiver: Receiver
) -> None:
    def urgencies() -> list[str]:
        return [active["labels"]["urgency"] for active in alertmanager.alerts()]

    part = {"condition": "threshold", "severity": INFO}
    full = {"condition": "full", "severity": FULL}
    with bridge_to(alertmanager) as bridge:
        for urgency, entries in (
            ("page", [of_incident()]),
            ("critical", [of_incident(UPDATED, 1, severity=CRITICAL), of_incident(role=PART, **part)]),
            ("full", [of_incident(UPDATED, 2, role=PART, severity=CRITICAL), of_incident(**full)]),
        ):
            bridge.apply(entries)
            wait_until(lambda urgency=urgency: ("firing", "QSG1/APP1", urgency) in notified(receiver))
            wait_until(lambda urgency=urgency: urgencies() == [urgency])
        bridge.apply([of_incident(CLEARED, 3, role=PART, severity=CRITICAL), of_incident(CLEARED, 1, **full)])
        wait_until(lambda: ("resolved", "QSG1/APP1", "full") in notified(receiver))
        wait_until(lambda: alertmanager.alerts() == [])  # the watch that is left is nobody's
    assert len(receiver.requests) <= 4  # resolved ones of lower urgency come with the next notification
    assert {notification["groupLabels"]["incident"] for notification in receiver.json()} == {"QSG1/APP1/1"}
    assert [urgency for status, _, urgency in notified(receiver) if status == "firing"] == ["page", "critical", "full"]


def test_every_peer_of_a_cluster_knows_every_alert(
    alertmanager: Alertmanager, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Alertmanager(tmp_path_factory.mktemp("other"), receiver)
    other.start()
    try:
        with bridge_to(alertmanager, other) as bridge:
            bridge.apply([entry()])
            for peer in (alertmanager, other):
                wait_until(lambda peer=peer: peer.states() == {"QSG1/APP1": "active"})
    finally:
        other.stop()
