"""Actions: what people changed in a store while it was in danger, and what that was worth.

What a change is and how much longer the store had after it is said by `twin.stores.actions`. The store's events are
played once more. At the first change of an incident a copy of the twin goes on without any change; the puts of the
recording are made to it as demands (`twin.playback.demands`), so that it refuses what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernels.clock import SECOND
from kernels.layout import MEASURE, PUT
from twin.conditions import Q_SPACE_NOT_AVAILABLE, STORAGE_MEDIUM_FULL
from twin.estate import Estate
from twin.events import Decoded, EventBlock
from twin.playback.demands import as_demands
from twin.playback.replays import chunks_of, chunks_until, decoded_chunks
from twin.records import DoneAction
from twin.state.arrays import Array
from twin.stores.actions import IS_CHANGE, StoreChange, Watched, read_change
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store

MINUTE = 60 * SECOND
_FULL = (STORAGE_MEDIUM_FULL, Q_SPACE_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change of a store in a recording.

    Attributes:
        index: line or row of its event in the recording, from 0.
        time: microseconds since 1970.
        change: the change.
    """

    index: int
    store: str
    time: int
    change: StoreChange


@dataclass(slots=True)
class ChangeLog:
    """The changes in a recording, collected while it is played.

    Attributes:
        changes: in the order of the recording.
        measurements: MEASURE events by store.
    """

    estate: Estate
    changes: list[RecordedChange] = field(default_factory=list)
    measurements: dict[str, int] = field(default_factory=dict)
    _sizes: dict[str, int | None] = field(default_factory=dict)  # last measured SIZE, by store

    def add(self, piece: Decoded) -> None:
        """Add the changes of a piece."""
        for row in IS_CHANGE[piece.events["op"]].nonzero()[0].tolist():
            event, route = piece.events[row], self.estate.routes[int(piece.events["route"][row])]
            if event["op"] == MEASURE:
                self.measurements[route.store] = self.measurements.get(route.store, 0) + 1
            content, config = piece.extras.get(row, b"{}"), self.estate.stores[route.store]
            change, self._sizes[route.store] = read_change(
                event, content, route.reported or "", config, self._sizes.get(route.store)
            )
            if change is not None:
                self.changes.append(
                    RecordedChange(
                        index=int(piece.index[row]), store=route.store, time=int(event["time"]), change=change
                    )
                )


@dataclass(frozen=True, slots=True)
class Window:
    """The time of an incident with changes. Times in microseconds since 1970.

    Attributes:
        opened, over: when changes belong to it.
        until: until when the untouched twin is played.
    """

    incident: str
    opened: int
    over: int
    until: int

    def has(self, change: RecordedChange) -> bool:
        """Return True if a change belongs to it."""
        return self.opened <= change.time <= self.over


@dataclass(slots=True)
class Untouched:
    """The twin of a store without the changes of an incident, and the times of the puts that it refuses."""

    window: Window
    twin: MessageStore
    since: int  # microseconds
    refused: list[Array] = field(default_factory=list)  # i8[n] each, microseconds

    def feed(self, block: EventBlock) -> None:
        """Apply events up to the end of the window; puts are demands."""
        demands = as_demands(block)
        self.twin.apply(demands, demands=True)
        self.twin.drain_reports()
        events = demands.events
        is_refused = (events["op"] == PUT) & np.isin(events["reason"], _FULL) & (events["time"] <= self.window.until)
        self.refused.append(events["time"][is_refused].copy())

    @property
    def refused_at(self) -> Array:
        """Times of the refused puts, i8[n], microseconds."""
        return np.concatenate([np.zeros(0, np.int64), *self.refused])


@dataclass(slots=True)
class Traced:
    """Effects of the changes of a store by index, None of duplicates; and its untouched twins by incident."""

    effects: dict[int, DoneAction | None] = field(default_factory=dict)
    untouched: dict[str, Untouched] = field(default_factory=dict)


def trace(
    recording: str | Path,
    estate: Estate,
    store: str,
    changes: Sequence[RecordedChange],
    windows: Sequence[Window],
    until: int,
) -> Traced:
    """Play the events of a store with its changes, and beside them its untouched twins.

    Args:
        recording: the recording.
        estate: its estate.
        store: a store that holds messages.
        changes: its changes.
        windows: its incidents with changes.
        until: time of the last events that are played, microseconds.
    """
    traced, twin = Traced(), open_message_store(estate, store)
    by_index = {change.index: change for change in changes}
    for piece in _pieces(recording, estate, store, by_index, until):
        change = by_index.get(int(piece.index[0]))
        [block] = piece.blocks(estate)
        if change is not None:
            window = next((window for window in windows if window.has(change)), None)
            watched = Watched(twin, change.change, is_timed=window is not None)
            if window is not None and window.incident not in traced.untouched:
                traced.untouched[window.incident] = Untouched(window, _copy(estate, twin), change.time)
        for untouched in traced.untouched.values():
            own = piece.until(untouched.window.until)
            if len(own) and (change is None or not untouched.window.has(change)):
                untouched.feed(own.blocks(estate)[0])
        twin.apply(block)
        if change is not None:
            traced.effects[change.index] = watched.done(twin, change.time)
        twin.drain_reports()
    return traced


def _pieces(recording: str | Path, estate: Estate, store: str, indexes: Iterable[int], until: int) -> Iterator[Decoded]:
    """Yield the events of a store, each change in a piece of its own."""
    listed = np.array(list(indexes), np.int64)
    for own in chunks_of(chunks_until(decoded_chunks(recording, estate), until), estate, store):
        rows = np.flatnonzero(np.isin(own.index, listed))
        yield from own.split(np.unique([rows, rows + 1]).tolist())


def _copy(estate: Estate, twin: MessageStore) -> MessageStore:
    return open_message_store(estate, twin.name, twin.tables.copied_arrays(), twin.header(), None, forecasts=False)


def minutes(times: Array) -> int:
    """Return the number of minutes of the clock in which some times lie. times: i8[n], microseconds."""
    return int(np.unique(times // MINUTE).size)
