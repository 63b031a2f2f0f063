"""The watch over sources: which queue managers events come of, and the heartbeat that reports one gone silent.

The stages of the query say in each batch which queue managers they met. The driver keeps, in wall time, when it last
heard of each; after `silence_s` of the estate without any event it writes a HEARTBEAT for each store of the queue
manager to the events topic. All that follows from it is the twin's: see `twin.stores.silence`.

A job that is behind hears late. So nobody is reported before the job has read what the topic held when the time was up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from kernels.clock import SECOND, TICK
from streams.kafka.outgoing import Record
from streams.kafka.publish import PublishResult, Sender
from streams.kafka.topics import Topics, end_offsets
from streams.query.source_bits import SourceBits
from twin.errors import MqtwinError
from twin.estate import Estate
from twin.events import JSON
from twin.stores.open import MESSAGE_KINDS
from twin.stores.silence import heartbeat, watched_queue_managers

_LEAST_REPEAT_S = TICK / SECOND  # a store's clock acts every ten seconds: more heartbeats change nothing
_LOOKS = 10  # in the shortest silence
_LONGEST_LOOK_S = 5.0

_log = structlog.get_logger("mqtwin.stream")

Offsets = Mapping[int, int]  # partition -> the next record's offset


@dataclass(slots=True)
class _Source:
    """A watched queue manager, in seconds of the monotonic clock."""

    limit: float
    heard_at: float
    reported_at: float | None = None  # since it was last heard

    def is_due(self, now: float) -> bool:
        if self.reported_at is None:
            return now >= self.heard_at + self.limit
        return now >= self.reported_at + max(self.limit, _LEAST_REPEAT_S)


@dataclass(frozen=True, slots=True)
class _Question:
    """Queue managers whose time was up, and where the events topic ended then. asked_at: wall time, seconds."""

    names: tuple[str, ...]
    ends: Offsets
    asked_at: float


class SourceWatch:
    """When each watched queue manager was last heard from; `look` reports those that are silent.

    Args:
        limits: seconds of silence by queue manager.
        ends: the end of each partition of the events topic. MqtwinError: Kafka does not answer.
        report: called with the queue manager and the seconds for which it has been silent.
        monotonic, wall: clocks, seconds.
    """

    def __init__(
        self,
        limits: Mapping[str, float],
        ends: Callable[[], Offsets],
        report: Callable[[str, int], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._ends = ends
        self._report = report
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.Lock()
        self._sources = {name: _Source(limit, monotonic()) for name, limit in limits.items()}
        self._read: Offsets = {}
        self._idle_at = 0.0
        self._question: _Question | None = None

    def batch_ended(self, heard: Iterable[str], read: Offsets) -> None:
        """Take in a batch: the queue managers it had events of, and how far the events topic is read."""
        now = self._monotonic()
        with self._lock:
            for name in heard:
                self._sources[name].heard_at, self._sources[name].reported_at = now, None
            self._read = dict(read)

    def found_nothing(self, at: float) -> None:
        """Take in that the job looked for events at that wall time, or later, and there were none to read."""
        with self._lock:
            self._idle_at = at

    def look(self) -> None:
        """Report who is silent; called again and again."""
        if self._question is None:
            now = self._monotonic()
            with self._lock:
                due = tuple(name for name, source in self._sources.items() if source.is_due(now))
            if due:
                asked_at = self._wall()
                try:
                    self._question = _Question(due, self._ends(), asked_at)
                except MqtwinError as error:
                    self._count_anew(str(error))
        if self._question is not None:
            self._answer(self._question)

    def _answer(self, question: _Question) -> None:
        now = self._monotonic()
        with self._lock:
            is_read = all(self._read.get(number, -1) >= end for number, end in question.ends.items())
            if not is_read and self._idle_at < question.asked_at:
                return
            self._question = None
            silent = {name: self._sources[name] for name in question.names if self._sources[name].is_due(now)}
            for source in silent.values():
                source.reported_at = now
        for name, source in silent.items():
            self._report(name, max(1, int(now - source.heard_at)))

    def _count_anew(self, why: str) -> None:
        """Start to count again: while Kafka is away, nobody could have been heard."""
        _log.warning("sources are not watched while Kafka does not answer", why=why)
        now = self._monotonic()
        with self._lock:
            for source in self._sources.values():
                source.heard_at, source.reported_at = now, None


class SourceGuard:
    """A `SourceWatch` over the sources of an estate, in a thread of its own, that writes heartbeats to Kafka."""

    def __init__(self, estate: Estate, kafka: Mapping[str, str], topics: Topics) -> None:
        self._estate = estate
        self._kafka = kafka
        self._topics = topics
        self._bits = SourceBits(estate)
        self._limits = watched_queue_managers(estate)
        self._watch = SourceWatch(self._limits, lambda: end_offsets(kafka, topics.events), self._write)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sources", daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_LOOK_S)

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Take in Spark's report of a batch, as its JSON."""
        observed = (progress.get("observedMetrics") or {}).get("mqtwin") or {}
        self._watch.batch_ended(self._bits.heard(observed), read_offsets(progress).get(self._topics.events, {}))

    def idle(self, timestamp: str) -> None:
        """Take in that a trigger, begun at that time (ISO 8601), found nothing to read."""
        self._watch.found_nothing(datetime.fromisoformat(timestamp).timestamp())

    def _run(self) -> None:
        wait = min(_LONGEST_LOOK_S, min(self._limits.values()) / _LOOKS)
        while not self._stop.wait(wait):
            try:
                self._watch.look()
            except MqtwinError as error:
                _log.error(
                    "a silent source cannot be reported", why=str(error), right="WRITE", topic=self._topics.events
                )

    def _write(self, qmgr: str, silent_s: int) -> None:
        """Write a heartbeat for each store of a queue manager that holds messages."""
        routes = (self._estate.routes[number] for number in self._estate.routes_of_qmgr(qmgr))
        stores = [route.store for route in routes if self._estate.stores[route.store].kind in MESSAGE_KINDS]
        now = time.time_ns() // 1000
        with Sender(self._kafka, self._topics, PublishResult(), linger_ms=5, create_topics=False) as sender:
            for store in stores:
                sender.send(Record(store.encode(), heartbeat(qmgr, store, now, silent_s), JSON, 1))
        _log.warning("source silent", qmgr=qmgr, silent_s=silent_s, heartbeats=len(stores))


def read_offsets(progress: Mapping[str, Any]) -> dict[str, dict[int, int]]:
    """Return how far each topic is read after a batch: topic, partition, the next record's offset."""
    sources = progress.get("sources") or [{}]
    ends = sources[0].get("endOffset") or {}
    return {topic: {int(number): int(end) for number, end in places.items()} for topic, places in ends.items()}
