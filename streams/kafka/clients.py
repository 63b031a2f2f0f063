"""confluent-kafka clients as publish, record and subscribe need them: settings, silence, and errors of one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from streams.kafka.rights import READ, missing_right
from streams.kafka.settings import for_librdkafka
from twin.errors import MqtwinError, UsageError

CONNECT_SECONDS = 10.0  # for the first answer of a broker
# What belongs to the connection is translated by `for_librdkafka`; of these only what it gives may reach librdkafka.
_TRANSLATED = ("sasl.", "ssl.", "config.providers")
# A broker that is away comes back; librdkafka goes on by itself when it does.
_PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 -- librdkafka's names of its own errors
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
        KafkaError.UNKNOWN_TOPIC_OR_PART,  # of a broker that has just started
        # librdkafka looks for the coordinator of every consumer's group. Ours use no group: they read on without it.
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)


class LastError:
    """The last error a client reported by itself: why nobody answers."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error: KafkaError) -> None:
        """What librdkafka calls `error_cb`."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.text:  # noqa: SLF001
            self.text = error.str()


def new_producer(kafka: Mapping[str, str], ours: Mapping[str, Any], last_error: LastError) -> Producer:
    """A producer with our settings and, before them, the user's. UsageError: a setting that librdkafka refuses."""
    producer: Producer = _new(Producer, kafka, ours, last_error)
    return producer


def new_consumer(kafka: Mapping[str, str], ours: Mapping[str, Any], last_error: LastError) -> Consumer:
    """A consumer that reads partitions it is given and keeps no offsets in Kafka; else as `new_producer`."""
    alone = {"group.id": "mqtwin", "enable.auto.commit": False, "enable.auto.offset.store": False}
    consumer: Consumer = _new(Consumer, kafka, {**alone, **ours}, last_error)
    return consumer


def _new(kind: Any, kafka: Mapping[str, str], ours: Mapping[str, Any], last_error: LastError) -> Any:
    given = {key.removeprefix("kafka."): value for key, value in kafka.items()}
    others = {key: value for key, value in given.items() if not key.startswith(_TRANSLATED)}
    # librdkafka would write each failed connection to standard error; the one message that counts is raised.
    settings = {"log_level": 0, "error_cb": last_error, **ours, **others, **for_librdkafka(kafka)}
    try:
        return kind(settings)
    except KafkaException as error:
        raise UsageError(
            f"--kafka: {error.args[0].str()}; right: a setting of Kafka's client or of librdkafka"
        ) from None


def reach(
    client: Producer | Consumer, kafka: Mapping[str, str], last_error: LastError, topic: str | None = None
) -> Any:
    """Return the metadata of a topic, or of all: with one, a producer may create it.

    Raises:
        MqtwinError: no broker answers; the message says why.
    """
    try:
        names = {} if topic is None else {"topic": topic}
        return client.list_topics(**names, timeout=CONNECT_SECONDS)
    except KafkaException as error:
        client.poll(0)  # so that the client says what it met
        why = last_error.text or error.args[0].str()
        servers = kafka.get("bootstrap.servers", "")
        raise MqtwinError(
            f"no Kafka answers at {servers}: {why}; is the broker running, and are address and settings right?"
        ) from None


def partitions_of(consumer: Consumer, topic: str, kafka: Mapping[str, str], last_error: LastError) -> list[int]:
    """Return the numbers of a topic's partitions; none where there is no such topic.

    Raises:
        UsageError: the user may not read the topic.
        MqtwinError: no broker answers.
    """
    found = reach(consumer, kafka, last_error, topic).topics[topic]
    if found.error is not None:
        if found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise missing_right(READ, topic)
        if found.error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE):
            raise MqtwinError(f"topic {topic}: {found.error.str()}")
    return sorted(found.partitions)


def check(error: KafkaError | None, topic: str) -> bool:
    """Return True if a consumer of a topic met no error, False for one that passes by itself.

    Raises:
        UsageError: the user may not read the topic.
        MqtwinError: any other error.
    """
    if error is None:
        return True
    if error.code() in _PASSING and not error.fatal():
        return False
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise missing_right(READ, topic)
    raise MqtwinError(f"topic {topic}: {error.str()}")
