"""How the queues that fill a store are read: by nobody, by getters that lag behind, or by some that keep up.

The queue that grows most decides. A store that is emptied almost as fast as it is filled seldom becomes full; one from
which nothing is got does. How earlier rises ended says nothing about a queue that no application has open for input,
except where it is read on a timetable: then its getters come back as they did before, until they are away for longer
than usual.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kernels.clock import MINUTE_TICKS, TICK
from kernels.layout import NEVER
from twin.alerts.fillers import growth
from twin.alerts.readers import LONGER, QueueFact
from twin.forecast import rises
from twin.forecast.flows import MARK_TICKS
from twin.forecast.view import ForecastView
from twin.state.arrays import Array

_LEAST_TICKS = 5 * MINUTE_TICKS  # over which what is got is compared with what is put, at least
_ABSENT_TICKS = 2 * MINUTE_TICKS  # without a get, from which getters are absent [fitted]
_NEVER_GOT = 1 << 40  # ticks
_KEEPS_UP = 0.8  # of the puts, from which getters keep up [fitted]
_MOSTLY = 0.5  # share of the growth, from which a rise counts as unread
_ALIKE = 0.3  # weight from which a past rise is like the present one
_TIMETABLE = 2  # such rises that ended, from which the queue may be read on a timetable


class Reading(NamedTuple):
    """How the queues that fill a store are read."""

    unread: float = 0.0  # share of the growth, 0..1, of queues that nobody is measured to have open for input
    silent: int = 0  # ticks since a get last removed a message from the queue that grows most, or very many
    got: float = math.nan  # messages got from that queue per message put, in the last 5 to 20 minutes; NaN: not known
    has_stopped: bool = False  # True if measured handles show that its reader has stopped

    @property
    def is_unread(self) -> bool:
        """True if nobody reads the queues that most of the growth is due to."""
        return self.unread > _MOSTLY

    def is_absent(self, age: float) -> bool:
        """Return True if nothing has been got for two minutes of a rise. age: ticks since it began."""
        return min(self.silent, age) >= _ABSENT_TICKS

    def keeps_up(self, age: float) -> bool:
        """Return True if the getters get almost as much as is put. age: as for `is_absent`."""
        return not self.is_absent(age) and not self.is_unread and self.got >= _KEEPS_UP

    @property
    def lags(self) -> bool:
        """True if the getters are known to get less than that."""
        return self.got < _KEEPS_UP


READ = Reading()  # as where nothing is known of the queues


def how_read(view: ForecastView, tick: int, *, is_sample: bool = False) -> Reading:
    """Return how the queues that fill a store are read; of a sample of calls measured depths say which queues grow."""
    store = view.tables.store
    rows = store.queues[: len(view.queues)]
    if is_sample:
        return _how_measured(view, tick)
    sample = "then" if tick % MARK_TICKS >= _LEAST_TICKS else "before"
    grown = _in_bytes(rows, rows["depth"] - rows[f"depth_{sample}"])
    if not grown.size:
        return Reading(unread_share(view, tick))
    row = int(grown.argmax())
    queue = rows[row]
    put, got = (int(queue[name] - queue[f"{name}_{sample}"]) for name in ("puts", "gets"))
    silent = tick - int(queue["got_at"]) if queue["got_at"] != NEVER else _NEVER_GOT
    return Reading(unread_share(view, tick), silent, got / max(put, 1), _has_lost_its_reader(view, row, tick))


def _how_measured(view: ForecastView, tick: int) -> Reading:
    began = rises.under_way(view.tables.store, tick).age
    since = tick - max(_LEAST_TICKS, int(began))
    grown, _ = view.readers.depths(view.queues, since * TICK, tick * TICK)
    if not grown.size or grown.max() <= 0:
        return READ
    row = int(grown.argmax())
    fact = view.readers.facts[view.queues[row]]
    silent = _NEVER_GOT if fact.last_get is None else (fact.measured_at - fact.last_get) // TICK
    if fact.last_get is None and fact.getters != 0:
        silent = 0
    return Reading(unread_share(view, tick, since), silent, has_stopped=_has_lost_its_reader(view, row, tick))


def _has_lost_its_reader(view: ForecastView, row: int, tick: int) -> bool:
    """Return True if measured handles show that the reader of a queue has stopped."""
    fact, got = view.readers.facts.get(view.queues[row]), int(view.tables.store.queues[row]["gets"])
    return fact is not None and fact.known_getters(tick * TICK, got) == 0 and fact.has_lost_its_reader


def unread_share(view: ForecastView, tick: int, rise_began: int | None = None) -> float:
    """Return the share of a store's growth that nobody reads, 0..1; queues read on a timetable are left out.
    `rise_began`: tick since which measured depths have grown; None: puts and gets are known.
    """
    rows = view.tables.store.queues[: len(view.queues)]
    unread = view.readers.unread(view.queues, rows, tick * TICK)
    chosen = [row for row, fact in unread.items() if not _may_return(view, fact, tick)]
    if not chosen:
        return 0.0
    if rise_began is not None:
        grown, _ = view.readers.depths(view.queues, rise_began * TICK, tick * TICK)
    else:
        grown = _in_bytes(rows, growth(rows, "depth"))
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
    lasted = np.sort(past.lasted[is_earlier & ~past.refused & (past.weights > _ALIKE)])
    return lasted.size >= _TIMETABLE and rise.age <= LONGER * float(lasted[-_TIMETABLE])


def _in_bytes(rows: Array, grown: Array) -> Array:
    """Return f8[n], growth in messages by queue as bytes, by the mean length of each queue's messages."""
    return np.asarray(grown * rows["bytes"] / np.maximum(rows["depth"], 1))
