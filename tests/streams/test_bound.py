"""The default bound on the records of a batch, derived from the size of records."""

from __future__ import annotations

import pytest

from streams.kafka.admin import prepare_topics
from streams.kafka.topics import Topics
from streams.query import preflight
from streams.query.preflight import BATCH_BYTES, MAX_RECORDS, MIN_RECORDS, UNKNOWN_RECORDS, Bound, choose_bound
from tests.streams.kafka_help import new_producer

NOBODY = "127.0.0.1:9"  # the discard port: no Kafka


def fill(kafka: str, prefix: str, sizes: list[int]) -> str:
    """Write records of these sizes to the events topic, spread over its partitions, and return the topic's name."""
    topics = Topics(prefix)
    prepare_topics(topics, {"bootstrap.servers": kafka}, partitions=2)
    producer = new_producer(kafka, message_max_bytes=16_000_000)
    for number, size in enumerate(sizes):
        producer.produce(topics.events, b"x" * size, partition=number % 2)
    assert producer.flush(60) == 0
    return topics.events


@pytest.mark.system
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], Bound(UNKNOWN_RECORDS)),
        ([250] * 300, Bound(MAX_RECORDS, 250)),
        ([500_000] * 8, Bound(BATCH_BYTES // 500_000, 500_000)),
        ([100] * 400 + [400_000] * 100, Bound(BATCH_BYTES // 400_000, 400_000)),  # a collector that changed to Arrow
        ([400_000] * 100 + [100] * 400, Bound(BATCH_BYTES // 400_000, 400_000)),
    ],
    ids=["an empty topic", "JSON", "Arrow", "JSON, then Arrow", "Arrow, then JSON"],
)
def test_the_bound_follows_the_size_of_records(
    kafka: str, topic_prefix: str, sizes: list[int], expected: Bound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "SAMPLE_SECONDS", 60.0)  # 40 MB, on a busy machine
    assert choose_bound({"bootstrap.servers": kafka}, fill(kafka, topic_prefix, sizes)) == expected


def test_the_bound_stays_between_its_minimum_and_its_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "measure_mean_size", lambda *_: 1e9)
    assert choose_bound({}, "t") == Bound(MIN_RECORDS, 1_000_000_000)
    monkeypatch.setattr(preflight, "measure_mean_size", lambda *_: 0.0)
    assert choose_bound({}, "t") == Bound(MAX_RECORDS, 0)


def test_a_topic_that_cannot_be_read_has_the_bound_of_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.kafka.clients.CONNECT_SECONDS", 0.5)
    assert choose_bound({"bootstrap.servers": NOBODY}, "t") == Bound(UNKNOWN_RECORDS)
