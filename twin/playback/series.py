"""Replay of a recording with samples of usage, refused puts and alerts of each store over time.

Whatever is compared with the twin's alerts reads these samples, so that nothing knows more than the twin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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


def play(
    path: str | Path,
    estate: Estate | str | Path,
    on_chunk: Callable[[Chunk, int], None] | None = None,
    *,
    until: int | None = None,
    on_piece: Callable[[Decoded, Mapping[str, Twin]], None] = lambda *_: None,
) -> PlayedRecording:
    """Replay a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) with a sample of each store per STEP.

    Args:
        path: the recording.
        estate: the estate, or its file.
        on_chunk: as for `twin.playback.replays.replay`.
        until: time of the last events that are played, microseconds; None: all are.
        on_piece: called with each piece of events, none longer than a STEP, and the twins that applied it.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end.
    """
    estate = as_estate(estate)
    player, samples = Player(estate), Samples(estate, _sample)
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
        on_piece(piece, player.twins)
        alerts += opened
        samples.add(piece, player.twins)
        for by_store, reasons in ((refused, _STORE_FULL), (queue_full, (MQRC_Q_FULL,))):
            for name, times in _refused(piece, stores, reasons):
                by_store[name].append(times)
        events += len(piece)
    alerts.sort(key=lambda alert: (alert.time, alert.store))
    return PlayedRecording(
        series={
            name: _series(name, steps, refused[name], queue_full[name])
            for name, steps in sorted(samples.by_store.items())
        },
        alerts=alerts,
        forecasts=samples.forecasts,
        events=events,
        dead_letters=dead_letters,
        twins=player.twins,
    )


def _sample(twin: MessageStore) -> _Sample:
    return _Sample(usage_of(twin), int(twin.tables.store.scalars[0]["bytes"]))


def _refused(decoded: Decoded, stores: Array, reasons: Sequence[int]) -> Iterable[tuple[str, Array]]:
    """Return (store, times i8[n]) of the puts with one of the reasons."""
    events = decoded.events[decoded.events["reason"] != 0]
    if not events.size:  # as nearly always, and asking for the reasons takes longer
        return []
    full = events[(events["op"] == PUT) & np.isin(events["reason"], reasons)]
    owners = stores[full["route"]]
    return [(name, full["time"][owners == name].copy()) for name in np.unique(owners).tolist()]


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
    """Return all STEPs from the first to the last, and for each of them the index of the last sample up to it.

    Args:
        steps: numbers of the STEPs that have a sample, ascending.
    """
    numbers = np.array(steps)
    raster = np.arange(numbers[0], numbers[-1] + 1)
    return raster, np.searchsorted(numbers, raster, side="right") - 1
