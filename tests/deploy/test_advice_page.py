"""The report of advice in a real Chromium: accessible, no wider than the screen, and nothing from outside.

Skipped where there is no Chromium, see tests/deploy/console/test_browser.py.
"""

from __future__ import annotations

from datetime import datetime
from importlib import resources
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from deploy.show.document import page as html_page
from deploy.show.document import time_marks
from deploy.show.planning import advice_document
from tests.deploy.console.test_browser import SIZES
from tests.support.chromium import CHROMIUM
from tests.support.moments import structure_at_rest
from twin.planning.advise import Promise, advise
from twin.planning.proof import AS_IT_IS, Proof
from twin.planning.whatif import Traffic

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with plans, one that is left out, and a recording; a name in it is hostile."""
    folder = tmp_path_factory.mktemp("report")
    tables = (
        '[coupling_facility.CF01]\nsize = "300M"\n\n[smds."QSG1/APP1/QM01"]\nsize = "64M"\nmax_size = "512M"\n---\n'
    )
    moment = structure_at_rest(folder, f'{tables}size = "256M"\ncoupling_facility = "CF01"\n', length=20_000, rate=10)
    advice = advise(moment, Promise(hours=2), Traffic(gets=0))
    assert advice.plans and advice.left_out
    proofs = [
        Proof(
            title=title,
            recorded=7,
            puts=100,
            refused=7 if title == AS_IT_IS else 0,
            first_full="2026-01-01T01:00:00.000000Z" if title == AS_IT_IS else None,
            full=("elements",) if title == AS_IT_IS else (),
            unserved_gets=0,
            peak_pct=100.0 if title == AS_IT_IS else 60.0,
            times=(1_767_225_600.0, 1_767_229_200.0, 1_767_232_800.0),
            usage_pct=(0.0, 100.0 if title == AS_IT_IS else 60.0, 10.0),
        )
        for title in (AS_IT_IS, *(plan.title for plan in advice.plans))
    ]
    path = folder / "advice.html"
    path.write_text(
        html_page(advice_document(advice, proofs, '<script src="https://example.com/x.js">')), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    ("first", "last", "marks"),
    [
        ("00:00:00", "02:00:00", ["00:00", "00:30", "01:00", "01:30", "02:00"]),
        ("00:25:00", "03:11:07", ["00:30", "01:00", "01:30", "02:00", "02:30", "03:00"]),
        ("08:58:01", "09:21:00", ["09:00", "09:05", "09:10", "09:15", "09:20"]),
        ("03:10:00", "23:59:59", ["06:00", "12:00", "18:00"]),
        ("08:58:01", "08:58:31", []),
    ],
)
def test_the_course_has_marks_at_round_times(first: str, last: str, marks: list[str]):
    begin, end = (datetime.fromisoformat(f"2026-01-01T{text}+00:00").timestamp() for text in (first, last))
    assert [text for _, text in time_marks(begin, end)] == marks


def test_the_course_of_days_has_marks_at_midnights():
    begin = datetime.fromisoformat("2026-01-01T13:00:00+00:00").timestamp()
    marks = time_marks(begin, begin + 15 * 86_400)
    assert [text for _, text in marks] == ["01-04", "01-07", "01-10", "01-13", "01-16"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_report_is_one_file_that_everyone_can_read(browser: Browser, page_file: Path, size: str, scheme: str):
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    width, height = SIZES[size]
    page = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
    asked: list[str] = []

    def only_the_file(route: Route) -> None:
        asked.append(route.request.url)
        route.continue_()

    page.route("**/*", only_the_file)
    page.goto(page_file.as_uri())
    expect(page.locator("h1")).to_have_text("Advice for QSG1/APP1")
    assert page.locator("svg").count() == 3 and page.locator("polyline").count() == page.locator("h2 ~ ol").count() + 1
    expect(page.locator("h2", has_text="Left out")).to_be_visible()
    proven = page.get_by_text("0 refused (7 as it is), at most 60.0 % in use.")
    assert proven.count() == page.locator("h2 ~ ol").count()
    page.evaluate(axe)
    violations = page.evaluate("axe.run()")["violations"]
    serious = [violation["id"] for violation in violations if violation["impact"] in {"serious", "critical"}]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert asked == [page_file.as_uri()]
    page.context.close()
