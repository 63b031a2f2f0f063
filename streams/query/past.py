"""The past of a running job: the twins as of a time, from the snapshot before it and the events of the topic since.

The result is that of a replay of all events up to the time: a snapshot is exact for its offsets, and no event in it is
later than the time. Without a snapshot the topic is played from its beginning, if Kafka still has that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kernels.layout import NEVER
from streams.checkpoint.files import DamagedFileError, Offsets
from streams.checkpoint.local_files import LocalFolder
from streams.checkpoint.manifest import EventOffsets, Manifest, Stretch, read_manifest, stretches_from
from streams.checkpoint.snapshots import Snapshot, list_snapshots
from streams.kafka.admin import topic_id
from streams.kafka.present import events_until
from streams.kafka.record import record_until
from streams.kafka.topic_reader import EventReader
from streams.kafka.topics import Topics
from streams.query.report_records import ReadMark, ReportError, read_record
from streams.query.session import SparkJava
from streams.query.stored_state import read_twins
from twin.base.errors import UsageError
from twin.base.units import as_text
from twin.estate import Estate
from twin.events import Decoder
from twin.playback.replays import Player, chunks_of
from twin.playback.timeline import Timeline
from twin.records import StateRecord
from twin.stores.open import Twin, open_store, reopened
from twin.stores.reports import Report
from twin.stores.warm_up import warm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LAST_RECORDS = 100  # of a partition before a change of the estate, for its time


class Beginning(NamedTuple):
    """Where a replay begins."""

    time: int  # latest event time before it, microseconds since 1970; NEVER: the beginning of the topic
    offsets: Mapping[int, int]  # first ones of the events topic; of other partitions it is their first one
    snapshot: Snapshot | None = None  # None: none is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPast:
    """Where the past of a job is found. A checkpoint on this machine has snapshots, earlier estates and the records
    left out by --skip; without it there is the topic alone. Without `session` a temporary one reads a snapshot. `warn`
    is called with what cannot be known.
    """

    kafka: Mapping[str, str]
    topics: Topics
    estate: Estate
    checkpoint: Path | None = None
    java: SparkJava | None = None
    session: SparkSession | None = None
    warn: Callable[[str], None] = lambda _: None
    _topic_id: list[str] = field(default_factory=list, init=False, repr=False, compare=False)  # once it was asked for
    _warned: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _change_times: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def states(self, time_us: int, store: str | None = None) -> dict[str, StateRecord]:
        """Return the state records as of a time, by store, sorted: those of a replay of all events up to it. Without a
        name, of all that have had an event by then. UsageError: neither a snapshot nor the topic reaches back so far,
        or the store has had no event by then. MqtwinError: no Kafka answers, or a snapshot cannot be read.
        """
        is_shared = store is not None and not self.estate.stores[store].holds_messages
        own = None if is_shared else store  # others report to a shared store
        _, stretches, twins = self._open(time_us, own)
        for stretch in stretches:
            player = self._play(stretch, twins, time_us, own)
            twins = player.twins
        player.catch_up()
        states = player.states()
        if store is None:
            return states
        if store not in states:
            raise UsageError(f"{self.topics.events} has no event of {store} until then; expected: a later time")
        return {store: states[store]}

    def timeline(self, begin_us: int, end_us: int, folder: Path) -> Timeline:
        """Return every moment of a period, the events of which are kept in a folder. Some events after its end may be
        in it, too. UsageError: as for `states`; there is no event in it. MqtwinError: as for `states`.
        """
        recording = folder / f"{self.topics.events}.ndjson.zst"
        beginning, stretches, twins = self._open(begin_us, None)
        latest = beginning.time
        while len(stretches) > 1 and (change_us := self._time_before(stretches[0])) <= begin_us:
            twins = self._play(stretches.pop(0), twins, -NEVER, None).twins
            latest = max(latest, change_us)
        stretch = stretches[0]
        estate = self._estate_of(stretch)
        with self._open_reader() as reader:
            reader.start(stretch.begin, until=stretch.end)
            record_until(recording, end_us, reader, Decoder(estate))
        own = {name: reopened(twin, estate) for name, twin in twins.items() if name in estate.stores}
        return Timeline(recording, estate, twins=own, begin=latest)

    def begins(self) -> list[int]:
        """Return the event times at which a replay can begin, microseconds since 1970, ascending; none: it cannot.

        Those of changes of the estate are among them. UsageError: the user may not read the topic. MqtwinError: no
        Kafka answers, or there is no such topic.
        """
        with self._open_reader() as reader:
            times = [beginning.time for beginning in self._beginnings(reader)]
            if times and times[0] == NEVER:
                reader.start()
                first = next((own for own in events_until(-NEVER, reader, Decoder(self.estate)) if len(own)), None)
                times[:1] = [] if first is None else [int(first.events["time"].min())]
            first_offsets = {number: begin for number, (begin, _) in reader.ranges.items()}
        changes = [self._time_before(own) for own in self._stretches(first_offsets)[:-1]] if times else []
        return sorted({*times, *(change for change in changes if change > min(times))})

    def last_stretch(self) -> tuple[Player, EventOffsets]:
        """Return a player of today's estate that has played the topic's part of earlier ones, and where it continues.
        UsageError: the user may not read the topic. MqtwinError: no Kafka answers, or there is no such topic.
        """
        with self._open_reader() as reader:
            first = {number: begin for number, (begin, _) in reader.ranges.items()}
        *earlier, last = self._stretches(first)
        twins: Mapping[str, Twin] = {}
        for stretch in earlier:
            twins = self._play(stretch, twins, -NEVER, None).twins
        own = {name: reopened(twin, self.estate) for name, twin in twins.items() if name in self.estate.stores}
        return Player(self.estate, own), last.begin

    @property
    def skipped(self) -> frozenset[tuple[int, int]]:
        """Partition and offset of the events that the job left out by --skip, as far as its checkpoint has them."""
        manifest = self._manifest()
        return frozenset() if manifest is None else manifest.skipped_of(self.topics.events)

    # --- stretches of one estate -----------------------------------------------------------------------------------

    def _stretches(self, begin: EventOffsets) -> list[Stretch]:
        """Return the stretches of the events from some offsets on, each with its estate."""
        if self.checkpoint is None:
            return [Stretch(begin, None, "", None)]
        manifest = self._manifest()
        return stretches_from(LocalFolder(self.checkpoint), () if manifest is None else manifest.estates, begin)

    def _estate_of(self, stretch: Stretch) -> Estate:
        """Return the estate of a stretch; today's with a warning where the job's is not known."""
        if stretch.estate is not None:
            return stretch.estate
        if self.checkpoint is None:
            text = "without --checkpoint it is not known whether the job had another estate then: by the one given"
        else:
            until = "" if stretch.end is None else f" of the events before {_places(self.topics.events, stretch.end)}"
            digest = f" (digest {stretch.digest[:12]})" if stretch.digest else ""
            text = (
                f"{self.checkpoint} does not have the estate{until}{digest}, which may have changed since: by today's"
            )
        if text not in self._warned:
            self._warned.add(text)
            self.warn(text)
        return self.estate

    def _play(self, stretch: Stretch, twins: Mapping[str, Twin], time_us: int, store: str | None) -> Player:
        """Return a player that has played a stretch up to a time. store: a single store; None: all."""
        estate = self._estate_of(stretch)
        player = Player(estate, earlier=twins)
        warm()
        with self._open_reader() as reader:
            reader.start(stretch.begin, until=stretch.end)
            chunks = events_until(time_us, reader, Decoder(estate))
            for decoded in chunks if store is None else chunks_of(chunks, estate, store):
                player.feed(decoded)
        return player

    def _time_before(self, stretch: Stretch) -> int:
        """Return the latest time in the last records of a stretch, microseconds since 1970; NEVER: it has none."""
        assert stretch.end is not None
        key = str(sorted(stretch.end.items()))
        if key not in self._change_times:
            begin = {number: max(0, offset - _LAST_RECORDS) for number, offset in stretch.end.items()}
            latest = NEVER
            with self._open_reader() as reader:
                lows = {number: low for number, (low, _) in reader.ranges.items()}
                reader.start({n: max(own, lows.get(n, 0)) for n, own in begin.items()}, until=stretch.end)
                for decoded in events_until(-NEVER, reader, Decoder(self._estate_of(stretch))):
                    latest = max(latest, int(decoded.events["time"].max())) if len(decoded) else latest
            self._change_times[key] = latest
        return self._change_times[key]

    # --- where to begin --------------------------------------------------------------------------------------------

    def _open_reader(self) -> EventReader:
        return EventReader(self.kafka, self.topics.events, follow=False, skipped=self.skipped)

    def _manifest(self) -> Manifest | None:
        """Return the manifest of the checkpoint; None if it has none, or the topic is not the one that it is of."""
        manifest = None if self.checkpoint is None else read_manifest(LocalFolder(self.checkpoint))
        known = "" if manifest is None else manifest.topics.get(self.topics.events, "")
        if known and not self._topic_id:
            self._topic_id.append(topic_id(self.kafka, self.topics.events))
        return manifest if not known or [known] == self._topic_id else None

    def _open(self, time_us: int, store: str | None) -> tuple[Beginning, list[Stretch], Mapping[str, Twin]]:
        """Return the last beginning that has no event later than a time, the stretches from there on, and its twins.
        UsageError: there is none.
        """
        with self._open_reader() as reader:
            beginnings = self._beginnings(reader)
        for beginning in reversed(beginnings):
            stretches = self._stretches(beginning.offsets)
            if beginning.snapshot is None:
                return beginning, stretches, {}
            if beginning.time <= time_us:
                twins = self._twins(beginning.snapshot, self._estate_of(stretches[0]), store)
                if all(twin.clock <= time_us for twin in twins.values()):
                    return beginning, stretches, twins
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
        if self.checkpoint is None:
            return []
        is_of_other = self._manifest() is None and bool(self._topic_id)
        return [] if is_of_other else list_snapshots(self.checkpoint)

    def _check_topics(self, offsets: Offsets) -> None:
        others = sorted(offsets.keys() - {self.topics.events, self.topics.reports})
        if others:
            raise UsageError(
                f"{self.checkpoint}: its job also reads {', '.join(others)}; expected: a job that reads events of "
                f"{self.topics.events} only, as others cannot be played again"
            )

    def _twins(self, snapshot: Snapshot, estate: Estate, store: str | None) -> dict[str, Twin]:
        """Return the twins of a snapshot, shared stores with the reports that were on their way to them."""
        twins = read_twins(snapshot.directory, estate, store, java=self.java, session=self.session)
        if store is not None or len(estate.message_stores) == len(estate.stores):
            return twins
        reports = self._reports_on_the_way(snapshot, estate, twins)
        for name in sorted({report.target for report in reports}):
            twin = twins.setdefault(name, open_store(estate, name))
            twin.take([report for report in reports if report.target == name])
        return twins

    def _reports_on_the_way(self, snapshot: Snapshot, estate: Estate, twins: Mapping[str, Twin]) -> list[Report]:
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
                    own = [] if number in ended else _reports_of(message.value(), estate)
                    if any(_is_later(report, twins.get(report.source)) for report in own):
                        ended.add(number)  # of a later batch, as is all that follows
                        reader.finish(number)
                    elif number not in ended:
                        reports += own
        return reports


def _places(topic: str, offsets: EventOffsets) -> str:
    return ", ".join(f"{topic}/{partition}/{offset}" for partition, offset in sorted(offsets.items()))


def _reports_of(value: bytes | None, estate: Estate) -> list[Report]:
    try:
        content = read_record(value, estate)
    except ReportError:
        return []
    return [] if isinstance(content, ReadMark) else content


def _is_later(report: Report, source: Twin | None) -> bool:
    """Return True if a source made a report after the given state of it. source: None: it had no event yet."""
    if source is None or source.tables is None:
        return True
    scalars = source.tables.store.scalars[0]
    tick = int(scalars["tick"]) + (report.values is None)  # where it leaves, it says so of the next tick
    return (report.turns, report.passed) > (int(scalars["turns"]), tick)
