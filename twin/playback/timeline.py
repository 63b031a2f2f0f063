"""A recording played once: every moment of it can be opened again, or each store has its series of samples.

- Timeline: states, alerts, and the twin of a store. States are sampled at a period of event time, twins are copied now
  and then. So a moment costs the events since the copy before it, not those since the beginning. Both have a bound:
  when it is reached, every second one is dropped and the distance doubles.
- Series: samples of usage, refused puts and alerts of each store over time. Whatever is compared with the twin's alerts
  reads these samples, so that nothing knows more than the twin.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from kernels.clock import SECOND
from kernels.event_loop import MQRC_Q_FULL
from kernels.layout import NEVER, PUT
from twin.alerts.episodes import Alert
from twin.base.errors import UsageError
from twin.base.units import EventTime, event_us
from twin.estate import Estate, as_estate
from twin.estate.errors import known_hint
from twin.events import Decoded, Decoder, Reject
from twin.forecast.outlook import Forecast
from twin.playback.replays import STORE_FULL, Player, chunks_of
from twin.playback.replays import play as play_recording
from twin.playback.samples import (
    STEP,
    Alerts,
    Applied,
    Letters,
    Observer,
    Samples,
    Usage,
    count_events,
    step_cuts,
    usage_of,
)
from twin.recordings.files import Chunk, open_recording
from twin.state.arrays import Array, MemoryArrays
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin, open_store

MAX_SAMPLES = 20_000  # state records of all stores
MAX_COPIES = 128
MAX_COPIED_BYTES = 512 << 20  # of the arrays of all copies
MAX_REJECTS = 200
MAX_DECODED = 8_000_000  # events that stay decoded, about 1 GB; of a longer recording the file is read again


@dataclass(frozen=True, slots=True)
class _CopiedTwin:
    """A twin as it was between two pieces. arrays: None of a store that has all in its header."""

    header: bytes
    arrays: MemoryArrays | None

    @property
    def memory_bytes(self) -> int:
        return 0 if self.arrays is None else self.arrays.memory_bytes

    def open(self, estate: Estate, name: str) -> Twin:
        """Return a twin that continues from here; the copy stays as it is."""
        return open_store(estate, name, None if self.arrays is None else self.arrays.copied(), self.header, None)


@dataclass(frozen=True, slots=True)
class _Copy:
    """All twins before a piece."""

    chunk: int  # chunk, piece: its number in the recording, and that of the piece in it
    piece: int
    latest: int  # time of the latest event before it, microseconds
    twins: Mapping[str, _CopiedTwin]  # by store


@dataclass(slots=True)
class Sampled:
    """State records of a store as JSON, by the time of their sample, microseconds, ascending."""

    times: list[int] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)

    def last(self, time: int) -> bytes | None:
        """Return the last record until a time."""
        place = bisect_right(self.times, time)
        return self.records[place - 1] if place else None

    def thin(self, period: int) -> None:
        """Keep the last record of each period."""
        chosen = _last_of_each(self.times, period)
        self.times = [self.times[place] for place in chosen]
        self.records = [self.records[place] for place in chosen]


class States(Observer):
    """State records of the stores, sampled at a period of event time."""

    def __init__(self, estate: Estate, latest: int, changed: Iterable[str]) -> None:
        self.times: list[int] = []  # of samples, microseconds, ascending: each the time of the latest event before it
        self.by_store: dict[str, Sampled] = {}  # the samples of each store
        self._latest = latest  # event time before, microseconds; NEVER: there is none
        self._changed = set(changed)
        self._period = STEP
        self._store_of = np.array([route.store for route in estate.routes])

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows at which a STEP begins."""
        return step_cuts(decoded)

    def before(self, piece: Decoded, twins: Mapping[str, Twin]) -> None:
        """Sample the stores where a period ends."""
        now = max(self._latest, int(piece.events["time"].max()))
        if self._latest != NEVER and now // self._period > self._latest // self._period:
            self._sample(twins)
        self._latest = now
        self._changed |= set(self._store_of[np.unique(piece.events["route"])].tolist())

    def end(self, applied: Applied) -> None:
        """Sample the stores at the end."""
        if self._latest != NEVER:
            self._sample(applied.twins)

    def _sample(self, twins: Mapping[str, Twin]) -> None:
        """Take the state records of the stores with events since the last sample, and of all that others report to."""
        shared = {name for name, twin in twins.items() if not twin.config.holds_messages}
        for name in self._changed | shared:
            sampled = self.by_store.setdefault(name, Sampled())
            sampled.times.append(self._latest)
            sampled.records.append(msgspec.json.encode(twins[name].state()))
        self._changed.clear()
        self.times.append(self._latest)
        while sum(len(sampled.times) for sampled in self.by_store.values()) > MAX_SAMPLES + len(self.by_store):
            self._period *= 2
            self.times = [self.times[place] for place in _last_of_each(self.times, self._period)]
            for sampled in self.by_store.values():
                sampled.thin(self._period)


class Copies(Observer):
    """Copies of all twins now and then, and the pieces of events between them."""

    def __init__(self, recording: Path, estate: Estate, latest: int, twins: Mapping[str, Twin]) -> None:
        """Begin with a copy of the twins as they are. latest: as for `States`."""
        self._recording = recording
        self._estate = estate
        self._copies: list[_Copy] = []
        self._latest = latest
        self._first_times: list[int] = []  # earliest event time by chunk; of a chunk without events the latest possible
        self._distance = 1  # pieces from one copy to the next
        self._pieces = self._events = 0
        self._chunk: list[Decoded] = []  # pieces of the present chunk
        self._decoded: list[list[Decoded]] | None = []  # pieces by chunk; None: there are too many to keep
        self._copy(twins)

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows at which a STEP begins."""
        return step_cuts(decoded)

    def before(self, piece: Decoded, twins: Mapping[str, Twin]) -> None:
        """Copy the twins, where it is time to, and keep the piece."""
        if self._pieces and self._pieces % self._distance == 0:
            self._copy(twins)
        self._latest = max(self._latest, int(piece.events["time"].max()))
        self._pieces += 1
        self._chunk.append(piece)

    def end_chunk(self, decoded: Decoded) -> None:
        """Keep the pieces of the chunk as long as there is room."""
        self._first_times.append(int(decoded.events["time"].min()) if len(decoded) else -NEVER)
        self._events += count_events(decoded)
        if self._decoded is not None:
            self._decoded.append(self._chunk)
            if self._events > MAX_DECODED:
                self._decoded = None
        self._chunk = []

    def copy_before(self, time: int) -> _Copy:
        """Return the last copy that has seen no event later than a time, microseconds."""
        return self._copies[max(0, bisect_right(self._copies, time, key=lambda own: own.latest) - 1)]

    def until(self, copy: _Copy, time: int) -> Iterator[Decoded]:
        """Yield the events after a copy until a time, by piece; it ends with the last chunk that has any."""
        last = max((number for number, first in enumerate(self._first_times) if first <= time), default=-1)
        for number, own in enumerate(islice(self.chunks(copy.chunk), max(0, last + 1 - copy.chunk)), copy.chunk):
            pieces = [piece.until(time) for piece in (own[copy.piece :] if number == copy.chunk else own)]
            yield from (piece for piece in pieces if len(piece))

    def chunks(self, first: int) -> Iterator[list[Decoded]]:
        """Yield the pieces of each chunk. first: number of the first chunk."""
        if self._decoded is not None:
            yield from self._decoded[first:]
            return
        decoder = Decoder(self._estate)
        for chunk in islice(open_recording(self._recording), first, None):
            decoded = chunk.decode(decoder)
            yield list(decoded.split(step_cuts(decoded)))

    def _copy(self, twins: Mapping[str, Twin]) -> None:
        copied = {name: _copied(twin) for name, twin in twins.items()}
        self._copies.append(_Copy(len(self._first_times), len(self._chunk), self._latest, copied))
        while len(self._copies) > MAX_COPIES or (self._copied_bytes() > MAX_COPIED_BYTES and len(self._copies) > 1):
            self._copies = self._copies[::2]
            self._distance *= 2

    def _copied_bytes(self) -> int:
        return sum(twin.memory_bytes for copy in self._copies for twin in copy.twins.values())


class Timeline:
    """A recording, played to its end.

    Args:
        recording: `.ndjson`, `.ndjson.zst` or `.arrow`.
        estate: its estate, or the file of it.
        on_chunk: called after each chunk, with the chunk and the number of events so far.
        on_reject: called with each dead letter.
        twins: twins that have seen what came before the recording, by store; they continue with it.
        begin: time of the latest event that they have seen, microseconds since 1970.

    Attributes:
        recording: the file.
        estate: the estate.
        times: moments with samples, microseconds since 1970, ascending: each the time of the latest event before it.
        alerts: by time, then store, then in the order of the store.
        events: number of accepted lines or rows.
        dead_letters: number of refused ones.
        rejects: the first MAX_REJECTS of them.

    Raises:
        UsageError: the file is missing, has an unknown suffix, cannot be read to its end, or has no event; the estate
            is wrong.

    Examples:
        >>> timeline = twin.Timeline("friday.arrow", "estate.toml")
        >>> timeline.twin_at("QSG1/APP1", timeline.times[-1]).state().full_puts
        45522
    """

    def __init__(
        self,
        recording: str | Path,
        estate: Estate | str | Path,
        on_chunk: Callable[[Chunk, int], None] | None = None,
        on_reject: Callable[[Reject], None] | None = None,
        *,
        twins: Mapping[str, Twin] | None = None,
        begin: int = NEVER,
    ) -> None:
        self.recording = Path(recording)
        self.estate = as_estate(estate)
        self.rejects: list[Reject] = []
        player = Player(self.estate, twins)
        alerts, letters = Alerts(), Letters(self._rejected(on_reject))
        alerts.alerts += [record for twin in player.twins.values() for record in twin.episodes.last_records()]
        self._states = States(self.estate, begin, player.twins)
        self._copies = Copies(self.recording, self.estate, begin, player.twins)
        play_recording(
            self.recording, self.estate, self._states, self._copies, alerts, letters, player=player, on_chunk=on_chunk
        )
        self.times, self.alerts = self._states.times, alerts.alerts
        self.events, self.dead_letters = letters.events, letters.dead_letters
        if not self.times:
            raise UsageError(f"{recording} has no event of this estate; expected: one of its stores")

    def _rejected(self, on_reject: Callable[[Reject], None] | None) -> Callable[[Reject], None]:
        """Return what keeps the first dead letters and passes all on."""

        def note(reject: Reject) -> None:
            if len(self.rejects) < MAX_REJECTS:
                self.rejects.append(reject)
            if on_reject is not None:
                on_reject(reject)

        return note

    def sample_before(self, time: EventTime) -> int:
        """Return the last of `times` until a time; the first where there is none."""
        return self.times[max(0, bisect_right(self.times, _us(time)) - 1)]

    def states(self, time: EventTime) -> dict[str, bytes]:
        """Return the last sampled state record of each store until a time: JSON by store, sorted."""
        records = ((name, sampled.last(_us(time))) for name, sampled in sorted(self._states.by_store.items()))
        return {name: record for name, record in records if record is not None}

    def samples(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield (time, store, state record as JSON) of all samples by time, then store."""
        rows = (
            (time, name, record)
            for name, sampled in self._states.by_store.items()
            for time, record in zip(sampled.times, sampled.records, strict=True)
        )
        yield from sorted(rows)

    def alerts_until(self, time: EventTime) -> list[Alert]:
        """Return the alert records until a time."""
        return self.alerts[: bisect_right(self.alerts, _us(time), key=lambda alert: alert.time)]

    def twin_at(self, store: str, time: EventTime) -> Twin | None:
        """Return the twin of a store as of the events until a time; None before its first event.

        It is that of a replay of those events (`twin.planning.whatif.twin_at`), sooner.
        """
        if store not in self.estate.stores:
            raise UsageError(f"{store}: the estate has no such store{known_hint(store, self.estate.stores)}")
        time = _us(time)
        copy = self._copies.copy_before(time)
        is_shared = not self.estate.stores[store].holds_messages  # others report to it
        names = [name for name in copy.twins if is_shared or name == store]
        twins = {name: copy.twins[name].open(self.estate, name) for name in names}
        pieces = self._copies.until(copy, time)
        own = pieces if is_shared else chunks_of(pieces, self.estate, store)
        return play_recording(own, self.estate, player=Player(self.estate, twins)).twins.get(store)

    def events_since(self, store: str, time: EventTime) -> Iterator[Decoded]:
        """Yield the events of a store that are later than a time, to the end, by the STEP."""
        time = _us(time)
        pieces = (piece for chunk in self._copies.chunks(self._copies.copy_before(time).chunk) for piece in chunk)
        for piece in chunks_of(pieces, self.estate, store):
            later = piece.take(np.flatnonzero(piece.events["time"] > time))
            yield from later.split(step_cuts(later))


def _us(time: EventTime) -> int:
    """Return a time in microseconds since 1970. UsageError: it is not a time."""
    try:
        return event_us(time)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _copied(twin: Twin) -> _CopiedTwin:
    return _CopiedTwin(twin.header(), None if twin.tables is None else twin.tables.copied_arrays())


def _last_of_each(times: list[int], period: int) -> list[int]:
    """Return the places of the last time of each period, ascending. times: ascending."""
    return [
        place
        for place, time in enumerate(times)
        if place + 1 == len(times) or times[place + 1] // period > time // period
    ]


# --- series -----------------------------------------------------------------------------------------------------------


class _Sample(NamedTuple):
    usage: Usage
    size: int  # bytes of the messages held


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one store from its first event to its last."""

    store: str
    times: Array  # i8[n], microseconds since 1970, STEP apart
    resources: tuple[str, ...]
    usage: Array  # f8[n, resources], percent
    size: Array  # i8[n], bytes of the messages held
    refused: Array  # i8[m], times of the puts with reason 2192 or 2056, ascending
    queue_full: Array  # i8[k], times of the puts with reason 2053, ascending

    @property
    def days(self) -> float:
        """Length in days."""
        return float(self.times[-1] - self.times[0] + STEP) / (86_400 * SECOND)


@dataclass(slots=True, kw_only=True)
class PlayedRecording:
    """Results of replaying a recording."""

    series: dict[str, Series]  # by store, sorted
    alerts: list[Alert]  # by time, then store
    forecasts: Mapping[str, Sequence[Forecast]]  # by store, by time
    events: int  # number
    dead_letters: int  # number
    twins: Mapping[str, Twin]  # as they are at the end, by store


class _Refused(Observer):
    """Times of refused puts, in pieces i8[n], by store: `full` with reason 2192 or 2056, `queue_full` with 2053."""

    def __init__(self, estate: Estate) -> None:
        self.full: defaultdict[str, list[Array]] = defaultdict(list)
        self.queue_full: defaultdict[str, list[Array]] = defaultdict(list)
        self.events = 0  # of all stores
        self._store_of = np.array([route.store for route in estate.routes])

    def after(self, applied: Applied) -> None:
        """Add the refused puts of a piece."""
        self.events += len(applied.piece)
        events = applied.piece.events[applied.piece.events["reason"] != 0]
        if not events.size:  # as nearly always, and asking for the reasons takes longer
            return
        for by_store, reasons in ((self.full, STORE_FULL), (self.queue_full, (MQRC_Q_FULL,))):
            refused = events[(events["op"] == PUT) & np.isin(events["reason"], reasons)]
            owners = self._store_of[refused["route"]]
            for name in np.unique(owners).tolist():
                by_store[name].append(refused["time"][owners == name].copy())


def play_series(
    path: str | Path,
    estate: Estate | str | Path,
    *observers: Observer,
    until: int | None = None,
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> PlayedRecording:
    """Replay a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) with a sample of each store per STEP, up to `until`,
    microseconds. UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    estate = as_estate(estate)
    samples, refused, alerts, letters = Samples(estate, _sample), _Refused(estate), Alerts(), Letters()
    own = (*observers, samples, refused, alerts, letters)
    player = play_recording(path, estate, *own, until=until, on_chunk=on_chunk)
    return PlayedRecording(
        series={
            name: _series(name, steps, refused.full[name], refused.queue_full[name])
            for name, steps in sorted(samples.by_store.items())
        },
        alerts=alerts.alerts,
        forecasts=samples.forecasts,
        events=refused.events,
        dead_letters=letters.dead_letters,
        twins=player.twins,
    )


def _sample(twin: MessageStore) -> _Sample:
    return _Sample(usage_of(twin), int(twin.tables.store.scalars[0]["bytes"]))


def _series(name: str, steps: Mapping[int, _Sample], refused: Sequence[Array], queue_full: Sequence[Array]) -> Series:
    """Return samples by STEP as a series: a row per STEP, with the previous usage where there is no sample."""
    samples = list(steps.values())
    raster, rows = raster_of(list(steps))
    resources = tuple(dict.fromkeys(resource for sample in samples for resource in sample.usage))
    usage = np.array([[sample.usage.get(resource, 0.0) for resource in resources] for sample in samples])
    return Series(
        store=name,
        times=(raster + 1) * STEP,  # a sample stands for the end of its STEP
        resources=resources,
        usage=usage.reshape(len(samples), len(resources))[rows],
        size=np.array([sample.size for sample in samples], np.int64)[rows],
        refused=np.sort(np.concatenate([np.zeros(0, np.int64), *refused])),
        queue_full=np.sort(np.concatenate([np.zeros(0, np.int64), *queue_full])),
    )


def raster_of(steps: Sequence[int]) -> tuple[Array, Array]:
    """Return all STEPs from the first to the last of `steps`, ascending, and for each the index of the last sample."""
    numbers = np.array(steps)
    raster = np.arange(numbers[0], numbers[-1] + 1)
    return raster, np.searchsorted(numbers, raster, side="right") - 1
