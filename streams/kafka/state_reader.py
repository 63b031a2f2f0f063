"""A subscriber of the state topic that keeps the latest state record of every store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from streams.kafka.topic_reader import TopicReader
from streams.kafka.topics import Topics


class StateReader:
    """A reader of the state topic, from its beginning. latest: store -> its last state record, see docs/state.md.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.

    Raises:
        MqtwinError: no Kafka answers, or it refuses the topic.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics) -> None:
        self._reader = TopicReader(kafka, {topics.state: None})
        self.latest: dict[str, dict[str, Any]] = {}

    def read(self, timeout: float) -> bool:
        """Read for `timeout` seconds and return True if there was a state record. MqtwinError: refused."""
        is_changed = False
        for record in self._reader.read(timeout):
            if record.value is not None:
                state = msgspec.json.decode(record.value)
                self.latest[state["store"]] = state
                is_changed = True
        return is_changed

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()
