"""`make bench-peers`: the job beside programs that do a tenth of its work on the same JSON events.

Their work: decode each event, keep the length of each message by its id, sum the bytes of each queue. No order beyond
that of the topic, no units of work, no state that survives the process, no output to Kafka. Spark's own stateful
operators in Python do less: the JVM decodes the events, and they keep one sum of bytes for each queue.
"""

from __future__ import annotations

import importlib.util
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streams.kafka.admin import end_offsets
from streams.kafka.clients import LastError, check, new_consumer
from streams.kafka.topics import Topics
from streams.query.definition import JobSettings, events_frame
from tests.tools.bench import site
from tests.tools.bench.rig import Rig, Say, span
from tests.tools.bench.traffic import Traffic
from twin.errors import MqtwinError
from twin.events import JSON

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOB, LIBRDKAFKA, BYTEWAX = "mqtwin, all cores", "a loop over librdkafka's client in Python", "bytewax, one worker"
WITH_STATE = "Spark's transformWithState in Python, one sum a queue"
IN_PANDAS = "Spark's applyInPandasWithState, one sum a queue"
_PREFIX = "bench-peers"
_EVENTS, _QUICK_EVENTS = 1_500_000, 200_000
_BATCHES, _WARM_UP = 5, 2
_ROUNDS = 4  # of what runs on Spark, of which the last counts: the JVM compiles less from one to the next
_AT_ONCE = 10_000  # records of a call
_PATIENCE = 30.0  # seconds without a record


class _Event(msgspec.Struct):
    op: str
    queue: str = ""
    msgid: str = ""
    length: int = 0


@dataclass(frozen=True, slots=True)
class Peers:
    """rates: events a second by name; missing: reasons by name."""

    rates: dict[str, float]
    missing: dict[str, str]


class _Sums:
    """The work of a peer."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Event)
        self._lengths: dict[str, int] = {}
        self._bytes: dict[str, int] = defaultdict(int)
        self.events = 0

    def add(self, value: bytes) -> None:
        """Count an event."""
        event = self._decoder.decode(value)
        self.events += 1
        if event.op == "PUT":
            self._lengths[event.msgid] = event.length
            self._bytes[event.queue] += event.length
        elif event.op == "GET":
            self._bytes[event.queue] -= self._lengths.pop(event.msgid, 0)


def measure(rig: Rig, say: Say, *, quick: bool) -> Peers:
    """Return the rates of the job and of the peers, one after the other, on the same topic."""
    traffic, events = Traffic(site.STORES), _QUICK_EVENTS if quick else _EVENTS
    say(f"publishing {events:,} JSON events")
    published = rig.publish(_PREFIX, [traffic.fill(events // 100), *traffic.pieces(events)], JSON)
    say("the job")
    for _ in range(_ROUNDS):
        batches = rig.run_job(rig.settings(_PREFIX, max_records=published.records // _BATCHES))
    rates, missing = {JOB: span(batches, _WARM_UP, _BATCHES).rate}, {}
    peers: dict[str, Callable[[Rig], int]] = {LIBRDKAFKA: _run_librdkafka}
    if importlib.util.find_spec("bytewax") is not None:
        peers[BYTEWAX] = _run_bytewax
    else:
        missing[BYTEWAX] = "not installed"
    for name, run in peers.items():
        say(name)
        began = time.monotonic()
        counted = run(rig)
        rates[name] = counted / (time.monotonic() - began)
        if counted != published.events:
            raise MqtwinError(f"{name} counted {counted:,} events of {published.events:,}")
    settings = partial(rig.settings, _PREFIX, max_records=published.records // _BATCHES)
    for name, apply in ((WITH_STATE, _sum_with_state), (IN_PANDAS, _sum_in_pandas)):
        say(name)
        for _ in range(_ROUNDS):
            batches = rig.run_frame(settings(), apply(_lengths(rig, settings())), mode="update")
        rates[name] = span(batches, _WARM_UP, _BATCHES, published.events / published.records).rate
    return Peers(rates, missing)


def _lengths(rig: Rig, settings: JobSettings) -> DataFrame:
    """Return queue and length of each event of the topic, decoded by the JVM."""
    from pyspark.sql import functions as f

    events = events_frame(rig.session, settings)
    parsed = f.from_json(f.col("value").cast("string"), "queue string, length long").alias("event")
    return events.select(parsed).selectExpr("event.queue as queue", "coalesce(event.length, 0L) as length")


class _QueueSum(StatefulProcessor):
    """The sum of the lengths of a queue, in a value state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sum = handle.getValueState("sum", "bytes long")

    def handleInputRows(  # noqa: N802 -- Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[Row]:
        """Add the lengths of a batch."""
        before = self._sum.get()
        total = (before[0] if before is not None else 0) + sum(row["length"] for row in rows)
        self._sum.update((total,))
        yield Row(queue=key[0], bytes=total)

    def close(self) -> None:
        """Do nothing."""


def _sum_with_state(lengths: DataFrame) -> DataFrame:
    return lengths.groupBy("queue").transformWithState(_QueueSum(), "queue string, bytes long", "Update", "None")


def _sum_in_pandas(lengths: DataFrame) -> DataFrame:
    def add(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd  # type: ignore[import-untyped]  # its types are a package of their own, for this line only

        total = (state.get[0] if state.exists else 0) + sum(int(frame["length"].sum()) for frame in frames)
        state.update((total,))
        yield pd.DataFrame({"queue": [key[0]], "bytes": [total]})

    return lengths.groupBy("queue").applyInPandasWithState(
        add, "queue string, bytes long", "bytes long", "update", "NoTimeout"
    )


def _run_librdkafka(rig: Rig) -> int:
    topic = Topics(_PREFIX).events
    total = sum(end_offsets(rig.kafka, topic).values())
    sums = _Sums()
    consumer: Consumer = new_consumer(rig.kafka, {}, LastError())
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in end_offsets(rig.kafka, topic)])
        last = time.monotonic()
        while sums.events < total:
            # A short wait: the client waits until it has as many records as it was asked for.
            for message in consumer.consume(_AT_ONCE, timeout=0.05):
                if check(message.error(), topic):
                    sums.add(message.value() or b"")
                    last = time.monotonic()
            if time.monotonic() - last > _PATIENCE:
                raise MqtwinError(f"no record for {_PATIENCE:.0f} seconds, {sums.events:,} of {total:,} read")
    finally:
        consumer.close()
    return sums.events


def _run_bytewax(rig: Rig) -> int:
    import bytewax.operators as op
    from bytewax.connectors.kafka import KafkaSource
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, run_main

    sums, out = _Sums(), list[int]()
    flow = Dataflow("peers")
    source = KafkaSource([rig.broker.bootstrap_servers], [Topics(_PREFIX).events], tail=False, batch_size=_AT_ONCE)
    records = op.input("events", flow, source)

    def add(record: Any) -> list[int]:
        sums.add(record.value)
        return []

    op.output("nothing", op.flat_map("sums", records, add), TestingSink(out))
    run_main(flow)
    return sums.events
