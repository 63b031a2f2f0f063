"""Spans read by the job itself, and by `mqtwin collect otlp` onto the events topic: equal alerts, equal final state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.collecting.collect import EventWriter, collect
from streams.collecting.sources import Position
from streams.collecting.topic_source import TopicSource
from streams.kafka.dead_letters import LetterSender
from streams.kafka.publish import PublishResult, Sender
from tests.streams.kafka_help import create, send
from tests.support.estates import small_estate
from tests.support.spans import request_of, requests_of_events
from tests.system.harness import Stream
from twin.base.errors import UsageError
from twin.estate import Estate, load_estate
from twin.feeds import Intake, make_feed

pytestmark = [pytest.mark.system, pytest.mark.nightly]

NewStream = Callable[[Estate], Stream]
START_US = 1_795_176_000_000_000
SECOND = 1_000_000


def filling(count: int) -> list[dict[str, Any]]:
    """Return puts that fill QSG1/APP1 beyond its offload rules, and puts and gets on QSG1/APP2; some without size."""
    events = []
    for number in range(count):
        audit = number % 4 == 3
        event: dict[str, Any] = {
            "time": START_US + number * SECOND // 2,
            "op": "GET" if audit and number % 8 == 7 else "PUT",
            "queue": "AUDIT" if audit else "ORDERS",
            "qmgr": ("QM01", "QM02")[number % 2],
            "msgid": f"{number - 4 if number % 8 == 7 else number:048x}",
        }
        if event["op"] == "PUT" and number % 10:
            event["length"] = 9000 + number % 7
        events.append(event)
    return events


def collect_all(kafka: str, topic: str, records: int, stream: Stream, folder: Path) -> None:
    """Do as `mqtwin collect otlp` does, until all records are taken."""
    intake = Intake(stream.estate)
    feed = make_feed("otlp", intake)
    client = {"bootstrap.servers": kafka}
    source = TopicSource(client, topic, Position(source=topic))
    try:
        with Sender(client, stream.topics, PublishResult(), linger_ms=5, create_topics=True) as sender:
            letters = LetterSender(client, stream.topics, create_topics=True)
            collect(
                source,
                feed,
                intake,
                EventWriter(sender, letters, stream.estate),
                folder / "position.json",
                stop=lambda: source.position(feed).read.get("0", 0) >= records,
                on_complaint=lambda _: None,
            )
    finally:
        source.close()
    assert intake.counts["duplicate"] > 0
    assert intake.counts["late"] == 0


def test_the_job_reads_spans_as_the_collector_does(new_stream: NewStream, kafka: str, tmp_path: Path) -> None:
    estate = load_estate(small_estate(tmp_path))
    events = filling(6000)
    values = requests_of_events(events, 100, seed=3, late_us=20 * SECOND)
    # Spans an hour later, which wait themselves, let go of all before them.
    end = events[-1]["time"] + 3600 * SECOND
    last = [{"time": end, "op": "GET", "queue": name, "qmgr": "QM01"} for name in ("ORDERS", "AUDIT")]
    by_collector, by_job = new_stream(estate), new_stream(estate)
    topic = f"{by_job.prefix}.otlp_spans"
    create(kafka, topic)
    by_job.otlp_topic = topic
    send(kafka, topic, list(values[:31]))
    by_job.run(max_records=9)
    send(kafka, topic, list(values[31:]))
    collect_all(kafka, topic, len(values), by_collector, tmp_path)
    send(kafka, topic, [b"\xff noise", request_of(last, 10_000)])
    by_job.run(max_records=20)
    by_collector.run()

    assert by_job.states() == by_collector.states()
    assert by_job.states().keys() == {"QSG1/APP1", "QSG1/APP2"}
    assert by_job.alerts() == by_collector.alerts()
    assert {alert["data"]["condition"] for alert in by_job.alerts().values()} == {"threshold", "full-forecast"}
    (letter,) = by_job.letters()
    assert (letter.headers["reason"], letter.headers["topic"]) == ("unreadable-spans", topic)
    assert letter.headers["offset"] == str(len(values))
    sums = {name: sum(batch[name] for batch in by_job.batches) for name in ("spans", "spans_twice", "spans_unsized")}
    assert sums["spans"] - sums["spans_twice"] == len(events) + 2
    assert sums["spans_twice"] > 1000
    assert sums["spans_unsized"] == sum("length" not in event for event in events if event["op"] == "PUT")

    by_job.otlp_topic = None
    with pytest.raises(UsageError, match=f"give --otlp-topic {topic}"):
        by_job.run()


def test_spans_can_be_added_to_a_job_that_has_run_without(new_stream: NewStream, kafka: str, tmp_path: Path) -> None:
    estate = load_estate(small_estate(tmp_path))
    stream = new_stream(estate)
    put = {"time": START_US, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 10}
    line = b'{"time":1795176000000000,"qmgr":"QM01","op":"PUT","queue":"ORDERS","length":10}'
    stream.send([(b"QSG1/APP1", line, None)])
    stream.run()
    stream.otlp_topic = f"{stream.prefix}.otlp_spans"
    with pytest.raises(UsageError, match="there is no topic"):
        stream.run()
    create(kafka, stream.otlp_topic, partitions=2)
    later = {**put, "time": START_US + 60 * SECOND}
    send(kafka, stream.otlp_topic, [request_of([put])])
    send(kafka, stream.otlp_topic, [request_of([later], 2)], partition=1)
    stream.run()
    assert stream.states()["QSG1/APP1"].messages == 2
    assert not stream.letters()
