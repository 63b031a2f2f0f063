"""The console of a recording: what it answers about each moment, and its slider in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Route, expect
from starlette.testclient import TestClient

import twin
from deploy.cli import main
from deploy.console.app import ConsoleState, new_app
from deploy.console.model import ConsoleModel
from deploy.console.past import PastTwins, seconds_of
from deploy.console.server import ConsoleServer, Listen
from tests.deploy.console.test_browser import ODD, TWO_FRAMES, opened
from tests.support.chromium import CHROMIUM
from tests.support.console_feed import TOPICS
from twin.base.errors import UsageError
from twin.planning.whatif import Traffic, at_moment, what_if
from twin.playback.timeline import Timeline

STORE = "QSG1/APP1"
MOMENT = "2026-11-20T01:40:00Z"


@pytest.fixture(scope="module")
def friday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("past") / "friday.arrow"
    twin.simulate(twin.make_scenario("getter-outage"), twin.demo_estate(), path, seed=1)
    return path


@pytest.fixture(scope="module")
def past(friday: Path) -> PastTwins:
    return PastTwins(Timeline(friday, twin.demo_estate()))


@pytest.fixture(scope="module")
def client(past: PastTwins) -> TestClient:
    state = ConsoleState(past.model_at(past.moments.first), ["127.0.0.1"], answers=past, past=past)
    return TestClient(new_app(state), base_url="http://127.0.0.1:8470")


def test_the_page_opens_at_the_first_call(client: TestClient):
    moments = client.get("/api/moments").json()
    assert moments["name"] == "friday.arrow" and moments["events"] == 972_206
    assert [(mark["change"], mark["severity"]) for mark in moments["marks"]] == [
        ("paged", "warning"),
        ("escalated", "critical"),
        ("escalated", "full"),
    ]
    first = moments["marks"][0]["time"]
    assert first <= moments["first"] <= first + 30 and moments["first"] in moments["times"]


def test_a_moment_has_the_states_and_incidents_of_then(client: TestClient, past: PastTwins):
    before, after = (client.get(f"/api/at?t={time}").json() for time in ("2026-11-20T00:20:00Z", MOMENT))
    assert before["full"] and after["full"] and after["meta"]["recording"] == "friday.arrow"
    assert before["incidents"] == [] and len(after["incidents"]) == 1
    (store,) = (own for own in after["stores"] if own["store"] == STORE)
    (record,) = (
        record for name, record in past._timeline.states(round(seconds_of(MOMENT) * 1e6)).items() if name == STORE
    )
    assert store["fields"]["messages"] == msgspec.json.decode(record)["messages"]
    assert store["time"] <= MOMENT


@pytest.mark.parametrize("minute", range(126, 187))
def test_on_the_way_out_no_headline_has_a_time(client: TestClient, minute: int):
    """The quick start's recording: getters are back at 02:30, the last put is refused at 02:44:39."""
    answer = client.get(f"/api/at?t=2026-11-20T{minute // 60:02}:{minute % 60:02}:30Z").json()
    (store,) = (own for own in answer["stores"] if own["store"] == STORE)
    assert bool(store["full"]) == (minute < 165 + 5)
    assert not store.get("is_foreseen") or store["first"]["time_to_full_s"]["p50"] == 0.0
    (incident,) = answer["incidents"]
    assert incident["severity"] == "full" if minute < 175 else incident["severity"] in ("warning", "")


def test_history_is_of_the_whole_recording(client: TestClient):
    columns = client.get(f"/api/history?store={STORE}").json()
    assert columns["times"][-1] - columns["times"][0] > 3 * 3600
    assert max(columns["pct"]["smds/QM01"]) == 100.0
    assert client.get("/api/history?store=QM01/PS99").status_code == 404


def test_what_if_at_a_moment_is_that_of_the_command(client: TestClient, friday: Path):
    asked = {"store": STORE, "time": seconds_of(MOMENT), "traffic": {"puts": 2}, "set": {"offld1_th": 60}}
    answer = client.post("/whatif", json=asked).json()
    own = what_if(at_moment(friday, twin.demo_estate(), STORE, answer["time"]), {"offld1_th": 60}, Traffic(puts=2))
    times = {"p10": own.after.p10, "p50": own.after.p50, "p90": own.after.p90}
    assert answer["after"]["time_to_full_s"] == times and answer["time"] == own.time <= MOMENT
    assert own.alert_probability is not None and own.alert_probability < own.before.probability
    alerts = f"Alerts show {100 * own.alert_probability:.0f} %"
    assert answer["note"].endswith(f" {alerts}: they allow for traffic that changes.")


def test_advice_at_a_moment_has_the_commands_of_its_plans(client: TestClient):
    answer = client.post("/advise", json={"store": STORE, "time": seconds_of(MOMENT)}).json()
    assert not answer["is_kept"] and "not full within 2 h" in answer["note"]
    first = r"^As of [^;]*: 2[34](\.\d)? gets/s more, and it grows no more; with each of these:"
    assert re.search(first, answer["note"])
    commands = [command for plan in answer["plans"] for step in plan["steps"] for command in step["commands"]]
    assert any(command.startswith("ALTER CFSTRUCT(APP1) OFFLD1TH(") for command in commands)
    assert all(plan["after"]["probability"] <= 0.1 for plan in answer["plans"])
    calm = client.post("/advise", json={"store": STORE, "time": seconds_of("2026-11-20T00:25:00Z")}).json()
    assert calm["is_kept"] and calm["plans"] == []


@pytest.mark.parametrize(
    ("path", "body", "status", "expected"),
    [
        ("/api/at?t=friday", None, 400, "time friday; expected: RFC 3339 with its zone, such as "),
        ("/whatif", {"store": "QSG1/APP9", "time": seconds_of(MOMENT)}, 422, "the estate has no such store"),
        ("/whatif", {"store": STORE, "time": 1e300}, 422, "expected: an object with store"),
        ("/advise", {"store": STORE, "time": -1e300}, 422, "expected: an object with store"),
        ("/hindsight", {"store": STORE, "time": 1e300}, 422, "expected: an object with store, time, set"),
        ("/advise", {"store": STORE, "hours": 0}, 422, "hours = 0; expected: "),
        ("/advise", {"store": STORE, "set": {}}, 422, "expected: an object with store, traffic, hours"),
    ],
)
def test_a_question_without_an_answer_gets_the_reason(client: TestClient, path: str, body, status: int, expected: str):
    answer = client.get(path) if body is None else client.post(path, json=body)
    assert answer.status_code == status and expected in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/api/at?t=", f"/api/state?store={STORE}&at=", f"/api/history?store={STORE}&t="])
@pytest.mark.parametrize(
    "time",
    ["2026-11-20T01:40:00", "2026-11-20", "20261120T0140", "20261120T0140Z", "nan", "inf", "-inf", "1e300", "1e9",
     "\u0662\u0660\u0662\u0666-11-20T01:40:00Z", "2026-13-45T01:40:00Z", ""],
)  # fmt: skip
def test_a_time_is_seconds_or_has_its_zone(client: TestClient, path: str, time: str):
    """Python would take one without for local time, which is another moment on each machine."""
    answer = client.get(f"{path}{time}")
    assert answer.status_code == 400 and "expected: RFC 3339 with its zone" in answer.json()["detail"]


def test_a_time_may_be_written_with_any_zone(client: TestClient):
    answers = [
        client.get("/api/state", params={"store": STORE, "at": time}).json()
        for time in (MOMENT, "2026-11-20T01:40Z", "2026-11-19T20:40:00-05:00", f"{seconds_of(MOMENT):.0f}")
    ]
    assert len(answers[0]) == 1 and all(answer == answers[0] for answer in answers)


def test_a_store_without_events_until_then_has_no_answer(past: PastTwins):
    early = past._timeline.times[0] / 1e6
    absent = next(
        name for name in past._timeline.estate.stores if name not in past._timeline.states(past._timeline.times[0])
    )
    with pytest.raises(UsageError, match="expected: "), past.moment(absent, early):
        pass


def test_the_present_has_no_moments():
    own = TestClient(new_app(ConsoleState(ConsoleModel(TOPICS), ["127.0.0.1"])), base_url="http://127.0.0.1:8470")
    for path in ("/api/moments", f"/api/at?t={MOMENT}"):
        answer = own.get(path)
        assert answer.status_code == 404 and "expected: mqtwin console --recording FILE" in answer.json()["detail"]


def test_the_command_needs_a_source_and_an_estate(friday: Path, capsys: pytest.CaptureFixture[str]):
    for arguments in ([], ["--recording", str(friday)], ["--recording", str(friday), "--bootstrap-servers", "h:1"]):
        assert main(["console", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")
def test_a_link_to_a_moment_shows_it_and_the_slider_moves_it(browser: Browser, past: PastTwins):
    start = past.model_at(past.moments.first)
    with ConsoleServer(start, Listen(port=0), past, past) as server:
        with opened(browser, server.address, path=f"#/store/QSG1%2FAPP1?t={MOMENT}") as page:
            expect(page.locator(".past output")).to_have_text("2026-11-20 01:40:00 UTC")
            expect(page.locator(".hero .big")).to_have_text("22 min")
            expect(page.locator(".compare .big").first).to_have_text("22 min")
            expect(page.locator("#fresh-text")).to_have_text("Recording friday.arrow")
            page.get_by_label("Moment of the recording").fill("260")
            expect(page.locator(".hero .big")).to_have_text("Full now")
            page.locator("nav").get_by_text("Incidents").click()
            expect(page.locator(".alert")).to_have_attribute("data-severity", "full")
            expect(page).to_have_url(re.compile(r"\?t=2026-11-20T02:1"))
            page.locator(".marks button").first.click()
            expect(page.locator(".alert")).to_have_attribute("data-severity", "warning")
            before = page.locator(".past output").inner_text()
            page.get_by_role("button", name="Play", exact=True).click()
            expect(page.locator(".past output")).not_to_have_text(before)
            page.get_by_role("button", name="Pause", exact=True).click()
            page.goto(f"{server.address}#/store/QSG1%2FAPP1?t={MOMENT}")
            page.get_by_role("button", name="What would help").click()
            expect(page.locator(".plans h3").first).to_have_text("offload sooner, and larger")
            assert ODD.findall(page.locator("body").inner_text()) == []
        with opened(browser, server.address, path=f"#/store/QSG1%2FAPP1?t={MOMENT}") as page:
            expect(page.locator(".hero .big")).to_have_text("22 min")
            held: list[Route] = []
            page.route("**/api/at?*", lambda route: held.append(route) or None)
            page.get_by_label("Moment of the recording").fill("260")
            expect(page.locator("#main")).to_have_attribute("data-stale", "true")  # what is shown is of 01:40
            held[0].continue_()
            expect(page.locator(".hero .big")).to_have_text("Full now")
            expect(page.locator("#main")).not_to_have_attribute("data-stale", "true")
        with opened(browser, server.address, "phone", "dark") as page:
            expect(page.locator("h1")).to_contain_text("is full in")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")
def test_a_late_answer_does_not_replace_that_of_a_newer_moment(browser: Browser, past: PastTwins):
    """A page asks when it opens, before it knows its moment: on a busy machine that was answered last, and stayed."""
    with (
        ConsoleServer(past.model_at(past.moments.first), Listen(port=0), past, past) as server,
        opened(browser, server.address, path=f"#/store/QSG1%2FAPP1?t={MOMENT}") as page,
    ):
        outcome, slider = page.locator(".compare .big").first, page.get_by_label("Moment of the recording")
        expect(outcome).to_have_text("22 min")
        place = slider.input_value()
        held: list[Route] = []
        page.route("**/whatif", lambda route: route.fallback() if held else held.append(route))
        slider.fill("260")
        expect(page.locator(".hero .big")).to_have_text("Full now")
        slider.fill(place)
        expect(page.locator(".hero .big")).to_have_text("22 min")
        with page.expect_response("**/whatif") as answer:
            held[0].continue_()
        answer.value.finished()
        page.evaluate(TWO_FRAMES)
        assert outcome.inner_text() == "22 min"
        expect(page.locator(".whatif .compare")).not_to_contain_text("full now")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install the package chromium")
def test_play_shows_moments_of_a_server_that_is_slower_than_its_frames(browser: Browser, past: PastTwins):
    with (
        ConsoleServer(past.model_at(past.moments.first), Listen(port=0), past, past) as server,
        opened(browser, server.address, path=f"#/store/QSG1%2FAPP1?t={MOMENT}") as page,
    ):
        expect(page.locator(".hero .big")).to_have_text("22 min")
        page.evaluate("""() => {
            const own = window.fetch, wait = (answer) => new Promise((done) => setTimeout(() => done(answer), 600));
            window.fetch = (...words) => own(...words).then(wait);
        }""")
        page.get_by_role("button", name="Play", exact=True).click()
        expect(page.locator(".hero .big")).to_have_text("Full now")
        expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
