"""Replay of a recording with samples of usage, refused puts and alerts of each store over time.

Whatever is compared with the twin's alerts reads these samples, so that nothing knows more than the twin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernels.clock import SECOND
from kernels.event_loop import MQRC_Q_FULL
from kernels.layout import PUT
from twin.alerts.episodes import Alert
from twin.estate import Estate, as_estate
from twin.forecast.outlook import Forecast
from twin.playback.replays import STORE_FULL
from twin.playback.replays import play as play_recording
from twin.playback.samples import STEP, Alerts, Applied, Letters, Observer, Samples, Usage, usage_of
from twin.recordings.files import Chunk
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.stores.open import Twin


class _Sample(NamedTuple):
    usage: Usage
    size: int  # bytes of the messages held


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Samples of one store from its first event to its last."""

    store: str
    times: Array  # i8[n], microseconds since 1970, STEP apart
    resources: tuple[str, ...]
    usage: Array  # f8[n, resources], percent
    size: Array  # i8[n], bytes of the messages held
    refused: Array  # i8[m], times of the puts with reason 2192 or 2056, ascending
    queue_full: Array  # i8[k], times of the puts with reason 2053, ascending

    @property
    def days(self) -> float:
        """Length in days."""
        return float(self.times[-1] - self.times[0] + STEP) / (86_400 * SECOND)


@dataclass(slots=True, kw_only=True)
class PlayedRecording:
    """Results of replaying a recording."""

    series: dict[str, Series]  # by store, sorted
    alerts: list[Alert]  # by time, then store
    forecasts: Mapping[str, Sequence[Forecast]]  # by store, by time
    events: int  # number
    dead_letters: int  # number
    twins: Mapping[str, Twin]  # as they are at the end, by store


class _Refused(Observer):
    """Times of refused puts, in pieces i8[n], by store: `full` with reason 2192 or 2056, `queue_full` with 2053."""

    def __init__(self, estate: Estate) -> None:
        self.full: defaultdict[str, list[Array]] = defaultdict(list)
        self.queue_full: defaultdict[str, list[Array]] = defaultdict(list)
        self.events = 0  # of all stores
        self._store_of = np.array([route.store for route in estate.routes])

    def after(self, applied: Applied) -> None:
        """Add the refused puts of a piece."""
        self.events += len(applied.piece)
        events = applied.piece.events[applied.piece.events["reason"] != 0]
        if not events.size:  # as nearly always, and asking for the reasons takes longer
            return
        for by_store, reasons in ((self.full, STORE_FULL), (self.queue_full, (MQRC_Q_FULL,))):
            refused = events[(events["op"] == PUT) & np.isin(events["reason"], reasons)]
            owners = self._store_of[refused["route"]]
            for name in np.unique(owners).tolist():
                by_store[name].append(refused["time"][owners == name].copy())


def play(
    path: str | Path,
    estate: Estate | str | Path,
    *observers: Observer,
    until: int | None = None,
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> PlayedRecording:
    """Replay a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) with a sample of each store per STEP, up to `until`,
    microseconds. UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    estate = as_estate(estate)
    samples, refused, alerts, letters = Samples(estate, _sample), _Refused(estate), Alerts(), Letters()
    own = (*observers, samples, refused, alerts, letters)
    player = play_recording(path, estate, *own, until=until, on_chunk=on_chunk)
    return PlayedRecording(
        series={
            name: _series(name, steps, refused.full[name], refused.queue_full[name])
            for name, steps in sorted(samples.by_store.items())
        },
        alerts=alerts.alerts,
        forecasts=samples.forecasts,
        events=refused.events,
        dead_letters=letters.dead_letters,
        twins=player.twins,
    )


def _sample(twin: MessageStore) -> _Sample:
    return _Sample(usage_of(twin), int(twin.tables.store.scalars[0]["bytes"]))


def _series(name: str, steps: Mapping[int, _Sample], refused: Sequence[Array], queue_full: Sequence[Array]) -> Series:
    """Return samples by STEP as a series: a row per STEP, with the previous usage where there is no sample."""
    samples = list(steps.values())
    raster, rows = raster_of(list(steps))
    resources = tuple(dict.fromkeys(resource for sample in samples for resource in sample.usage))
    usage = np.array([[sample.usage.get(resource, 0.0) for resource in resources] for sample in samples])
    return Series(
        store=name,
        times=(raster + 1) * STEP,  # a sample stands for the end of its STEP
        resources=resources,
        usage=usage.reshape(len(samples), len(resources))[rows],
        size=np.array([sample.size for sample in samples], np.int64)[rows],
        refused=np.sort(np.concatenate([np.zeros(0, np.int64), *refused])),
        queue_full=np.sort(np.concatenate([np.zeros(0, np.int64), *queue_full])),
    )


def raster_of(steps: Sequence[int]) -> tuple[Array, Array]:
    """Return all STEPs from the first to the last of `steps`, ascending, and for each the index of the last sample."""
    numbers = np.array(steps)
    raster = np.arange(numbers[0], numbers[-1] + 1)
    return raster, np.searchsorted(numbers, raster, side="right") - 1
