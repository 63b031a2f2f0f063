"""Notes of people on alerts: written to a topic of their own, which the job never reads.

So alerts and states stay functions of the events. Whoever writes a note checks it against the alerts topic first. What
a page was worth reaches its store as a NOTE event besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
import structlog

from streams.kafka.admin import prepare_topic
from streams.kafka.clients import CONNECT_SECONDS, deliver
from streams.kafka.publish import PublishResult, Record, Sender
from streams.kafka.topic_reader import read_to_end
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.errors import UsageError
from twin.events import JSON
from twin.records import ACTED, Note, NotedAlert, event_of, read_alert_record, read_note

_DELIVERY_SECONDS = 15.0
_SETTINGS = {"enable.idempotence": True, "linger.ms": 0, "delivery.timeout.ms": int(1000 * _DELIVERY_SECONDS)}

_T = TypeVar("_T")
_log = structlog.get_logger("mqtwin.notes")


def write_note(kafka: Mapping[str, str], topics: Topics, note: Note) -> None:
    """Write a note, and return once it is delivered. The topic is created where it is missing.

    Args:
        kafka: client settings, `bootstrap.servers` among them.

    Raises:
        UsageError: the user may not write there.
        MqtwinError: no Kafka answers, or the note was not delivered.
    """
    write_one(kafka, topics, topics.notes, note.alert_id, msgspec.json.encode(note))


def write_one(kafka: Mapping[str, str], topics: Topics, topic: str, key: str, value: bytes) -> None:
    """Write a record of a topic for people. Arguments and errors as of `write_note`."""
    prepare_topic(topics, topic, kafka, create=True)
    deliver(kafka, topic, {key: value}, _SETTINGS, seconds=_DELIVERY_SECONDS + CONNECT_SECONDS)


def tell_store(kafka: Mapping[str, str], topics: Topics, note: Note, alert: NotedAlert) -> None:
    """Write what a note says of a page to the events topic, for its store; return once it is delivered.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        alert: the alert that the note is about.

    Raises:
        UsageError: the user may not write there; of an action that was taken it is logged.
        MqtwinError: no Kafka answers, or the event was not delivered.
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
    """Return the alerts of the alerts topic by id, as far as it still has them.

    Raises:
        UsageError: the user may not read the topic.
        MqtwinError: no Kafka answers.
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
