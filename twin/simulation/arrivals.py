"""Arrivals: demands on queues at random event times.

A `Flow` is the calls of a queue manager on a queue: a mean rate over time and the properties of the calls. Counts are
overdispersed as in real traffic: within each slice of 10 seconds they are a Poisson process whose mean is drawn from a
gamma distribution. Units of work put several calls close together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT, FLAG_DIRECT, FLAG_HAS_UOW, FLAG_PERSISTENT
from kernels.layout import BACKOUT, COMMIT, GET, PUT

Array = npt.NDArray[Any]
Curve = Callable[[Array], Array]
"""Quantity over time: maps seconds since the start, f8[n], to f8[n]."""

SLICE = 10.0  # seconds for which a rate is constant
CHUNK = 1 << 16  # approximate number of calls that are drawn at a time
_SECOND = 1_000_000  # microseconds
_UNIT_STEP = 0.002  # mean seconds between two calls of a unit of work
_DRIFT_SECONDS = 600.0  # for the drift of a rate from one level to another


def constant(value: float) -> Curve:
    """Return a constant curve."""
    return lambda seconds: np.full(seconds.shape, float(value))


def between(begin: float, end: float, inside: float, outside: float) -> Curve:
    """Return a curve that is `inside` from `begin` to before `end` (seconds), else `outside`."""
    return lambda seconds: np.where((seconds >= begin) & (seconds < end), inside, outside)


def rising(value: float, seconds: float) -> Curve:
    """Return a curve that rises from 0 to a value within `seconds` and is constant from then on."""
    return (lambda times: value * np.minimum(1.0, times / seconds)) if seconds else constant(value)


def steps(begins: Array, values: Array) -> Curve:
    """Return a step function. begins: f8[n], seconds, ascending from 0; values: f8[n], from each begin on."""
    return lambda seconds: values[np.maximum(np.searchsorted(begins, seconds, side="right") - 1, 0)]


_USUAL_LENGTH = constant(4_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Properties of calls. Shares are of 1.

    Attributes:
        length: mean bytes of a message over time; the lengths are lognormal.
        spread: standard deviation of the logarithm of the lengths.
        shortest, longest: bytes at which lengths are cut.
        noise: coefficient of variation of the rate between slices of ten seconds; 0: a Poisson process.
        wander: coefficient of variation of the drift of the rate over tens of minutes.
        unit_share: share of the arrivals that are units of work.
        unit_calls: mean calls of a unit of work.
        backout_share: share of the units of work that end in BACKOUT.
        persistent: share of the messages.
        direct: share of the messages that are handed to a waiting getter.
        priorities: pairs of a priority and its share.
    """

    length: Curve = _USUAL_LENGTH
    spread: float = 1.0
    shortest: int = 64
    longest: int = 1_000_000
    noise: float = 0.3
    wander: float = 0.0
    unit_share: float = 0.1
    unit_calls: float = 4.0
    backout_share: float = 0.01
    persistent: float = 0.6
    direct: float = 0.0
    priorities: tuple[tuple[int, float], ...] = ((0, 0.7), (4, 0.25), (9, 0.05))


@dataclass(frozen=True, slots=True, kw_only=True)
class LongUnit:
    """Long unit of work, which ends at `until` (seconds) by COMMIT or BACKOUT."""

    until: float
    ended_by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Calls of a queue manager on a queue.

    A get that finds no message is not an event, so the rate of GETs is the capacity of the getter.

    Attributes:
        route: the queue manager and the queue, by their place among the routes of the estate.
        op: PUT or GET, as in `kernels.layout`.
        rate: PUTs or attempted GETs per second, over seconds since the beginning.
        traffic: properties of the calls.
        got_by: route that gets every message put here, without units of work; None: no such getter.
        got_after: seconds from put to that get.
        got_at_random: True: `got_after` is the mean of an exponential distribution.
        handles: open on the queue over time; None: one while the rate is above 0.
        unit: the one unit of work that all calls are in; None: units as in `traffic`.
    """

    route: int
    op: int
    rate: Curve
    traffic: Traffic = Traffic()
    got_by: int | None = None
    got_after: float = 0.0
    got_at_random: bool = False
    handles: Curve | None = None
    unit: LongUnit | None = None


def draw_lengths(traffic: Traffic, seconds: Array, rng: np.random.Generator) -> Array:
    """Draw the lengths of messages put at some times, i8[n], bytes."""
    middle = np.log(traffic.length(seconds)) - traffic.spread**2 / 2  # the mean of a lognormal is above its median
    lengths = np.exp(middle + traffic.spread * rng.standard_normal(seconds.size))
    return np.clip(lengths, traffic.shortest, traffic.longest).astype(np.int64)


def draw_priorities(traffic: Traffic, count: int, rng: np.random.Generator) -> Array:
    """Draw the priorities of messages, u1[n]."""
    levels, shares = zip(*traffic.priorities, strict=True)
    return np.array(levels, np.uint8)[np.searchsorted(np.cumsum(shares)[:-1], rng.random(count), side="right")]


def demands(
    flows: Sequence[Flow], start: int, seconds: float, rng: np.random.Generator, chunk: int = CHUNK
) -> Iterator[Array]:
    """Yield the demands of all flows in order of time, EVENT[n] each.

    The events have no seq and no message id; `uow` numbers the units of work from 1. The last unit of work may end
    shortly after the end.
    """
    arrivals = _Arrivals(flows, start, seconds, rng)
    edges = np.arange(0.0, seconds, SLICE)
    expected = np.zeros(edges.size)
    for flow in flows:
        expected += np.maximum(flow.rate(edges + SLICE / 2), 0) * SLICE
    windows = np.floor(np.cumsum(expected) / chunk)
    begins = [0, *(np.flatnonzero(np.diff(windows)) + 1).tolist(), edges.size]
    for begin, end in pairwise(begins):
        arrivals.draw(edges[begin:end], min(float(edges[end - 1]) + SLICE, seconds))
        yield arrivals.before(float(edges[end]) if end < edges.size else seconds)
    yield arrivals.rest()


class _Arrivals:
    """Arrivals that were drawn and not yet yielded, as arrays sorted by time."""

    def __init__(self, flows: Sequence[Flow], start: int, seconds: float, rng: np.random.Generator) -> None:
        self._flows = flows
        self._start = start
        self._rngs = rng.spawn(len(flows))
        self._waiting: list[Array] = []
        self._drifts = [
            _drift(flow.traffic.wander, seconds, flow_rng) for flow, flow_rng in zip(flows, self._rngs, strict=True)
        ]
        long_flows = [flow for flow in flows if flow.unit is not None]
        self._unit_of = {id(flow): number for number, flow in enumerate(long_flows, 1)}
        self._units = len(long_flows)

    def draw(self, edges: Array, end: float) -> None:
        """Draw the arrivals of all flows in some slices, f8[n], none at `end` or later."""
        for flow, rng, drift in zip(self._flows, self._rngs, self._drifts, strict=True):
            calls = self._draw_flow(flow, edges, end, rng, drift)
            if flow.unit is not None:
                calls = self._in_one_unit(flow, flow.unit, calls, edges)
            if calls.size:
                self._waiting.append(calls[np.argsort(calls["time"], kind="stable")])
            if calls.size and flow.got_by is not None:
                self._waiting.append(_followers(flow, self._waiting[-1], rng))

    def before(self, end: float) -> Array:
        """Remove and return the arrivals before `end`, seconds since the start, in order."""
        limit = self._start + round(end * _SECOND)
        pieces: list[Array] = []
        left: list[Array] = []
        for calls in self._waiting:
            cut = int(np.searchsorted(calls["time"], limit))
            pieces.append(calls[:cut])
            if cut < calls.size:
                left.append(calls[cut:])
        self._waiting = left
        return _merge(pieces)

    def rest(self) -> Array:
        """Remove and return the rest of units of work; gets that would follow a put after the end are dropped."""
        left = [calls[calls["uow"] != 0] for calls in self._waiting]
        self._waiting = []
        return _merge(left)

    def _draw_flow(self, flow: Flow, edges: Array, end: float, rng: np.random.Generator, drift: Curve) -> Array:
        traffic = flow.traffic
        unit_share = 0.0 if flow.got_by is not None or flow.unit is not None else traffic.unit_share
        calls_each = 1 + unit_share * (traffic.unit_calls - 1)
        means = np.maximum(flow.rate(edges + SLICE / 2), 0) * drift(edges) * (SLICE / calls_each)
        if traffic.noise:
            means = means * rng.gamma(traffic.noise**-2, traffic.noise**2, edges.size)
        counts = rng.poisson(means)
        times = np.repeat(edges, counts) + rng.random(int(counts.sum())) * SLICE
        times = times[times < end]
        in_unit = rng.random(times.size) < unit_share
        sizes = np.ones(times.size, np.int64)
        sizes[in_unit] += rng.poisson(traffic.unit_calls - 1, int(in_unit.sum()))
        units = np.zeros(times.size, np.int64)
        units[in_unit] = self._units + 1 + np.arange(int(in_unit.sum()))
        self._units += int(in_unit.sum())
        steps = 0.0002 + rng.exponential(_UNIT_STEP, times.size)
        owner = np.repeat(np.arange(times.size), sizes)
        place = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        calls = self._events(flow, times[owner] + place * steps[owner], units[owner])
        if flow.op == PUT:
            calls["length"] = draw_lengths(traffic, times[owner], rng)
            calls["priority"] = draw_priorities(traffic, owner.size, rng)
            calls["flags"] |= (rng.random(owner.size) < traffic.persistent).astype(np.uint8) * np.uint8(FLAG_PERSISTENT)
            if traffic.direct:
                calls["flags"] |= (rng.random(owner.size) < traffic.direct).astype(np.uint8) * np.uint8(FLAG_DIRECT)
        ends = self._events(flow, (times + sizes * steps)[in_unit], units[in_unit])
        ends["op"] = np.where(rng.random(ends.size) < traffic.backout_share, BACKOUT, COMMIT)
        return np.concatenate([calls, ends])

    def _in_one_unit(self, flow: Flow, unit: LongUnit, calls: Array, edges: Array) -> Array:
        calls = calls[calls["time"] < self._start + round(unit.until * _SECOND)]
        calls["uow"] = self._unit_of[id(flow)]
        calls["flags"] |= np.uint8(FLAG_HAS_UOW)
        if not edges[0] <= unit.until < edges[-1] + SLICE:
            return calls
        end = self._events(flow, np.array([unit.until]), np.array([self._unit_of[id(flow)]]))
        end["op"] = unit.ended_by
        return np.concatenate([calls, end])

    def _events(self, flow: Flow, seconds: Array, units: Array) -> Array:
        events = np.zeros(seconds.size, EVENT)
        events["time"] = self._start + (seconds * _SECOND).astype(np.int64)
        events["op"], events["route"], events["count"], events["seq"] = flow.op, flow.route, 1, -1
        events["uow"] = units
        events["flags"] = (units != 0).astype(np.uint8) * np.uint8(FLAG_HAS_UOW)
        return events


def _followers(flow: Flow, puts: Array, rng: np.random.Generator) -> Array:
    gets = np.zeros(puts.size, EVENT)
    gets["time"] = puts["time"] + round(flow.got_after * _SECOND)
    if flow.got_at_random:
        after = rng.exponential(flow.got_after * _SECOND, puts.size)
        gets["time"] = np.sort(puts["time"] + after.astype(np.int64))
    gets["op"], gets["route"], gets["count"], gets["seq"] = GET, flow.got_by, 1, -1
    return gets


def _drift(wander: float, seconds: float, rng: np.random.Generator) -> Curve:
    """Return a factor that drifts slowly around 1."""
    if not wander:
        return constant(1.0)
    knots = np.arange(0.0, seconds + 2 * _DRIFT_SECONDS, _DRIFT_SECONDS)
    levels = rng.standard_normal(knots.size)
    return lambda times: np.exp(wander * np.interp(times, knots, levels) - wander**2 / 2)


def _merge(pieces: Sequence[Array]) -> Array:
    if not pieces:
        return np.zeros(0, EVENT)
    merged = np.concatenate(pieces)
    return merged[np.argsort(merged["time"], kind="stable")]
