"""The course of a replay over time, as Arrow tables: usage of each resource, and what was forecast.

Usage is sampled every 30 seconds of event time: z/OS samples a structure about once per minute (structure full
monitoring), other monitors sample every 15 to 60 seconds. That of a data set or page set is relative to its maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kernels import layout
from kernels.clock import SECOND
from twin.events import Decoded
from twin.forecast.outlook import Forecast
from twin.stores.message_store import MessageStore

STEP = 30 * SECOND  # of event time between samples

_TIME = pa.timestamp("us", tz="UTC")


class Course:
    """Samples of the stores that hold messages. They do not depend on the pieces in which events are applied."""

    def __init__(self) -> None:
        """Start without samples."""
        self._usage: dict[tuple[int, str], dict[str, float]] = {}  # by STEP and store: usage by resource, percent
        self._forecasts: list[Forecast] = []

    def add(self, twin: MessageStore) -> None:
        """Take a sample of a store; the last one of a STEP counts."""
        clock = int(twin.tables.store.scalars[0]["clock"])
        if clock != layout.NEVER:
            self._usage[clock // STEP, twin.name] = {
                str(resource): pct for resource, pct in twin.usage_of_maximum().items()
            }
        self._forecasts += twin.drain_forecasts()

    def usage(self) -> pa.Table:
        """Return time (the end of a STEP), store, resource and usage_pct, by time, store and resource."""
        rows = [
            ((step + 1) * STEP, store, resource, pct)
            for (step, store), usage in sorted(self._usage.items())
            for resource, pct in usage.items()
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

    def forecasts(self) -> pa.Table:
        """Return each prediction: time, store, resource, usage_pct, p10_s, p50_s, p90_s, probability, is_first."""
        ordered = sorted(self._forecasts, key=lambda forecast: (forecast.time, forecast.store))
        numbers = ("usage_pct", "p10", "p50", "p90", "probability")
        columns = {name: pa.array([getattr(row, name) for row in ordered], pa.float64()) for name in numbers}
        return pa.table(
            {
                "time": pa.array([row.time for row in ordered], pa.int64()).cast(_TIME),
                "store": pa.array([row.store for row in ordered], pa.string()),
                "resource": pa.array([row.resource for row in ordered], pa.string()),
                "usage_pct": columns["usage_pct"],
                "p10_s": columns["p10"],
                "p50_s": columns["p50"],
                "p90_s": columns["p90"],
                "probability": columns["probability"],
                "is_first": pa.array([row.first for row in ordered], pa.bool_()),
            }
        )


def pieces_by_step(decoded: Decoded) -> Iterator[Decoded]:
    """Split events where two consecutive times lie in different STEPs."""
    if not len(decoded):
        return
    cuts = np.flatnonzero(np.diff(decoded.events["time"] // STEP)) + 1
    edges = [0, *cuts.tolist(), len(decoded)]
    extras = sorted(decoded.extras.items())
    i = 0
    for start, end in pairwise(edges):
        own = {}
        while i < len(extras) and extras[i][0] < end:
            own[extras[i][0] - start] = extras[i][1]
            i += 1
        yield Decoded(decoded.events[start:end], decoded.record[start:end], decoded.index[start:end], own)
