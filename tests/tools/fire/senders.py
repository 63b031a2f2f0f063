"""Events sent during a run, each when it is due."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Message, Producer

from streams.kafka.clients import LastError, new_producer
from streams.kafka.topics import Topics
from tests.tools.bench import site
from tests.tools.bench.traffic import STEP_US, Traffic
from twin.base.errors import MqtwinError
from twin.events.convert import json_lines

HELD = 100_000  # messages that the four stores of a load hold
SLICE_SECONDS = 0.25  # of events are made and handed over at a time
FLUSH_SECONDS = 60.0
_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 2_000_000,
}


class Record(NamedTuple):
    """A Kafka record of one event, as JSON."""

    key: bytes
    value: bytes


class Sender:
    """A producer to the events topic. events: handed over so far. delivered: those acknowledged, by partition."""

    def __init__(self, kafka: dict[str, str], topics: Topics) -> None:
        self._producer: Producer = new_producer(kafka, _PRODUCER | {"on_delivery": self._note}, LastError())
        self._topic = topics.events
        self._failure = ""
        self.events = 0
        self.delivered: Counter[int] = Counter()

    def send(self, records: list[Record]) -> None:
        """Hand records over. MqtwinError: one was not delivered."""
        for record in records:
            headers: list[tuple[str, str | bytes | None]] = [("content-type", b"application/json")]
            while True:
                try:
                    self._producer.produce(self._topic, record.value, record.key, headers=headers)
                    break
                except BufferError:  # the queue of the producer is full
                    self._producer.poll(0.05)
            self.events += 1
        self._producer.poll(0)
        if self._failure:
            raise MqtwinError(f"an event was not delivered: {self._failure}")

    def flush(self) -> None:
        """Wait until everything is delivered."""
        if self._producer.flush(FLUSH_SECONDS):
            raise MqtwinError("events were not delivered")

    def _note(self, error: Any, message: Message) -> None:
        if error is not None:
            self._failure = error.str()
        else:
            self.delivered[message.partition() or 0] += 1


def run(sender: Sender, slices: Iterator[list[Record]], seconds: float) -> None:
    """Send a slice every SLICE_SECONDS until `seconds` have passed; one that is late is sent at once."""
    began = time.monotonic()
    due = 0.0
    for records in slices:
        early = due - (time.monotonic() - began)
        if early > 0:
            time.sleep(early)
        sender.send(records)
        due += SLICE_SECONDS
        if due >= seconds:
            break


class LoadSlices:
    """Puts, gets and commits of structures, as `tests.tools.bench.traffic` makes them.

    Args:
        stores: names of stores of `tests.tools.bench.site`.

    Attributes:
        rate: events per second.
    """

    def __init__(self, stores: tuple[str, ...]) -> None:
        self.traffic = Traffic(stores)
        self.rate = 1e6 / STEP_US
        self._keys = [store.encode() for store in stores for _ in site.queues_of(store)]

    def first(self) -> list[Record]:
        """Fill the queues."""
        return self._records(self.traffic.fill(HELD))

    def backlog(self, events: int) -> Iterator[list[Record]]:
        """Yield about this number of events, at full speed."""
        for table in self.traffic.pieces(events, 50_000):
            yield self._records(table)

    def __iter__(self) -> Iterator[list[Record]]:
        """Slices for ever."""
        self.traffic.go_on_at(max(1, round(1e6 / self.rate)))
        while True:
            yield self._records(self.traffic.steady(round(self.rate * SLICE_SECONDS)))

    def _records(self, table: Any) -> list[Record]:
        """Return the events store by store. Their keys take turns, as the queues do in the table."""
        lines, keys = json_lines(table).cast(pa.string()).to_pylist(), self._keys
        records = [Record(keys[row % len(keys)], line.encode()) for row, line in enumerate(lines)]
        places = {store: place for place, store in enumerate(dict.fromkeys(keys))}
        return sorted(records, key=lambda record: places[record.key])
