"""The watch over sources: which it reports and when, by clocks of the test."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import KafkaException, Message
from structlog.testing import capture_logs

from streams.kafka.admin import prepare_topics
from streams.kafka.topics import Limits, Topics
from streams.plan import PackedPlan, Plan
from streams.query.processor import source_bits
from streams.query.rows import BatchReport, SourceBits
from streams.query.silence import SourceGuard, SourceWatch
from tests.streams.kafka_help import everything
from tests.streams.stage_help import START_US, as_json, blocks_of, new_tester, put
from tests.streams.test_processor import STORE
from tests.support.traffic import ESTATE
from twin.base.errors import MqtwinError
from twin.estate import Estate, load_estate
from twin.events import Decoder
from twin.stores.watches import heartbeat

MEGABYTE = 1024 * 1024


class World:
    """Clocks, an events topic with one partition, and a job that reads it.

    `reports` has (time, queue manager, seconds of silence).
    """

    def __init__(self, **limits: float) -> None:
        self.now = 1000.0
        self.end = 0
        self.kafka_answers = True
        self.reports: list[tuple[float, str, int]] = []
        self.watch = SourceWatch(
            limits, self.ends, self.report, monotonic=lambda: self.now, wall=lambda: self.now + 1_000_000
        )

    def ends(self) -> dict[int, int]:
        if not self.kafka_answers:
            raise MqtwinError("no Kafka answers")
        return {0: self.end}

    def report(self, name: str, silent_s: int) -> None:
        self.reports.append((self.now - 1000, name, silent_s))
        self.end += 1  # the heartbeat

    def batch(self, *heard: str, read: int | None = None) -> None:
        self.watch.on_batch(heard, {0: self.end if read is None else read})

    def idle(self) -> None:
        self.watch.on_idle(self.now + 1_000_000)

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.now += 1
            self.watch.check()


def test_a_source_is_reported_after_its_limit_and_again_after_the_same_time() -> None:
    world = World(QM01=300)
    world.wait(100)
    world.batch("QM01")
    world.wait(299)
    assert world.reports == []
    world.wait(1)
    assert world.reports == [(400, "QM01", 300)]
    world.batch()  # the heartbeat itself
    world.wait(299)
    assert len(world.reports) == 1
    world.wait(1)
    assert world.reports[1:] == [(700, "QM01", 600)]


def test_an_event_ends_the_silence() -> None:
    world = World(QM01=300)
    world.batch("QM01")
    world.wait(310)
    world.batch("QM01")
    world.wait(299)
    assert len(world.reports) == 1
    world.wait(1)
    assert world.reports[1:] == [(610, "QM01", 300)]


def test_each_source_has_its_own_limit() -> None:
    world = World(QM01=300, QM02=60)
    world.batch("QM01", "QM02")
    world.wait(59)
    world.batch("QM01")
    world.wait(60)
    assert world.reports == [(60, "QM02", 60)]
    world.batch("QM02")
    world.wait(1)
    assert len(world.reports) == 1


def test_a_restarted_job_counts_from_its_start_and_needs_no_batch() -> None:
    world = World(QM01=300)
    world.end = 500  # the previous job wrote these, and nothing new comes
    world.wait(299)
    world.idle()
    world.wait(1)
    assert world.reports == []  # the idle trigger was before the time was up
    world.idle()
    world.wait(1)
    assert world.reports == [(301, "QM01", 301)]


def test_a_backlog_is_no_silence() -> None:
    world = World(QM01=300, QM02=300)
    world.end = 1000
    world.wait(400)
    world.batch(read=400)
    world.end = 2000  # other sources go on all the time
    world.wait(100)
    assert world.reports == []
    world.batch("QM02", read=1000)  # everything that existed when the time was up
    world.wait(1)
    assert world.reports == [(501, "QM01", 501)]


def test_a_topic_that_grows_all_the_time_hides_no_silent_source() -> None:
    world = World(QM01=30)
    for _ in range(40):
        world.end += 100
        world.batch(read=world.end - 50)
        world.wait(1)
    assert [name for _, name, _ in world.reports] == ["QM01"]


def test_limits_start_again_while_kafka_does_not_answer() -> None:
    world = World(QM01=300)
    world.batch("QM01")
    world.kafka_answers = False
    world.wait(400)
    world.kafka_answers = True
    world.wait(199)
    assert world.reports == []
    world.wait(1)
    assert [seconds for seconds, *_ in world.reports] == [600]


def test_a_short_limit_does_not_flood_the_topic() -> None:
    world = World(QM01=2)
    for _ in range(100):
        world.wait(1)
        world.batch()
    assert len(world.reports) == 10


# --- the sources of a batch ------------------------------------------------------------------------------------------


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    names = [f"QM{number:02d}" for number in range(1, 71)]
    text = ESTATE.replace('["QM01", "QM02"]', msgspec.json.encode(names).decode(), 1)
    text = text.replace('[queue_manager.QM01]\nplatform = "zos"\n[queue_manager.QM02]\nplatform = "zos"\n', "")
    text += "".join(f"[queue_manager.{name}]\nsilence_s = 300\n" for name in names if name != "QM02")
    (tmp_path / "estate.toml").write_text(text)
    return load_estate(tmp_path / "estate.toml")


def test_the_queue_managers_of_a_batch_become_bits(estate: Estate) -> None:
    bits = SourceBits(estate)
    assert len(bits.names) == 69 and len(bits.columns) == 2
    events = [put(number, qmgr=name, seq=None) for number, name in enumerate(("QM01", "QM02", "QM70", "QM63", "QM64"))]
    blocks = Decoder(estate).json([as_json(event) for event in events]).blocks(estate)
    observed: dict[str, Any] = dict(zip(bits.columns, bits.words(blocks), strict=True))
    assert bits.heard(observed) == ["QM01", "QM63", "QM64", "QM70"]
    assert all(0 < word < 2**62 for word in observed.values())
    assert bits.heard({}) == []


def test_a_heartbeat_of_the_job_does_not_count_as_an_event(estate: Estate) -> None:
    lines = [heartbeat("QM01", STORE, START_US, 300), as_json(put(1, qmgr="QM03", seq=None))]
    bits = SourceBits(estate)
    words = bits.words(Decoder(estate).json(lines).blocks(estate))
    assert bits.heard(dict(zip(bits.columns, words, strict=True))) == ["QM03"]


def test_the_stage_has_the_bits_on_its_first_row(estate: Estate) -> None:
    packed = PackedPlan.pack(Plan(estate, Topics(), Limits(state=MEGABYTE, alerts=MEGABYTE, dlq=MEGABYTE)))
    values = [as_json(put(number, length=60_000)) for number in range(800)]
    heard = [row.heard for row in new_tester(packed).test(STORE, blocks_of(packed, values))]
    assert len(heard) > 1 and all(row is None for row in heard[1:])
    bits = source_bits(packed)
    assert bits.heard(dict(zip(bits.columns, heard[0], strict=True))) == ["QM01"]


def test_offsets_are_read_from_sparks_report() -> None:
    text = (
        b'{"batchId": 3, "sources": [{"endOffset": {"mqtwin.events": {"0": 7, "1": 9}, "mqtwin.reports": {"0": 1}}}]}'
    )
    report = msgspec.json.decode(text, type=BatchReport)
    assert report.end_offsets == {"mqtwin.events": {0: 7, 1: 9}, "mqtwin.reports": {0: 1}}
    assert BatchReport(0).end_offsets == {}


# --- the heartbeats --------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(tmp_path: Path) -> Estate:
    text = ESTATE.replace("[queue_manager.QM01]\n", "[queue_manager.QM01]\nsilence_s = 0.5\n")
    text = text.replace('size = "1M"\n', 'size = "1M"\ncoupling_facility = "CF01"\n')
    (tmp_path / "estate.toml").write_text(text + '[coupling_facility.CF01]\nsize = "64G"\n')
    return load_estate(tmp_path / "estate.toml")


def read_messages(kafka: str, topic: str) -> list[Message]:
    try:
        return everything(kafka, topic)
    except KafkaException:  # a topic just created has no leader for a moment
        return []


def test_each_store_with_messages_gets_its_own_heartbeat(watched: Estate, kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    prepare_topics(topics, {"bootstrap.servers": kafka})
    guard = SourceGuard(watched, {"bootstrap.servers": kafka}, topics)
    guard.start()
    try:
        source = {"endOffset": {topics.events: dict.fromkeys("0123", 0)}}
        guard.on_batch(msgspec.convert({"batchId": 0, "sources": [source]}, BatchReport, strict=False))
        deadline = time.monotonic() + 30
        while len(messages := read_messages(kafka, topics.events)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        guard.stop()
    events = {message.key(): msgspec.json.decode(message.value()) for message in messages}
    assert set(events) == {b"QSG1/APP1", b"QSG1/APP2", b"QM01/PS04"}  # CF01 has no messages
    for key, event in events.items():
        assert (event["op"], event["qmgr"], event["store"].encode()) == ("HEARTBEAT", "QM01", key)
        assert set(event["measured"]) == {"silent_s"} and 1 <= event["measured"]["silent_s"] <= 30
        assert abs(datetime.fromisoformat(event["time"]).timestamp() - time.time()) < 60
    assert not Decoder(watched).json([message.value() for message in messages]).rejects


def test_a_guard_that_fails_looks_again_and_says_so(watched: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_kafka: object, _topic: str) -> dict[int, int]:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("streams.query.silence.end_offsets", fail)
    with capture_logs() as logs:
        guard = SourceGuard(watched, {}, Topics())
        guard.start()
        deadline = time.monotonic() + 30
        while len(logs) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        guard.stop()
    assert [line["why"] for line in logs[:2]] == ["ZeroDivisionError: a defect"] * 2


def test_a_heartbeat_that_cannot_be_written_is_an_error_in_the_log(
    watched: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: Any, **_settings: Any) -> None:
        raise MqtwinError("topic mqtwin.events: Topic authorization failed")

    monkeypatch.setattr("streams.query.silence.Sender", refused)
    monkeypatch.setattr("streams.query.silence.end_offsets", lambda _kafka, _topic: {})
    with capture_logs() as logs:
        guard = SourceGuard(watched, {}, Topics())
        guard.start()
        deadline = time.monotonic() + 30
        while not logs and time.monotonic() < deadline:
            time.sleep(0.05)
        guard.stop()
    assert logs[0]["log_level"] == "error"
    assert logs[0]["why"] == "topic mqtwin.events: Topic authorization failed"
    assert (logs[0]["right"], logs[0]["topic"]) == ("WRITE", "mqtwin.events")
