"""Lock and manifest of a checkpoint, the estates of its job, and the checks that refuse one that the job cannot use.

- Beside Spark's files there are three more: the manifest ``mqtwin.json``, which names the job's topics, estates and
  versions; ``mqtwin.lock``, locked (flock) while a job runs; and ``estates/DIGEST``, the text of each estate that the
  job has had. The manifest says from which offsets of the events topic on each applied, for questions of the past.
- The checks run before Spark starts, take a fraction of a second, and refuse with one line.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import shlex
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import msgspec
import structlog
from confluent_kafka import Message, TopicPartition
from typing_extensions import override

from streams.checkpoint.files import LOCK, MANIFEST, PARTITIONS, BatchLogs, DamagedFileError, Folder, Offsets
from streams.checkpoint.local_files import CheckpointFiles, Finding
from streams.kafka.clients import LastError, is_end, new_consumer
from streams.kafka.topics import Topics
from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError
from twin.estate import Estate
from twin.estate.routes import SavedEstateError, read_saved_estate, save_estate
from twin.stores.headers import READ_FORMATS, STATE_FORMAT

# --- the last record read of each partition ---------------------------------------------------------------------------
# It is known by its time and digest. Offsets alone do not show that Kafka was restored from a backup and has grown past
# the place since: other records are at the offsets then, some of which are behind the place and some before it.

SECONDS = 5.0  # until what has not come is left out
_GROUP = "spark-kafka-mqtwin-sample"  # the user has rights for it, see `streams.query.preflight`
_SETTINGS = {"group.id": _GROUP, "enable.partition.eof": True, "auto.offset.reset": "latest"}
_BACK = (1, 50)  # offsets before the next one: the last may be the mark of a transaction


class ReadRecord(msgspec.Struct, frozen=True):
    """A record that was read. time_ms: when it was written, milliseconds since 1970; -1: it has no time."""

    offset: int
    time_ms: int
    digest: str


LastRead = dict[str, dict[int, ReadRecord]]
"""Records by topic and partition."""


def read_last(kafka: Mapping[str, str], offsets: Offsets, seconds: float = SECONDS) -> LastRead:
    """Return the last record before the given offsets of each partition, as far as Kafka has it and answers. What has
    not come within `seconds` is left out.
    """
    last: LastRead = {}
    for back in _BACK:
        begins = {
            (topic, number): (max(0, offset - back), offset)
            for topic, own in offsets.items()
            for number, offset in own.items()
            if offset > 0 and number not in last.get(topic, {})
        }
        for (topic, number), record in _fetch(kafka, begins, seconds).items():
            last.setdefault(topic, {})[number] = record
    return last


def changed_records(kafka: Mapping[str, str], read: Mapping[str, Mapping[int, ReadRecord]]) -> list[str]:
    """Return a text for each partition that has another record where one was read; of what does not answer none."""
    places = {
        (topic, number): (record.offset, record.offset + 1)
        for topic, own in read.items()
        for number, record in own.items()
    }
    texts = []
    for (topic, number), now in sorted(_fetch(kafka, places, SECONDS).items()):
        before = read[topic][number]
        if now.offset == before.offset and now != before:
            texts.append(f"{topic}/{number}: another record than the one that was read is at offset {now.offset:,}")
    return texts


def _fetch(
    kafka: Mapping[str, str], places: Mapping[tuple[str, int], tuple[int, int]], seconds: float
) -> dict[tuple[str, int], ReadRecord]:
    """Return the last record in a range of offsets of each partition; of those that come in time."""
    records: dict[tuple[str, int], ReadRecord] = {}
    if not places:
        return records
    consumer = new_consumer(kafka, _SETTINGS, LastError())
    try:
        consumer.assign([TopicPartition(topic, number, begin) for (topic, number), (begin, _) in places.items()])
        awaited, deadline_s = set(places), time.monotonic() + seconds
        while awaited and (left_s := deadline_s - time.monotonic()) > 0:
            message = consumer.poll(left_s)
            if message is None:
                break
            place, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
            if message.error() is not None:
                if is_end(message):
                    awaited.discard(place)
                continue
            begin, end = places.get(place, (0, 0))
            if begin <= offset < end:
                records[place] = _record(message)
            if offset + 1 >= end:
                awaited.discard(place)
    finally:
        consumer.close()
    return records


def _record(message: Message) -> ReadRecord:
    _, time_ms = message.timestamp()
    parts = (message.key(), message.value())
    digest = hashlib.sha256(msgspec.msgpack.encode([part if isinstance(part, bytes) else None for part in parts]))
    return ReadRecord(message.offset() or 0, time_ms, digest.hexdigest()[:32])


# --- lock, manifest, checks -------------------------------------------------------------------------------------------

_MAX_FINDINGS = 3  # per error message
_MAX_SKIPPED = 1_000  # places of records that are remembered
WRITABLE = "expected: a folder that the job can write"
_ESTATES = "estates"  # folder of their texts
_MAX_ESTATES = 200  # that are remembered

EventOffsets = Mapping[int, int]  # partition of the events topic -> offset of the next record

_log = structlog.get_logger("mqtwin.stream")


class EstateSince(msgspec.Struct, frozen=True, kw_only=True):
    """An estate of a job. begin: offsets of the events that it first applied to; empty: the first of the job."""

    digest: str
    begin: dict[int, int]


class Stretch(NamedTuple):
    """Events to which one estate applied."""

    begin: EventOffsets  # first offset of each partition; of others it is their first one
    end: EventOffsets | None  # first offset behind it; None: it goes to the end of the topic
    digest: str  # of the estate; "": the job did not keep it
    estate: Estate | None  # None: it cannot be read


def note_estate(
    folder: Folder, estate: Estate, begin: EventOffsets, before: Sequence[EstateSince]
) -> tuple[EstateSince, ...]:
    """Keep the estate of a job that starts, and return all that it has had. OSError: it cannot be written."""
    digest, data = save_estate(estate)
    name = f"{_ESTATES}/{digest}"
    if not folder.exists(name):
        folder.write(name, data)
    if before and before[-1].digest == digest:
        return tuple(before)
    applied = [own for own in before if own.begin != begin]  # one whose job has processed nothing did not apply
    if applied and applied[-1].digest == digest:
        return tuple(applied)
    return (*applied, EstateSince(digest=digest, begin=dict(begin)))[-_MAX_ESTATES:]


def last_estate(folder: Folder, known: Sequence[EstateSince]) -> Estate | None:
    """Return the estate of the last start; None if it is not kept, or cannot be read. known: those of the job."""
    return _read_estate(folder, known[-1].digest) if known else None


def stretches_from(folder: Folder, known: Sequence[EstateSince], begin: EventOffsets) -> list[Stretch]:
    """Return the stretches of the events from some offsets on, in order, one at least.

    Where they begin at a change, the first stretch is the empty one before it: a store that has no event behind a
    change is as the estate before left it. Without `begin`, the offsets between two batches, they begin with the topic.
    """
    starts = [(own.digest, own.begin) for own in known]
    if not starts or starts[0][1]:
        starts.insert(0, ("", {}))  # a version that kept none
    first = max(
        place
        for place, (_, own) in enumerate(starts)
        if place == 0 or any(offset > own.get(partition, 0) for partition, offset in begin.items())
    )
    ends: list[EventOffsets | None] = [own for _, own in starts[first + 1 :]]
    begins = [begin, *(own for _, own in starts[first + 1 :])]
    return [
        Stretch(own, end, digest, _read_estate(folder, digest))
        for own, end, (digest, _) in zip(begins, [*ends, None], starts[first:], strict=True)
    ]


def _read_estate(folder: Folder, digest: str) -> Estate | None:
    if not digest:
        return None
    name = f"{_ESTATES}/{digest}"
    try:
        return read_saved_estate(folder.read(name), f"{folder.location}/{name}")
    except (OSError, SavedEstateError):
        return None


class Owner(msgspec.Struct, frozen=True):
    """The process that runs a job on a checkpoint. since: wall-clock time of its start, ISO 8601."""

    pid: int
    host: str
    since: str

    @classmethod
    def this_process(cls) -> Owner:
        """Return this process as an owner."""
        return cls(os.getpid(), socket.gethostname(), _now())

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host} since {self.since}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `mqtwin.json`: the job that a checkpoint belongs to, as of its last start. Ids of the topics and
    the cluster are Kafka's, "" if unknown; `estate` is a digest; `skipped` has the records that were left out by
    --skip, TOPIC/PARTITION/OFFSET. `kinds` includes stores that the estate no longer describes. Release 0.1.0 wrote
    neither `kinds` nor `estates`, 1.0 no `read`.
    """

    mqtwin: str
    pyspark: str
    state_format: str
    prefix: str
    topics: dict[str, str]
    cluster: str
    estate: str
    stores: list[str]
    partitions: int
    written: str
    kinds: dict[str, str] = {}
    estates: tuple[EstateSince, ...] = ()
    skipped: tuple[str, ...] = ()
    read: LastRead = {}
    format: int = 1

    def skipped_of(self, topic: str) -> frozenset[tuple[int, int]]:
        """Return (partition, offset) of the records of a topic that were left out by --skip."""
        places = (place.rsplit("/", 2) for place in self.skipped)
        return frozenset((int(partition), int(offset)) for name, partition, offset in places if name == topic)

    def with_skipped(self, place: str) -> Manifest:
        """Return the manifest with one more record that is left out."""
        skipped = (*(own for own in self.skipped if own != place), place)
        return msgspec.structs.replace(self, skipped=skipped[-_MAX_SKIPPED:])

    @classmethod
    def of_this_start(
        cls,
        estate: Estate,
        topics: Topics,
        ids: Mapping[str, str],
        cluster: str,
        partitions: int,
        before: Manifest | None = None,
        estates: Sequence[EstateSince] = (),
    ) -> Manifest:
        """Return the manifest of a job that starts now."""
        kinds = before.kinds if before is not None else {}
        return cls(
            mqtwin=importlib.metadata.version("mqtwin"),
            pyspark=importlib.metadata.version("pyspark"),
            state_format=STATE_FORMAT,
            prefix=topics.prefix,
            topics={name: ids.get(name, "") for name in topics.read},
            cluster=cluster,
            estate=save_estate(estate)[0],
            stores=sorted(estate.stores),
            partitions=partitions,
            written=_now(),
            kinds={**kinds, **{name: store.kind for name, store in sorted(estate.stores.items())}},
            estates=tuple(estates),
            skipped=before.skipped if before is not None else (),
            read=before.read if before is not None else {},
        )


def local_directory(location: str) -> Path | None:
    """Return the directory of a checkpoint on this machine (no scheme, or ``file``); None for any other."""
    parts = urlparse(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(location) if not parts.scheme else None


def read_manifest(folder: Folder) -> Manifest | None:
    """Read `mqtwin.json`; None where it was removed. UsageError: unreadable."""
    name = f"{folder.location}/{MANIFEST}"
    try:
        return msgspec.json.decode(folder.read(MANIFEST), type=Manifest)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}; expected: a file that this user can read") from error
    except UNREADABLE as error:
        raise UsageError(
            f"{name}: {error}; remove it if the checkpoint is yours: the next start writes it anew"
        ) from error


def running_job(directory: Path) -> Owner | None:
    """Return the owner of a checkpoint on this machine; None if no job runs on it."""
    path = directory / LOCK
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_owner(file)
    finally:
        os.close(file)
    return None


class Guard(ABC):
    """The exclusive use of a checkpoint by this process, until `release`."""

    taken_by = ""  # the job that has taken the checkpoint from this one; empty if none has

    def __init__(self, files: BatchLogs) -> None:
        self.files = files
        self.manifest = read_manifest(files.folder)

    def write(self, manifest: Manifest) -> None:
        """Write the manifest; a reader sees the previous or the new one. UsageError: it cannot be written."""
        with self._writing():
            self.files.folder.write(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
        self.manifest = manifest

    def note_estate(self, estate: Estate, begin: EventOffsets) -> tuple[EstateSince, ...]:
        """Keep the estate of this start; return all of the job, in order. UsageError: it cannot be written."""
        before = self.manifest.estates if self.manifest is not None and self.files.has_begun else ()
        with self._writing():
            return note_estate(self.files.folder, estate, begin, before)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or error
            location = self.files.folder.location
            raise UsageError(f"checkpoint {location} cannot be written: {why}; {WRITABLE}") from error

    @abstractmethod
    def release(self) -> None:
        """Release the checkpoint for other jobs."""


class LocalGuard(Guard):
    """The guard of a checkpoint in a directory of this machine; its lock is held as long as its process lives. The
    directory is created if it is missing. UsageError: it cannot be created or written, or another job runs on it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._is_new = not directory.exists()
        self._lock = _lock(directory)
        try:
            super().__init__(CheckpointFiles(directory))
        except BaseException:
            self.release()
            raise

    @override
    def release(self) -> None:
        """Release the lock, and remove a new directory if the job did not start."""
        if self._lock < 0:
            return
        if self._is_new and [path.name for path in self._directory.glob("*")] == [LOCK]:
            with contextlib.suppress(OSError):  # an empty directory may stay
                (self._directory / LOCK).unlink()
                self._directory.rmdir()
        os.close(self._lock)
        self._lock = -1


def check_belongs(
    location: str, manifest: Manifest | None, files: BatchLogs, topics: Topics, conf: Mapping[str, str]
) -> None:
    """Refuse a checkpoint with other topics, another format of state, or other frozen settings of Spark. UsageError."""
    check_readable(location, manifest)
    check_ended(location, files)
    newest = files.newest
    read_topics = newest[0] if newest is not None else manifest.topics if manifest is not None else {}
    if read_topics and topics.events not in read_topics:
        events = next((name for name in read_topics if name.endswith(".events")), ", ".join(sorted(read_topics)))
        raise UsageError(
            f"checkpoint {location} belongs to topic {events}, not {topics.events}: "
            f"give --topic-prefix {events.removesuffix('.events')}, or name another --checkpoint"
        )
    others = sorted(set(read_topics) - set(topics.read))
    if others:
        raise UsageError(
            f"checkpoint {location} has read topic {', '.join(others)} too, and holds spans of it: "
            f"give --otlp-topic {others[0]}, or name another --checkpoint"
        )
    frozen = newest[1] if newest is not None else {}
    for key, value in conf.items():
        if key in frozen and frozen[key] != value:
            command = f"mqtwin checkpoint repartition {shlex.quote(location)} --partitions {shlex.quote(value)}"
            rescale = f", run `{command}`" if key == PARTITIONS else ""
            raise UsageError(
                f"--conf {key}={value}: checkpoint {location} was begun with {frozen[key]}, which no restart changes: "
                f"leave the setting out{rescale}, or name another --checkpoint"
            )


def check_readable(location: str, manifest: Manifest | None) -> None:
    """Refuse state of a format that is not read. UsageError: the message has a remedy."""
    if manifest is not None and manifest.state_format not in READ_FORMATS:
        raise UsageError(
            f"checkpoint {location} has state of format {manifest.state_format}, written by mqtwin {manifest.mqtwin}; "
            f"this mqtwin ({importlib.metadata.version('mqtwin')}) reads format {' and '.join(READ_FORMATS)}: "
            f"install mqtwin {manifest.mqtwin}, or name another --checkpoint"
        )


def check_ended(location: str, files: BatchLogs) -> None:
    """Refuse a checkpoint whose repartition has not ended. UsageError: the message has the command that ends it."""
    try:
        partitions = files.unfinished_partitions
    except (DamagedFileError, OSError):  # `check_sound` reports it
        return
    if partitions is not None:
        raise UsageError(
            f"checkpoint {location}: its repartition to {partitions} state partitions has not ended: "
            f"`mqtwin checkpoint repartition {shlex.quote(location)} --partitions {partitions}` ends it"
        )


def check_kinds(location: str, manifest: Manifest | None, estate: Estate) -> None:
    """Refuse an estate in which the kind of a store has changed. UsageError: names the store and both kinds."""
    for name, before in (manifest.kinds if manifest is not None else {}).items():
        now = estate.stores[name].kind if name in estate.stores else before
        if now != before:
            raise UsageError(
                f"checkpoint {location} has state of {name} as a {_words(before)}; the estate describes a {_words(now)}"
                ": give the new store another name, or name another --checkpoint"
            )


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def check_sound(location: str, files: CheckpointFiles) -> None:
    """Refuse a damaged checkpoint. UsageError: names the file and the remedy."""
    findings = files.check(thorough=False)
    for finding in findings:
        if not finding.is_blocking:
            _log.warning("checkpoint", path=finding.path, problem=finding.problem, remedy=finding.remedy)
    text = format_findings(findings)
    if text:
        raise UsageError(f"checkpoint {location} is damaged: {text}")


def log_changed_estate(manifest: Manifest | None, estate: Estate, before: Estate | None = None) -> None:
    """Log the stores and queue managers that the checkpoint knows and the estate no longer describes. The estate of its
    last start, `before`, may be unknown.
    """
    removed = sorted(set(manifest.stores) - set(estate.stores)) if manifest is not None else []
    if removed:
        _log.warning(
            "stores are no longer described",
            stores=removed,
            effect="their events become dead letters; what they held stays in the checkpoint",
        )
    for name, store in sorted(estate.stores.items()):
        known = before.stores.get(name) if before is not None else None
        left = sorted(set(known.queue_managers) - set(store.queue_managers)) if known is not None else []
        if left:
            _log.warning(
                "queue managers are no longer described",
                store=name,
                queue_managers=left,
                effect="their events become dead letters, commits too; what they put stays, their data sets keep their "
                "size, and units of work that are open stay so",
            )


def next_offsets(location: str, files: BatchLogs) -> Offsets:
    """Return the start offsets of the next batch. UsageError: the file that holds them is damaged."""
    try:
        return files.next_offsets()
    except (DamagedFileError, OSError) as error:
        raise UsageError(f"checkpoint {location}: its last offsets file {error}") from error


def format_findings(findings: list[Finding]) -> str:
    """Return the findings that stop the job on one line; empty if there are none."""
    blocking = [finding for finding in findings if finding.is_blocking]
    text = " | ".join(str(finding) for finding in blocking[:_MAX_FINDINGS])
    rest = len(blocking) - _MAX_FINDINGS
    return f"{text} | and {rest} more: `mqtwin checkpoint check` lists them" if rest > 0 else text


def _lock(directory: Path) -> int:
    """Lock a checkpoint for this process and return the file descriptor that holds the lock."""
    try:
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"checkpoint {directory} is a file; expected: a directory, or a path that is free")
        directory.mkdir(parents=True, exist_ok=True)
        file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(
            f"checkpoint {directory} cannot be written: {error.strerror}; expected: a directory of this user, "
            "on a disk with room"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(file, 0)
        os.write(file, msgspec.json.encode(Owner.this_process()) + b"\n")
    except BlockingIOError:
        owner = _read_owner(file)
        os.close(file)
        raise UsageError(
            f"checkpoint {directory}: another mqtwin stream runs on it ({owner}): stop it, or name another --checkpoint"
        ) from None
    except OSError as error:
        os.close(file)
        raise UsageError(f"checkpoint {directory} cannot be written: {error.strerror}; {WRITABLE}") from error
    return file


def _read_owner(file: int) -> Owner:
    try:
        return msgspec.json.decode(os.pread(file, 4096, 0), type=Owner)
    except UNREADABLE:  # its owner has just opened it
        return Owner(0, "unknown host", "a moment ago")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
