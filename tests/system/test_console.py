"""Console and exporter beside a real job and a real broker, in a real Chromium: both may go and come back.

Skipped where there is no Chromium, see tests/deploy/console/test_browser.py.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from pyspark.sql import SparkSession

from deploy.java.broker import Broker
from streams.kafka.publish import publish
from streams.kafka.topics import Topics
from streams.query.definition import JobSettings
from streams.query.job import start_job
from tests.deploy.console.test_browser import CHROMIUM, QUIET
from tests.support.java import quick_java
from tests.support.processes import free_port
from tests.support.surfaces import running, status_of, wait_until
from tests.system.harness import Played
from twin.events import NDJSON
from twin.recordings.files import open_recording
from twin.units import as_text

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium"),
]

STORE = "QSG1/APP1"
PATIENCE_MS = 240_000  # Spark begins slowly on a busy machine
REST = "2026-11-20T00:20:00"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker of its own."""
    own = Broker(data=tmp_path / "broker")
    with quick_java():
        own.start()
    with own:
        yield own


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, "--disable-sync"])
        yield started
        started.close()


@pytest.fixture
def parts(outage: Played, tmp_path: Path) -> list[Path]:
    """The outage in three parts: at rest, until puts are refused, to the end."""
    first_full = next(alert.time for alert in outage.replayed.alerts if alert.condition == "full")
    limits = [REST, as_text(first_full + 60_000_000)[:19], "9"]
    paths = [tmp_path / f"part-{number}.ndjson" for number in range(3)]
    lines: list[list[bytes]] = [[], [], []]
    for chunk in open_recording(outage.recording):
        for line in chunk.lines():
            time = json.loads(line)["time"]
            lines[next(number for number, limit in enumerate(limits) if time < limit)].append(bytes(line) + b"\n")
    for path, own in zip(paths, lines, strict=True):
        path.write_bytes(b"".join(own))
    return paths


@contextmanager
def running_job(settings: JobSettings, session: SparkSession) -> Iterator[None]:
    """Run a job within the block; at its end it is asked to stop, as by a signal, and must not have failed."""
    job, stop = start_job(settings, session=session), threading.Event()
    try:
        yield
        stop.set()
        job.wait(stop)
    finally:
        job.stop()


def test_the_screen_stays_true_while_job_and_broker_go_and_come_back(
    browser: Browser, broker: Broker, spark: SparkSession, outage: Played, parts: list[Path], tmp_path: Path
) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    kafka, status = ["--bootstrap-servers", broker.bootstrap_servers], tmp_path / "status.json"
    ports = free_port(), free_port()
    console = [sys.executable, "-m", "deploy", "console", *kafka, "--port", str(ports[0])]
    beat = ["--max-beat", "5", "--listen", f"127.0.0.1:{ports[1]}", "--status-file", str(status)]
    exporter = [sys.executable, "-m", "deploy", "export", *kafka, *beat]
    health = f"http://127.0.0.1:{ports[1]}"
    settings = JobSettings(
        estate=outage.estate,
        bootstrap_servers=broker.bootstrap_servers,
        checkpoint=str(tmp_path / "checkpoint"),
        status_file=status,
        trigger="1 second",
        max_records=1000,
    )

    def send(number: int) -> None:
        publish(parts[number], outage.estate, servers, Topics(), content_type=NDJSON)

    send(0)
    with running(console, tmp_path / "console.log"), running(exporter, tmp_path / "export.log"):
        wait_until(lambda: status_of(f"http://127.0.0.1:{ports[0]}/healthz") == 200, 120)
        wait_until(lambda: status_of(f"{health}/healthz") == 503, 120)  # no status file yet
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{ports[0]}")
        heading, banner = page.locator("h1"), page.locator("#banner")
        with running_job(settings, spark):
            expect(heading).to_contain_text("Nothing is filling in", timeout=PATIENCE_MS)
            expect(page.locator("#fresh-text")).to_contain_text("As of 2026-11-20 00:")
            wait_until(lambda: status_of(f"{health}/readyz") == 200, 120)
        wait_until(lambda: status_of(f"{health}/healthz") == 503, 60)  # ten triggers without a beat
        broker.kill()
        expect(banner).to_contain_text("no Kafka answers at", timeout=60_000)
        broker.start()
        expect(banner).to_be_hidden(timeout=60_000)
        expect(heading).to_contain_text("Nothing is filling in")
        send(1)
        with running_job(settings, spark):
            expect(heading).to_contain_text(STORE, timeout=PATIENCE_MS)
            expect(page.locator(".card .chip").first).to_contain_text(re.compile("full", re.IGNORECASE))
            wait_until(lambda: status_of(f"{health}/readyz") == 200, 120)
            send(2)
            expect(heading).to_contain_text("Nothing is filling in", timeout=PATIENCE_MS)
            assert status_of(f"{health}/readyz") == 200
