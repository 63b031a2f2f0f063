"""Picture of the morning report in a real Chromium: report.png in docs/images.

The report is that of a structure that was altered eight minutes before it would have been full. Write it with
``python -m docs.make_report_picture``; it needs the package chromium of the distribution.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import twin
from deploy.show.morning_page import morning_page
from tests.support.acted import altered, simulate_outage, with_events

OUT = Path(__file__).parent / "images" / "report.png"


def main() -> int:
    """Write the picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no Chromium; expected: the package chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        site = simulate_outage(Path(folder))
        report = twin.report(with_events(site.recording, "altered.ndjson", altered()), site.estate)
        file = Path(folder) / "report.html"
        file.write_text(morning_page(report), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 860, "height": 950}, color_scheme="light")
        page.goto(file.as_uri())
        page.screenshot(path=str(OUT))
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
