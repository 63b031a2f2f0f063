"""Producers with transactions: what they abort is never counted, and an open transaction does not stall in silence."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs

from deploy.show.summaries import recorded_summary
from streams.kafka.admin import PartitionEnd, admin_client, partition_ends, prepare_topics
from streams.kafka.record import RecordResult, record
from streams.kafka.topic_reader import TopicReader
from streams.query.preflight import measure_mean_size
from tests.streams.kafka_help import PATIENCE, new_producer
from tests.support.estates import small_estate
from tests.system.harness import Stream
from twin.estate import Estate, load_estate

pytestmark = pytest.mark.system

STORE = "QSG1/APP1"
FIRST = 1_795_176_000_000_000


@pytest.fixture
def stream(new_stream: Callable[[Estate], Stream], tmp_path: Path) -> Stream:
    stream = new_stream(load_estate(small_estate(tmp_path)))
    prepare_topics(stream.topics, {"bootstrap.servers": stream.servers})
    return stream


@pytest.fixture
def producer(stream: Stream) -> Iterator[Producer]:
    """A producer with transactions that stay open for as long as a test takes."""
    settings = {"transactional.id": stream.prefix, "transaction.timeout.ms": 600_000, "linger.ms": 0}
    producer = Producer({"bootstrap.servers": stream.servers, **settings})
    producer.init_transactions(PATIENCE)
    return producer


def put(producer: Producer, topic: str, first: int, count: int) -> None:
    """Send puts to partition 0, without `seq`, and return once the broker has them."""
    for time_us in range(FIRST + first, FIRST + first + count):
        event = {"time": time_us, "qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 100}
        producer.produce(topic, json.dumps(event).encode(), STORE, partition=0)
    assert producer.flush(PATIENCE) == 0


def recorded(stream: Stream, path: Path) -> RecordResult:
    return record(path, {"bootstrap.servers": stream.servers}, stream.topics)


def test_what_a_producer_aborts_is_in_neither_stream_nor_recording(
    stream: Stream, producer: Producer, tmp_path: Path
) -> None:
    topic = stream.topics.events
    for first, count, is_good in ((0, 100, True), (100, 50, False), (150, 10, True), (160, 5, False)):
        producer.begin_transaction()
        put(producer, topic, first, count)
        producer.commit_transaction() if is_good else producer.abort_transaction()
    with capture_logs() as logs:
        stream.run()
    assert stream.states()[STORE].messages == 110
    assert sum(batch["events"] for batch in stream.batches) == 110
    assert (stream.batches[-1]["behind"], stream.batches[-1]["held"]) == (0, 0)  # though control records are at the end
    assert not [entry for entry in logs if "transaction" in entry["event"]]
    result = recorded(stream, tmp_path / "again.ndjson")
    assert (result.events, result.held) == (110, 0)
    with TopicReader({"bootstrap.servers": stream.servers}, {topic: None}) as reader:
        records = 0
        while not reader.is_caught_up:
            records += len(reader.read(1.0))
    assert records == 110


@pytest.mark.nightly
def test_an_open_transaction_is_named_and_counted_as_not_read(
    stream: Stream, producer: Producer, tmp_path: Path
) -> None:
    topic = stream.topics.events
    other = new_producer(stream.servers)
    put(other, topic, 0, 10)
    producer.begin_transaction()
    put(producer, topic, 10, 50)
    put(other, topic, 60, 5)  # committed, but behind the open transaction
    with capture_logs() as logs:
        stream.run()
    assert sum(batch["events"] for batch in stream.batches) == 10
    assert stream.batches[-1]["held"] == 55
    assert stream.batches[-1]["behind"] == 11  # of 4 partitions of events and one of reports
    (warning,) = (entry for entry in logs if entry["event"] == "an open transaction holds back records")
    assert (warning["topic"], warning["partition"]) == (topic, 0)
    assert (warning["stable_offset"], warning["end_offset"], warning["records"]) == (10, 65, 55)
    result = recorded(stream, tmp_path / "before.ndjson")
    assert (result.events, result.held) == (10, 55)
    assert "; not read: 55 records behind an open transaction" in recorded_summary(result.path, result, 1.0)

    producer.commit_transaction()
    stream.run()
    assert stream.states()[STORE].messages == 65
    assert (stream.batches[-1]["behind"], stream.batches[-1]["held"]) == (0, 0)
    assert recorded(stream, tmp_path / "after.ndjson").events == 65


def test_the_ends_of_a_partition_with_an_open_transaction(stream: Stream, producer: Producer) -> None:
    topic = stream.topics.events
    producer.begin_transaction()
    put(producer, topic, 0, 3)
    ends = partition_ends(admin_client({"bootstrap.servers": stream.servers}), [topic])
    assert [end for end in ends if end.held_records] == [PartitionEnd(topic, 0, 0, 3)]
    producer.abort_transaction()


def test_the_size_of_records_is_measured_without_waiting_for_aborted_ones(
    stream: Stream, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.query.preflight.SAMPLE_SECONDS", PATIENCE)
    topic = stream.topics.events
    put(new_producer(stream.servers), topic, 0, 3)
    producer.begin_transaction()
    put(producer, topic, 3, 3)
    producer.abort_transaction()
    began = time.monotonic()
    assert measure_mean_size({"bootstrap.servers": stream.servers}, topic)
    assert time.monotonic() - began < PATIENCE / 2
