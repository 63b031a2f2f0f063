"""The demo's forecast, picture and last lines, from the alerts and states of a simulated recording."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from deploy.show.forecast import forecast_text
from deploy.show.picture import picture
from deploy.show.usage import HEADINGS, usage_lines
from deploy.show.verdict import StaticAlarm, judge_demo, static_alarm
from streams.kafka.subscribe import AlertRecord
from tests.support.estates import small_estate
from twin.estate import Estate, load_estate
from twin.events import Decoded, Decoder
from twin.recordings import open_recording
from twin.replays import Player
from twin.scoring import play, score
from twin.simulation import Outcome, make_scenario, simulate
from twin.units import as_span

STORE = "QSG1/APP1"
FORECAST: dict[str, Any] = {
    "time": "2026-11-20T01:40:20.000000Z",
    "resources": [
        {
            "resource": "elements",
            "usage_pct": 74.5,
            "full_probability": 0.71,
            "time_to_full_s": {"p10": 1440.0, "p50": 1620.0, "p90": 1860.0},
        }
    ],
}


@dataclass(frozen=True)
class Story:
    """A getter outage in a small structure. states: five minutes after the forecast's alert opened."""

    recording: Path
    estate: Estate
    outcome: Outcome
    alerts: list[AlertRecord]
    states: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("demo")
    estate = load_estate(small_estate(folder))
    recording = folder / "outage.arrow"
    outcome = simulate(make_scenario("getter-outage"), estate, recording, seed=3)
    player, decoder = Player(estate), Decoder(estate)
    alerts: list[AlertRecord] = []
    states: dict[str, dict[str, Any]] = {}
    for chunk in open_recording(recording):
        decoded = chunk.decode(decoder)
        for start in range(0, len(decoded), 500):
            rows = slice(start, start + 500)
            fed = player.feed(Decoded(decoded.events[rows], decoded.record[rows], decoded.index[rows]))
            alerts += [msgspec.json.decode(alert.record(), type=AlertRecord) for alert in fed]
            if not states and any(alert.data.condition == "full-forecast" for alert in alerts):
                states = player.states()
    return Story(recording, estate, outcome, alerts, states)


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


def test_nothing_foreseen_is_no_word() -> None:
    assert forecast_text(None) == ""


def test_a_resource_that_does_not_fill_is_said_not_to() -> None:
    never = FORECAST["resources"][0] | {"time_to_full_s": None, "full_probability": 0.0}
    assert forecast_text({**FORECAST, "resources": [never]}) == "nothing full within the horizon"


def test_what_is_full_has_no_time_left_and_no_probability() -> None:
    full = FORECAST["resources"][0] | {"time_to_full_s": {"p10": 0.0, "p50": 0.0, "p90": 12.0}}
    assert forecast_text({**FORECAST, "resources": [full]}) == "elements full now"


# --- pictures --------------------------------------------------------------------------------------------------------


def test_the_picture_shows_the_forecast_of_each_store_and_when_it_is_full_by_its_alert(story: Story) -> None:
    text = printed(picture(story.states, foreseen(story.alerts)[:1], story.outcome.events, 240.0))
    assert re.search(r"forecast +smds/QM01 full in \d+ min \(\d+ to \d+ min, probability \d+ %\)", text)
    assert re.search(r"warning +QSG1/APP1 smds/QM01 +full-forecast ~\d\d:\d\d ", text)
    assert max(map(len, text.splitlines())) <= 80


def test_a_store_without_a_forecast_says_so(story: Story) -> None:
    quiet = {STORE: story.states[STORE] | {"forecast": None}}
    assert re.search(r"forecast +no resource is rising", printed(picture(quiet, [], story.outcome.events, 240.0)))


def test_the_table_of_states_has_a_column_for_the_forecast(story: Story) -> None:
    rows = [dict(zip(HEADINGS, line, strict=True)) for line in usage_lines(story.states.values())]
    forecasts = {row["store"]: row["forecast"] for row in rows}
    assert forecasts[STORE].startswith("smds/QM01 full in ")
    assert forecasts["QSG1/APP2"] == ""


# --- the comparison --------------------------------------------------------------------------------------------------


def test_the_end_compares_with_the_static_threshold_of_the_scorecard(story: Story) -> None:
    scored = score(play(story.recording, story.estate))
    [warned] = [warned for store in scored.judged["static 80 %"] for warned in store.warned]
    [own] = [own for store in scored.judged["twin"] for own in store.warned]
    assert warned.lead is not None
    assert own.lead is not None
    passed, lines = judge_demo(story.outcome, story.alerts, static_alarm(story.recording, story.estate, story.outcome))
    assert passed
    assert lines[0].startswith(f"The full-forecast alert opened {as_span(own.lead)} before the first 2192 (")
    assert re.search(
        r"prediction at \d\d:\d\d:\d\d: smds/QM01 full in \d+ min \(\d+ to \d+ min, probability \d+ %\)\.$", lines[0]
    )
    assert lines[1].startswith(
        f"A static threshold of 80 % would have alerted {as_span(warned.lead)} before that 2192 ("
    )
    assert re.search(r", on elements \(9\d\.\d % in use at the first 2192\)\.$", lines[1])


def test_without_a_forecast_in_time_the_demo_fails(story: Story) -> None:
    assert story.outcome.first_full is not None
    full, _ = story.outcome.first_full
    others = [alert for alert in story.alerts if alert.data.condition != "full-forecast"]
    passed, lines = judge_demo(story.outcome, others, None)
    assert not passed
    assert lines[0].startswith("No full-forecast alert was open before the first 2192 (")
    early = story.outcome.first - 1
    stores = {STORE: replace(story.outcome.stores[STORE], first_full=early)}
    passed, _ = judge_demo(replace(story.outcome, stores=stores), story.alerts, None)
    assert not passed
    assert early < full


def test_an_alert_cleared_before_the_2192_has_not_warned(story: Story) -> None:
    opened = foreseen(story.alerts)[0]
    cleared = msgspec.structs.replace(opened, type="mqtwin.alert.cleared")
    assert judge_demo(story.outcome, [opened], None)[0]
    assert not judge_demo(story.outcome, [opened, cleared], None)[0]


def test_a_static_threshold_may_alert_after_it_or_not_at_all(story: Story) -> None:
    assert story.outcome.first_full is not None
    full, _ = story.outcome.first_full
    late = StaticAlarm(opened_us=full + 180_000_000, resource="elements", pct_at_first_2192=79.0)
    assert judge_demo(story.outcome, story.alerts, late)[1][1] == (
        "A static threshold of 80 % would have alerted 3 min after that 2192, on elements."
    )
    assert judge_demo(story.outcome, story.alerts, None)[1][1] == "A static threshold of 80 % would not have alerted."


def test_where_no_put_is_refused_there_is_nothing_to_compare(story: Story) -> None:
    calm = {name: replace(store, first_full=None) for name, store in story.outcome.stores.items()}
    outcome = replace(story.outcome, stores=calm)
    assert static_alarm(story.recording, story.estate, outcome) is None
    assert judge_demo(outcome, story.alerts, None) == (
        True,
        ["No put was refused with 2192: there was nothing to predict."],
    )
