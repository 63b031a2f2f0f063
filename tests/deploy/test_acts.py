"""From a request to what came of it, with a real broker, the console with two logins, and the runner's own process.

The records of the job are those of a twin in this process, which follows the clock; the runner's script leaves a note
of what it ran, which that twin obeys as a queue manager would.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import msgspec
import pytest

from deploy.bridge import Command
from deploy.cli import main
from deploy.handover import Runner
from streams.kafka.admin import _topic_settings, admin_client, prepare_topics
from streams.kafka.notes import ActLog
from streams.kafka.topics import Topics
from tests.streams.kafka_help import PATIENCE, everything, send
from tests.support.asked_acts import actions
from tests.support.filling import FILLING_S, REST_S, STORE, Filling
from tests.support.processes import free_port
from tests.support.surfaces import running, wait_until
from twin.base.units import MIB
from twin.records import read_act

pytestmark = pytest.mark.nightly

SCRIPT = """
import json, pathlib, sys, time
asked = json.loads(sys.stdin.read())
folder = pathlib.Path(sys.argv[1])
with (folder / "ran").open("a") as ran:
    ran.write(json.dumps(asked) + "\\n")
while (folder / "hold").exists():
    time.sleep(0.1)
print("IXC530I SETXCF START ALTER REQUEST FOR STRUCTURE QSG1APP1 ACCEPTED")
"""
GROUPS = {"ann": "mq-ops", "bob": "mq-leads"}


class Job:
    """A writer of states and alerts, as a job: of a structure that fills, up to now, every two seconds.

    Args:
        folder: for the estate, and of the script.
        kafka: HOST:PORT.
        topics: names of the topics.
    """

    def __init__(self, folder: Path, kafka: str, topics: Topics) -> None:
        self._kafka, self._topics, self._folder = kafka, topics, folder
        begin_us = time.time_ns() // 1000 - (REST_S + FILLING_S) * 1_000_000
        self.filling = Filling(folder, begin_us)
        self._sent = self._alerts = self._ran = 0
        self._stopping = threading.Event()

    def advance(self, until_us: int) -> None:
        """Let event time pass, and write what there is then."""
        filling = self.filling
        self._obey()
        while filling.time < until_us - 5_000_000:
            filling.put("ORDERS", length=2000, count=5)
            filling.wait(seconds=5)
        lines: list[bytes | None] = [*filling.lines[self._sent :]]
        if not lines:
            return
        send(self._kafka, self._topics.events, lines, key=STORE.encode())
        records: list[bytes | None] = [own.record() for own in filling.alerts[self._alerts :]]
        for own, record in zip(filling.alerts[self._alerts :], records, strict=True):
            send(self._kafka, self._topics.alerts, [record], key=own.alert_id.encode())
        send(self._kafka, self._topics.state, [msgspec.json.encode(filling.state(STORE))], key=STORE.encode())
        self._sent, self._alerts = len(filling.lines), len(filling.alerts)

    def _obey(self) -> None:
        """Alter the structure as the script has done."""
        ran = self._folder / "ran"
        lines = ran.read_text().splitlines() if ran.exists() else []
        for line in lines[self._ran :]:
            assert json.loads(line)["statement"].endswith("SIZE=8M")
            self.filling.alter(STORE, size=8 * MIB)
        self._ran = len(lines)

    @contextmanager
    def follows_the_clock(self) -> Iterator[None]:
        """Write within the block."""
        thread = threading.Thread(target=self._follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join(PATIENCE)

    def _follow(self) -> None:
        while not self._stopping.wait(2.0):
            self.advance(time.time_ns() // 1000)


class Site:
    """A job, a console, people, and a runner."""

    def __init__(self, folder: Path, kafka: str, prefix: str) -> None:
        self.folder, self.kafka, self.topics = folder, kafka, Topics(prefix)
        prepare_topics(self.topics, {"bootstrap.servers": kafka})
        self.actions = actions(folder)
        self.job = Job(folder, kafka, self.topics)
        self.job.advance(time.time_ns() // 1000)
        self.log = ActLog({"bootstrap.servers": kafka}, self.topics)
        self.address = f"127.0.0.1:{free_port()}"
        (folder / "script.py").write_text(SCRIPT)
        self.script = f"{sys.executable} {folder / 'script.py'} {folder}"
        self.connection = ["--bootstrap-servers", kafka, "--topic-prefix", prefix]
        self.connection += ["--estate", str(self.job.filling.path), "--actions", str(self.actions)]

    @contextmanager
    def console(self) -> Iterator[None]:
        """Serve the console; this test is the proxy in front of it."""
        command = [sys.executable, "-m", "deploy", "console", *self.connection, "--listen", self.address]
        command += ["--trust-proxy", "127.0.0.1", "--operators", "mq-ops", "--approvers", "mq-leads"]
        with running(command, self.folder / "console.log"):
            wait_until(lambda: self._answers("/readyz"), PATIENCE)
            yield

    def _answers(self, path: str) -> bool:
        try:
            return httpx.get(f"http://{self.address}{path}", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def say(self, who: str, path: str, **content: Any) -> httpx.Response:
        """Post what somebody says, as the proxy passes it on."""
        headers = {"X-Forwarded-User": who, "X-Forwarded-Groups": GROUPS[who]}
        address = f"http://{self.address}/api/acts{path}"
        return httpx.post(address, json=content, headers=headers, timeout=PATIENCE, trust_env=False)

    def request(self, who: str = "ann") -> dict[str, Any]:
        """Request that the structure is expanded, once the console's twin has come as far as the job."""
        alert_id = self.job.filling.alert().data.alert_id
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.say(who, "", alert_id=alert_id, action="alter-size")
            if answer.status_code == 201:
                own: dict[str, Any] = answer.json()["request"]
                return own
            assert time.monotonic() < deadline, answer.text
            time.sleep(1.0)

    def runner(self) -> list[str]:
        """Return the command of the runner."""
        return [
            sys.executable,
            "-m",
            "deploy",
            "acts",
            "run",
            "--exec",
            self.script,
            "--name",
            "host",
            *self.connection,
        ]

    def ran(self) -> int:
        """Return how often the script has run."""
        path = self.folder / "ran"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def status(self, act_id: str) -> str:
        return self.log.read()[act_id].status

    def later(self, seconds: float) -> Runner:
        """Return a runner whose clock is ahead, as is the job from now on."""
        self.job.advance(round((time.time() + seconds) * 1e6))
        clock = lambda: time.time() + seconds  # noqa: E731
        return Runner(self.log, Command(self.script, 30.0), self.job.filling.estate, self.actions, "host", clock=clock)


@pytest.fixture
def site(tmp_path: Path, kafka: str, topic_prefix: str) -> Site:
    return Site(tmp_path, kafka, topic_prefix)


def test_a_request_is_approved_handed_over_and_measured(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with site.console(), site.job.follows_the_clock():
        own = site.request()
        assert own["statement"] == "SETXCF START,ALTER,STRNAME=QSG1APP1,SIZE=8M"
        path = f"/{own['id']}/approve"
        assert site.say("ann", path, sha256=own["sha256"]).status_code == 403
        with running(site.runner(), site.folder / "runner.log"):
            time.sleep(5.0)
            assert site.status(own["id"]) == "requested" and site.ran() == 0
            assert site.say("bob", path, sha256="0" * 64).status_code == 422
            assert site.say("bob", path, sha256=own["sha256"]).json()["approved_by"] == ["bob"]
            wait_until(lambda: site.status(own["id"]) == "ok", PATIENCE)
        wait_until(lambda: site.job.filling.alerts[-1].done, PATIENCE)
    for seconds in (400.0, 2000.0):
        site.later(seconds).look()
    act = site.log.read()[own["id"]]
    assert site.ran() == 1 and act.result is not None and "IXC530I" in act.result.text
    assert list(act.measured) == [300, 1800]
    assert [measured.size for measured in act.measured.values()] == [8 * MIB] * 2
    first = act.measured[300]
    assert first.done is not None and first.done.startswith("SIZE raised from 4M to 8M at ")
    records = everything(site.kafka, site.topics.acts)
    changes = [type(read_act(record.value() or b"")).__name__ for record in records]
    assert changes == ["Requested", "Approved", "Handed", "Resulted", "Measured", "Measured"]
    assert {record.key() for record in records} == {own["id"].encode()}
    settings = _topic_settings(admin_client({"bootstrap.servers": site.kafka}), site.topics.acts)
    assert settings["cleanup.policy"] == "delete"
    dry = [word for word in site.connection if word != str(site.actions) and word != "--actions"]
    assert main(["act", own["alert_id"], "alter-size", *dry]) in {0, 2}  # 2: it is at its SIZE now
    capsys.readouterr()


def test_a_runner_that_is_killed_while_it_runs_leaves_an_unknown_result(site: Site) -> None:
    hold = site.folder / "hold"
    hold.touch()
    with site.console(), site.job.follows_the_clock():
        own = site.request()
        assert site.say("bob", f"/{own['id']}/approve", sha256=own["sha256"]).status_code == 200
        with (site.folder / "runner.log").open("ab") as log, subprocess.Popen(site.runner(), stderr=log) as runner:
            wait_until(lambda: site.ran() == 1, PATIENCE)
            runner.send_signal(signal.SIGKILL)
        assert site.status(own["id"]) == "handed"
        hold.unlink()
        for _ in range(2):
            subprocess.run([*site.runner(), "--once"], check=True, timeout=PATIENCE, capture_output=True)
        assert (site.status(own["id"]), site.ran()) == ("unknown", 1)
        listed = httpx.get(
            f"http://{site.address}/api/acts",
            headers={"X-Forwarded-User": "ann", "X-Forwarded-Groups": "mq-ops"},
            trust_env=False,
        ).json()
        assert "look by: D XCF,STR,STRNAME=QSG1APP1" in listed[0]["result"]["text"]
        answer = site.say("ann", f"/{own['id']}/result", sha256=own["sha256"], status="ok", text="SIZE is 8M")
        assert answer.status_code == 200 and site.status(own["id"]) == "ok"
