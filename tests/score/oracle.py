"""The oracle: what can be known of a case by one who knows its story, but no random number of the future.

It knows the scenario, its parameters and what the store holds now. It knows neither the noise of the calls nor which
climb, break or night goes on (the parameters that are numbers of an event), nor any other draw of `Site.chance`. Its
futures are drawn from the generator's own law: the story is drawn again some times, as flows without noise, and of
these siblings those continue that were most like the store up to now, at about the same time. The alert rule is the
twin's own, asked every minute.

The futures are of the bytes of all messages, which are full at what the store held at its first 2192, or at what fits.
A case that flows do not describe well, because its danger is another than the backlog, has no oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from kernels.clock import SECOND
from kernels.layout import BACKOUT, PUT
from twin.course import STEP
from twin.forecast import rule
from twin.scoring.alarms import Alarm, from_condition
from twin.scoring.series import Series
from twin.scoring.truth import Filling
from twin.simulation.arrivals import Array, Flow
from twin.simulation.cases import Case
from twin.simulation.scenario import HOUR, Scenario, StoreScenario
from twin.simulation.site import Site

ORACLE, ORACLE_WATCH = "oracle", "oracle, watch"
_SIBLINGS = 128
_ALIKE = 32  # of the siblings' moments, whose continuations are the futures
_NEAR = 20 * 60 * SECOND // STEP  # samples by which the moments may differ in time
_LAGS = np.array([0, 2, 6, 16, 40, 120])  # samples back at which what is held is compared
_EACH = 60 * SECOND // STEP  # samples from look to look
_LEAST = 0.2  # of what fits: below it nothing is looked for
_MAX_MISFIT = 0.08  # of what fits: median difference of the flows to what was measured
_RECENT = 60 * 60 * SECOND // STEP  # samples of a rise


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
        fillings: of the store, for what it holds when it is full.
    """
    scenario = case.scenario
    assert isinstance(scenario, StoreScenario)
    trial, _, chance = np.random.default_rng(case.seed).spawn(3)
    site = Site.find(case.estate, scenario.store, scenario.queue, chance, scenario.plays_on)
    rate = scenario.default_rate(site, trial) if scenario.rate is None else scenario.rate
    told = replace(scenario, rate=rate)
    seconds = (series.times - scenario.start) / SECOND
    full = _full(told, site, series, fillings)
    held = series.size / full
    if float(np.median(np.abs(_backlogs([told], case, seconds)[0] / full - held))) > _MAX_MISFIT:
        return None
    rng = np.random.default_rng((0x04AC1E, case.seed))
    siblings = _backlogs([_drawn_again(told, rng) for _ in range(_SIBLINGS)], case, seconds, rng) / full
    return _alarms(held, siblings, series, case)


def _full(scenario: StoreScenario, site: Site, series: Series, fillings: Sequence[Filling]) -> float:
    """Return the bytes of the messages that a store holds when it is full."""
    if fillings:
        sample = int(np.searchsorted(series.times, fillings[0].first, side="right")) - 1
        return float(max(1, series.size[max(0, sample)]))
    end = scenario.hours * HOUR
    traffic = scenario.traffic
    fits = site.capacity(traffic, np.random.default_rng(0), time=end).messages
    return fits * float(traffic.length(np.array([end]))[0])


def _drawn_again(scenario: StoreScenario, rng: np.random.Generator) -> StoreScenario:
    """Return a scenario with the numbers of its events, such as the climb that goes on, drawn again."""
    drawn = {}
    for parameter in fields(scenario):
        ranges = parameter.metadata.get("drawn", ())
        if len(ranges) > 1 and all(isinstance(end, int) for span in ranges for end in span):
            low, high = ranges[int(rng.integers(len(ranges)))]
            drawn[parameter.name] = int(rng.integers(low, high + 1))
    return replace(scenario, **drawn)


def _backlogs(
    scenarios: Sequence[Scenario], case: Case, seconds: Array, rng: np.random.Generator | None = None
) -> Array:
    """Return f8[scenarios, n], bytes held by the store of a case at some times, seconds since the start.

    Args:
        scenarios: the case's, or siblings of it.
        case: the case.
        seconds: f8[n], STEP apart.
        rng: draws the chance of each; None: as in the case.
    """
    rows = []
    for scenario in scenarios:
        chance = np.random.default_rng(case.seed) if rng is None else rng.spawn(1)[0]
        _, flows = scenario.cast(case.estate, chance)
        rows.append(_backlog([flow for flow in flows if _store(case, flow) == case.store], case, seconds))
    return np.array(rows)


def _store(case: Case, flow: Flow) -> str:
    return case.estate.routes[flow.route].store


def _backlog(flows: Sequence[Flow], case: Case, seconds: Array) -> Array:
    """Return f8[n], the bytes that the queues of some flows hold: what was put less what was got, never below 0."""
    step = STEP / SECOND
    total = np.zeros(seconds.size)
    waiting: dict[str, tuple[Array, Array]] = {}  # by queue: messages that come and go in a step, mean length
    for flow in flows:
        calls = np.maximum(flow.rate(seconds), 0.0) * step
        length = flow.traffic.length(seconds)
        if flow.got_by is not None:
            total += _kept(calls * length, flow, step)
        elif flow.unit is not None:
            put = np.cumsum(calls * length)
            total += np.where((seconds < flow.unit.until) | (flow.unit.ended_by != BACKOUT), put, 0.0)
        else:
            queue = case.estate.routes[flow.route].queue or ""
            net, mean = waiting.get(queue, (np.zeros(seconds.size), length))
            is_put = flow.op == PUT
            waiting[queue] = (net + (calls if is_put else -calls), length if is_put else mean)
    for net, length in waiting.values():
        level = np.cumsum(net)
        total += (level - np.minimum(np.minimum.accumulate(level), 0.0)) * length
    return total


def _kept(put: Array, flow: Flow, step: float) -> Array:
    """Return f8[n], what is held of puts that are each got a while later. put: f8[n], bytes in each step."""
    if not flow.got_at_random:
        came = np.cumsum(put)
        ago = round(flow.got_after / step)
        return came - np.concatenate([np.zeros(min(ago, put.size)), came[: max(0, put.size - ago)]])
    stays = np.exp(-step / flow.got_after * np.arange(min(put.size, int(12 * flow.got_after / step) + 1)))
    size = 1 << int(np.ceil(np.log2(put.size + stays.size)))
    return np.fft.irfft(np.fft.rfft(put, size) * np.fft.rfft(stays, size), size)[: put.size]


def _alarms(held: Array, siblings: Array, series: Series, case: Case) -> Foreseen:
    """Return the alarms: the twin's rule of watch and page, asked every minute."""
    config = case.estate.stores[case.store]
    horizon = int(config.forecast_horizon_s * SECOND // STEP)
    marks = siblings[:, np.maximum(np.arange(siblings.shape[1])[:, None] - _LAGS, 0)]
    pages, watches = np.zeros(held.size, bool), np.zeros(held.size, bool)
    danger_since = calm_since = None
    watched = paged = False
    for now in range(0, held.size, _EACH):
        time = int(series.times[now])
        probability, times, ends_soon = 0.0, None, 0.0
        if held[now] >= _LEAST:
            rows, columns = _most_alike(held, marks, now)
            probability, times, ends_soon = _futures(held[now], siblings, rows, columns, horizon)
        if times is not None and rule.is_danger(probability, times, config):
            danger_since = time if danger_since is None else danger_since
            watched = watched or (time - danger_since) / SECOND >= rule.hold_s(times)
            paged = paged or (
                watched and rule.is_worth_a_page(probability, times[0], ends_soon, config.forecast_miss_cost)
            )
        else:
            danger_since = None
        if rule.is_calm(probability, times, config) and not _is_refused(series, time):
            calm_since = time if calm_since is None else calm_since
            if (time - calm_since) / SECOND >= rule.CALM_S:
                watched = paged = False
        else:
            calm_since = None
        watches[now : now + _EACH], pages[now : now + _EACH] = watched, paged
    return Foreseen(from_condition(series.times, pages), from_condition(series.times, watches))


def _is_refused(series: Series, time: int) -> bool:
    """Return True if a put got 2192 within the time after which a danger is over."""
    first, last = np.searchsorted(series.refused, [time - int(rule.CALM_S) * SECOND, time]).tolist()
    return bool(first < last)


def _most_alike(held: Array, marks: Array, now: int) -> tuple[Array, Array]:
    """Return (siblings, samples) of the moments that are most like the present. marks: f8[siblings, n, lags]."""
    first, last = max(0, now - _NEAR), min(held.size, now + _NEAR + 1)
    mark = held[np.maximum(now - _LAGS, 0)]
    apart = ((marks[:, first:last:_EACH] - mark) ** 2).sum(axis=2)
    order = np.argpartition(apart.ravel(), _ALIKE)[:_ALIKE]
    rows, columns = np.unravel_index(order, apart.shape)
    return rows, first + columns * _EACH


def _futures(
    level: float, siblings: Array, rows: Array, columns: Array, horizon: int
) -> tuple[float, tuple[float, float, float] | None, float]:
    """Return (probability of full, seconds until full as p10, p50, p90, probability that the rise ends in a minute)."""
    ahead = np.minimum(columns[:, None] + np.arange(horizon + 1), siblings.shape[1] - 1)
    paths = level + siblings[rows[:, None], ahead] - siblings[rows, columns][:, None]
    is_full = paths >= 1.0
    fills = is_full.any(axis=1)
    peaks = np.argmax(paths[:, : _RECENT + 1], axis=1)
    ends_soon = float(((peaks <= _EACH) & ~is_full[:, : _RECENT + 1].any(axis=1)).mean())
    if not fills.any():
        return 0.0, None, ends_soon
    full_at = np.argmax(is_full[fills], axis=1) * (STEP / SECOND)
    p10, p50, p90 = np.quantile(full_at, [0.1, 0.5, 0.9]).tolist()
    return float(fills.mean()), (p10, p50, p90), ends_soon
