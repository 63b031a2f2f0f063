"""A record whose own time Spark cannot read: its end names the way past it, and only this record is left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streams.checkpoint.relocate import Place
from streams.kafka.admin import prepare_topics
from streams.kafka.record import record
from streams.query.definition import JobSettings
from streams.query.job import start_job
from streams.query.past import JobPast
from tests.streams.kafka_help import PATIENCE, create, new_producer, send
from tests.support.estates import small_estate
from tests.system.harness import Stream
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate, Structure, load_estate

pytestmark = [pytest.mark.system, pytest.mark.nightly]

STORE = "QSG1/APP1"
NANOSECONDS = 9 * 10**17  # where milliseconds belong
BAD_OFFSET, EVENTS = 25, 64


def run(stream: Stream, settings: JobSettings) -> None:
    job = start_job(settings, session=stream.session, on_batch=stream.batches.append)
    try:
        job.wait()
    finally:
        job.stop()


def test_a_record_of_a_time_beyond_sparks_range_is_skipped_and_nothing_else(
    new_stream: Callable[[Estate], Stream], tmp_path: Path
) -> None:
    stream = new_stream(load_estate(small_estate(tmp_path)))
    topic = stream.topics.events
    create(stream.servers, topic, message_timestamp_after_max_ms=str(2**63 - 1))
    prepare_topics(stream.topics, {"bootstrap.servers": stream.servers})
    producer = new_producer(stream.servers)
    for number in range(EVENTS + 1):
        event = {"time": 1_795_176_000_000_000 + number, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100}
        time = {"timestamp": NANOSECONDS} if number == BAD_OFFSET else {}
        producer.produce(topic, json.dumps(event).encode(), STORE, partition=0, **time)
    assert producer.flush(PATIENCE) == 0
    settings = JobSettings(
        estate=stream.estate,
        bootstrap_servers=stream.servers,
        checkpoint=str(stream.checkpoint),
        prefix=stream.prefix,
        available_now=True,
        max_records=20,
    )
    place = f"{topic}/0/{BAD_OFFSET}"
    with pytest.raises(MqtwinError, match=rf"record {place} has the time {NANOSECONDS} ms, .* with --skip {place}, "):
        run(stream, settings)
    settings = replace(settings, skip=(Place.parse(place),))
    with capture_logs() as logs:
        with pytest.raises(MqtwinError, match="which Spark cannot read"):
            run(stream, settings)  # what comes before it in the planned batch
        run(stream, settings)
        run(stream, settings)  # the option may stay
    assert [log["event"] for log in logs if log["event"] in {"batch cut", "record skipped"}] == [
        "batch cut",
        "record skipped",
    ]
    assert stream.states()[STORE].messages == EVENTS
    (letter,) = stream.letters()
    assert (letter.headers["reason"], letter.headers["offset"]) == ("bad-time", str(BAD_OFFSET))
    assert json.loads(letter.value)["time"] == 1_795_176_000_000_000 + BAD_OFFSET
    check_past(stream, settings, tmp_path)


def check_past(stream: Stream, settings: JobSettings, tmp_path: Path) -> None:
    """Start the job with another estate, and compare what it published before and since with its past.

    The record is left out of that, and of a recording, as of the job.
    """
    servers = {"bootstrap.servers": stream.servers}
    before, time_us = stream.states()[STORE], 1_795_176_000_000_000 + EVENTS
    structure = stream.estate.stores[STORE]
    assert isinstance(structure, Structure)
    rules = replace(structure, offld1_th=0, offld1_sz=0)
    changed = replace(stream.estate, stores={**stream.estate.stores, STORE: rules})
    event = {"time": time_us + 1, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 1000}
    send(stream.servers, stream.topics.events, [json.dumps(event).encode()])
    run(stream, replace(settings, estate=changed))
    after = stream.states()[STORE]
    assert (after.messages, after.offloaded_messages, before.offloaded_messages) == (EVENTS + 1, 1, 0)
    for checkpoint, today in ((stream.checkpoint, changed), (stream.checkpoint, stream.estate), (None, stream.estate)):
        past = JobPast(kafka=servers, topics=stream.topics, estate=today, checkpoint=checkpoint, session=stream.session)
        assert past.states(time_us, STORE) == {STORE: before}
        if checkpoint is not None:
            assert past.states(time_us + 1, STORE) == {STORE: after}
    result = record(tmp_path / "topic.ndjson", servers, stream.topics)
    assert (result.events, result.lost, result.first_lost) == (
        EVENTS + 1,
        {"bad-time": 1},
        f"partition 0 offset {BAD_OFFSET}",
    )
    place = (0, BAD_OFFSET + 1)  # of one that is skipped for another reason
    assert record(tmp_path / "topic.ndjson", servers, stream.topics, skipped={place}).events == EVENTS
    assert past.skipped == frozenset() and replace(past, checkpoint=stream.checkpoint).skipped == {(0, BAD_OFFSET)}


@pytest.mark.parametrize("text", ["mqtwin.events/0", "mqtwin.events/0/x", "a b/0/1", "mqtwin.events:0:1"])
def test_a_place_has_a_topic_a_partition_and_an_offset(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected: TOPIC/PARTITION/OFFSET"):
        Place.parse(text)
