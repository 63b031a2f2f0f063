"""Publication of a recording in the events topic, keyed by store: docs/events.md, Records and Time.

The order within a store is that of the recording: a key has one partition, and the producer is idempotent. The
partition of a store is the one that Kafka's own client and `streams.pure_producer` choose (murmur2 of the key), so that
several producers agree. A record may have the events of all stores of its partition: with a thousand stores, records of
one store each would have few events. An event that belongs to no store is published unchanged under the key `?`, and
the stream dead-letters it. Partitioner: Kafka documentation, "Producer Configs", partitioner.class.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from confluent_kafka import KafkaError, Message, Producer

from kernels import OPS
from kernels.clock import confirms_far, is_far_ahead
from kernels.layout import NEVER
from streams.kafka.admin import partitions_of, prepare_topic
from streams.kafka.clients import LastError, fetch_metadata, new_producer
from streams.kafka.topics import Topics
from twin.base.errors import MqtwinError
from twin.estate import Estate
from twin.events import ARROW, ARROW_SCHEMA, JSON, NDJSON, Decoded, Decoder, EventError, Reject
from twin.events.convert import arrow_value
from twin.recordings.files import Chunk, LinesChunk, TableChunk, open_lines, open_recording
from twin.stores.warm_up import warm

GRAIN_S = 0.02  # events due within it are sent together
_BATCH = 10_000  # JSON records per call of the producer
_MAX_PENDING_BYTES = 128 * 1024 * 1024  # produced and not yet delivered
_MAX_PENDING_RECORDS = 200_000
_OVERHEAD_BYTES = 1024  # a record's heads, key and content type
_FINAL_FLUSH_SECONDS = 5  # after an error or Ctrl-C, for pending records
_DELIVERY_SECONDS = 120  # the default of delivery.timeout.ms in Kafka's own client

_SETTINGS = {
    "enable.idempotence": True,  # implies acks=all; a retry neither repeats nor reorders records
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 2 * _MAX_PENDING_RECORDS,
    "queue.buffering.max.kbytes": 2_000_000,
    "message.timeout.ms": _DELIVERY_SECONDS * 1000,
    "delivery.report.only.error": True,  # a Python callback per delivered record would halve the throughput
}

BY_KEY = -1  # Kafka's number of no partition
UNROUTED = b"?"  # key of an event that belongs to no store; the stream dead-letters it
EVENTS_PER_RECORD = {JSON: 1, NDJSON: 1_000, ARROW: 5_000}  # about 200 KB each

_POSITIVE = 0x7FFF_FFFF  # Kafka's clients drop the sign of the hash
_QMGR_OPS = [OPS.index(op) for op in ("HEARTBEAT", "RESTART")]

Array = npt.NDArray[Any]
Partitions = npt.NDArray[np.int32]


class Record(NamedTuple):
    """A record of the events topic. key: None: it has events of several stores; partition: `BY_KEY`: by the key."""

    key: bytes | None
    value: bytes
    content_type: str
    events: int
    partition: int = BY_KEY


class StoreKeys:
    """The stores of an estate's routes, as record keys."""

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
        """Yield rows as NDJSON or Arrow, grouped by store or by partition, in their order within a group. Only a single
        event may exceed `max_bytes`. `partitions`, i4[stores], groups by partition instead of store.
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
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, row.schema) as writer:
                writer.write_table(row)
            return Record(UNROUTED, bytes(sink.getvalue().to_pybytes()), ARROW, 1)
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


class Slice(NamedTuple):
    """Rows from `start` up to `stop`. due_s: after the first event."""

    start: int
    stop: int
    due_s: float


class Pace:
    """The schedule of a publication, by event time over real time or events per second; without both all is due."""

    def __init__(self, *, speed: float | None = None, rate: float | None = None) -> None:
        self._speed, self._rate = speed, rate
        self._sent = 0
        self._held_s = 0.0
        self._first_us: int | None = None
        self._clock_us = 0
        self._far_us = NEVER  # the previous time, if it was too far ahead

    @property
    def is_free(self) -> bool:
        """True if everything is due at once."""
        return self._speed is None and self._rate is None

    def hold(self, seconds: float) -> None:
        """Move everything that follows back by a time that was spent elsewhere, such as waiting for a reader."""
        self._held_s += seconds

    def slices(self, times: Array) -> Iterator[Slice]:
        """Yield the next events, cut into slices that are due together. Times are i8[n]."""
        if not times.size:
            return
        if self._rate is not None:
            slices = self._slices_by_rate(times.size, self._rate)
        elif self._speed is not None:
            slices = self._slices_by_time(times, self._speed)
        else:
            slices = iter((Slice(0, times.size, 0.0),))
        for rows in slices:
            yield rows._replace(due_s=rows.due_s + self._held_s)

    def _slices_by_rate(self, count: int, rate: float) -> Iterator[Slice]:
        step = max(1, int(rate * GRAIN_S))
        for start in range(0, count, step):
            stop = min(count, start + step)
            yield Slice(start, stop, self._sent / rate)
            self._sent += stop - start

    def _slices_by_time(self, times: Array, speed: float) -> Iterator[Slice]:
        if self._first_us is None:
            self._first_us = self._clock_us = int(times[0])
        due_s = (self._clock_times(times) - self._first_us) / (1e6 * speed)
        cuts = np.flatnonzero(np.diff(np.floor(due_s / GRAIN_S))) + 1
        for start, stop in zip([0, *cuts], [*cuts, times.size], strict=True):
            yield Slice(int(start), int(stop), float(due_s[start]))

    def _clock_times(self, times: Array) -> Array:
        """Return the clock at each event, i8[n]: the latest time so far, except for a single time far ahead."""
        clock_times = np.empty(times.size, np.int64)
        for i, time_us in enumerate(times.tolist()):
            if confirms_far(self._far_us, time_us):
                self._clock_us, self._far_us = max(self._clock_us, self._far_us, time_us), NEVER
            elif is_far_ahead(self._clock_us, time_us):
                self._far_us = time_us
            else:
                self._clock_us, self._far_us = max(self._clock_us, time_us), NEVER
            clock_times[i] = self._clock_us
        return clock_times


@dataclass(slots=True)
class PublishResult:
    """Counts of a publication."""

    events: int = 0  # an event for several stores counts once per store
    records: int = 0  # without rejects
    rejects: int = 0  # records of events that belong to no store
    bytes: int = 0  # of all values
    seconds: float = 0.0  # until the last delivery


def publish(
    path: str | Path,
    estate: Estate,
    kafka: Mapping[str, str],
    topics: Topics,
    *,
    content_type: str = JSON,
    by_partition: bool = False,
    pace: Pace | None = None,
    create_topics: bool = True,
    on_progress: Callable[[Chunk, int], None] | None = None,
    on_rejects: Callable[[Sequence[Reject], int], None] | None = None,
) -> PublishResult:
    """Publish a recording and return when all of it is delivered. Without `pace` all is sent at once. With
    `by_partition` an NDJSON or Arrow record has the events of all stores of a partition, and no key; else those of one
    store, its key. UsageError: the recording cannot be read, a setting is wrong, there is no events topic, or the user
    may not write there. MqtwinError: no Kafka answers, an event is larger than the topic takes, or a record was not
    delivered.

    Args:
        path: path of the recording; "-": events in lines from standard input, each published as it comes.
    """
    pace = pace or Pace()
    chunks = open_lines(cast("BufferedReader", sys.stdin.buffer)) if str(path) == "-" else open_recording(path)
    warm()
    decoder, stores = Decoder(estate), StoreKeys(estate)
    result = PublishResult()
    linger_ms = 50 if pace.is_free else 5
    with Sender(kafka, topics, result, linger_ms=linger_ms, create_topics=create_topics) as sender:
        partitions = stores.partitions(len(partitions_of(kafka, topics.events))) if by_partition else None
        sender.start()
        for chunk in chunks:
            decoded = chunk.decode(decoder)
            outgoing = OutgoingChunk(chunk, decoded, stores)
            rejects = deque(decoded.rejects)
            for rows in pace.slices(decoded.events["time"]):
                sender.wait_until(rows.due_s)
                while rejects and rejects[0].index < decoded.index[rows.start]:
                    sender.send_reject(outgoing.reject_record(rejects.popleft()))
                _send(sender, outgoing, rows, content_type, partitions)
                if on_progress is not None:
                    on_progress(chunk, result.events)
            for reject in rejects:
                sender.send_reject(outgoing.reject_record(reject))
            if on_rejects is not None:
                on_rejects(decoded.rejects, result.events)
    return result


def _send(
    sender: Sender, outgoing: OutgoingChunk, rows: Slice, content_type: str, partitions: Partitions | None
) -> None:
    if content_type == JSON:
        for first in range(rows.start, rows.stop, _BATCH):
            sender.send_json(outgoing.messages(first, min(rows.stop, first + _BATCH)))
        return
    max_events = EVENTS_PER_RECORD[content_type]
    for record in outgoing.records(rows.start, rows.stop, content_type, max_events, sender.max_value_bytes, partitions):
        sender.send(record)


class Sender:
    """A producer to the events topic that bounds what is pending and raises delivery failures.

    A context manager; on exit it waits until everything is delivered.
    """

    def __init__(
        self, kafka: Mapping[str, str], topics: Topics, result: PublishResult, *, linger_ms: int, create_topics: bool
    ) -> None:
        self._topic = topics.events
        self._result = result
        self._last_error = LastError()
        self._failures = 0
        self._first_failure = ""
        self._produced: deque[tuple[int, int]] = deque()  # (records, bytes) per call that may be pending, newest last
        self._produced_records = self._produced_bytes = 0  # sums of `_produced`
        self._started_s = time.monotonic()
        fetch_metadata(new_producer(kafka, {}, self._last_error), kafka, self._last_error)
        max_record_bytes = prepare_topic(topics, topics.events, kafka, create=create_topics)
        self.max_value_bytes = max_record_bytes - _OVERHEAD_BYTES  # of a record
        settings = {**_SETTINGS, "linger.ms": linger_ms, "message.max.bytes": max_record_bytes}
        self._producer: Producer = new_producer(kafka, {**settings, "on_delivery": self._on_delivery}, self._last_error)

    def start(self) -> None:
        """Start the clock of `wait_until`."""
        self._started_s = time.monotonic()

    def wait_until(self, due_s: float) -> None:
        """Wait until `due_s` seconds after the start, and deliver meanwhile."""
        while (left_s := self._started_s + due_s - time.monotonic()) > 0:
            self._producer.poll(min(left_s, 0.5))
            self._raise_failure()

    def flush(self) -> None:
        """Wait until everything is delivered. MqtwinError: a record was not."""
        while self._producer.flush(0.5):
            self._raise_failure()
        self._raise_failure()

    def send_json(self, messages: list[dict[str, bytes]]) -> None:
        """Produce JSON events, one per record."""
        if not messages:
            return
        sizes = [len(message["value"]) for message in messages]
        self._check_size(messages[sizes.index(max(sizes))]["value"])
        self._wait_for_room()
        queued = self._producer.produce_batch(self._topic, messages)
        if queued != len(messages):
            error = next((str(message["_error"]) for message in messages if "_error" in message), "no reason given")
            raise MqtwinError(f"topic {self._topic}: {len(messages) - queued} records were not taken: {error}")
        self._count(len(messages), len(messages), sum(sizes))

    def send(self, record: Record) -> None:
        """Produce a record. JSON is the default content type and has no header."""
        headers: list[tuple[str, str | bytes | None]] = (
            [] if record.content_type == JSON else [("content-type", record.content_type.encode())]
        )
        self._check_size(record.value)
        self._wait_for_room()
        self._producer.produce(self._topic, record.value, record.key, record.partition, headers=headers)
        self._count(record.events, 1, len(record.value))

    def send_reject(self, record: Record) -> None:
        """Produce a record of an event that belongs to no store."""
        self.send(record)
        self._result.events -= record.events
        self._result.records -= 1
        self._result.rejects += 1

    def _check_size(self, value: bytes) -> None:
        if len(value) > self.max_value_bytes:
            raise MqtwinError(
                f"topic {self._topic}: an event has {len(value)} bytes, a record may have {self.max_value_bytes}: "
                f"raise the topic's max.message.bytes; {self._result.events} events before it were published; it "
                f"begins {value[:80]!r}"
            )

    def _count(self, events: int, records: int, size: int) -> None:
        self._result.events += events
        self._result.records += records
        self._result.bytes += size
        self._produced.append((records, size))
        self._produced_records += records
        self._produced_bytes += size

    def _wait_for_room(self) -> None:
        self._producer.poll(0)
        self._raise_failure()
        while self._is_full():
            self._producer.poll(0.01)
            self._raise_failure()

    def _is_full(self) -> bool:
        """True if too many records or bytes are pending. The pending records are the last ones produced."""
        pending = len(self._producer)
        while self._produced and self._produced_records - self._produced[0][0] >= pending:
            records, size = self._produced.popleft()
            self._produced_records -= records
            self._produced_bytes -= size
        return pending >= _MAX_PENDING_RECORDS or self._produced_bytes >= _MAX_PENDING_BYTES

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures += 1
            self._first_failure = self._first_failure or error.str()

    def _raise_failure(self) -> None:
        if self._failures:
            reason = f"{self._first_failure}; {self._last_error.text}" if self._last_error.text else self._first_failure
            raise MqtwinError(f"topic {self._topic}: {self._failures} records were not delivered: {reason}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._producer.flush(_FINAL_FLUSH_SECONDS)
            return
        self.flush()
        self._result.seconds = time.monotonic() - self._started_s
