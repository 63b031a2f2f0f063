"""The reader of the job's topics: from their beginnings or their last records on, and topics that come later."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from streams.kafka import clients
from streams.kafka.topic_reader import TopicReader
from streams.kafka.topics import TopicRecord, Topics
from tests.streams.kafka_help import create, send
from twin.base.errors import MqtwinError


def read_until(reader: TopicReader, is_enough: Callable[[list[TopicRecord]], bool]) -> list[TopicRecord]:
    records: list[TopicRecord] = []
    deadline = time.monotonic() + 20
    while not is_enough(records) and time.monotonic() < deadline:
        records += reader.read(0.2)
    return records


def test_topics_are_read_from_their_beginning_or_from_their_latest_records(kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    for topic in (topics.state, topics.alerts, topics.dlq):
        create(kafka, topic)
    send(kafka, topics.state, [b"{}", None], key=b"QSG1/APP1")
    send(kafka, topics.alerts, [b"old"])
    letters: list[bytes | None] = [str(number).encode() for number in range(25)]
    send(kafka, topics.dlq, letters, headers=[("reason", b"not-json"), ("detail", b"\xff")])
    with TopicReader({"bootstrap.servers": kafka}, {topics.state: None, topics.alerts: 0, topics.dlq: 20}) as reader:
        assert not reader.is_caught_up
        records = read_until(reader, lambda _: reader.is_caught_up)
        assert reader.missing == [] and reader.is_answering()
        send(kafka, topics.alerts, [b"new"])
        records += read_until(reader, bool)
    by_topic = {topic: [record for record in records if record.topic == topic] for topic in topics.out}
    assert [record.value for record in by_topic[topics.state]] == [b"{}", None]
    assert by_topic[topics.state][0].key == b"QSG1/APP1"
    assert [record.value for record in by_topic[topics.alerts]] == [b"new"]
    read_letters = by_topic[topics.dlq]
    assert [record.value for record in read_letters] == letters[5:]
    assert read_letters[0].headers == {"reason": "not-json", "detail": "\ufffd"}
    assert abs(read_letters[0].written_ms / 1000 - time.time()) < 60


def test_topics_that_come_later_are_read_from_their_beginning(kafka: str, topic_prefix: str) -> None:
    topics = Topics(topic_prefix)
    starts = {topics.state: None, topics.alerts: None, topics.dlq: 0}
    with TopicReader({"bootstrap.servers": kafka}, starts) as reader:
        assert reader.missing == [topics.state, topics.alerts, topics.dlq] and reader.is_caught_up
        assert reader.read(0.1) == []
        create(kafka, topics.dlq)
        send(kafka, topics.dlq, [b"1"])
        (record,) = read_until(reader, bool)
        assert record.value == b"1"
        assert reader.missing == [topics.state, topics.alerts]


def test_no_kafka_is_an_error_that_names_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 1)
    with pytest.raises(MqtwinError, match=r"no Kafka answers at 127\.0\.0\.1:9"):
        TopicReader({"bootstrap.servers": "127.0.0.1:9"}, {"t": None})
