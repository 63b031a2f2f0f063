"""`mqtwin start --live` from nothing: queue managers behind mqweb, a real broker, a real Spark, a real browser."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import psutil
import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from playwright.sync_api import expect, sync_playwright

from streams.kafka.topic_reader import AlertReader, Latest, TopicReader
from streams.kafka.topics import Topics
from tests.mqweb import Certificates, MqwebServer, User
from tests.streams.test_collect import dds_report, server
from tests.support.chromium import CHROMIUM, QUIET
from tests.support.processes import still_alive
from tests.support.queue_managers import System
from tests.support.spans import request_of
from tests.support.surfaces import wait_until
from twin import demo_estate
from twin.base.conditions import PAGE, Condition
from twin.records import AlertData
from twin.records.states import StateRecord

pytestmark = [pytest.mark.nightly, pytest.mark.system]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240.0
STORE, SECRET = "QSG1/APP1", "not in any list of processes"
PARTS = {"collector": "collect", "console": "console", "broker": "broker", "job": "stream"}


class Site:
    """Two queue managers whose server needs a password, at wall time: nobody reads ORDERS, which holds a share."""

    def __init__(self, folder: Path) -> None:
        self.system = System(demo_estate(), time.time_ns() // 1000)
        self.fill(0.5)
        certificates = Certificates()
        self.server = MqwebServer(self.system, users={"ann": User(SECRET)}, certificates=certificates)
        (folder / "password").write_text(f"{SECRET}\n")
        self.login: tuple[str, ...] = ("--user", "ann", "--password-file", str(folder / "password"))
        self.login += ("--ca-file", str(certificates.write_authority(folder / "authority.pem")))
        self.spans: Path | None = None  # to which 4 messages of 80 that ORDERS gets each 0.2 s are written
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._tick)

    def fill(self, share: float) -> None:
        used = round(share * self.system.levels[STORE]["ents_max"])
        self.system.levels[STORE]["ents_used"] = used
        self.system.queue("QSG1", "ORDERS").depth = used
        self.system.queue("QSG1", "ORDERS").putters = {"QM01": 2}

    def _tick(self) -> None:
        number = 1
        while not self._ended.wait(0.2):
            self.system.time = time.time_ns() // 1000
            if self.spans is not None:
                self.put(80)
                put = {"op": "PUT", "qmgr": "QM01", "queue": "ORDERS", "length": 1000, "time": self.system.time}
                events = [{**put, "msgid": f"{own:048X}"} for own in range(number, number + 4)]
                request = ExportTraceServiceRequest.FromString(request_of(events, number))
                with self.spans.open("a") as file:
                    file.write(MessageToJson(request, indent=None) + "\n")
                number += 4

    def put(self, messages: int) -> None:
        self.system.levels[STORE]["ents_used"] += messages
        self.system.queue("QSG1", "ORDERS").depth += messages

    def __enter__(self) -> Self:
        self.server.start()
        self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._clock.join()
        self.server.stop()


class Started:
    """The command as a process. lines: what it has printed."""

    def __init__(self, site: Site, folder: Path) -> None:
        words = ["start", "--live", site.server.url, "--qmgr", "QM01,QM02", *site.login, "-o", str(folder / "site")]
        command = [sys.executable, "-m", "deploy", *words, "--interval-s", "2", "--listen", "127.0.0.1:0"]
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip())

    def wait_for(self, text: str) -> str:
        """Return the first line with a text."""
        deadline = time.monotonic() + PATIENCE_S
        while not (lines := [line for line in self.lines if text in line]):
            assert time.monotonic() < deadline and self.process.poll() is None, (text, self.lines)
            time.sleep(0.1)
        return lines[0]

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def part(self, command: str) -> psutil.Process:
        (process,) = [
            own for own in psutil.Process(self.process.pid).children() if f" deploy {command} " in words_of(own)
        ]
        return process

    def stop(self) -> float:
        """Send Ctrl-C, wait until nothing runs any more, and return how long that took."""
        family, began_s = self.family(), time.monotonic()
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0, self.lines
        seconds = time.monotonic() - began_s
        self._reader.join(10)
        assert still_alive(family) == []
        return seconds

    def end(self) -> None:
        """Kill what still runs: the parts end with their supervisor."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(10)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as site:
        yield site


def words_of(process: psutil.Process) -> str:
    """Return the command line of a process, empty if it has ended since it was listed."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def events_of(address: str) -> int:
    """Return the events of the store by its state record."""
    return state_of(address).events


def state_of(address: str) -> StateRecord:
    """Return the state record of the store."""
    topics, latest = Topics(), Latest(Topics())
    with TopicReader({"bootstrap.servers": address}, {topics.state: None}) as reader:
        deadline = time.monotonic() + PATIENCE_S
        while not (reader.is_caught_up and STORE in latest.states):
            assert time.monotonic() < deadline
            for record in reader.read(0.5):
                latest.apply(record)
    return latest.states[STORE].state


@pytest.fixture
def start(site: Site, tmp_path: Path) -> Iterator[Callable[[], Started]]:
    """A function that starts the command; what still runs at the end is killed."""
    runs: list[Started] = []

    def start() -> Started:
        runs.append(Started(site, tmp_path))
        return runs[-1]

    yield start
    for run in runs:
        run.end()


@pytest.mark.ci
def test_from_an_address_to_a_live_twin_that_continues_after_ctrl_c(
    site: Site, tmp_path: Path, start: Callable[[], Started]
) -> None:
    first, folder = start(), tmp_path / "site"
    broker = first.wait_for("broker up: ").rpartition(" ")[2]
    address = first.wait_for("console up: ").rpartition(" ")[2]
    first.wait_for("first state after ")
    assert not any(SECRET in words_of(own) for own in [*first.family(), psutil.Process(first.process.pid)])
    site.fill(0.93)
    assert STORE in first.wait_for("first alert: ")
    look_at(address)
    before = events_of(broker)
    assert first.stop() < 30
    assert "stopped; to continue, run" in first.lines[-2] and first.lines[-1].startswith("  mqtwin start --live")
    assert SECRET not in "".join([*first.lines, *(path.read_text() for path in (folder / "logs").iterdir())])
    second = start()
    assert second.wait_for("broker up: ").endswith(broker)
    second.wait_for("first state after ")
    assert events_of(broker) > before
    second.stop()
    words = ["state", "--checkpoint", str(folder / "checkpoint"), "--estate", str(folder / "estate.toml")]
    subprocess.run([sys.executable, "-m", "deploy", *words], cwd=ROOT, check=True)  # in here it would end others' Spark


def test_each_part_that_is_killed_comes_back_and_the_twin_goes_on_living(
    tmp_path: Path, start: Callable[[], Started]
) -> None:
    run = start()
    broker = run.wait_for("broker up: ").rpartition(" ")[2]
    run.wait_for("console up: ")
    run.wait_for("first state after ")
    for name, command in PARTS.items():
        run.part(command).kill()
        run.wait_for(f"{name}: it was killed by signal 9")
        run.wait_for(f"{name} up again")
    before = events_of(broker)
    wait_until(lambda: events_of(broker) > before, PATIENCE_S)
    run.stop()
    assert not (tmp_path / "site" / "logs" / "job.log").read_text().count('"level":"error"')


def test_spans_of_5_percent_and_rmf_join_the_levels(site: Site, tmp_path: Path, start: Callable[[], Started]) -> None:
    """The REST interface shows entries; elements come from RMF alone."""
    spans = tmp_path / "spans.json"
    spans.touch()
    site.fill(0.7)

    def rmf(path: str) -> tuple[int, bytes]:
        if "CFACT" not in path:
            return 200, b'{"report": []}'
        used, maximum = (site.system.levels[STORE][name] for name in ("ents_used", "ents_max"))
        columns = {"CFAILEL": str(maximum), "CFAIMAE": str(6 * maximum), "CFAICUE": str(2 * used)}
        return 200, json.dumps(dds_report(elements=used, end=datetime.now(UTC), **columns)).encode()

    with server(rmf) as (url, requests):
        site.login += ("--spans", str(spans), "--dds", f"PLEX1={url}", "--no-console")
        run = start()
        broker = run.wait_for("broker up: ").rpartition(" ")[2]
        run.wait_for("first state after ")
        site.spans = spans  # it fills three minutes from now, however long the start took
        wait_until(lambda: "elems_used" in state_of(broker).measured, PATIENCE_S)
        page = page_of(broker)
        assert (page.store, page.resource, [filler.queue for filler in page.fillers]) == (STORE, "entries", ["ORDERS"])

        def is_known() -> bool:  # the first measurements are later than the spans of their time
            seen = state_of(broker).coverage
            puts = seen["ORDERS"].puts_seen if seen else None
            return puts is not None and puts.low < 0.05 < puts.high < 0.1

        wait_until(is_known, PATIENCE_S)
        run.stop()
    assert any("resource=%2CPLEX1%2CSYSPLEX" in path for path, _ in requests)
    assert list((tmp_path / "site").glob("position-otlp-*.json")) and list((tmp_path / "site").glob("position-dds-*"))


def page_of(address: str) -> AlertData:
    """Return the first page that says when the store is full."""
    pages: list[AlertData] = []
    with AlertReader({"bootstrap.servers": address}, Topics(), from_beginning=True) as reader:

        def is_there() -> bool:
            alerts = [record.data for record in reader.read(0.5)]
            pages.extend(own for own in alerts if (own.condition, own.level) == (Condition.FULL_FORECAST, PAGE))
            return bool(pages)

        wait_until(is_there, PATIENCE_S)
    return pages[0]


def look_at(address: str) -> None:
    """Look at the console in a browser, where there is one: the stores, and what is wrong."""
    if CHROMIUM is None:
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, "--disable-sync"])
        page = browser.new_page()
        page.goto(address)
        expect(page.locator("h1")).to_contain_text(re.compile("APP1|entries"), timeout=60_000)
        expect(page.locator("body")).to_contain_text("QSG1/APP2")
        expect(page.locator("body")).to_contain_text(re.compile(r"93(\.0)? %"))
        browser.close()
