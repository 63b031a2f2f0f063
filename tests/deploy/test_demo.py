"""The demo's forecast, picture and last lines, from the alerts and states of a simulated recording."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

from deploy.cli import main
from deploy.demo import DemoRun, StoryGate
from deploy.show.demo import (
    MethodResult,
    compare,
    comparison_lines,
    judge_demo,
    next_commands,
    picture,
    waiting_picture,
)
from deploy.show.summaries import HEADINGS, forecast_text, usage_lines
from streams.kafka.publish import Pace
from tests.support.console_feed import InPieces, page_set
from tests.support.estates import small_estate
from tests.tools.score.score import score
from tests.tools.score.series import play
from twin.base.errors import UsageError
from twin.base.units import as_span
from twin.estate import Estate, load_estate
from twin.playback.replays import play as play_events
from twin.playback.samples import Applied
from twin.records import ROOT, AlertRecord, IncidentRole, ResourceForecast, StateRecord, TimeToFull, read_state_record
from twin.simulation import Outcome, SideBySide, demo_estate, make_scenario, side_by_side_estate, simulate

STORE = "QSG1/APP1"
FORECAST = ResourceForecast(
    resource="elements",
    usage_pct=74.5,
    full_probability=0.71,
    time_to_full_s=TimeToFull(p10=1440.0, p50=1620.0, p90=1860.0),
)


@dataclass(frozen=True)
class Story:
    """A getter outage in a small structure. states: five minutes after the forecast's alert opened."""

    recording: Path
    estate: Estate
    outcome: Outcome
    alerts: list[AlertRecord]
    states: dict[str, StateRecord]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("demo")
    estate = load_estate(small_estate(folder))
    recording = folder / "outage.arrow"
    outcome = simulate(make_scenario("getter-outage"), estate, recording, seed=3)
    seen = UntilForeseen()
    play_events(recording, estate, seen)
    return Story(recording, estate, outcome, seen.alerts, seen.states)


class UntilForeseen(InPieces):
    """All alerts, and the states when the first of them has a forecast."""

    def __init__(self) -> None:
        self.alerts: list[AlertRecord] = []
        self.states: dict[str, StateRecord] = {}

    def after(self, applied: Applied) -> None:
        self.alerts += [msgspec.json.decode(alert.record(), type=AlertRecord) for alert in applied.alerts]
        if not self.states and any(alert.data.condition == "full-forecast" for alert in self.alerts):
            self.states = {name: own.state() for name, own in sorted(applied.twins.items())}


def applied(events: int) -> StateRecord:
    return read_state_record(msgspec.json.encode(page_set("QM01/PS04", 0, events=events)))


def foreseen(alerts: list[AlertRecord]) -> list[AlertRecord]:
    return [alert for alert in alerts if alert.data.condition == "full-forecast"]


def printed(renderable: Any, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(renderable)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


# --- text ------------------------------------------------------------------------------------------------------------


def test_a_forecast_names_the_resource_the_time_left_its_interval_and_how_likely_it_is() -> None:
    assert forecast_text(FORECAST) == "elements full in 27 min (24 to 31 min, probability 71 %)"


@pytest.mark.parametrize(
    ("probability", "doubt"), [(0.31, "not sure (31 %)"), (0.02, "unlikely (2 %)"), (0.0, "unlikely (less than 1 %)")]
)
def test_a_rise_that_is_not_likely_to_fill_is_said_to_rise(probability: float, doubt: str) -> None:
    rise = msgspec.structs.replace(FORECAST, full_probability=probability)
    assert forecast_text(rise) == f"elements: rises, 27 min at this rate, {doubt}"


def test_nothing_foreseen_is_no_word() -> None:
    assert forecast_text(None) == ""


def test_a_resource_that_does_not_fill_is_said_not_to() -> None:
    never = msgspec.structs.replace(FORECAST, time_to_full_s=None, full_probability=0.0)
    assert forecast_text(never) == "nothing full within the horizon"
    assert forecast_text(never, assumed="limit not known: smds/QM01") == "limit not known: smds/QM01"


def test_what_is_full_has_no_time_left_and_no_probability() -> None:
    full = msgspec.structs.replace(FORECAST, time_to_full_s=TimeToFull(p10=0.0, p50=0.0, p90=12.0))
    assert forecast_text(full) == "elements full now"


# --- pictures --------------------------------------------------------------------------------------------------------


def test_the_picture_shows_the_forecast_of_each_store_and_when_it_is_full_by_its_alert(story: Story) -> None:
    text = printed(picture(story.states, foreseen(story.alerts)[:1], story.outcome.events, 240.0))
    assert re.search(r"forecast +smds/QM01 full in \d+ min \(\d+ to \d+ min, probability \d+ %\)", text)
    assert re.search(r"(watch|warning) +QSG1/APP1 smds/QM01 +full-forecast ~\d\d:\d\d ", text)
    assert max(map(len, text.splitlines())) <= 80


def test_a_store_without_a_forecast_says_so(story: Story) -> None:
    quiet = {STORE: msgspec.structs.replace(story.states[STORE], forecast=None)}
    assert re.search(r"forecast +no resource is rising", printed(picture(quiet, [], story.outcome.events, 240.0)))


def test_the_table_of_states_has_a_column_for_the_forecast(story: Story) -> None:
    rows = [dict(zip(HEADINGS, line, strict=True)) for line in usage_lines(story.states.values())]
    forecasts = {row["store"]: row["forecast"] for row in rows}
    assert forecasts[STORE].startswith("smds/QM01 full in ")
    assert forecasts["QSG1/APP2"] == ""


# --- the comparison --------------------------------------------------------------------------------------------------


def test_the_end_compares_with_fixed_lines_judged_as_in_the_scorecard(story: Story) -> None:
    scored = score(play(story.recording, story.estate))
    [first] = [first for store in scored.judged["twin, watch"] for first in store.warned]
    assert first.lead is not None
    passed, line = judge_demo(story.outcome, story.alerts)
    assert passed
    assert line.startswith(f"The full-forecast alert opened {as_span(first.lead)} before the first 2192 (")
    assert re.search(
        r"prediction at \d\d:\d\d:\d\d: smds/QM01 full in \d+ min \(\d+ to \d+ min, probability \d+ %\)\.$", line
    )
    results = compare(story.recording, story.estate, story.alerts)
    lines = ["fixed line at 80 %", "fixed line at 85 %", "straight line"]
    assert [result.method for result in results] == [*lines, "twin", "twin, watches too"]
    by_name = ((0, "static 80 %, structure"), (2, "straight line, 6 min"), (3, "twin"))
    for row, method in by_name:
        pages = scored.pages[method]
        assert results[row].pages == sum(store.pages for store in pages)
        assert results[row].false == sum(store.false for store in pages)
        assert results[row].leads_s == {store.store: store.leads for store in pages if store.leads}
    [page], [watch] = results[3].leads_s[STORE], results[4].leads_s[STORE]
    assert page is not None and watch is not None
    assert page <= watch


def test_a_filling_that_nothing_called_for_is_missed(story: Story) -> None:
    twin = compare(story.recording, story.estate, [])[-1]
    assert (twin.pages, twin.false, twin.missed, twin.leads_s) == (0, 0, 1, {STORE: (None,)})


def test_every_condition_that_is_published_as_a_page_counts(story: Story) -> None:
    opened = foreseen(story.alerts)[0]
    incident = IncidentRole(id="i", role=ROOT, opened=opened.data.time)
    fields = {"alert_id": "i", "condition": "scm-exhausted", "level": "page", "incident": incident}
    page = msgspec.structs.replace(opened, data=msgspec.structs.replace(opened.data, **fields))
    cleared = msgspec.structs.replace(page, type="mqtwin.alert.cleared")
    twin = compare(story.recording, story.estate, [page, cleared])[3]
    assert (twin.pages, twin.false) == (1, 1)


def test_the_comparison_as_a_table() -> None:
    results = [
        MethodResult("fixed line at 80 %", 6, 5, {"QSG1/APP2": (None,), "QSG1/APP3": (420.0,)}),
        MethodResult("twin", 2, 0, {"QSG1/APP2": (1680.0,), "QSG1/APP3": (60.0,)}),
    ]
    headings, lines = comparison_lines(results)
    assert headings == ["in this run", "pages", "false", "missed", "QSG1/APP2: ahead", "QSG1/APP3: ahead"]
    assert lines[0] == ["fixed line at 80 %", "6", "5", "1 of 2", "missed", "7 min"]
    assert lines[1] == ["twin", "2", "0", "0 of 2", "28 min", "60 s"]


def test_without_a_forecast_in_time_the_demo_fails(story: Story) -> None:
    assert story.outcome.first_full is not None
    full, _ = story.outcome.first_full
    others = [alert for alert in story.alerts if alert.data.condition != "full-forecast"]
    passed, line = judge_demo(story.outcome, others)
    assert not passed
    assert line.startswith("No full-forecast alert was open before the first 2192 (")
    early = story.outcome.first - 1
    stores = {STORE: replace(story.outcome.stores[STORE], first_full=early)}
    passed, _ = judge_demo(replace(story.outcome, stores=stores), story.alerts)
    assert not passed
    assert early < full


def test_an_alert_cleared_before_the_2192_has_not_warned(story: Story) -> None:
    opened = foreseen(story.alerts)[0]
    cleared = msgspec.structs.replace(opened, type="mqtwin.alert.cleared")
    assert judge_demo(story.outcome, [opened])[0]
    assert not judge_demo(story.outcome, [opened, cleared])[0]


def test_where_no_put_is_refused_there_is_nothing_to_predict(story: Story) -> None:
    calm = {name: replace(store, first_full=None) for name, store in story.outcome.stores.items()}
    outcome = replace(story.outcome, stores=calm)
    assert judge_demo(outcome, story.alerts) == (True, "No put was refused with 2192: there was nothing to predict.")


# --- three structures side by side -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    recording = tmp_path_factory.mktemp("three") / "side-by-side.arrow"
    return recording, simulate(SideBySide(), side_by_side_estate(), recording, seed=1)


def test_one_structure_levels_off_one_fills_its_data_set_and_one_has_teeth(side_by_side: tuple[Path, Outcome]) -> None:
    recording, outcome = side_by_side
    series = play(recording, side_by_side_estate()).series
    assert [store for store, result in outcome.stores.items() if result.first_full] == ["QSG1/APP2", "QSG1/APP3"]
    peaks = {name: dict(zip(own.resources, own.usage.max(axis=0), strict=True)) for name, own in series.items()}
    assert 85 < peaks["QSG1/APP1"]["elements"] < 92
    assert peaks["QSG1/APP2"]["smds/QM01"] > 99
    assert max(peaks["QSG1/APP2"]["entries"], peaks["QSG1/APP2"]["elements"]) < 40
    batch = series["QSG1/APP3"]
    elements = batch.usage[:, batch.resources.index("elements")]
    tips = [elements[i] for i in range(1, elements.size - 1) if elements[i - 1] < elements[i] > elements[i + 1] > 80]
    assert len(tips) >= 4 and elements.max() > 99


def test_fixed_lines_call_for_nothing_and_miss_what_fills(side_by_side: tuple[Path, Outcome]) -> None:
    """Fixed lines are arithmetic on the recording; the scorecard measures the twin's own results.

    Told when the getters are away, it calls nobody before they fail to come back.
    """
    estate = side_by_side_estate()
    at_80, at_85, *_, planned, _ = compare(side_by_side[0], estate, [], SideBySide().planned(estate))
    assert (planned.method, planned.false, planned.missed) == ("twin, with a plan", 0, 0)
    assert at_80.leads_s["QSG1/APP2"] == at_85.leads_s["QSG1/APP2"] == (None,)
    assert at_80.false >= 4 and at_85.false >= 4


def test_the_scenario_needs_three_structures(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"side-by-side: .* expected: three structures with queues"):
        simulate(SideBySide(), demo_estate(), tmp_path / "x.arrow", seed=1)


# --- while the job catches up ----------------------------------------------------------------------------------------


def test_before_the_first_states_the_picture_says_what_is_waited_for() -> None:
    assert "The first event of each structure is on its way through Kafka and Spark (12 s)" in printed(
        waiting_picture(12.0), 100
    )


def test_the_heading_fits_eighty_columns_and_says_where_the_job_is_slower_than_asked(story: Story) -> None:
    many = {STORE: msgspec.structs.replace(story.states[STORE], events=135_506)}
    [heading, *_] = printed(picture(many, [], 373_565, 118.4, 359.9)).splitlines()
    assert "118x real time, asked 360x" in heading and heading.endswith(" 135,506 of 373,565 events")
    [heading, *_] = printed(picture(many, [], 373_565, 355.0, 359.9)).splitlines()
    assert "360x real time" in heading and "asked" not in heading and "…" not in heading


def test_the_story_begins_when_every_store_has_a_state_and_waits_for_a_job_that_is_behind() -> None:
    pace = Pace(speed=1.0)
    gate = StoryGate(pace, ["A", "B"], window=100)
    passed = threading.Semaphore(0)

    def publish() -> None:
        for published in (10, 20, 110, 200):
            gate.pass_on(None, published)
            passed.release()

    threading.Thread(target=publish, daemon=True).start()
    assert not passed.acquire(timeout=0.3)  # the first events were sent and nothing came back
    gate.apply({"A": applied(10)})
    assert passed.acquire(timeout=5) and not gate.is_open  # all that was sent came back, and B had no event yet
    assert not passed.acquire(timeout=0.3)
    gate.apply({"A": applied(10), "B": applied(1)})
    assert gate.is_open
    assert passed.acquire(timeout=5) and passed.acquire(timeout=5)  # 20 and 110 are within the window
    assert not passed.acquire(timeout=0.3)  # 200 is not
    gate.apply({"A": applied(100), "B": applied(1)})
    assert passed.acquire(timeout=5)
    [rows] = pace.slices(np.array([0], np.int64))
    assert 0.8 < rows.due_s < 10.0  # the time of waiting is not made up for


def test_open_alerts_come_first_and_the_worst_of_them_first(story: Story) -> None:
    opened = foreseen(story.alerts)[0]

    def alert(number: int, change: str = "opened", **fields: Any) -> AlertRecord:
        time = f"2026-11-20T0{number}:00:00.000000Z"
        data = msgspec.structs.replace(opened.data, alert_id=str(number), time=time, store=f"S{number}", **fields)
        return msgspec.structs.replace(opened, type=f"mqtwin.alert.{change}", data=data)

    watch, page = {"level": "watch", "severity": "info"}, {"level": "page", "severity": "critical"}
    alerts = [alert(0, **page), alert(1, **watch), alert(2, level="page", severity="warning")]
    alerts += [alert(number, change, **page) for number in range(3, 8) for change in ("opened", "cleared")]
    text = printed(picture(story.states, alerts, 1000, 240.0), 100)
    assert "alerts: 8, open: 3" in text
    assert re.findall(r"\b(S\d) smds/QM01", text) == ["S0", "S2", "S1", "S7", "S6"]


@pytest.mark.nightly
def test_the_commands_at_the_end_work_as_they_are_printed(
    story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    estate = small_estate(folder)
    recording = shutil.copy(story.recording, folder / "demo.arrow")
    commands = next_commands("mqtwin", story.outcome, estate, Path(recording))
    assert [shlex.split(command)[1] for _, command in commands] == ["whatif", "advise", "replay"]
    for _, command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
    printed_text = capsys.readouterr()
    assert "puts x 2" in printed_text.out
    assert (folder / "advice.html").stat().st_size > 1_000
    assert "this estate" in printed_text.err


def test_the_clock_is_that_of_the_slowest_store_and_each_has_its_own(story: Story) -> None:
    late = {
        name: msgspec.structs.replace(state, time="2026-11-20T00:21:00.000000Z") for name, state in story.states.items()
    }
    text = printed(picture({**story.states, STORE: late[STORE]}, [], 1000, 240.0))
    assert text.splitlines()[0].startswith("mqtwin demo  00:21:00")
    assert "QSG1/APP1  00:21  " in text


def test_the_words_below_the_alerts_are_those_of_an_open_one(story: Story) -> None:
    opened = foreseen(story.alerts)[0]
    other = msgspec.structs.replace(opened.data, alert_id="other", brief=("It is over.",), actions=())
    cleared = msgspec.structs.replace(opened, type="mqtwin.alert.cleared", data=other)
    text = printed(picture(story.states, [opened, cleared], 1000, 240.0))
    assert "It is over." not in text and opened.data.brief[0][:40] in text


# --- the command -----------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Standard input or output of somebody who looks."""

    def isatty(self) -> bool:
        return True


def run_command(monkeypatch: pytest.MonkeyPatch, story: Story, stdin: io.StringIO, *arguments: str) -> int:
    """Run `mqtwin demo` with a run that has ended."""
    run = DemoRun(
        story.outcome,
        Path("mqtwin-demo/estate.toml"),
        Path("mqtwin-demo/demo.arrow"),
        "http://127.0.0.1:8470/",
        story.alerts,
        [MethodResult("twin", 1, 0, {STORE: (60.0,)})],
    )
    monkeypatch.setattr("deploy.demo.run_demo", lambda *_, **__: iter([run]))
    monkeypatch.setattr(sys, "stdin", stdin)
    return main(["demo", *arguments])


def test_without_a_terminal_the_demo_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = io.StringIO("one line\n")
    assert run_command(monkeypatch, story, stdin) == 0
    assert stdin.read() == "one line\n"
    printed_lines = capsys.readouterr().out.splitlines()
    assert "Estate and recording are in mqtwin-demo. To try next:" in printed_lines
    assert sum("mqtwin-demo/demo.arrow" in line for line in printed_lines) == 3


def test_in_a_terminal_the_page_stays_until_enter_is_pressed(
    monkeypatch: pytest.MonkeyPatch, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin = Terminal("\nfurther lines")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert run_command(monkeypatch, story, stdin) == 0
    assert stdin.read() == "further lines"
    assert "The page stays at http://127.0.0.1:8470/ until you press Enter." in capsys.readouterr().err


def test_with_keep_broker_and_job_stay_until_they_are_interrupted(
    monkeypatch: pytest.MonkeyPatch, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    assert run_command(monkeypatch, story, io.StringIO(), "--keep") == 0  # the run itself has passed
    interrupt.join()
    assert "Broker and job keep running until Ctrl-C." in capsys.readouterr().err


def test_an_output_folder_that_cannot_be_written_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--output", "/proc/none"]) == 2
    assert "/proc/none cannot be written: " in capsys.readouterr().err
