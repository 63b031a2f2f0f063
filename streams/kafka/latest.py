"""The latest records of the topics that the job writes, for surfaces: they read topics and never ask the job.

`Follower` reads the topics, `Latest` folds their records. Both survive restarts of the broker and wait for topics that
do not exist yet. Nothing is stored: after a restart the same records give the same content.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

import msgspec
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from streams.kafka.clients import LastError, check, new_consumer, offset_range, partitions_of
from streams.kafka.subscribe import AlertRecord, decode_alert
from streams.kafka.topics import Topics
from twin.conditions import CLEARED
from twin.errors import MqtwinError
from twin.events import Reason

OTHER_REASON = "other"  # of a dead letter whose reason is unknown here: written by a newer job, or by somebody else
_REASONS = tuple(str(reason) for reason in Reason)
_RETRY_SECONDS = 1.0  # between two look-ups of topics that do not exist yet
_BATCH = 1_000
_MAX_OPEN_ALERTS = 100_000  # a bound for memory: an estate of a thousand stores has some thousand resources


class Follower:
    """A reader of several topics. A context manager.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: name -> True to read it from its beginning, False to read new records only. A topic that is created
            later is read from its beginning.

    Raises:
        MqtwinError: no Kafka answers at the start, or it refuses a topic.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Mapping[str, bool]) -> None:
        self._kafka = kafka
        self._last_error = LastError()
        defaults = {"auto.offset.reset": "earliest", "enable.partition.eof": True}
        self._consumer: Consumer = new_consumer(kafka, defaults, self._last_error)
        self._unread: set[tuple[str, int]] = set()  # partitions not yet read to their end
        self._next_try_s = 0.0
        self.missing = {name for name, from_beginning in topics.items() if not self._assign(name, from_beginning)}

    @property
    def is_caught_up(self) -> bool:
        """True once every topic that exists has been read to its end; later records may be on their way."""
        return not self._unread

    def _assign(self, topic: str, from_beginning: bool) -> bool:
        """Start reading a topic and return True; False if it does not exist yet."""
        partitions = []
        for number in partitions_of(self._consumer, topic, self._kafka, self._last_error):
            # An explicit offset, not OFFSET_END: nothing is missed if the broker restarts before the first record.
            start = OFFSET_BEGINNING if from_beginning else offset_range(self._consumer, topic, number)[1]
            partitions.append(TopicPartition(topic, number, start))
            self._unread.add((topic, number))
        if partitions:
            self._consumer.incremental_assign(partitions)
        return bool(partitions)

    def read(self, timeout: float) -> list[Message]:
        """Return the records that arrive within `timeout` seconds, tombstones included. MqtwinError: refused."""
        if self.missing and time.monotonic() >= self._next_try_s:
            self._next_try_s = time.monotonic() + _RETRY_SECONDS
            try:
                self.missing = {topic for topic in self.missing if not self._assign(topic, from_beginning=True)}
            except MqtwinError:  # the broker answered before, so it restarts
                return []
        if not self._consumer.assignment():
            time.sleep(timeout)
            return []
        messages = []
        for message in self._consumer.consume(_BATCH, timeout):
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- librdkafka's own code
                self._unread.discard((message.topic(), message.partition()))
            elif check(error, str(message.topic())):
                messages.append(message)
        return messages

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class StateEntry(msgspec.Struct, frozen=True):
    """A state record, see docs/state.md, and the time at which it was written: seconds since 1970, wall clock."""

    state: dict[str, Any]
    written_s: float


class AlertEntry(msgspec.Struct, frozen=True):
    """The last record of an alert, and the time at which it was written: seconds since 1970, wall clock."""

    alert: AlertRecord
    written_s: float

    @property
    def is_open(self) -> bool:
        """True until the alert has cleared."""
        return self.alert.change != CLEARED


class Latest:
    """The latest state of each store, the open alerts, the alerts cleared lately, and counts of dead letters.

    Args:
        topics: names of the topics.
        keep_cleared_s: seconds of wall time for which a cleared alert stays.
    """

    def __init__(self, topics: Topics, keep_cleared_s: float = 300.0) -> None:
        self._topics = topics
        self._keep_cleared_s = keep_cleared_s
        self.states: dict[str, StateEntry] = {}
        self.alerts: dict[str, AlertEntry] = {}  # by alert id, in the order of their first record
        self.dead_letters = dict.fromkeys((*_REASONS, OTHER_REASON), 0)
        self.unreadable = 0  # records that are neither states nor alerts

    def apply(self, message: Message) -> AlertEntry | None:
        """Apply a record of any of the topics; return the entry if it is an alert that changes something."""
        kind, timestamp_ms = message.timestamp()
        written_s = time.time() if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms / 1000.0
        value, key = message.value(), message.key() or b""
        if message.topic() == self._topics.dlq:
            self._count_letter(message)
        elif message.topic() == self._topics.state:
            self.apply_state(key, value, written_s)
        elif message.topic() == self._topics.alerts:
            return self.apply_alert(key, value, written_s)
        return None

    def apply_state(self, key: bytes, value: bytes | None, written_s: float) -> None:
        """Apply a record of the state topic; without a value it deletes the store."""
        if value is None:
            self.states.pop(key.decode(errors="replace"), None)
            return
        try:
            state = msgspec.json.decode(value, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            state = {}
        if isinstance(state.get("store"), str) and isinstance(state.get("kind"), str):
            self.states[state["store"]] = StateEntry(state, written_s)
        else:
            self.unreadable += 1

    def apply_alert(self, key: bytes, value: bytes | None, written_s: float) -> AlertEntry | None:
        """Apply a record of the alerts topic; return None for a repeated one, a tombstone or an unreadable one."""
        if value is None:
            self.alerts.pop(key.decode(errors="replace"), None)
            return None
        alert = decode_alert(value)
        if alert is None:
            self.unreadable += 1
            return None
        entry = AlertEntry(alert, written_s)
        before = self.alerts.get(alert.data.alert_id)
        if before is not None and _number(before.alert) >= _number(alert):
            return None
        if before is None and len(self.alerts) >= _MAX_OPEN_ALERTS:
            raise MqtwinError(f"topic {self._topics.alerts}: more than {_MAX_OPEN_ALERTS:,} alerts are open")
        if entry.is_open or written_s > time.time() - self._keep_cleared_s:
            self.alerts[alert.data.alert_id] = entry
        else:
            self.alerts.pop(alert.data.alert_id, None)
        return entry

    def _count_letter(self, message: Message) -> None:
        headers: Any = message.headers() or ()
        reasons = [value.decode(errors="replace") for name, value in headers if name == "reason" and value is not None]
        reason = reasons[0] if reasons and reasons[0] in _REASONS else OTHER_REASON
        self.dead_letters[reason] = self.dead_letters.get(reason, 0) + 1

    def forget_cleared(self) -> None:
        """Forget alerts that cleared more than `keep_cleared_s` ago; to be called periodically."""
        limit_s = time.time() - self._keep_cleared_s
        old = [alert_id for alert_id, entry in self.alerts.items() if not entry.is_open and entry.written_s <= limit_s]
        for alert_id in old:
            del self.alerts[alert_id]


def _number(alert: AlertRecord) -> int:
    """Return the number of a record in its episode: docs/alerts.md, Fields."""
    number = alert.id.rpartition("/")[2]
    return int(number) if number.isascii() and number.isdigit() else 0
