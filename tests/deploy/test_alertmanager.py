"""A real Alertmanager and the bridge: fire, update, silence, restarts, resolve; nothing lost, nothing twice."""

from __future__ import annotations

import json
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

from deploy.bridge.alertmanager import AlertmanagerBridge
from tests.support.alert_entries import Receiver, entry
from tests.support.processes import free_port
from tests.support.surfaces import fetch, program, running, wait_until
from twin.conditions import CLEARED, CRITICAL, INFO, UPDATED

SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "alertmanager" / "alertmanager.yml"


class Alertmanager:
    """A real one with the shipped inhibit rules, which notifies a receiver of ours. It can be stopped and started."""

    def __init__(self, folder: Path, receiver: Receiver) -> None:
        self._folder = folder
        self._binary = program("prometheus-alertmanager")
        self.url = f"http://127.0.0.1:{free_port()}"
        self._stack = ExitStack()
        config = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
        config["receivers"] = [
            {"name": "test", "webhook_configs": [{"url": f"{receiver.url}/notify", "send_resolved": True}]}
        ]
        config["route"] = {
            "receiver": "test",
            "group_by": ["..."],
            "group_wait": "1s",
            "group_interval": "1s",
            "repeat_interval": "4h",
        }
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
        """Return the state by condition."""
        return {alert["labels"]["condition"]: alert["status"]["state"] for alert in self.alerts()}

    def silence(self, condition: str) -> None:
        now = datetime.now(UTC)
        matcher = {"name": "condition", "value": condition, "isRegex": False, "isEqual": True}
        silence = {
            "matchers": [matcher],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "test",
            "comment": "test",
        }
        fetch(f"{self.url}/api/v2/silences", msgspec.json.encode(silence))


def notified(receiver: Receiver) -> list[tuple[str, str, str]]:
    """Return (status, condition, severity) of every alert of every notification, in order."""
    return [
        (alert["status"], alert["labels"]["condition"], alert["labels"]["severity"])
        for notification in receiver.json()
        for alert in notification["alerts"]
    ]


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
def bridge_to(*peers: Alertmanager) -> Iterator[AlertmanagerBridge]:
    with AlertmanagerBridge([peer.url for peer in peers], resend_s=0.5) as bridge:
        yield bridge


def test_the_shipped_configuration_is_sound() -> None:
    done = subprocess.run([program("amtool"), "check-config", SHIPPED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_fire_update_silence_restarts_resolve(alertmanager: Alertmanager, receiver: Receiver) -> None:
    with bridge_to(alertmanager) as bridge:
        bridge.apply([entry()])
        (first,) = wait_until(alertmanager.alerts)
        assert first["annotations"]["current_severity"] == "warning"
        wait_until(lambda: notified(receiver) == [("firing", "full-forecast", "warning")])
        bridge.apply([entry(UPDATED, 1, severity=CRITICAL)])
        wait_until(lambda: alertmanager.alerts()[0]["annotations"]["current_severity"] == "critical")
        (second,) = alertmanager.alerts()
        assert (second["fingerprint"], second["startsAt"]) == (first["fingerprint"], first["startsAt"])
        alertmanager.silence("threshold")
        bridge.apply([entry(condition="threshold")])
        wait_until(lambda: alertmanager.states() == {"full-forecast": "active", "threshold": "suppressed"})

    with bridge_to(alertmanager) as bridge:  # a restart of the bridge: it knows the last record of each alert
        bridge.apply([entry(UPDATED, 1, severity=CRITICAL), entry(condition="threshold")])
        wait_until(lambda: alertmanager.states() == {"full-forecast": "active", "threshold": "suppressed"})
        alertmanager.stop()  # a restart of Alertmanager: it forgets alerts, and remembers silences and notifications
        alertmanager.start()
        wait_until(lambda: alertmanager.states() == {"full-forecast": "active", "threshold": "suppressed"})
        (third,) = [active for active in alertmanager.alerts() if active["labels"]["condition"] == "full-forecast"]
        assert (third["fingerprint"], third["startsAt"]) == (first["fingerprint"], first["startsAt"])
        time.sleep(2.5)  # several group intervals, in which a second notification would come
        bridge.apply([entry(CLEARED, 2), entry(CLEARED, 1, condition="threshold")])
        wait_until(lambda: alertmanager.states() == {})
        wait_until(lambda: ("resolved", "full-forecast", "warning") in notified(receiver))
    assert notified(receiver) == [("firing", "full-forecast", "warning"), ("resolved", "full-forecast", "warning")]


def test_what_happened_while_alertmanager_was_away_reaches_it(alertmanager: Alertmanager, receiver: Receiver) -> None:
    with bridge_to(alertmanager) as bridge:
        bridge.apply([entry()])
        wait_until(lambda: notified(receiver) == [("firing", "full-forecast", "warning")])
        alertmanager.stop()
        bridge.apply([entry(CLEARED, 1), entry(condition="cannot-expand")])
        alertmanager.start()
        wait_until(lambda: ("firing", "cannot-expand", "critical") in notified(receiver))
        wait_until(lambda: ("resolved", "full-forecast", "warning") in notified(receiver))
        assert alertmanager.states() == {"cannot-expand": "active"}
    assert len(notified(receiver)) == 3


def test_from_watch_to_page_people_are_called_and_the_watch_ends(
    alertmanager: Alertmanager, receiver: Receiver
) -> None:
    with bridge_to(alertmanager) as bridge:
        bridge.apply([entry(severity=INFO)])
        wait_until(lambda: notified(receiver) == [("firing", "full-forecast", "info")])
        bridge.apply([entry(UPDATED, 1)])
        wait_until(lambda: ("firing", "full-forecast", "warning") in notified(receiver))
        wait_until(lambda: [active["labels"]["severity"] for active in alertmanager.alerts()] == ["warning"])
    calls = [severity for status, _, severity in notified(receiver) if status == "firing"]
    assert calls == ["info", "warning"]


def test_full_inhibits_the_forecast_of_the_same_resource_only(alertmanager: Alertmanager) -> None:
    with bridge_to(alertmanager) as bridge:
        bridge.apply([entry(), entry(condition="full"), entry(store="QSG1/APP2")])
        wait_until(lambda: len(alertmanager.alerts()) == 3)
        states = {
            (active["labels"]["store"], active["labels"]["condition"]): active["status"]["state"]
            for active in wait_until(
                lambda: (
                    alertmanager.alerts()
                    if any(active["status"]["inhibitedBy"] for active in alertmanager.alerts())
                    else None
                )
            )
        }
    assert states == {
        ("QSG1/APP1", "full"): "active",
        ("QSG1/APP1", "full-forecast"): "suppressed",
        ("QSG1/APP2", "full-forecast"): "active",
    }


def test_every_peer_of_a_cluster_knows_every_alert(
    alertmanager: Alertmanager, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Alertmanager(tmp_path_factory.mktemp("other"), receiver)
    other.start()
    try:
        with bridge_to(alertmanager, other) as bridge:
            bridge.apply([entry()])
            for peer in (alertmanager, other):
                wait_until(lambda peer=peer: peer.states() == {"full-forecast": "active"})
    finally:
        other.stop()
