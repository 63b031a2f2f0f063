"""The oracle: what can be known of a case by one who knows its story, but no random number of the future.

It knows the scenario, its parameters and what the store holds now. It knows neither the noise of the calls nor which
climb, break or night does not end (the parameters that are numbers of an event), nor any other draw of `Site.chance`.
Its futures are drawn from the generator's own law: the story is drawn again some times, as flows without noise, and of
these siblings those continue that were most like the store up to now, at about the same time. They reach as far as the
twin's forecasts. The alert rule is the twin's own, asked at every sample. The futures are of the bytes of all messages,
which are full at what the store held at its first 2192, or at what fits. A case that flows do not describe well,
because its danger is another than the backlog, has no oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from kernels.clock import SECOND
from kernels.layout import BACKOUT, PUT
from tests.tools.score.cases import Case
from tests.tools.score.truth import Filling
from twin.estate import MessageStoreConfig
from twin.forecast import rule
from twin.playback.pages import Alarm, from_condition
from twin.playback.samples import STEP
from twin.playback.timeline import Series
from twin.simulation.arrivals import Array, Flow
from twin.simulation.scenario import HOUR, Scenario, StoreScenario
from twin.simulation.site import Site

ORACLE, ORACLE_WATCH = "oracle", "oracle, watch"
_SIBLINGS = 128
_ALIKE = 32  # of the siblings' moments, whose continuations are the futures
_NEAR = 20 * 60 * SECOND // STEP  # samples by which the moments may differ in time
_LAGS = np.array([0, 2, 6, 16, 40, 120])  # samples back at which what is held is compared
_MINUTE = 60 * SECOND // STEP  # samples
_LEAST = 0.2  # of what fits: below it nothing is looked for
_FULL = 0.995  # of what fits
_MAX_MISFIT = 0.08  # of what fits: median difference of the flows to what was measured
_RECENT = 60 * 60 * SECOND // STEP  # samples of a rise
_COARSE = 4  # samples between the moments of a future that are looked at after _RECENT


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Alarms of the oracle for the store of a case."""

    pages: list[Alarm]
    watches: list[Alarm]


def foresee(case: Case, series: Series, fillings: Sequence[Filling]) -> Foreseen | None:
    """Return the alarms of the oracle; None: its flows do not describe the case.

    Args:
        case: the case.
        series: its store over time.
        fillings: fillings of the store, for what it holds when it is full.
    """
    site, described = rated(case)
    seconds = (series.times - described.start) / SECOND
    full = _full(described, site, series, fillings)
    held = series.size / full
    if float(np.median(np.abs(_backlogs([described], case, seconds, full)[0] - held))) > _MAX_MISFIT:
        return None
    rng = np.random.default_rng((0x04AC1E, case.seed))
    siblings = _backlogs([_drawn_again(described, rng) for _ in range(_SIBLINGS)], case, seconds, full, rng)
    return _alarms(held, siblings, series, case)


def rated(case: Case) -> tuple[Site, StoreScenario]:
    """Return the site of a case, and its scenario with the rate that it is played at."""
    scenario = case.scenario
    assert isinstance(scenario, StoreScenario)
    trial, _, chance = np.random.default_rng(case.seed).spawn(3)
    site = Site.find(case.estate, scenario.store, scenario.queue, chance, scenario.plays_on)
    return site, replace(scenario, rate=scenario.default_rate(site, trial) if scenario.rate is None else scenario.rate)


def event_numbers(scenario: Scenario) -> dict[str, Sequence[tuple[float, float]]]:
    """Return the ranges of the parameters that are numbers of an event, such as of a climb that continues; 0: none."""
    ranges = {parameter.name: parameter.metadata.get("drawn", ()) for parameter in fields(scenario)}
    return {
        name: spans
        for name, spans in ranges.items()
        if len(spans) > 1 and all(isinstance(end, int) for span in spans for end in span)
    }


def _full(scenario: StoreScenario, site: Site, series: Series, fillings: Sequence[Filling]) -> float:
    """Return the bytes of the messages that a store holds when it is full."""
    if fillings:
        firsts = [filling.first for filling in fillings]
        samples = np.searchsorted(series.times, firsts, side="right") - 1
        return float(max(1, series.size[np.maximum(samples, 0)].min()))
    end = scenario.hours * HOUR
    traffic = scenario.traffic
    fits = site.capacity(traffic, np.random.default_rng(0), time=end).messages
    return fits * float(traffic.length(np.array([end]))[0])


def _drawn_again(scenario: StoreScenario, rng: np.random.Generator) -> StoreScenario:
    """Return a scenario with its numbers of events drawn again."""
    drawn: dict[str, Any] = {}
    for name, spans in event_numbers(scenario).items():
        low, high = spans[int(rng.integers(len(spans)))]
        drawn[name] = int(rng.integers(int(low), int(high) + 1))
    return replace(scenario, **drawn)


def _backlogs(
    scenarios: Sequence[Scenario], case: Case, seconds: Array, full: float, rng: np.random.Generator | None = None
) -> Array:
    """Return f8[scenarios, n], the share of `full` that the store of a case holds at some times.

    Args:
        scenarios: the case's, or siblings of it.
        case: the case.
        seconds: f8[n], since the start, STEP apart.
        full: bytes held when it is full.
        rng: draws the chance of each; None: as in the case.
    """
    stays = np.zeros((len(scenarios), seconds.size))
    waits: dict[str, Array] = {}  # by queue: f8[scenarios, n], bytes that come or go in a step
    for row, scenario in enumerate(scenarios):
        chance = np.random.default_rng(case.seed) if rng is None else rng.spawn(1)[0]
        _, flows = scenario.cast(case.estate, chance)
        lengths: dict[str, Array] = {}
        for flow in sorted(flows, key=lambda flow: flow.op != PUT):
            route = case.estate.routes[flow.route]
            if route.store != case.store:
                continue
            calls = np.maximum(flow.rate(seconds), 0.0) * (STEP / SECOND)
            length = flow.traffic.length(seconds)
            if flow.got_by is not None:
                stays[row] += _held_of(calls * length, flow, STEP / SECOND)
            elif flow.unit is not None:
                is_held = (seconds < flow.unit.until) | (flow.unit.ended_by != BACKOUT)
                stays[row] += np.where(is_held, np.cumsum(calls * length), 0.0)
            else:
                queue = route.queue or ""
                mean = lengths.setdefault(queue, length)
                waits.setdefault(queue, np.zeros_like(stays))[row] += calls * (mean if flow.op == PUT else -mean)
    total = stays / full
    for net in waits.values():
        total += _between_bounds(net / full)
    return np.minimum(total, 1.0)


def _between_bounds(net: Array) -> Array:
    """Return f8[n, m], what a queue holds that gets `net` in each step: never below 0, never above 1."""
    level, held = np.zeros(net.shape[0]), np.empty_like(net)
    for step in range(net.shape[1]):
        level = np.minimum(np.maximum(level + net[:, step], 0.0), 1.0)
        held[:, step] = level
    return held


def _held_of(put: Array, flow: Flow, step: float) -> Array:
    """Return f8[n], what is held of puts that are each got a while later. put: f8[n], bytes in each step."""
    if not flow.got_at_random:
        came = np.cumsum(put)
        ago = round(flow.got_after / step)
        left = np.concatenate([np.zeros(min(ago, put.size)), came[: max(0, put.size - ago)]])
        return np.asarray(came - left)
    stays = np.exp(-step / flow.got_after * np.arange(min(put.size, int(12 * flow.got_after / step) + 1)))
    size = 1 << int(np.ceil(np.log2(put.size + stays.size)))
    held: Array = np.fft.irfft(np.fft.rfft(put, size) * np.fft.rfft(stays, size), size)[: put.size]
    return held


def _alarms(held: Array, siblings: Array, series: Series, case: Case) -> Foreseen:
    """Return the alarms: the twin's rule of watch and page, asked at every sample."""
    config = case.estate.stores[case.store]
    assert isinstance(config, MessageStoreConfig)
    horizon = int(config.forecast_horizon_s * SECOND) // STEP
    ahead = np.concatenate([np.arange(_RECENT + 1), np.arange(_RECENT + _COARSE, horizon + 1, _COARSE)])
    marks = siblings[:, np.maximum(np.arange(siblings.shape[1])[:, None] - _LAGS, 0)]
    pages, watches = np.zeros(held.size, bool), np.zeros(held.size, bool)
    danger_since = calm_since = None
    watched = paged = False
    for now in range(held.size):
        time = int(series.times[now])
        probability, soon, times = _NOTHING_FILLS
        if held[now] >= _LEAST:
            rows, columns = _most_alike(held, marks, now)
            probability, soon, times = _futures(held[now], siblings, rows, columns, ahead)
        if times is not None and rule.is_danger(probability, soon, times, config):
            danger_since = time if danger_since is None else danger_since
            watched = watched or (time - danger_since) / SECOND >= rule.hold_s(times)
            danger = rule.Danger(probability, times, turned_before=True)
            paged = paged or (watched and rule.is_worth_a_page(danger, config))
        else:
            danger_since = None
        if rule.is_calm(probability, times, config) and not _is_refused(series, time):
            calm_since = time if calm_since is None else calm_since
            if (time - calm_since) / SECOND >= rule.CALM_S:
                watched = paged = False
        else:
            calm_since = None
        watches[now], pages[now] = watched, paged
    return Foreseen(from_condition(series.times, pages), from_condition(series.times, watches))


def _is_refused(series: Series, time: int) -> bool:
    """Return True if a put got 2192 within the time after which a danger is over."""
    first, last = np.searchsorted(series.refused, [time - int(rule.CALM_S) * SECOND, time]).tolist()
    return bool(first < last)


def _most_alike(held: Array, marks: Array, now: int) -> tuple[Array, Array]:
    """Return (siblings, samples) of the moments that are most like the present. marks: f8[siblings, n, lags]."""
    first, last = max(0, now - _NEAR), min(held.size, now + _NEAR + 1)
    mark = held[np.maximum(now - _LAGS, 0)]
    apart = ((marks[:, first:last:_MINUTE] - mark) ** 2).sum(axis=2)
    order = np.argpartition(apart.ravel(), _ALIKE)[:_ALIKE]
    rows, columns = np.unravel_index(order, apart.shape)
    return rows, first + columns * _MINUTE


class _Futures(NamedTuple):
    """Probability of full, and within `rule.SOON_S`; seconds until it."""

    probability: float
    soon: float
    times: tuple[float, float, float] | None


_NOTHING_FILLS = _Futures(0.0, 0.0, None)


def _futures(level: float, siblings: Array, rows: Array, columns: Array, ahead: Array) -> _Futures:
    """Return the futures that followed the moments most like the present.

    Args:
        level: what the store holds.
        siblings: f8[siblings, n], what they hold.
        rows: i8[alike], siblings of the moments most like the present.
        columns: i8[alike], samples of these moments.
        ahead: i8[m], samples ahead that are looked at, the first hour each.
    """
    moments = np.minimum(columns[:, None] + ahead, siblings.shape[1] - 1)
    paths = level + siblings[rows[:, None], moments] - siblings[rows, columns][:, None]
    is_full = paths >= _FULL
    fills = is_full.any(axis=1)
    if not fills.any():
        return _NOTHING_FILLS
    full_at = ahead[np.argmax(is_full[fills], axis=1)] * (STEP / SECOND)
    p10, p50, p90 = np.quantile(full_at, [0.1, 0.5, 0.9]).tolist()
    soon = float((full_at <= rule.SOON_S).sum()) / fills.size
    return _Futures(float(fills.mean()), soon, (p10, p50, p90))
