"""The services of docker-compose.yml as processes, from the recording of a filling to the mail that an operator reads.

Commands and configuration files are those of the repository, with addresses and folders replaced.
"""

from __future__ import annotations

import json
import re
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email import message_from_bytes, policy
from email.message import EmailMessage
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from deploy.java.broker import Broker
from tests.support.compose import compose_services
from tests.support.processes import free_port, send_signal, still_alive
from tests.support.surfaces import program, running, status_of, wait_until
from tests.system.harness import Played
from tests.tools.panels import Prometheus, answered, boards, draw

pytestmark = [pytest.mark.system, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
STORE = "QSG1/APP1"
TOKEN = "0123456789abcdef"
CUT = "2026-11-20T02:20"  # STORE is full since 02:13 and not over yet
SPEED = "180"
PATIENCE_S = 290.0  # for a start, a mail, an end, on a busy machine
# Panels without data in this run: nothing scrapes mq_prometheus, and no get lacks its put.
EMPTY = {"Twin minus DISPLAY USAGE", "Unmatched gets"}


class _Session(socketserver.StreamRequestHandler):
    """A conversation of SMTP [RFC 5321], as far as Alertmanager needs it: one mail, no login."""

    def handle(self) -> None:
        self._say("220 test")
        while line := self.rfile.readline().strip():
            match line.split()[0].upper():
                case b"DATA":
                    self._say("354 end with a dot")
                    lines = list(iter(self.rfile.readline, b".\r\n"))
                    text = b"".join(line.removeprefix(b".") for line in lines)
                    self.server.mails.append(message_from_bytes(text, policy=policy.default))
                    self._say("250 taken")
                case b"QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server of this machine. mails: those that it took, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[EmailMessage] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    def wait_for(self, *words: str) -> EmailMessage:
        """Return the first mail whose subject has all the words."""
        return wait_until(lambda: next((mail for mail in self.mails if _has(mail["Subject"], words)), None), PATIENCE_S)


def text_of(mail: EmailMessage) -> str:
    """Return the text of a mail, which has no other part, with the line ends of Python."""
    (part,) = mail.iter_parts()
    return "\n".join(part.get_content().splitlines())


def _has(text: str, words: tuple[str, ...]) -> bool:
    return all(word in text for word in words)


class Site:
    """The services of the compose file. places: what stands for an address or folder of the compose file."""

    def __init__(self, folder: Path, broker: str, mailbox: str, parts: ExitStack) -> None:
        self._folder, self._parts, self.started_s = folder, parts, time.time()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {name: free_port() for name in ("exporter", "console", "prometheus", "alertmanager")}
        local = {name: f"127.0.0.1:{port}" for name, port in self.ports.items()}
        self._places = {
            "kafka:9092": broker,
            "0.0.0.0:9746": local["exporter"],
            "0.0.0.0:8470": local["console"],
            "/token": str(folder / "token"),
            "exporter:9746": local["exporter"],
            "alertmanager:9093": local["alertmanager"],
            "mail.example.com:25": f"{mailbox}\n        require_tls: false",
            "/etc/prometheus": str(ROOT / "deploy" / "prometheus"),
            "mqtwin.tmpl": str(ROOT / "deploy" / "alertmanager" / "mqtwin.tmpl"),
            "/estate/": f"{folder}/",
            "/kafka/": f"{ROOT}/deploy/images/",
            "/state/": f"{folder}/",
        }

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def start(self, name: str, *options: str) -> None:
        """Start one of mqtwin's services by its command in the compose file."""
        words = [self._placed(word) for word in compose_services()[name]["command"]]
        self._run(name, [sys.executable, "-m", "deploy", *words, *options])

    def start_prometheus(self) -> None:
        config = self._config("prometheus")
        command = [program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={self._folder / 'tsdb'}"]
        self._run("prometheus", [*command, f"--web.listen-address={self.url('prometheus').removeprefix('http://')}"])

    def start_alertmanager(self) -> None:
        config = self._config("alertmanager")
        config.write_text(config.read_text("utf-8").replace("receiver: nobody # mail", "receiver: mail"), "utf-8")
        command = [program("prometheus-alertmanager"), f"--config.file={config}", "--cluster.listen-address="]
        command += [f"--storage.path={self._folder / 'silences'}", f"--web.external-url={self.url('alertmanager')}"]
        self._run("alertmanager", [*command, f"--web.listen-address=127.0.0.1:{self.ports['alertmanager']}"])

    def publish(self, lines: list[bytes], *options: str) -> None:
        """Publish a recording by mqtwin publish."""
        recording = self._folder / "part.ndjson"
        recording.write_bytes(b"".join(lines))
        command = [sys.executable, "-m", "deploy", "publish", str(recording), "--content-type", "ndjson", *options]
        command += ["--estate", str(self._folder / "estate.toml"), "--bootstrap-servers", self._places["kafka:9092"]]
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=600)

    def wait_until(self, is_so: Callable[[], Any]) -> None:
        """Wait for something that the services do; fail with the log of one that has ended."""
        wait_until(lambda: self._check_all_run() and is_so(), PATIENCE_S)

    def _check_all_run(self) -> bool:
        for name, process in self.processes.items():
            assert process.poll() is None, f"{name} ended: {(self._folder / f'{name}.log').read_text('utf-8')}"
        return True

    def _run(self, name: str, command: list[str]) -> None:
        self.processes[name] = self._parts.enter_context(running(command, self._folder / f"{name}.log", PATIENCE_S))

    def _config(self, name: str) -> Path:
        path = self._folder / f"{name}.yml"
        path.write_text(self._placed((ROOT / "deploy" / name / f"{name}.yml").read_text("utf-8")), encoding="utf-8")
        return path

    def _placed(self, text: str) -> str:
        for word, place in self._places.items():
            text = text.replace(word, place)
        return text


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    with Mailbox() as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served
        served.shutdown()


@pytest.fixture(scope="module")
def site(every_kind: Played, mailbox: Mailbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The services, and the first part of a recording in which every kind of store fills."""
    folder = tmp_path_factory.mktemp("compose")
    (folder / "estate.toml").write_bytes(every_kind.described.read_bytes())
    (folder / "token").write_text(TOKEN, encoding="utf-8")
    (folder / "token").chmod(0o600)
    with Broker(data=folder / "kafka") as broker, ExitStack() as parts:
        site = Site(folder, broker.bootstrap_servers, mailbox.address, parts)
        site.start_alertmanager()
        site.start("job")
        site.wait_until((folder / "status.json").exists)
        site.start("exporter")
        site.start("bridge")
        site.start("console")
        site.start_prometheus()
        for name in ("exporter", "console"):
            site.wait_until(lambda name=name: status_of(f"{site.url(name)}/readyz") == HTTPStatus.OK)
        site.publish(spoilt(before(every_kind)), "--speed", SPEED)
        yield site


def events_of(played: Played) -> list[bytes]:
    with pa.input_stream(str(played.recording), compression="zstd") as stream:
        return list(stream.read().splitlines(keepends=True))


def before(played: Played) -> list[bytes]:
    """Return the events up to CUT, with measurements of a page set."""
    lines = [line for line in events_of(played) if _time(line) < CUT]
    measured = {"pages_used": 0, "pages_total": 8000, "buffer_pool_pct": 40.0}
    for minute in range(1, 12):  # a fidelity takes ten
        moment = f"2026-11-20T00:{minute:02}:00Z"
        event = {"time": moment, "qmgr": "QM01", "op": "MEASURE", "store": "QM01/PS04", "measured": measured}
        lines.append(json.dumps(event).encode() + b"\n")
    return sorted(lines, key=_time)


def spoilt(lines: list[bytes]) -> list[bytes]:
    """Return events with a dead letter, duplicates and gaps among the last ones."""
    late = len(lines) - 2_000
    unknown = b'{"time": "2026-11-20T02:00:00Z", "qmgr": "QM01", "op": "PEEK", "queue": "ORDERS"}\n'
    lost = {line for number, line in enumerate(lines[late:]) if b'"ORDERS"' in line and number % 7 == 0}
    rest = [line for line in lines[late:] if line not in lost]
    return [*lines[:late], unknown, *rest, *rest[-500:]]


def _time(line: bytes) -> str:
    return str(json.loads(line)["time"])


@pytest.mark.usefixtures("site")
def test_a_filling_becomes_a_mail_that_says_what_and_what_to_do(mailbox: Mailbox) -> None:
    mail = mailbox.wait_for("full now: ", STORE)
    assert mail["Subject"] == "full now: Elements of QSG1/APP1, puts fail with 2192"
    text = text_of(mail)
    assert "Elements of QSG1/APP1: 100.0 % in use, puts fail with 2192." in text
    assert "\nWhat to do:\n- Start more getters on ORDERS" in text
    assert "DISPLAY QSTATUS(ORDERS) TYPE(HANDLE) CMDSCOPE(*) ALL" in text
    assert "\nSince 2026-11-20 01:14 UTC.\n" in text


def test_the_console_shows_the_store(site: Site) -> None:
    request = urllib.request.Request(f"{site.url('console')}/api/events", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as events:
        first = next(line for line in events if line.startswith(b"data:"))
    assert STORE.encode() in first


def test_every_panel_of_the_dashboards_has_data(site: Site, tmp_path: Path) -> None:
    source = Prometheus(site.url("prometheus"), site.started_s, time.time())
    empty = {}
    for name, board in boards().items():
        panels = answered(board, source)
        draw(board, panels, source).savefig(tmp_path / f"{name}.png")
        empty |= {panel.title: panel.why_empty for panel in panels if panel.why_empty}
    assert empty.keys() == EMPTY, empty


def test_the_end_of_the_incident_is_a_mail(site: Site, mailbox: Mailbox, every_kind: Played) -> None:
    mailbox.wait_for("full now: ", STORE)
    site.publish([line for line in events_of(every_kind) if _time(line) >= CUT])
    text = text_of(mailbox.wait_for("over: ", STORE))
    assert "What to do" not in text
    assert re.search(r"^Since 2026-11-20 01:14 UTC, over at \S+ \S+ UTC\.$", text, re.MULTILINE)


def test_the_silence_of_a_killed_job_is_a_mail(site: Site, mailbox: Mailbox) -> None:
    job = psutil.Process(site.processes["job"].pid)
    family = [job, *job.children(recursive=True)]
    send_signal(family)
    assert not still_alive(family)
    text = text_of(mailbox.wait_for("The streaming job has had no batch"))
    assert "\nWhat to do:\n- Read the job's log and start it again" in text
    assert [name for name in site.processes if site.processes[name].poll() is not None] == ["job"]
