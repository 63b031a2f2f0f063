"""A subscriber of the alerts topic: each alert once, in the order of the topic, however often it was delivered.

Source: contract section 4 (`id` is deterministic: a second delivery is harmless).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Self

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from streams.kafka.clients import CONNECT_SECONDS, LastError, check, new_consumer, partitions_of
from streams.kafka.topics import Topics
from twin.errors import MqtwinError

_REMEMBERED = 100_000  # ids of alerts: a job that starts again repeats a batch at most
_LOOK_SECONDS = 1.0  # between two looks for a topic that is not there yet
_BATCH = 1_000


class Filler(msgspec.Struct, frozen=True):
    """A queue that fills the resource; share: of the growth, 0..1."""

    queue: str
    share: float


class AlertData(msgspec.Struct, frozen=True, kw_only=True):
    """`data` of an alert: contract section 4."""

    alert_id: str
    status: str
    severity: str
    store: str
    resource: str
    condition: str
    time: str
    usage_pct: float | None
    time_to_full_s: dict[str, float] | None = None
    full_probability: float | None = None
    fillers: tuple[Filler, ...] = ()
    cause: str = ""
    actions: tuple[str, ...] = ()


class AlertRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the alerts topic, a CloudEvent in structured mode. `value`: its bytes."""

    id: str
    type: str
    subject: str
    time: str
    data: AlertData
    value: bytes = b""

    @property
    def change(self) -> str:
        """opened, updated or cleared."""
        return self.type.rpartition(".")[2]


_decoder = msgspec.json.Decoder(AlertRecord)


class AlertReader:
    """Reads the alerts topic. A context manager; survives restarts of the broker, and the topic may come later.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        from_beginning: also what the topic holds already; otherwise only what comes from now on.

    Raises:
        MqtwinError: no Kafka answers at first, or it refuses.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics, *, from_beginning: bool = False) -> None:
        self._kafka = kafka
        self._topic = topics.alerts
        self._last_error = LastError()
        self._consumer: Consumer = new_consumer(kafka, {"auto.offset.reset": "earliest"}, self._last_error)
        self._seen: dict[str, None] = {}
        self._next_look = 0.0
        self.duplicates = 0
        self.unreadable = 0  # records that are no alerts
        self.assigned = self._assign(from_beginning=from_beginning)

    def _assign(self, *, from_beginning: bool) -> bool:
        """Start reading; False where there is no topic yet."""
        numbers = partitions_of(self._consumer, self._topic, self._kafka, self._last_error)
        try:
            places = [self._start(number, from_beginning) for number in numbers]
        except KafkaException as error:
            raise MqtwinError(f"topic {self._topic}: {error.args[0].str()}") from None
        if places:
            self._consumer.assign(places)
        return bool(places)

    def _start(self, number: int, from_beginning: bool) -> TopicPartition:
        if from_beginning:
            return TopicPartition(self._topic, number, OFFSET_BEGINNING)
        # The very number, not "the end": a broker that goes away before the first alert must not cost any.
        _, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=CONNECT_SECONDS)
        return TopicPartition(self._topic, number, end)

    def read(self, timeout: float) -> list[AlertRecord]:
        """The alerts that come within `timeout` seconds and were not read before, perhaps none.

        MqtwinError: refused.
        """
        if not self.assigned and not self._look(timeout):
            return []
        alerts = []
        for message in self._consumer.consume(_BATCH, timeout):
            if check(message.error(), self._topic):
                alert = self._alert(message.value())
                if alert is not None:
                    alerts.append(alert)
        return alerts

    def _look(self, timeout: float) -> bool:
        """Whether the topic is there by now. What came since it was made is read."""
        time.sleep(min(timeout, max(0.0, self._next_look - time.monotonic())))
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_SECONDS
            try:
                self.assigned = self._assign(from_beginning=True)
            except MqtwinError:  # it answered before: a restart, and the next look will tell
                return False
        return self.assigned

    def _alert(self, value: bytes | None) -> AlertRecord | None:
        """The alert; None for one that was seen, or that is none.

        A compacted topic may hold records without a value.
        """
        if value is None:
            return None
        try:
            alert = msgspec.structs.replace(_decoder.decode(value), value=value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unreadable += 1
            return None
        if alert.id in self._seen:
            self.duplicates += 1
            return None
        self._seen[alert.id] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return alert

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_alerts(reader: AlertReader, until_idle: float | None = None) -> Iterator[AlertRecord]:
    """The alerts as they come: for ever, or until none came for `until_idle` seconds."""
    last = time.monotonic()
    while until_idle is None or time.monotonic() - last < until_idle:
        for alert in reader.read(0.2):
            last = time.monotonic()
            yield alert
