"""`mqtwin plan` with a real broker: what it writes to the events topic, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from deploy.cli import main
from streams.kafka.admin import prepare_topics
from streams.kafka.topics import Topics
from tests.streams.kafka_help import everything, send
from tests.twin.estate.test_planned import ESTATE
from twin.events import Decoder
from twin.testing.drivers import Driver

ONCE = ("--from", "2026-01-01T02:00:00Z", "--until", "2026-01-01T04:00:00Z", "--messages", "5000")


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
    assert run(topics, kafka, estate, "add", "QSG1/APP1", "A", "--queue", "BATCH", *ONCE, "--getters-away") == 0
    assert run(topics, kafka, estate, "cancel", "QSG1/APP1", "A") == 0
    records = everything(kafka, topics.events)
    decoded = Decoder(estate).json([record.value() for record in records])
    assert not decoded.rejects and [record.key() for record in records] == [b"QSG1/APP1"] * 2
    plan = json.loads(records[0].value())["plan"]
    assert (plan["queue"], plan["messages"], plan["getters"]) == ("BATCH", 5000, "away")
    driver = Driver(estate)
    driver.send({"time": driver.time, "qmgr": "QM01", "op": "PLAN", "store": "QSG1/APP1", "plan": plan})
    driver.wait(seconds=20)
    send(kafka, topics.state, [msgspec.json.encode(driver.state("QSG1/APP1"))], key=b"QSG1/APP1")
    capsys.readouterr()
    assert run(topics, kafka, estate, "list") == 0
    out = capsys.readouterr().out
    assert "A\tBATCH\t2026-01-01 03:00 to 05:00 CET\t5,000\t\taway\tplanned" in out


def test_a_wrong_plan_writes_nothing_and_says_what_is_expected(
    estate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = Topics("none")
    assert run(topics, "localhost:1", estate, "add", "QSG1/APP1", "A", "--messages", "0", *ONCE[:4]) == 2
    assert "plan of QSG1/APP1: messages = 0: must be an integer of 1 to " in capsys.readouterr().err
    assert run(topics, "localhost:1", estate, "add", "QSG1/APP2", "A", *ONCE) == 2
    assert "QSG1/APP2: the estate has no such store; did you mean QSG1/APP1?" in capsys.readouterr().err
