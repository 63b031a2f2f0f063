"""Checkpoints of releases: packed with the records of their topics, and unpacked for another broker.

A file `<state format>-<commit>.tar.xz` holds `kept.json` (`Contents`), the estate, the events (`events.ndjson`;
`calls.ndjson` has those that come as spans), the spans, the records of all topics when the checkpoint was written, and
the checkpoint. Nothing in it names the machine: the folder of the checkpoint is `HOME`, Kafka's ids are empty, which
means unknown.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from streams.checkpoint.files import LOCK, MANIFEST
from streams.kafka.publish import publish
from tests.streams.kafka_help import delete, new_producer, send
from tests.support.spans import with_scope
from tests.system.harness import PATIENCE, Record, Stream, read_topic
from twin.estate import load_estate
from twin.events import JSON

FOLDER = Path(__file__).parent
SUFFIX = ".tar.xz"
HOME = "file:/home/of/the/checkpoint"
_OPERATORS = "state/0/_metadata/v2/[0-9]*"  # Spark's only files with a path of the checkpoint, one for each start

_FORECAST = frozenset({"forecast", "forecast_scores"})
# Checkpoint -> kind of store -> fields that the rules of its release left otherwise than those of this one do:
# forecasts were others, a baseline did not say what was measured, files of queues did not grow ahead of their use.
# Alerts, of which the open ones are compared, did not say what was done.
OTHER_RULES: Mapping[str, Mapping[str, frozenset[str]]] = {
    "10.3-1d396cf": {
        "": _FORECAST,
        "page_set": frozenset({"baseline", "measured"}),
        "queue_file": frozenset({"blocks", "blocks_allocated", "blocks_free", "file_bytes", "usage_pct"}),
        "queue_manager": frozenset({"file_bytes", "files"}),
    },
    "11.4-31a7aff": {"": _FORECAST},
}


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an archive.

    Args:
        version: mqtwin that wrote it.
        state_format: format of its state.
        commit: commit of that mqtwin, abbreviated.
        prefix: prefix of its topics, `otlp` apart.
        otlp: topic of spans.
        partitions: partitions of each topic.
        events: number of events that it has read; the rest of the recording follows.
        spans: number of records of spans that it has read.
    """

    version: str
    state_format: str
    commit: str
    prefix: str
    otlp: str
    partitions: dict[str, int]
    events: int
    spans: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.state_format}-{self.commit}{SUFFIX}"


def archive_files() -> list[Path]:
    """Return the checkpoints that this release has to open, the oldest first."""
    return sorted(FOLDER.glob(f"*{SUFFIX}"), key=lambda path: [int(part) for part in _format_of(path).split(".")])


def newest_archive() -> Path:
    """Return the checkpoint that the rules of this release wrote."""
    (path,) = (path for path in archive_files() if path.name.removesuffix(SUFFIX) not in OTHER_RULES)
    return path


def _format_of(path: Path) -> str:
    return path.name.partition("-")[0]


def pack(contents: Contents, folder: Path, servers: str, checkpoint: Path, target: Path) -> Path:
    """Write a checkpoint and the records of its topics to a file, and return its path.

    Args:
        contents: what it holds.
        folder: holds the estate and what is sent; gets the rest.
        servers: address of Kafka.
        checkpoint: the checkpoint, of a job that has ended.
        target: folder of the file.
    """
    topics = folder / "topics"
    topics.mkdir()
    for name in contents.partitions:
        records = [(r.partition, r.key, r.value, dict(r.headers)) for r in read_topic(servers, name)]
        (topics / name).write_bytes(msgspec.msgpack.encode(records))
    (folder / "kept.json").write_bytes(msgspec.json.format(msgspec.json.encode(contents)))
    (checkpoint / LOCK).unlink(missing_ok=True)
    _drop_old_versions(checkpoint)
    _move(checkpoint, _uri(checkpoint), HOME)
    manifest = msgspec.json.decode((checkpoint / MANIFEST).read_bytes())
    # Records that are sent again have other times and offsets than those that were read.
    manifest |= {"cluster": "", "topics": dict.fromkeys(manifest["topics"], ""), "mqtwin": contents.version, "read": {}}
    (checkpoint / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    checkpoint.rename(folder / "checkpoint")
    path = target / contents.name
    with tarfile.open(path, "w:xz", preset=9) as archive:
        archive.add(folder, "", filter=_without_owner)
    return path


def _drop_old_versions(checkpoint: Path) -> None:
    """Remove the versions of the state that the next batch does not read: those before the last snapshot."""
    for folder in checkpoint.glob("state/0/[0-9]*"):
        last = max(int(path.stem) for path in folder.glob("*.zip"))
        for path in [*folder.glob("*.zip"), *folder.glob("*.changelog")]:
            if int(path.stem) < last + (path.suffix == ".changelog"):
                path.unlink()
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _uri(directory: Path) -> str:
    return f"file:{quote(str(directory.resolve()))}"


def _move(checkpoint: Path, before: str, after: str) -> None:
    """Replace the checkpoint's own URI in its files, which Hadoop then reads without their checksums."""
    for path in (*checkpoint.glob(_OPERATORS), *checkpoint.glob(f"snapshots/*/{_OPERATORS}")):
        text = path.read_text(encoding="utf-8")
        assert before in text, text
        path.unlink()  # a snapshot has links to the files of the job
        path.write_text(text.replace(before, after), encoding="utf-8")
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Opened:
    """An unpacked checkpoint: the stream continues where it was written.

    Args:
        contents: what it holds.
        folder: its files.
        stream: the job to be, with its topics filled.
    """

    contents: Contents
    folder: Path
    stream: Stream

    def whole(self) -> Path:
        """Write all events in the order of time, those of spans among them; return the recording."""
        lines = [line for name in ("events", "calls") for line in self._lines(name)]
        path = self.folder / "whole.ndjson"
        path.write_bytes(b"".join(sorted(lines, key=lambda line: msgspec.json.decode(line)["time"])))
        return path

    def send_rest(self, part: int = 0, parts: int = 1) -> None:
        """Publish the events and spans that follow the checkpoint, or one of several parts of them, from 0."""
        stream, contents = self.stream, self.contents
        rest = self.folder / f"rest-{part}.ndjson"
        rest.write_bytes(b"".join(_part(self._lines("events")[contents.events :], part, parts)))
        publish(rest, stream.estate, {"bootstrap.servers": stream.servers}, stream.topics, content_type=JSON)
        send(stream.servers, contents.otlp, list(_part(self._spans()[contents.spans :], part, parts)))

    def _lines(self, name: str) -> list[bytes]:
        return (self.folder / f"{name}.ndjson").read_bytes().splitlines(keepends=True)

    def _spans(self) -> list[bytes]:
        """Return the requests of spans. Those of early archives lack the scope that says whose they are."""
        requests = msgspec.msgpack.decode((self.folder / "spans.msgpack").read_bytes(), type=list[bytes])
        return list(map(with_scope, requests))


def _part(items: list[bytes], part: int, parts: int) -> list[bytes]:
    return items[part * len(items) // parts : (part + 1) * len(items) // parts]


def unpack(path: Path, folder: Path, servers: str, session: SparkSession) -> Opened:
    """Unpack a checkpoint of a release, and create its topics with their records.

    Args:
        path: file of the checkpoint.
        folder: a new folder for its files.
        servers: address of Kafka; topics of an earlier use there are deleted.
        session: session of the job to be.
    """
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    contents = msgspec.json.decode((folder / "kept.json").read_bytes(), type=Contents)
    checkpoint = folder / "checkpoint"
    _move(checkpoint, HOME, _uri(checkpoint))
    admin = AdminClient({"bootstrap.servers": servers})
    for name in contents.partitions.keys() & admin.list_topics(timeout=PATIENCE).topics.keys():
        delete(servers, name)
    for future in admin.create_topics([NewTopic(name, count) for name, count in contents.partitions.items()]).values():
        future.result()
    producer = new_producer(servers)
    for name in contents.partitions:
        for record in _records(folder / "topics" / name):
            headers = [(key, text.encode()) for key, text in record.headers.items()]
            producer.produce(name, record.value, record.key, record.partition, headers=headers)
            producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    estate = load_estate(folder / "estate.toml")
    return Opened(
        contents, folder, Stream(session, servers, contents.prefix, estate, checkpoint, otlp_topic=contents.otlp)
    )


def _records(path: Path) -> Iterator[Record]:
    rows = msgspec.msgpack.decode(path.read_bytes(), type=list[tuple[int, bytes | None, bytes, dict[str, str]]])
    for partition, key, value, headers in rows:
        yield Record(partition, -1, key, value, headers)
