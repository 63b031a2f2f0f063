"""A subscriber of the alerts topic: each alert once, in the order of the topic, however often it was delivered.

The id of an alert record is the same at every delivery: docs/alerts.md, Delivery.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Self

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from streams.kafka.clients import LastError, check, new_consumer, offset_range, partitions_of
from streams.kafka.topics import Topics
from twin.conditions import PAGE
from twin.errors import MqtwinError

_MAX_SEEN = 100_000  # ids; a restarted job repeats one batch at most
_RETRY_SECONDS = 1.0  # between two look-ups of a topic that does not exist yet
_BATCH = 1_000


class Filler(msgspec.Struct, frozen=True):
    """A queue that fills the resource. share: of the growth, 0 to 1."""

    queue: str
    share: float


class AlertData(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of an alert record: docs/alerts.md, Fields."""

    alert_id: str
    status: str
    severity: str
    store: str
    resource: str
    condition: str
    time: str
    usage_pct: float | None
    level: str = PAGE
    time_to_full_s: dict[str, float] | None = None
    full_probability: float | None = None
    fillers: tuple[Filler, ...] = ()
    cause: str = ""
    actions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the alerts topic, a CloudEvent in structured mode. value: its bytes."""

    id: str
    type: str
    subject: str
    time: str
    data: AlertData
    value: bytes = b""

    @property
    def change(self) -> str:
        """The change: opened, updated or cleared."""
        return self.type.rpartition(".")[2]


_decoder = msgspec.json.Decoder(AlertRecord)


def decode_alert(value: bytes) -> AlertRecord | None:
    """Return the alert in the value of a record; None if it is not one."""
    try:
        return msgspec.structs.replace(_decoder.decode(value), value=value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class AlertReader:
    """A reader of the alerts topic. A context manager; it survives restarts of the broker, and waits for the topic.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        from_beginning: also read the alerts that the topic holds already; False: only new ones.

    Raises:
        MqtwinError: no Kafka answers at the start, or it refuses the topic.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics, *, from_beginning: bool = False) -> None:
        self._kafka = kafka
        self._topic = topics.alerts
        self._last_error = LastError()
        self._consumer: Consumer = new_consumer(kafka, {"auto.offset.reset": "earliest"}, self._last_error)
        self._seen: dict[str, None] = {}
        self._next_try_s = 0.0
        self.duplicates = 0
        self.unreadable = 0  # records that are not alerts
        self.assigned = self._assign(from_beginning=from_beginning)

    def _assign(self, *, from_beginning: bool) -> bool:
        """Start reading and return True; False if there is no topic yet."""
        numbers = partitions_of(self._consumer, self._topic, self._kafka, self._last_error)
        partitions = [self._first_record(number, from_beginning) for number in numbers]
        if partitions:
            self._consumer.assign(partitions)
        return bool(partitions)

    def _first_record(self, number: int, from_beginning: bool) -> TopicPartition:
        if from_beginning:
            return TopicPartition(self._topic, number, OFFSET_BEGINNING)
        # An explicit offset, not OFFSET_END: alerts are not missed if the broker restarts before the first one.
        _, end = offset_range(self._consumer, self._topic, number)
        return TopicPartition(self._topic, number, end)

    def read(self, timeout: float) -> list[AlertRecord]:
        """Return the alerts that arrive within `timeout` seconds and were not read before. MqtwinError: refused."""
        if not self.assigned and not self._retry_assign(timeout):
            return []
        alerts = []
        for message in self._consumer.consume(_BATCH, timeout):
            if check(message.error(), self._topic):
                alert = self._decode_new(message.value())
                if alert is not None:
                    alerts.append(alert)
        return alerts

    def _retry_assign(self, timeout: float) -> bool:
        """Return True once the topic exists; it is then read from its beginning."""
        time.sleep(min(timeout, max(0.0, self._next_try_s - time.monotonic())))
        if time.monotonic() >= self._next_try_s:
            self._next_try_s = time.monotonic() + _RETRY_SECONDS
            try:
                self.assigned = self._assign(from_beginning=True)
            except MqtwinError:  # the broker answered before, so it restarts
                return False
        return self.assigned

    def _decode_new(self, value: bytes | None) -> AlertRecord | None:
        """Return the alert; None for a duplicate, an unreadable record, or a tombstone of the compacted topic."""
        if value is None:
            return None
        alert = decode_alert(value)
        if alert is None:
            self.unreadable += 1
            return None
        if alert.id in self._seen:
            self.duplicates += 1
            return None
        self._seen[alert.id] = None
        if len(self._seen) > _MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        return alert

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_alerts(reader: AlertReader, until_idle: float | None = None) -> Iterator[AlertRecord]:
    """Yield alerts as they arrive, without end or until none arrives for `until_idle` seconds."""
    last_s = time.monotonic()
    while until_idle is None or time.monotonic() - last_s < until_idle:
        for alert in reader.read(0.2):
            last_s = time.monotonic()
            yield alert
