"""Results of decoding: event rows, dead letters, and the origin of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT
from twin.estate import Estate
from twin.events.block import EventBlock, join_rows, take_rows
from twin.events.refusals import Reason
from twin.events.rules import Accepted, Row

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reject:
    """Dead letter.

    Its value is the JSON text, the line without its end, or the Arrow row as JSON; the whole stream if it is damaged or
    oversized; empty for `many-rejected`.
    """

    record: int  # index of the Kafka value
    index: int  # line or row within it, from 0
    reason: Reason
    detail: str
    value: bytes
    length: int = -1  # of the value before it was cut

    def __post_init__(self) -> None:
        """Set the length of a value that was not cut."""
        if self.length < 0:
            object.__setattr__(self, "length", len(self.value))

    def moved_to(self, record: int, index: int) -> Reject:
        """Return the dead letter with another origin."""
        return replace(self, record=record, index=index)


@dataclass(slots=True)
class Decoded:
    """Decoded events of any number of stores, in their original order.

    An event that concerns several stores has one row per store, with the same record and index.
    """

    events: Array  # EVENT[n], C-contiguous
    record: Array  # i4[n], index of the value
    index: Array  # i8[n], line or row within the value
    extras: dict[int, bytes] = field(default_factory=dict)  # by row: JSON of attributes or measured
    rejects: list[Reject] = field(default_factory=list)  # by record and index

    def __len__(self) -> int:
        return int(self.events.size)

    def blocks(self, estate: Estate) -> list[EventBlock]:
        """Return one batch per store with events, sorted by store; the order within a store is kept."""
        if not self.events.size:
            return []
        routes = self.events["route"]
        present = np.flatnonzero(np.bincount(routes))
        names = sorted({estate.routes[route].store for route in present})
        place = {name: i for i, name in enumerate(names)}
        number = np.zeros(int(present[-1]) + 1, np.int16 if len(names) < 2**15 else np.int32)
        number[present] = [place[estate.routes[route].store] for route in present]
        if len(names) == 1:
            return [EventBlock(names[0], self.events, self.extras, self._first(0))]
        stores = number[routes]
        order = np.argsort(stores, kind="stable")
        ends = np.cumsum(np.bincount(stores))
        events = take_rows(self.events, order)
        extras = _moved(self.extras, order)
        blocks = []
        for name, start, end in zip(names, [0, *ends[:-1]], ends, strict=True):
            own = {row - int(start): text for row, text in extras.items() if start <= row < end}
            blocks.append(EventBlock(name, events[start:end], own, self._first(int(order[start]))))
        return blocks

    def take(self, rows: Array) -> Decoded:
        """Return some events without dead letters. rows: i8[m], in the order that the events then have."""
        return Decoded(take_rows(self.events, rows), self.record[rows], self.index[rows], _moved(self.extras, rows))

    def until(self, time: int) -> Decoded:
        """Return the events up to a time, microseconds; a clock that is ahead costs only its own events."""
        rows = np.flatnonzero(self.events["time"] <= time)
        return self if rows.size == len(self) else self.take(rows)

    def split(self, cuts: Iterable[int]) -> Iterator[Decoded]:
        """Yield the events in pieces, in order, without dead letters and without empty pieces.

        Args:
            cuts: rows that begin a piece, ascending; 0 and the number of events may be among them.
        """
        extras = sorted(self.extras.items())
        first = 0
        for start, end in pairwise([0, *cuts, len(self)]):
            if start == end:
                continue
            last = bisect_left(extras, end, first, key=itemgetter(0))
            own = {row - start: text for row, text in extras[first:last]}
            yield Decoded(self.events[start:end], self.record[start:end], self.index[start:end], own)
            first = last

    def _first(self, row: int) -> tuple[int, int]:
        return int(self.record[row]), int(self.index[row])


@dataclass(slots=True)
class Exact:
    """Results of the exact rules."""

    places: list[int] = field(default_factory=list)  # position of each row in the original order
    rows: list[Row] = field(default_factory=list)
    extras: dict[int, bytes] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)

    def add(self, place: int, accepted: Accepted) -> None:
        """Append the rows of an accepted event."""
        if accepted.extra is not None:
            self.extras[len(self.rows)] = accepted.extra
        self.places += [place] * len(accepted.rows)
        self.rows += accepted.rows


def assemble(events: Array, is_fast: Array, record: Array, index: Array, exact: Exact) -> Decoded:
    """Combine fast rows and exact rows in their original order.

    Args:
        events: EVENT[m].
        is_fast: u1[m], 1 where `events` holds a row.
        record: i4[m].
        index: i8[m].
        exact: results for the other places.
    """
    if not exact.rows:
        if is_fast.all():
            return Decoded(events, record, index, rejects=exact.rejects)
        fast = is_fast.view(np.bool_)
        return Decoded(take_rows(events, np.flatnonzero(fast)), record[fast], index[fast], rejects=exact.rejects)
    fast_places = np.flatnonzero(is_fast)
    places = np.concatenate([fast_places, np.array(exact.places, np.int64)])
    rows = join_rows([take_rows(events, fast_places), np.array(exact.rows, EVENT)])
    extras = {row + fast_places.size: text for row, text in exact.extras.items()}
    order = np.argsort(places, kind="stable")
    places = places[order]
    return Decoded(take_rows(rows, order), record[places], index[places], _moved(extras, order), exact.rejects)


def merge(pieces: Sequence[Decoded]) -> Decoded:
    """Combine pieces, ordered by record and index; rows with the same ones keep their order."""
    if not pieces:
        return Decoded(np.zeros(0, EVENT), np.zeros(0, np.int32), np.zeros(0, np.int64))
    if len(pieces) == 1:
        return pieces[0]
    record = np.concatenate([piece.record for piece in pieces])
    index = np.concatenate([piece.index for piece in pieces])
    events = join_rows([piece.events for piece in pieces])
    extras = {}
    start = 0
    for piece in pieces:
        extras.update({start + row: text for row, text in piece.extras.items()})
        start += len(piece)
    rejects = sorted((r for piece in pieces for r in piece.rejects), key=lambda reject: (reject.record, reject.index))
    order = np.lexsort((index, record))
    if (np.diff(order) == 1).all():
        return Decoded(events, record, index, extras, rejects)
    return Decoded(take_rows(events, order), record[order], index[order], _moved(extras, order), rejects)


def _moved(extras: dict[int, bytes], rows: Array) -> dict[int, bytes]:
    """Return the extras of rows that were taken: new row k is old row rows[k]."""
    if not extras:
        return {}
    place = np.full(max(int(rows.max(initial=0)), *extras) + 1, -1)
    place[rows] = np.arange(rows.size)
    return {int(place[row]): text for row, text in extras.items() if place[row] >= 0}
