"""Topics in Kafka: their creation, the user's rights on them, open transactions, other questions to an admin client.

- A broker that has no authorizer, or cannot report rights (before Kafka 2.3), is assumed to allow everything. Sources:
  Kafka documentation, "Authorization and ACLs" (READ and WRITE imply DESCRIBE); KIP-430.
- Open transactions hold back later records from a job that reads committed ones.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType
from tenacity import RetryError, Retrying, retry_if_exception, retry_if_result, stop_after_delay, wait_fixed

from streams.kafka.settings import for_librdkafka
from streams.kafka.topics import BROKER_DEFAULT_MAX_MESSAGE_BYTES, CREATE, DESCRIBE, WRITE, Limits, Topics
from twin.base.errors import MqtwinError, UsageError

TIMEOUT_SECONDS = 30.0
EVENT_PARTITIONS = 4
VISIBLE_SECONDS = 30.0  # until every broker knows a new topic
# Spark cannot read a record whose time is later than 2^63 microseconds, in the year 294,247. A bound that lets no time
# be that far ahead of the broker's clock:
MAX_AHEAD_MS = 1 << 52
NOTES_KEPT_MS = 400 * 86_400_000  # reports of a month, a year ago
_POLICY = "cleanup.policy"
_TIME_TYPE, _MAX_AHEAD = "message.timestamp.type", "message.timestamp.after.max.ms"
_APPENDED = "LogAppendTime"
_RETENTION = "retention.ms"
SHORT_RETENTION_MS = 86_400_000  # a day: the job may be down for a night
_NO_LEADER = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,  # the client, or the broker, has yet to learn who leads
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._NOENT,  # noqa: SLF001 -- librdkafka's own code, "No leaders found"
)
_REFUSED_TOPICS = re.compile(r"TopicAuthorizationException: .*?\[(?P<names>[^\]]*)\]")
_NO_TLS = re.compile(r"SslAuthenticationException: (?P<why>[^\n]*)")
_EXPIRED = re.compile(r"CertificateExpiredException: NotAfter: (?P<until>[^\n]*)")
_REFUSED_GROUP = re.compile(r"GroupAuthorizationException: .*?(?P<name>[\w.-]+)\s*$", re.MULTILINE)

_T = TypeVar("_T")
_log = structlog.get_logger("mqtwin.stream")


def admin_client(kafka: Mapping[str, str], on_error: Callable[[KafkaError], None] | None = None) -> AdminClient:
    """Return a client for topics; it connects on its first call. on_error: gets errors of the connection."""
    # Otherwise librdkafka writes each failed connection to standard error, beside the error that is raised.
    quiet: dict[str, Any] = {"log_level": 0, "logger": _silent_logger()}
    if on_error is not None:
        quiet["error_cb"] = on_error
    try:
        return AdminClient({**for_librdkafka(kafka), **quiet})
    except KafkaException as error:
        raise UsageError(f"Kafka client settings: {reason_of(error)}; expected: those of Kafka's client") from error


def reason_of(error: BaseException) -> str:
    """Return Kafka's words for an error."""
    cause = error.args[0] if error.args else error
    return str(cause.str()) if hasattr(cause, "str") else str(cause)


def no_answer(kafka: Mapping[str, str], reason: str) -> MqtwinError:
    """Return the error of a client with these settings that gets no answer."""
    servers = kafka.get("bootstrap.servers", "")
    return MqtwinError(
        f"no Kafka answers at {servers}: {reason}; is the broker running, and are address and settings right?"
    )


def _silent_logger() -> logging.Logger:
    logger = logging.getLogger("streams.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def prepare_topics(topics: Topics, kafka: Mapping[str, str], *, partitions: int = EVENT_PARTITIONS) -> Limits:
    """Create missing topics, but for that of a collector, and return the limits of all. UsageError: a right is missing,
    or the topic of a collector; the message names it. MqtwinError: no broker answers, or it refuses; the message has a
    remedy.

    Args:
        partitions: partitions of a new events topic; other topics have one. More partitions than stores are of no
            use, and adding partitions later moves stores to other partitions, which breaks their order.
    """
    admin = admin_client(kafka)
    existing = existing_topics(admin, kafka, topics.rights)
    missing = [topic for topic in topics.rights if topic not in existing]
    if topics.otlp in missing:
        raise UsageError(
            f"there is no topic {topics.otlp}; expected: the topic that the collector writes, --otlp-topic"
        )
    _create(admin, missing, topics, partitions)
    _create_notes(admin, topics, kafka)
    for name in topics.read:
        settings = _topic_settings(admin, name)
        _warn_of_any_time(name, settings)
        if name == topics.events:
            check_event_log(name, settings)
    return Limits.of_records(max_message_bytes(admin, topics.out), topics)


def _create_notes(admin: AdminClient, topics: Topics, kafka: Mapping[str, str]) -> None:
    """Create the topic of notes where it is missing. A job that may not create it continues: it can do without."""
    name = topics.notes
    try:
        if existing_topics(admin, kafka, {name: (DESCRIBE,)}):
            return
    except UsageError:
        pass  # not to be seen; it may be created all the same
    try:
        _create(admin, [name], topics, 1)
    except UsageError as error:
        _log.warning("no topic of notes", topic=name, effect="nobody can acknowledge an alert", remedy=str(error))


def prepare_topic(topics: Topics, name: str, kafka: Mapping[str, str], *, create: bool) -> int:
    """Return the largest record that a topic takes, in bytes, for a producer. UsageError: the topic is missing and
    `create` is False, the user may not write there, or it is compacted and has events. MqtwinError: no broker answers,
    or it refuses.
    """
    admin = admin_client(kafka)
    if not existing_topics(admin, kafka, {name: (WRITE,)}):
        if not create:
            raise UsageError(
                f"topic {name} does not exist; expected: the --topic-prefix of a running `mqtwin stream`, "
                "which creates it, or --create-topics"
            )
        _create(admin, [name], topics, EVENT_PARTITIONS)
    if name == topics.events:
        check_event_log(name, _topic_settings(admin, name))
    return max_message_bytes(admin, [name])[name]


def max_message_bytes(admin: AdminClient, names: Iterable[str]) -> dict[str, int]:
    """Return ``max.message.bytes`` by topic; Kafka's default if it may not be read. MqtwinError: no answer."""
    default = BROKER_DEFAULT_MAX_MESSAGE_BYTES
    return {name: int(_topic_settings(admin, name).get("max.message.bytes", default)) for name in names}


def missing_topics(kafka: Mapping[str, str], required: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the topics that do not exist, of those of `Topics.rights`. MqtwinError: no answer, or a lacking right."""
    existing = existing_topics(admin_client(kafka), kafka, required)
    return [name for name in required if name not in existing]


def topic_id(kafka: Mapping[str, str], name: str) -> str:
    """Return Kafka's id of a topic; a topic created again has another one. MqtwinError: no broker answers."""
    admin = admin_client(kafka)  # futures complete only while the client exists
    try:
        futures = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_SECONDS)
        return str(futures[name].result().topic_id)
    except KafkaException as error:
        raise MqtwinError(f"topic {name}: it cannot be described: {reason_of(error)}") from error


def partitions_of(kafka: Mapping[str, str], name: str) -> list[int]:
    """Return the partition numbers of an existing topic, sorted. MqtwinError: no broker answers, or none knows it."""
    admin = admin_client(kafka)
    retry_until_visible = Retrying(  # a broker may not know a new topic yet
        retry=retry_if_result(lambda numbers: not numbers), wait=wait_fixed(0.1), stop=stop_after_delay(VISIBLE_SECONDS)
    )
    try:
        return retry_until_visible(
            lambda: sorted(admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name].partitions)
        )
    except (KafkaException, RetryError) as error:
        raise MqtwinError(f"topic {name}: its partitions cannot be read: {reason_of(error)}") from error


def list_offsets(
    admin: AdminClient,
    partitions: Mapping[str, Iterable[int]],
    offset: OffsetSpec,
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    seconds: float = TIMEOUT_SECONDS,
) -> dict[tuple[str, int], int]:
    """Return an offset of each partition, by topic and number. KafkaException: no answer, or no leader."""
    asked = {TopicPartition(topic, number): offset for topic, numbers in partitions.items() for number in numbers}
    futures = admin.list_offsets(asked, isolation_level=isolation, request_timeout=seconds) if asked else {}
    return {(place.topic, place.partition): future.result().offset for place, future in futures.items()}


def end_offsets(kafka: Mapping[str, str], name: str) -> dict[int, int]:
    """Return the offset of the next record of each partition of a topic.

    A partition that was made a moment ago, or whose leader is changing, is tried again for ``VISIBLE_SECONDS``.
    MqtwinError: no broker answers, or a partition has no leader.
    """
    partitions = {name: partitions_of(kafka, name)}
    try:  # with a new client each time: one that knows no leader may go on knowing none
        ends = _ask_again(lambda: list_offsets(admin_client(kafka), partitions, OffsetSpec.latest()), _NO_LEADER)
    except KafkaException as error:
        raise MqtwinError(f"topic {name}: its end cannot be read: {reason_of(error)}") from error
    return {number: end for (_, number), end in ends.items()}


def _ask_again(ask: Callable[[], _T], codes: Sequence[int]) -> _T:
    """Return an answer. Requests with these error codes are repeated for `VISIBLE_SECONDS`; others are raised."""

    def is_passing(error: BaseException) -> bool:
        return isinstance(error, KafkaException) and error.args[0].code() in codes

    retrying = Retrying(
        retry=retry_if_exception(is_passing), wait=wait_fixed(0.1), stop=stop_after_delay(VISIBLE_SECONDS), reraise=True
    )
    return retrying(ask)


def check_event_log(name: str, settings: Mapping[str, str]) -> None:
    """Check that a topic keeps each event until the job has read it; log a retention that may be too short. There are
    no settings if the user may not read them. UsageError: it is compacted: of the events of a store only the last would
    stay.
    """
    alter = f"kafka-configs.sh --alter --topic {name} --add-config"
    if "compact" in settings.get(_POLICY, ""):
        raise UsageError(
            f"topic {name} has {_POLICY}={settings[_POLICY]}: of the events of a store only the last ones stay; "
            f"expected: {_POLICY}=delete, by {alter} {_POLICY}=delete"
        )
    kept_ms = int(settings.get(_RETENTION, -1))
    if 0 <= kept_ms < SHORT_RETENTION_MS:
        _log.warning(
            "a topic keeps events for a short time",
            topic=name,
            kept=f"{kept_ms / 1000:g} s",
            effect="events that the job has not read by then are lost, as after a stop",
            remedy=f"{alter} {_RETENTION}={7 * SHORT_RETENTION_MS}",
        )


def _warn_of_any_time(name: str, settings: Mapping[str, str]) -> None:
    """Log that producers may give records times that Spark cannot read. settings: settings of the topic."""
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
    resource = ConfigResource(ResourceType.TOPIC, name)

    def ask() -> dict[str, str]:
        futures = admin.describe_configs([resource], request_timeout=TIMEOUT_SECONDS)
        return {key: str(entry.value) for key, entry in futures[resource].result().items()}

    try:
        return _ask_again(ask, (KafkaError.UNKNOWN_TOPIC_OR_PART,))  # a broker may not know a new topic yet
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise MqtwinError(f"topic {name}: its settings cannot be read: {reason_of(error)}") from error
    return {}


def _create(admin: AdminClient, names: list[str], topics: Topics, partitions: int) -> None:
    if not names:
        return
    bounded = {_TIME_TYPE: _APPENDED}  # nothing depends on the time that a producer gives a record
    settings = {name: {_POLICY: "delete"} for name in topics.read}  # whatever the cluster's default is
    settings |= {name: {_POLICY: "compact"} for name in (topics.state, topics.alerts)}
    settings |= {name: {_POLICY: "delete", "retention.ms": str(NOTES_KEPT_MS)} for name in (topics.notes, topics.acts)}
    new_topics = [
        NewTopic(name, partitions if name == topics.events else 1, -1, config=bounded | settings.get(name, {}))
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
                    f"topic {name} cannot be created: {reason_of(error)}; create it, or allow this user to"
                ) from error


def missing_right(operation: str, topic: str) -> UsageError:
    """Return the error that names the right on a topic that the user lacks."""
    return UsageError(
        f"topic {topic}: Kafka does not allow this user to {operation}; expected: an ACL that allows {operation} on "
        f"topic {topic}"
    )


def existing_topics(admin: AdminClient, kafka: Mapping[str, str], required: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the topics among those required that exist, once the user's rights on them are checked. UsageError: a
    right is missing. MqtwinError: no broker answers.
    """
    existing = set()
    try:
        admin.list_topics(timeout=TIMEOUT_SECONDS)  # fails sooner, and with a reason, if no broker answers
        for topic, lacking in lacking_rights(admin, required).items():
            if lacking:
                raise missing_right(lacking[0], topic)
            if lacking is not None:
                existing.add(topic)
    except KafkaException as error:
        raise no_answer(kafka, reason_of(error)) from error
    return existing


def lacking_rights(admin: AdminClient, required: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...] | None]:
    """Return the operations that the user lacks, by topic; None: there is no such topic. KafkaException. The required
    operations are those of `Topics.rights`.
    """
    lacking: dict[str, tuple[str, ...] | None] = {}
    futures = admin.describe_topics(
        TopicCollection(list(required)), include_authorized_operations=True, request_timeout=TIMEOUT_SECONDS
    )
    for topic, future in futures.items():
        try:
            allowed = future.result().authorized_operations
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                lacking[topic] = None
            elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:  # Kafka hides whether the topic exists
                lacking[topic] = tuple(required[topic])
            else:
                raise
            continue
        names = {operation.name for operation in allowed or ()}
        lacking[topic] = tuple(operation for operation in required[topic] if names and operation not in names)
    return lacking


def explain_refusal(failure: str, required: Mapping[str, Sequence[str]]) -> MqtwinError | None:
    """Return the error for a failure inside Spark that is a missing right or a certificate; None for others."""
    topics = _REFUSED_TOPICS.search(failure)
    if topics is not None:
        rights = [
            f"{operation} on topic {name}"
            for name in sorted(name.strip() for name in topics["names"].split(","))
            for operation in required.get(name, ("DESCRIBE",))
        ]
        return MqtwinError(f"Kafka refuses the job a topic; expected: ACLs that allow {', '.join(rights)}")
    group = _REFUSED_GROUP.search(failure)
    if group is not None:
        return MqtwinError(f"Kafka refuses the job the group {group['name']}; expected: an ACL that allows READ on it")
    why = ""
    if (handshake := _NO_TLS.search(failure)) is not None:
        why = handshake["why"].strip()
    if (expired := _EXPIRED.search(failure)) is not None:
        why = f"its certificate expired on {expired['until'].strip()}"
    if why:
        return MqtwinError(f"no TLS with Kafka: {why}; expected: a certificate of the broker that is valid and trusted")
    return None


# --- watch over open transactions -------------------------------------------------------------------------------------
# A partition is read up to its last stable offset, where the oldest open transaction begins. Records behind it, of the
# transaction and of everybody else, are read once it has ended. A transaction whose producer is gone ends after its
# `transaction.timeout.ms`, a hanging one never.

ISOLATION = "isolation.level"
COMMITTED = "read_committed"
LOOK_SECONDS = 5.0  # between two questions to Kafka
STANDING_SECONDS = 60.0  # of a stable offset, until a warning: Kafka's default of transaction.timeout.ms
_ANSWER_SECONDS = 10.0
_REMEDY = "end its producer's transaction; kafka-transactions.sh finds one that hangs (find-hanging) and aborts it"


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The ends of a partition. stable: the last stable offset; end: offset of the next record."""

    topic: str
    partition: int
    stable: int
    end: int

    @property
    def held_records(self) -> int:
        """Records that open transactions hold back, control records among them."""
        return max(0, self.end - self.stable)


@dataclass(frozen=True, slots=True)
class HeldRecords:
    """The records that open transactions hold back. records: in all partitions; partitions: the number of all."""

    records: int = 0
    partitions: int = 1

    @property
    def mean(self) -> float:
        """Records per partition."""
        return self.records / max(self.partitions, 1)


class TransactionWatch:
    """The last stable offsets of the topics that a job reads; a warning for one that stands still. `ends` raises
    MqtwinError if Kafka does not answer.
    """

    def __init__(
        self, ends: Callable[[], Iterable[PartitionEnd]], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ends, self._monotonic = ends, monotonic
        self._looked_s = -LOOK_SECONDS
        self._held = HeldRecords()
        self._held_back: list[PartitionEnd] = []
        self._standing: dict[tuple[str, int], tuple[int, float]] = {}  # stable offset, and since when
        self._warned: dict[tuple[str, int], int] = {}  # stable offset of the last warning

    def look(self) -> HeldRecords:
        """Return what is held back, as of at most `LOOK_SECONDS` ago, and warn of transactions open for long.
        MqtwinError: Kafka does not answer.
        """
        now_s = self._monotonic()
        if now_s - self._looked_s < LOOK_SECONDS:
            return self._held
        self._looked_s = now_s
        ends = list(self._ends())
        self._held_back = [end for end in ends if end.held_records]
        self._held = HeldRecords(sum(end.held_records for end in self._held_back), len(ends))
        standing = {}
        for end in self._held_back:
            place = end.topic, end.partition
            stable, since_s = self._standing.get(place, (-1, now_s))
            standing[place] = end.stable, since_s if stable == end.stable else now_s
            stands_s = now_s - standing[place][1]
            if stands_s >= STANDING_SECONDS and self._warned.get(place) != end.stable:
                self._warned[place] = end.stable
                self._warn(end, open_s=round(stands_s))
        self._standing = standing
        return self._held

    def report_left(self) -> None:
        """Warn of everything that a job leaves unread at its end. MqtwinError: Kafka does not answer."""
        self._looked_s = self._monotonic() - LOOK_SECONDS
        self.look()
        for end in self._held_back:
            if self._warned.get((end.topic, end.partition)) != end.stable:
                self._warn(end)

    def _warn(self, end: PartitionEnd, **fields: int) -> None:
        _log.warning(
            "an open transaction holds back records",
            topic=end.topic,
            partition=end.partition,
            stable_offset=end.stable,
            end_offset=end.end,
            records=end.held_records,
            **fields,
            effect="they are read when it ends, and none before",
            remedy=_REMEDY,
        )


def reads_committed(kafka: Mapping[str, str]) -> bool:
    """Return True unless the user's client settings ask for uncommitted records."""
    user = {key.removeprefix("kafka."): value for key, value in kafka.items()}
    return user.get(ISOLATION, COMMITTED).lower() == COMMITTED


def watch_transactions(kafka: Mapping[str, str], topics: Iterable[str]) -> TransactionWatch | None:
    """Return the watch over topics; None if the user's settings ask for uncommitted records."""
    if not reads_committed(kafka):
        return None
    names, admin = tuple(topics), admin_client(kafka)
    return TransactionWatch(lambda: partition_ends(admin, names))


def partition_ends(admin: AdminClient, topics: Iterable[str]) -> list[PartitionEnd]:
    """Return the ends of all partitions of some topics. MqtwinError: no broker answers, or it refuses."""

    def ask(level: IsolationLevel) -> dict[tuple[str, int], int]:
        return list_offsets(admin, partitions, OffsetSpec.latest(), isolation=level, seconds=_ANSWER_SECONDS)

    try:
        partitions = {name: admin.list_topics(name, timeout=_ANSWER_SECONDS).topics[name].partitions for name in topics}
        ends = ask(IsolationLevel.READ_UNCOMMITTED)  # first: a record that comes meanwhile is not taken for a held one
        stable = ask(IsolationLevel.READ_COMMITTED)
    except KafkaException as error:
        raise MqtwinError(f"topics {', '.join(topics)}: their ends cannot be read: {reason_of(error)}") from error
    return [PartitionEnd(*place, stable.get(place, end), end) for place, end in ends.items()]
