"""The past of a running job: the twins as of a time, from the snapshot before it and the events of the topic since.

The result is that of a replay of all events up to the time: a snapshot is exact for its offsets, and no event in it is
later than the time. Without a snapshot the topic is played from its beginning, if Kafka still has that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kernels.layout import NEVER
from streams.checkpoint.files import DamagedFileError, Offsets
from streams.checkpoint.local_files import LocalFolder
from streams.checkpoint.manifest import read_manifest
from streams.checkpoint.snapshots import Snapshot, list_snapshots
from streams.kafka.admin import topic_id
from streams.kafka.event_range import events_until
from streams.kafka.record import record_until
from streams.kafka.topic_reader import EventReader
from streams.kafka.topics import Topics
from streams.query.report_records import SHARED_KINDS, ReadMark, ReportError, read_record
from streams.query.session import SparkJava
from streams.query.stored_state import read_twins
from twin.errors import UsageError
from twin.estate import Estate
from twin.events import Decoder
from twin.playback.replays import Player, chunks_of, play
from twin.playback.timeline import Timeline
from twin.records import StateRecord
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin, open_store
from twin.stores.reports import Report
from twin.stores.shared_store import SharedStore
from twin.units import as_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Beginning(NamedTuple):
    """Where a replay begins.

    Attributes:
        time: latest event time before it, microseconds since 1970; NEVER: it is the beginning of the topic.
        offsets: first offset of each partition of the events topic; of others it is their first one.
        snapshot: the snapshot; None: none is needed.
    """

    time: int
    offsets: Mapping[int, int]
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPast:
    """Where the past of a job is found.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        estate: estate of the job.
        checkpoint: its checkpoint on this machine, for its snapshots; None: the topic alone.
        java: see `streams.query.session.open_session`.
        session: Spark session to use; None: a temporary one where a snapshot is read.
    """

    kafka: Mapping[str, str]
    topics: Topics
    estate: Estate
    checkpoint: Path | None = None
    java: SparkJava | None = None
    session: SparkSession | None = None

    def states(self, time_us: int, store: str | None = None) -> dict[str, StateRecord]:
        """Return the state records as of a time, by store, sorted: those of a replay of all events up to it.

        Args:
            time_us: the time, microseconds since 1970.
            store: a single store; None: all that have had an event by then.

        Raises:
            UsageError: neither a snapshot nor the topic reaches back so far, or the store has had no event by then.
            MqtwinError: no Kafka answers, or a snapshot cannot be read.
        """
        is_shared = store is not None and self.estate.stores[store].kind in SHARED_KINDS
        own = None if is_shared else store  # others report to a shared store
        decoder = Decoder(self.estate)
        with self._open_reader() as reader:
            beginning, twins = self._open(reader, time_us, own)
            player = Player(self.estate, twins)
            reader.start(beginning.offsets)
            chunks = events_until(time_us, reader, decoder)
            for _ in play(chunks if own is None else chunks_of(chunks, self.estate, own), player):
                pass
        states = player.states()
        if store is None:
            return states
        if store not in states:
            raise UsageError(f"{self.topics.events} has no event of {store} until then; expected: a later time")
        return {store: states[store]}

    def timeline(self, begin_us: int, end_us: int, folder: Path) -> Timeline:
        """Return every moment of a period, the events of which are kept in a folder.

        Args:
            begin_us: its begin, microseconds since 1970.
            end_us: its end, likewise; some later events may be in it, too.
            folder: folder for the recording.

        Raises:
            UsageError: as for `states`; there is no event in it.
            MqtwinError: as for `states`.
        """
        recording = folder / f"{self.topics.events}.ndjson.zst"
        with self._open_reader() as reader:
            beginning, twins = self._open(reader, begin_us, None)
            reader.start(beginning.offsets)
            record_until(recording, end_us, reader, Decoder(self.estate))
        return Timeline(recording, self.estate, twins=twins, begin=beginning.time)

    def begins(self) -> list[int]:
        """Return the event times at which a replay can begin, microseconds since 1970, ascending; none: it cannot.

        Raises:
            UsageError: the user may not read the topic.
            MqtwinError: no Kafka answers, or there is no such topic.
        """
        with self._open_reader() as reader:
            times = [beginning.time for beginning in self._beginnings(reader)]
            if times and times[0] == NEVER:
                reader.start()
                first = next((own for own in events_until(-NEVER, reader, Decoder(self.estate)) if len(own)), None)
                times[:1] = [] if first is None else [int(first.events["time"].min())]
        return sorted(times)

    # --- where to begin --------------------------------------------------------------------------------------------

    def _open_reader(self) -> EventReader:
        return EventReader(self.kafka, self.topics.events, follow=False)

    def _open(self, reader: EventReader, time_us: int, store: str | None) -> tuple[Beginning, dict[str, Twin]]:
        """Return the last beginning that has no event later than a time, and its twins. UsageError: there is none."""
        beginnings = self._beginnings(reader)
        for beginning in reversed(beginnings):
            if beginning.snapshot is None:
                return beginning, {}
            if beginning.time <= time_us:
                twins = self._twins(beginning.snapshot, store)
                if all(twin.clock <= time_us for twin in twins.values() if isinstance(twin, MessageStore)):
                    return beginning, twins
        sources = f"the snapshots of {self.checkpoint} and" if self.checkpoint is not None else "without --checkpoint"
        reach = f"back to {as_text(beginnings[0].time)}" if beginnings else "to no time, as Kafka has deleted its begin"
        raise UsageError(
            f"{as_text(time_us)}: {sources} topic {self.topics.events} reach {reach}; expected: a later time, or a "
            "longer retention"
        )

    def _beginnings(self, reader: EventReader) -> list[Beginning]:
        """Return where a replay can begin, in order of time: the topic, if nothing of it is deleted, and snapshots."""
        whole = all(begin == 0 for begin, _ in reader.ranges.values())
        beginnings = [Beginning(NEVER, {})] if whole else []
        for snapshot in self._snapshots():
            try:
                offsets = snapshot.offsets()
            except (DamagedFileError, OSError):
                continue  # removed meanwhile: an earlier one is as good
            self._check_topics(offsets)
            own = offsets.get(self.topics.events, {})
            if all(begin <= own.get(number, 0) <= end for number, (begin, end) in reader.ranges.items()):
                beginnings.append(Beginning(snapshot.time, own, snapshot))
        return beginnings

    def _snapshots(self) -> list[Snapshot]:
        """Return the snapshots; none where the topic is not the one that they are of."""
        if self.checkpoint is None:
            return []
        manifest = read_manifest(LocalFolder(self.checkpoint))
        known = "" if manifest is None else manifest.topics.get(self.topics.events, "")
        is_own = not known or known == topic_id(self.kafka, self.topics.events)
        return list_snapshots(self.checkpoint) if is_own else []

    def _check_topics(self, offsets: Offsets) -> None:
        others = sorted(offsets.keys() - {self.topics.events, self.topics.reports})
        if others:
            raise UsageError(
                f"{self.checkpoint}: its job also reads {', '.join(others)}; expected: a job that reads events of "
                f"{self.topics.events} only, as others cannot be played again"
            )

    def _twins(self, snapshot: Snapshot, store: str | None) -> dict[str, Twin]:
        """Return the twins of a snapshot, shared stores with the reports that were on their way to them."""
        twins = read_twins(snapshot.directory, self.estate, store, java=self.java, session=self.session)
        if store is not None or not any(config.kind in SHARED_KINDS for config in self.estate.stores.values()):
            return twins
        reports = self._reports_on_the_way(snapshot, twins)
        for name in sorted({report.target for report in reports}):
            shared = twins.setdefault(name, open_store(self.estate, name))
            assert isinstance(shared, SharedStore)
            shared.take([report for report in reports if report.target == name])
        return twins

    def _reports_on_the_way(self, snapshot: Snapshot, twins: Mapping[str, Twin]) -> list[Report]:
        """Return the reports that the job had written up to a snapshot and not yet read. UsageError: Kafka has not."""
        topic, reports = self.topics.reports, []
        with EventReader(self.kafka, topic, follow=False) as reader:
            offsets = snapshot.offsets().get(topic, {})
            lost = [number for number, (begin, _) in reader.ranges.items() if offsets.get(number, 0) < begin]
            if lost:
                raise UsageError(
                    f"topic {topic} has deleted the records of {as_text(snapshot.time)}; expected: a retention as long "
                    f"as that of {self.topics.events}"
                )
            reader.start(offsets)
            ended: set[int] = set()
            while not reader.is_at_end:
                for message in reader.read():
                    number = message.partition() or 0
                    own = [] if number in ended else _reports_of(message.value(), self.estate)
                    if any(_is_later(report, twins.get(report.source)) for report in own):
                        ended.add(number)  # of a later batch, as is all that follows
                        reader.finish(number)
                    elif number not in ended:
                        reports += own
        return reports


def _reports_of(value: bytes | None, estate: Estate) -> list[Report]:
    try:
        content = read_record(value, estate)
    except ReportError:
        return []
    return [] if isinstance(content, ReadMark) else content


def _is_later(report: Report, source: Twin | None) -> bool:
    """Return True if a source made a report after it was as given. source: None: it had no event yet."""
    if not isinstance(source, MessageStore):
        return True
    scalars = source.tables.store.scalars[0]
    tick = int(scalars["tick"]) + (report.values is None)  # where it leaves, it says so of the next tick
    return (report.turns, report.passed) > (int(scalars["turns"]), tick)
