"""Comparison of a checkpoint's offsets with the records that Kafka holds, before the query starts.

Spark notices missing records only in the middle of a batch, and with `failOnDataLoss=false` skips them silently. The
right reaction depends on the reason:

* Retention deleted them: the job can go on with the first record that is left, and counts none twice.
* The topic was deleted and created again, or the cluster is another one: the offsets refer to other records. They may
  have been counted already, so such a topic is refused, unless it is empty: then it is read from its beginning.

For operators: docs/operations.md, When Kafka has lost records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, OffsetSpec

from streams.checkpoint.files import Offsets
from streams.kafka.admin import TIMEOUT_SECONDS, admin_client, list_offsets, no_answer, reason_of
from twin.errors import UsageError

_NO_ID = ("", "AAAAAAAAAAAAAAAAAAAAAA")  # brokers before Kafka 2.8 have none
_NEW = (
    "name another --checkpoint (with --starting-offsets earliest), and send a MEASURE per store when it has caught up"
)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of a partition. low: first offset; high: offset of the next record."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class TopicState:
    """An existing topic. id: Kafka's, "" if unknown; ranges: by partition."""

    id: str
    ranges: Mapping[int, OffsetRange]

    @property
    def is_empty(self) -> bool:
        """True if the topic has no records."""
        return all(records.low == records.high for records in self.ranges.values())


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster and those of some topics that exist. cluster: Kafka's id, "" if unknown."""

    cluster: str
    topics: Mapping[str, TopicState]

    @property
    def ids(self) -> dict[str, str]:
        """Kafka's ids of the topics."""
        return {name: topic.id for name, topic in self.topics.items()}


@dataclass(frozen=True, slots=True)
class Skip:
    """Records that the job will not read. next_offset: the offset at which it goes on in the partition."""

    topic: str
    partition: int
    deleted_records: int
    next_offset: int


def describe_cluster(kafka: Mapping[str, str], names: Iterable[str]) -> ClusterState:
    """Return the state of a cluster and of some topics. MqtwinError: no broker answers, or it refuses."""
    admin = admin_client(kafka)
    try:
        metadata = admin.list_topics(timeout=TIMEOUT_SECONDS)
        partitions = {name: sorted(metadata.topics[name].partitions) for name in names if name in metadata.topics}
        ids = _topic_ids(admin, list(partitions))
        first, end = (list_offsets(admin, partitions, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
    except KafkaException as error:
        raise no_answer(kafka, reason_of(error)) from error
    topics = {
        name: TopicState(
            ids.get(name, ""), {number: OffsetRange(first[name, number], end[name, number]) for number in numbers}
        )
        for name, numbers in partitions.items()
    }
    return ClusterState(str(metadata.cluster_id or ""), topics)


def _topic_ids(admin: AdminClient, names: list[str]) -> dict[str, str]:
    """Return the ids of topics; those that the broker does not report are left out."""
    if not names:
        return {}
    ids = {}
    for name, future in admin.describe_topics(TopicCollection(names), request_timeout=TIMEOUT_SECONDS).items():
        try:
            topic_id = str(future.result().topic_id)
        except KafkaException:  # without an id the offsets alone decide
            continue
        if topic_id not in _NO_ID:
            ids[name] = topic_id
    return ids


def check_offsets(
    location: str,
    offsets: Offsets,
    known_ids: Mapping[str, str],
    cluster: str,
    kafka: ClusterState,
    servers: str,
    *,
    tolerate: bool,
) -> list[Skip]:
    """Compare the offsets of a checkpoint with Kafka and return the records that the job will skip.

    Args:
        location: the checkpoint, for errors.
        offsets: the start of its next batch.
        known_ids: topic -> id at the last start; "" if unknown.
        cluster: id at the last start; "" if unknown.
        kafka: the present state of the cluster.
        servers: the address of Kafka, for errors.
        tolerate: `--tolerate-data-loss`.

    Raises:
        UsageError: the job could not go on, or would count records twice or skip new ones; the message has a remedy.
    """
    if cluster and kafka.cluster and cluster != kafka.cluster:
        raise UsageError(
            f"checkpoint {location} belongs to the Kafka cluster {cluster}; {servers} is cluster {kafka.cluster}: "
            f"correct --bootstrap-servers, or {_NEW}"
        )
    skips = []
    for name, next_offsets in sorted(offsets.items()):
        topic = kafka.topics.get(name)
        if topic is None or _is_another_topic(known_ids.get(name, ""), topic, next_offsets):
            skips += _skip_topic(location, name, next_offsets, topic, servers, tolerate=tolerate)
            continue
        for partition, offset in sorted(next_offsets.items()):
            records = topic.ranges[partition]
            if offset < records.low:
                skips.append(Skip(name, partition, records.low - offset, records.low))
            elif offset > records.high:  # a broker lost records of the same topic that it had acknowledged
                skips.append(Skip(name, partition, 0, records.high))
    if skips and not tolerate:
        raise UsageError(f"checkpoint {location}: {format_skips(skips)}; --tolerate-data-loss goes on there")
    return skips


def _is_another_topic(known_id: str, topic: TopicState, next_offsets: Mapping[int, int]) -> bool:
    """Return True if the offsets are not of this topic, by its id or, without one, by its ends."""
    if any(partition not in topic.ranges for partition in next_offsets):
        return True
    if known_id and topic.id:
        return known_id != topic.id
    return any(offset > topic.ranges[partition].high for partition, offset in next_offsets.items())


def _skip_topic(
    location: str,
    name: str,
    next_offsets: Mapping[int, int],
    topic: TopicState | None,
    servers: str,
    *,
    tolerate: bool,
) -> list[Skip]:
    """Return the skips of a topic that does not exist any more or was created again. UsageError: it is refused."""
    read = {partition: offset for partition, offset in next_offsets.items() if offset > 0}
    if not read and (topic is None or topic.ranges.keys() >= next_offsets.keys()):
        return []  # nothing was read yet
    if topic is None:
        problem = f"topic {name} is not at {servers}, though {sum(read.values()):,} records of it were read"
    else:
        problem = f"topic {name} was deleted and made anew since"
        if not topic.is_empty:
            raise UsageError(
                f"checkpoint {location}: {problem}, and has records, which may have been counted already: {_NEW}"
            )
    if not tolerate:
        raise UsageError(
            f"checkpoint {location}: {problem}: correct --bootstrap-servers, or {_NEW}, or go on with what comes from "
            "now on (--tolerate-data-loss)"
        )
    return [Skip(name, partition, 0, 0) for partition in sorted(read)]


def format_skips(skips: Iterable[Skip]) -> str:
    """Return the skipped records on one line."""
    return ", ".join(
        f"{skip.topic}/{skip.partition}: "
        + (
            f"{skip.deleted_records:,} records were deleted before they were read"
            if skip.deleted_records
            else "read records are gone"
        )
        + f", the next one there is {skip.next_offset}"
        for skip in skips
    )
