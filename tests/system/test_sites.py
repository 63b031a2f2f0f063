"""Two sites with a broker, a job and an exporter each, and one console over both, in a real Chromium.

Their stores have the same names: what is full at one is not so at the other. A broker is stopped and comes back.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pyspark.sql import SparkSession

from deploy.java.broker import Broker
from streams.kafka.notes import read_notes
from streams.kafka.publish import publish
from tests.support.chromium import CHROMIUM, QUIET
from tests.support.java import quick_java
from tests.support.processes import free_port
from tests.support.surfaces import running, status_of, wait_until
from tests.system.harness import Played, Stream
from twin.base.units import as_text
from twin.estate import load_estate
from twin.events import NDJSON
from twin.recordings.files import open_recording

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium"),
]

STORE = "QSG1/APP1"
REST = "2026-11-20T00:20:00"
SIZES = {"phone": (390, 844), "laptop": (1440, 900)}
PATIENCE_MS = 120_000


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[str, Broker]]:
    own = {name: Broker(data=tmp_path / f"broker-{name}") for name in ("prod", "test")}
    with ExitStack() as stack:
        for broker in own.values():
            with quick_java():
                broker.start()
            stack.enter_context(broker)
        yield own


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, "--disable-sync"])
        yield started
        started.close()


def estate_of(name: str, outage: Played, folder: Path) -> Path:
    """Return the estate of the outage with the name of a site."""
    path = folder / f"{name}.toml"
    path.write_text(f'{outage.described.read_text(encoding="utf-8")}\n[site]\nname = "{name}"\n', encoding="utf-8")
    return path


def run_job(name: str, until: str, broker: Broker, outage: Played, spark: SparkSession, folder: Path) -> Stream:
    """Run the job of a site over the outage up to a time, with topics and an estate of its own."""
    part = folder / f"{name}.ndjson"
    lines = (bytes(line) for chunk in open_recording(outage.recording) for line in chunk.lines())
    part.write_bytes(b"".join(line + b"\n" for line in lines if json.loads(line)["time"] < until))
    estate = load_estate(estate_of(name, outage, folder))
    stream = Stream(spark, broker.bootstrap_servers, f"{name}-twin", estate, folder / f"checkpoint-{name}")
    publish(part, estate, {"bootstrap.servers": stream.servers}, stream.topics, content_type=NDJSON)
    stream.run(max_records=1000)
    return stream


def look(page: Page, name: str) -> None:
    """Assert that a page fits each screen; write pictures into the folder MQTWIN_TEST_PICTURES, if it is set."""
    folder = os.environ.get("MQTWIN_TEST_PICTURES")
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, size)
        if folder:
            page.screenshot(path=str(Path(folder) / f"{size}-{name}.png"), full_page=True)


def text_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def test_a_full_store_of_one_site_is_seen_beside_the_other_and_a_broker_that_stops_blanks_nothing(
    browser: Browser, brokers: dict[str, Broker], spark: SparkSession, outage: Played, tmp_path: Path
) -> None:
    full_us = next(alert.time for alert in outage.replayed.alerts if alert.condition == "full") + 60_000_000
    until = {"prod": as_text(full_us)[:19], "test": REST}
    sites = {name: run_job(name, until[name], brokers[name], outage, spark, tmp_path) for name in brokers}
    assert {name: {state.site for state in stream.states().values()} for name, stream in sites.items()} == {
        "prod": {"prod"},
        "test": {"test"},
    }
    assert {alert["source"] for alert in sites["prod"].alerts().values()} == {"mqtwin/prod"}
    port = free_port()
    console = [sys.executable, "-m", "deploy", "console", "--listen", f"127.0.0.1:{port}"]
    exporters = {}
    with ExitStack() as stack:
        for name, stream in sites.items():
            console += [f"--site={name}={stream.servers}/{stream.prefix}", f"--site-estate={tmp_path / name}.toml"]
            exporters[name] = f"http://127.0.0.1:{free_port()}"
            words = ["--bootstrap-servers", stream.servers, "--topic-prefix", stream.prefix]
            words += ["--listen", exporters[name].removeprefix("http://")]
            stack.enter_context(running([sys.executable, "-m", "deploy", "export", *words], tmp_path / f"{name}.log"))
        address = f"http://127.0.0.1:{port}"
        with running(console, tmp_path / "console.log"):
            for name in sites:
                wait_until(lambda name=name: status_of(f"{address}/{name}/readyz") == 200, 120)
            page = browser.new_page()
            page.goto(address)
            heading, cards = page.locator("h1"), page.locator("#sites .card")
            expect(heading).to_have_text(f"prod {STORE} is full", timeout=PATIENCE_MS)
            expect(cards).to_have_count(2)
            expect(cards.nth(1)).to_contain_text("nothing calls")
            look(page, "sites")
            for name, url in exporters.items():
                wait_until(lambda url=url: status_of(f"{url}/readyz") == 200, 120)
                metrics = [line for line in text_of(f"{url}/metrics").splitlines() if line.startswith("mqtwin_")]
                assert all(f'site="{name}"' in line for line in metrics)
            page.locator("#stores h3 a").first.click()
            expect(page.locator(".brand")).to_have_text("mqtwin prod")
            expect(page.locator(".hero .big")).to_have_text("Full now", timeout=PATIENCE_MS)
            look(page, "sites-store")
            brokers["test"].kill()
            note(page, "on it")
            wait_until(lambda: read_notes({"bootstrap.servers": sites["prod"].servers}, sites["prod"].topics), 60)
            page.locator(".brand").click()
            expect(page.locator("#banner")).to_contain_text("test: no Kafka answers at", timeout=PATIENCE_MS)
            expect(heading).to_have_text(f"prod {STORE} is full")
            expect(cards.nth(1)).to_contain_text("as last heard")
            look(page, "sites-away")
            codes = [status_of(f"{address}{path}") for path in ("/readyz", "/prod/readyz", "/test/readyz")]
            assert codes == [200, 200, 503]
        with running(console, tmp_path / "console.log"):  # begins while a site is away
            wait_until(lambda: status_of(f"{address}/prod/readyz") == 200, 120)
            page.goto(address)
            expect(page.locator("#banner")).to_contain_text("test: no Kafka answers at", timeout=PATIENCE_MS)
            expect(heading).to_have_text(f"prod {STORE} is full", timeout=PATIENCE_MS)
            brokers["test"].start()
            expect(page.locator("#banner")).to_be_hidden(timeout=PATIENCE_MS)
            expect(cards.nth(1)).to_contain_text("nothing calls", timeout=PATIENCE_MS)
            assert read_notes({"bootstrap.servers": sites["test"].servers}, sites["test"].topics) == []


def note(page: Page, text: str) -> None:
    """Leave a comment on the first alert of the page."""
    alert = page.locator(".alert").first
    alert.get_by_role("button", name="Comment").first.click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_role("textbox", name="Comment").fill(text)
    page.keyboard.press("Enter")
    expect(alert.locator(".notes").first).to_contain_text(re.compile(rf"ann at .*{text}"), timeout=60_000)
