"""Results of decoding: event rows, dead letters, and the origin of each; and event batches of one store.

- Dead letters: their long values are cut, and rejects beyond the limit of a record are only counted.
- A batch is rows in memory, and compact bytes between the processes of a job. The bytes are private to a job: they
  carry a version, and no other version reads them.
- Each column has the smallest of four encodings:

* CONSTANT: no numbers; every row is `low`.
* PLAIN: one number per row.
* STEPS: rows - 1 numbers, the differences between consecutive rows; the first row is `first`.
* SPARSE: one bit per row, then `first` numbers; rows whose bit is not set are 0.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kernels import EVENT
from kernels.buffers import CONSTANT, PLAIN, SPARSE, STEPS, pack_column, unpack_column
from twin.estate import Estate
from twin.events.refusals import (
    DETAIL_CHARACTERS,
    MIN_LETTER_BYTES,
    EventError,
    Limits,
    Reason,
    max_letter_bytes,
    max_object_bytes,
)
from twin.events.rules import Accepted, Row

# --- batches of one store ---------------------------------------------------------------------------------------------
# Layout, little-endian: magic "MQB", version u1, length of the store name u2, the name in UTF-8, rows u4, extras u4;
# one column for each field of `kernels.EVENT` in `_COLUMNS`' order; the extras, each row u4, length u4, record i8,
# index i8, bytes.
#
# A column is a head (kind u1, width u1, first i8, low i8) and its numbers, `width` bytes each, unsigned, above `low`. A
# constant column costs 18 bytes per batch, a queue 1 byte per event, a unit of work 1 bit per event outside one.

VERSION = 3

_MAGIC = b"MQB"
_HEAD = struct.Struct("<3sBH")
_COUNTS = struct.Struct("<II")
_COLUMN = struct.Struct("<BBqq")
_EXTRA = struct.Struct("<IIqq")
_WIDTHS = (1, 2, 4, 8)

Words = npt.NDArray[np.int64]


class _Part(NamedTuple):
    """A column as a part of a row's words; see `kernels.buffers`."""

    word: int
    left: int
    right: int
    is_signed: bool


def _part(name: str) -> _Part:
    assert EVENT.fields is not None
    dtype, offset = EVENT.fields[name][:2]
    below = offset % 8 * 8
    return _Part(offset // 8, 64 - below - 8 * dtype.itemsize, 64 - 8 * dtype.itemsize, dtype.kind == "i")


_NAMES = tuple(name for name in EVENT.names or () if name != "pad")
_PARTS = tuple(_part(name) for name in _NAMES)


def _as_signed() -> np.dtype[Any]:
    """Return the type of a row with columns of 64 bits as signed numbers, as the heads of columns have them."""
    assert EVENT.fields is not None
    fields = [EVENT.fields[name][:2] for name in _NAMES]
    return np.dtype(
        {
            "names": list(_NAMES),
            "formats": ["i8" if dtype.itemsize == 8 else dtype for dtype, _ in fields],
            "offsets": [offset for _, offset in fields],
            "itemsize": EVENT.itemsize,
        }
    )


_SIGNED = _as_signed()


def take_rows(events: npt.NDArray[Any], places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return EVENT[m], the rows at m places. As words: numpy copies rows of a structured type 30 times more slowly."""
    return np.take(_as_words(events), places, axis=0).view(EVENT).reshape(-1)


def join_rows(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return EVENT[...], the rows of all parts, at least one."""
    return np.concatenate([_as_words(part) for part in parts]).view(EVENT).reshape(-1)


def _as_words(events: npt.NDArray[Any]) -> Words:
    return events.view(np.int64).reshape(events.size, EVENT.itemsize // 8)


class BlockError(ValueError):
    """Bytes that are not an event batch of this version."""


@dataclass(slots=True)
class EventBlock:
    """Events of one store, in order."""

    store: str
    events: npt.NDArray[Any]  # EVENT[n], C-contiguous, writable
    extras: dict[int, bytes]  # by row: JSON of the attributes (ALTER, REBUILD) or of the measurement (MEASURE)
    first: tuple[int, int] = field(default=(0, 0), compare=False)  # (record, index) of the first event, not packed
    places: dict[int, tuple[int, int]] = field(default_factory=dict, compare=False)  # the same, of rows with extras

    def __len__(self) -> int:
        return int(self.events.size)

    def pack(self) -> bytes:
        """Return the batch as bytes: for usual traffic about 15 per event."""
        name = self.store.encode()
        parts = [_HEAD.pack(_MAGIC, VERSION, len(name)), name, _COUNTS.pack(self.events.size, len(self.extras))]
        if self.events.size:
            parts += _packed(self.events)
        for row, text in sorted(self.extras.items()):
            parts += (_EXTRA.pack(row, len(text), *self.place_of(row)), text)
        return b"".join(parts)

    def place_of(self, row: int) -> tuple[int, int]:
        """Return (record, index) of an event; of one without an extra those of the first event, which is not later."""
        return self.places.get(row, self.first)

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> EventBlock:
        """Return the batch of packed bytes. Raise BlockError unless they are a whole batch of this version."""
        try:
            return cls._unpacked(memoryview(data))
        except (struct.error, IndexError, OverflowError, UnicodeDecodeError) as error:
            raise BlockError(f"a block of {len(data)} bytes is cut short or damaged: {error}") from None

    @classmethod
    def _unpacked(cls, data: memoryview) -> EventBlock:
        magic, version, size = _HEAD.unpack_from(data)
        if magic != _MAGIC or version != VERSION:
            raise BlockError(f"a block starts with {bytes(data[:4])!r}; expected: {_MAGIC + bytes([VERSION])!r}")
        offset = _HEAD.size + size
        store = bytes(data[_HEAD.size : offset]).decode()
        rows, extra_count = _COUNTS.unpack_from(data, offset)
        offset += _COUNTS.size
        events = np.zeros(rows, EVENT)
        if rows:
            offset = _unpack_into(events, data, offset)
        extras, places = {}, {}
        for _ in range(extra_count):
            row, length, *place = _EXTRA.unpack_from(data, offset)
            offset += _EXTRA.size + length
            extras[row] = bytes(data[offset - length : offset])
            places[row] = (place[0], place[1])
        if offset != len(data):
            raise BlockError(f"a block has {len(data)} bytes; expected: {offset}")
        return cls(store, events, extras, places=places)


def _packed(events: npt.NDArray[Any]) -> list[bytes]:
    """Return heads and numbers of all columns of at least one row."""
    if events.size == 1:
        first = events.view(_SIGNED)[0].item()
        return [_COLUMN.pack(CONSTANT, 0, 0, value) for value in first]
    words = _as_words(np.ascontiguousarray(events))
    values, bits = np.empty(events.size, np.int64), np.empty((events.size + 7) // 8, np.uint8)
    out, head = np.empty(8 * events.size, np.uint8), np.empty(5, np.int64)
    parts = []
    for part in _PARTS:
        pack_column(words, *part, values, bits, out, head)
        kind, width, first, low, size = head.tolist()
        parts.append(_COLUMN.pack(kind, width, first, low))
        if kind == SPARSE:
            parts.append(bits.tobytes())
        parts.append(out[:size].tobytes())
    return parts


def _unpack_into(events: npt.NDArray[Any], data: memoryview, offset: int) -> int:
    """Unpack all columns into rows that are zero, and return the offset behind them."""
    words, head = _as_words(events), np.empty(4, np.int64)
    octets = np.frombuffer(data, np.uint8)
    octets.flags.writeable = False  # compiled code is made for one kind of array
    for name, part in zip(_NAMES, _PARTS, strict=True):
        kind, width, first, low = column = _COLUMN.unpack_from(data, offset)
        offset += _COLUMN.size
        if kind == CONSTANT:  # of a few events all columns are: numpy costs less than a call of a kernel
            if low:
                events[name] = low if part.is_signed else low & (1 << 64 - part.right) - 1
            continue
        head[:] = column
        size = _size(kind, width, first, events.size)
        if offset + size > len(data):
            raise BlockError(f"a block has {len(data)} bytes; expected: at least {offset + size}")
        if kind == SPARSE and int.from_bytes(data[offset : offset + (events.size + 7) // 8]).bit_count() != first:
            raise BlockError(f"a block has a column of other than {first} numbers; expected: one for each of its bits")
        unpack_column(octets, offset, head, words, part.word, part.left, part.right)
        offset += size
    return offset


def _size(kind: int, width: int, first: int, rows: int) -> int:
    """Return the bytes of a column behind its head, that has numbers. BlockError: the head is damaged."""
    if kind not in (PLAIN, STEPS, SPARSE) or width not in _WIDTHS:
        raise BlockError(
            f"a block has a column of kind {kind}, width {width}; expected: kinds 0 to 3, widths 1, 2, 4, 8"
        )
    if kind == SPARSE:
        return (rows + 7) // 8 + first * width
    return (rows if kind == PLAIN else rows - 1) * width


# --- results of decoding ----------------------------------------------------------------------------------------------

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
            places = {row: self._place(row) for row in self.extras}
            return [EventBlock(names[0], self.events, self.extras, self._place(0), places)]
        stores = number[routes]
        order = np.argsort(stores, kind="stable")
        ends = np.cumsum(np.bincount(stores))
        events = take_rows(self.events, order)
        extras = _moved(self.extras, order)
        blocks = []
        for name, start, end in zip(names, [0, *ends[:-1]], ends, strict=True):
            own = {row - int(start): text for row, text in extras.items() if start <= row < end}
            places = {row: self._place(int(order[int(start) + row])) for row in own}
            blocks.append(EventBlock(name, events[start:end], own, self._place(int(order[start])), places))
        return blocks

    def take(self, rows: Array) -> Decoded:
        """Return some events without dead letters. rows: i8[m], in the order that the events then have."""
        return Decoded(take_rows(self.events, rows), self.record[rows], self.index[rows], _moved(self.extras, rows))

    def refusing(self, rejects: Sequence[Reject]) -> Decoded:
        """Return the events without those of further dead letters, and all dead letters. rejects: at least one."""
        refused = {(reject.record, reject.index) for reject in rejects}
        origins = zip(self.record.tolist(), self.index.tolist(), strict=True)
        decoded = self.take(np.array([row for row, origin in enumerate(origins) if origin not in refused], np.int64))
        decoded.rejects = sorted([*self.rejects, *rejects], key=lambda reject: (reject.record, reject.index))
        return decoded

    def until(self, time: int) -> Decoded:
        """Return the events up to a time, microseconds; a clock that is ahead costs only its own events."""
        rows = np.flatnonzero(self.events["time"] <= time)
        return self if rows.size == len(self) else self.take(rows)

    def split(self, cuts: Iterable[int]) -> Iterator[Decoded]:
        """Yield the events in pieces, in order, without dead letters and without empty pieces. `cuts`: rows that begin
        a piece, ascending; 0 and the number of events may be among them.
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

    def _place(self, row: int) -> tuple[int, int]:
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
    """Combine fast rows (`is_fast`: u1[m], 1 where `events` holds one) and exact rows in their original order."""
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


# --- dead letters of a batch ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rest:
    """Rejects of one record beyond its limit of dead letters."""

    first: int
    last: int
    reasons: Counter[Reason] = field(default_factory=Counter)


class RejectLog:
    """Dead letters of some values. Rejects of a value must come in the order of their index."""

    def __init__(self, limits: Limits, value_bytes: Array | None = None) -> None:
        """Start an empty log. `value_bytes`: size of each value, a bound for its rows as JSON; None for a recording."""
        self.limits = limits
        self._value_bytes = value_bytes
        self._rejects: list[Reject] = []
        self._counts: dict[int, int] = {}
        self._rests: dict[int, _Rest] = {}
        self._letter_bytes: dict[int, int] = {}  # left
        self._object_bytes: dict[int, int] = {}

    def is_full(self, record: int) -> bool:
        """True if further rejects of that value are only counted."""
        return self.limits.letters is not None and self._counts.get(record, 0) >= self.limits.letters

    def admit(self, record: int, index: int, reason: Reason) -> bool:
        """Count a reject; return True if the caller has to write a dead letter for it."""
        if self.is_full(record):
            self.count(record, index, index, reason, 1)
            return False
        self._counts[record] = self._counts.get(record, 0) + 1
        return True

    def count(self, record: int, first: int, last: int, reason: Reason, number: int) -> None:
        """Count rejects of a value that is full."""
        rest = self._rests.setdefault(record, _Rest(first, last))
        rest.first, rest.last = min(rest.first, first), max(rest.last, last)
        rest.reasons[reason] += number

    def append(self, record: int, index: int, reason: Reason, detail: str, value: bytes, length: int) -> None:
        """Append an admitted dead letter. length: length of its value before it was cut."""
        cut = value[: self.limits.value_bytes]
        self._rejects.append(Reject(record, index, reason, detail[:DETAIL_CHARACTERS], cut, length))

    def add(self, record: int, index: int, reason: Reason, detail: str, value: bytes) -> None:
        """Admit a reject and append its dead letter."""
        if self.admit(record, index, reason):
            self.append(record, index, reason, detail, value, len(value))

    def add_buffer(self, record: int, index: int, reason: Reason, detail: str, value: pa.Buffer) -> None:
        """Admit a reject and append its dead letter; only the kept part of the value is copied."""
        if self.admit(record, index, reason):
            cut = value.slice(0, min(value.size, self.limits.value_bytes)).to_pybytes()
            self.append(record, index, reason, detail, cut, value.size)

    def row_limit(self, record: int) -> int:
        """Return the maximum bytes of the next row of a value as JSON."""
        left = self._letter_bytes.get(record)
        if left is None:
            left = self._letter_bytes[record] = max_letter_bytes(self._bytes_of(record))
        return min(self.limits.value_bytes, max(MIN_LETTER_BYTES, left))

    def append_row(self, record: int, index: int, reason: Reason, detail: str, value: bytes, length: int) -> None:
        """Append an admitted dead letter whose value is a row as JSON, at most `row_limit` bytes."""
        self._letter_bytes[record] -= len(value)
        self.append(record, index, reason, detail, value, length)

    def check_objects(self, record: int, size: int) -> None:
        """Raise EventError (oversized) if attributes and measurements of a value are too large together."""
        limit = max_object_bytes(self._bytes_of(record))
        total = self._object_bytes.get(record, 0) + size
        if total > limit:
            raise EventError(
                Reason.OVERSIZED,
                f"attributes and measured of one record take over {limit} bytes; expected: at most that",
            )
        self._object_bytes[record] = total

    def forget(self, records: Iterable[int]) -> None:
        """Drop all rejects of some values."""
        dropped = set(records)
        self._rejects = [reject for reject in self._rejects if reject.record not in dropped]
        for record in dropped:
            self._counts.pop(record, None)
            self._rests.pop(record, None)
            self._letter_bytes.pop(record, None)
            self._object_bytes.pop(record, None)

    def rejects(self) -> list[Reject]:
        """Return all dead letters by value and index, with one more for each value beyond its limit."""
        more = [
            Reject(record, rest.first, Reason.MANY_REJECTED, _describe(rest), b"")
            for record, rest in self._rests.items()
        ]
        return sorted(self._rejects + more, key=lambda reject: (reject.record, reject.index))

    def _bytes_of(self, record: int) -> int | None:
        return None if self._value_bytes is None else int(self._value_bytes[record])


def describe_failure(error: Exception) -> tuple[Reason, str]:
    """Return the reason and detail of an event whose decoding raised an exception."""
    if isinstance(error, EventError):
        return error.reason, error.detail
    return Reason.UNDECODABLE, f"{one_line(error)}; expected: an event that the rules can be applied to"


def one_line(error: BaseException) -> str:
    """Return an exception's name and text on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _describe(rest: _Rest) -> str:
    by_count = sorted(rest.reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in by_count)
    return (
        f"{sum(rest.reasons.values())} further events of this record were refused, index {rest.first} to {rest.last}: "
        f"{reasons}; the record itself is still in its topic"
    )
