"""`mqtwin plan`: what it writes to the events topic, what it lists and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.cli import main
from deploy.commands.plan import StorePlan, plan_event, plans_document
from deploy.show.document import ZONE
from deploy.show.terminal import emit
from streams.kafka.admin import prepare_topics
from streams.kafka.topics import Topics
from tests.streams.kafka_help import everything, send
from tests.twin.estate.test_planned import ESTATE
from twin.base.errors import UsageError
from twin.base.units import zone_of
from twin.estate import load_estate
from twin.events import Decoder
from twin.records import PlannedWork
from twin.testing.drivers import Driver

STORE = "QSG1/APP1"
ONCE = ("--from", "2099-01-01T02:00:00Z", "--until", "2099-01-01T04:00:00Z", "--messages", "5000")


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    file = tmp_path / "estate.toml"
    file.write_text(ESTATE, encoding="utf-8")
    return file


def run(topics: Topics, kafka: str, estate: Path, *arguments: str) -> int:
    options = ["--estate", str(estate), "--bootstrap-servers", kafka, "--topic-prefix", topics.prefix]
    return main(["plan", *arguments, *options])


def test_a_plan_is_an_event_that_the_decoder_takes_and_is_listed_from_the_state(
    kafka: str, topic_prefix: str, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = Topics(topic_prefix)
    prepare_topics(topics, {"bootstrap.servers": kafka})
    assert run(topics, kafka, estate, "add", STORE, "A", "--queue", "BATCH", *ONCE, "--getters-away") == 0
    assert run(topics, kafka, estate, "cancel", STORE, "A") == 0
    records = everything(kafka, topics.events)
    decoded = Decoder(estate).json([record.value() for record in records])
    assert not decoded.rejects and [record.key() for record in records] == [b"QSG1/APP1"] * 2
    plan = json.loads(records[0].value())["plan"]
    assert (plan["queue"], plan["messages"], plan["getters"]) == ("BATCH", 5000, "away")
    driver = Driver(estate, start="2099-01-01T00:00:00Z")
    driver.send({"time": driver.time, "qmgr": "QM01", "op": "PLAN", "store": STORE, "plan": plan})
    driver.wait(seconds=20)
    send(kafka, topics.state, [msgspec.json.encode(driver.state(STORE))], key=b"QSG1/APP1")
    capsys.readouterr()
    assert run(topics, kafka, estate, "list") == 0
    out = capsys.readouterr().out
    assert "A\tBATCH\t2099-01-01 03:00 to 05:00 CET\t5,000\t\taway\tplanned" in out


NOW = 1_795_132_800_000_000  # 2026-11-20
PLAN = {"id": "A", "from": "2026-11-20T02:00:00Z", "until": "2026-11-20T04:00:00Z", "messages": 5000}


@pytest.mark.parametrize("content", [PLAN, {"id": "A", "cancelled": True}], ids=["added", "cancelled"])
def test_the_event_of_a_plan_is_taken_by_the_decoder(estate: Path, content: dict[str, Any]) -> None:
    event = plan_event(load_estate(estate), STORE, content, NOW)
    decoded = Decoder(estate).json([event])
    assert not decoded.rejects
    assert json.loads(event) == {"time": NOW, "qmgr": "QM01", "op": "PLAN", "store": STORE, "plan": content}


@pytest.mark.parametrize(
    ("store", "changes", "problem"),
    [
        (STORE, {"messages": 0}, "plan of QSG1/APP1: messages = 0: must be an integer of 1 to "),
        (STORE, {"queue": "BATCHES"}, 'queue = "BATCHES": no queue of QSG1/APP1; did you mean BATCH?'),
        (STORE, {"from": "2026-11-19T22:00:00Z", "until": "2026-11-19T23:00:00Z"}, "has passed; expected: a window"),
        ("QSG1/APP2", {}, "QSG1/APP2: the estate has no such store; did you mean QSG1/APP1?"),
        ("CF01", {}, "a coupling_facility is planned by its stores; expected: a structure"),
    ],
)
def test_a_wrong_plan_makes_no_event(estate: Path, store: str, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_event(load_estate(estate), store, PLAN | changes, NOW)
    assert problem in str(caught.value)
    if store == "CF01":
        with pytest.raises(UsageError, match="is planned by its stores"):
            plan_event(load_estate(estate), store, {"id": "A", "cancelled": True}, NOW)


def test_the_list_has_a_line_for_each_window(capsys: pytest.CaptureFixture[str]) -> None:
    times = {"begins": "2026-11-20T02:00:00Z", "ends": "2026-11-20T04:00:00Z"}
    job = PlannedWork(id="A", queue="BATCH", announced=5000, seen=12, getters_away=False, status="running", **times)
    away = PlannedWork(id="B", queue=None, announced=None, seen=None, getters_away=True, status="planned", **times)
    plans = [StorePlan(store=STORE, work=work) for work in (job, away)]
    ZONE.set(zone_of("Europe/Berlin"))
    emit(plans_document(plans), as_json=False)
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["store", "plan", "queue", "window", "announced", "seen", "getters", "status"]
    assert rows == [
        "QSG1/APP1\tA\tBATCH\t2026-11-20 03:00 to 05:00 CET\t5,000\t12\t\trunning",
        "QSG1/APP1\tB\t\t2026-11-20 03:00 to 05:00 CET\t\t\taway\tplanned",
    ]
    emit(plans_document([]), as_json=False)
    assert capsys.readouterr().out == "no work is planned in the next 24 hours\n"
    emit(plans_document(plans), as_json=True)
    assert [own["work"]["id"] for own in json.loads(capsys.readouterr().out)] == ["A", "B"]


def test_a_wrong_plan_reaches_no_broker(estate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Topics("none"), "localhost:1", estate, "add", STORE, "A", "--messages", "0", *ONCE[:4]) == 2
    assert "plan of QSG1/APP1: messages = 0: must be an integer of 1 to " in capsys.readouterr().err


def test_an_import_without_a_broker_prints_the_text_for_the_estate(
    tmp_path: Path, estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = "DTSTART:20990101T020000Z\nDURATION:PT1H\nX-MQTWIN-MESSAGES:5"
    event = "BEGIN:VEVENT\nUID:1\nSUMMARY:{}\n{}\n" + times + "\nEND:VEVENT\n"
    file = tmp_path / "jobs.ics"
    body = event.format("Night", "CATEGORIES:BATCH") + event.format("Lunch", "CATEGORIES:KITCHEN")
    file.write_text(f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{body}END:VCALENDAR\n", encoding="utf-8")
    assert main(["plan", "import", str(file), "--estate", str(estate)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:4] == ["[[planned]]", 'store = "QSG1/APP1"', 'id = "Night"', 'queue = "BATCH"']
    assert "jobs.ics: left out: 1 that names no store or queue of the estate" in err and "1 plan of jobs.ics" in err
    file.write_text("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nEND:VCALENDAR\n", encoding="utf-8")
    assert main(["plan", "import", str(file), "--estate", str(estate)]) == 1
