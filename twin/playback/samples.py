"""Observers of a recording that is played, and samples of stores over time: usage and forecasts, as Arrow tables.

Stores are sampled every 30 seconds of event time: z/OS samples a structure about once per minute (structure full
monitoring), other monitors sample every 15 to 60 seconds. Usage of a data set or page set is relative to its maximum:
one that expands at 90 % is in no danger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from kernels import layout
from kernels.clock import SECOND
from twin.alerts.episodes import Alert
from twin.estate import Estate
from twin.events import Decoded, Reject
from twin.forecast.outlook import Forecast
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin

STEP = 30 * SECOND  # of event time between samples

T = TypeVar("T")
Usage = Mapping[str, float]
"""Usage of a store by resource, percent."""

_TIME = pa.timestamp("us", tz="UTC")


class Applied(NamedTuple):
    """A piece of a recording just after the twins applied it."""

    piece: Decoded  # the events; none at the end
    alerts: Sequence[Alert]  # those that it caused, by store, in order
    twins: Mapping[str, Twin]  # by store


class Observer:
    """Observer of a recording that is played: each method does nothing unless it is replaced."""

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows of a chunk at which a piece begins, ascending."""
        del decoded
        return ()

    def before(self, piece: Decoded, twins: Mapping[str, Twin]) -> None:
        """Take a piece, which has events, just before the twins apply it."""

    def after(self, applied: Applied) -> None:
        """Take a piece just after the twins applied it."""

    def end_chunk(self, decoded: Decoded) -> None:
        """Take a chunk, with its dead letters, once all of its pieces are applied."""

    def end(self, applied: Applied) -> None:
        """Take the end, like a piece without events; its alerts are of shared stores that waited for silent sources."""
        self.after(applied)


class Alerts(Observer):
    """All alerts of a recording, by time, then store, then in the order of the store once it has ended."""

    def __init__(self) -> None:
        self.alerts: list[Alert] = []

    def after(self, applied: Applied) -> None:
        """Keep the alerts."""
        self.alerts += applied.alerts

    def end(self, applied: Applied) -> None:
        """Keep the alerts, and sort all."""
        self.alerts += applied.alerts
        self.alerts.sort(key=lambda alert: (alert.time, alert.store))  # stable: a store's own order stays


class Letters(Observer):
    """Counts of the lines or rows of a recording."""

    def __init__(self, on_reject: Callable[[Reject], None] | None = None) -> None:
        """Begin at zero. on_reject: called with each dead letter."""
        self.events = self.dead_letters = 0  # number of accepted ones, duplicates included
        self._on_reject = on_reject

    def end_chunk(self, decoded: Decoded) -> None:
        """Count a chunk."""
        self.events += count_events(decoded)
        self.dead_letters += len(decoded.rejects)
        if self._on_reject is not None:
            for reject in decoded.rejects:
                self._on_reject(reject)


class Samples(Observer, Generic[T]):
    """Samples of the stores that hold messages. They do not depend on the pieces in which events are applied."""

    def __init__(self, estate: Estate, take: Callable[[MessageStore], T]) -> None:
        """Start without samples. take: returns a sample of a store."""
        # by store, then by number of the STEP: the last in it
        self.by_store: defaultdict[str, dict[int, T]] = defaultdict(dict)
        self.forecasts: defaultdict[str, list[Forecast]] = defaultdict(list)  # by store, in order of time
        self._take = take
        self._store_of = np.array([route.store for route in estate.routes])

    def cuts(self, decoded: Decoded) -> Iterable[int]:
        """Return the rows at which a STEP begins."""
        return step_cuts(decoded)

    def after(self, applied: Applied) -> None:
        """Sample the stores of the piece."""
        for name in np.unique(self._store_of[np.unique(applied.piece.events["route"])]).tolist():
            twin = applied.twins[name]
            if not isinstance(twin, MessageStore):  # shared stores have no usage of their own
                continue
            clock = int(twin.tables.store.scalars[0]["clock"])
            if clock != layout.NEVER:
                self.by_store[name][clock // STEP] = self._take(twin)
            self.forecasts[name] += twin.drain_forecasts()


def usage_of(twin: MessageStore) -> Usage:
    """Return the usage of a store."""
    return {str(resource): pct for resource, pct in twin.usage_of_maximum().items()}


def step_cuts(decoded: Decoded, step: int = STEP) -> list[int]:
    """Return the rows whose time lies in another STEP than that of the row before."""
    return (np.flatnonzero(np.diff(decoded.events["time"] // step)) + 1).tolist()


def count_events(decoded: Decoded) -> int:
    """Return the number of accepted lines or rows; one that concerns several stores counts once."""
    if not len(decoded):
        return 0
    is_next = (np.diff(decoded.index) != 0) | (np.diff(decoded.record) != 0)
    return 1 + int(np.count_nonzero(is_next))


def usage_table(samples: Samples[Usage]) -> pa.Table:
    """Return time (the end of a STEP), store, resource and usage_pct, by time, store and resource."""
    sampled = [(step, store, usage) for store, steps in samples.by_store.items() for step, usage in steps.items()]
    sampled.sort(key=itemgetter(0, 1))
    rows = [
        ((step + 1) * STEP, store, resource, pct) for step, store, usage in sampled for resource, pct in usage.items()
    ]
    times, stores, resources, pcts = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "time": pa.array(times, pa.int64()).cast(_TIME),
            "store": pa.array(stores, pa.string()),
            "resource": pa.array(resources, pa.string()),
            "usage_pct": pa.array(pcts, pa.float64()),
        }
    )


def forecast_table(samples: Samples[Usage]) -> pa.Table:
    """Return each prediction: time, store, resource, usage_pct, p10_s, p50_s, p90_s, probability, is_first."""
    unordered = (forecast for forecasts in samples.forecasts.values() for forecast in forecasts)
    ordered = sorted(unordered, key=lambda forecast: (forecast.time, forecast.store))
    numbers = {"usage_pct": "usage_pct", "p10_s": "p10", "p50_s": "p50", "p90_s": "p90", "probability": "probability"}
    return pa.table(
        {
            "time": pa.array([row.time for row in ordered], pa.int64()).cast(_TIME),
            "store": pa.array([row.store for row in ordered], pa.string()),
            "resource": pa.array([row.resource for row in ordered], pa.string()),
            **{
                column: pa.array([getattr(row, name) for row in ordered], pa.float64())
                for column, name in numbers.items()
            },
            "is_first": pa.array([row.first for row in ordered], pa.bool_()),
        }
    )
