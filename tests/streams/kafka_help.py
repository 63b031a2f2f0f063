"""Helpers for tests of Kafka clients: create a topic, send records, read records."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams.kafka.clients import offset_range

PATIENCE = 120.0  # seconds, on a busy machine


def create(kafka: str, name: str, partitions: int = 1, **config: str) -> None:
    """Create a topic. config: its settings, with _ in place of points."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": kafka})  # futures complete only while the client exists
    for future in admin.create_topics([NewTopic(name, partitions, config=settings)]).values():
        future.result()


def delete(kafka: str, name: str) -> None:
    """Delete a topic, and return once the broker names it no more, which is a moment after it has agreed."""
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.delete_topics([name])[name].result()
    deadline = time.monotonic() + PATIENCE
    while name in admin.list_topics(timeout=PATIENCE).topics:
        assert time.monotonic() < deadline, name
        time.sleep(0.05)


def new_producer(kafka: str, **config: Any) -> Producer:
    """Return a producer that keeps the order of records: a retry is not behind those sent meanwhile.

    A partition that was created just now may refuse its first records for a moment.

    Args:
        kafka: HOST:PORT.
        config: its further settings, with _ in place of points.
    """
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"bootstrap.servers": kafka, "enable.idempotence": True, **settings})


def send(
    kafka: str, topic: str, values: list[bytes | None], *, key: bytes = b"k", headers: Any = None, partition: int = 0
) -> None:
    """Send records and return once they are delivered."""
    producer = new_producer(kafka, linger_ms=0)
    for value in values:
        producer.produce(topic, value, key, partition, headers=headers or [])
    assert producer.flush(PATIENCE) == 0


def everything(kafka: str, topic: str) -> list[Message]:
    """Return all records of a topic, partition by partition."""
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": "test", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    try:
        messages = []
        for number in consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions:
            partition = TopicPartition(topic, number, 0)
            low, high = offset_range(consumer, topic, number)
            consumer.assign([partition])
            position, deadline = low, time.monotonic() + PATIENCE
            while position < high:
                assert time.monotonic() < deadline, f"{topic}/{number} ends at {position}, not at {high}"
                for message in consumer.consume(10_000, 0.05):
                    assert message.error() is None
                    messages.append(message)
                    position = message.offset() + 1
        return messages
    finally:
        consumer.close()


def header(message: Message) -> str | None:
    """Return the content type of a record; None if it has none."""
    return next((value.decode() for name, value in message.headers() or () if name == "content-type"), None)
