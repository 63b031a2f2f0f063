"""Samples of stores over time, as Arrow tables: usage of each resource, and what was forecast.

Stores are sampled every 30 seconds of event time: z/OS samples a structure about once per minute (structure full
monitoring), other monitors sample every 15 to 60 seconds. Usage of a data set or page set is relative to its maximum:
one that expands at 90 % is in no danger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from kernels import layout
from kernels.clock import SECOND
from twin.estate import Estate
from twin.events import Decoded
from twin.forecast.outlook import Forecast
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin

STEP = 30 * SECOND  # of event time between samples

T = TypeVar("T")
Usage = Mapping[str, float]
"""Usage of a store by resource, percent."""

_TIME = pa.timestamp("us", tz="UTC")


class Samples(Generic[T]):
    """Samples of the stores that hold messages. They do not depend on the pieces in which events are applied.

    Attributes:
        by_store: by store, then by number of the STEP, ascending: the last sample in it.
        forecasts: by store, in order of time.
    """

    def __init__(self, estate: Estate, take: Callable[[MessageStore], T]) -> None:
        """Start without samples. take: returns a sample of a store."""
        self.by_store: defaultdict[str, dict[int, T]] = defaultdict(dict)
        self.forecasts: defaultdict[str, list[Forecast]] = defaultdict(list)
        self._take = take
        self._store_of = np.array([route.store for route in estate.routes])

    def add(self, piece: Decoded, twins: Mapping[str, Twin]) -> None:
        """Sample the stores of events that have been applied; see `split_by_step`."""
        for name in np.unique(self._store_of[np.unique(piece.events["route"])]).tolist():
            twin = twins[name]
            if not isinstance(twin, MessageStore):  # shared stores have no usage of their own
                continue
            clock = int(twin.tables.store.scalars[0]["clock"])
            if clock != layout.NEVER:
                self.by_store[name][clock // STEP] = self._take(twin)
            self.forecasts[name] += twin.drain_forecasts()


def usage_of(twin: MessageStore) -> Usage:
    """Return the usage of a store."""
    return {str(resource): pct for resource, pct in twin.usage_of_maximum().items()}


def split_by_step(decoded: Decoded) -> Iterator[Decoded]:
    """Split events where two consecutive times lie in different STEPs."""
    return decoded.split((np.flatnonzero(np.diff(decoded.events["time"] // STEP)) + 1).tolist())


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
