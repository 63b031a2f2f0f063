"""Replay of a recording with samples of usage, 2192s, alerts and forecasts.

Truth and every baseline read the same series, so none of them has more information than another. Usage is sampled every
30 seconds of event time: z/OS samples a structure about once per minute (structure full monitoring), other monitors
sample every 15 to 60 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kernels.clock import SECOND
from kernels.event_loop import MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import PUT
from twin.alerts.episodes import Alert
from twin.estate import Estate
from twin.events import Decoded, Decoder
from twin.forecast.outlook import Forecast
from twin.playback.replays import Player
from twin.playback.samples import STEP, pieces_by_step
from twin.recordings.files import Chunk, open_recording
from twin.scoring.look import Look, look
from twin.scoring.predictions import Predictions
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.warm_up import warm


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
    refused: Array  # i8[m], times of the puts with reason 2192, ascending

    @property
    def days(self) -> float:
        """Length in days."""
        return float(self.times[-1] - self.times[0] + STEP) / (86_400 * SECOND)


@dataclass(slots=True, kw_only=True)
class PlayedRecording:
    """Results of replaying a recording."""

    series: dict[str, Series]  # by store, sorted
    alerts: list[Alert]  # by time, then store
    predictions: dict[str, Predictions]  # of the twin, by store, sorted
    events: int  # number


def play(path: str | Path, estate: Estate, on_chunk: Callable[[Chunk, int], None] | None = None) -> PlayedRecording:
    """Replay a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) with a sample of each store per STEP.

    Args:
        path: the recording.
        estate: the estate.
        on_chunk: as for `twin.playback.replays.replay`.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    warm()
    decoder, player = Decoder(estate), Player(estate)
    records: dict[str, _Record] = {}
    alerts: list[Alert] = []
    events = 0
    stores = np.array([route.store for route in estate.routes])
    for chunk in open_recording(path):
        decoded = chunk.decode(decoder)
        for piece in pieces_by_step(decoded):
            alerts += player.feed(piece)
            for name in np.unique(stores[np.unique(piece.events["route"])]).tolist():
                twin = player.twins[name]
                if isinstance(twin, MessageStore):  # shared stores have no puts
                    record = records.setdefault(name, _Record())
                    record.add(look(twin))
                    record.forecasts += twin.drain_forecasts()
        for name, times in _refused(decoded, stores):
            records[name].refused.append(times)
        events += len(decoded)
        if on_chunk is not None:
            on_chunk(chunk, events)
    alerts += player.catch_up()
    alerts.sort(key=lambda alert: (alert.time, alert.store))
    series = {name: record.series(name) for name, record in sorted(records.items()) if record.looks}
    predictions = {name: Predictions.from_forecasts(records[name].forecasts) for name in series}
    return PlayedRecording(series=series, alerts=alerts, predictions=predictions, events=events)


def _refused(decoded: Decoded, stores: Array) -> Iterable[tuple[str, Array]]:
    """Return (store, times i8[n]) of the puts with reason 2192."""
    events = decoded.events
    full = events[(events["op"] == PUT) & (events["reason"] == MQRC_STORAGE_MEDIUM_FULL)]
    owners = stores[full["route"]]
    return [(name, full["time"][owners == name].copy()) for name in np.unique(owners).tolist()]


@dataclass(slots=True)
class _Record:
    """Samples of a store, the last one per STEP, with its forecasts and refused puts."""

    looks: list[Look] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    refused: list[Array] = field(default_factory=list)

    def add(self, sample: Look | None) -> None:
        """Add a sample, which replaces an earlier one of the same STEP; None: the store has not begun."""
        if sample is None:
            return
        if self.looks and self.looks[-1].time // STEP == sample.time // STEP:
            self.looks[-1] = sample
        else:
            self.looks.append(sample)

    def series(self, name: str) -> Series:
        """Return the samples as a series: a row per STEP, with the previous usage where there is no sample."""
        cells = np.array([sample.time for sample in self.looks]) // STEP
        raster = np.arange(cells[0], cells[-1] + 1)
        rows = np.searchsorted(cells, raster, side="right") - 1  # without events in a STEP, usage stays
        resources = tuple(dict.fromkeys(resource for sample in self.looks for resource in sample.usage))
        queues = self.looks[-1].queues  # rows are only added
        usage = np.array([[sample.usage.get(resource, 0.0) for resource in resources] for sample in self.looks])
        holdings = np.zeros((len(self.looks), len(queues), 3), np.int64)
        for i, sample in enumerate(self.looks):
            holdings[i, : len(sample.holdings)] = sample.holdings
        return Series(
            store=name,
            times=(raster + 1) * STEP,  # a sample stands for the end of its STEP
            resources=resources,
            usage=usage.reshape(len(self.looks), len(resources))[rows],
            size=np.array([sample.size for sample in self.looks], np.int64)[rows],
            queues=queues,
            holdings=holdings[rows],
            refused=np.sort(np.concatenate([np.zeros(0, np.int64), *self.refused])),
        )
