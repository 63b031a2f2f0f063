"""A job, its topics and its snapshots in memory: what `streams.query.past` reads, without Kafka and Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self
from unittest.mock import Mock, patch

import msgspec

from streams.checkpoint.local_files import LocalFolder
from streams.checkpoint.manifest import EstateSince, note_estate
from streams.kafka.topics import Topics
from streams.query import past as module
from streams.query.past import JobPast
from streams.query.report_records import ReadMark, read_record, report_records
from twin.estate import Estate
from twin.events import Decoder
from twin.playback.timeline import _copied, _CopiedTwin
from twin.records import StateRecord
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin, open_store
from twin.stores.reports import Report
from twin.stores.shared_store import SharedStore

TOPICS = Topics()
_REPORT_BYTES = 2_000  # of a record


class Message(NamedTuple):
    """A record, with the methods of a client's."""

    number: int
    place: int
    content: bytes

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.place

    def value(self) -> bytes:
        return self.content

    def headers(self) -> None:
        return None


class MemoryReader:
    """A reader of a topic in memory, with the methods of `streams.kafka.topic_reader.EventReader`.

    Args:
        topic: records of each partition.
        at_once: records of a read, all of one partition: a client gets them so, too.
        first: first offset that the topic still has, of each partition.
    """

    def __init__(self, topic: Sequence[Sequence[bytes]], at_once: int = 7, first: int = 0) -> None:
        self._topic, self._at_once = topic, at_once
        self.ranges = {number: (first, len(records)) for number, records in enumerate(topic)}
        self.unread: list[int] = []
        self.held: set[int] = set()
        self.reads = 0

    def start(self, offsets: Mapping[int, int] | None = None, *, until: Mapping[int, int] | None = None) -> None:
        self._next = {number: (offsets or {}).get(number, begin) for number, (begin, _) in self.ranges.items()}
        self._ends = {
            number: end if until is None else until.get(number, 0) for number, (_, end) in self.ranges.items()
        }
        self.unread = [number for number, end in self._ends.items() if self._next[number] < end]

    @property
    def is_at_end(self) -> bool:
        return not self.unread

    def read(self) -> list[Message]:
        number = next(number for number in self.unread if number not in self.held)
        begin = self._next[number]
        messages = [
            Message(number, begin + place, content)
            for place, content in enumerate(self._topic[number][begin : min(begin + self._at_once, self._ends[number])])
        ]
        self.reads += len(messages)
        self._next[number] += len(messages)
        if self._next[number] >= self._ends[number]:
            self.finish(number)
        return messages

    def finish(self, partition: int) -> None:
        if partition in self.unread:
            self.unread.remove(partition)

    def hold(self, partitions: set[int]) -> None:
        self.held = partitions

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class MemorySnapshot(NamedTuple):
    """A snapshot, with the twins in it."""

    time: int
    batch: int
    directory: Path
    twins: Mapping[str, _CopiedTwin]
    places: Mapping[str, Mapping[int, int]]

    def offsets(self) -> Mapping[str, Mapping[int, int]]:
        return self.places


@dataclass
class MemoryJob:
    """A job over topics in memory, whose stores report to others in a later batch, as in the stream.

    Args:
        estate: the estate.
        events: the events topic, of each partition its records.
        first: first offset that the events topic still has, of each partition.
        at_once: see `MemoryReader`.
        folder: where its estates are kept; None: they are not.
    """

    estate: Estate
    events: list[list[bytes]]
    first: int = 0
    at_once: int = 7
    folder: Path | None = None
    reports: list[bytes] = field(default_factory=list)
    snapshots: list[MemorySnapshot] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._decoder = Decoder(self.estate)
        self._twins: dict[str, Twin] = {}
        self._next = [0] * len(self.events)
        self._next_report = 0
        self._saved: dict[str, _CopiedTwin] = {}
        self._published: dict[str, StateRecord] = {}
        self._batches = 0
        self._estates: tuple[EstateSince, ...] = ()
        self._keep_estate({})

    def restart(self, estate: Estate) -> None:
        """Continue with another estate: each twin is opened anew, in the next batch with something for it."""
        self.estate, self._decoder = estate, Decoder(estate)
        self._saved = {name: _copied(twin) for name, twin in self._twins.items()} | self._saved
        self._twins = {}
        self._keep_estate(dict(enumerate(self._next)))

    def states(self) -> dict[str, StateRecord]:
        """Return the states as last published."""
        return dict(sorted(self._published.items()))

    def _keep_estate(self, begin: dict[int, int]) -> None:
        if self.folder is not None:
            self._estates = note_estate(LocalFolder(self.folder), self.estate, begin, self._estates)

    def run_batch(self, ends: Sequence[int], *, is_kept: bool) -> None:
        """Process the events up to an offset of each partition, and write a snapshot if `is_kept`."""
        own = [read_record(record, self.estate) for record in self.reports[self._next_report :]]
        self._next_report = len(self.reports)
        reports: list[Report] = []
        for number, end in enumerate(ends):
            for block in self._decoder.json(self.events[number][self._next[number] : end]).blocks(self.estate):
                twin = self._twin(block.store)
                twin.apply(block)
                reports += twin.drain_reports()
            self._next[number] = max(end, self._next[number])
        for content in own:
            assert not isinstance(content, ReadMark)
            shared = self._twin(content[0].target)
            assert isinstance(shared, SharedStore)
            shared.take(content)
        self.reports += [value for _, value in report_records(reports, _REPORT_BYTES)]
        self._batches += 1
        self._published |= {name: twin.state() for name, twin in self._twins.items()}
        clocks = [twin.clock for twin in self._twins.values() if isinstance(twin, MessageStore)]
        if is_kept and clocks:
            twins = {**self._saved, **{name: _copied(twin) for name, twin in self._twins.items()}}
            places = {TOPICS.events: dict(enumerate(self._next)), TOPICS.reports: {0: self._next_report}}
            folder = Path(f"snapshot-{self._batches}")
            self.snapshots.append(MemorySnapshot(max(clocks), self._batches, folder, twins, places))

    def _twin(self, name: str) -> Twin:
        if name not in self._twins:
            saved = self._saved.pop(name, None)
            self._twins[name] = open_store(self.estate, name) if saved is None else saved.open(self.estate, name)
        return self._twins[name]

    @contextmanager
    def past(self) -> Iterator[JobPast]:
        """Return its past; what it reads is here."""

        def read_twins(directory: Path, estate: Estate, store: str | None = None, **_: Any) -> dict[str, Twin]:
            (snapshot,) = (own for own in self.snapshots if own.directory == directory)
            names = snapshot.twins if store is None else {store} & snapshot.twins.keys()
            return {name: snapshot.twins[name].open(estate, name) for name in names}

        def open_reader(_: object, topic: str, *, follow: bool, skipped: Collection[object] = ()) -> MemoryReader:
            assert not follow and not skipped
            is_events = topic == TOPICS.events
            return MemoryReader(self.events if is_events else [self.reports], self.at_once, self.first * is_events)

        with (
            patch.object(module, "read_twins", read_twins),
            patch.object(module, "EventReader", open_reader),
            patch.object(JobPast, "_snapshots", lambda _: self.snapshots),
            patch.object(JobPast, "_manifest", lambda _: Mock(estates=self._estates, skipped_of=lambda _: ())),
        ):
            yield JobPast(
                kafka={},
                topics=TOPICS,
                estate=self.estate,
                checkpoint=self.folder or Path("checkpoint"),
                warn=self.warnings.append,
            )


def lines(events: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return events as records."""
    return [msgspec.json.encode(event) for event in events]
