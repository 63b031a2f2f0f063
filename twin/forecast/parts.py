"""Queues apart: a getter that stops shows in its own queue long before it shows in the sum of a store's flows.

The kernels sample each queue every quarter of an hour, and note when a get last removed a message from it. A queue that
was got from steadily, from which nothing is got any more while messages pile up, has a getter that stopped. From the
bins of the present regime before that moment its gets are taken out, so that they are as they would have been without
that getter. All other flows stay a sum.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from kernels.clock import MINUTE_TICKS, TICK
from kernels.layout import NEVER, Store
from kernels.meter_rows import BINS, CLASSES
from kernels.meters import EDGES, YOUNG_FOR
from kernels.regime import LAG, LEFT, STAYED
from kernels.ticks import MARK
from twin.state.arrays import Array

_MARK_TICKS = MARK // TICK  # between two samples of a queue
MOST_STOPS = 4  # remembered of a store: those of the queues that were got from most
_SILENT_TICKS = 3 * MINUTE_TICKS  # least time without a get [assumed]
_MIN_SPAN = 5 * MINUTE_TICKS  # of the gets before it, from which their rate is taken [assumed]
_MIN_MISSED = 20.0  # gets that should have come: by chance none comes once in e to this power
_MIN_PILED = 0.5  # share of the gets missed by which the queue has become deeper [assumed]
_MIN_DEEPER = 3  # times as deep as at its samples: a getter that works in bursts leaves as much between them [assumed]


class Stop(msgspec.Struct, frozen=True):
    """A getter that stopped.

    Attributes:
        queue: row of the queue.
        got_at: tick of the last get.
        rate: messages a tick that were got before.
        size: length class of the queue's messages.
        soon: True if messages were got within `YOUNG_FOR` of their put.
    """

    queue: int
    got_at: int
    rate: float
    size: int
    soon: bool


def note_stops(store: Store, tick: int, known: tuple[Stop, ...]) -> tuple[Stop, ...]:
    """Return the getters that stopped, at most `MOST_STOPS`, those of the highest rate, by row of their queues.

    Args:
        store: the arrays.
        tick: the present.
        known: those that stopped before; they stay until there is a get, or until no bin is that old.
    """
    queues = store.queues[: int(store.params["queues"][0])]
    stops = {stop.queue: stop for stop in known if _goes_on(stop, queues, tick)}
    mark = tick // _MARK_TICKS * _MARK_TICKS
    sampled_from = mark - _MARK_TICKS  # of `gets_before`
    silent = (queues["got_at"] <= tick - _SILENT_TICKS) & (queues["got_at"] >= sampled_from + _MIN_SPAN)
    if int(store.scalars["steady_from"][0]) <= sampled_from:
        for row in silent.nonzero()[0].tolist():
            stop = None if row in stops else _stop_of(queues[row], row, tick, mark)
            if stop is not None:
                stops[row] = stop
    first = sorted(stops.values(), key=lambda stop: (-stop.rate, stop.queue))[:MOST_STOPS]
    return tuple(sorted(first, key=lambda stop: stop.queue))


def _goes_on(stop: Stop, queues: Array, tick: int) -> bool:
    return stop.queue < queues.size and int(queues["got_at"][stop.queue]) == stop.got_at > tick - BINS


def _stop_of(queue: Array, row: int, tick: int, mark: int) -> Stop | None:
    """Return the stop of the getter of a queue from which nothing has been got for a while; None: it may be a pause.

    Args:
        queue: QUEUE.
        row: its row.
        tick: the present.
        mark: tick of the last sample.
    """
    got_at, depth, before = int(queue["got_at"]), int(queue["depth"]), int(queue["depth_before"])
    if got_at == NEVER or depth <= 0:
        return None
    usual = max(before, int(queue["depth_then"])) if got_at >= mark else before
    rate = float(queue["gets"] - queue["gets_before"]) / (got_at - mark + _MARK_TICKS)
    missed = rate * (tick - got_at)
    if missed < _MIN_MISSED or depth - usual < _MIN_PILED * missed or depth < _MIN_DEEPER * usual:
        return None
    size = min(bisect_left(EDGES, int(queue["bytes"]) // depth, lo=1) - 1, CLASSES - 1)
    return Stop(row, got_at, rate, size, soon=usual < rate * YOUNG_FOR)


def take_out(stops: tuple[Stop, ...], tick: int, flows: Array, totals: Array) -> None:
    """Take the gets of getters that stopped out of bins before that.

    Args:
        stops: the getters.
        tick: tick behind the last bin.
        flows: f8[n, 3 * CLASSES], as `kernels.regime.read_flows` writes them; changed.
        totals: f8[n, TOTALS], likewise.
    """
    for stop in stops:
        bins = max(0, flows.shape[0] - (tick - stop.got_at))
        earlier, sums = flows[:bins], totals[:bins]
        if stop.soon:  # its messages never counted as ones that stay
            earlier[:, stop.size] += stop.rate
            sums[:, STAYED] += stop.rate
            continue
        left = float(sums[:, LEFT].sum())
        others = max(0.0, 1.0 - stop.rate * bins / left) if left > 0 else 1.0
        earlier[:, CLASSES:] *= others
        sums[:, LEFT] *= others
        sums[:, LAG] *= others
