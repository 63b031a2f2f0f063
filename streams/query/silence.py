"""The watch over sources: it notices queue managers that send no events, and writes heartbeats that report them.

The stages of the query report which queue managers have events in a batch, and the driver notes in wall time when each
was last heard. After `silence_s` (of the estate) without any event it writes a HEARTBEAT for each store of the queue
manager to the events topic; the twin raises the alert (`twin.stores.watches`). A job that is behind hears late, so a
queue manager is reported only after the job has read everything that the topic held when the time was up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from kernels.clock import SECOND, TICK
from streams.kafka.admin import end_offsets
from streams.kafka.publish import PublishResult, Record, Sender
from streams.kafka.topics import Topics
from streams.query.rows import BatchReport, SourceBits
from twin.base.errors import MqtwinError
from twin.estate import Estate
from twin.events import JSON
from twin.stores.watches import heartbeat, watched_queue_managers

_MIN_REPEAT_S = TICK / SECOND  # the clock of a store ticks every ten seconds; more heartbeats would change nothing
_CHECKS = 10  # per shortest limit of silence
_MAX_CHECK_INTERVAL_S = 5.0

_log = structlog.get_logger("mqtwin.stream")

Offsets = Mapping[int, int]  # offset of the next record, by partition


@dataclass(slots=True)
class _Source:
    """A watched queue manager, in seconds of the monotonic clock, with the silence after which it is reported."""

    limit_s: float
    heard_at_s: float
    reported_at_s: float | None = None

    def is_due(self, now: float) -> bool:
        """Return True if the queue manager has been silent for its limit, or is to be reported again."""
        if self.reported_at_s is None:
            return now >= self.heard_at_s + self.limit_s
        return now >= self.reported_at_s + max(self.limit_s, _MIN_REPEAT_S)


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """Queue managers that are due, reported once the job has read the events topic to `ends`. time_s: wall time."""

    names: tuple[str, ...]
    ends: Offsets
    time_s: float


class SourceWatch:
    """The times of the last event of each watched queue manager; `check` reports those that are silent. `report` gets
    the queue manager and its seconds of silence; `ends` raises MqtwinError if Kafka does not answer.
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
        self._ends, self._report, self._monotonic, self._wall = ends, report, monotonic, wall
        self._lock = threading.Lock()
        self._sources = {name: _Source(limit, monotonic()) for name, limit in limits.items()}
        self._read: Offsets = {}
        self._idle_at_s = 0.0
        self._suspicion: _Suspicion | None = None

    def on_batch(self, heard: Iterable[str], read: Offsets) -> None:
        """Record the end of a batch."""
        now = self._monotonic()
        with self._lock:
            for name in heard:
                self._sources[name].heard_at_s, self._sources[name].reported_at_s = now, None
            self._read = dict(read)

    def on_idle(self, time_s: float) -> None:
        """Record that the job looked for events, at that wall time or later, and found none to read."""
        with self._lock:
            self._idle_at_s = time_s

    def check(self) -> None:
        """Report queue managers that are silent; to be called periodically."""
        if self._suspicion is None:
            now = self._monotonic()
            with self._lock:
                due = tuple(name for name, source in self._sources.items() if source.is_due(now))
            if due:
                time_s = self._wall()
                try:
                    self._suspicion = _Suspicion(due, self._ends(), time_s)
                except MqtwinError as error:
                    self._restart_limits(str(error))
        if self._suspicion is not None:
            self._settle(self._suspicion)

    def _settle(self, suspicion: _Suspicion) -> None:
        """Report those of a suspicion that are still due, if the job has read far enough."""
        now = self._monotonic()
        with self._lock:
            is_read = all(self._read.get(number, -1) >= end for number, end in suspicion.ends.items())
            if not is_read and self._idle_at_s < suspicion.time_s:
                return
            self._suspicion = None
            silent = {name: self._sources[name] for name in suspicion.names if self._sources[name].is_due(now)}
            for source in silent.values():
                source.reported_at_s = now
        for name, source in silent.items():
            self._report(name, max(1, int(now - source.heard_at_s)))

    def _restart_limits(self, why: str) -> None:
        """Start all limits again: while Kafka does not answer, no source can be heard."""
        _log.warning("sources are not watched while Kafka does not answer", why=why)
        now = self._monotonic()
        with self._lock:
            for source in self._sources.values():
                source.heard_at_s, source.reported_at_s = now, None


class SourceGuard:
    """A thread with a `SourceWatch` over the sources of an estate, which writes heartbeats to Kafka."""

    def __init__(self, estate: Estate, kafka: Mapping[str, str], topics: Topics) -> None:
        self._estate, self._kafka, self._topics = estate, kafka, topics
        self._bits = SourceBits(estate)
        self._limits = watched_queue_managers(estate)
        self._watch = SourceWatch(self._limits, lambda: end_offsets(kafka, topics.events), self._write)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sources", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_MAX_CHECK_INTERVAL_S)

    def on_batch(self, report: BatchReport) -> None:
        """Record the end of a batch."""
        self._watch.on_batch(self._bits.heard(report.observed), report.end_offsets.get(self._topics.events, {}))

    def on_idle(self, timestamp: str) -> None:
        """Record that a trigger, started at a time (ISO 8601), found nothing to read."""
        self._watch.on_idle(datetime.fromisoformat(timestamp).timestamp())

    def _run(self) -> None:
        interval_s = min(_MAX_CHECK_INTERVAL_S, min(self._limits.values()) / _CHECKS)
        while not self._stop.wait(interval_s):
            try:
                self._watch.check()
            except MqtwinError as error:
                _log.error(
                    "a silent source cannot be reported", why=str(error), right="WRITE", topic=self._topics.events
                )
            except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: it looks again
                _log.error("sources cannot be watched", why=f"{type(error).__name__}: {error}")

    def _write(self, qmgr: str, silent_s: int) -> None:
        routes = (self._estate.routes[number] for number in self._estate.routes_of_qmgr(qmgr))
        stores = [route.store for route in routes if route.store in self._estate.message_stores]
        now = time.time_ns() // 1000
        with Sender(self._kafka, self._topics, PublishResult(), linger_ms=5, create_topics=False) as sender:
            for store in stores:
                sender.send(Record(store.encode(), heartbeat(qmgr, store, now, silent_s), JSON, 1))
        _log.warning("source silent", qmgr=qmgr, silent_s=silent_s, heartbeats=len(stores))
