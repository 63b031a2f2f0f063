"""Notes of people on alerts: written to a topic of their own, which the job never reads.

So alerts and states stay functions of the events. Whoever writes a note checks it against the alerts topic first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from streams.kafka.admin import prepare_topic
from streams.kafka.clients import CONNECT_SECONDS, deliver
from streams.kafka.topic_reader import RecordGuard, TopicRecord, read_to_end
from streams.kafka.topics import Topics
from twin.errors import UsageError
from twin.records import ACTED, AlertRecord, Note, read_alert_record, read_note

_MAX_NAMED = 5  # open alerts, in an error
_DELIVERY_SECONDS = 15.0
_SETTINGS = {"enable.idempotence": True, "linger.ms": 0, "delivery.timeout.ms": int(1000 * _DELIVERY_SECONDS)}

_T = TypeVar("_T")


class NotedAlert(NamedTuple):
    """An alert, as far as notes on it are checked. actions: ids of all actions that its records have had."""

    is_open: bool
    actions: tuple[str, ...]

    @classmethod
    def after(cls, before: NotedAlert | None, record: AlertRecord) -> NotedAlert:
        """Return the alert after a record; a cleared one keeps the actions that it had. before: None: the first one."""
        actions = () if before is None else before.actions
        return cls(record.is_open, tuple(dict.fromkeys((*actions, *(action.id for action in record.data.runbook)))))


def check_note(note: Note, alerts: Mapping[str, NotedAlert]) -> None:
    """Check that there is what a note is about. alerts: all that are known, by id. UsageError: there is not."""
    alert = alerts.get(note.alert_id)
    if alert is None:
        open_ids = [alert_id for alert_id, own in alerts.items() if own.is_open]
        unknown = f"alert {note.alert_id[:100]}: there is no such alert"
        if not open_ids:
            raise UsageError(f"{unknown}, and none is open; expected: one that mqtwin alerts shows")
        named = ", ".join(open_ids[-_MAX_NAMED:])
        more = f" and {len(open_ids) - _MAX_NAMED} more" if len(open_ids) > _MAX_NAMED else ""
        raise UsageError(f"{unknown}; expected: {named}{more}")
    if note.kind == ACTED and note.action not in alert.actions:
        expected = f"one of {', '.join(alert.actions)}" if alert.actions else "a comment, as it proposes none"
        raise UsageError(f"action {note.action}: alert {note.alert_id[:100]} has none of this id; expected: {expected}")


def write_note(kafka: Mapping[str, str], topics: Topics, note: Note) -> None:
    """Write a note, and return once it is delivered. The topic is created where it is missing.

    Args:
        kafka: client settings, `bootstrap.servers` among them.

    Raises:
        UsageError: the user may not write there.
        MqtwinError: no Kafka answers, or the note was not delivered.
    """
    prepare_topic(topics, topics.notes, kafka, create=True)
    value = {note.alert_id: msgspec.json.encode(note)}
    deliver(kafka, topics.notes, value, _SETTINGS, seconds=_DELIVERY_SECONDS + CONNECT_SECONDS)


def read_noted_alerts(kafka: Mapping[str, str], topics: Topics) -> dict[str, NotedAlert]:
    """Return the alerts of the alerts topic by id, as far as it still has them.

    Raises:
        UsageError: the user may not read the topic.
        MqtwinError: no Kafka answers.
    """
    alerts: dict[str, NotedAlert] = {}
    for record in _read_all(kafka, topics.alerts, read_alert_record):
        alert_id = record.data.alert_id
        alerts[alert_id] = NotedAlert.after(alerts.get(alert_id), record)
    return alerts


def read_notes(kafka: Mapping[str, str], topics: Topics) -> list[Note]:
    """Return the notes of their topic in its order; none where it does not exist. Errors as of `read_noted_alerts`."""
    return list(_read_all(kafka, topics.notes, read_note))


def _read_all(kafka: Mapping[str, str], topic: str, read: Callable[[bytes], _T]) -> Iterable[_T]:
    """Yield what a topic has, up to its present end; what cannot be read is logged and left out."""
    guard = RecordGuard()

    def value_of(record: TopicRecord) -> _T | None:
        return None if record.value is None else read(record.value)

    for record in read_to_end(kafka, topic):
        own = guard.take(record, value_of)
        if own is not None:
            yield own
