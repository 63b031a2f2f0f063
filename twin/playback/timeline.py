"""A recording played once, of which every moment can be opened again: states, alerts, and the twin of a store.

States are sampled at a period of event time, twins are copied now and then. So a moment costs the events since the
copy before it, not those since the beginning. Both have a bound: when it is reached, every second one is dropped and
the distance doubles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from kernels.layout import NEVER
from twin.alerts.episodes import Alert
from twin.errors import UsageError
from twin.estate import Estate, as_estate
from twin.events import Decoded, Decoder, Reject
from twin.playback.replays import Player, count_events
from twin.playback.samples import STEP, split_by_step
from twin.recordings.files import Chunk, open_recording
from twin.state.arrays import MemoryArrays
from twin.stores.message_store import MessageStore
from twin.stores.open import MESSAGE_KINDS, Twin, open_store
from twin.stores.shared_store import SharedStore
from twin.stores.warm_up import warm

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
        """Bytes of its arrays."""
        return 0 if self.arrays is None else self.arrays.memory_bytes

    def open(self, estate: Estate, name: str) -> Twin:
        """Return a twin that goes on from here; the copy stays as it is."""
        return open_store(estate, name, None if self.arrays is None else self.arrays.copied(), self.header, None)


@dataclass(frozen=True, slots=True)
class _Copy:
    """All twins before a piece.

    Attributes:
        chunk, piece: its number in the recording, and that of the piece in it.
        latest: time of the latest event before it, microseconds.
        twins: by store.
    """

    chunk: int
    piece: int
    latest: int
    twins: Mapping[str, _CopiedTwin]


@dataclass(slots=True)
class _Sampled:
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


class Timeline:
    """A recording, played to its end.

    Args:
        recording: `.ndjson`, `.ndjson.zst` or `.arrow`.
        estate: its estate, or the file of it.
        on_chunk: called after each chunk, with the chunk and the number of events so far.
        on_reject: called with each dead letter.
        twins: twins that have seen what came before the recording, by store; they go on with it.
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
        self.times: list[int] = []
        self.alerts: list[Alert] = []
        self.events = self.dead_letters = 0
        self.rejects: list[Reject] = []
        self._sampled: dict[str, _Sampled] = {}
        self._period = STEP
        self._copies: list[_Copy] = []
        self._first_times: list[int] = []  # earliest event time by chunk; of a chunk without events the latest possible
        self._distance = 1  # pieces from one copy to the next
        self._decoded: list[list[Decoded]] | None = []  # pieces by chunk; None: there are too many to keep
        self._store_of = np.array([route.store for route in self.estate.routes])
        warm()
        self._play(Player(self.estate, twins), begin, on_chunk, on_reject)
        if not self.times:
            raise UsageError(f"{recording} has no event of this estate; expected: one of its stores")
        self.alerts.sort(key=lambda alert: (alert.time, alert.store))  # stable: a store's own order stays

    def sample_before(self, time: int) -> int:
        """Return the last of `times` until a time, microseconds; the first where there is none."""
        return self.times[max(0, bisect_right(self.times, time) - 1)]

    def states(self, time: int) -> dict[str, bytes]:
        """Return the last sampled state record of each store until a time, microseconds: JSON by store, sorted."""
        records = ((name, sampled.last(time)) for name, sampled in sorted(self._sampled.items()))
        return {name: record for name, record in records if record is not None}

    def samples(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield (time, store, state record as JSON) of all samples by time, then store."""
        rows = (
            (time, name, record)
            for name, sampled in self._sampled.items()
            for time, record in zip(sampled.times, sampled.records, strict=True)
        )
        yield from sorted(rows)

    def alerts_until(self, time: int) -> list[Alert]:
        """Return the alert records until a time, microseconds."""
        return self.alerts[: bisect_right(self.alerts, time, key=lambda alert: alert.time)]

    def twin_at(self, store: str, time: int) -> Twin | None:
        """Return the twin of a store as of the events until a time, microseconds; None before its first event.

        It is that of a replay of those events (`twin.planning.moment.twin_at`), sooner.
        """
        copy = self._copy_before(time)
        is_shared = self.estate.stores[store].kind not in MESSAGE_KINDS  # others report to it
        names = [name for name in copy.twins if is_shared or name == store]
        twins = {name: copy.twins[name].open(self.estate, name) for name in names}
        player, own = Player(self.estate, twins), self._store_of == store
        for piece in self._until(copy, time):
            rows = np.flatnonzero(own[piece.events["route"]])
            player.feed(piece if is_shared else piece.take(rows))
        if is_shared:
            player.catch_up()
        return player.twins.get(store)

    def events_since(self, store: str, time: int) -> Iterator[Decoded]:
        """Yield the events of a store that are later than a time, microseconds, to the end, by the STEP."""
        copy, own = self._copy_before(time), self._store_of == store
        for pieces in self._chunks(copy.chunk):
            for piece in pieces:
                rows = np.flatnonzero(own[piece.events["route"]] & (piece.events["time"] > time))
                yield from split_by_step(piece.take(rows))

    # --- playing ---------------------------------------------------------------------------------------------------

    def _play(
        self,
        player: Player,
        latest: int,
        on_chunk: Callable[[Chunk, int], None] | None,
        on_reject: Callable[[Reject], None] | None,
    ) -> None:
        decoder, pieces = Decoder(self.estate), 0
        changed = set(player.twins)  # stores with events since the last sample
        self.alerts += [record for twin in player.twins.values() for record in twin.episodes.last_records()]
        self._copy(player, 0, 0, latest)
        for number, chunk in enumerate(open_recording(self.recording)):
            decoded = chunk.decode(decoder)
            own = list(split_by_step(decoded))
            self._first_times.append(int(decoded.events["time"].min()) if len(decoded) else -NEVER)
            for place, piece in enumerate(own):
                now = max(latest, int(piece.events["time"].max()))
                if latest != NEVER and now // self._period > latest // self._period:
                    self._sample(player, changed, latest)
                if pieces and pieces % self._distance == 0:
                    self._copy(player, number, place, latest)
                latest = now
                pieces += 1
                self.alerts += player.feed(piece)
                changed |= set(self._store_of[np.unique(piece.events["route"])].tolist())
            self._count(decoded, own, on_reject)
            if on_chunk is not None:
                on_chunk(chunk, self.events)
        self.alerts += player.catch_up()
        if latest != NEVER:
            self._sample(player, changed, latest)

    def _count(self, decoded: Decoded, pieces: list[Decoded], on_reject: Callable[[Reject], None] | None) -> None:
        """Count the events and dead letters of a chunk, and keep its pieces as long as there is room."""
        self.events += count_events(decoded)
        self.dead_letters += len(decoded.rejects)
        self.rejects += decoded.rejects[: max(0, MAX_REJECTS - len(self.rejects))]
        if on_reject is not None:
            for reject in decoded.rejects:
                on_reject(reject)
        if self._decoded is not None:
            self._decoded.append(pieces)
            if self.events > MAX_DECODED:
                self._decoded = None

    def _sample(self, player: Player, changed: set[str], time: int) -> None:
        """Take the state records of the stores with events since the last sample, and of all that others report to."""
        shared = {name for name, twin in player.twins.items() if isinstance(twin, SharedStore)}
        for name in changed | shared:
            sampled = self._sampled.setdefault(name, _Sampled())
            sampled.times.append(time)
            sampled.records.append(msgspec.json.encode(player.twins[name].state()))
        changed.clear()
        self.times.append(time)
        while sum(len(sampled.times) for sampled in self._sampled.values()) > MAX_SAMPLES + len(self._sampled):
            self._period *= 2
            self.times = [self.times[place] for place in _last_of_each(self.times, self._period)]
            for sampled in self._sampled.values():
                sampled.thin(self._period)

    def _copy(self, player: Player, chunk: int, piece: int, latest: int) -> None:
        self._copies.append(_Copy(chunk, piece, latest, {name: _copied(twin) for name, twin in player.twins.items()}))
        while len(self._copies) > MAX_COPIES or (self._copied_bytes() > MAX_COPIED_BYTES and len(self._copies) > 1):
            self._copies = self._copies[::2]
            self._distance *= 2

    def _copied_bytes(self) -> int:
        return sum(twin.memory_bytes for copy in self._copies for twin in copy.twins.values())

    def _copy_before(self, time: int) -> _Copy:
        """Return the last copy that has seen no event later than a time, microseconds."""
        return self._copies[max(0, bisect_right(self._copies, time, key=lambda own: own.latest) - 1)]

    def _until(self, copy: _Copy, time: int) -> Iterator[Decoded]:
        """Yield the events after a copy until a time, by piece; it ends with the last chunk that has any."""
        last = max((number for number, first in enumerate(self._first_times) if first <= time), default=-1)
        for number, own in enumerate(islice(self._chunks(copy.chunk), max(0, last + 1 - copy.chunk)), copy.chunk):
            pieces = [piece.until(time) for piece in (own[copy.piece :] if number == copy.chunk else own)]
            yield from (piece for piece in pieces if len(piece))

    def _chunks(self, first: int) -> Iterator[list[Decoded]]:
        """Yield the pieces of each chunk. first: number of the first chunk."""
        if self._decoded is not None:
            yield from self._decoded[first:]
            return
        decoder = Decoder(self.estate)
        for chunk in islice(open_recording(self.recording), first, None):
            yield list(split_by_step(chunk.decode(decoder)))


def _copied(twin: Twin) -> _CopiedTwin:
    return _CopiedTwin(twin.header(), twin.tables.copied_arrays() if isinstance(twin, MessageStore) else None)


def _last_of_each(times: list[int], period: int) -> list[int]:
    """Return the places of the last time of each period, ascending. times: ascending."""
    return [
        place
        for place, time in enumerate(times)
        if place + 1 == len(times) or times[place + 1] // period > time // period
    ]
