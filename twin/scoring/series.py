"""Replay of a recording with samples of usage, 2192s, alerts and forecasts.

Truth and every baseline read the same series, so none of them has more information than another. The samples are those
of a replay (`twin.playback.samples`), with the contents of each queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np

from kernels.clock import SECOND
from kernels.event_loop import MQRC_Q_FULL, MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import PUT
from twin.alerts.episodes import Alert
from twin.estate import Estate, as_estate
from twin.events import Decoded
from twin.forecast.outlook import Forecast
from twin.playback.replays import Player, chunks_until, decoded_chunks
from twin.playback.replays import play as play_recording
from twin.playback.samples import STEP, Samples, Usage, split_by_step, usage_of
from twin.recordings.files import Chunk
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin

_MQRC_Q_SPACE_NOT_AVAILABLE = 2056
_STORE_FULL = (MQRC_STORAGE_MEDIUM_FULL, _MQRC_Q_SPACE_NOT_AVAILABLE)  # reasons of puts that a full store refuses
_TENTH = NormalDist().inv_cdf(0.9)
_LEAST_SPREAD = 1e-3  # of the logarithm of a time
_normal_cdf = np.frompyfunc(NormalDist().cdf, 1, 1)
STALE = 120 * SECOND  # age at which a prediction no longer counts


class Sample(NamedTuple):
    """Sample of a store: usage of each resource and contents of each queue."""

    usage: Usage
    size: int  # bytes of the messages held
    queues: tuple[str, ...]
    holdings: Array  # i8[queues, 3]: messages, elements, 4 KB pages of each queue

    @classmethod
    def from_twin(cls, twin: MessageStore) -> Self:
        """Take a sample of a store."""
        store = twin.tables.store
        rows = store.queues[: len(twin.queues)]
        return cls(
            usage=usage_of(twin),
            size=int(store.scalars[0]["bytes"]),
            queues=tuple(twin.queues),
            holdings=np.stack([rows["depth"], rows["elems"], rows["pages"]], axis=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one store from its first event to its last."""

    store: str
    times: Array  # i8[n], microseconds since 1970, STEP apart
    resources: tuple[str, ...]
    usage: Array  # f8[n, resources], percent
    size: Array  # i8[n], bytes of the messages held
    queues: tuple[str, ...]
    holdings: Array  # i8[n, queues, 3]: messages, elements, 4 KB pages of each queue
    refused: Array  # i8[m], times of the puts with reason 2192 or 2056, ascending
    queue_full: Array  # i8[k], times of the puts with reason 2053, ascending

    @property
    def days(self) -> float:
        """Length in days."""
        return float(self.times[-1] - self.times[0] + STEP) / (86_400 * SECOND)


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

    series: dict[str, Series]  # by store, sorted
    alerts: list[Alert]  # by time, then store
    predictions: dict[str, Predictions]  # of the twin, by store, sorted
    events: int  # number
    dead_letters: int  # number
    twins: Mapping[str, Twin]  # as they are at the end, by store


def play(
    path: str | Path,
    estate: Estate | str | Path,
    on_chunk: Callable[[Chunk, int], None] | None = None,
    *,
    until: int | None = None,
    on_piece: Callable[[Decoded], None] = lambda _: None,
) -> PlayedRecording:
    """Replay a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) with a sample of each store per STEP.

    Args:
        path: the recording.
        estate: the estate, or its file.
        on_chunk: as for `twin.playback.replays.replay`.
        until: time of the last events that are played, microseconds; None: all are.
        on_piece: called with each piece of events, none longer than a STEP.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    estate = as_estate(estate)
    player, samples = Player(estate), Samples(estate, Sample.from_twin)
    dead_letters = 0

    def counted(chunks: Iterable[Decoded]) -> Iterator[Decoded]:
        nonlocal dead_letters
        for decoded in chunks:
            dead_letters += len(decoded.rejects)
            yield decoded

    chunks = counted(decoded_chunks(path, estate, on_chunk))
    refused: defaultdict[str, list[Array]] = defaultdict(list)
    queue_full: defaultdict[str, list[Array]] = defaultdict(list)
    alerts: list[Alert] = []
    events = 0
    stores = np.array([route.store for route in estate.routes])
    for piece, opened in play_recording(
        chunks if until is None else chunks_until(chunks, until), player, split_by_step
    ):
        on_piece(piece)
        alerts += opened
        samples.add(piece, player.twins)
        for by_store, reasons in ((refused, _STORE_FULL), (queue_full, (MQRC_Q_FULL,))):
            for name, times in _refused(piece, stores, reasons):
                by_store[name].append(times)
        events += len(piece)
    alerts.sort(key=lambda alert: (alert.time, alert.store))
    series = {
        name: _series(name, steps, refused[name], queue_full[name]) for name, steps in sorted(samples.by_store.items())
    }
    predictions = {name: Predictions.from_forecasts(samples.forecasts[name]) for name in series}
    return PlayedRecording(
        series=series,
        alerts=alerts,
        predictions=predictions,
        events=events,
        dead_letters=dead_letters,
        twins=player.twins,
    )


def _refused(decoded: Decoded, stores: Array, reasons: Sequence[int]) -> Iterable[tuple[str, Array]]:
    """Return (store, times i8[n]) of the puts with one of the reasons."""
    events = decoded.events[decoded.events["reason"] != 0]
    if not events.size:  # as nearly always, and asking for the reasons takes longer
        return []
    full = events[(events["op"] == PUT) & np.isin(events["reason"], reasons)]
    owners = stores[full["route"]]
    return [(name, full["time"][owners == name].copy()) for name in np.unique(owners).tolist()]


def _series(name: str, steps: Mapping[int, Sample], refused: Sequence[Array], queue_full: Sequence[Array]) -> Series:
    """Return samples by STEP as a series: a row per STEP, with the previous usage where there is no sample."""
    samples, numbers = list(steps.values()), np.array(list(steps))
    raster = np.arange(numbers[0], numbers[-1] + 1)
    rows = np.searchsorted(numbers, raster, side="right") - 1  # without events in a STEP, usage stays
    resources = tuple(dict.fromkeys(resource for sample in samples for resource in sample.usage))
    queues = samples[-1].queues  # rows are only added
    usage = np.array([[sample.usage.get(resource, 0.0) for resource in resources] for sample in samples])
    holdings = np.zeros((len(samples), len(queues), 3), np.int64)
    for i, sample in enumerate(samples):
        holdings[i, : len(sample.holdings)] = sample.holdings
    return Series(
        store=name,
        times=(raster + 1) * STEP,  # a sample stands for the end of its STEP
        resources=resources,
        usage=usage.reshape(len(samples), len(resources))[rows],
        size=np.array([sample.size for sample in samples], np.int64)[rows],
        queues=queues,
        holdings=holdings[rows],
        refused=np.sort(np.concatenate([np.zeros(0, np.int64), *refused])),
        queue_full=np.sort(np.concatenate([np.zeros(0, np.int64), *queue_full])),
    )
