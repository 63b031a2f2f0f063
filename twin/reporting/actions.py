"""Actions: what people changed in a store while it was in danger, and what that was worth.

What a change is and how much longer the store had after it is said by `twin.stores.actions`. The store's events are
played once more. At the first change of an incident a copy of the twin continues without any change; the puts of the
recording are made to it as demands (`twin.playback.replays.as_demands`), so that it refuses what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernels.clock import SECOND
from kernels.layout import MEASURE, PUT
from twin.estate import Estate
from twin.events import Decoded, EventBlock
from twin.playback.replays import STORE_FULL, Player, as_demands, chunks_of, decoded_chunks, play
from twin.playback.samples import Applied, Observer
from twin.records import DoneAction
from twin.state.arrays import Array
from twin.stores.actions import IS_CHANGE, StoreChange, Watched, read_change
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin, open_message_store

MINUTE = 60 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChange:
    """A change of a store in a recording."""

    index: int  # line or row of its event in the recording, from 0
    store: str
    time: int  # microseconds since 1970
    change: StoreChange


class ChangeLog(Observer):
    """The changes in a recording, collected while it is played."""

    def __init__(self, estate: Estate) -> None:
        self.changes: list[RecordedChange] = []  # in the order of the recording
        self.measurements: dict[str, int] = {}  # MEASURE events by store
        self._estate = estate
        self._sizes: dict[str, int | None] = {}  # last measured SIZE, by store

    def after(self, applied: Applied) -> None:
        """Add the changes of a piece."""
        piece = applied.piece
        for row in IS_CHANGE[piece.events["op"]].nonzero()[0].tolist():
            event, route = piece.events[row], self._estate.routes[int(piece.events["route"][row])]
            if event["op"] == MEASURE:
                self.measurements[route.store] = self.measurements.get(route.store, 0) + 1
            content, config = piece.extras.get(row, b"{}"), self._estate.stores[route.store]
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
    """The time of an incident with changes. Times in microseconds since 1970."""

    incident: str
    opened: int  # opened, over: when changes belong to it
    over: int
    until: int  # until when the untouched twin is played

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
        puts = demands.events[demands.events["op"] == PUT]
        is_refused = np.isin(puts["reason"], STORE_FULL) & (puts["time"] <= self.window.until)
        self.refused.append(puts["time"][is_refused].copy())

    @property
    def refused_at(self) -> Array:
        """Times of the refused puts, i8[n], microseconds."""
        return np.concatenate([np.zeros(0, np.int64), *self.refused])


class Traced(Observer):
    """The changes of a store, applied, and beside it its untouched twins."""

    def __init__(
        self, estate: Estate, store: str, changes: Sequence[RecordedChange], windows: Sequence[Window]
    ) -> None:
        """Begin before the first event. Arguments as of `trace`."""
        self.effects: dict[int, DoneAction | None] = {}  # effect of each change, by index; None of duplicates
        self.untouched: dict[str, Untouched] = {}  # untouched twins by incident
        self._estate = estate
        self._store = store
        self._changes = {change.index: change for change in changes}
        self._windows = windows
        self._watched: Watched | None = None

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows that let each change be a piece of its own."""
        rows = np.flatnonzero(np.isin(decoded.index, list(self._changes)))
        return sorted({*rows.tolist(), *(rows + 1).tolist()})

    def before(self, piece: Decoded, twins: Mapping[str, Twin]) -> None:
        """Copy the twin at the first change of an incident, and apply the piece to untouched twins."""
        change, twin = self._changes.get(int(piece.index[0])), self._twin(twins)
        if change is not None:
            window = next((window for window in self._windows if window.has(change)), None)
            self._watched = Watched(twin, change.change, is_timed=window is not None)
            if window is not None and window.incident not in self.untouched:
                self.untouched[window.incident] = Untouched(window, _copy(self._estate, twin), change.time)
        for untouched in self.untouched.values():
            own = piece.until(untouched.window.until)
            if len(own) and (change is None or not untouched.window.has(change)):
                untouched.feed(own.blocks(self._estate)[0])

    def after(self, applied: Applied) -> None:
        """Note the effect of a change."""
        if self._watched is not None:
            change = self._changes[int(applied.piece.index[0])]
            self.effects[change.index] = self._watched.done(self._twin(applied.twins), change.time)
            self._watched = None

    def _twin(self, twins: Mapping[str, Twin]) -> MessageStore:
        twin = twins[self._store]
        assert isinstance(twin, MessageStore)
        return twin


def trace(
    recording: str | Path,
    estate: Estate,
    store: str,
    changes: Sequence[RecordedChange],
    windows: Sequence[Window],
    until: int,
) -> Traced:
    """Play the events of a store with its changes, and beside them its untouched twins."""
    traced, player = Traced(estate, store, changes, windows), Player(estate, {store: open_message_store(estate, store)})
    play(chunks_of(decoded_chunks(recording, estate), estate, store), estate, traced, player=player, until=until)
    return traced


def _copy(estate: Estate, twin: MessageStore) -> MessageStore:
    return open_message_store(estate, twin.name, twin.tables.copied_arrays(), twin.header(), None, forecasts=False)


def minutes(times: Array) -> int:
    """Return the number of minutes of the clock in which some times lie. times: i8[n], microseconds."""
    return int(np.unique(times // MINUTE).size)
