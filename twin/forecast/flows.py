"""Flows of a store: the present regime, futures drawn from it, and how the queues that fill it are read.

- `kernels.regime` finds where the present regime begins. Futures are drawn from its bins, in blocks, so that bursts
  stay bursts. The error of a mean over few bins, and the future drift of the mean, are drawn for each future.
- Queues are read by nobody, by getters that lag behind, or by some that keep up. The queue that grows most decides.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from kernels import futures as kernel
from kernels import regime
from kernels.clock import HALF_HOUR_TICKS, MINUTE_TICKS, TICK
from kernels.layout import NEVER, Store
from kernels.meter_rows import BINS, CLASSES, TOTAL_TIDE
from kernels.meters import EDGES, YOUNG_FOR
from kernels.regime import LAG, LEFT, STAYED
from kernels.watch import QUEUE_SAMPLE_US
from twin.alerts.readers import LONGER_ABSENCE, QueueFact, growth
from twin.forecast import rises
from twin.forecast.fill_model import FillModel, ForecastView
from twin.forecast.rises import Expected, Trust, expected_puts, kept_rows
from twin.state.arrays import Array

PATHS = 64
# Of the time to full: standard deviation of what no meter shows, where it comes sooner than forecast and where later;
# with these a tenth each comes before p10 and after p90 [fitted]
SOONER, LATER = 0.23, 0.19
_SPACED = np.array([NormalDist().inv_cdf((i + 0.5) / PATHS) for i in range(PATHS)])  # normal, evenly spaced
_PACES = np.exp(np.where(_SPACED < 0, SOONER, LATER) * _SPACED)
_MIN_BLOCKS = 6  # that a regime is cut into, on average
_MAX_BLOCK = 30  # bins
_STEPS = ((6, 1), (6, 2), (6, 4), (24, 6))  # (steps, bins of each): the first half hour
_LATER_STEP = 12  # bins of a step after it, at least; with longer ones offload rules would act too late
LONGER = 0.06  # of the bins before a step: how long it is in a forecast, where that is more


@dataclass(frozen=True, slots=True)
class Regime:
    """The bins in which flows have run as they do at present."""

    # f8[n, 3 * CLASSES], messages by class: that stayed or were refused for lack of storage, that left the store
    # itself, that left data sets
    bins: Array
    since: int  # tick of the first bin
    net: float  # elements, pages or blocks that a bin adds on average, unoffloaded
    net_messages: float  # messages that a bin adds on average
    spread: float  # variance of `net` over the bins
    wait: float  # bins from the put to the get of what does not leave soon
    got: float  # share of the messages put that are got, 0..1
    service: float = 0.0  # share of the messages held that is got in a bin; 0: gets do not follow the backlog
    held: float = 0.0  # messages held at its end
    put: float = 0.0  # messages put in a bin on average, those that did not stay included
    lasts: float = np.inf  # bins that flows stay as they are, on average; inf: they have not changed
    # f8[m, 3 * CLASSES], the bins of the rise; None: flows have not changed in it, or the store does not rise
    whole: Array | None = None
    has_stopped: bool = False  # True if a getter has stopped, whose gets are not in the bins


def present(
    store: Store, tick: int, weights: Array, stops: tuple[Stop, ...] = (), not_before: int = 0
) -> Regime | None:
    """Return the regime at a tick; None where it has fewer than `kernels.regime.MIN_BINS` bins. `weights`: f8[CLASSES],
    storage that a message put takes; `stops`: where gets follow the backlog those not measured are left to it.
    """
    flows, totals = np.empty((BINS, 3 * CLASSES)), np.empty((BINS, regime.TOTALS))
    since = int(store.scalars["steady_from"][0])
    n = 0
    if since != NEVER:
        since = max(since, _turned(store, tick), not_before)
        n = regime.read_flows(store.bins, store.counts, since, tick, flows, totals)
    if n < regime.MIN_BINS:
        return None
    flows, totals = flows[:n], totals[:n]
    held = float(store.scalars["messages"][0])
    take_out([stop for stop in stops if stop.is_measured], tick, flows, totals)
    service = _service(totals, held)
    if not service:
        take_out([stop for stop in stops if not stop.is_measured], tick, flows, totals)
    summary = np.empty(1, regime.SUMMARY)
    regime.settle(flows, totals, weights, np.empty((8, n)), np.empty(6), summary)
    start, net, net_messages, spread, wait, got, put, lasts = summary[0].item()
    has_changed = np.isfinite(lasts) and not service and bool(store.tides[TOTAL_TIDE]["rising"])
    return Regime(
        bins=flows[start:],
        since=tick - (n - start),
        net=net,
        net_messages=net_messages,
        spread=spread,
        wait=np.inf if service else wait,
        got=got,
        service=service,
        held=held,
        put=put,
        lasts=lasts,
        whole=flows if has_changed else None,
        has_stopped=bool(stops) and not service,
    )


def is_known(store: Store, tick: int) -> bool:
    """Return True if `present` finds a regime at a tick."""
    since = int(store.scalars["steady_from"][0])
    return since != NEVER and tick - max(since, _turned(store, tick)) >= regime.MIN_BINS


def _service(totals: Array, held: float) -> float:
    """Return what `kernels.regime.service` does."""
    return float(regime.service(totals, held, np.empty((2, regime.SERVICE_BLOCKS))))


def _turned(store: Store, tick: int) -> int:
    """Return the tick at which the store last turned, up or down: no regime spans an emptying."""
    tide = store.tides[TOTAL_TIDE]
    if tide["rising"]:
        return min(int(tide["began"]), tick - MINUTE_TICKS)
    past = kept_rows(store)
    return min(int(past["ended"].max()), tick - MINUTE_TICKS) if past.size else 0


@lru_cache(64)
def steps(horizon: int, fine: int = 0, longer: float = 0.0) -> Array:
    """Return i8[steps], the bins of each step, short ones first: together `horizon` bins or a little more. A step has
    at least the share `longer` of the bins before it: rules act later, and a roll costs less.

    The array is the same at every call: it is not to be changed.
    """
    lengths = [1] * fine
    for count, length in _STEPS:
        lengths += [length] * count
    elapsed = sum(lengths)
    while elapsed < horizon:
        lengths.append(max(_LATER_STEP, int(longer * elapsed)))
        elapsed += lengths[-1]
    return np.array(lengths, np.int64)


@dataclass(frozen=True, slots=True)
class Futures:
    """Flows of every path, as `kernels.forecast.roll` takes them."""

    classes: Array  # i8[c], the length classes that they have: those of which messages come, leave or are held
    cumulated: Array
    bins: int
    trend: Array
    lengths: Array
    starts: Array
    extra: Array
    larger: Array
    block: int
    mix: Array  # f8[c], shares of the puts by class
    pace: Array  # f8[PATHS], factor on a path's time to full, for influences that no meter shows
    second: int = 0  # row of `cumulated` from which on the bins of the whole rise stand; 0: flows have not changed
    others: int = 0  # number of these bins
    expected: Expected | None = None  # the puts that are expected by the middle of each step; None: as many as now


class Flow(NamedTuple):
    """Messages that planned work adds to those that stay, or, with a rate below 0, takes from them."""

    begin: float  # begin, end: ticks from now
    end: float
    rate: float  # messages a tick
    size: int  # length class
    is_sure: bool = False  # True if nothing is expected to end the rise in it, or before it at a rate below 0


def planned_trend(flows: Sequence[Flow], lengths: Array, present: Array) -> tuple[Array, Array]:
    """Return (f8[steps, CLASSES], messages a tick that planned work adds in each step; f8[steps], share that is left).
    `lengths`: i8[steps], ticks; `present`: f8[CLASSES], messages a tick that stay: no more of them can end.
    """
    ends = np.cumsum(lengths)
    added, left, ended = np.zeros((lengths.size, CLASSES)), present.copy(), np.zeros(lengths.size)
    for flow in flows:
        part = np.maximum(0.0, np.minimum(ends, flow.end) - np.maximum(ends - lengths, flow.begin)) / lengths
        if flow.rate >= 0.0:
            added[:, flow.size] += part * flow.rate
            continue
        by_class, rest = np.zeros(CLASSES), min(-flow.rate, float(left.sum()))
        by_class[flow.size] = min(rest, float(left[flow.size]))
        rest, others = rest - by_class[flow.size], left - by_class
        if rest > 0.0:
            by_class += others * (rest / others.sum())
        left = left - by_class
        added -= part[:, None] * by_class
        ended += part * by_class.sum()
    total = float(present.sum())
    return added, np.clip(1.0 - ended / total, 0.0, 1.0) if total > 0.0 else np.ones(lengths.size)


def futures(
    now: Regime,
    fill: FillModel,
    horizon: int,
    seed: int,
    fine: int = 0,
    longer: float = 0.0,
    trusted: tuple[Trust, int] | None = None,
    planned: Sequence[Flow] = (),
) -> Futures:
    """Draw futures of a regime. `longer` as for `steps`; `trusted`: the trust in puts of earlier days, the present
    tick.
    """
    n, lengths, sizes = now.bins.shape[0], steps(horizon, fine, longer), fill.doubts
    some = np.empty(CLASSES, np.int64)
    whole = now.bins[:0] if now.whole is None else now.whole
    some = some[: kernel.find_classes(now.bins if now.whole is None else whole, fill.classes, some)]
    if planned:
        some = np.union1d(some, np.array([flow.size for flow in planned], np.int64))
    lanes = np.concatenate([some, CLASSES + some, 2 * CLASSES + some])
    block = min(max(n // _MIN_BLOCKS, 1), _MAX_BLOCK)
    if now.whole is not None:
        block = max(block, min(_MAX_BLOCK, int(now.lasts), whole.shape[0] // _MIN_BLOCKS))
    overlap = max(block, int(lengths[-1]))  # the longest
    first = n + overlap + 1
    second, others = (0, 0) if now.whole is None else (first, whole.shape[0])
    hours, predicted = None, np.empty((kernel.HOURS, 0))
    if trusted is not None:
        middle = np.cumsum(lengths) - lengths / 2
        hours = expected_puts(*trusted, now.put * HALF_HOUR_TICKS, middle)
        predicted = np.stack([hours.factor, hours.now, hours.persistent, _spread_of_puts(hours, lengths, middle)])
    drawn = kernel.Drawn(
        cumulated=np.empty((first + others + overlap + 1 if second else first, lanes.size)),
        trend=np.empty((lengths.size, lanes.size)),
        starts=np.empty((PATHS, lengths.size), np.int64),
        extra=np.empty((PATHS, lengths.size)),
        larger=np.empty((PATHS, sizes.size)),
        mix=np.empty(some.size),
        pace=np.empty(PATHS),
        doubts=np.empty((PATHS, kernel.DOUBTS + sizes.size)),
        lanes=np.empty((3, lanes.size)),
        errors=np.empty((3, lengths.size)),
    )
    bins, rise = now.bins.take(lanes, axis=1), whole.take(lanes, axis=1)
    present = kernel.Present(bins, now.net, now.spread, now.service, now.held, rise, now.lasts)
    weights = fill.weights.take(some)
    kernel.draw(present, weights, sizes, lengths, predicted, _PACES[:PATHS], np.uint64(seed), second, drawn)
    if planned:
        added, left = planned_trend(planned, lengths, now.bins[:, :CLASSES].mean(axis=0))
        drawn.trend[:, : some.size] += added[:, some]
        drawn.extra[:] *= left
    return Futures(
        classes=some,
        cumulated=drawn.cumulated,
        bins=n,
        trend=drawn.trend,
        lengths=lengths,
        starts=drawn.starts,
        extra=drawn.extra,
        larger=drawn.larger,
        block=block,
        mix=drawn.mix,
        pace=drawn.pace,
        second=second,
        others=others,
        expected=hours,
    )


def _spread_of_puts(hours: Expected, lengths: Array, middle: Array) -> Array:
    """Return f8[steps], the standard deviation of the puts of each step, as a share of the puts at present.

    That of all puts up to a step is what the experts' errors were; a step adds the difference.
    """
    sums = np.cumsum(hours.factor * lengths) - hours.factor * lengths / 2
    return np.asarray(np.gradient(sums * hours.spread, middle))


# --- queues apart: a getter that stops --------------------------------------------------------------------------------

# A getter that stops shows in its own queue long before it shows in the sum of a store's flows. The kernels sample each
# queue every quarter of an hour, and note when a get last removed a message from it. A queue that was got from
# steadily, from which nothing is got any more while messages pile up, has a getter that stopped. Its gets are removed
# from the bins of the present regime before that moment, which are then as they would have been without that getter.
# All other flows stay a sum.


MARK_TICKS = QUEUE_SAMPLE_US // TICK  # between two samples of a queue
MOST_STOPS = 4  # remembered of a store: those of the queues that were got from most
_SILENT_TICKS = 3 * MINUTE_TICKS  # least time without a get [assumed]
_MIN_SPAN = 5 * MINUTE_TICKS  # of the gets before it, from which their rate is taken [assumed]
_MIN_MISSED = 20.0  # gets that should have come: by chance none comes once in e to this power
_MIN_PILED = 0.5  # share of the gets missed by which the queue has become deeper [assumed]
_MIN_DEEPER = 3  # times as deep as at its samples: a getter that works in bursts leaves as much between them [assumed]


class Stop(msgspec.Struct, frozen=True):
    """A getter that stopped."""

    queue: int  # row of the queue
    got_at: int  # tick of the last get
    rate: float  # messages a tick that were got before
    size: int  # length class of the queue's messages
    soon: bool  # True if messages were got within `YOUNG_FOR` of their put
    is_measured: bool = False  # True if no handle was open for input; False: inferred from the flows


def note_stops(store: Store, tick: int, known: tuple[Stop, ...], unread: Collection[int] = ()) -> tuple[Stop, ...]:
    """Return the getters that stopped, at most `MOST_STOPS`, those of the highest rate, by row of their queues. `known`
    ones stay until there is a get, or until no bin is that old.
    """
    queues = store.queues[: int(store.params["queues"][0])]
    stops = {stop.queue: stop for stop in known if _still_lasts(stop, queues, tick, unread)}
    mark = tick // MARK_TICKS * MARK_TICKS
    sampled_from = mark - MARK_TICKS  # of `gets_before`
    for row in unread:
        if row in stops:
            stops[row] = replace(stops[row], is_measured=True)
        elif queues["got_at"][row] >= sampled_from + _MIN_SPAN and queues["depth"][row] > 0:
            stops[row] = replace(_stop_at(queues[row], row, mark), is_measured=True)
    silent = (queues["got_at"] <= tick - _SILENT_TICKS) & (queues["got_at"] >= sampled_from + _MIN_SPAN)
    if int(store.scalars["steady_from"][0]) <= sampled_from:
        for row in silent.nonzero()[0].tolist():
            stop = None if row in stops else _stop_of(queues[row], row, tick, mark)
            if stop is not None:
                stops[row] = stop
    first = sorted(stops.values(), key=lambda stop: (-stop.rate, stop.queue))[:MOST_STOPS]
    return tuple(sorted(first, key=lambda stop: stop.queue))


def _still_lasts(stop: Stop, queues: Array, tick: int, unread: Collection[int]) -> bool:
    if stop.is_measured and stop.queue not in unread:
        return False
    return stop.queue < queues.size and int(queues["got_at"][stop.queue]) == stop.got_at > tick - BINS


def _stop_of(queue: Array, row: int, tick: int, mark: int) -> Stop | None:
    """Return the stop of the getter of a queue from which nothing has been got for a while; None: it may be a pause."""
    got_at, depth, before = int(queue["got_at"]), int(queue["depth"]), int(queue["depth_before"])
    if got_at == NEVER or depth <= 0:
        return None
    usual = max(before, int(queue["depth_then"])) if got_at >= mark else before
    stop = _stop_at(queue, row, mark)
    missed = stop.rate * (tick - got_at)
    if missed < _MIN_MISSED or depth - usual < _MIN_PILED * missed or depth < _MIN_DEEPER * usual:
        return None
    return stop


def _stop_at(queue: Array, row: int, mark: int) -> Stop:
    """Return the stop of the getter of a queue that holds messages, as of its last get. Arguments of `_stop_of`."""
    got_at, before = int(queue["got_at"]), int(queue["depth_before"])
    usual = max(before, int(queue["depth_then"])) if got_at >= mark else before
    rate = float(queue["gets"] - queue["gets_before"]) / (got_at - mark + MARK_TICKS)
    size = min(bisect_left(EDGES, int(queue["bytes"]) // int(queue["depth"]), lo=1) - 1, CLASSES - 1)
    return Stop(row, got_at, rate, size, soon=usual < rate * YOUNG_FOR)


def take_out(stops: Sequence[Stop], tick: int, flows: Array, totals: Array) -> None:
    """Remove the gets of stopped getters from earlier bins, f8[n, 3 * CLASSES] (`kernels.regime.read_flows`)."""
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


# --- how the queues that fill a store are read ------------------------------------------------------------------------
# A store that is emptied almost as fast as it is filled seldom becomes full; one from which nothing is got does. How
# earlier rises ended says nothing about a queue that no application has open for input, except where it is read on a
# timetable: then its getters come back as they did before, until they are away for longer than usual.

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
    return lasted.size >= _TIMETABLE and rise.age <= LONGER_ABSENCE * float(lasted[-_TIMETABLE])


def _in_bytes(rows: Array, grown: Array) -> Array:
    """Return f8[n], growth in messages by queue as bytes, by the mean length of each queue's messages."""
    return np.asarray(grown * rows["bytes"] / np.maximum(rows["depth"], 1))
