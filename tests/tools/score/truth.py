"""Truth: the fillings of a store that ended in 2192 (`twin.playback.pages`), with the queues that grew in them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from tests.tools.score.series import QueueSeries
from twin.playback import pages as plain

_COUNTED = {"entries": 0, "elements": 1, "scm": 1}  # column of `QueueSeries.holdings`; pages for any other resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling(plain.Filling):
    """Filling of a store, with the queues that filled it."""

    grown: tuple[tuple[str, float], ...]  # (queue, share of the growth since the onset), descending


def fillings(series: QueueSeries) -> list[Filling]:
    """Return the fillings of a store in order of time."""
    return [Filling(**asdict(own), grown=_grown(series, own)) for own in plain.fillings(series)]


def _grown(series: QueueSeries, filling: plain.Filling) -> tuple[tuple[str, float], ...]:
    holdings = series.holdings[:, :, _COUNTED.get(filling.resource, 2)]
    sample = max(0, int(np.searchsorted(series.times, filling.first, side="right")) - 1)
    began = min(sample, int(np.searchsorted(series.times, filling.onset)))
    grown = np.maximum(holdings[sample] - holdings[began], 0)
    order = np.argsort(-grown, kind="stable")
    total = max(1, int(grown.sum()))
    return tuple((series.queues[row], int(grown[row]) / total) for row in order.tolist() if grown[row])
