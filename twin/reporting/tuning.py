"""The choice of a site, tried on its own recordings: what people get for every price of a needless call.

- Each recording is played once for each value. The looks ahead, which take most of the time, are made at the first of
  them and kept, so that the numbers are those of a replay with that setting. Pages are judged as in a report.

    >>> tuning = twin.tune(["friday.arrow"], "estate.toml", values=[0.5, 1.5])
    >>> [(own.needless_per_saved, own.in_time, own.missed, own.needless) for own in tuning.choices]
    [(0.5, 1, 0, 0), (1.5, 1, 0, 0)]

- Bootstrap by recording: how much a figure depends on which recordings there happened to be.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from kernels.clock import SECOND
from twin.base.errors import UsageError
from twin.base.units import as_text
from twin.estate import Estate, ForecastSettings, MessageStoreConfig, as_estate
from twin.forecast.monitor import keeping_looks
from twin.playback.pages import (
    TWIN,
    Alarm,
    Filling,
    Verdict,
    fillings,
    from_incidents,
    lead_of,
    page_verdicts,
    static_pages,
    straight_line_pages,
)
from twin.playback.replays import play as play_alone
from twin.playback.samples import STEP, Alerts
from twin.playback.timeline import Series, play_series
from twin.records import read_alert_record
from twin.state.arrays import Array
from twin.stores.warm_up import warm

# --- bootstrap by recording -------------------------------------------------------------------------------------------
# What one recording holds belongs together, so whole recordings are drawn, with replacement, as many as there are.
# Every figure is computed from sums or from the values of the recordings drawn, weighted by how often each was drawn;
# its interval is from the 2.5th to the 97.5th percentile of these [Efron and Tibshirani: An introduction to the
# bootstrap, chapter 13]. The numbers are drawn from a fixed seed: the same recordings give the same interval.

RESAMPLES = 1000
LEAST_RECORDINGS = 10  # with fewer there are too few ways to draw them [assumed]
_SEED = 0xB007
_TAILS = (2.5, 97.5)  # percentiles


class Bounds(NamedTuple):
    """Interval of a figure that contains it with 95 % confidence."""

    low: float
    high: float


class Figure(NamedTuple):
    """A figure, and its interval; None: nothing to measure, or no resamples."""

    value: float | None
    bounds: Bounds | None = None


class Resamples:
    """The recordings as they are, and drawn again."""

    def __init__(self, recordings: int, resamples: int = 0) -> None:
        """Draw the recordings again; not at all if there are fewer than LEAST_RECORDINGS."""
        # f8[1 + resamples, recordings], how often each recording counts; in the first row once
        self.weights = _weights(recordings, resamples if recordings >= LEAST_RECORDINGS else 0)

    def total(self, values: Array | Sequence[float]) -> Array:
        """Return f8[1 + resamples, ...], sums over the recordings. values: f8[recordings, ...]."""
        return np.tensordot(self.weights, np.asarray(values, float), 1)

    def ratio(self, parts: Array | Sequence[float], wholes: Array | Sequence[float]) -> Figure:
        """Return the ratio of two sums over the recordings. parts, wholes: f8[recordings]."""
        return figure(share(self.total(parts), self.total(wholes)))

    def quantile(self, values: Sequence[Sequence[float]], rank: float) -> Figure:
        """Return a quantile of the values of all recordings, interpolated as by `numpy.quantile`."""
        flat = np.array([value for own in values for value in own], float)
        if not flat.size:
            return Figure(None)
        owners = np.repeat(np.arange(len(values)), [len(own) for own in values])
        order = np.argsort(flat, kind="stable")
        flat, counts = flat[order], np.cumsum(self.weights[:, owners[order]], axis=1)
        places = rank * np.maximum(counts[:, -1] - 1, 0)
        low = np.floor(places + 1e-9)
        ends = []
        for place in (low, low + 1):
            rows = (counts <= np.minimum(place, counts[:, -1] - 1)[:, None]).sum(axis=1)
            ends.append(flat[np.minimum(rows, flat.size - 1)])
        part = np.maximum(places - low, 0.0)
        with np.errstate(invalid="ignore"):  # inf - inf, where both are the same
            between = np.where((part == 0) | (ends[0] == ends[1]), ends[0], ends[0] + part * (ends[1] - ends[0]))
        return figure(np.where(counts[:, -1] > 0, between, np.nan))


@functools.cache
def _weights(recordings: int, resamples: int) -> Array:
    weights = np.ones((1 + resamples, recordings))
    if resamples:
        rng = np.random.default_rng((_SEED, recordings))
        weights[1:] = rng.multinomial(recordings, np.full(recordings, 1.0 / recordings), resamples)
    weights.flags.writeable = False
    return weights


def share(parts: Array, wholes: Array) -> Array:
    """Return parts / wholes, nan where the whole is 0."""
    return np.asarray(np.divide(parts, wholes, out=np.full(np.shape(wholes), np.nan), where=wholes != 0))


def figure(values: Array) -> Figure:
    """Return the first of some values as a figure, with the interval of the others that are not nan."""
    value, known = float(values[0]), values[1:][~np.isnan(values[1:])]
    if np.isnan(value):
        return Figure(None)
    if not known.size:
        return Figure(value)
    low, high = np.quantile(known, np.array(_TAILS) / 100, method="inverted_cdf").tolist()
    return Figure(value, Bounds(low, high))


# --- the choice of a site ---------------------------------------------------------------------------------------------

VALUES = (0.25, 0.5, 1.0, 1.5, 2.5, 4.0, 8.0)  # of `needless_per_saved` that are tried
THRESHOLD, STRAIGHT = "FULLTHRESHOLD", "straight line"  # who else might call
_DAY = 86_400 * SECOND
_NOON = _DAY // 2
_MONTH_DAYS = 30.0


class TunedCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of the twin with a setting, or of a line on usage."""

    name: str  # "twin", or the name of the line
    needless_per_saved: float | None  # setting of every store; None: of a line
    page_lead_s: float | None  # `forecast_page_lead_s` of the stores; None: they differ, or it is a line
    pages: int  # number; in_time, late, needless, undecided: by verdict, as in a report
    in_time: int
    late: int
    needless: int
    undecided: int
    fillings: int  # number; missed: those without a page before
    missed: int
    lead_p50_s: float | None  # median time from a page to the first refused put, seconds; None: none came before
    pages_a_month: float  # pages per store and 30 days
    interval: tuple[float, float] | None  # 95 % confidence, from nights drawn again; None: too few nights


class TunedNight(msgspec.Struct, frozen=True, kw_only=True):
    """A night, noon to noon of the site, in which a store filled or a setting called."""

    date: str  # date of its evening
    stores: tuple[str, ...]  # those that filled or about which somebody called
    fillings: int
    pages: tuple[int, ...]  # pages of each of `Tuning.choices`; needless: those for nothing
    needless: tuple[int, ...]


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of settings on recordings.

    Attributes:
        since, until: first and last moment of the recordings.
        events: their number.
        store_days: days of all stores together.
        nights_played: nights of the recordings.
        present: setting of the estate; None: its stores differ.
        choices: the settings, in order.
        lines: fixed lines at FULLTHRESHOLD (80 % where there is none) and straight lines on the same usage.
        nights: those in which anything happened, in order of time.
        quietest: the least setting that warns in time of every filling of which any setting does.
    """

    since: str
    until: str
    events: int
    store_days: float
    nights_played: int
    present: float | None
    choices: tuple[TunedCaller, ...]
    lines: tuple[TunedCaller, ...]
    nights: tuple[TunedNight, ...]
    quietest: float


class _Task(NamedTuple):
    """A recording that is played with some settings."""

    path: str
    estate: Estate
    values: Sequence[float]


class _Calls(NamedTuple):
    """Pages of a caller about a store of a recording, and the leads by filling. Times in microseconds since 1970."""

    store: str
    pages: Sequence[tuple[int, Verdict]]
    leads: Sequence[tuple[int, float | None]]


class _Played(NamedTuple):
    """A recording by caller. spans: (store, first, last sample)."""

    events: int
    spans: Sequence[tuple[str, int, int]]
    calls: dict[float | str, list[_Calls]]


def tune(
    recordings: Sequence[str | Path],
    estate: Estate | str | Path,
    *,
    values: Sequence[float] = VALUES,
    page_lead_s: float | None = None,
    processes: int = 1,
    on_played: Callable[[int], None] | None = None,
) -> Tuning:
    """Return what `needless_per_saved` brings on recordings: pages, needless and late ones, fillings missed, leads.

    Args:
        recordings: files (`.ndjson`, `.ndjson.zst`, `.arrow`). Each is played from empty stores.
        estate: the estate, or its file. Its own settings of the choice do not count.
        values: settings to try, for all stores.
        page_lead_s: `forecast_page_lead_s` to try with them, for all stores; None: as in the estate.
        processes: processes that share the work.
        on_played: called with the number of events of each recording that is done.

    Raises:
        UsageError: there is no recording or value, one cannot be read, or has no event of the estate.

    Examples:
        >>> tuning = twin.tune(["friday.arrow"], "estate.toml", values=[0.5, 1.5, 4.0])
        >>> [own.pages for own in tuning.choices]
        [1, 1, 1]
    """
    described = _with_lead(as_estate(estate), page_lead_s)
    tried = sorted(set(values))
    if not tried or tried[0] <= 0:
        raise UsageError(f"values {list(values)}: expected: some numbers above 0")
    if not recordings:
        raise UsageError("no recording; expected: one or more")
    played = _play_all([str(path) for path in recordings], described, tried, processes, on_played)
    return _tuning(described, played, tried)


def chosen(estate: Estate, needless_per_saved: float) -> Estate:
    """Return an estate of which every store has a setting."""
    return _changed(estate, lambda config: replace(config, needless_per_saved=needless_per_saved))


def _with_lead(estate: Estate, page_lead_s: float | None) -> Estate:
    """Return an estate of which every store has a page lead; None: as it is."""
    if page_lead_s is None:
        return estate
    return _changed(estate, lambda config: replace(config, forecast_page_lead_s=page_lead_s))


def _changed(estate: Estate, change: Callable[[MessageStoreConfig], MessageStoreConfig]) -> Estate:
    """Return an estate with a change of every store that is forecast."""
    stores = {
        name: change(config) if isinstance(config, ForecastSettings) else config
        for name, config in estate.stores.items()
    }
    return replace(estate, stores=stores)


# --- playing ---------------------------------------------------------------------------------------------------------


def _play_all(
    paths: Sequence[str],
    estate: Estate,
    values: Sequence[float],
    processes: int,
    on_played: Callable[[int], None] | None,
) -> list[_Played]:
    """Return the recordings as they were played. Where there are fewer than processes, these share the values."""
    parts = max(1, min(len(values), processes // len(paths)))
    tasks = [_Task(path, estate, values[part::parts]) for path in paths for part in range(parts)]
    warm()
    if processes == 1:
        done = _noted(map(_play, tasks), on_played)
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(tasks)), mp_context=context, initializer=warm) as pool:
            done = _noted(pool.map(_play, tasks), on_played)
    joined = []
    for first in range(0, len(done), parts):
        own = done[first : first + parts]
        joined.append(own[0]._replace(calls={name: calls for part in own for name, calls in part.calls.items()}))
    return joined


def _noted(results: Iterable[_Played], on_played: Callable[[int], None] | None) -> list[_Played]:
    done = []
    for played in results:
        done.append(played)
        if on_played is not None:
            on_played(played.events)
    return done


def _play(task: _Task) -> _Played:
    """Play a recording with each value; the looks are made once."""
    path, estate, values = task
    calls: dict[float | str, list[_Calls]] = {}
    with keeping_looks():
        played = play_series(path, chosen(estate, values[0]))
        by_store = {name: fillings(own) for name, own in played.series.items()}
        alerts = played.alerts
        for value in values:
            if value != values[0]:
                observer = Alerts()
                play_alone(path, chosen(estate, value), observer)
                alerts = observer.alerts
            records = [read_alert_record(alert.record()) for alert in alerts]
            calls[value] = [
                _calls(series, by_store[name], from_incidents(records, name)) for name, series in played.series.items()
            ]
    for line in (THRESHOLD, STRAIGHT):
        calls[line] = [
            _calls(series, by_store[name], _line_pages(line, series, estate)) for name, series in played.series.items()
        ]
    spans = [(name, int(own.times[0]), int(own.times[-1])) for name, own in played.series.items()]
    return _Played(played.events, spans, calls)


def _line_pages(line: str, series: Series, estate: Estate) -> list[Alarm]:
    if line == STRAIGHT:
        return straight_line_pages(series)
    return static_pages(series, estate.message_stores[series.store].high_pct)


def _calls(series: Series, own: Sequence[Filling], pages: Sequence[Alarm]) -> _Calls:
    verdicts = page_verdicts(series, own, pages)
    return _Calls(
        series.store,
        [(page.opened, verdict) for page, verdict in zip(pages, verdicts, strict=True)],
        [(filling.first, lead_of(filling, pages)) for filling in own],
    )


# --- counting --------------------------------------------------------------------------------------------------------


def _tuning(estate: Estate, played: Sequence[_Played], values: Sequence[float]) -> Tuning:
    spans = [span for own in played for span in own.spans]
    if not spans:
        raise UsageError("the recordings have no event of this estate; expected: one of a store with messages")
    first, last = min(begin for _, begin, _ in spans), max(end for _, _, end in spans)
    offset = _offset(estate, first)
    days = _days_by_night(spans, offset)
    leads = {config.forecast_page_lead_s for config in _settings(estate)}
    names: list[float | str] = [*values, THRESHOLD, STRAIGHT]
    callers = {
        name: _caller(name, [call for own in played for call in own.calls[name]], days, offset, leads) for name in names
    }
    choices = tuple(callers[value] for value in values)
    present = {config.needless for config in _settings(estate)}
    highest = max(own.fillings - own.missed for own in choices)
    return Tuning(
        since=as_text(first - STEP),
        until=as_text(last),
        events=sum(own.events for own in played),
        store_days=round(sum(days.values()), 3),
        nights_played=len(days),
        present=present.pop() if len(present) == 1 else None,
        choices=choices,
        lines=(callers[THRESHOLD], callers[STRAIGHT]),
        nights=_nights(played, values, offset),
        quietest=next(
            value for value, own in zip(values, choices, strict=True) if own.fillings - own.missed == highest
        ),
    )


def _settings(estate: Estate) -> list[ForecastSettings]:
    return [config for config in estate.stores.values() if isinstance(config, ForecastSettings)]


def _offset(estate: Estate, time: int) -> int:
    """Return the microseconds by which the site's clock is ahead of UTC at the beginning of its recordings."""
    ahead = datetime.fromtimestamp(time / SECOND, UTC).astimezone(estate.site.clock).utcoffset()
    return 0 if ahead is None else round(ahead.total_seconds()) * SECOND


def _night(time: int, offset: int) -> int:
    """Return the days from 1970 to the evening of the night of a time."""
    return (time + offset - _NOON) // _DAY


def _days_by_night(spans: Iterable[tuple[str, int, int]], offset: int) -> dict[int, float]:
    """Return the store-days of each night of the recordings, in order."""
    days: dict[int, float] = {}
    for _, first, last in spans:
        times = np.arange(first, last + 1, STEP) - STEP
        nights, counts = np.unique((times + offset - _NOON) // _DAY, return_counts=True)
        for night, count in zip(nights.tolist(), counts.tolist(), strict=True):
            days[night] = days.get(night, 0.0) + count * STEP / _DAY
    return dict(sorted(days.items()))


def _caller(
    name: float | str, calls: Sequence[_Calls], days: dict[int, float], offset: int, page_leads: set[float]
) -> TunedCaller:
    """Return the counts of a caller. days: store-days by night; page_leads: those of the stores."""
    verdicts = [verdict for own in calls for _, verdict in own.pages]
    leads = [lead for own in calls for _, lead in own.leads]
    known = [lead for lead in leads if lead is not None]
    called = Counter(_night(opened, offset) for own in calls for opened, _ in own.pages)
    nights = sorted({*called, *days})
    rate = Resamples(len(nights), RESAMPLES).ratio(
        [_MONTH_DAYS * called[night] for night in nights], [days.get(night, 0.0) for night in nights]
    )
    value = None if isinstance(name, str) else name
    return TunedCaller(
        name=name if isinstance(name, str) else TWIN,
        needless_per_saved=value,
        page_lead_s=None if value is None or len(page_leads) != 1 else min(page_leads),
        pages=len(verdicts),
        in_time=verdicts.count(Verdict.IN_TIME),
        late=verdicts.count(Verdict.LATE),
        needless=verdicts.count(Verdict.FALSE),
        undecided=verdicts.count(Verdict.UNDECIDED),
        fillings=len(leads),
        missed=leads.count(None),
        lead_p50_s=round(float(np.median(known)), 1) if known else None,
        pages_a_month=round(rate.value or 0.0, 2),
        interval=None if rate.bounds is None else (round(rate.bounds.low, 2), round(rate.bounds.high, 2)),
    )


def _nights(played: Sequence[_Played], values: Sequence[float], offset: int) -> tuple[TunedNight, ...]:
    """Return the nights in which a store filled or a setting called."""
    stores: dict[int, set[str]] = {}
    filled: dict[int, int] = {}
    pages: dict[int, list[list[Verdict]]] = {}
    for own in played:
        for number, value in enumerate(values):
            for calls in own.calls[value]:
                for opened, verdict in calls.pages:
                    night = _night(opened, offset)
                    stores.setdefault(night, set()).add(calls.store)
                    pages.setdefault(night, [[] for _ in values])[number].append(verdict)
        for calls in own.calls[values[0]]:
            for first, _ in calls.leads:
                night = _night(first, offset)
                stores.setdefault(night, set()).add(calls.store)
                filled[night] = filled.get(night, 0) + 1
    none: list[list[Verdict]] = [[] for _ in values]
    return tuple(
        TunedNight(
            date=datetime.fromtimestamp(night * _DAY / SECOND, UTC).date().isoformat(),
            stores=tuple(sorted(stores[night])),
            fillings=filled.get(night, 0),
            pages=tuple(len(own) for own in pages.get(night, none)),
            needless=tuple(own.count(Verdict.FALSE) for own in pages.get(night, none)),
        )
        for night in sorted(stores)
    )
