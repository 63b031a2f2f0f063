"""The share of a rise that is due to queues that nobody reads: it does not end by itself.

How earlier rises ended says nothing about a queue that no application has open for input, except where it is read on a
timetable: then its getters come back as they did before, until they are away for longer than usual.
"""

from __future__ import annotations

import numpy as np

from kernels.clock import TICK
from twin.alerts.fillers import growth
from twin.alerts.readers import LONGER, QueueFact
from twin.forecast import rises
from twin.forecast.view import ForecastView

_ALIKE = 0.3  # weight from which a past rise is like the present one
_TIMETABLE = 2  # such rises that ended, from which the queue may be read on a timetable


def unread_share(view: ForecastView, tick: int, rise_began: int | None = None) -> float:
    """Return the share of a store's growth that nobody reads, 0..1; queues read on a timetable are left out.

    Args:
        view: the store.
        tick: the present.
        rise_began: tick since which measured depths have grown; None: puts and gets are known.
    """
    rows = view.tables.store.queues[: len(view.queues)]
    unread = view.readers.unread(view.queues, rows, tick * TICK)
    chosen = [row for row, fact in unread.items() if not _may_return(view, fact, tick)]
    if not chosen:
        return 0.0
    if rise_began is not None:
        grown, _ = view.readers.depths(view.queues, rise_began * TICK, tick * TICK)
    else:  # bytes, by the mean length of a queue's messages
        grown = growth(rows, "depth") * rows["bytes"] / np.maximum(rows["depth"], 1)
    grown = np.maximum(grown, 0)
    total = float(grown.sum())
    return float(grown[chosen].sum()) / total if total > 0 else 0.0


def _may_return(view: ForecastView, fact: QueueFact, tick: int) -> bool:
    """Return True if the getters of an unread queue may be away no longer than usual.

    Before its handles were measured, like rises that ended may have ended by their return.
    """
    if fact.may_return(tick * TICK):
        return True
    store = view.tables.store
    rise = rises.under_way(store, tick)
    past = rises.past_of(store, rise)
    is_earlier = past.rows["ended"] * TICK <= fact.watched_since
    lasted = np.sort(past.lasted[is_earlier & ~past.went_on & (past.weights > _ALIKE)])
    return lasted.size >= _TIMETABLE and rise.age <= LONGER * float(lasted[-_TIMETABLE])
