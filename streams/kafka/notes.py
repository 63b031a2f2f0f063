"""Notes of people on alerts, and their requests of changes: each in a topic of its own, which the job never reads.

So alerts and states stay functions of the events. Whoever writes a note checks it against the alerts topic first. What
a page was worth reaches its store as a NOTE event besides.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
import structlog

from streams.kafka.admin import prepare_topic
from streams.kafka.clients import CONNECT_SECONDS, deliver
from streams.kafka.publish import PublishResult, Record, Sender
from streams.kafka.topic_reader import Latest, read_to_end
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.base.errors import MqtwinError, UsageError
from twin.events import JSON
from twin.records import (
    ACTED,
    ActRecord,
    Acts,
    AlertRecord,
    Note,
    NotedAlert,
    StateRecord,
    event_of,
    read_act,
    read_alert_record,
    read_note,
)

_DELIVERY_SECONDS = 15.0
_SETTINGS = {"enable.idempotence": True, "linger.ms": 0, "delivery.timeout.ms": int(1000 * _DELIVERY_SECONDS)}

_T = TypeVar("_T")
_log = structlog.get_logger("mqtwin.notes")


def write_note(kafka: Mapping[str, str], topics: Topics, note: Note) -> None:
    """Write a note, and return once it is delivered. The topic is created where it is missing. UsageError: the user may
    not write there. MqtwinError: no Kafka answers, or the note was not delivered.
    """
    write_one(kafka, topics, topics.notes, note.alert_id, msgspec.json.encode(note))


def write_one(kafka: Mapping[str, str], topics: Topics, topic: str, key: str, value: bytes) -> None:
    """Write a record of a topic for people. Arguments and errors as of `write_note`."""
    prepare_topic(topics, topic, kafka, create=True)
    deliver(kafka, topic, {key: value}, _SETTINGS, seconds=_DELIVERY_SECONDS + CONNECT_SECONDS)


def tell_store(kafka: Mapping[str, str], topics: Topics, note: Note, alert: NotedAlert) -> None:
    """Write what a note says of a page to the events topic, for its store; return once it is delivered. UsageError: the
    user may not write there; of an action that was taken it is logged. MqtwinError: no Kafka answers, or the event was
    not delivered.
    """
    event = event_of(note, alert)
    if event is None:
        return
    try:
        with Sender(kafka, topics, PublishResult(), linger_ms=0, create_topics=False) as sender:
            sender.send(Record(alert.store.encode(), event, JSON, 1))
    except UsageError as error:
        if note.kind != ACTED:
            raise
        _log.warning("the store does not learn of the action", problem=str(error))


def read_noted_alerts(kafka: Mapping[str, str], topics: Topics) -> dict[str, NotedAlert]:
    """Return the alerts of the alerts topic by id, as far as it still has them. UsageError: the user may not read the
    topic. MqtwinError: no Kafka answers.
    """
    alerts: dict[str, NotedAlert] = {}
    for record in read_all(kafka, topics.alerts, read_alert_record):
        alert_id = record.data.alert_id
        alerts[alert_id] = NotedAlert.after(alerts.get(alert_id), record)
    return alerts


def read_notes(kafka: Mapping[str, str], topics: Topics) -> list[Note]:
    """Return the notes of their topic in its order; none where it does not exist. Errors as of `read_noted_alerts`."""
    return list(read_all(kafka, topics.notes, read_note))


def read_all(kafka: Mapping[str, str], topic: str, read: Callable[[bytes], _T]) -> Iterable[_T]:
    """Yield the records of a topic up to its present end; log and leave out those that cannot be read."""
    guard = RecordGuard()

    def value_of(record: TopicRecord) -> _T | None:
        return None if record.value is None else read(record.value)

    for record in read_to_end(kafka, topic):
        own = guard.take(record, value_of)
        if own is not None:
            yield own


class ActLog:
    """The topic of requested changes, and what the job says beside it. Several threads may call its methods.

    Each method raises UsageError where the user may not read or write a topic, and MqtwinError where no Kafka answers.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics) -> None:
        self._kafka, self._topics = kafka, topics
        self.lock = threading.RLock()  # of one who reads, decides and writes

    # The order of the topic decides: it has one partition, and whoever writes reads it to its end before and, where two
    # may write at the same time, again behind it.

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
