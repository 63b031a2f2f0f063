"""confluent-kafka clients for publish, record and subscribe: settings, no output of their own, errors of one line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from streams.kafka.admin import missing_right, no_answer, reason_of
from streams.kafka.settings import FOR_JAVA, for_librdkafka
from streams.kafka.topics import READ
from twin.base.errors import MqtwinError, UsageError

CONNECT_SECONDS = 10.0  # for the first answer of a broker
_RETRY_SECONDS = 0.1
# `for_librdkafka` translates the settings of a connection. Of these prefixes only its results may reach librdkafka.
_TRANSLATED = ("sasl.", "ssl.", "config.providers", FOR_JAVA)
# Errors of a broker that is away for a while: librdkafka reconnects by itself.
_TRANSIENT = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 -- librdkafka's own error codes
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,  # a broker that has just started answers so
        # librdkafka looks up the coordinator of every consumer's group. These consumers use no group.
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)


class LastError:
    """The last error that a client reported by itself: the reason why no broker answers."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error: KafkaError) -> None:
        """Keep the error; librdkafka's `error_cb`."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.text:  # noqa: SLF001
            self.text = error.str()


def new_producer(kafka: Mapping[str, str], defaults: Mapping[str, Any], last_error: LastError) -> Producer:
    """Return a producer with default settings, which the user's override. UsageError: librdkafka refuses a setting."""
    producer: Producer = _new_client(Producer, kafka, defaults, last_error)
    return producer


def deliver(
    kafka: Mapping[str, str],
    topic: str,
    values: Mapping[str, bytes],
    defaults: Mapping[str, Any],
    *,
    headers: Mapping[str, bytes] | None = None,
    seconds: float = CONNECT_SECONDS,
) -> None:
    """Produce a few records, and return once they are delivered. UsageError: librdkafka refuses a setting. MqtwinError:
    a record was not delivered; the message has the reason.
    """
    last_error, failures = LastError(), list[str]()

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error.str())

    producer = new_producer(kafka, {**defaults, "on_delivery": on_delivery}, last_error)
    for key, value in values.items():
        producer.produce(topic, value, key.encode(), headers=list((headers or {}).items()))
        producer.poll(0)
    if producer.flush(seconds) or failures:
        why = failures[0] if failures else last_error.text or "no answer"
        raise MqtwinError(f"topic {topic}: a record was not delivered: {why}")


def new_consumer(kafka: Mapping[str, str], defaults: Mapping[str, Any], last_error: LastError) -> Consumer:
    """Return a consumer of assigned partitions that stores no offsets in Kafka; parameters as in `new_producer`.

    It reads the records of committed transactions only, as the job does.
    """
    ours = {"group.id": "mqtwin", "enable.auto.commit": False, "enable.auto.offset.store": False}
    ours["isolation.level"] = "read_committed"
    consumer: Consumer = _new_client(Consumer, kafka, {**ours, **defaults}, last_error)
    return consumer


def _new_client(client_class: Any, kafka: Mapping[str, str], defaults: Mapping[str, Any], last_error: LastError) -> Any:
    user = {key.removeprefix("kafka."): value for key, value in kafka.items()}
    untranslated = {key: value for key, value in user.items() if not key.startswith(_TRANSLATED)}
    # Otherwise librdkafka writes each failed connection to standard error, beside the error that is raised.
    settings = {"log_level": 0, "error_cb": last_error, **defaults, **untranslated, **for_librdkafka(kafka)}
    try:
        return client_class(settings)
    except KafkaException as error:
        raise UsageError(
            f"--kafka: {reason_of(error)}; expected: a setting of Kafka's client or of librdkafka"
        ) from None


def fetch_metadata(
    client: Producer | Consumer, kafka: Mapping[str, str], last_error: LastError, topic: str | None = None
) -> Any:
    """Return the metadata of one topic, or of all topics. A broker may create the topic that a producer asks for.
    MqtwinError: no broker answers; the message has the reason.
    """
    try:
        arguments = {} if topic is None else {"topic": topic}
        return client.list_topics(**arguments, timeout=CONNECT_SECONDS)
    except KafkaException as error:
        client.poll(0)  # delivers the client's errors to `last_error`
        raise no_answer(kafka, last_error.text or reason_of(error)) from None


def partitions_of(consumer: Consumer, topic: str, kafka: Mapping[str, str], last_error: LastError) -> list[int]:
    """Return the partition numbers of a topic, sorted; none if there is no such topic. UsageError: the user may not
    read the topic. MqtwinError: no broker answers.
    """
    metadata = fetch_metadata(consumer, kafka, last_error, topic).topics[topic]
    if metadata.error is not None:
        if metadata.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise missing_right(READ, topic)
        if metadata.error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE):
            raise MqtwinError(f"topic {topic}: {metadata.error.str()}")
    return sorted(metadata.partitions)


def offset_range(consumer: Consumer, topic: str, number: int) -> tuple[int, int]:
    """Return the offset of the first record of a partition, and the one after its last record.

    A partition that was made a moment ago, or whose leader is changing, is tried again for ``CONNECT_SECONDS``.
    UsageError: the user may not read the topic. MqtwinError: any other error of the broker.
    """
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        left = max(deadline - time.monotonic(), 0.1)
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=left)
        except KafkaException as error:
            check(error.args[0], topic)  # raises what does not go away
            if time.monotonic() >= deadline:
                raise MqtwinError(f"topic {topic}, partition {number}: {reason_of(error)}") from None
            time.sleep(_RETRY_SECONDS)
        else:
            return low, high


def content_type_of(message: Message) -> bytes | None:
    """Return the first header `content-type` of a record; None if it has none."""
    headers: Any = message.headers() or ()
    return next((value for name, value in headers if name == "content-type"), None)


def is_end(message: Message) -> bool:
    """Return True if a consumer with `enable.partition.eof` signals the end of a partition."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 -- librdkafka's own code


def check(error: KafkaError | None, topic: str) -> bool:
    """Return True if there is no error, False for one that a consumer recovers from by itself. UsageError: the user may
    not read the topic. MqtwinError: any other error.
    """
    if error is None:
        return True
    if error.code() in _TRANSIENT and not error.fatal():
        return False
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise missing_right(READ, topic)
    raise MqtwinError(f"topic {topic}: {error.str()}")
