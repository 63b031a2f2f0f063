"""The topics: their names, the creation of missing ones, and the largest record that each takes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog
from tenacity import RetryError, Retrying, retry_if_exception, retry_if_result, stop_after_delay, wait_fixed

from streams.kafka.rights import CREATE, READ, WRITE, existing_topics, missing_right
from streams.kafka.settings import for_librdkafka
from twin.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

DEFAULT_PREFIX = "mqtwin"
TIMEOUT_SECONDS = 30.0
EVENT_PARTITIONS = 4
VISIBLE_SECONDS = 30.0  # until every broker knows a new topic
# Kafka's default of message.max.bytes: 1 MiB and the 12 bytes of a log entry's head.
BROKER_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
# Spark cannot read a record whose time is later than 2^63 microseconds, in the year 294,247. A bound that lets no time
# be that far ahead of the broker's clock:
MAX_AHEAD_MS = 1 << 52
_TIME_TYPE, _MAX_AHEAD = "message.timestamp.type", "message.timestamp.after.max.ms"
_APPENDED = "LogAppendTime"
RESERVED_BYTES = 8 * 1024  # of a record beside its value: batch and record heads, key, headers (reason, detail, source)

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class Topics:
    """Names of the topics: ``<prefix>.events`` in; ``.state``, ``.alerts`` and ``.dlq`` out.

    ``.reports`` is internal: the job writes the reports of stores to those they share, and reads them back.

    Args:
        prefix: of these names.
        otlp: topic of an OpenTelemetry collector, which the job reads beside them; None: there is none.
    """

    prefix: str = DEFAULT_PREFIX
    otlp: str | None = None

    @property
    def events(self) -> str:
        """Events, written by producers, key = store."""
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
        """Reports of stores to those they share, key = the shared store."""
        return f"{self.prefix}.reports"

    @property
    def out(self) -> tuple[str, str, str, str]:
        """The topics that the job writes."""
        return (self.state, self.alerts, self.dlq, self.reports)

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that the job reads."""
        return (self.events, self.reports, *((self.otlp,) if self.otlp is not None else ()))

    @property
    def rights(self) -> dict[str, tuple[str, ...]]:
        """The operations that the job needs, by topic."""
        return {**dict.fromkeys(self.read, (READ,)), **dict.fromkeys(self.out, (WRITE,)), self.reports: (READ, WRITE)}


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest value of a record, in bytes, of each topic that the job writes.

    smallest: the smallest ``max.message.bytes`` of these topics.
    """

    state: int
    alerts: int
    dlq: int
    reports: int = BROKER_DEFAULT_MAX_MESSAGE_BYTES - RESERVED_BYTES
    smallest: int = BROKER_DEFAULT_MAX_MESSAGE_BYTES

    @classmethod
    def of_records(cls, records: Mapping[str, int], topics: Topics) -> Limits:
        """Return the limits for ``max.message.bytes`` of each topic."""
        sizes = [records[topic] for topic in topics.out]
        return replace(cls(*(max(1, size - RESERVED_BYTES) for size in sizes)), smallest=min(sizes))

    @property
    def request(self) -> int:
        """The request size that the sink's producer needs, in bytes: the largest record with key and headers."""
        return max(self.state, self.alerts, self.dlq, self.reports) + RESERVED_BYTES


def prepare_topics(
    topics: Topics, kafka: Mapping[str, str], *, partitions: int = EVENT_PARTITIONS, replication: int = -1
) -> Limits:
    """Create missing topics, but for that of a collector, and return the limits of all.

    Args:
        topics: their names.
        kafka: client settings, ``bootstrap.servers`` among them.
        partitions: of a new events topic; other topics have one. More partitions than stores are of no use, and
            adding partitions later moves stores to other partitions, which breaks their order.
        replication: of new topics; -1 is the broker's default.

    Raises:
        UsageError: a right is missing, or the topic of a collector; the message names it.
        MqtwinError: no broker answers, or it refuses; the message has a remedy.
    """
    admin = admin_client(kafka)
    existing = _existing(admin, kafka, topics.rights)
    missing = [topic for topic in topics.rights if topic not in existing]
    if topics.otlp in missing:
        raise UsageError(
            f"there is no topic {topics.otlp}; expected: the topic that the collector writes, --otlp-topic"
        )
    _create(admin, missing, topics, partitions, replication)
    for name in topics.read:
        _warn_of_any_time(name, _topic_settings(admin, name))
    return Limits.of_records(max_message_bytes(admin, topics.out), topics)


def admin_client(kafka: Mapping[str, str]) -> AdminClient:
    """Return a client for topics; it connects on its first call."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # Otherwise librdkafka writes each failed connection to standard error, beside the error that is raised.
    quiet: dict[str, Any] = {"log_level": 0, "logger": _silent_logger()}
    try:
        return AdminClient({**for_librdkafka(kafka), **quiet})
    except KafkaException as error:
        raise UsageError(f"Kafka client settings: {_reason(error)}") from error


def max_message_bytes(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """Return ``max.message.bytes`` by topic; Kafka's default if the user may not read it.

    Raises:
        MqtwinError: a topic does not exist, or no broker answers.
    """
    return {name: _max_message_bytes(admin, name) for name in names}


def missing_topics(kafka: Mapping[str, str], required: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the topics that do not exist.

    Args:
        kafka: client settings.
        required: topic -> operations that the user needs there, as `Topics.rights`.

    Raises:
        MqtwinError: no broker answers, or a right is missing.
    """
    existing = _existing(admin_client(kafka), kafka, required)
    return [name for name in required if name not in existing]


def partitions_of(kafka: Mapping[str, str], name: str) -> list[int]:
    """Return the partition numbers of an existing topic, sorted. MqtwinError: no broker answers, or none knows it."""
    from confluent_kafka import KafkaException

    admin = admin_client(kafka)
    retry_until_visible = Retrying(  # a broker may not know a new topic yet
        retry=retry_if_result(lambda numbers: not numbers), wait=wait_fixed(0.1), stop=stop_after_delay(VISIBLE_SECONDS)
    )
    try:
        return retry_until_visible(
            lambda: sorted(admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions)
        )
    except (KafkaException, RetryError) as error:
        raise MqtwinError(f"topic {name}: its partitions cannot be read: {_reason(error)}") from error


def topic_id(kafka: Mapping[str, str], name: str) -> str:
    """Return Kafka's id of a topic; a topic created again has another one. MqtwinError: no broker answers."""
    from confluent_kafka import KafkaException, TopicCollection

    admin = admin_client(kafka)  # futures complete only while the client exists
    try:
        futures = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_SECONDS)
        return str(futures[name].result().topic_id)
    except KafkaException as error:
        raise MqtwinError(f"topic {name}: it cannot be described: {_reason(error)}") from error


def end_offsets(kafka: Mapping[str, str], name: str) -> dict[int, int]:
    """Return the offset of the next record of each partition of a topic.

    A partition that was made a moment ago, or whose leader is changing, is asked again for ``VISIBLE_SECONDS``.

    Raises:
        MqtwinError: no broker answers, or a partition has no leader.
    """
    from confluent_kafka import KafkaError, KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    partitions = {TopicPartition(name, number): OffsetSpec.latest() for number in partitions_of(kafka, name)}
    admin = admin_client(kafka)  # futures complete only while the client exists

    def has_no_leader(error: BaseException) -> bool:
        codes = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION)
        return isinstance(error, KafkaException) and error.args[0].code() in codes

    def ask() -> dict[int, int]:
        futures = admin.list_offsets(partitions, request_timeout=TIMEOUT_SECONDS)
        return {partition.partition: future.result().offset for partition, future in futures.items()}

    retry_until_led = Retrying(
        retry=retry_if_exception(has_no_leader),
        wait=wait_fixed(0.1),
        stop=stop_after_delay(VISIBLE_SECONDS),
        reraise=True,
    )
    try:
        return retry_until_led(ask)
    except KafkaException as error:
        raise MqtwinError(f"topic {name}: its end cannot be read: {_reason(error)}") from error


def _max_message_bytes(admin: AdminClient, name: str) -> int:
    return int(_topic_settings(admin, name).get("max.message.bytes", BROKER_DEFAULT_MAX_MESSAGE_BYTES))


def _warn_of_any_time(name: str, settings: Mapping[str, str]) -> None:
    """Log that producers may give the records of a topic times that Spark cannot read. settings: of the topic."""
    is_appended = settings.get(_TIME_TYPE, _APPENDED) == _APPENDED
    if not is_appended and int(settings.get(_MAX_AHEAD, MAX_AHEAD_MS + 1)) > MAX_AHEAD_MS:
        _log.warning(
            "a topic takes records of any time",
            topic=name,
            effect="one that is later than the year 294,247 ends the job at every start",
            remedy=f"kafka-configs.sh --alter --topic {name} --add-config {_TIME_TYPE}={_APPENDED}",
        )


def _topic_settings(admin: AdminClient, name: str) -> dict[str, str]:
    """Return the settings of a topic; none if the user may not read them. MqtwinError: no topic, or no answer."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import ConfigResource, ResourceType

    def is_unknown(error: BaseException) -> bool:
        return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART

    try:
        # A broker may not know a new topic yet.
        for attempt in Retrying(
            retry=retry_if_exception(is_unknown),
            wait=wait_fixed(0.1),
            stop=stop_after_delay(VISIBLE_SECONDS),
            reraise=True,
        ):
            with attempt:
                resource = ConfigResource(ResourceType.TOPIC, name)
                futures = admin.describe_configs([resource], request_timeout=TIMEOUT_SECONDS)
                return {key: str(entry.value) for key, entry in futures[resource].result().items()}
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise MqtwinError(f"topic {name}: its settings cannot be read: {_reason(error)}") from error
    return {}


def prepare_topic(topics: Topics, name: str, kafka: Mapping[str, str], *, create: bool) -> int:
    """Return the largest record that a topic takes, in bytes, for a producer.

    Args:
        topics: names of the topics.
        name: one of them.
        kafka: client settings, ``bootstrap.servers`` among them.
        create: create it if it is missing.

    Raises:
        UsageError: the topic is missing and `create` is False, or the user may not write there.
        MqtwinError: no broker answers, or it refuses.
    """
    admin = admin_client(kafka)
    if not _existing(admin, kafka, {name: (WRITE,)}):
        if not create:
            raise UsageError(
                f"topic {name} does not exist; expected: the --topic-prefix of a running `mqtwin stream`, "
                "which creates it, or --create-topics"
            )
        _create(admin, [name], topics, EVENT_PARTITIONS, -1)
    return max_message_bytes(admin, [name])[name]


def _existing(admin: AdminClient, kafka: Mapping[str, str], required: Mapping[str, Sequence[str]]) -> set[str]:
    from confluent_kafka import KafkaException

    try:
        admin.list_topics(timeout=TIMEOUT_SECONDS)  # fails sooner, and with a reason, if no broker answers
        return existing_topics(admin, required)
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
    bounded = {_TIME_TYPE: _APPENDED}  # nothing depends on the time that a producer gives a record
    compacted = {name: {"cleanup.policy": "compact"} for name in (topics.state, topics.alerts)}
    new_topics = [
        NewTopic(
            name, partitions if name == topics.events else 1, replication, config=bounded | compacted.get(name, {})
        )
        for name in names
    ]
    for name, future in admin.create_topics(new_topics, request_timeout=TIMEOUT_SECONDS).items():
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


def _silent_logger() -> logging.Logger:
    logger = logging.getLogger("streams.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
