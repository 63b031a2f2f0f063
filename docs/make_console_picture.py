"""Picture of the console, docs/images/console.png: the demo 27 minutes before the first 2192, in a real Chromium.

Write it with ``python -m docs.make_console_picture``; it needs the package chromium of the distribution.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from deploy.console.model import ConsoleModel
from deploy.console.server import ConsoleServer, Listen
from tests.support.console_feed import TOPICS, story
from twin.simulation import SideBySide, side_by_side_estate

OUT = Path(__file__).parent / "images" / "console.png"
_UNTIL = "02:34"  # time of day of the last record shown


def main() -> int:
    """Write the picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no Chromium; expected: the package chromium", file=sys.stderr)
        return 1
    model = ConsoleModel(TOPICS)
    with tempfile.TemporaryDirectory() as folder:
        moments = story(Path(folder), SideBySide(), side_by_side_estate())
    records = [moment.record for moment in moments if moment.time[11:] <= _UNTIL]
    now_ms = int(time.time() * 1000) - 4_000
    model.fold([record._replace(written_ms=now_ms) for record in records])
    model.set_source(connected=True, caught_up=True, missing=[])
    with ConsoleServer(model, Listen(port=0)) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1100, "height": 860}, color_scheme="light")
        page.goto(server.address)
        page.locator(".card canvas").first.wait_for()
        page.wait_for_timeout(800)  # until the bars have grown
        page.screenshot(path=str(OUT))
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
