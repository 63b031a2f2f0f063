"""Reports of Spark about a batch: its progress, and the figures of all tasks, which Spark combines.

Beside sums there are the bits of the queue managers with events (see `streams.query.silence`), and the number of a
producer whose `seq` has started again. The twins take its events for duplicates until it passes the old numbers. A
repeated delivery has old times, a producer that numbers from the beginning has new ones: most events of a store in a
batch are duplicates, and younger than the store's clock. That is a warning of the job only: it changes no state.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import structlog

from kernels.clock import FAR
from twin.estate import Estate
from twin.events import EventBlock
from twin.stores.silence import is_report, watched_queue_managers

OBSERVED = "mqtwin"  # name of the observation
HEARD = "heard"  # column of `streams.query.rows.RECORD_DDL`, and prefix of the names of the observed words
_WORD_BITS = 62  # used bits of a signed 64-bit number
RESTARTED = "restarted_route"  # observed name: the largest number of a route with such a producer, plus one
CLOCK = "clock"  # observed name: the latest event time of a store, microseconds
MIN_EVENTS = 10  # of a store in a batch, for a judgement

_log = structlog.get_logger("mqtwin.stream")

Offsets = dict[str, dict[int, int]]  # topic -> partition -> offset of the next record


class _Source(msgspec.Struct, frozen=True, rename="camel"):
    """The source of the query. metrics: Spark's, as text."""

    end_offset: Offsets | None = None
    latest_offset: Offsets | None = None
    metrics: dict[str, str] | None = None


class StateOperator(msgspec.Struct, frozen=True, rename="camel"):
    """The state stores of the query. commit_time_ms: sum over all partitions."""

    memory_used_bytes: int = 0
    commit_time_ms: int = 0


class BatchReport(msgspec.Struct, frozen=True, rename="camel"):
    """Spark's progress report of a batch [Spark: StreamingQueryProgress, JSON]; what it leaves out is empty. Durations
    are in milliseconds of wall time by phase.
    """

    batch_id: int
    num_input_rows: int = 0
    duration_ms: dict[str, int] = {}
    state_operators: tuple[StateOperator, ...] = ()
    sources: tuple[_Source, ...] = ()
    observed_metrics: dict[str, dict[str, int | None]] = {}

    @property
    def _source(self) -> _Source:
        return self.sources[0] if self.sources else _Source()

    @property
    def end_offsets(self) -> Offsets:
        """Offset of the next record after the batch."""
        return self._source.end_offset or {}

    @property
    def latest_offsets(self) -> Offsets:
        """Ends of the topics at the start of the batch; empty if Spark did not ask for them."""
        return self._source.latest_offset or {}

    @property
    def behind(self) -> float | None:
        """Mean number of records per partition up to the last stable offset, not yet read; None if not known."""
        text = (self._source.metrics or {}).get("avgOffsetsBehindLatest")
        return None if text is None else float(text)

    @property
    def observed(self) -> dict[str, int]:
        """The job's own figures; a sum over nothing is left out."""
        return {name: value for name, value in self.observed_metrics.get(OBSERVED, {}).items() if value is not None}


class SourceBits:
    """The watched queue managers of an estate, a bit for each, so that Spark can combine those of all tasks."""

    def __init__(self, estate: Estate) -> None:
        self.names = sorted(watched_queue_managers(estate))
        bits = {name: bit for bit, name in enumerate(self.names)}
        unwatched = len(self.names)
        self._route_bits = np.array([bits.get(route.qmgr, unwatched) for route in estate.routes], np.int32)

    @property
    def columns(self) -> list[str]:
        """Names of the observed words; empty if no queue manager is watched."""
        return [f"{HEARD}_{i}" for i in range(-(-len(self.names) // _WORD_BITS))]

    def words(self, blocks: Iterable[EventBlock]) -> list[int]:
        """Return words with a bit for each watched queue manager with an event; reports of silence do not count."""
        if not self.names:
            return []
        heard = np.zeros(len(self.names) + 1, np.bool_)
        for block in blocks:
            bits = self._route_bits[block.events["route"]]
            heard[bits[~is_report(block)] if block.extras else bits] = True
        words = [0] * len(self.columns)
        for bit in np.flatnonzero(heard[:-1]).tolist():
            words[bit // _WORD_BITS] |= 1 << bit % _WORD_BITS
        return words

    def heard(self, observed: Mapping[str, int]) -> list[str]:
        """Return the queue managers in the observed words of a batch."""
        words = [observed.get(name, 0) for name in self.columns]
        return [name for bit, name in enumerate(self.names) if words[bit // _WORD_BITS] >> bit % _WORD_BITS & 1]


def plausible_clock(clock_us: int) -> int:
    """Return the clock of a store; 0 if it is more than a day ahead of this machine's: it would stop all snapshots."""
    return clock_us if 0 < clock_us < time.time() * 1_000_000 + FAR else 0


def restarted_route(blocks: Iterable[EventBlock], duplicates: int, clock: int) -> int:
    """Return the number, plus one, of the route with most young duplicates of a store in a batch; 0 if they are few.
    Events that were applied are not younger than the clock of the store after the batch.
    """
    total, young = 0, []
    for block in blocks:
        total += len(block)
        young.append(block.events["route"][(block.events["time"] > clock) & (block.events["seq"] >= 0)])
    count = min(duplicates, sum(map(len, young)))
    if total < MIN_EVENTS or 2 * count <= total:
        return 0
    routes, counts = np.unique(np.concatenate(young), return_counts=True)
    return int(routes[np.argmax(counts)]) + 1


class RestartLog:
    """Warnings of producers whose `seq` has started again, one for each store and queue manager."""

    def __init__(self, estate: Estate) -> None:
        self._routes = estate.routes
        self._named: set[tuple[str, str]] = set()

    def on_batch(self, observed: Mapping[str, int], duplicates: int) -> None:
        """Warn of the producer that a batch names. observed: its metrics; duplicates: in the whole batch."""
        number = observed.get(RESTARTED, 0)
        if not number:
            return
        route = self._routes[number - 1]
        if (route.store, route.qmgr) in self._named:
            return
        self._named.add((route.store, route.qmgr))
        _log.warning(
            "a producer's seq has started again",
            store=route.store,
            qmgr=route.qmgr,
            duplicates=duplicates,
            effect="its events are taken for duplicates, which change nothing, until seq passes its old numbers",
            remedy="let it continue its numbers, or leave seq out; then send a MEASURE for the store",
        )
