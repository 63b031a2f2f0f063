"""Changed checkpoints: a copy that works in another place, and the way past a record that ends the job.

A copy works in another folder, with topics of other names, or with another cluster. Of Spark's files the metadata of
the stateful operator name the folder of the checkpoint, as a URI, and the offsets name the topics; the manifest names
topics, their ids and the cluster. Everything else is copied as it is, and the original is only read. Where the copy
forgets ids of Kafka, the job still compares the last record that was read with the one at its offset
(`streams.checkpoint.manifest`).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlparse

import msgspec
import structlog
from confluent_kafka import TopicPartition

from streams.checkpoint.files import LOCK, MANIFEST, DamagedFileError, Folder, parse_initial_offsets, parse_offsets
from streams.checkpoint.guard import open_stopped
from streams.checkpoint.local_files import OPERATORS, CheckpointFiles, LocalFolder, path_of
from streams.checkpoint.manifest import Manifest, check_ended, check_readable, format_findings, running_job
from streams.kafka.clients import CONNECT_SECONDS, LastError, check, new_consumer
from streams.kafka.dead_letters import DeadLetter, LetterSender
from streams.kafka.topics import Topics
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError, UsageError
from twin.events import Reason

_HOME = re.compile(r'"(?P<home>[^"]+?)/+state/0/_stateSchema/')  # in the operator's metadata
_SNAPSHOTS = ("", "snapshots/*/")


@dataclass(frozen=True, slots=True)
class Relocation:
    """The differences between a checkpoint and its copy."""

    homes: tuple[str, str]  # URI of the folder, before and after
    topics: Mapping[str, str]  # names before -> after, of those that change
    files: int  # number of files that were rewritten
    has_forgotten: bool  # the copy knows neither the cluster nor the ids of the topics
    is_checked: bool  # the job can compare the last record that was read


def relocate(
    directory: Path,
    target: Path,
    *,
    home: str | None = None,
    prefix: str | None = None,
    otlp_topic: str | None = None,
    other_cluster: bool = False,
) -> Relocation:
    """Copy the checkpoint of a stopped job, and return what the copy has that the original has not. Without `home` the
    job will find the copy at the target, which must not exist yet; topics without a new name keep theirs. UsageError: a
    job runs on it, it is damaged or of a format that is not read, or the copy cannot be written.

    Args:
        other_cluster: the topics are in another cluster, with the same records at the same offsets.
    """
    files, manifest = open_stopped(directory)
    location = str(directory)
    check_readable(location, manifest)
    check_ended(location, files)
    if os.path.lexists(target):
        raise UsageError(f"--output {target} is there already; expected: a name that is free")
    if target.resolve().is_relative_to(directory.resolve()):
        raise UsageError(f"--output {target} is in the checkpoint itself; expected: a folder beside it")
    names = _renamed(files, manifest, prefix, otlp_topic)
    after = _uri(home) if home is not None else _uri(str(target))
    with _stopped(directory), _draft(target) as draft:
        _copy(directory, draft)
        before, count = _rewrite_homes(draft, after)
        count += _rewrite_offsets(draft, names) if names else 0
        has_forgotten = other_cluster or bool(names)
        if manifest is not None:
            new = _manifest_of(manifest, names, prefix, other_cluster=other_cluster)
            LocalFolder(draft).write(MANIFEST, msgspec.json.format(msgspec.json.encode(new), indent=1) + b"\n")
            count += new != manifest
        _check_copy(location, draft, before, after)
    is_checked = manifest is not None and bool(manifest.read)
    return Relocation((before or after, after), names, count, has_forgotten, is_checked)


def _renamed(
    files: CheckpointFiles, manifest: Manifest | None, prefix: str | None, otlp_topic: str | None
) -> dict[str, str]:
    """Return the names of topics that change, before -> after. UsageError: they are not known, or would be one."""
    read = tuple(files.newest[0] if files.newest is not None else manifest.topics if manifest is not None else ())
    events = next((name for name in read if name.endswith(".events")), None)
    if events is None and (prefix is not None or otlp_topic is not None):
        raise UsageError(f"checkpoint {files.directory} names no topics yet; expected: neither prefix nor topic")
    before = Topics((events or "").removesuffix(".events"))
    names = {}
    if prefix is not None:
        own = Topics(prefix)
        names = {before.events: own.events, before.reports: own.reports}
    if otlp_topic is not None:
        others = [name for name in read if name not in before.read]
        if len(others) != 1:
            raise UsageError(
                f"--otlp-topic {otlp_topic}: the checkpoint has no topic of spans; expected: no such option"
            )
        names[others[0]] = otlp_topic
    after = [names.get(name, name) for name in read]
    if len(set(after)) < len(after):
        raise UsageError(f"two topics would have the name {max(after, key=after.count)}; expected: a name for each")
    return {old: new for old, new in names.items() if old != new}


@contextmanager
def _stopped(directory: Path) -> Iterator[None]:
    """Keep jobs from the checkpoint meanwhile; its lock is not changed. UsageError: one runs, or it cannot be read."""
    owner = running_job(directory)
    try:
        file = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # no job has run here, as in a copy of a copy
        yield
        return
    except OSError as error:
        raise UsageError(
            f"{directory / LOCK}: {error.strerror}; expected: a checkpoint that this user can read"
        ) from None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise UsageError(f"checkpoint {directory}: a job runs on it ({owner}); expected: one that is stopped") from None
    try:
        yield
    finally:
        os.close(file)


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """Yield a folder beside the target, which becomes the target in the end. UsageError: it cannot be written."""
    draft: Path | None = None
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".mqtwin-", suffix=".new", dir=target.absolute().parent))
        yield draft
        draft.rename(target)
        draft = None
    except shutil.Error as error:
        raise UsageError(
            f"--output {target}: {error.args[0][0][2]}; expected: a folder that may be written, with room"
        ) from None
    except OSError as error:
        raise UsageError(
            f"--output {target}: {error.strerror or error}; expected: a folder that may be written, with room"
        ) from None
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def _copy(directory: Path, draft: Path) -> None:
    """Copy all files but the lock. Files that are links of one another, as those of snapshots, stay so."""
    copied: dict[tuple[int, int], str] = {}

    def copy(source: str, to: str) -> str:
        status = Path(source).stat()
        first = copied.setdefault((status.st_dev, status.st_ino), to)
        if first != to:
            with suppress(OSError):  # a file system without links
                os.link(first, to)
                return to
        return str(shutil.copy2(source, to))

    shutil.copytree(directory, draft, ignore=shutil.ignore_patterns(LOCK), copy_function=copy, dirs_exist_ok=True)


def _rewrite_homes(draft: Path, after: str) -> tuple[str, int]:
    """Have the metadata of the operator name another folder; return the folder before, and the number of files."""
    before, count = "", 0

    def moved(match: re.Match[str]) -> str:
        nonlocal before
        before = match["home"]
        return f'"{after}/state/0/_stateSchema/'

    for path in _all(draft, f"{OPERATORS}/[0-9]*"):
        count += _rewrite(draft, path, lambda text: _HOME.sub(moved, text))
    return before, count


def _rewrite_offsets(draft: Path, names: Mapping[str, str]) -> int:
    """Have the offsets name other topics; return the number of files. Damaged ones stay as they are."""

    def renamed(text: str) -> str:
        head, line, last = text.rpartition("\n")
        try:
            offsets = msgspec.json.decode(last, type=dict[str, dict[str, int]])
        except UNREADABLE:
            return text
        own = {names.get(topic, topic): partitions for topic, partitions in offsets.items()}
        return f"{head}{line}{msgspec.json.encode(own).decode()}"

    paths = [*_all(draft, "offsets/[0-9]*"), *_all(draft, "sources/0/[0-9]*")]
    return sum(_rewrite(draft, path, renamed) for path in paths)


def _all(draft: Path, pattern: str) -> list[Path]:
    return [path for place in _SNAPSHOTS for path in sorted(draft.glob(place + pattern))]


def _rewrite(draft: Path, path: Path, change: Callable[[str], str]) -> bool:
    """Replace the text of a file; return False if nothing changes, or if it is no text."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    changed = change(text)
    if changed != text:
        LocalFolder(draft).write(str(path.relative_to(draft)), changed.encode())
    return changed != text


def _manifest_of(manifest: Manifest, names: Mapping[str, str], prefix: str | None, *, other_cluster: bool) -> Manifest:
    """Return the manifest of the copy. A topic of another name, or of another cluster, has an id that is not known."""
    places = [place.rsplit("/", 2) for place in manifest.skipped]
    return msgspec.structs.replace(
        manifest,
        prefix=manifest.prefix if prefix is None else prefix,
        topics={
            names.get(topic, topic): "" if other_cluster or topic in names else topic_id
            for topic, topic_id in manifest.topics.items()
        },
        cluster="" if other_cluster else manifest.cluster,
        skipped=tuple("/".join((names.get(topic, topic), *rest)) for topic, *rest in places),
        read={names.get(topic, topic): own for topic, own in manifest.read.items()},
    )


def _check_copy(location: str, draft: Path, before: str, after: str) -> None:
    """Check the copy where it is, whatever folder it names. UsageError: it is damaged, and so is the original."""
    if (draft / "state" / "0").is_dir() and not before:
        raise UsageError(
            f"checkpoint {location}: {OPERATORS} names no folder; expected: metadata of Spark 4.2 or later"
        )
    home = path_of(after)
    findings = CheckpointFiles(draft).check(thorough=True)
    if text := format_findings([own for own in findings if f"names {home}/" not in own.problem]):
        raise UsageError(f"checkpoint {location} is damaged: {text}")
    for path in CheckpointFiles(draft).read_operator().schema_files if before else ():
        name = path.relative_to(home)
        if not (draft / name).is_file():
            raise UsageError(f"checkpoint {location} is damaged: {name} is missing; expected: a whole copy")


def _uri(place: str) -> str:
    if urlparse(place).scheme:
        return place.rstrip("/")
    return f"file:{quote(str(Path(place).resolve()))}"


# --- past a record that ends the job at every start -------------------------------------------------------------------
# The offsets of the checkpoint are moved over it. Spark reads ranges of offsets. A planned batch with the record in its
# range is cut to end before it, and once the record is the first of the next batch, that batch begins behind it. So no
# other record is left out.

_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})/(?P<partition>\d+)/(?P<offset>\d+)")
_DETAIL = "the record has a time that Spark cannot read, or ends the job otherwise; left out by --skip"
_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record."""

    topic: str
    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse ``TOPIC/PARTITION/OFFSET``. UsageError."""
        match = _PLACE.fullmatch(text)
        if match is None:
            raise UsageError(f"--skip {text}; expected: TOPIC/PARTITION/OFFSET, such as mqtwin.events/0/35")
        return cls(match["topic"], int(match["partition"]), int(match["offset"]))

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


def skip_record(
    directory: Path, place: Place, kafka: Mapping[str, str], topics: Topics, remember: Callable[[str], None]
) -> None:
    """Take the next step past a record; nothing is changed if the job has passed it, or has not come to it yet.
    UsageError: the file of offsets is damaged. MqtwinError: Kafka does not answer, or no longer has the record.
    """
    files = CheckpointFiles(directory)
    last = files.last_batch
    if last is None:
        return
    is_planned = not (files.commits and files.commits[-1] >= last)
    previous = last - 1 if is_planned else last
    folder = files.folder
    start_file = f"offsets/{previous}" if previous >= 0 else "sources/0/0"
    end_file = f"offsets/{last}"
    try:
        start = _read(folder, start_file).get(place.topic, {}).get(place.partition)
        end = _read(folder, end_file).get(place.topic, {}).get(place.partition) if is_planned else None
        if start == place.offset:
            _write_letter(place, kafka, topics)
            remember(str(place))
            _write(folder, start_file, place, place.offset + 1)
            if end is not None and end <= place.offset:
                _write(folder, end_file, place, place.offset + 1)
            _log.warning("record skipped", record=str(place), effect="it is a dead letter; the job continues after it")
        elif start is not None and end is not None and start < place.offset < end:
            _write(folder, end_file, place, place.offset)
            _log.warning(
                "batch cut",
                record=str(place),
                effect="the batch ends before the record; the job fails there once more, and the next start skips it",
            )
    except (DamagedFileError, OSError) as error:
        raise UsageError(f"checkpoint {directory}: its offsets cannot be changed: {error}") from error


def _read(folder: Folder, name: str) -> dict[str, dict[int, int]]:
    data = folder.read(name)
    offsets = parse_offsets(data).offsets if name.startswith("offsets/") else parse_initial_offsets(data)
    return {topic: dict(partitions) for topic, partitions in offsets.items()}


def _write(folder: Folder, name: str, place: Place, offset: int) -> None:
    """Replace an offset in a file of offsets; a crash leaves either the old file or the new one."""
    offsets = _read(folder, name)
    offsets[place.topic][place.partition] = offset
    head = folder.read(name).rstrip(b"\n").rpartition(b"\n")[0]
    folder.write(name, head + b"\n" + msgspec.json.encode(offsets))


def _write_letter(place: Place, kafka: Mapping[str, str], topics: Topics) -> None:
    """Write the dead letter of a record. MqtwinError: Kafka does not have the record, or does not answer."""
    consumer = new_consumer(kafka, {}, LastError())
    try:
        consumer.assign([TopicPartition(place.topic, place.partition, place.offset)])
        message = consumer.poll(CONNECT_SECONDS)
        if message is None or not check(message.error(), place.topic) or message.offset() != place.offset:
            raise MqtwinError(f"--skip {place}: Kafka does not give this record")
        value = message.value() or b""
    finally:
        consumer.close()
    letter = DeadLetter(str(Reason.BAD_TIME), _DETAIL, place.topic, place.partition, place.offset, 0, value, len(value))
    sender = LetterSender(kafka, topics, create_topics=True)
    sender.send(letter)
    sender.flush()
