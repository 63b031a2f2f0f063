"""A subscriber of the state topic that keeps the latest state record of every store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from streams.kafka.clients import LastError, check, new_consumer, partitions_of
from streams.kafka.topics import Topics

_BATCH = 1_000


class StateReader:
    """A reader of the state topic, from its beginning. latest: store -> its last state record, see docs/state.md.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics; the state topic must exist.

    Raises:
        MqtwinError: no Kafka answers, or it refuses the topic.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics) -> None:
        last_error = LastError()
        self._topic = topics.state
        self._consumer = new_consumer(kafka, {}, last_error)
        numbers = partitions_of(self._consumer, self._topic, kafka, last_error)
        self._consumer.assign([TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in numbers])
        self.latest: dict[str, dict[str, Any]] = {}

    def read(self, timeout: float) -> bool:
        """Read for `timeout` seconds and return True if there was a state record. MqtwinError: refused."""
        is_changed = False
        for message in self._consumer.consume(_BATCH, timeout):
            value = message.value() if check(message.error(), self._topic) else None
            if value is not None:
                state = msgspec.json.decode(value)
                self.latest[state["store"]] = state
                is_changed = True
        return is_changed

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
