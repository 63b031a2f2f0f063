"""One chunk of a recording as records of the events topic, of a store or of a partition, in each content type.

Keys, content types and the events of a whole queue manager: docs/events.md, Records and Time.
"""

from __future__ import annotations

import warnings
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
from twin.recordings.files import Chunk, LinesChunk, TableChunk

BY_KEY = -1  # Kafka's number of no partition
UNROUTED = b"?"  # key of an event that belongs to no store; the stream dead-letters it
EVENTS_PER_RECORD = {JSON: 1, NDJSON: 1_000, ARROW: 5_000}  # about 200 KB each

_POSITIVE = 0x7FFF_FFFF  # Kafka's clients drop the sign of the hash
_QMGR_OPS = [OPS.index(op) for op in ("HEARTBEAT", "RESTART")]

Array = npt.NDArray[Any]


class Record(NamedTuple):
    """A record of the events topic.

    Args:
        key: name of the store; None: it has events of several stores.
        value: its value.
        content_type: content type, one of `EVENTS_PER_RECORD`.
        events: number of events in it.
        partition: partition of all of its stores; `BY_KEY`: the producer takes that of the key.
    """

    key: bytes | None
    value: bytes
    content_type: str
    events: int
    partition: int = BY_KEY


class StoreKeys:
    """The stores of an estate's routes, as record keys.

    Attributes:
        names: string[stores]: sorted.
        keys: the names as record keys.
        store_of_route: i4[routes]: index in `keys`.
    """

    def __init__(self, estate: Estate) -> None:
        names = sorted({route.store for route in estate.routes})
        index = {name: i for i, name in enumerate(names)}
        self.names = pa.array(names, pa.string())
        self.keys = [name.encode() for name in names]
        self.store_of_route = np.array([index[route.store] for route in estate.routes], np.int32)

    def partitions(self, count: int) -> Array:
        """Return the partition of each store in a topic of `count` partitions, i4[stores]: murmur2 of its key."""
        with warnings.catch_warnings():  # kafka-python reads its files in a way that Python 3.11 and 3.12 deprecate
            warnings.simplefilter("ignore", DeprecationWarning)
            from kafka.partitioner.default import murmur2
        return np.array([(murmur2(key) & _POSITIVE) % count for key in self.keys], np.int32)


class OutgoingChunk:
    """Events of one chunk as records. A row is an event for one store; rows are in the order of the chunk."""

    def __init__(self, chunk: Chunk, decoded: Decoded, stores: StoreKeys) -> None:
        self._chunk = chunk
        self._names = stores.names
        self._keys = stores.keys
        self._line_of_row = decoded.index - chunk.first
        self._stores = stores.store_of_route[decoded.events["route"]]
        self._is_qmgr_event = np.isin(decoded.events["op"], _QMGR_OPS)
        self._lines: list[bytes] | None = None
        self.rejects = decoded.rejects

    def messages(self, start: int, stop: int) -> list[dict[str, bytes]]:
        """Return rows as JSON, one per record, in the form of `Producer.produce_batch`."""
        keys = self._keys
        stores = self._stores[start:stop].tolist()
        return [
            {"value": text, "key": keys[store]}
            for text, store in zip(self._texts(np.arange(start, stop)), stores, strict=True)
        ]

    def records(
        self,
        start: int,
        stop: int,
        content_type: str,
        max_events: int,
        max_bytes: int,
        partitions: Array | None = None,
    ) -> Iterator[Record]:
        """Yield rows as NDJSON or Arrow, grouped by store or by partition, in their order within a group.

        Args:
            start: first row.
            stop: row after the last one.
            content_type: NDJSON or ARROW.
            max_events: events per record.
            max_bytes: bytes per value; only a single event may have more.
            partitions: i4[stores]: partition of each store, to group by it; None: by store.
        """
        stores = self._stores[start:stop]
        groups = stores if partitions is None else partitions[stores]
        order = np.argsort(groups, kind="stable")
        groups, order = groups[order], start + order
        cuts = np.flatnonzero(np.diff(groups)) + 1
        encode = self._ndjson(order) if content_type == NDJSON else self._arrow(order)
        for begin, end in zip([0, *cuts], [*cuts, order.size], strict=True):
            group = int(groups[begin])
            key, partition = (self._keys[group], BY_KEY) if partitions is None else (None, group)
            for first in range(begin, end, max_events):
                for value, events in _encode_within(encode, first, min(end, first + max_events), max_bytes):
                    yield Record(key, value, content_type, events, partition)

    def reject_record(self, reject: Reject) -> Record:
        """Return a rejected event as a record, its bytes unchanged."""
        if isinstance(self._chunk, TableChunk):
            row = self._chunk.rows.slice(reject.index - self._chunk.first, 1)
            return Record(UNROUTED, _arrow_stream(row), ARROW, 1)
        return Record(UNROUTED, reject.value, JSON, 1)

    def _texts(self, rows: Array) -> list[bytes]:
        """Return rows as JSON texts: the lines of the chunk, with the store added to HEARTBEAT and RESTART."""
        if self._lines is None:
            self._lines = self._chunk.lines()
        lines = self._lines
        texts = [lines[line] for line in self._line_of_row[rows].tolist()]
        for i in np.flatnonzero(self._is_qmgr_event[rows]).tolist():
            texts[i] = _with_store(texts[i], self._keys[self._stores[rows[i]]].decode())
        return texts

    def _ndjson(self, rows: Array) -> Callable[[int, int], bytes]:
        texts = self._texts(rows)
        return lambda start, stop: b"\n".join(texts[start:stop])

    def _arrow(self, rows: Array) -> Callable[[int, int], bytes]:
        table = self._table(self._line_of_row[rows])
        is_qmgr_event = self._is_qmgr_event[rows]
        if is_qmgr_event.any():
            routed_stores = self._names.take(pa.array(self._stores[rows]))
            event_stores = table.column("store").cast(pa.string()).combine_chunks()
            column = table.schema.get_field_index("store")
            stores = pc.if_else(pa.array(is_qmgr_event), routed_stores, event_stores).dictionary_encode()
            field = ARROW_SCHEMA.field(column)
            table = table.set_column(column, field, stores.cast(field.type))
        return lambda start, stop: arrow_value(table.slice(start, stop - start))

    def _table(self, lines: Array) -> pa.Table:
        try:
            return self._chunk.table(lines)
        except EventError:  # a column has a wrong type but no value in these rows: JSON leaves it out
            texts = self._chunk.lines()
            return LinesChunk(0, b"\n".join(texts[line] for line in lines)).table(np.arange(lines.size))


def _encode_within(
    encode: Callable[[int, int], bytes], start: int, stop: int, max_bytes: int
) -> Iterator[tuple[bytes, int]]:
    """Yield (value, events) of rows `start` to `stop`, halved until a value fits `max_bytes` or has one event."""
    value = encode(start, stop)
    if len(value) <= max_bytes or stop - start == 1:
        yield value, stop - start
        return
    middle = (start + stop) // 2
    yield from _encode_within(encode, start, middle, max_bytes)
    yield from _encode_within(encode, middle, stop, max_bytes)


def _with_store(text: bytes, store: str) -> bytes:
    event = msgspec.json.decode(text)
    if event.get("store") is not None:
        return text
    event["store"] = store
    return msgspec.json.encode(event)


def _arrow_stream(rows: pa.Table) -> bytes:
    """Return rows with all their columns as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())
