"""From an event to its alert: wall time from handing an event to Kafka until its alert is read on the alerts topic."""

from __future__ import annotations

import math
import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from streams.kafka.clients import LastError, check, new_consumer, new_producer
from streams.kafka.subscribe import AlertRecord
from streams.kafka.topics import Topics, prepare_topics
from tests.bench import site
from tests.bench.rig import Rig, Say
from tests.bench.traffic import START_US, Traffic
from twin.errors import MqtwinError
from twin.events.convert import json_lines

RATE = 1_000  # events a second beside those that raise alerts
_PREFIX = "bench-latency"
_GRAIN = 0.02  # seconds between two times of sending
_ALARM_EVERY = 0.05  # seconds: an alarm store fills, or drains, in turn
_WARM_UP_BATCHES = 12
_WARM_UP_MOST = 60.0  # seconds
_MESSAGES = 400  # fill 85 % of the 470 entries of an alarm structure of 1 MB
_PERCENT = 100


@dataclass(slots=True)
class Latency:
    """seconds: from event to alert, of each alert; sent: fills there were; batches: the job's figures."""

    seconds: list[float] = field(default_factory=list)
    sent: int = 0
    batches: list[dict[str, float]] = field(default_factory=list)

    def percentile(self, share: int) -> float:
        """Return the seconds within which this percentage of the alerts came."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, len(ordered) * share // _PERCENT)]

    def median(self, name: str) -> float:
        """The median of one of the job's figures."""
        return statistics.median(batch.get(name, 0.0) for batch in self.batches)


class _Alarms:
    """Stores in turn: filled over their threshold by one event, drained by the next, their clocks ten minutes on."""

    def __init__(self) -> None:
        self._turn = self._alarms()
        self.sent: dict[str, list[float]] = defaultdict(list)  # when each store's fills were handed over
        self.measured: dict[str, list[bool]] = defaultdict(list)

    def next(self, *, measured: bool) -> list[tuple[str, bytes]]:
        """The next events, (store, value)."""
        store, fills, events = next(self._turn)
        if fills:
            self.sent[store].append(time.monotonic())
            self.measured[store].append(measured)
        return [(store, msgspec.json.encode(event)) for event in events]

    def _alarms(self) -> Iterator[tuple[str, bool, list[dict[str, object]]]]:
        clock = START_US
        while True:
            for fills in (True, False):
                for store in site.ALARMS:
                    queue = site.queues_of(store)[0]
                    event: dict[str, object] = {"time": clock, "qmgr": "QM01", "queue": queue, "count": _MESSAGES}
                    if fills:
                        yield store, True, [event | {"op": "PUT", "length": 100}]
                    else:
                        beat = {"time": clock + 600_000_000, "qmgr": "QM01", "op": "HEARTBEAT", "store": store}
                        yield store, False, [event | {"op": "GET"}, beat]
                clock += 1_000_000 if fills else 1_200_000_000


def measure(rig: Rig, say: Say, *, quick: bool) -> Latency:
    """Steady JSON events, an alarm store filling every tenth of a second or so."""
    measured = 8.0 if quick else 30.0
    say(f"{RATE:,} events/s for {measured:.0f} seconds after warming up, thresholds crossed meanwhile")
    prepare_topics(Topics(_PREFIX), rig.kafka)
    background = json_lines(Traffic(site.STORES).steady(round(RATE * (_WARM_UP_MOST + measured)))).to_pylist()
    result, alarms = Latency(), _Alarms()
    arrived: dict[str, list[float]] = defaultdict(list)
    done = threading.Event()
    with rig.job(rig.settings(_PREFIX)) as (job, batches):
        reader = threading.Thread(target=_read, args=(rig.kafka, arrived, done), name="mqtwin-bench-alerts")
        reader.start()
        try:
            pace = _Pace(measured, lambda: len(batches))
            _send(rig.kafka, [line.encode() for line in background], alarms, pace)
            patience = time.monotonic() + 30
            while _missing(alarms, arrived) and time.monotonic() < patience and job.query.isActive:
                time.sleep(0.1)
        finally:
            done.set()
            reader.join()
        result.batches = [batch.figures for batch in batches if pace.began <= batch.ended <= pace.end]
    if _missing(alarms, arrived):
        raise MqtwinError(f"{_missing(alarms, arrived)} alerts did not come within 30 seconds")
    for store, times in alarms.sent.items():
        for sent, came, counts in zip(times, arrived[store], alarms.measured[store], strict=False):
            if counts:
                result.sent += 1
                result.seconds.append(came - sent)
    return result


def _missing(alarms: _Alarms, arrived: dict[str, list[float]]) -> int:
    return sum(len(times) - len(arrived[store]) for store, times in alarms.sent.items())


class _Pace:
    """The warm-up of a number of batches, then the measurement of `seconds`."""

    def __init__(self, seconds: float, batches: Callable[[], int]) -> None:
        self._seconds = seconds
        self._batches = batches
        self._started = time.monotonic()
        self.began = self.end = math.inf

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def is_measured(self) -> bool:
        """True when the warm-up is over."""
        if self.end is math.inf and (self._batches() >= _WARM_UP_BATCHES or self.elapsed > _WARM_UP_MOST):
            self.began = time.monotonic()
            self.end = self.began + self._seconds
        return self.end is not math.inf

    @property
    def is_over(self) -> bool:
        """True when the measurement is over."""
        return time.monotonic() >= self.end


def _send(kafka: dict[str, str], background: list[bytes], alarms: _Alarms, pace: _Pace) -> None:
    """Hand every event over when it is due."""
    producer: Producer = new_producer(kafka, {"linger.ms": 5, "partitioner": "murmur2_random"}, LastError())
    topic = Topics(_PREFIX).events
    keys = [store.encode() for store in site.STORES for _ in site.queues_of(store)]  # the queues go in step
    chance = random.Random(1)
    sent, alarm_at = 0, 0.0
    while not pace.is_over:
        due = min(len(background), int(pace.elapsed * RATE))
        for place in range(sent, due):
            producer.produce(topic, background[place], keys[place % len(keys)])
        sent = due
        if pace.elapsed >= alarm_at:
            for store, value in alarms.next(measured=pace.is_measured):
                producer.produce(topic, value, store.encode())
            alarm_at = pace.elapsed + 2 * _ALARM_EVERY * chance.random()
        producer.poll(0)
        time.sleep(_GRAIN * chance.random())
    producer.flush(30)


def _read(kafka: dict[str, str], arrived: dict[str, list[float]], done: threading.Event) -> None:
    """Note when each store's alerts opened."""
    topic = Topics(_PREFIX).alerts
    consumer: Consumer = new_consumer(kafka, {}, LastError())
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    decoder = msgspec.json.Decoder(AlertRecord)
    try:
        while not done.is_set():
            message = consumer.poll(0.1)
            if message is not None and check(message.error(), topic):
                alert = decoder.decode(message.value() or b"")
                if alert.change == "opened" and alert.data.condition == "threshold":
                    arrived[alert.subject].append(time.monotonic())
    finally:
        consumer.close()
