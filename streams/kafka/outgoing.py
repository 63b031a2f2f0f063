"""A piece of a recording as records of the events topic, keyed by store, in each of the three content types.

Source: contract section 2 (content types, key), section 7 (HEARTBEAT and RESTART without `store`: a record to each
store).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from kernels import OPS
from twin.estate import Estate
from twin.events import ARROW, ARROW_SCHEMA, JSON, NDJSON, Decoded, EventError, Reject
from twin.events.convert import arrow_value
from twin.recordings import Chunk, LinesChunk, TableChunk

UNROUTED = b"?"  # key of what belongs to no store: the stream dead-letters it
EVENTS_A_RECORD = {JSON: 1, NDJSON: 1_000, ARROW: 5_000}  # about 200 KB each

_OF_QMGR = [OPS.index(op) for op in ("HEARTBEAT", "RESTART")]

Array = npt.NDArray[Any]


class Record(NamedTuple):
    """A record of the events topic, and how many events are in it."""

    key: bytes
    value: bytes
    content_type: str
    events: int


class Stores:
    """Routes of an estate as numbers of stores.

    keys: the store names as record keys; of_route: i4[routes], place in keys.
    """

    def __init__(self, estate: Estate) -> None:
        names = sorted({route.store for route in estate.routes})
        place = {name: number for number, name in enumerate(names)}
        self.names = pa.array(names, pa.string())
        self.keys = [name.encode() for name in names]
        self.of_route = np.array([place[route.store] for route in estate.routes], np.int32)


class Outgoing:
    """Events of one chunk. A row is an event for one store; rows are in the order of the chunk."""

    def __init__(self, chunk: Chunk, decoded: Decoded, stores: Stores) -> None:
        self._chunk = chunk
        self._names = stores.names
        self._keys = stores.keys
        self._places = decoded.index - chunk.first
        self._stores = stores.of_route[decoded.events["route"]]
        self._of_qmgr = np.isin(decoded.events["op"], _OF_QMGR)
        self._lines: list[bytes] | None = None
        self.rejects = decoded.rejects

    def messages(self, start: int, stop: int) -> list[dict[str, bytes]]:
        """Rows as JSON, one a record, as `Producer.produce_batch` takes them."""
        keys = self._keys
        numbers = self._stores[start:stop].tolist()
        return [
            {"value": line, "key": keys[number]}
            for line, number in zip(self._texts(np.arange(start, stop)), numbers, strict=True)
        ]

    def records(self, start: int, stop: int, content_type: str, most: int, limit: int) -> Iterator[Record]:
        """Rows as NDJSON or Arrow, by store: at most `most` events a record, and `limit` bytes unless a single event
        has more.
        """
        order = start + np.argsort(self._stores[start:stop], kind="stable")
        numbers = self._stores[order]
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        make = self._ndjson(order) if content_type == NDJSON else self._arrow(order)
        for begin, end in zip([0, *cuts], [*cuts, order.size], strict=True):
            key = self._keys[numbers[begin]]
            for first in range(begin, end, most):
                for value, events in _within(make, first, min(end, first + most), limit):
                    yield Record(key, value, content_type, events)

    def reject(self, reject: Reject) -> Record:
        """What cannot be taken, as it is."""
        if isinstance(self._chunk, TableChunk):
            row = self._chunk.rows.slice(reject.index - self._chunk.first, 1)
            return Record(UNROUTED, _as_stream(row), ARROW, 1)
        return Record(UNROUTED, reject.value, JSON, 1)

    def _texts(self, rows: Array) -> list[bytes]:
        """Rows as JSON texts: the lines as they are, but a HEARTBEAT or RESTART always names its store."""
        if self._lines is None:
            self._lines = self._chunk.lines()
        lines = self._lines
        texts = [lines[place] for place in self._places[rows].tolist()]
        for at in np.flatnonzero(self._of_qmgr[rows]).tolist():
            texts[at] = _with_store(texts[at], self._keys[self._stores[rows[at]]].decode())
        return texts

    def _ndjson(self, rows: Array) -> Callable[[int, int], bytes]:
        texts = self._texts(rows)
        return lambda start, stop: b"\n".join(texts[start:stop])

    def _arrow(self, rows: Array) -> Callable[[int, int], bytes]:
        table = self._table(self._places[rows])
        of_qmgr = self._of_qmgr[rows]
        if of_qmgr.any():
            own = self._names.take(pa.array(self._stores[rows]))
            named = table.column("store").cast(pa.string()).combine_chunks()
            place = table.schema.get_field_index("store")
            filled = pc.if_else(pa.array(of_qmgr), own, named).dictionary_encode().cast(ARROW_SCHEMA.field(place).type)
            table = table.set_column(place, ARROW_SCHEMA.field(place), filled)
        return lambda start, stop: arrow_value(table.slice(start, stop - start))

    def _table(self, places: Array) -> pa.Table:
        try:
            return self._chunk.table(places)
        except EventError:  # a column of another type, which the rows that count have nothing in: JSON leaves it out
            texts = self._chunk.lines()
            return LinesChunk(0, b"\n".join(texts[place] for place in places)).table(np.arange(places.size))


def _within(make: Callable[[int, int], bytes], start: int, stop: int, limit: int) -> Iterator[tuple[bytes, int]]:
    """Values of rows from `start` to `stop`, halved until each has at most `limit` bytes or one event."""
    value = make(start, stop)
    if len(value) <= limit or stop - start == 1:
        yield value, stop - start
        return
    middle = (start + stop) // 2
    yield from _within(make, start, middle, limit)
    yield from _within(make, middle, stop, limit)


def _with_store(text: bytes, store: str) -> bytes:
    event = msgspec.json.decode(text)
    if event.get("store") is not None:
        return text
    event["store"] = store
    return msgspec.json.encode(event)


def _as_stream(rows: pa.Table) -> bytes:
    """A row with whatever columns it has, as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())
