"""Console and exporter beside a real job and a real broker, in a real Chromium: job and broker may go and come back.

Also the console's past from a job's snapshots, and its map and notes over real topics. Skipped where there is no
Chromium, see tests/deploy/console/test_browser.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from pyspark.sql import SparkSession

from deploy.java.broker import Broker
from streams.checkpoint.snapshots import list_snapshots
from streams.kafka.admin import prepare_topics
from streams.kafka.notes import read_notes
from streams.kafka.publish import publish
from streams.kafka.topics import Topics
from streams.query.definition import JobSettings
from streams.query.job import start_job
from tests.streams.kafka_help import send
from tests.support.chromium import CHROMIUM, QUIET
from tests.support.java import quick_java
from tests.support.many_stores import many_stores, qmgr_of
from tests.support.processes import free_port
from tests.support.surfaces import running, status_of, wait_until
from tests.support.traffic import START_US, write_recording
from tests.system.harness import Played
from twin.base.units import as_text
from twin.estate import load_estate
from twin.events import NDJSON
from twin.planning.whatif import twin_at
from twin.playback.replays import replay
from twin.recordings.files import open_recording

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium"),
]

ROOT = Path(__file__).resolve().parents[2]
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
    console = [sys.executable, "-m", "deploy", "console", *kafka, "--listen", f"127.0.0.1:{ports[0]}"]
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


def test_past_shows_what_the_job_knew_then_and_back_to_now(
    browser: Browser, broker: Broker, spark: SparkSession, outage: Played, parts: list[Path], tmp_path: Path
) -> None:
    """The slider over snapshots and topic, in a console with a Spark of its own."""
    servers, checkpoint = {"bootstrap.servers": broker.bootstrap_servers}, tmp_path / "checkpoint"
    settings = JobSettings(
        estate=outage.estate,
        bootstrap_servers=broker.bootstrap_servers,
        checkpoint=str(checkpoint),
        available_now=True,
        max_records=1000,
        snapshot_hours=0.5,
    )
    for part in parts:  # a restart after each
        publish(part, outage.estate, servers, Topics(), content_type=NDJSON)
        job = start_job(settings, session=spark)
        try:
            job.wait()
        finally:
            job.stop()
    snapshots = list_snapshots(checkpoint)
    assert len(snapshots) >= 2
    moment = next(alert.time for alert in outage.replayed.alerts if alert.condition == "full") - 10 * 60_000_000
    assert snapshots[0].time < moment
    port = free_port()
    command = [sys.executable, "-m", "deploy", "console", "--bootstrap-servers", broker.bootstrap_servers]
    command += ["--estate", str(outage.described), "--checkpoint", str(checkpoint), "--listen", f"127.0.0.1:{port}"]
    address = f"http://127.0.0.1:{port}"
    with running(command, tmp_path / "console.log"):
        wait_until(lambda: status_of(f"{address}/readyz") == 200, 240)
        wait_until(lambda: status_of(f"{address}/api/moments") == 200, 240)  # its twins have read the events
        with urllib.request.urlopen(f"{address}/api/moments") as answer:
            times = json.load(answer)["times"]
        time_us = round(1e6 * max(time for time in times if time * 1e6 <= moment))  # of the slider
        expected = twin_at(outage.recording, outage.estate, STORE, time_us).state()
        text = f"{as_text(-(-time_us // 1_000_000) * 1_000_000)[:19]}Z"
        page = browser.new_page()
        page.goto(address)
        heading, clock = page.locator("h1"), page.locator(".past output")
        expect(heading).to_contain_text("Nothing is filling in", timeout=PATIENCE_MS)
        page.get_by_role("button", name="Past", exact=True).click()
        expect(page.locator("#fresh-text")).to_have_text("The past of mqtwin.events", timeout=PATIENCE_MS)
        expect(page.get_by_role("button", name="Past", exact=True)).to_be_hidden()
        mark = page.locator(".marks button").first
        expect(mark).to_have_attribute("aria-label", re.compile(STORE))
        page.goto(f"{address}/#/store/QSG1%2FAPP1?t={text}")
        expect(clock).to_have_text(f"{text[:19].replace('T', ' ')} UTC", timeout=PATIENCE_MS)
        messages = page.locator(".facts div", has=page.locator("dt", has_text=re.compile("^messages$"))).locator("dd")
        expect(messages).to_have_text(f"{expected.messages:,}", timeout=PATIENCE_MS)
        expect(page.locator(".hero .big")).to_contain_text("min")
        for name in ("Acknowledge", "Comment", "Done"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        mark.click()
        expect(page.locator(".alert").first).to_have_attribute("data-open", "true", timeout=PATIENCE_MS)
        page.get_by_role("button", name="Back to now").click()
        expect(page.locator("#fresh-text")).to_contain_text("written", timeout=PATIENCE_MS)
        expect(page.get_by_role("button", name="Past", exact=True)).to_be_visible()


def test_the_map_leads_to_an_alert_that_is_acknowledged_and_done_for_all_to_see(
    browser: Browser, broker: Broker, tmp_path: Path
) -> None:
    """The console over topics: ten structures of which one fills, a note by each button, the same by the command."""
    described, names, queues = many_stores(tmp_path, 10)
    estate, servers = load_estate(described), {"bootstrap.servers": broker.bootstrap_servers}
    recording = tmp_path / "rise.ndjson"
    minute = {"qmgr": qmgr_of(names[0]), "op": "PUT", "length": 3_000}
    write_recording(
        recording,
        [
            {**minute, "time": START_US + 60_000_000 * second, "queue": queue, "count": 700 if number == 3 else 5}
            for second in range(40)
            for number, queue in enumerate(queues)
        ],
    )
    replayed = replay(recording, estate)
    topics = Topics()
    prepare_topics(topics, servers)
    send(broker.bootstrap_servers, topics.state, [msgspec.json.encode(own) for own in replayed.states.values()])
    send(broker.bootstrap_servers, topics.alerts, [alert.record() for alert in replayed.alerts])
    [store] = {alert.store for alert in replayed.alerts}
    assert store == names[3]
    kafka = ["--bootstrap-servers", broker.bootstrap_servers]
    port = free_port()
    console = [sys.executable, "-m", "deploy", "console", *kafka, "--listen", f"127.0.0.1:{port}"]
    with running(console, tmp_path / "console.log"):
        address = f"http://127.0.0.1:{port}"
        wait_until(lambda: status_of(f"{address}/readyz") == 200, 120)
        page, other = browser.new_page(), browser.new_page()
        for own in (page, other):
            own.goto(address)
        cell = page.locator(".map .cell").first
        expect(page.locator(".map .cell")).to_have_count(10, timeout=PATIENCE_MS)
        expect(cell).to_have_attribute("aria-label", re.compile(f"^{store}, "))
        cell.focus()
        page.keyboard.press("Enter")
        alert = page.locator(".alert").first
        alert.get_by_role("button", name="Acknowledge").first.click()
        page.get_by_label("Your name").fill("ann")
        page.keyboard.press("Enter")
        expect(alert.locator(".notes").first).to_contain_text("acknowledged by ann at", timeout=60_000)
        expect(other.locator(".cell[data-taken]")).to_have_count(1, timeout=60_000)
        done = alert.get_by_role("button", name=re.compile("^Done")).first
        done.click()
        page.get_by_label("Comment, if any").fill("<b>two more</b>")
        page.keyboard.press("Enter")
        expect(alert.locator(".actions .done").first).to_contain_text("done by ann at", timeout=60_000)
        expect(alert.locator(".notes").first).to_contain_text("<b>two more</b>")
        notes = read_notes(servers, topics)
        assert [note.kind for note in notes] == ["acknowledged", "acted"]
        other.goto(f"{address}/#/alerts")
        more = [sys.executable, "-m", "deploy", "acknowledge", notes[0].alert_id, "--who", "bob", *kafka]
        subprocess.run(more, check=True, cwd=ROOT)
        expect(other.locator(".alert .notes").first).to_contain_text("acknowledged by bob at", timeout=60_000)
