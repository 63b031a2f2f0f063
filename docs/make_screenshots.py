"""Pictures of pages in a real Chromium: console.png, map.png, past.png and report.png in docs/images.

The first is the demo 27 minutes before the first 2192, the second made-up records of 200 stores, the third a recording
at the moment of its first call, the fourth the morning report of a structure that was altered in time.
`python -m docs.make_screenshots` writes them; it needs the package chromium of the distribution.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import twin
from deploy.console.model import ConsoleModel
from deploy.console.past import PastTwins
from deploy.console.server import ConsoleServer, Listen
from deploy.show.document import page as html_page
from deploy.show.morning import morning_document
from tests.support.acted import altered, simulate_outage, with_events
from tests.support.chromium import CHROMIUM
from tests.support.console_feed import TOPICS, note_record, story, two_hundred_stores
from twin.playback.timeline import Timeline
from twin.records import new_note
from twin.simulation import SideBySide, side_by_side_estate

IMAGES = Path(__file__).parent / "images"
_UNTIL = "02:34"  # time of day of the last record shown


def main() -> int:
    """Write the pictures."""
    if CHROMIUM is None:
        print("no Chromium; expected: the package chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        _take_console(browser, Path(folder))
        _take_report(browser, Path(folder))
        browser.close()
    return 0


def _take_console(browser: Browser, folder: Path) -> None:
    """Write the pictures of the overview, the map and the past."""
    model, many, friday = ConsoleModel(TOPICS), ConsoleModel(TOPICS), folder / "friday.arrow"
    moments = story(folder, SideBySide(), side_by_side_estate())
    records = [moment.record for moment in moments if moment.time[11:] <= _UNTIL]
    now_ms = int(time.time() * 1000) - 4_000
    model.fold([record._replace(written_ms=now_ms) for record in records])
    model.set_source(connected=True, caught_up=True, missing=[])
    _take(browser, ConsoleServer(model, Listen(port=0)), IMAGES / "console.png")
    many.fold(two_hundred_stores(int(time.time() * 1000) - 4_000))
    many.fold([note_record(new_note("QSG2/APP000/1", "acknowledged", "ann", "2026-11-20T12:02:00Z"))])
    many.set_source(connected=True, caught_up=True, missing=[])
    _take(browser, ConsoleServer(many, Listen(port=0)), IMAGES / "map.png")
    twin.simulate(twin.make_scenario("getter-outage"), twin.demo_estate(), friday, seed=0)
    past = PastTwins(Timeline(friday, twin.demo_estate()))
    start = past.model_at(past.moments.first)
    _take(browser, ConsoleServer(start, Listen(port=0), past, past), IMAGES / "past.png")


def _take_report(browser: Browser, folder: Path) -> None:
    """Write the picture of the report of a structure that was altered eight minutes before it would have been full."""
    site, file = simulate_outage(folder), folder / "report.html"
    report = twin.report(with_events(site.recording, "altered.ndjson", altered()), site.estate)
    file.write_text(html_page(morning_document(report)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 860, "height": 950}, color_scheme="light")
    page.goto(file.as_uri())
    page.screenshot(path=str(IMAGES / "report.png"))
    page.close()


def _take(browser: Browser, started: ConsoleServer, path: Path) -> None:
    with started as server:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        page.goto(server.address)
        page.locator(".card h3").first.wait_for()
        page.wait_for_timeout(2_000)  # until the curves are there
        page.screenshot(path=str(path))
        page.close()


if __name__ == "__main__":
    raise SystemExit(main())
