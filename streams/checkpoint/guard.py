"""The guard of a job's checkpoint, from the start of the job to its end.

A checkpoint on this machine is locked and checked before Spark starts, and before topics are created; any other one
(HDFS, S3) is reached through Spark's JVM, see `streams.checkpoint.remote`. Its offsets are compared with the records
that Kafka holds: Spark notices missing ones only in the middle of a batch. Where retention deleted them, the job can go
on with the first record that is left, and counts none twice. Where the topic was deleted and created again, or the
cluster is another one, the offsets refer to other records, which may have been counted already: such a topic is refused
unless it is empty. Where another record is at an offset than the one that was read there, Kafka was restored from a
backup and has grown past the place: that is refused, too. For operators: docs/recovery.md, Kafka has lost records.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, OffsetSpec

from streams.checkpoint.files import PARTITIONS, BatchLogs, Offsets
from streams.checkpoint.local_files import CheckpointFiles, drop_uncommitted_state
from streams.checkpoint.manifest import (
    Guard,
    LocalGuard,
    Manifest,
    changed_records,
    check_belongs,
    check_kinds,
    check_sound,
    format_findings,
    last_estate,
    local_directory,
    log_changed_estate,
    next_offsets,
    read_last,
    read_manifest,
)
from streams.kafka.admin import TIMEOUT_SECONDS, admin_client, list_offsets, no_answer, reason_of
from streams.kafka.topics import Topics
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATA_LOSS = "Some data may have been lost"  # start of the message of Spark's Kafka source
_NO_ID = ("", "AAAAAAAAAAAAAAAAAAAAAA")  # brokers before Kafka 2.8 have none
_NEW = (
    "name another --checkpoint (with --starting-offsets earliest), and send a MEASURE per store when it has caught up"
)

NOTE_SECONDS = 30.0  # between two looks at what was read
_NOTE_WAIT_SECONDS = 2.0  # for the answer of Kafka, which may be what the job ends for
_log = structlog.get_logger("mqtwin.stream")


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
    """Records that the job will not read. next_offset: the offset at which it continues in the partition."""

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
    """Compare the offsets of a checkpoint with Kafka and return the records that the job will skip. Ids are those of
    the last start, "" if unknown. UsageError: the job could not go on, or would count records twice or skip new ones;
    the message has a remedy.
    """
    if cluster and kafka.cluster and cluster != kafka.cluster:
        raise UsageError(
            f"checkpoint {location} belongs to the Kafka cluster {cluster}; {servers} is cluster {kafka.cluster}: "
            f"correct --bootstrap-servers, or {_NEW}"
        )
    skips = []
    for name, next_by_partition in sorted(offsets.items()):
        topic = kafka.topics.get(name)
        if topic is None or _is_another_topic(known_ids.get(name, ""), topic, next_by_partition):
            skips += _skip_topic(location, name, next_by_partition, topic, servers, tolerate=tolerate)
            continue
        for partition, offset in sorted(next_by_partition.items()):
            records = topic.ranges[partition]
            if offset < records.low:
                skips.append(Skip(name, partition, records.low - offset, records.low))
            elif offset > records.high:  # a broker lost records of the same topic that it had acknowledged
                skips.append(Skip(name, partition, 0, records.high))
    if skips and not tolerate:
        raise UsageError(f"checkpoint {location}: {format_skips(skips)}; --tolerate-data-loss continues there")
    return skips


def _is_another_topic(known_id: str, topic: TopicState, next_by_partition: Mapping[int, int]) -> bool:
    """Return True if the offsets are not of this topic, by its id or, without one, by its ends."""
    if any(partition not in topic.ranges for partition in next_by_partition):
        return True
    if known_id and topic.id:
        return known_id != topic.id
    return any(offset > topic.ranges[partition].high for partition, offset in next_by_partition.items())


def _skip_topic(
    location: str,
    name: str,
    next_by_partition: Mapping[int, int],
    topic: TopicState | None,
    servers: str,
    *,
    tolerate: bool,
) -> list[Skip]:
    """Return the skips of a topic that does not exist any more or was created again. UsageError: it is refused."""
    read = {partition: offset for partition, offset in next_by_partition.items() if offset > 0}
    if not read and (topic is None or topic.ranges.keys() >= next_by_partition.keys()):
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


class CheckpointGuard:
    """The guard of a checkpoint, wherever it is. `tolerate`: the job continues behind records that Kafka deleted."""

    def __init__(
        self,
        location: str,
        *,
        estate: Estate,
        topics: Topics,
        conf: Mapping[str, str],
        client: Mapping[str, str],
        tolerate: bool,
    ) -> None:
        self._location, self._estate, self._topics, self._conf, self._client = location, estate, topics, conf, client
        self._tolerate = tolerate
        self._guard: Guard | None = None
        self._has_started = False
        self._noted: Offsets = {}  # the offsets of the last look at what was read
        self._next_note_s = 0.0
        self.is_local = local_directory(location) is not None

    def claim(self) -> None:
        """Lock and check a checkpoint on this machine, or check the scheme of any other one. UsageError: refused."""
        directory = local_directory(self._location)
        if directory is None:
            from streams.checkpoint.remote import check_scheme

            check_scheme(self._location, self._conf)
        else:
            self._guard = LocalGuard(directory)
            self._check(self._guard)

    def claim_through(self, session: SparkSession) -> None:
        """Lease and check a checkpoint that is not on this machine. UsageError: refused."""
        if self._guard is None:
            from streams.checkpoint.remote import RemoteGuard

            self._guard = RemoteGuard(self._location, session)
            self._check(self._guard)

    def _check(self, guard: Guard) -> None:
        files, manifest = guard.files, guard.manifest
        if not files.has_begun:
            return  # a manifest may be left of a start that failed before its first batch
        check_belongs(self._location, manifest, files, self._topics, self._conf)
        if isinstance(files, CheckpointFiles):
            check_sound(self._location, files)
        check_kinds(self._location, manifest, self._estate)
        known = manifest.estates if manifest is not None else ()
        log_changed_estate(manifest, self._estate, last_estate(files.folder, known))
        offsets = next_offsets(self._location, files)
        skips = check_offsets(
            self._location,
            offsets,
            manifest.topics if manifest is not None else {},
            manifest.cluster if manifest is not None else "",
            describe_cluster(self._client, offsets),
            self._client.get("bootstrap.servers", ""),
            tolerate=self._tolerate,
        )
        changed = changed_records(self._client, manifest.read) if manifest is not None else []
        if changed and not self._tolerate:
            raise UsageError(
                f"checkpoint {self._location}: {', '.join(changed)}: Kafka lost records that were read, as after a "
                f"restore from a backup, and has others in their places: {_NEW}; --tolerate-data-loss continues at "
                "the next offset, and what is before it is not read"
            )
        for text in changed:
            _log.warning("data loss", why=text, effect="new records before the next offset are not read")
        for skip in skips:
            _log.warning(
                "data loss",
                topic=skip.topic,
                partition=skip.partition,
                gone=skip.deleted_records,
                goes_on_at=skip.next_offset,
                effect="what these records would have changed is missing; no record is counted twice",
            )

    def note_start(self, partitions: int) -> int:
        """Write the manifest of this start, and make way for a batch that will be run again. Return the partitions of
        the state: `partitions`, if it is new.
        """
        if self._guard is None:
            return partitions
        if isinstance(self._guard.files, CheckpointFiles):
            drop_uncommitted_state(self._guard.files)
        newest = self._guard.files.newest
        partitions = int((newest[1].get(PARTITIONS) if newest is not None else None) or partitions)
        kafka = describe_cluster(self._client, self._topics.read)
        begin = next_offsets(self._location, self._guard.files).get(self._topics.events, {})
        self._guard.write(
            Manifest.of_this_start(
                self._estate,
                self._topics,
                kafka.ids,
                kafka.cluster,
                partitions,
                self._guard.manifest if self._guard.files.has_begun else None,
                self._guard.note_estate(self._estate, begin),
            )
        )
        self._has_started = True
        return partitions

    def note_read(self, *, is_end: bool = False) -> None:
        """Note in the manifest the last record that was read of each partition, if it is time to.

        A failure leaves what was noted before, which is older and as true. At the end of the job note what was read
        since the last time.
        """
        guard, now_s = self._guard, time.monotonic()
        if guard is None or guard.manifest is None or not self._has_started or guard.taken_by:
            return
        if now_s < self._next_note_s and not is_end:
            return
        self._next_note_s = now_s + NOTE_SECONDS
        with suppress(MqtwinError, KafkaException, OSError):
            offsets = next_offsets(self._location, BatchLogs(guard.files.folder))
            if offsets == self._noted:
                return
            read = read_last(self._client, offsets, _NOTE_WAIT_SECONDS)
            if read:
                guard.write(msgspec.structs.replace(guard.manifest, read={**guard.manifest.read, **read}))
            self._noted = offsets

    def note_skipped(self, place: str) -> None:
        """Remember, for readers of the past, a record that the job leaves out. UsageError: it cannot be written."""
        if self._guard is not None and self._guard.manifest is not None:
            self._guard.write(self._guard.manifest.with_skipped(place))

    def check_held(self) -> None:
        """Check that the checkpoint still belongs to this job. MqtwinError: another job has taken it."""
        if self._guard is not None and self._guard.taken_by:
            raise MqtwinError(
                f"checkpoint {self._location}: another mqtwin stream has taken it ({self._guard.taken_by}): this one "
                "did not renew its lease in time"
            )

    def explain(self, failure: str) -> str:
        """Return a failure of the query as one line, with its cause if that is in the checkpoint or in Kafka."""
        if _DATA_LOSS in failure:
            return (
                "Kafka deleted records before they were read, or the topic; started again, the job says which records, "
                "and what to do"
            )
        directory = local_directory(self._location)
        text = format_findings(CheckpointFiles(directory).check(thorough=False)) if directory is not None else ""
        return f"{failure}; checkpoint {self._location} is damaged: {text}" if text else failure

    def release(self) -> None:
        """Release the checkpoint for other jobs."""
        if self._guard is not None:
            self.note_read(is_end=True)
            self._guard.release()
            self._guard = None


def open_stopped(directory: Path) -> tuple[CheckpointFiles, Manifest | None]:
    """Return the files and the manifest of a checkpoint, for commands that only read. UsageError: it is not one."""
    if not directory.is_dir():
        raise UsageError(
            f"{directory}: there is no such directory; expected: the --checkpoint of a job on this machine"
        )
    files = CheckpointFiles(directory)
    if not files.has_begun and not (directory / "state").is_dir():
        raise UsageError(f"{directory} is no checkpoint; expected: a directory with metadata, offsets and commits")
    return files, read_manifest(files.folder)
