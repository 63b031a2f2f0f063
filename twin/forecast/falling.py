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

_LOWER = 0.5  # of the fall so far, by which what came before its peak was lower [assumed]
_RECENT_TICKS = 5 * MINUTE_TICKS  # up to the last put or get, in which gets have to exceed puts [assumed]


def falling_since(view: ForecastView, levels: Levels, resource: Resource, tick: int) -> int | None:
    """Return the tick from which a resource has emptied; None: it does not at present.

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
    held = np.concatenate(([0.0], np.cumsum(added - totals[:, regime.REFUSED_PUTS])))
    return int(np.append(ticks, last + 1)[last_peak(held.tolist())])


def last_peak(held: list[float]) -> int:
    """Return where the present fall began: at its highest place, before which it was lower by half of the fall.

    Args:
        held: amounts in order of time, the present one last.
    """
    now, peak, place = held[-1], held[-1], len(held) - 1
    for i in range(len(held) - 2, -1, -1):
        if held[i] > peak:
            peak, place = held[i], i
        elif peak - held[i] > _LOWER * (peak - now) > 0:
            break
    return place


def _by_levels(ticks: list[int], shares: list[float]) -> int | None:
    """Return the tick of the level from which levels fall; None: the last one is not lower than the one before it."""
    if len(shares) < 2 or shares[-1] >= shares[-2]:
        return None
    return ticks[last_peak(shares)]
