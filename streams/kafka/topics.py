"""The topics of the contract: their names, their creation where missing, and the largest record each takes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import RetryError, Retrying, retry_if_exception, retry_if_result, stop_after_delay, wait_fixed

from streams.kafka.rights import CREATE, READ, WRITE, existing_topics, missing_right
from streams.kafka.settings import for_librdkafka
from twin.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

DEFAULT_PREFIX = "mqtwin"
TIMEOUT_SECONDS = 30.0
EVENT_PARTITIONS = 4
VISIBLE_SECONDS = 30.0  # until every broker knows of a topic just created
BROKER_DEFAULT_MAX_MESSAGE_BYTES = (
    1_048_588  # Kafka's default of message.max.bytes; 1 MiB and the 12 bytes of a log entry's head
)
RESERVED_BYTES = (
    8 * 1024
)  # what a record has beside its value: batch and record heads, key, headers (reason, detail, place)


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics: ``<prefix>.events`` in, ``.state``, ``.alerts`` and ``.dlq`` out (contract, sections 2 to 5).

    ``.reports`` is the job's own: what stores report to those they share, written and read back by one query.
    """

    prefix: str = DEFAULT_PREFIX

    @property
    def events(self) -> str:
        """What producers write."""
        return f"{self.prefix}.events"

    @property
    def state(self) -> str:
        """State records, compacted, key = store."""
        return f"{self.prefix}.state"

    @property
    def alerts(self) -> str:
        """Alerts, compacted, key = alert id."""
        return f"{self.prefix}.alerts"

    @property
    def dlq(self) -> str:
        """Dead letters."""
        return f"{self.prefix}.dlq"

    @property
    def reports(self) -> str:
        """What stores report to those they share, key = the shared store."""
        return f"{self.prefix}.reports"

    @property
    def out(self) -> tuple[str, str, str, str]:
        """What the job writes."""
        return (self.state, self.alerts, self.dlq, self.reports)

    @property
    def rights(self) -> dict[str, tuple[str, ...]]:
        """The operations that the job needs, by topic."""
        return {self.events: (READ,), **dict.fromkeys(self.out, (WRITE,)), self.reports: (READ, WRITE)}


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest value, in bytes, that each topic the job writes takes, room for key and headers left out."""

    state: int
    alerts: int
    dlq: int
    reports: int = BROKER_DEFAULT_MAX_MESSAGE_BYTES - RESERVED_BYTES

    @classmethod
    def of_records(cls, records: Mapping[str, int], topics: Topics) -> Limits:
        """From ``max.message.bytes`` of each topic."""
        return cls(*(max(1, records[topic] - RESERVED_BYTES) for topic in topics.out))

    @property
    def request(self) -> int:
        """The request size that the sink's producer needs, in bytes: the largest record and its surroundings."""
        return max(self.state, self.alerts, self.dlq, self.reports) + RESERVED_BYTES


def prepare_topics(
    topics: Topics, kafka: Mapping[str, str], *, partitions: int = EVENT_PARTITIONS, replication: int = -1
) -> Limits:
    """Create the topics that are missing and read what the existing ones take.

    Args:
        topics: their names.
        kafka: client settings, ``bootstrap.servers`` among them.
        partitions: of the events topic, if it is created here; the others have one. The order of a store is the order
            of its partition: more partitions than stores help nobody, and adding some later moves stores to other
            partitions.
        replication: of topics created here; -1 is the broker's default.

    Raises:
        UsageError: a right is missing; the message names it.
        MqtwinError: no broker answers, or it refuses; the message says which and what would help.
    """
    admin = admin_client(kafka)
    existing = _existing(admin, kafka, topics.rights)
    missing = [topic for topic in topics.rights if topic not in existing]
    _create(admin, missing, topics, partitions, replication)
    return Limits.of_records(max_message_bytes(admin, topics.out), topics)


def admin_client(kafka: Mapping[str, str]) -> AdminClient:
    """A client for topics; it connects when it is first used."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # librdkafka would write each failed connection to standard error; the one message that counts is raised.
    quiet: dict[str, Any] = {"log_level": 0, "logger": _silent()}
    try:
        return AdminClient({**for_librdkafka(kafka), **quiet})
    except KafkaException as error:
        raise UsageError(f"Kafka client settings: {_reason(error)}") from error


def max_message_bytes(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """``max.message.bytes`` of topics, by name; Kafka's default where the broker does not let us read it.

    Raises:
        MqtwinError: there is no such topic, or no broker answers.
    """
    return {name: _max_message_bytes(admin, name) for name in names}


def missing_topics(kafka: Mapping[str, str], wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the topics that no broker knows. MqtwinError: no broker answers, or a right is missing.

    wanted: topic -> operations that the user needs there, as `Topics.rights`.
    """
    existing = _existing(admin_client(kafka), kafka, wanted)
    return [name for name in wanted if name not in existing]


def partitions_of(kafka: Mapping[str, str], name: str) -> list[int]:
    """The partitions of a topic that there is, sorted. MqtwinError: no broker answers, or none knows the topic."""
    from confluent_kafka import KafkaException

    admin = admin_client(kafka)
    visible = Retrying(  # a broker may not have heard yet of a topic just created
        retry=retry_if_result(lambda found: not found), wait=wait_fixed(0.1), stop=stop_after_delay(VISIBLE_SECONDS)
    )
    try:
        return visible(lambda: sorted(admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions))
    except (KafkaException, RetryError) as error:
        raise MqtwinError(f"topic {name}: its partitions cannot be read: {_reason(error)}") from error


def topic_id(kafka: Mapping[str, str], name: str) -> str:
    """Return the id of a topic: one created again under the same name has another. MqtwinError: no broker answers."""
    from confluent_kafka import KafkaException, TopicCollection

    admin = admin_client(kafka)  # its futures end only while it lives
    try:
        asked = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_SECONDS)
        return str(asked[name].result().topic_id)
    except KafkaException as error:
        raise MqtwinError(f"topic {name}: it cannot be described: {_reason(error)}") from error


def end_offsets(kafka: Mapping[str, str], name: str) -> dict[int, int]:
    """Where the next record of each partition of a topic will stand. MqtwinError: no broker answers."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    places = {TopicPartition(name, number): OffsetSpec.latest() for number in partitions_of(kafka, name)}
    admin = admin_client(kafka)  # its futures end only while it lives
    try:
        asked = admin.list_offsets(places, request_timeout=TIMEOUT_SECONDS)
        return {place.partition: future.result().offset for place, future in asked.items()}
    except KafkaException as error:
        raise MqtwinError(f"topic {name}: its end cannot be read: {_reason(error)}") from error


def _max_message_bytes(admin: AdminClient, name: str) -> int:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import ConfigResource, ResourceType

    def is_unknown(error: BaseException) -> bool:
        return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART

    try:
        # A broker answers for a topic it has not heard of yet that there is none.
        for attempt in Retrying(
            retry=retry_if_exception(is_unknown),
            wait=wait_fixed(0.1),
            stop=stop_after_delay(VISIBLE_SECONDS),
            reraise=True,
        ):
            with attempt:
                resource = ConfigResource(ResourceType.TOPIC, name)
                asked = admin.describe_configs([resource], request_timeout=TIMEOUT_SECONDS)
                return int(asked[resource].result()["max.message.bytes"].value)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise MqtwinError(f"topic {name}: its settings cannot be read: {_reason(error)}") from error
    return BROKER_DEFAULT_MAX_MESSAGE_BYTES


def prepare_events_topic(topics: Topics, kafka: Mapping[str, str], *, create: bool) -> int:
    """Return the largest record that the events topic takes, for who writes there.

    Args:
        topics: their names.
        kafka: client settings, ``bootstrap.servers`` among them.
        create: create the topic where it is missing.

    Raises:
        UsageError: the topic is missing and is not to be created, or the user may not write there.
        MqtwinError: no broker answers, or it refuses.
    """
    admin = admin_client(kafka)
    if not _existing(admin, kafka, {topics.events: (WRITE,)}):
        if not create:
            raise UsageError(
                f"topic {topics.events} does not exist; expected: the --topic-prefix of a running `mqtwin stream`, "
                "which creates it, or --create-topics"
            )
        _create(admin, [topics.events], topics, EVENT_PARTITIONS, -1)
    return max_message_bytes(admin, [topics.events])[topics.events]


def _existing(admin: AdminClient, kafka: Mapping[str, str], wanted: Mapping[str, Sequence[str]]) -> set[str]:
    from confluent_kafka import KafkaException

    try:
        admin.list_topics(timeout=TIMEOUT_SECONDS)  # fails sooner, and says more, where no broker answers
        return existing_topics(admin, wanted)
    except KafkaException as error:
        servers = kafka.get("bootstrap.servers", "")
        raise MqtwinError(
            f"no Kafka answers at {servers}: {_reason(error)}; is the broker running, and is the address right?"
        ) from error


def _create(admin: AdminClient, names: list[str], topics: Topics, partitions: int, replication: int) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic

    if not names:
        return
    compacted = {topics.state: {"cleanup.policy": "compact"}, topics.alerts: {"cleanup.policy": "compact"}}
    wanted = [
        NewTopic(name, partitions if name == topics.events else 1, replication, config=compacted.get(name, {}))
        for name in names
    ]
    for name, future in admin.create_topics(wanted, request_timeout=TIMEOUT_SECONDS).items():
        try:
            future.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
                raise UsageError(f"{missing_right(CREATE, name)}, or the topic itself, made by someone else") from None
            if code != KafkaError.TOPIC_ALREADY_EXISTS:  # another job or producer was faster
                raise MqtwinError(
                    f"topic {name} cannot be created: {_reason(error)}; create it, or allow this user to"
                ) from error


def _reason(error: BaseException) -> str:
    cause = error.args[0] if error.args else error
    return str(cause.str()) if hasattr(cause, "str") else str(cause)


def _silent() -> logging.Logger:
    logger = logging.getLogger("streams.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
