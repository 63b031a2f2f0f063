"""The whole stream for tests: a recording into a real Kafka, the job on a real Spark, and its output read back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from pyspark.sql import SparkSession

from streams.kafka.admin import prepare_topics
from streams.kafka.clients import offset_range
from streams.kafka.publish import publish
from streams.kafka.topics import Topics
from streams.query.definition import JobSettings
from streams.query.job import start_job
from tests.streams.kafka_help import new_producer
from twin.alerts.episodes import Alert
from twin.estate import Estate, load_estate
from twin.events import ARROW
from twin.playback.replays import Replayed, replay
from twin.records import read_state_record

PATIENCE = 120.0  # seconds
# Text of an alert, whose wording each release chooses.
_WORDS = frozenset({"actions", "brief", "cause", "runbook"})


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a topic; `headers` are texts by name."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: Mapping[str, str]


def read_topic(servers: str, topic: str) -> list[Record]:
    """Return all records of a topic, by partition and offset."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False})
    try:
        records = []
        for number in sorted(consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions):
            partition = TopicPartition(topic, number, OFFSET_BEGINNING)
            _, end = offset_range(consumer, topic, number)
            consumer.assign([partition])
            position = 0
            while position < end:
                message = consumer.poll(PATIENCE)
                assert message is not None, f"{topic} stopped at {position} of {end}"
                assert message.error() is None, message.error()
                position = message.offset() + 1
                headers = {name: value.decode() for name, value in message.headers() or ()}
                records.append(Record(number, message.offset(), message.key(), message.value(), headers))
        return records
    finally:
        consumer.close()


@dataclass(slots=True)
class Stream:
    """A stream with its topics and checkpoint; `batches` has the figures of every batch so far.

    otlp_topic: topic of spans that the job reads beside the events.
    """

    session: SparkSession
    servers: str
    prefix: str
    estate: Estate
    checkpoint: Path
    batches: list[dict[str, Any]] = field(default_factory=list)
    otlp_topic: str | None = None

    @property
    def topics(self) -> Topics:
        """Names of its topics."""
        return Topics(self.prefix)

    def send(self, records: list[tuple[bytes, bytes, str | None]]) -> list[tuple[int, int]]:
        """Write (key, value, content type) to the events topic, in order; return (partition, offset) of each."""
        prepare_topics(self.topics, {"bootstrap.servers": self.servers})
        places: dict[int, tuple[int, int]] = {}
        producer = new_producer(self.servers, message_max_bytes=16_000_000)
        for number, (key, value, content_type) in enumerate(records):
            headers = [] if content_type is None else [("content-type", content_type.encode())]
            producer.produce(self.topics.events, value, key, headers=headers, on_delivery=_store_place(places, number))
            producer.poll(0)
        assert producer.flush(PATIENCE) == 0
        return [places[number] for number in range(len(records))]

    def run(
        self,
        *,
        max_records: int | None = None,
        kafka: Mapping[str, str] | None = None,
        on_batch: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """Process the existing records, as `mqtwin stream --available-now`.

        Args:
            max_records: per batch.
            kafka: client settings of the job.
            on_batch: called after each batch; None: keep its figures in `batches`.
        """
        settings = JobSettings(
            estate=self.estate,
            bootstrap_servers=self.servers,
            checkpoint=str(self.checkpoint),
            prefix=self.prefix,
            kafka=kafka or {},
            available_now=True,
            max_records=max_records,
            otlp_topic=self.otlp_topic,
        )
        job = start_job(settings, session=self.session, on_batch=on_batch or self.batches.append)
        try:
            job.wait()
        finally:
            job.stop()

    def alerts(self) -> dict[str, Any]:
        """Return the alerts by the id of their CloudEvent; a record delivered twice must have equal content."""
        alerts: dict[str, Any] = {}
        for record in read_topic(self.servers, self.topics.alerts):
            alert = msgspec.json.decode(record.value)
            assert alerts.setdefault(alert["id"], alert) == alert
            assert record.key == alert["data"]["alert_id"].encode()
        return alerts

    def states(self) -> dict[str, Any]:
        """Return the last state record of each store."""
        records = read_topic(self.servers, self.topics.state)
        return {record.key.decode(): read_state_record(record.value) for record in records if record.key}

    def letters(self) -> list[Record]:
        """Return the dead letters."""
        return read_topic(self.servers, self.topics.dlq)


@dataclass(frozen=True)
class Played:
    """A recording, its estate and its replay."""

    recording: Path
    described: Path
    estate: Estate
    replayed: Replayed

    @classmethod
    def replay(cls, described: Path, recording: Path) -> Played:
        """Replay a recording with the estate of a file."""
        estate = load_estate(described)
        return cls(recording, described, estate, replay(recording, estate))

    def publish(self, stream: Stream, content_type: str = ARROW) -> Stream:
        """Publish the recording to a stream's events topic, and return the stream."""
        servers = {"bootstrap.servers": stream.servers}
        publish(self.recording, self.estate, servers, stream.topics, content_type=content_type)
        return stream


def check_equal(stream: Stream, replayed: Replayed, earlier: Collection[str] = ()) -> None:
    """Assert that alerts, states and the number of dead letters of a stream equal those of a replay.

    Alerts with the ids of `earlier` were written by another release, which may have said the same in other words.
    """
    assert _without_words(stream.alerts(), earlier) == _without_words(by_id(replayed.alerts), earlier)
    assert stream.states() == replayed.states
    assert len(stream.letters()) == replayed.dead_letters


def _without_words(alerts: dict[str, Any], ids: Collection[str]) -> dict[str, Any]:
    """Return the alerts, those of some ids without the text that people read."""
    return {
        number: {**alert, "data": {key: value for key, value in alert["data"].items() if key not in _WORDS}}
        if number in ids
        else alert
        for number, alert in alerts.items()
    }


def _store_place(places: dict[int, tuple[int, int]], number: int) -> Callable[..., None]:
    def store(error: Any, message: Any) -> None:
        assert error is None, error
        places[number] = message.partition(), message.offset()

    return store


def by_id(alerts: list[Alert]) -> dict[str, Any]:
    """Return alerts of a replay in the form of `Stream.alerts`."""
    decoded = (msgspec.json.decode(alert.record()) for alert in alerts)
    return {alert["id"]: alert for alert in decoded}


def forecast_changes(replayed: Replayed) -> dict[str, set[str]]:
    """Return the changes (opened, updated, cleared) of the `full-forecast` alerts of a replay, by store."""
    changes: dict[str, set[str]] = {}
    for alert in replayed.alerts:
        if alert.condition == "full-forecast":
            changes.setdefault(alert.store, set()).add(alert.change)
    return changes
