"""A recording played through the twin, and what was seen on the way: usage over time, 2192s, alerts, forecasts.

Truth and every baseline read the same series, so that none of them sees more than another. Levels are looked at every
30 seconds of event time: z/OS looks at a structure about once a minute (structure full monitoring), monitors of others
every 15 to 60 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from kernels.clock import SECOND
from kernels.event_loop import MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import PUT
from twin.alerts.episodes import Alert
from twin.estate import Estate
from twin.events import Decoded, Decoder
from twin.forecast.outlook import Forecast
from twin.recordings import Chunk, open_recording
from twin.replays import Player
from twin.scoring.look import Look, look
from twin.scoring.predictions import Predictions
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore
from twin.warm import warm

STEP = 30 * SECOND  # of event time, from one look at the levels to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One store over time, looked at every STEP from its first event to its last.

    times: i8[n], microseconds since 1970, STEP apart; usage: f8[n, r], percent of each resource in use; size: i8[n],
    bytes of the messages held; holdings: i8[n, q, 3], what each queue holds (messages, elements, 4 KB pages); refused:
    i8[m], times of the puts with reason 2192, in order.
    """

    store: str
    times: Array
    resources: tuple[str, ...]
    usage: Array
    size: Array
    queues: tuple[str, ...]
    holdings: Array
    refused: Array

    @property
    def days(self) -> float:
        """Its span in days."""
        return float(self.times[-1] - self.times[0] + STEP) / (86_400 * SECOND)


@dataclass(slots=True, kw_only=True)
class Played:
    """What playing a recording brought.

    series and predictions (the twin's): by store, sorted; alerts: ordered by time, then store.
    """

    series: dict[str, Series]
    alerts: list[Alert]
    predictions: dict[str, Predictions]
    events: int


def play(path: str | Path, estate: Estate, on_chunk: Callable[[Chunk, int], None] | None = None) -> Played:
    """Play a recording (`.ndjson`, `.ndjson.zst`, `.arrow`) through the twins of an estate, looking at every STEP.

    on_chunk: as `twin.replays.replay`. UsageError: no such file, an unknown suffix, a file that cannot be read to its
    end.
    """
    warm()
    decoder, player = Decoder(estate), Player(estate)
    records: dict[str, _Record] = {}
    alerts: list[Alert] = []
    events = 0
    stores = np.array([route.store for route in estate.routes])
    for chunk in open_recording(path):
        decoded = chunk.decode(decoder)
        for piece in _pieces(decoded):
            alerts += player.feed(piece)
            for name in np.unique(stores[np.unique(piece.events["route"])]).tolist():
                twin = player.twins[name]
                if isinstance(twin, MessageStore):  # nobody puts to a shared store
                    record = records.setdefault(name, _Record())
                    record.add(look(twin))
                    record.forecasts += twin.drain_forecasts()
        for name, times in _refused(decoded, stores):
            records[name].refused.append(times)
        events += len(decoded)
        if on_chunk is not None:
            on_chunk(chunk, events)
    alerts.sort(key=lambda alert: (alert.time, alert.store))
    series = {name: record.series(name) for name, record in sorted(records.items()) if record.looks}
    predictions = {name: Predictions.of(records[name].forecasts) for name in series}
    return Played(series=series, alerts=alerts, predictions=predictions, events=events)


def _pieces(decoded: Decoded) -> Iterator[Decoded]:
    """The events cut wherever the time of one lies in another STEP than that of the one before."""
    if not len(decoded):
        return
    cuts = np.flatnonzero(np.diff(decoded.events["time"] // STEP)) + 1
    edges = [0, *cuts.tolist(), len(decoded)]
    extras = sorted(decoded.extras.items())
    at = 0
    for start, end in pairwise(edges):
        own = {}
        while at < len(extras) and extras[at][0] < end:
            own[extras[at][0] - start] = extras[at][1]
            at += 1
        yield Decoded(decoded.events[start:end], decoded.record[start:end], decoded.index[start:end], own)


def _refused(decoded: Decoded, stores: Array) -> Iterable[tuple[str, Array]]:
    """(store, times i8[n]) of the puts with reason 2192."""
    events = decoded.events
    full = events[(events["op"] == PUT) & (events["reason"] == MQRC_STORAGE_MEDIUM_FULL)]
    owners = stores[full["route"]]
    return [(name, full["time"][owners == name].copy()) for name in np.unique(owners).tolist()]


@dataclass(slots=True)
class _Record:
    """Of one store: the looks at it, the last one of each STEP; refused puts and forecasts as they came."""

    looks: list[Look] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    refused: list[Array] = field(default_factory=list)

    def add(self, seen: Look | None) -> None:
        if seen is None:
            return
        if self.looks and self.looks[-1].time // STEP == seen.time // STEP:
            self.looks[-1] = seen
        else:
            self.looks.append(seen)

    def series(self, name: str) -> Series:
        cells = np.array([seen.time for seen in self.looks]) // STEP
        raster = np.arange(cells[0], cells[-1] + 1)
        rows = np.searchsorted(cells, raster, side="right") - 1  # in a silent STEP the level stays
        resources = tuple(dict.fromkeys(resource for seen in self.looks for resource in seen.usage))
        queues = self.looks[-1].queues  # those known first keep their rows
        usage = np.array([[seen.usage.get(resource, 0.0) for resource in resources] for seen in self.looks])
        holdings = np.zeros((len(self.looks), len(queues), 3), np.int64)
        for at, seen in enumerate(self.looks):
            holdings[at, : len(seen.holdings)] = seen.holdings
        return Series(
            store=name,
            times=(raster + 1) * STEP,  # a look is at the end of its STEP
            resources=resources,
            usage=usage.reshape(len(self.looks), len(resources))[rows],
            size=np.array([seen.size for seen in self.looks], np.int64)[rows],
            queues=queues,
            holdings=holdings[rows],
            refused=np.sort(np.concatenate([np.zeros(0, np.int64), *self.refused])),
        )
