"""Replay of a recording with the contents of each queue and the predictions of the twin over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from kernels.clock import SECOND
from twin.alerts.episodes import Alert
from twin.estate import Estate, as_estate
from twin.forecast.outlook import Forecast
from twin.playback import timeline as plain
from twin.playback.samples import STEP, Applied, Observer
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore

_TENTH = NormalDist().inv_cdf(0.9)
_LEAST_SPREAD = 1e-3  # of the logarithm of a time
_normal_cdf = np.frompyfunc(NormalDist().cdf, 1, 1)
STALE = 120 * SECOND  # age at which a prediction no longer counts


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSeries(plain.Series):
    """Samples of one store and of its queues."""

    queues: tuple[str, ...]
    holdings: Array  # i8[n, queues, 3]: messages, elements, 4 KB pages of each queue


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions of a method for one store. One without intervals has the same number for p10, p50 and p90."""

    times: Array  # i8[n], microseconds, ascending
    ahead: Array  # f8[n, 3], seconds until full if it becomes full: p10, p50, p90; inf: beyond the horizon
    chance: Array | None = None  # f8[n], probability of full within the horizon; None: none predicted

    def times_at(self, time: int) -> tuple[float, float, float]:
        """Return the seconds from `time` to full (p10, p50, p90) by the last prediction; inf without a recent one."""
        row = self._row(time)
        if row is None:
            return np.inf, np.inf, np.inf
        aged = (time - int(self.times[row])) / SECOND
        p10, p50, p90 = np.maximum(self.ahead[row] - aged, 0.0).tolist()
        return p10, p50, p90

    def chances_at(self, times: Array, within: Array) -> Array:
        """Return f8[n, m], the last predicted probability of full within some seconds; 0 without a recent prediction.

        The time until full is taken as normal in its logarithm, on either side of p50.

        Args:
            times: i8[n], microseconds.
            within: f8[m], seconds.
        """
        chances = np.zeros((times.size, within.size))
        rows = np.searchsorted(self.times, times, side="right") - 1
        if self.chance is None or not self.times.size:
            return chances
        says = (rows >= 0) & (times - self.times[rows] <= STALE) & (self.chance[rows] > 0)
        says &= np.isfinite(self.ahead[rows]).all(axis=1)
        rows = rows[says]
        p10, p50, p90 = np.log(np.maximum(self.ahead[rows], 1.0)).T[:, :, None]
        apart = np.log(within) - p50
        spread = np.maximum(np.where(apart < 0, p50 - p10, p90 - p50) / _TENTH, _LEAST_SPREAD)
        chances[says] = self.chance[rows, None] * _normal_cdf(apart / spread).astype(float)
        return chances

    @classmethod
    def from_forecasts(cls, forecasts: Sequence[Forecast]) -> Predictions:
        """Return the predictions of the twin for a store: those for the resource that is full first."""
        first = [forecast for forecast in forecasts if forecast.first]
        ahead = [(forecast.p10, forecast.p50, forecast.p90) for forecast in first]
        return cls(
            np.array([forecast.time for forecast in first], np.int64),
            np.array([[np.inf if s is None else s for s in quantiles] for quantiles in ahead], float).reshape(-1, 3),
            np.array([forecast.probability for forecast in first], float),
        )

    def _row(self, time: int) -> int | None:
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        return None if row < 0 or time - int(self.times[row]) > STALE else row


@dataclass(slots=True, kw_only=True)
class PlayedRecording:
    """Results of replaying a recording."""

    series: dict[str, QueueSeries]  # by store, sorted
    alerts: list[Alert]  # by time, then store
    predictions: dict[str, Predictions]  # of the twin, by store, sorted
    events: int  # number


class _Queues(Observer):
    def __init__(self, estate: Estate) -> None:
        self.names: dict[str, tuple[str, ...]] = {}
        self.holdings: defaultdict[str, dict[int, Array]] = defaultdict(dict)
        self._store_of = np.array([route.store for route in estate.routes])

    def after(self, applied: Applied) -> None:
        for name in np.unique(self._store_of[np.unique(applied.piece.events["route"])]).tolist():
            twin = applied.twins[name]
            if isinstance(twin, MessageStore):
                store = twin.tables.store
                rows = store.queues[: len(twin.queues)]
                self.names[name] = tuple(twin.queues)
                step = int(store.scalars[0]["clock"]) // STEP
                self.holdings[name][step] = np.stack([rows["depth"], rows["elems"], rows["pages"]], axis=1)


def play(path: str | Path, estate: Estate | str | Path) -> PlayedRecording:
    """Replay a recording with a sample of each store and of its queues per STEP.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    estate = as_estate(estate)
    seen = _Queues(estate)
    played = plain.play_series(path, estate, seen)
    return PlayedRecording(
        series={name: _with_queues(own, seen.names[name], seen.holdings[name]) for name, own in played.series.items()},
        alerts=played.alerts,
        predictions={name: Predictions.from_forecasts(played.forecasts[name]) for name in played.series},
        events=played.events,
    )


def _with_queues(series: plain.Series, queues: tuple[str, ...], held: Mapping[int, Array]) -> QueueSeries:
    """Add the contents of the queues, in a row per STEP as in `series`."""
    steps = [step for step in held if (step + 1) * STEP >= series.times[0]]  # one without any time yet has no sample
    holdings = np.zeros((len(steps), len(queues), 3), np.int64)  # rows are only added
    for row, step in enumerate(steps):
        holdings[row, : len(held[step])] = held[step]
    return QueueSeries(
        store=series.store,
        times=series.times,
        resources=series.resources,
        usage=series.usage,
        size=series.size,
        refused=series.refused,
        queue_full=series.queue_full,
        queues=queues,
        holdings=holdings[plain.raster_of(steps)[1]],
    )
