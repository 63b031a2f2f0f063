"""The reader of the job's topics: all of them, from their beginnings, and topics that come later."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from streams.kafka.output_reader import LAST_LETTERS, OutputReader, OutputRecord
from streams.kafka.topics import Topics
from tests.streams.kafka_help import create, send
from twin.errors import MqtwinError


def read_until(reader: OutputReader, is_enough: Callable[[list[OutputRecord]], bool]) -> list[OutputRecord]:
    records: list[OutputRecord] = []
    deadline = time.monotonic() + 20
    while not is_enough(records) and time.monotonic() < deadline:
        records += reader.read(0.2)
    return records


def test_state_alerts_and_the_last_letters_are_read_with_their_headers(kafka: str, topic_prefix: str):
    topics = Topics(topic_prefix)
    for topic in (topics.state, topics.alerts, topics.dlq):
        create(kafka, topic)
    send(kafka, topics.state, [b"{}", None])
    send(kafka, topics.alerts, [b"[]"])
    letters: list[bytes | None] = [str(number).encode() for number in range(LAST_LETTERS + 5)]
    send(kafka, topics.dlq, letters, headers=[("reason", b"not-json"), ("detail", b"\xff")])
    with OutputReader({"bootstrap.servers": kafka}, topics) as reader:
        assert not reader.has_caught_up
        records = read_until(reader, lambda records: len(records) == LAST_LETTERS + 3)
        assert reader.has_caught_up and reader.missing_topics == [] and reader.is_answering()
    by_topic = {topic: [item for item in records if item.topic == topic] for topic in (topics.state, topics.alerts)}
    assert [item.value for item in by_topic[topics.state]] == [b"{}", None]
    read_letters = [item for item in records if item.topic == topics.dlq]
    assert [item.value for item in read_letters] == letters[5:]
    assert read_letters[0].headers == {"reason": "not-json", "detail": "\ufffd"}
    assert abs(read_letters[0].written_ms / 1000 - time.time()) < 60


def test_topics_that_come_later_are_read_from_their_beginning(kafka: str, topic_prefix: str):
    topics = Topics(topic_prefix)
    with OutputReader({"bootstrap.servers": kafka}, topics) as reader:
        assert reader.read(0.1) == []
        assert reader.missing_topics == [topics.state, topics.alerts, topics.dlq]
        assert not reader.has_caught_up
        create(kafka, topics.state)
        send(kafka, topics.state, [b"1"])
        records = read_until(reader, bool)
        assert [item.value for item in records] == [b"1"]
        assert reader.missing_topics == [topics.alerts, topics.dlq]


def test_no_broker_is_an_error_of_one_line():
    with pytest.raises(MqtwinError, match="no Kafka answers at localhost:1"):
        OutputReader({"bootstrap.servers": "localhost:1"}, Topics())
