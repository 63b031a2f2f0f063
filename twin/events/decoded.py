"""What comes out of decoding: rows of events, dead letters, and where each came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT
from twin.estate import Estate
from twin.events.block import EventBlock
from twin.events.reasons import Reason
from twin.events.rules import Row, Taken

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reject:
    """One dead letter. record: which value; index: line or row within it, from 0; value: the original bytes.

    The value is the event itself: the JSON text, the line without its end, the Arrow row as JSON; the whole stream
    where it is damaged or oversized; nothing for `many-rejected`. length: of the value before it was cut.
    """

    record: int
    index: int
    reason: Reason
    detail: str
    value: bytes
    length: int = -1

    def __post_init__(self) -> None:
        """Take the value as whole where no length is given."""
        if self.length < 0:
            object.__setattr__(self, "length", len(self.value))

    def at(self, record: int, index: int) -> Reject:
        """Return the same dead letter at another place."""
        return replace(self, record=record, index=index)


@dataclass(slots=True)
class Decoded:
    """Events of any number of stores, in the order given.

    events: EVENT[n], C-contiguous; record: i4[n], which value; index: i8[n], line or row within the value; extras: row
    -> JSON of attributes or measured; rejects: ordered by record and index. An event that concerns several stores has
    one row for each, of the same record and index.
    """

    events: Array
    record: Array
    index: Array
    extras: dict[int, bytes] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)

    def __len__(self) -> int:
        return int(self.events.size)

    def blocks(self, estate: Estate) -> list[EventBlock]:
        """One block for each store that has events, by store name; the order within a store kept."""
        if not self.events.size:
            return []
        routes = self.events["route"]
        present = np.flatnonzero(np.bincount(routes))
        names = sorted({estate.routes[route].store for route in present})
        place = {name: at for at, name in enumerate(names)}
        number = np.zeros(int(present[-1]) + 1, np.int16 if len(names) < 2**15 else np.int32)
        number[present] = [place[estate.routes[route].store] for route in present]
        if len(names) == 1:
            return [EventBlock(names[0], self.events, self.extras, self._first(0))]
        stores = number[routes]
        order = np.argsort(stores, kind="stable")
        ends = np.cumsum(np.bincount(stores))
        events = self.events[order]
        extras = _moved(self.extras, order)
        blocks = []
        for name, start, end in zip(names, [0, *ends[:-1]], ends, strict=True):
            own = {row - int(start): text for row, text in extras.items() if start <= row < end}
            blocks.append(EventBlock(name, events[start:end], own, self._first(int(order[start]))))
        return blocks

    def _first(self, row: int) -> tuple[int, int]:
        return int(self.record[row]), int(self.index[row])


@dataclass(slots=True)
class Exact:
    """Outcomes of the exact rules, beside rows that were read the fast way. place: position in the order given."""

    places: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    extras: dict[int, bytes] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)

    def add(self, place: int, taken: Taken) -> None:
        """An accepted event."""
        if taken.extra is not None:
            self.extras[len(self.rows)] = taken.extra
        self.places += [place] * len(taken.rows)
        self.rows += taken.rows


def assembled(events: Array, taken: Array, record: Array, index: Array, exact: Exact) -> Decoded:
    """Fast rows and exact rows in one order.

    events EVENT[m]; taken u1[m], where a fast row stands; record i4[m] and index i8[m] of every place; exact: the rest.
    """
    if not exact.rows:
        if taken.all():
            return Decoded(events, record, index, rejects=exact.rejects)
        fast = taken.view(np.bool_)
        return Decoded(events[fast], record[fast], index[fast], rejects=exact.rejects)
    fast_places = np.flatnonzero(taken)
    places = np.concatenate([fast_places, np.array(exact.places, np.int64)])
    rows = np.concatenate([events[fast_places], np.array(exact.rows, EVENT)])
    extras = {row + fast_places.size: text for row, text in exact.extras.items()}
    order = np.argsort(places, kind="stable")
    places = places[order]
    return Decoded(rows[order], record[places], index[places], _moved(extras, order), exact.rejects)


def merged(pieces: Sequence[Decoded]) -> Decoded:
    """Several in one, ordered by record and index; what stands in one place keeps its order."""
    if not pieces:
        return Decoded(np.zeros(0, EVENT), np.zeros(0, np.int32), np.zeros(0, np.int64))
    if len(pieces) == 1:
        return pieces[0]
    record = np.concatenate([piece.record for piece in pieces])
    index = np.concatenate([piece.index for piece in pieces])
    events = np.concatenate([piece.events for piece in pieces])
    extras = {}
    start = 0
    for piece in pieces:
        extras.update({start + row: text for row, text in piece.extras.items()})
        start += len(piece)
    rejects = sorted((r for piece in pieces for r in piece.rejects), key=lambda reject: (reject.record, reject.index))
    order = np.lexsort((index, record))
    if (np.diff(order) == 1).all():
        return Decoded(events, record, index, extras, rejects)
    return Decoded(events[order], record[order], index[order], _moved(extras, order), rejects)


def _moved(extras: dict[int, bytes], order: Array) -> dict[int, bytes]:
    """The extras of rows that were put into another order: new row k is old row order[k]."""
    if not extras:
        return {}
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return {int(place[row]): text for row, text in extras.items()}
