"""Events sent during a run, each when it is due."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message, Producer

from streams.kafka.clients import LastError, new_producer
from streams.kafka.topics import Topics
from tests.tools.bench import site
from tests.tools.bench.traffic import STEP_US, Traffic
from tests.tools.soak.estates import qmgr_of
from twin.errors import MqtwinError
from twin.events.convert import json_lines

HELD = 100_000  # messages that the four stores of a load hold
SLICE_SECONDS = 0.25  # of events are made and handed over at a time
EVENTS_A_RECORD = 500  # of a load: records of NDJSON, so that the sender leaves the two cores to the job
FLUSH_SECONDS = 60.0
_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 2_000_000,
}


class Record(NamedTuple):
    """A Kafka record of events of one store, JSON or NDJSON."""

    key: bytes
    value: bytes
    events: int = 1


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
            content_type = b"application/x-ndjson" if record.events > 1 else b"application/json"
            headers: list[tuple[str, str | bytes | None]] = [("content-type", content_type)]
            while True:
                try:
                    self._producer.produce(self._topic, record.value, record.key, headers=headers)
                    break
                except BufferError:  # the queue of the producer is full
                    self._producer.poll(0.05)
            self.events += record.events
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
            self.delivered[message.partition() or 0] += (message.value() or b"").count(b"\n") + 1


def run(sender: Sender, slices: Iterator[list[Record]], seconds: float, at_slice: Callable[[], None]) -> None:
    """Send a slice every SLICE_SECONDS until `seconds` have passed; one that is late is sent at once."""
    began = time.monotonic()
    due = 0.0
    for records in slices:
        early = due - (time.monotonic() - began)
        if early > 0:
            time.sleep(early)
        sender.send(records)
        at_slice()
        due += SLICE_SECONDS
        if due >= seconds:
            break


class LoadSlices:
    """Puts, gets and commits of structures, as `tests.tools.bench.traffic` makes them.

    Args:
        stores: names of stores of `tests.tools.bench.site`.
        events_a_record: 1: records of JSON.

    Attributes:
        rate: events per second.
    """

    def __init__(self, stores: tuple[str, ...], events_a_record: int = EVENTS_A_RECORD) -> None:
        self.traffic = Traffic(stores)
        self.rate = 1e6 / STEP_US
        self._keys = [store.encode() for store in stores for _ in site.queues_of(store)]
        self._events_a_record = events_a_record

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
        lines, keys = json_lines(table).cast(pa.string()), np.array(self._keys)
        of_store = np.arange(len(lines)) % keys.size
        records = []
        for store in dict.fromkeys(self._keys):
            own = lines.take(np.flatnonzero(keys[of_store] == store))
            starts = np.append(np.arange(0, len(own), self._events_a_record), len(own))
            values = pc.binary_join(pa.ListArray.from_arrays(starts.astype(np.int32), own), "\n")
            for value, events in zip(values.to_pylist(), np.diff(starts).tolist(), strict=True):
                records.append(Record(store, value.encode(), events))
        return records


def heartbeat_slices(names: list[str], queues: list[str], every_s: float) -> Iterator[list[Record]]:
    """Yield a heartbeat per store every `every_s` seconds, with a put and a get every twelfth time, spread evenly."""
    events, parts, turn = msgspec.json.Encoder(), round(every_s / SLICE_SECONDS), 0
    while True:
        now = int(time.time() * 1e6)
        records = []
        for i in range(turn % parts, len(names), parts):
            qmgr, key = qmgr_of(names[i]), names[i].encode()
            own: list[dict[str, Any]] = [{"time": now, "qmgr": qmgr, "op": "HEARTBEAT", "store": names[i]}]
            if turn // parts % 12 == 0:
                own += [{"time": now, "qmgr": qmgr, "op": "PUT", "queue": queues[i], "length": 2048}]
            if turn // parts % 12 == 6:
                own += [{"time": now, "qmgr": qmgr, "op": "GET", "queue": queues[i]}]
            records += [Record(key, events.encode(event)) for event in own]
        turn += 1
        yield records
