"""A recording into the events topic, keyed by store.

The order within a store is that of the recording: the same key is the same partition, and the producer is idempotent.
A store goes to the partition that Kafka's own client and `streams.pure_producer` choose for it (murmur2 of the key),
so that several producers agree. An event that belongs to no store is published as it is under the key `?`: what to
make of it is the stream's business.

Source: contract sections 2 and 6; Kafka documentation, "Producer Configs", partitioner.class.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from streams.kafka.clients import LastError, new_producer, reach
from streams.kafka.outgoing import EVENTS_A_RECORD, Outgoing, Record, Stores
from streams.kafka.pace import Pace
from streams.kafka.topics import Topics, prepare_events_topic
from twin.errors import MqtwinError
from twin.estate import Estate
from twin.events import JSON, Decoder
from twin.recordings import Chunk, open_recording
from twin.warm import warm

_BATCH = 10_000  # JSON records handed over at once
_WAITING_BYTES = 128 * 1024 * 1024  # handed over and not yet delivered, at most
_WAITING_RECORDS = 200_000
_RESERVED_BYTES = 1024  # of a record beside its value: heads of batch and record, key, content type
_PARTING_SECONDS = 5  # to deliver what was handed over before an error or Ctrl-C
_DELIVERY_SECONDS = 120  # before a record that no broker takes is a failure, as in Kafka's own client

_SETTINGS = {
    "enable.idempotence": True,  # also acks=all: nothing twice, nothing out of order, whatever is sent again
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 2 * _WAITING_RECORDS,
    "queue.buffering.max.kbytes": 2_000_000,
    "message.timeout.ms": _DELIVERY_SECONDS * 1000,
    "delivery.report.only.error": True,  # a call of Python for each record delivered would halve the speed
}


@dataclass(slots=True)
class Published:
    """What was published. events: one that concerns several stores counts for each; rejects: records of what belongs
    to no store, not among the others; bytes: of all values; seconds: until all was delivered.
    """

    events: int = 0
    records: int = 0
    rejects: int = 0
    bytes: int = 0
    seconds: float = 0.0


def publish(
    path: str | Path,
    estate: Estate,
    kafka: Mapping[str, str],
    topics: Topics,
    *,
    content_type: str = JSON,
    pace: Pace | None = None,
    create_topics: bool = True,
    on_progress: Callable[[Chunk, int], None] | None = None,
) -> Published:
    """Publish a recording; returns when all of it has been delivered.

    Args:
        path: the recording.
        estate: says which store an event belongs to.
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        content_type: of the records: one of `twin.events.CONTENT_TYPES`.
        pace: how fast; None: as fast as it goes.
        create_topics: create the events topic where it is missing; False: that is an error.
        on_progress: called after each piece handed over, with the chunk and the number of events so far.

    Raises:
        UsageError: a recording that cannot be read, a setting that is wrong, no events topic, no right to write there.
        MqtwinError: no Kafka answers, an event is larger than the topic takes, a record was not delivered.
    """
    pace = pace or Pace()
    chunks = open_recording(path)
    warm()
    decoder, stores = Decoder(estate), Stores(estate)
    published = Published()
    linger_ms = 50 if pace.is_free else 5
    with Sender(kafka, topics, published, linger_ms=linger_ms, create_topics=create_topics) as sender:
        sender.start()
        for chunk in chunks:
            decoded = chunk.decode(decoder)
            outgoing = Outgoing(chunk, decoded, stores)
            rejects = deque(decoded.rejects)
            for piece in pace.slices(decoded.events["time"]):
                sender.wait_until(piece.at)
                while rejects and rejects[0].index < decoded.index[piece.start]:
                    sender.reject(outgoing.reject(rejects.popleft()))
                _send(sender, outgoing, piece.start, piece.stop, content_type)
                if on_progress is not None:
                    on_progress(chunk, published.events)
            for reject in rejects:
                sender.reject(outgoing.reject(reject))
    return published


def _send(sender: Sender, outgoing: Outgoing, start: int, stop: int, content_type: str) -> None:
    if content_type == JSON:
        for first in range(start, stop, _BATCH):
            sender.batch(outgoing.messages(first, min(stop, first + _BATCH)))
        return
    for record in outgoing.records(start, stop, content_type, EVENTS_A_RECORD[content_type], sender.limit):
        sender.one(record)


class Sender:
    """A producer that keeps at most so much waiting and raises what went wrong.

    A context manager: its end waits until everything is delivered; `limit`: the bytes a value may have.
    """

    def __init__(
        self, kafka: Mapping[str, str], topics: Topics, published: Published, *, linger_ms: int, create_topics: bool
    ) -> None:
        self._kafka = kafka
        self._topics = topics
        self._topic = topics.events
        self._published = published
        self._last_error = LastError()
        self._failed = 0
        self._failure = ""
        self._handed_over: deque[tuple[int, int]] = deque()  # records and bytes, newest last
        self._began = time.monotonic()
        largest = self._ready_topic(create=create_topics)
        self.limit = largest - _RESERVED_BYTES
        settings = {**_SETTINGS, "linger.ms": linger_ms, "message.max.bytes": largest}
        self._producer: Producer = new_producer(kafka, {**settings, "on_delivery": self._on_delivery}, self._last_error)

    def _ready_topic(self, *, create: bool) -> int:
        """Return the largest record, in bytes, that the events topic takes."""
        reach(new_producer(self._kafka, {}, self._last_error), self._kafka, self._last_error)
        return prepare_events_topic(self._topics, self._kafka, create=create)

    def start(self) -> None:
        """The first event is due now."""
        self._began = time.monotonic()

    def wait_until(self, at: float) -> None:
        """Wait until so many seconds after the start."""
        while (left := self._began + at - time.monotonic()) > 0:
            self._producer.poll(min(left, 0.5))
            self._raise_failure()

    def batch(self, messages: list[dict[str, bytes]]) -> None:
        """JSON events, one a record."""
        if not messages:
            return
        sizes = [len(message["value"]) for message in messages]
        if max(sizes) > self.limit:
            self._fitting(messages[sizes.index(max(sizes))]["value"])
        self._wait_for_room()
        queued = self._producer.produce_batch(self._topic, messages)
        if queued != len(messages):
            error = next((str(message["_error"]) for message in messages if "_error" in message), "no reason given")
            raise MqtwinError(f"topic {self._topic}: {len(messages) - queued} records were not taken: {error}")
        self._count(len(messages), len(messages), sum(sizes))

    def one(self, record: Record) -> None:
        """One record. JSON needs no header: contract section 2."""
        headers: list[tuple[str, str | bytes | None]] = (
            [] if record.content_type == JSON else [("content-type", record.content_type.encode())]
        )
        size = self._fitting(record.value)
        self._wait_for_room()
        self._producer.produce(self._topic, record.value, record.key, headers=headers)
        self._count(record.events, 1, size)

    def reject(self, record: Record) -> None:
        """One record of what belongs to no store."""
        self.one(record)
        self._published.events -= record.events
        self._published.records -= 1
        self._published.rejects += 1

    def _fitting(self, value: bytes) -> int:
        size = len(value)
        if size > self.limit:
            raise MqtwinError(
                f"topic {self._topic}: an event has {size} bytes, a record may have {self.limit}: raise the topic's "
                f"max.message.bytes; {self._published.events} events before it were published; it begins {value[:80]!r}"
            )
        return size

    def _count(self, events: int, records: int, size: int) -> None:
        self._published.events += events
        self._published.records += records
        self._published.bytes += size
        self._handed_over.append((records, size))

    def _wait_for_room(self) -> None:
        self._producer.poll(0)
        self._raise_failure()
        while self._is_full():
            self._producer.poll(0.01)
            self._raise_failure()

    def _is_full(self) -> bool:
        """Whether what was handed over last, as many records as wait, is too much."""
        waiting = len(self._producer)
        if waiting >= _WAITING_RECORDS:
            return True
        records = size = 0
        for place, (count, length) in enumerate(reversed(self._handed_over)):
            if records >= waiting:
                for _ in range(len(self._handed_over) - place):
                    self._handed_over.popleft()
                break
            records += count
            size += length
        return size >= _WAITING_BYTES

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._failure = self._failure or error.str()

    def _raise_failure(self) -> None:
        if self._failed:
            why = f"{self._failure}; {self._last_error.text}" if self._last_error.text else self._failure
            raise MqtwinError(f"topic {self._topic}: {self._failed} records were not delivered: {why}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._producer.flush(_PARTING_SECONDS)  # what was handed over before still goes out
            return
        while self._producer.flush(0.5):
            self._raise_failure()
        self._raise_failure()
        self._published.seconds = time.monotonic() - self._began
