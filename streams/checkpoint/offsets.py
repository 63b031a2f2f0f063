"""The offsets of a checkpoint beside what Kafka still has, before the query starts.

Spark finds out only in the middle of a batch, and with `failOnDataLoss=false` goes on in silence. What is right depends
on why records are not there:

* deleted by retention: nothing is counted twice when the job goes on with the first record there is;
* the topic was deleted and made anew, or it is another cluster: the offsets mean other records. Whether those were
  counted already nobody can know, so no such topic is read, unless it is empty: then it is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.checkpoint.files import Offsets
from streams.kafka.topics import TIMEOUT_SECONDS, admin_client
from twin.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_NO_ID = ("", "AAAAAAAAAAAAAAAAAAAAAA")  # brokers before Kafka 2.8 give none
_NEW = (
    "name another --checkpoint (with --starting-offsets earliest), and send a MEASURE per store when it has caught up"
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a partition holds: the first record there is, and where the next one will stand."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic that there is. id: Kafka's, "" where it gives none."""

    id: str
    places: Mapping[int, Place]

    @property
    def is_empty(self) -> bool:
        """True if no record is in it."""
        return all(place.low == place.high for place in self.places.values())


@dataclass(frozen=True, slots=True)
class Kafka:
    """What a cluster has of some topics; those that are not there are left out. cluster: its id, or ""."""

    cluster: str
    topics: Mapping[str, KnownTopic]

    @property
    def ids(self) -> dict[str, str]:
        """The ids of the topics."""
        return {name: topic.id for name, topic in self.topics.items()}


@dataclass(frozen=True, slots=True)
class Skip:
    """Records that will not be read. The job goes on in this partition at `place`."""

    topic: str
    partition: int
    gone: int
    place: int


def look_at(kafka: Mapping[str, str], names: Iterable[str]) -> Kafka:
    """Ask a cluster about topics. MqtwinError: no broker answers, or it refuses."""
    from confluent_kafka import KafkaException

    admin = admin_client(kafka)
    try:
        metadata = admin.list_topics(timeout=TIMEOUT_SECONDS)
        found = {name: sorted(metadata.topics[name].partitions) for name in names if name in metadata.topics}
        ids = _ids(admin, list(found))
        topics = {name: KnownTopic(ids.get(name, ""), _places(admin, name, numbers)) for name, numbers in found.items()}
    except KafkaException as error:
        servers = kafka.get("bootstrap.servers", "")
        reason = error.args[0].str() if error.args and hasattr(error.args[0], "str") else str(error)
        raise MqtwinError(
            f"no Kafka answers at {servers}: {reason}; is the broker running, and is the address right?"
        ) from error
    return Kafka(str(metadata.cluster_id or ""), topics)


def _ids(admin: AdminClient, names: list[str]) -> dict[str, str]:
    """Return the ids of topics, as far as the broker tells them."""
    from confluent_kafka import KafkaException, TopicCollection

    if not names:
        return {}
    ids = {}
    for name, future in admin.describe_topics(TopicCollection(names), request_timeout=TIMEOUT_SECONDS).items():
        try:
            text = str(future.result().topic_id)
        except KafkaException:  # without an id the offsets alone decide
            continue
        if text not in _NO_ID:
            ids[name] = text
    return ids


def _places(admin: AdminClient, name: str, numbers: Iterable[int]) -> dict[int, Place]:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    ends = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
        places = {TopicPartition(name, number): spec for number in numbers}
        asked = admin.list_offsets(places, request_timeout=TIMEOUT_SECONDS)
        ends.append({place.partition: future.result().offset for place, future in asked.items()})
    low, high = ends
    return {number: Place(low[number], high[number]) for number in low}


def check_offsets(
    location: str,
    offsets: Offsets,
    known_ids: Mapping[str, str],
    cluster: str,
    kafka: Kafka,
    servers: str,
    *,
    tolerate: bool,
) -> list[Skip]:
    """Compare where the checkpoint goes on with what Kafka has; returns what the job will pass over.

    Args:
        location: the checkpoint, for errors.
        offsets: where its next batch begins.
        known_ids: the ids that its topics had; "" for one that is not known.
        cluster: the id that the cluster had, or "".
        kafka: what there is now.
        servers: the address of Kafka, for errors.
        tolerate: `--tolerate-data-loss`.

    Raises:
        UsageError: the job could not go on, or would count records twice or pass over new ones; with what to do.
    """
    if cluster and kafka.cluster and cluster != kafka.cluster:
        raise UsageError(
            f"checkpoint {location} belongs to the Kafka cluster {cluster}; {servers} is cluster {kafka.cluster}: "
            f"correct --bootstrap-servers, or {_NEW}"
        )
    skips = []
    for name, places in sorted(offsets.items()):
        topic = kafka.topics.get(name)
        if topic is None or _is_another(known_ids.get(name, ""), topic, places):
            skips += _begin_again(location, name, places, topic, servers, tolerate=tolerate)
            continue
        for partition, offset in sorted(places.items()):
            now = topic.places[partition]
            if offset < now.low:
                skips.append(Skip(name, partition, now.low - offset, now.low))
            elif offset > now.high:  # the same topic, cut back: a broker lost what it had acknowledged
                skips.append(Skip(name, partition, 0, now.high))
    if skips and not tolerate:
        raise UsageError(f"checkpoint {location}: {in_words(skips)}; --tolerate-data-loss goes on there")
    return skips


def _is_another(known_id: str, topic: KnownTopic, places: Mapping[int, int]) -> bool:
    """True if a topic is not the one that the offsets are of: by its id, or, without one, by its ends."""
    if any(partition not in topic.places for partition in places):
        return True
    if known_id and topic.id:
        return known_id != topic.id
    return any(offset > topic.places[partition].high for partition, offset in places.items())


def _begin_again(
    location: str, name: str, places: Mapping[int, int], topic: KnownTopic | None, servers: str, *, tolerate: bool
) -> list[Skip]:
    """Return what is passed over of a topic that is gone or was made anew. UsageError: it cannot be read rightly."""
    read = {partition: offset for partition, offset in places.items() if offset > 0}
    if not read and (topic is None or topic.places.keys() >= places.keys()):
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


def in_words(skips: Iterable[Skip]) -> str:
    """Return what is passed over, for one line."""
    return ", ".join(
        f"{skip.topic}/{skip.partition}: "
        + (f"{skip.gone:,} records were deleted before they were read" if skip.gone else "read records are gone")
        + f", the next one there is {skip.place}"
        for skip in skips
    )
