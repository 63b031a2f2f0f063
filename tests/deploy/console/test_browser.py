"""The console in a real Chromium: the demo from rest to cleared, nothing from outside, accessible, honest when alone.

Skipped where there is no Chromium: the package of the distribution (Debian: chromium), or MQTWIN_TEST_CHROMIUM=PATH.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import psutil
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from deploy.cli import _new_app as commands_app
from deploy.console.identity import Proxy, Roles
from deploy.console.model import ConsoleModel
from deploy.console.oidc import Client, Provider
from deploy.console.server import ConsoleServer, Listen
from tests.support.chromium import CHROMIUM
from tests.support.console_feed import (
    RUNBOOK,
    TOPICS,
    FixedAnswers,
    Moment,
    alert_event,
    alert_record,
    coupling_facility,
    demo_story,
    distant_forecast,
    letter_record,
    note_record,
    page_set,
    state_record,
    two_hundred_stores,
)
from tests.support.oidc_provider import CLIENT_ID, CLIENT_SECRET, running_provider
from tests.support.processes import free_port
from twin.base.errors import UsageError
from twin.base.units import zone_of
from twin.records import Note, new_note

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")

expect.set_options(timeout=60_000)  # milliseconds: a busy machine draws a wall screen without a graphics card
SIZES = {"phone": (390, 844), "laptop": (1440, 900), "wall": (2560, 1440)}
VIEWS = ("#/", "#/store/QSG1%2FAPP1", "#/alerts", "#/drift", "#/dead-letters", "#/job")
STORE = "QSG1/APP1"
ODD = re.compile(r"undefined|NaN|null|\[object|\d[eE][+-]?\d\d")  # what no reader should see
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"  # all is drawn then


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> list[Moment]:
    return demo_story(tmp_path_factory.mktemp("story"))


@contextmanager
def opened(
    browser: Browser,
    address: str,
    size: str = "laptop",
    scheme: str = "light",
    path: str = "#/",
    *,
    but: str | None = None,
) -> Iterator[Page]:
    """Open the console, and fail on anything that a browser complains about (but this) or that it asks of others."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    complaints: list[str] = []

    def only_the_console(route: Route) -> None:
        if route.request.url.startswith((address, "data:")):
            route.continue_()
        else:
            complaints.append(f"asked for {route.request.url}")
            route.abort()

    page = context.new_page()
    page.set_default_navigation_timeout(120_000)
    page.route("**/*", only_the_console)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (event) => console.error(`CSP ${event.violatedDirective}`))"
    )
    page.goto(address + path)
    yield page
    context.close()
    assert [complaint for complaint in complaints if complaint != but] == []


def fold_until(model: ConsoleModel, story: list[Moment], time_of_day: str, done: int = 0) -> int:
    """Fold the records up to a time of day; return how many are folded."""
    while done < len(story) and story[done].time[11:] <= time_of_day:
        model.fold([story[done].record._replace(written_ms=int(time.time() * 1000))])
        done += 1
    model.set_source(connected=True, caught_up=True, missing=[])
    return done


@pytest.mark.nightly
@pytest.mark.ci
def test_the_story_of_the_demo_from_rest_to_cleared(browser: Browser, story: list[Moment]):
    model = ConsoleModel(TOPICS)
    done = fold_until(model, story, "00:20")
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        heading, alerts = page.locator("h1"), page.locator("#count-alerts")
        expect(heading).to_have_text("Nothing is filling in 2 stores")
        expect(page.locator("#fresh-text")).to_contain_text("As of 2026-11-20 00:")
        expect(alerts).to_be_empty()
        done = fold_until(model, story, "01:34", done)
        expect(heading).to_contain_text(f"{STORE} is full in")
        expect(page.locator(".card h3")).to_have_text(STORE)
        expect(page.locator(".card .title .chip")).to_contain_text("warning")  # a page from 80 % on
        expect(page).to_have_title(re.compile(r"^\(1\) 2\d min: Overview - mqtwin"))
        done = fold_until(model, story, "01:44", done)
        expect(page.locator(".card .title .chip")).to_contain_text("warning")
        expect(page).to_have_title(re.compile(r"^\(1\) 1\d min: Overview - mqtwin"))
        expect(alerts).to_have_text("1")
        expect(page.locator(".head")).to_contain_text("1 open incident: 1 page")
        page.locator(".card").click()
        expect(page.locator(".hero")).to_contain_text("until SMDS QM01 is full")
        expect(page.locator("figcaption")).to_contain_text("the fan reaches the 100 % line")
        expect(page.locator(".alert", has_text="full-forecast").locator("code").first).to_have_text(
            "DISPLAY QSTATUS(ORDERS) TYPE(QUEUE) CMDSCOPE(*) ALL"
        )
        done = fold_until(model, story, "02:02:30", done)
        expect(page.locator(".hero .big")).to_have_text("Full now")
        page.locator("nav").get_by_text("Incidents").click()
        expect(page.locator(".alert")).to_have_count(1)
        expect(page.locator(".alert")).to_have_attribute("data-severity", "full")
        expect(page.locator(".alert .others > summary")).to_have_text("4 more alerts")
        expect(alerts).to_have_text("1")
        fold_until(model, story, "24", done)
        expect(heading).to_have_text("No open incident")
        expect(page.locator(".alert[data-open=false]")).to_have_count(1)
        expect(page.locator(".alert[data-open=false] h3")).to_contain_text("SMDS QM01: full")
        assert ODD.findall(page.locator("body").inner_text()) == []
        expect(alerts).to_be_empty()


def test_the_first_state_is_three_requests_deep(browser: Browser):
    """The page, its files at once, the events; nothing waits for more, and nothing is fetched twice."""
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 100))])
    asked: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    with ConsoleServer(model, Listen(port=0)) as server:
        page.on("request", lambda request: asked.append(request.url.removeprefix(server.address)))
        page.goto(server.address)
        expect(page.locator("tbody th")).to_have_text("QM01/PS04")
        entries = page.evaluate(
            "performance.getEntriesByType('resource').map((entry) => [entry.name, entry.startTime, entry.responseEnd])"
        )
        context.close()
    times = {name.rpartition("/")[2]: (start, end) for name, start, end in entries}
    assert [path for path in asked if path.startswith("api/")] == ["api/events"]
    assert len(asked) == len(set(asked))
    scripts = ("page.js", "chart.js", "whatif.js")
    assert max(times[script][0] for script in scripts) < times["console.js"][1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.nightly
def test_every_view_is_accessible_and_no_wider_than_the_screen(browser: Browser, story: list[Moment], scheme: str):
    axe = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    model = ConsoleModel(TOPICS)
    fold_until(model, story, "01:40")
    model.fold([letter_record(), state_record(page_set("QM01/PS04", 9_200, drift_pct=-6.2, gaps=3))])
    model.fold([alert_record(alert_event()), alert_record(alert_event(2, level="watch", severity="info"))])
    with ConsoleServer(model, Listen(port=0), FixedAnswers(_fixed_answer)) as server:
        for path in VIEWS:
            with opened(browser, server.address, "laptop", scheme, path) as page:
                expect(page.locator("#fresh-text")).to_contain_text("As of")
                expect(page.locator("h1")).not_to_be_empty()
                page.evaluate(axe)
                for size, (width, height) in SIZES.items():
                    page.set_viewport_size({"width": width, "height": height})
                    page.evaluate(TWO_FRAMES)
                    assert _serious(page.evaluate("axe.run({resultTypes: ['violations']})")) == [], (path, size)
                    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (path, size)
                    assert ODD.findall(page.locator("body").inner_text()) == [], (path, size)
                    _take_picture(page, size, f"{scheme}-{path.removeprefix('#/').partition('/')[0] or 'overview'}")


def _serious(report: dict[str, Any]) -> list[Any]:
    """Return the serious and critical violations of a report of axe."""
    return [
        (violation["id"], [node["html"][:120] for node in violation["nodes"]])
        for violation in report["violations"]
        if violation["impact"] in {"serious", "critical"}
    ]


def _take_picture(page: Page, size: str, name: str) -> None:
    """Write a picture of the page into the folder MQTWIN_TEST_PICTURES, if it is set."""
    folder = os.environ.get("MQTWIN_TEST_PICTURES")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{size}-{name}.png"), full_page=size != "wall")


def _fixed_answer(request: dict[str, Any]) -> dict[str, Any]:
    factor = request.get("traffic", {}).get("puts", 1.0)
    times = {
        name: 0.0 if factor == 4 else time / factor for name, time in {"p10": 1300, "p50": 1600, "p90": 2100}.items()
    }
    before = {
        "resource": "smds/QM01",
        "label": "SMDS QM01",
        "time_to_full_s": {"p10": 1300.0, "p50": 1600.0, "p90": 2100.0},
    }
    rest = {"probability": 0.7, "horizon_s": 7200, "messages_that_fit": 40_000}
    after = {"resource": "smds/QM01", "label": "SMDS QM01", "time_to_full_s": times}
    attributes = [{"name": "offld1_th", "label": "OFFLD1TH", "value": 70, "min": 0, "max": 100, "step": 1, "unit": "%"}]
    attributes.append({**attributes[0], "name": "scm_max_size", "label": "SCMMAXSIZE", "unit": "MB"})
    return {"attributes": attributes, "before": {**before, **rest}, "after": {**after, **rest}}


def test_a_slider_of_what_if_is_answered(browser: Browser, story: list[Moment]):
    model = ConsoleModel(TOPICS)
    fold_until(model, story, "01:34")
    with (
        ConsoleServer(model, Listen(port=0), FixedAnswers(_fixed_answer)) as server,
        opened(browser, server.address, path=VIEWS[1]) as page,
    ):
        asked = page.locator(".compare dl").nth(1)
        expect(asked.locator(".big")).to_have_text("27 min")
        slider = page.get_by_label("puts")
        slider.fill("2")
        expect(asked.locator(".big")).to_have_text("13 min")
        expect(page.locator(".compare dl").nth(0).locator(".big")).to_have_text("27 min")
        slider.fill("4")
        expect(asked.locator(".big")).to_have_text("full now")
        expect(asked).to_contain_text("SMDS QM01: puts fail")
        page.get_by_role("button", name="Reset", exact=True).click()
        expect(asked.locator(".big")).to_have_text("27 min")
        for name, text in (("SCMMAXSIZE", "none"), ("OFFLD1TH", "0 %")):
            page.get_by_role("slider", name=name).fill("0")
            expect(page.locator(".sliders div", has_text=name).locator("output")).to_have_text(text)


def test_the_keyboard_alone_reaches_a_store_and_reads_its_chart(browser: Browser, story: list[Moment]):
    model = ConsoleModel(TOPICS)
    fold_until(model, story, "01:34")
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        card = page.locator(".card h3 a")
        expect(card).to_be_visible()
        card.focus()
        page.keyboard.press("Enter")
        chart = page.locator(".usage .chart")
        expect(chart.locator("canvas")).to_be_visible()
        chart.focus()
        for _ in range(50):  # the canvas is there before its points are
            page.keyboard.press("Home")
            if page.locator("#announce").text_content():
                break
            page.wait_for_timeout(100)
        expect(page.locator("#announce")).to_contain_text("00:0")
        page.keyboard.press("ArrowRight")
        expect(page.locator("figcaption")).to_contain_text("elements")


@pytest.mark.nightly
def test_a_quiet_screen_is_not_a_dead_one(browser: Browser):
    """A broker that went, a job that stopped, a console that went, and a console that came back say so."""
    stopped: list[str] = []
    model = ConsoleModel(TOPICS, job_problem=lambda: "".join(stopped))
    model.fold([state_record(page_set("QM01/PS04", 100), int(time.time() * 1000))])
    model.set_source(connected=True, caught_up=True, missing=[])
    server = ConsoleServer(model, Listen(port=0))
    port = int(server.address.rstrip("/").rpartition(":")[2])
    context = browser.new_context()
    page = context.new_page()
    try:
        page.goto(server.address)
        expect(page.locator("#fresh")).to_have_attribute("data-state", "live")
        model.set_source(connected=False, caught_up=True, missing=[], problem="no Kafka answers at localhost:9092")
        expect(page.locator("#banner")).to_contain_text("no Kafka answers at localhost:9092")
        model.set_source(connected=True, caught_up=True, missing=[])
        expect(page.locator("#banner")).to_be_hidden()
        stopped.append("The job has stopped: its last sign was 3 min ago")
        expect(page.locator("#banner")).to_contain_text("The job has stopped: its last sign was 3 min ago.")
        expect(page.locator("h1")).to_contain_text("The job has stopped")
        stopped.clear()
        expect(page.locator("#banner")).to_be_hidden()
        server.close()
        expect(page.locator("#banner")).to_contain_text("No answer from the console", timeout=4_000)  # milliseconds
        again = ConsoleModel(TOPICS)
        again.fold([state_record(page_set("QM01/PS07", 5_000), int(time.time() * 1000))])
        server = ConsoleServer(again, Listen(port=port))
        expect(page.locator("#banner")).to_be_hidden(timeout=15_000)
        expect(page.locator("tbody th")).to_have_text("QM01/PS07")  # the old store is of the old process
    finally:
        context.close()
        server.close()


def test_planned_work_is_a_table_and_bands_on_the_curve(browser: Browser):
    model = ConsoleModel(TOPICS)
    job = {"id": "settlement", "queue": "BATCH", "getters_away": False}
    ran = {"begins": "2026-11-20T12:10:00Z", "ends": "2026-11-20T12:25:00Z", "announced": 250_000, "seen": 250_000}
    ahead = {"begins": "2026-11-20T13:10:00Z", "ends": "2026-11-20T13:25:00Z", "announced": 250_000, "seen": None}
    plans = [job | ran | {"status": "over"}, job | ahead | {"status": "planned", "getters_away": True}]
    for minute in range(60):
        used = 1_000 + 200 * min(15, max(0, minute - 10))
        time_text = f"2026-11-20T12:{minute:02}:00Z"
        model.fold([state_record(page_set("QM01/PS04", used, time=time_text, plans=plans))])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        page.goto(server.address + "#/store/QM01%2FPS04")
        rows = page.locator(".panel", has_text="Planned work").locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("settlement, BATCH")
        expect(rows.first).to_contain_text("250,000")
        expect(rows.last).to_contain_text("planned, getters away")
        page.evaluate(TWO_FRAMES)
        x, y = "Math.round(0.25 * node.width)", "Math.round(0.2 * node.height)"
        pixels = [
            page.locator("canvas").evaluate(
                f"(node) => [...node.getContext('2d').getImageData({column}, {y}, 1, 1).data]"
            )
            for column in (x, "Math.round(0.45 * node.width)")
        ]
        assert pixels[0] != pixels[1]  # inside the band and beside it
        if folder := os.environ.get("MQTWIN_TEST_PICTURES"):
            page.screenshot(path=f"{folder}/planned.png", full_page=True)
        model.fold([state_record(page_set("QM01/PS04", 4_000, time="2026-11-20T13:00:00Z"))])
        expect(page.locator(".panel", has_text="Planned work")).to_be_hidden()


def test_a_page_that_sleeps_wakes_to_the_latest(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 100))])
    offline = "Failed to load resource: net::ERR_INTERNET_DISCONNECTED"  # where the page asks again in that time
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, but=offline) as page:
        expect(page.locator("td .number")).to_have_text("1.0 %")
        page.context.set_offline(True)
        for used in range(100, 5_000, 100):
            model.fold([state_record(page_set("QM01/PS04", used, time=f"2026-11-20T12:{used // 100:02}:00Z"))])
        page.context.set_offline(False)
        expect(page.locator("td .number")).to_have_text("49.0 %")


@pytest.mark.nightly
def test_two_hundred_stores_at_one_hertz(browser: Browser):
    """Ten of them fill and have pictures."""
    model, seconds = ConsoleModel(TOPICS), 5

    def fold(second: int) -> None:
        moment = f"2026-11-20T12:01:{second:02}Z"
        model.fold([state_record(_one_of_many(number, 200 + second, moment)) for number in range(200)])

    fold(0)
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator("tbody tr")).to_have_count(190)
        fold(1)
        expect(page.locator(".card canvas")).to_have_count(10)
        page.wait_for_timeout(2_000)
        began, browser_began = time.thread_time(), _cpu_of_browsers()
        for second in range(2, 2 + seconds):
            fold(second)
            page.wait_for_timeout(300)
            assert (
                page.evaluate("document.getAnimations().length") == 0
            )  # bars that slid took most of what the page costs
            page.wait_for_timeout(700)
        assert (time.thread_time() - began) / seconds < 0.25  # of a core, with the making of the records
        assert (_cpu_of_browsers() - browser_began) / seconds < 0.2  # 0.04 without other work: docs/console.md
        expect(page.locator("td .number").first).to_have_text("2.1 %")


def _one_of_many(number: int, used: int, moment: str) -> dict[str, Any]:
    """Return the state record of a page set; the first ten of them fill."""
    times = {"p10": 2_000.0 - used, "p50": 3_000.0 - used, "p90": 4_000.0 - used}
    first = {"resource": "pages", "usage_pct": 88.0, "time_to_full_s": times, "full_probability": 0.8}
    forecast = {"time": moment, "resources": [first]} if number < 10 else None
    return page_set(f"QM01/PS{number:03}", used, time=moment, forecast=forecast)


def _cpu_of_browsers() -> float:
    """Return the seconds of a core that the processes of the browsers of these tests have taken."""
    family = [
        child for child in psutil.Process().children(recursive=True) if child.name().startswith(("chrom", "headless"))
    ]
    return sum(sum(child.cpu_times()[:2]) for child in family)


def test_a_row_out_of_sight_is_written_when_it_comes_into_sight(browser: Browser):
    model = ConsoleModel(TOPICS)
    names = [f"QM01/PS{number:03}" for number in range(200)]
    model.fold([state_record(page_set(name, 100)) for name in names])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        rows = page.locator("td .usage-pct")
        expect(rows).to_have_count(200)
        expect(rows.last).to_have_text("1.0 %")
        model.fold([state_record(page_set(name, 250, time="2026-11-20T12:01:00Z")) for name in names])
        expect(rows.first).to_have_text("2.5 %")
        assert rows.nth(150).text_content() == "1.0 %"
        rows.nth(150).scroll_into_view_if_needed()
        expect(rows.nth(150)).to_have_text("2.5 %")


def test_an_unlikely_forecast_is_not_the_largest_thing_on_a_card(browser: Browser):
    """A store that levels off at 88 % and has an alert of its threshold calls for nothing more."""
    model = ConsoleModel(TOPICS)
    times = {"p10": 5_400.0, "p50": 6_100.0, "p90": 6_800.0}

    def forecast(probability: float) -> dict[str, Any]:
        first = {"resource": "pages", "usage_pct": 88.0, "time_to_full_s": times, "full_probability": probability}
        return {"time": "2026-11-20T12:00:00Z", "resources": [first]}

    model.fold([state_record(page_set("QM01/PS04", 8_800, forecast=forecast(0.02))), alert_record(alert_event())])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        left = page.locator(".card .left")
        expect(left).to_contain_text("of pages in use, rises, 1.7 h at this rate, unlikely (2 %)")
        expect(left.locator(".big")).to_have_text("88.0 %")
        later = page_set("QM01/PS04", 8_810, forecast=forecast(0.7), time="2026-11-20T12:01:00Z")
        model.fold([state_record(later)])
        expect(left.locator(".big")).to_have_text("1 h 42 min")
        expect(left).to_contain_text("until pages run out")


def test_the_worst_of_the_open_incidents_comes_first_then_the_one_that_opened_first(browser: Browser):
    model = ConsoleModel(TOPICS)
    times = [f"2026-11-20T12:0{minute}:00.000000Z" for minute in range(4)]
    severities = ("warning", "full", "critical", "warning")
    alerts = [alert_event(i, severity=severities[i], time=times[i], cause=f"alert {i}") for i in range(4)]
    model.fold([state_record(page_set("QM01/PS04", 100)), *map(alert_record, alerts)])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, path="#/alerts") as page:
        expect(page.locator(".alert > .cause")).to_have_text(["alert 1", "alert 2", "alert 0", "alert 3"])


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((1_260, 1_680, 2_220), "28 min (21 to 37 min,"),
        ((1_320, 3_480, 6_840), "58 min (22 to 114 min,"),
        ((4_860, 6_480, 6_840), "1 h 48 min (1 h 21 min to 1 h 54 min,"),
        ((20, 60, 95), "60 s (20 to 95 s,"),
    ],
)
def test_a_time_and_its_interval_have_the_same_unit(browser: Browser, times: tuple[int, ...], words: str):
    model = ConsoleModel(TOPICS)
    quantiles = dict(zip(("p10", "p50", "p90"), times, strict=True))
    first = {"resource": "pages", "usage_pct": 88.0, "time_to_full_s": quantiles, "full_probability": 0.8}
    model.fold(
        [state_record(page_set("QM01/PS04", 8_800, forecast={"time": "2026-11-20T12:00:00Z", "resources": [first]}))]
    )
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        left, (middle, interval) = page.locator(".card .left"), words.split(" (")
        expect(left.locator(".big")).to_have_text(middle)
        expect(left).to_contain_text(f"until pages run out ({interval}")


def test_a_token_is_asked_for_and_kept_by_the_browser(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 100))])
    context = browser.new_context()
    page = context.new_page()
    with ConsoleServer(model, Listen(port=0, token="a-token-of-enough-characters")) as server:
        page.clock.install()
        page.goto(server.address)
        expect(page.locator("#login")).to_be_visible()
        page.clock.fast_forward(60_000)  # milliseconds; an answer of a console that is there comes sooner
        expect(page.locator("#banner")).to_be_hidden()
        page.locator("#token").fill("wrong")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#login-wrong")).to_have_text("That is not the token.")
        page.locator("#token").fill("a-token-of-enough-characters")
        page.keyboard.press("Enter")
        expect(page.locator("tbody th")).to_have_text("QM01/PS04")
        page.reload()
        expect(page.locator("tbody th")).to_have_text("QM01/PS04")
    context.close()


def test_the_header_says_when_the_job_wrote_and_how_old_the_events_are(browser: Browser):
    model = ConsoleModel(TOPICS)
    now = datetime.now(UTC)
    text = page_set("QM01/PS04", 100, time=f"{now - timedelta(hours=7):%Y-%m-%dT%H:%M:%S}Z")
    model.fold([state_record(text, int(time.time() * 1000))])
    model.set_source(connected=True, caught_up=True, missing=[])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        fresh, dot = page.locator("#fresh-text"), page.locator("#fresh")
        expect(fresh).to_have_text(
            re.compile(rf"As of {now - timedelta(hours=7):%Y-%m-%d %H:%M:%S} UTC, 7 h ago; written \d+ s ago")
        )
        expect(dot).to_have_attribute("data-state", "live")
        expect(page.locator("h1")).to_have_text("Nothing is filling")
    model = ConsoleModel(TOPICS)
    recent = page_set("QM01/PS04", 100, time=f"{now - timedelta(seconds=50):%Y-%m-%dT%H:%M:%S}Z")
    model.fold([state_record(recent, int(time.time() * 1000) - 48_000)])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator("#fresh")).to_have_attribute("data-state", "late")
        expect(page.locator("#fresh-text")).to_have_text(re.compile(r"As of [^,]*, written \d\d s ago"))
        expect(page.locator("h1")).to_have_text(re.compile(r"Nothing is filling, as of \d\d s ago"))


LONG = "DISTRIBUTED.QUEUE.MANAGER.WITH.A.LONG.NAME.00000/APPLICATION_REQUESTS_OF_ALL_BRANCHES_WITHOUT_BRE"
OVERHANGS = """() => [...document.querySelectorAll('#main *')].filter((element) => {
  const box = element.closest('.card, .panel, #main').getBoundingClientRect(), own = element.getBoundingClientRect();
  const isPicture = element.closest('.unseen, .scroll, svg, .track, .uplot');
  return own.width && !isPicture && (own.right > box.right + 1 || own.left < box.left - 1);
}).map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`)"""
IN_SIGHT = """[...document.querySelectorAll('.card, tbody tr')].filter(
  (item) => item.getBoundingClientRect().bottom < innerHeight).length"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.nightly
def test_names_of_forty_eight_characters_fit(browser: Browser, size: str):
    model = ConsoleModel(TOPICS)
    filler = [{"queue": LONG.rpartition("/")[2], "share": 0.97}]
    alert = {"store": LONG, "severity": "critical", "fillers": filler, "cause": f"Pages of {LONG}: 91.5 % in use."}
    times = {"p10": 300.0, "p50": 400.0, "p90": 500.0}
    first = {"resource": "pages", "usage_pct": 91.5, "time_to_full_s": times, "full_probability": 0.9}
    queues = [{"name": filler[0]["queue"], "depth": 100, "bytes": 100}]
    full = page_set(LONG, 9_150, forecast={"time": "2026-11-20T12:00:00Z", "resources": [first]}, queues=queues)
    steady = page_set(LONG.replace("0", "1"), 50)
    model.fold([state_record(full), state_record(steady), alert_record(alert_event(**alert))])
    for path in ("#/", f"#/store/{quote(LONG, safe='')}", "#/alerts", "#/drift"):
        with (
            ConsoleServer(model, Listen(port=0), FixedAnswers(_fixed_answer)) as server,
            opened(browser, server.address, size, path=path) as page,
        ):
            expect(page.locator("#main")).to_contain_text(LONG if path != "#/drift" else "Drift")
            page.evaluate(TWO_FRAMES)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
            assert page.evaluate(OVERHANGS) == [], path
            _take_picture(page, size, f"long-{path.removeprefix('#/').partition('/')[0] or 'overview'}")


def test_evidence_is_offered_only_where_there_is_some(browser: Browser):
    model = ConsoleModel(TOPICS)
    alerts = [alert_event(1, evidence=[]), alert_event(2), alert_event(3, evidence=["no get for 62 min"])]
    model.fold([state_record(page_set("QM01/PS04", 100)), *map(alert_record, alerts)])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, path="#/alerts") as page:
        expect(page.locator(".alert")).to_have_count(3)
        expect(page.locator("summary:visible", has_text="Evidence")).to_have_count(1)


INCIDENT = {"id": "QM01/PS04/1", "opened": "2026-11-20T11:50:00.000000Z"}


def incident_alerts() -> list[dict[str, Any]]:
    """Return the alerts of an incident: a root that is critical, and two parts, of which one is a page."""
    root, part = {**INCIDENT, "role": "root"}, {**INCIDENT, "role": "part"}
    forecast = {"severity": "critical", "resource": "file", "condition": "full-forecast", "usage_pct": 68.8}
    watch = {"severity": "info", "level": "watch", "time": "2026-11-20T11:50:00.000000Z", "usage_pct": 81.0}
    return [
        alert_event(1, incident=part, **watch),
        alert_event(2, incident=root, cause="Queue file: 68.8 % in use.", **forecast),
        alert_event(3, incident=part, actions=["Expand it: ALTER PSID(4) EXPAND(SYSTEM)"]),
    ]


def test_an_incident_is_one_line_with_its_other_alerts_folded(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 5_440)), *map(alert_record, incident_alerts())])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        card = page.locator(".card")
        expect(card).to_have_attribute("data-severity", "critical")
        expect(card.locator(".reason > p").first).to_have_text(
            "queue file: full-forecast since 2026-11-20 12:00:00 UTC"
        )
        expect(card.locator(".cause")).to_have_text("At 12:00:00 UTC: Queue file: 68.8 % in use.")
        expect(page.locator("h1")).to_contain_text("QM01/PS04 needs attention, nothing is filling")
        expect(card).not_to_contain_text("nothing predicted to fill")
        expect(page.locator(".head")).to_contain_text("1 open incident: 1 page")
        expect(page.locator("#count-alerts")).to_have_text("1")
        expect(page).to_have_title("(1) Overview - mqtwin")
        for path, parts in (
            ("#/", card),
            ("#/store/QM01%2FPS04", page.locator(".alert")),
            ("#/alerts", page.locator(".alert")),
        ):
            page.goto(server.address + path)
            summary = parts.locator(".others > summary")
            expect(summary).to_have_text("2 more alerts")
            expect(parts.locator(".part").first).to_be_hidden()
            summary.focus()
            page.keyboard.press("Enter")
            expect(parts.locator(".part .line b")).to_have_text(["pages: threshold", "pages: threshold"])
            expect(parts.locator(".part .chip")).to_have_text([re.compile("warning"), re.compile("watch")])
            model.fold([state_record(page_set("QM01/PS04", 5_450))])
            expect(parts.locator(".part").first).to_be_visible()  # it stays unfolded
        expect(page.locator(".part code")).to_have_text(
            ["ALTER PSID(4) EXPAND(SYSTEM)"]
        )  # what the root says is said once


def test_a_store_that_refuses_puts_is_full_now_until_they_succeed_again(browser: Browser):
    model = ConsoleModel(TOPICS)
    full, nothing = distant_forecast(probability=0.5), distant_forecast()
    model.fold([state_record(page_set("QM01/PS04", 10_000, forecast=full, full_puts=12_345))])
    model.fold([alert_record(alert_event(severity="full", condition="full"))])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        left = page.locator(".card .left")
        expect(left).to_have_text("Full nowpages: puts fail with 2192")
        expect(page.locator("h1")).to_contain_text("QM01/PS04 is full")
        expect(page.locator(".card")).to_contain_text("12,345 puts refused")
        expect(page).to_have_title("(1) Full: Overview - mqtwin")
        model.fold([state_record(page_set("QM01/PS04", 7_000, forecast=nothing, time="2026-11-20T12:05:00Z"))])
        expect(left).to_have_text("70.0 %of pages in use, was full, puts succeed again")
        expect(page.locator("h1")).to_contain_text("QM01/PS04 needs attention, nothing is filling")


@pytest.mark.parametrize(
    ("used", "probability", "words"),
    [
        ([4_670], 0.01, "46.7 %of pages in use, rises, 13 min at this rate, unlikely (1 %)"),
        ([9_960, 9_000, 4_670], 0.01, "46.7 %of pages in use, falling since 12:00:00 UTC"),
        ([9_960, 9_000, 4_670], 0.6, "46.7 %of pages in use, falling since 12:00:00 UTC"),
        ([4_670, 4_700], 0.6, "13 minuntil pages run out (8 to 38 min, probability 60 %)"),
        ([4_670, 4_700], 0.4, "13 minuntil pages run out (8 to 38 min, probability 40 %)"),  # its alert has the time
    ],
)
def test_an_open_alert_shows_no_time_that_is_unlikely_or_of_what_falls(
    browser: Browser, used: list[int], probability: float, words: str
):
    model = ConsoleModel(TOPICS)
    times = {"p10": 480.0, "p50": 780.0, "p90": 2280.0}
    alert = alert_event(condition="full-forecast", time_to_full_s=times, full_probability=0.9, severity="critical")
    model.fold([alert_record(alert)])
    for minute, pages in enumerate(used):
        time = f"2026-11-20T12:{minute:02}:00Z"
        first = {"resource": "pages", "usage_pct": 1.0, "full_probability": probability, "time_to_full_s": times}
        forecast = {"time": time, "resources": [first]}
        model.fold([state_record(page_set("QM01/PS04", pages, forecast=forecast, time=time))])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator(".card .left")).to_have_text(words)
        page.locator(".card").click()
        expect(page.locator(".hero")).to_contain_text(words.partition(",")[2] or "until pages run out")


def test_a_watch_stands_beside_its_store_and_calls_nobody(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 9_150)), alert_record(alert_event(level="watch", severity="info"))])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator("tbody .watch")).to_have_text("watch: pages: threshold since 2026-11-20 12:00:00 UTC")
        expect(page.locator(".head")).to_contain_text("1 open incident: 1 watch")
        expect(page.locator("#count-alerts")).to_be_empty()
        expect(page).to_have_title("Overview - mqtwin")


def test_a_store_that_rises_is_the_headline_in_the_zone_of_the_site(browser: Browser):
    model = ConsoleModel(TOPICS, zone=zone_of("Europe/Zurich"))
    times = {"p10": 900.0, "p50": 1091.0, "p90": 1500.0}
    first = {"resource": "pages", "usage_pct": 17.6, "full_probability": 0.15, "time_to_full_s": times}
    forecast = {"time": "2026-11-20T23:10:00Z", "resources": [first]}
    model.fold([state_record(page_set("QM01/PS04", 1_760, forecast=forecast, time="2026-11-20T23:10:00Z"))])
    model.fold([state_record(page_set("QM01/PS05", 100))])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator("h1")).to_contain_text("QM01/PS04 rises, 18 min at this rate, not sure (15 %)")
        expect(page.locator("tbody")).to_contain_text("18 min (15 %)")
        expect(page.locator("#fresh-text")).to_contain_text("As of 2026-11-21 00:10:00 CET")
        page.get_by_role("link", name="QM01/PS04").click()
        expect(page.locator(".hero")).to_contain_text("rises, 18 min at this rate, not sure (15 %)")
        expect(page.locator("body")).not_to_contain_text(
            re.compile("nothing is filling|no resource is likely", re.IGNORECASE)
        )


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"known": 3, "is_recent": True}, "not known yet, 3 of 5 levels"),
        ({"known": 5, "is_recent": False}, "not known, no level since 12:00 UTC"),
    ],
)
def test_what_is_not_known_yet_is_not_said_to_be_calm(browser: Browser, levels: dict[str, Any], words: str):
    model = ConsoleModel(TOPICS)
    known = {"needed": 5, "last": "2026-11-20T12:00:00.000000Z", **levels}
    model.fold([state_record(page_set("QM01/PS04", 4_490, levels=known))])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator("h1")).to_contain_text(f"QM01/PS04: {words}")
        expect(page.locator("tbody")).to_contain_text(words)
        expect(page.locator("body")).not_to_contain_text(
            re.compile("nothing is filling|nothing predicted", re.IGNORECASE)
        )


def test_a_percentage_is_that_of_display_and_says_what_can_be(browser: Browser):
    model = ConsoleModel(TOPICS)
    growing = page_set("QM01/PS04", 7_200, pages_total=8_000, pages_max=10_000)
    model.fold([state_record(growing), alert_record(alert_event())])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        words = "90.0 % in use"
        expect(page.locator(".card .left")).to_have_text("90.0 %of pages in use, can grow to 1.2 times as many pages")
        expect(page.locator(".card .meter .number")).to_have_text(words)
        assert page.locator(".card .room").evaluate("room => room.style.left") == "80%"
        page.locator(".card").click()
        expect(page.locator(".meters .number")).to_have_text(words)
        expect(page.locator(".meters .amount")).to_have_text("7,200 of 8,000 pages, can grow to 10,000")


def test_a_coupling_facility_shows_what_each_structure_may_still_grow_by(browser: Browser):
    model = ConsoleModel(TOPICS)
    storage = {
        "QSG1/APP1": {"size": 3 << 30, "size_max": 8 << 30, "growth_left": 1 << 30},
        "QSG1/APP2": {"size": 2 << 30, "size_max": 2 << 30, "growth_left": 0},
        "QSG1/APP3": {"size": 1 << 30, "size_max": 2 << 30, "growth_left": None},
    }
    total = {"storage_total": 8 << 30, "storage_promised": 12 << 30, "storage_free": 1 << 30, "storage_measured": None}
    model.fold(
        [state_record(coupling_facility("CF01", storage=storage, **total)), state_record(page_set("QM01/PS04", 9))]
    )
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, path="#/store/CF01") as page:
        panel = page.locator(".panel", has_text="Storage by structure")
        expect(panel.locator("tbody tr")).to_have_text(
            ["QSG1/APP13 GB8 GB1 GB", "QSG1/APP22 GB2 GB0 bytes", "QSG1/APP31 GB2 GBnot known"]
        )
        expect(panel.locator("p")).to_have_text(
            "Its structures may have 12 GB, it has 8 GB: not all of them can reach their SIZE."
        )
        expect(page.locator(".facts div", has_text="storage promised")).to_have_text("storage promised12 GB")
        expect(page.locator(".facts div", has_text="measured")).to_have_count(0)
        expect(page.locator(".panel", has_text="Deepest queues")).to_be_hidden()
        page.goto(f"{server.address}#/store/QM01%2FPS04")
        expect(page.locator(".panel", has_text="Deepest queues")).to_be_visible()
        expect(panel).to_be_hidden()


def test_a_runbook_has_numbered_steps_and_a_button_for_each_statement(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold([state_record(page_set("QM01/PS04", 9_150)), alert_record(alert_event())])
    content = msgspec.json.decode(model.changes(0)[1])
    content["incidents"][0]["root"]["runbook"] = [RUNBOOK]
    event = b"event: changes\ndata: %b\n\n" % msgspec.json.encode(content)
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        page.route("**/api/events", lambda route: route.fulfill(body=event, content_type="text/event-stream"))
        page.goto(server.address + "#/alerts")
        page.reload()
        action = page.locator(".alert .actions > li")
        expect(action).to_have_count(1)
        expect(action.locator("p")).to_have_text(
            [
                RUNBOOK["summary"],
                f"Effect: {RUNBOOK['effect']}",
                f"Only if: {RUNBOOK['precondition']}",
                *(step["text"] for step in RUNBOOK["steps"]),
                f"Way back: {RUNBOOK['undo']}",
            ]
        )
        expect(action.locator("ol > li")).to_have_count(3)
        expect(action.locator("code")).to_have_text(
            [step["statement"] for step in RUNBOOK["steps"] if step["statement"]]
        )
        expect(action.get_by_role("button", name="Copy")).to_have_count(2)


@pytest.mark.parametrize("size", SIZES)
def test_what_if_is_beside_the_chart_and_cleared_alerts_are_folded(browser: Browser, story: list[Moment], size: str):
    model = ConsoleModel(TOPICS)
    fold_until(model, story, "01:34")
    cleared = [alert_event(number, "cleared", store=STORE, resource="elements") for number in range(30)]
    model.fold([alert_record(alert) for alert in cleared])
    with (
        ConsoleServer(model, Listen(port=0), FixedAnswers(_fixed_answer)) as server,
        opened(browser, server.address, size, path=VIEWS[1]) as page,
    ):
        what_if, alerts = page.locator(".whatif"), page.locator("section", has=page.locator("h2", has_text="Incidents"))
        page.get_by_label("puts").fill("2")
        expect(page.locator("figcaption")).to_contain_text("With the values of What if (blue): 13 min")
        boxes = {
            part: page.locator(part).bounding_box() for part in (".usage .chart", ".whatif", ".alert:visible >> nth=0")
        }
        usage, own, first = boxes.values()
        assert usage and own and first and what_if
        assert own["y"] < first["y"]
        if size != "phone":
            assert own["x"] > usage["x"] + usage["width"] and own["y"] < usage["y"] + usage["height"]
        expect(alerts.locator("summary", has_text="cleared")).to_have_text("30 cleared, the latest 20")
        expect(alerts.locator(".alert[data-open=false]:visible")).to_have_count(0)
        alerts.locator("summary", has_text="cleared").click()
        expect(alerts.locator(".alert[data-open=false]:visible")).to_have_count(20)


def test_one_curve_is_in_colour_and_the_others_differ_by_their_dashes(browser: Browser, story: list[Moment]):
    model = ConsoleModel(TOPICS)
    fold_until(model, story, "01:34")
    for scheme in ("light", "dark"):
        with (
            ConsoleServer(model, Listen(port=0)) as server,
            opened(browser, server.address, scheme=scheme, path=VIEWS[1]) as page,
        ):
            expect(page.locator(".legend li").nth(3)).to_be_visible()
            lines = page.eval_on_selector_all(
                ".legend li",
                "items => items.map(item => ['stroke', 'stroke-dasharray'].map("
                "name => item.querySelector('line').getAttribute(name)).concat(item.textContent))",
            )
            strokes = [stroke for stroke, _, _ in lines]
            coloured = [text for stroke, _, text in lines if strokes.count(stroke) == 1]
            assert len(coloured) == 1 and "SMDS QM01" in coloured[0] and len(set(strokes)) == 2
            dashes = [dash for _, dash, _ in lines]
            assert len(set(dashes)) == len(dashes) >= 4


def test_where_nothing_was_ever_written_the_page_says_what_to_type(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.set_source(connected=True, caught_up=True, missing=[])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        commands = page.locator("[aria-label='Commands'] code")
        expect(commands).to_have_count(3)
        for command, name in zip(commands.all_text_contents(), ("stream", "simulate", "publish"), strict=True):
            words = shlex.split(command)
            assert words[:2] == ["mqtwin", name]
            assert commands_app().parse_args(words[1:], exit_on_error=False, print_error=False)
        model.fold([state_record(page_set("QM01/PS04", 100))])
        expect(commands.first).to_be_hidden()


def test_many_stores_are_counted_by_severity_and_sorted(browser: Browser):
    model = ConsoleModel(TOPICS)
    for minute in (1, 2):  # a curve needs two samples
        moment = f"2026-11-20T12:0{minute}:00Z"
        model.fold([state_record(_one_of_many(number, 200 + number, moment)) for number in range(200)])
    for number in range(20):
        store = f"QM01/PS{100 + number}"
        severity = "critical" if number < 3 else "warning"
        alert = alert_event(number, store=store, severity=severity, alert_id=f"{store}/threshold/pages/1")
        model.fold([alert_record(alert)])
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator(".counts .chip")).to_have_text(
            [re.compile(f"{text}$") for text in ("3 critical", "27 warning", "170 steady")]
        )
        expect(page.locator(".card")).to_have_count(30)
        expect(page.locator(".card canvas")).to_have_count(12)  # more pictures are more scrolling
        page.get_by_label("Sort stores").select_option("name")
        names = page.locator(".card h3").all_text_contents()
        assert names == sorted(names)
        page.get_by_label("Sort stores").select_option("usage")
        expect(page.locator("tbody th").first).to_have_text("QM01/PS199")


def test_a_wide_screen_shows_more_and_not_only_larger(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold([state_record(_one_of_many(number, 200 + number, "2026-11-20T12:01:00Z")) for number in range(60)])
    in_sight = {}
    for size in ("laptop", "wall"):
        with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, size) as page:
            expect(page.locator(".card")).to_have_count(10)
            in_sight[size] = page.evaluate(IN_SIGHT)
            _take_picture(page, size, "many")
    assert in_sight["wall"] > 3 * in_sight["laptop"]


# --- the map and notes -----------------------------------------------------------------------------------------------


def _take_note(model: ConsoleModel) -> Callable[[Any], Note]:
    """Return what takes notes and folds them, as the topic would."""

    def take(content: Any) -> Note:
        note = new_note(**content, time="2026-11-20T12:02:00Z")
        model.fold([note_record(note)])
        return note

    return take


def test_the_map_has_a_frame_of_its_own_before_the_rest(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    count = "(path) => document.querySelectorAll(path).length"
    frames = f"""window.frames_ = []; const count = {count};
    const look = () => {{ frames_.push([count(".map .cell"), count("tbody tr")]); requestAnimationFrame(look); }};
    requestAnimationFrame(look)"""
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        page.add_init_script(frames)
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(196)
        assert [200, 0] in page.evaluate("frames_")


@pytest.mark.parametrize("size", SIZES)
def test_two_hundred_stores_are_a_map(browser: Browser, size: str):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, size) as page:
        cells, headings = page.locator(".map .cell"), page.locator(".map h2")
        expect(cells).to_have_count(4 if size == "phone" else 200)  # on a phone what is steady is a tap away
        expect(headings).to_have_count(4)
        assert headings.first.text_content() == ("QSG1 1" if size == "phone" else "QSG1 50")
        expect(cells.first).to_have_attribute("data-band", "now")
        expect(cells.first).to_have_text("\u25a0 nowAPP000")  # a shape, words and a colour
        expect(cells.first).to_have_attribute("aria-label", "QSG1/APP000, full, full now, pages 100.0 %")
        bands = page.eval_on_selector_all(".map .cell", "cells => cells.map(cell => cell.dataset.band)")
        assert [bands.count(band) for band in ("now", "soon", "hour", "later")] == [1, 1, 1, 1]
        expect(page.locator(".map .legend li").first).to_have_text("full now")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate(OVERHANGS) == []
        if size != "phone":
            assert page.locator(".map").bounding_box()["height"] < SIZES[size][1]  # one screen
            page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
            assert _serious(page.evaluate("axe.run('.map, .counts', {resultTypes: ['violations']})")) == []
        page.get_by_role("button", name="196 steady").click()
        expect(cells).to_have_count(196)
        expect(page.locator(".card")).to_have_count(0)
        page.get_by_role("button", name="196 steady").click()
        page.get_by_label("Filter stores").fill("APP000")
        expect(cells).to_have_count(2 if size == "phone" else 3)
        _take_picture(page, size, "map")


def test_the_keyboard_alone_moves_in_the_map_and_keeps_its_place(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    focused = "document.activeElement.getAttribute('aria-label').split(',')[0]"
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address) as page:
        expect(page.locator(".map .cell")).to_have_count(200)
        assert page.locator(".map .cell[tabindex='0']").count() == 1  # one stop of Tab
        page.locator(".map .cell[tabindex='0']").focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate(focused) == "QSG1/APP001"
        page.keyboard.press("ArrowDown")
        below = page.evaluate(focused)
        assert below not in {"QSG1/APP001", "QSG1/APP002"}
        page.keyboard.press("ArrowUp")
        assert page.evaluate(focused) == "QSG1/APP001"
        page.keyboard.press("End")
        last = page.evaluate(focused)
        model.fold([state_record(page_set("QSG1/APP002", 9_000, time="2026-11-20T12:02:00Z"))])
        expect(page.locator(".cell[aria-label^='QSG1/APP002,']")).to_contain_text("90.0 %")
        assert page.evaluate(focused) == last
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("QSG1/APP000")


def test_a_note_is_shown_to_every_viewer_and_its_text_is_only_text(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    hostile = "<img src=x onerror=console.error('hostile')>"
    with (
        ConsoleServer(model, Listen(port=0), take_note=_take_note(model)) as server,
        opened(browser, server.address) as other,
        opened(browser, server.address, path="#/alerts") as page,
    ):
        incident = page.locator(".alert", has_text="QSG1/APP000")
        incident.get_by_role("button", name="Acknowledge").click()
        page.get_by_label("Your name").fill("ann")
        incident.locator("form").get_by_role("button", name="Acknowledge").click()
        expect(incident.locator(".notes li")).to_have_text("acknowledged by ann at 2026-11-20 12:02:00 UTC")
        expect(incident.get_by_role("button", name="Acknowledge")).to_be_hidden()
        text = "acknowledged by ann at 2026-11-20 12:02:00 UTC"
        expect(other.locator(".cell[data-taken]")).to_have_attribute("aria-label", re.compile(f"{text}$"))
        expect(other.locator(".card", has_text="QSG1/APP000")).to_contain_text(f"\u2713 {text}")
        incident.get_by_role("button", name="Comment").click()
        expect(page.get_by_label("Your name")).to_have_value("ann")
        page.get_by_role("textbox", name="Comment").fill(hostile)
        model.fold([state_record(page_set("QSG1/APP000", 10_000, time="2026-11-20T12:03:00Z"))])
        page.wait_for_timeout(1_500)
        page.keyboard.press("Enter")  # what was typed has stayed
        expect(incident.locator(".notes li").nth(1)).to_have_text(f"ann at 2026-11-20 12:02:00 UTC: {hostile}")
        incident.get_by_role("button", name="Done").click()
        expect(incident.locator("form b")).to_have_text(f"Done: {RUNBOOK['summary']}")
        page.keyboard.press("Escape")
        expect(incident.locator("form")).to_have_count(0)
        incident.get_by_role("button", name="Done").click()
        incident.locator("form").get_by_role("button", name="Done").click()
        done = incident.locator(".actions .done")
        expect(done).to_have_text("\u2713 done by ann at 2026-11-20 12:02:00 UTC")
        expect(incident.get_by_role("button", name="Done")).to_have_count(0)
        other.goto(f"{server.address}#/store/QSG1%2FAPP000")
        expect(other.locator(".actions .done")).to_have_text("\u2713 done by ann at 2026-11-20 12:02:00 UTC")
        assert ODD.findall(page.locator("body").inner_text()) == []
        assert page.locator("#main img").count() == 0


def test_a_note_that_is_refused_says_why_and_a_console_that_takes_none_offers_none(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())

    def refuse(_: Any) -> Note:
        raise UsageError("topic mqtwin.notes: Kafka does not allow this user to WRITE")

    context = browser.new_context()  # not `opened`: a browser complains about an answer of status 422
    page = context.new_page()
    with ConsoleServer(model, Listen(port=0), take_note=refuse) as server:
        page.goto(f"{server.address}#/alerts")
        incident = page.locator(".alert", has_text="QSG1/APP000")
        incident.get_by_role("button", name="Comment").click()
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("textbox", name="Comment").fill("x")
        page.keyboard.press("Enter")
        expect(incident.locator("[role=alert]")).to_contain_text("does not allow this user to WRITE")
        context.close()
    with ConsoleServer(model, Listen(port=0)) as server, opened(browser, server.address, path="#/alerts") as page:
        expect(page.locator(".alert").first).to_be_visible()
        for name in ("Acknowledge", "Comment", "Done"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)


# --- who is signed in -------------------------------------------------------------------------------------------------


def _may_write(page: Page) -> bool:
    return any(page.get_by_role("button", name=name).count() for name in ("Acknowledge", "Comment", "Done"))


def _fits(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", SIZES)
def test_who_signs_in_by_openid_connect_writes_under_that_name_and_signs_out(browser: Browser, size: str):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    model.set_source(connected=True, caught_up=True, missing=[])
    port, (width, height) = free_port(), SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})  # it complains about status 401
    with running_provider() as provider:
        client = Client(
            issuer=provider.issuer, client_id=CLIENT_ID, secret=CLIENT_SECRET, address=f"http://127.0.0.1:{port}/"
        )
        identity = Provider(client, Roles(viewers=("staff",), operators=("mq-ops",)))
        listen = Listen(port=port, identity=identity)
        with ConsoleServer(model, listen, take_note=_take_note(model)) as server:
            page = context.new_page()
            page.clock.install()
            page.goto(f"{server.address}#/alerts")
            expect(page.locator("#fresh-text")).to_have_text("Signed out: Sign in")
            page.clock.fast_forward(60_000)  # milliseconds
            expect(page.locator("#banner")).to_be_hidden()
            assert _fits(page)
            _take_picture(page, size, "signed-out")
            page.get_by_role("button", name="Sign in").click()
            incident = page.locator(".alert", has_text="QSG1/APP000")
            expect(incident).to_be_visible()  # where the reader was
            expect(page.locator("#who")).to_have_text("ann, operator")
            incident.get_by_role("button", name="Acknowledge").click()
            expect(page.get_by_label("Your name")).to_have_count(0)
            _take_picture(page, size, "signed-in")
            incident.locator("form").get_by_role("button", name="Acknowledge").click()
            expect(incident.locator(".notes li")).to_contain_text("acknowledged by ann")
            assert _fits(page) and ODD.findall(page.locator("body").inner_text()) == []
            page.get_by_role("button", name="Sign out").click()
            expect(page.locator("#fresh-text")).to_have_text("Signed out: Sign in")
            provider.claims = {"groups": ["staff"]}
            page.get_by_role("button", name="Sign in").click()
            expect(page.locator("#who")).to_have_text("ann, viewer")
            expect(incident).to_be_visible()
            assert not _may_write(page)
            provider.claims = {"groups": []}
            page.get_by_role("button", name="Sign out").click()
            page.get_by_role("button", name="Sign in").click()
            expect(page.locator("#fresh-text")).to_have_text("ann has no role here; expected: viewer")
            expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    context.close()


def test_a_session_that_ends_is_one_line_and_nothing_else(browser: Browser):
    model = ConsoleModel(TOPICS)
    model.fold(two_hundred_stores())
    model.set_source(connected=True, caught_up=True, missing=[])
    identity, context = Proxy(["127.0.0.1"], Roles(operators=("mq-ops",))), browser.new_context()
    context.set_extra_http_headers({"X-Forwarded-User": "ann", "X-Forwarded-Groups": "mq-ops"})
    with ConsoleServer(model, Listen(port=0, identity=identity), take_note=_take_note(model)) as server:
        page = context.new_page()
        page.goto(f"{server.address}#/alerts")
        expect(page.locator("#who")).to_have_text("ann, operator")
        expect(page.get_by_role("button", name="Sign out")).to_be_hidden()  # the proxy's page does that
        page.locator(".alert", has_text="QSG1/APP000").get_by_role("button", name="Comment").click()
        context.set_extra_http_headers({})
        page.get_by_role("textbox", name="Comment").fill("x")
        page.keyboard.press("Enter")
        expect(page.locator("#fresh-text")).to_have_text("Signed out: Reload")
        page.wait_for_timeout(1_500)
        expect(page.locator("#banner")).to_be_hidden()
    context.close()
