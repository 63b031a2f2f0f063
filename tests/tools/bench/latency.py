"""From an event to its alert: wall time from handing an event to Kafka until its alert is read on the alerts topic.

A hundred stores for ten minutes at each rate. Every batch above twice the median is named with what took its time.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from streams.kafka.admin import prepare_topics
from streams.kafka.clients import LastError, check, new_consumer, new_producer
from streams.kafka.topics import Topics
from tests.tools.bench import site
from tests.tools.bench.rig import Rig, Say
from tests.tools.bench.timeline import Timeline, read_timeline
from tests.tools.bench.traffic import START_US, Traffic
from twin.base.errors import MqtwinError
from twin.estate import Estate, load_estate
from twin.events import ARROW
from twin.events.convert import arrow_value, json_lines
from twin.records import AlertRecord

STORES = tuple(f"QSG1/S{number:04}" for number in range(100 - len(site.ALARMS)))  # a hundred with those of alarms
RATES = (1_000, 100_000)  # events a second beside those that raise alerts
_EVENTS_A_RECORD = 1_000  # where the rate is high: one event a record would measure the producer
_GRAIN = 0.02  # seconds between two times of sending
_ALARM_EVERY = 0.05  # seconds: an alarm store fills, or drains, in turn
_SECONDS, _QUICK_SECONDS = 600.0, 8.0
_WARM_UP, _QUICK_WARM_UP = 60.0, 10.0  # seconds
_REMEMBERED = 20  # batches of which Spark still has its reports
_SLOW = 2.0  # times the median: a batch that takes longer is slow
_MAIN_SHARE = 0.5  # of what a slow batch takes more: that much is the cause
_PHASES = {  # of the driver, one after the other
    "plan_ms": "planning",
    "offsets_ms": "offsets from Kafka",
    "log_ms": "offset log",
    "run_ms": "tasks",
    "commit_ms": "commit log",
}
_OF_TWINS = ("open_us", "apply_us", "write_us")
_MESSAGES = 400  # fill 85 % of the 470 entries of an alarm structure of 1 MB
_PERCENT = 100


_Record = tuple[bytes, bytes, str | None, int]  # key, value, content type (None: JSON), events


@dataclass(frozen=True, slots=True)
class SlowBatch:
    """A batch above `_SLOW` times the median. cause: what took most of what it took more."""

    milliseconds: float
    cause: str


@dataclass(slots=True)
class Latency:
    """rate: events a second beside; seconds: from event to alert, of each alert; batches: the job's figures.

    minutes: the same seconds by the minute in which the event was sent.
    """

    rate: int
    seconds: list[float] = field(default_factory=list)
    minutes: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    batches: list[dict[str, float]] = field(default_factory=list)
    timeline: Timeline | None = None

    def percentile(self, share: int) -> float:
        """Return the seconds within which this percentage of the alerts came."""
        return _percentile(self.seconds, share)

    def by_minute(self, share: int) -> list[float]:
        """Return the same for each minute."""
        return [_percentile(seconds, share) for seconds in self.minutes.values()]

    def median(self, name: str) -> float:
        """The median of one of the job's figures."""
        return statistics.median(batch.get(name, 0.0) for batch in self.batches)

    def slow_batches(self) -> list[SlowBatch]:
        """Return the batches above `_SLOW` times the median, in their order."""
        slow = [batch for batch in self.batches if batch["batch_ms"] > _SLOW * self.median("batch_ms")]
        return [SlowBatch(batch["batch_ms"], self._cause(batch)) for batch in slow]

    def _cause(self, batch: dict[str, float]) -> str:
        def more(name: str) -> float:
            return batch.get(name, 0.0) - self.median(name)

        causes = [("the JVM's garbage collector", more("collector_ms"))]
        causes += [(_PHASES[name], more(name)) for name in _PHASES if name != "run_ms"]
        causes.append(("commit of the state stores", more("state_commit_ms")))
        causes.append(("twins: opening, applying, writing", sum(map(more, _OF_TWINS)) / 1000))
        backlog = batch["records"] > _SLOW * self.median("records")
        causes.append(("more records, behind a slow batch", more("run_ms") if backlog else 0.0))
        causes.append(("tasks, none of these", more("run_ms")))
        least = _MAIN_SHARE * more("batch_ms")
        return next((cause for cause, milliseconds in causes if milliseconds >= least), "several of these")


def _percentile(seconds: list[float], share: int) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * share // _PERCENT)]


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


def measure(rig: Rig, say: Say, *, quick: bool) -> list[Latency]:
    """Steady events at each of RATES, an alarm store filling every tenth of a second or so."""
    warm_up, measured = (_QUICK_WARM_UP, _QUICK_SECONDS) if quick else (_WARM_UP, _SECONDS)
    folder = rig.folder / "latency"
    folder.mkdir()
    estate = load_estate(site.bench_estate(folder, STORES))
    return [_measure(rig, say, estate, rate, warm_up, measured) for rate in RATES]


def _measure(rig: Rig, say: Say, estate: Estate, rate: int, warm_up: float, measured: float) -> Latency:
    say(f"{rate:,} events/s: making the events of {warm_up + measured:.0f} seconds")
    background = _Background(rate, warm_up + measured + _GRAIN)
    say(f"{rate:,} events/s for {measured:.0f} seconds after warming up, thresholds crossed meanwhile")
    topics = Topics(f"bench-latency-{rate}")
    prepare_topics(topics, rig.kafka)
    result, alarms = Latency(rate), _Alarms()
    arrived: dict[str, list[float]] = defaultdict(list)
    done = threading.Event()
    with rig.job(rig.settings(topics.prefix, estate=estate)) as (job, batches):
        reader = threading.Thread(target=_read, args=(rig.kafka, topics, arrived, done), name="mqtwin-bench-alerts")
        reader.start()
        try:
            pace = _Pace(warm_up, measured)
            _send(rig.kafka, topics, background, alarms, pace)
            patience = time.monotonic() + 30
            while _missing(alarms, arrived) and time.monotonic() < patience and job.query.isActive:
                time.sleep(0.1)
        finally:
            done.set()
            reader.join()
        result.batches = [batch.figures for batch in batches if pace.began <= batch.ended <= pace.end]
        recent = sorted(result.batches[-_REMEMBERED:], key=lambda figures: figures["batch_ms"])
        median = recent[len(recent) // 2]
        result.timeline = read_timeline(rig.session, job.query, f"{rate:,} events/s", median)
    if _missing(alarms, arrived):
        raise MqtwinError(f"{_missing(alarms, arrived)} alerts did not come within 30 seconds")
    for store, times in alarms.sent.items():
        for sent, came, counts in zip(times, arrived[store], alarms.measured[store], strict=False):
            if counts:
                result.seconds.append(came - sent)
                result.minutes[int((sent - pace.began) // 60)].append(came - sent)
    return result


def _missing(alarms: _Alarms, arrived: dict[str, list[float]]) -> int:
    return sum(len(times) - len(arrived[store]) for store, times in alarms.sent.items())


class _Pace:
    """The warm-up, then the measurement, both of some seconds."""

    def __init__(self, warm_up: float, measured: float) -> None:
        self._started = time.monotonic()
        self.began = self._started + warm_up
        self.end = self.began + measured

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def is_measured(self) -> bool:
        """True when the warm-up is over."""
        return time.monotonic() >= self.began

    @property
    def is_over(self) -> bool:
        """True when the measurement is over."""
        return time.monotonic() >= self.end


class _Background:
    """The records of steady traffic: JSON, one event a record, or Arrow, a thousand events of a store a record."""

    def __init__(self, rate: int, seconds: float) -> None:
        self._rate = rate
        if rate <= _EVENTS_A_RECORD:
            keys = [store.encode() for store in STORES for _ in site.queues_of(store)]  # the queues go in step
            lines = json_lines(Traffic(STORES).steady(round(rate * seconds))).to_pylist()
            json = ((keys[place % len(keys)], line.encode(), None, 1) for place, line in enumerate(lines))
            self._records: list[_Record] = list(json)
        else:
            self._records = list(self._arrow_records(round(rate * seconds)))
        self._sent = self._events = 0

    @staticmethod
    def _arrow_records(events: int) -> Iterator[_Record]:
        traffic = {store.encode(): Traffic((store,), seed) for seed, store in enumerate(STORES)}
        while events > 0:
            for key, each in traffic.items():
                table = each.steady(_EVENTS_A_RECORD)
                events -= table.num_rows
                yield key, arrow_value(table), ARROW, table.num_rows

    def due(self, elapsed: float) -> Iterator[tuple[bytes, bytes, str | None]]:
        """Yield key, value and content type (None: JSON) of the records that are due after that time, in seconds."""
        while self._sent < len(self._records) and self._events < elapsed * self._rate:
            key, value, kind, events = self._records[self._sent]
            self._sent, self._events = self._sent + 1, self._events + events
            yield key, value, kind


def _send(kafka: dict[str, str], topics: Topics, background: _Background, alarms: _Alarms, pace: _Pace) -> None:
    """Hand every event over when it is due."""
    producer: Producer = new_producer(kafka, {"linger.ms": 5, "partitioner": "murmur2_random"}, LastError())
    topic = topics.events
    chance = random.Random(1)
    alarm_at = 0.0
    while not pace.is_over:
        for key, value, kind in background.due(pace.elapsed):
            producer.produce(topic, value, key, headers=[("content-type", kind)] if kind else None)
        if pace.elapsed >= alarm_at:
            for store, value in alarms.next(measured=pace.is_measured):
                producer.produce(topic, value, store.encode())
            alarm_at = pace.elapsed + 2 * _ALARM_EVERY * chance.random()
        producer.poll(0)
        time.sleep(_GRAIN * chance.random())
    producer.flush(30)


def _read(kafka: dict[str, str], topics: Topics, arrived: dict[str, list[float]], done: threading.Event) -> None:
    """Note when each store's alerts opened."""
    topic = topics.alerts
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
