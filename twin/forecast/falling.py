"""Resources that empty: since when gets have exceeded puts, by the last minutes and not by the regime.

Refused puts count as puts: they come again. Of a store whose puts and gets nothing reports the measured levels say it.
"""

from __future__ import annotations

import numpy as np

from kernels import regime
from kernels.clock import MINUTE_TICKS
from kernels.meter_rows import BINS, CLASSES
from twin.conditions import ENTRIES, Resource
from twin.forecast.levels import Levels
from twin.forecast.view import ForecastView

_RECENT_TICKS = 5 * MINUTE_TICKS  # up to the last put or get, in which gets have to exceed puts [assumed]


def falling_since(view: ForecastView, levels: Levels, resource: Resource, tick: int) -> int | None:
    """Return the tick at which a resource was last fullest; None: it does not empty at present.

    Args:
        view: the store.
        levels: measured levels, of a store whose puts and gets nothing reports.
        resource: the resource.
        tick: the present.
    """
    if int(view.tables.store.scalars[0]["ages"]) == 0:
        return _by_levels(levels.ticks, levels.shares.get(str(resource), []))
    store = view.tables.store
    flows, totals = np.empty((BINS, 3 * CLASSES)), np.empty((BINS, regime.TOTALS))
    since = tick - BINS + 1
    ticks = np.sort(store.bins["tick"][(store.bins["tick"] >= since) & (store.bins["tick"] < tick)])
    n = regime.read_flows(store.bins, store.counts, since, tick, flows, totals)
    flows, totals, ticks = flows[:n], totals[:n], ticks[:n]
    busy = np.flatnonzero((totals[:, regime.PUT] + totals[:, regime.LEFT] + totals[:, regime.REFUSED_PUTS]) > 0)
    if not busy.size:
        return None
    last = int(ticks[busy[-1]])
    recent = ticks > last - _RECENT_TICKS
    added = totals[:, regime.STAYED] - totals[:, regime.LEFT]
    if added[recent].sum() >= 0:
        return None
    stayed, near, far = flows[:, :CLASSES], flows[:, CLASSES : 2 * CLASSES], flows[:, 2 * CLASSES :]
    if resource != ENTRIES and ((stayed - near - far)[recent] @ view.fill_model(tick).weights).sum() >= 0:
        return None  # many small messages go, a few large ones come
    held = np.cumsum(added - totals[:, regime.REFUSED_PUTS])
    fullest = n - 1 - int(np.argmax(held[::-1]))
    return int(ticks[0]) if held[fullest] <= 0 else int(ticks[fullest]) + 1


def _by_levels(ticks: list[int], shares: list[float]) -> int | None:
    """Return the tick of the highest measured level, the last one of several; None: the last level is not lower."""
    if len(shares) < 2 or shares[-1] >= shares[-2]:
        return None
    return ticks[len(shares) - 1 - int(np.argmax(shares[::-1]))]
