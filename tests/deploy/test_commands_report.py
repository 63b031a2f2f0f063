"""`mqtwin report`: text, JSON, the page, and one line an error."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import twin
from deploy.cli import main
from deploy.show.document import page as html_page
from deploy.show.morning import morning_document, room_text
from deploy.show.terminal import emit
from tests.streams.kafka_help import create, send
from tests.support.acted import Site, altered, simulate_outage, with_events
from twin.records import new_note
from twin.reporting.records import Growth, Report


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A structure that was altered to its SIZE before it would have been full."""
    outage = simulate_outage(tmp_path_factory.mktemp("acted"))
    return outage._replace(recording=with_events(outage.recording, "altered.ndjson", altered()))


@pytest.fixture(scope="module")
def morning(site: Site) -> Report:
    return twin.report(site.recording, site.estate)


def test_the_text_says_what_an_action_was_worth(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--estate", str(site.estate), "--recording", str(site.recording)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Report of 2026-11-20 00:00 to 04:59 UTC"
    assert re.fullmatch(r"1 page \(1 averted\), 0 min of 2192, \d+ min of 2192 avoided by .*", lines[1])
    assert lines[2] == "At its end nothing was likely to fill."
    action = (
        r"    SIZE raised from 16M to 64M at 01:02: full in \d\.\d h instead of in \d min, as proposed \(alter-size\)"
    )
    assert sum(bool(re.fullmatch(action, line)) for line in lines) == 1
    assert any(
        re.fullmatch(r"    \d+ min of 2192 avoided: from 01:02 to 04:\d\d untouched, .*", line) for line in lines
    )
    assert "mqtwin\t1\t0\t0\t1, of which 1 averted\t0\t0 of 0" in lines
    assert next(line for line in lines if line.startswith("QSG1/APP1\t")).endswith("\t0\t-\ttoo few days\t-")


def test_a_store_of_which_a_part_is_reported_says_which(morning: Report, capsys: pytest.CaptureFixture[str]) -> None:
    [store] = morning.stores
    seen = ("20 % of the puts of ORDERS are seen",)
    partial = replace(morning, stores=(replace(store, coverage=replace(store.coverage, measurements=0, seen=seen)),))
    emit(morning_document(partial))
    assert "\nQSG1/APP1: 20 % of the puts of ORDERS are seen" in capsys.readouterr().out


def test_json_and_page_are_of_the_same_report(
    site: Site, morning: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    options = ["--estate", str(site.estate), "--recording", str(site.recording), "--html", str(page), "--json"]
    assert main(["report", *options]) == 0
    assert json.loads(capsys.readouterr().out)["incidents"][0]["verdict"] == "averted"
    text = page.read_text(encoding="utf-8")
    assert text == html_page(morning_document(morning))
    assert text.count("<svg ") == 1 and "://" not in text
    assert "SIZE raised from 16M to 64M at 01:02" in text


def test_a_quiet_time_says_that_nobody_was_called(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    emit(morning_document(twin.report(site.recording, site.estate, until="2026-11-20T00:20:00Z")))
    assert "Nobody was called." in capsys.readouterr().out.splitlines()


def test_room_is_a_number_of_days_or_why_there_is_none() -> None:
    def room(per_day: float | None, left: float | None) -> str:
        return room_text(Growth(resource="elements", days=5, pct_per_day=per_day, days_left=left))

    assert (room(2.0, 12.4), room(0.01, 900.0)) == ("12 days of elements", "more than a year")
    assert (room(None, None), room(-1.0, None), room_text(None)) == ("no growth", "it shrinks", "too few days")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "report: --recording or --bootstrap-servers; expected: one of them"),
        (
            ["--recording", "r.arrow", "--html", "no/such/folder.html"],
            "--html no/such/folder.html: its folder does not exist; expected: a file in",
        ),
        (["--recording", "r.arrow", "--since", "noon"], "r.arrow"),
    ],
)
def test_wrong_use_is_one_line(options: list[str], text: str, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--estate", str(site.estate), *options]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(error) == 1 and text in error[0]


def test_of_a_job_the_topics_are_read(
    site: Site, morning: Report, kafka: str, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    states = twin.replay(site.recording, site.estate)
    for topic, values in {
        "events": site.recording.read_bytes().splitlines(),
        "alerts": [alert.record() for alert in states.alerts],
        "state": [msgspec.json.encode(state) for state in states.states.values()],
    }.items():
        create(kafka, f"{topic_prefix}.{topic}")
        send(kafka, f"{topic_prefix}.{topic}", list(values))
    live = ["--bootstrap-servers", kafka, "--topic-prefix", topic_prefix, "--json"]
    assert main(["report", "--estate", str(site.estate), *live]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Report) == morning


def test_notes_stand_with_their_incident_and_what_comes_later_is_left_out(
    site: Site, kafka: str, topic_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alerts = [alert.record() for alert in twin.replay(site.recording, site.estate).alerts]
    alert_id = json.loads(alerts[0])["data"]["alert_id"]
    notes = [
        new_note(alert_id, "acknowledged", "ann", "2026-11-20T00:59:10Z", text="<b>on it"),
        new_note(alert_id, "acted", "ann", "2026-11-20T01:03:00Z", action="alter-size"),
        new_note("X", "acknowledged", "bob", "2026-11-20T01:03:00Z"),
        new_note(alert_id, "comment", "eve", "2026-11-21T09:00:00Z", text="next morning"),
    ]
    for topic, values in {
        "events": site.recording.read_bytes().splitlines(),
        "alerts": alerts,
        "notes": [msgspec.json.encode(note) for note in notes],
    }.items():
        create(kafka, f"{topic_prefix}.{topic}")
        send(kafka, f"{topic_prefix}.{topic}", list(values))
    live = ["report", "--estate", str(site.estate), "--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]
    page = tmp_path / "report.html"
    assert main([*live, "--html", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    acknowledged by ann: <b>on it at 00:59" in lines
    assert "    alter-size done by ann at 01:03" in lines
    assert "    eve: next morning at 11-21 09:00" in lines
    assert not any("bob" in line for line in lines)
    assert "acknowledged by ann: &lt;b&gt;on it at 00:59" in page.read_text(encoding="utf-8")
    assert main([*live, "--json", "--until", "2026-11-20T04:00:00Z"]) == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert [note for incident in report.incidents for note in incident.notes] == notes[:2]
