"""A reader of what the job writes: state records, alerts and dead letters, in one consumer.

It reads the state and alerts topics from their beginning, as far as the broker still holds them, and the last dead
letters. It survives restarts of the broker and waits for topics that do not exist yet.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from streams.kafka.clients import LastError, check, fetch_metadata, new_consumer, offset_range, partitions_of
from streams.kafka.topics import Topics
from twin.errors import MqtwinError

LAST_LETTERS = 200  # dead letters read of what the topic holds
_BATCH = 1_000
_RETRY_SECONDS = 1.0  # between two look-ups of a topic that does not exist yet
_ANSWER_SECONDS = 2.0


class OutputRecord(NamedTuple):
    """A record of the topics that the job writes.

    Attributes:
        topic: its full name.
        written_ms: time at which it was written, milliseconds since 1970.
        value: the bytes; None for a tombstone.
        headers: the headers as text.
    """

    topic: str
    written_ms: int
    value: bytes | None
    headers: dict[str, str]


class OutputReader:
    """A reader of the state, alerts and dead letter topics. A context manager.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.

    Raises:
        UsageError: the user may not read a topic.
        MqtwinError: no Kafka answers at the start, or it refuses a topic.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics) -> None:
        self._kafka = kafka
        self._topics = topics
        self._last_error = LastError()
        self._consumer: Consumer = new_consumer(kafka, {"auto.offset.reset": "earliest"}, self._last_error)
        self._assigned: list[TopicPartition] = []
        self._waiting = [topics.state, topics.alerts, topics.dlq]
        self._ends: dict[tuple[str, int], int] = {}  # of partitions not yet read to where they ended at first
        self._next_try_s = 0.0
        try:
            fetch_metadata(self._consumer, kafka, self._last_error)
            self._assign()
        except BaseException:
            self._consumer.close()
            raise

    @property
    def has_caught_up(self) -> bool:
        """True once everything was read that the topics held when they were first read."""
        return not self._ends and self._topics.state not in self._waiting

    @property
    def missing_topics(self) -> list[str]:
        """The topics that do not exist yet."""
        return list(self._waiting)

    def read(self, timeout: float) -> list[OutputRecord]:
        """Return the records that arrive within `timeout` seconds, in the order of each topic. MqtwinError: refused."""
        if self._waiting and time.monotonic() >= self._next_try_s:
            self._next_try_s = time.monotonic() + _RETRY_SECONDS
            try:
                self._assign()
            except MqtwinError:  # the broker answered before, so it restarts
                return []
        if not self._assigned:
            time.sleep(min(timeout, _RETRY_SECONDS))
            return []
        records = []
        for message in self._consumer.consume(_BATCH, timeout):
            if check(message.error(), message.topic() or self._topics.state):
                topic, (_, written_ms) = str(message.topic()), message.timestamp()
                records.append(OutputRecord(topic, written_ms, message.value(), _texts(message.headers())))
        self._note_progress()
        return records

    def is_answering(self) -> bool:
        """Return True if a broker answers now."""
        try:
            self._consumer.list_topics(self._topics.state, timeout=_ANSWER_SECONDS)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _assign(self) -> None:
        """Begin to read the topics that exist meanwhile."""
        partitions: list[TopicPartition] = []
        for topic in self._waiting:
            for number in partitions_of(self._consumer, topic, self._kafka, self._last_error):
                low, end = offset_range(self._consumer, topic, number)
                start = max(low, end - LAST_LETTERS) if topic == self._topics.dlq else OFFSET_BEGINNING
                partitions.append(TopicPartition(topic, number, start))
                if end > low:
                    self._ends[topic, number] = end
        if not partitions:
            return
        self._consumer.incremental_assign(partitions)
        self._assigned += partitions
        names = {partition.topic for partition in partitions}
        self._waiting = [topic for topic in self._waiting if topic not in names]

    def _note_progress(self) -> None:
        if not self._ends:
            return
        places = self._consumer.position([TopicPartition(topic, number) for topic, number in self._ends])
        for place in places:
            if place.offset >= self._ends[place.topic, place.partition]:
                del self._ends[place.topic, place.partition]


def _texts(headers: Any) -> dict[str, str]:
    """Return headers as text; what is not UTF-8 is replaced."""
    return {str(key): bytes(value or b"").decode(errors="replace") for key, value in headers or ()}
