"""A subscriber of the alerts topic: each alert once, in the order of the topic, however often it was delivered.

The id of an alert record is the same at every delivery: docs/alerts.md, Delivery.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Self

from streams.kafka.clients import CONNECT_SECONDS
from streams.kafka.topic_reader import RecordGuard, TopicReader, TopicRecord
from streams.kafka.topics import Topics
from twin.records import AlertRecord, read_alert_record

_MAX_SEEN = 100_000  # ids; a restarted job repeats one batch at most


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
        self._reader = TopicReader(kafka, {topics.alerts: None if from_beginning else 0})
        self._guard = RecordGuard()
        self._seen: dict[str, None] = {}
        self.duplicates = 0

    @property
    def unreadable(self) -> int:
        """Number of records that are not alerts."""
        return self._guard.unreadable

    @property
    def is_waiting(self) -> bool:
        """True while the topic does not exist."""
        return bool(self._reader.missing)

    @property
    def is_caught_up(self) -> bool:
        """True once the topic has been read to its end, or while it does not exist."""
        return self._reader.is_caught_up

    def read(self, timeout: float) -> list[AlertRecord]:
        """Return the alerts that arrive within `timeout` seconds and were not read before. MqtwinError: refused."""
        alerts = (self._guard.take(record, self._decode_new) for record in self._reader.read(timeout))
        return [alert for alert in alerts if alert is not None]

    def _decode_new(self, record: TopicRecord) -> AlertRecord | None:
        """Return the alert; None for a duplicate, or a tombstone of the compacted topic."""
        if record.value is None:
            return None
        alert = read_alert_record(record.value)
        if alert.id in self._seen:
            self.duplicates += 1
            return None
        self._seen[alert.id] = None
        if len(self._seen) > _MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        return alert

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_alerts(reader: AlertReader, until_idle: float | None = None) -> Iterator[AlertRecord]:
    """Yield alerts as they arrive, without end or until none arrives for `until_idle` seconds.

    As long as the topic has not been read to its present end, a slow broker has `CONNECT_SECONDS` for the next alert.
    """
    last_s = time.monotonic()
    while until_idle is None or time.monotonic() - last_s < (
        until_idle if reader.is_caught_up else max(until_idle, CONNECT_SECONDS)
    ):
        for alert in reader.read(0.2):
            last_s = time.monotonic()
            yield alert
