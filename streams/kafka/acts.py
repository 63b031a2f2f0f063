"""Changes that people request: written to a topic of their own, which the job never reads, and read from it as a whole.

The order of the topic decides: it has one partition, and whoever writes reads it to its end before and, where two may
write at the same time, again behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import msgspec

from streams.kafka.latest import Latest
from streams.kafka.notes import read_all, write_one
from streams.kafka.topic_reader import read_to_end
from streams.kafka.topics import Topics
from twin.errors import MqtwinError
from twin.records import ActRecord, Acts, AlertRecord, StateRecord, read_act


class ActLog:
    """The acts topic, and what the job says beside it. Its methods may be called from several threads.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.

    Each method raises UsageError where the user may not read or write a topic, and MqtwinError where no Kafka answers.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics) -> None:
        self._kafka, self._topics = kafka, topics
        self.lock = threading.RLock()  # of one who reads, decides and writes

    def read(self) -> Acts:
        """Return the requests up to the present end of the topic; none where it does not exist."""
        acts = Acts()
        for record in read_all(self._kafka, self._topics.acts, read_act):
            acts.take(record)
        return acts

    def write(self, record: ActRecord) -> Acts:
        """Write a record, and return the requests once it is delivered. MqtwinError: it is not, or changes nothing."""
        write_one(self._kafka, self._topics, self._topics.acts, record.id, msgspec.json.encode(record))
        acts = self.read()
        if not acts.has(record):
            raise MqtwinError(f"request {record.id}: another record came first; expected: read it again")
        return acts

    def present(self) -> tuple[dict[str, StateRecord], dict[str, AlertRecord]]:
        """Return the last state of each store, and the open alerts by id."""
        latest = Latest(self._topics)
        for topic in (self._topics.state, self._topics.alerts):
            for record in read_to_end(self._kafka, topic):
                latest.apply(record)
        states = {store: entry.state for store, entry in latest.states.items()}
        alerts = {key: entry.alert for key, entry in latest.alerts.items()}  # those cleared lately, too
        return states, alerts
