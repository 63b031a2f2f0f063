"""What tests of Kafka clients need: topics, records in, records out."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def create(kafka: str, name: str, partitions: int = 1, **config: str) -> None:
    """A topic; settings with _ for points."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": kafka})  # must live until the answer is there
    for future in admin.create_topics([NewTopic(name, partitions, config=settings)]).values():
        future.result()


def send(
    kafka: str, topic: str, values: list[bytes | None], *, key: bytes = b"k", headers: Any = None, partition: int = 0
) -> None:
    """Records, delivered when this returns."""
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, key, partition, headers=headers or [])
    assert producer.flush(20) == 0


def everything(kafka: str, topic: str) -> list[Message]:
    """All records of a topic, partition by partition."""
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": "test", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    )
    try:
        messages = []
        for number in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
            place = TopicPartition(topic, number, 0)
            low, high = consumer.get_watermark_offsets(place, timeout=10)
            consumer.assign([place])
            position, deadline = low, time.monotonic() + 20
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
    """Its content type."""
    return next((value.decode() for name, value in message.headers() or () if name == "content-type"), None)
