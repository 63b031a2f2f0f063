"""Queues that fill a store, ranked by their growth.

The queue whose puts fail with 2192 is not necessarily the one that filled the store: queues are ranked by growth, not
by failed puts. Samples are taken every 15 minutes of event time. Growth is counted from the last sample but one, so
over 15 to 30 minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels import layout
from kernels.clock import TICK
from kernels.ticks import MARK
from twin.records import Filler
from twin.state.arrays import Array

_MAX_NAMED = 5


def growth(queues: Array, counted: str) -> Array:
    """Return the growth of each queue since the last sample but one, i8[n]: entries, elements or pages."""
    grown: Array = queues[counted] - queues[f"{counted}_before"]
    return grown


def growth_span(now: int, began: int | None) -> int:
    """Return the span that `growth` covers, microseconds, at least a tick. `began`: the store's first event."""
    span = now % MARK + MARK
    return span if began is None else max(TICK, min(span, now - began))


def pages_in_dataset(messages: Array, dataset: int, queues: int) -> Array:
    """Return the pages that each queue holds in one data set, i8[queues]."""
    inside = messages[messages["owner"] == dataset]  # free rows have no pages
    pages: Array = np.bincount(inside["queue"], inside["pages"], queues).astype(np.int64)
    return pages


def messages_in_scm(messages: Array, queues: int) -> Array:
    """Return the messages that each queue has in storage class memory, i8[queues]. messages: MESSAGE[n]."""
    inside = messages[messages["marks"] & layout.MARK_IN_SCM != 0]  # free rows have no marks
    counts: Array = np.bincount(inside["queue"], minlength=queues).astype(np.int64)
    return counts


def rank_fillers(grown: Array, held: Array, names: Sequence[str]) -> tuple[Filler, ...]:
    """Return the queues with the largest growth, i8[n]; if nothing grew, those that hold most."""
    ranked = np.maximum(grown if grown.sum() > 0 else held, 0)
    total = int(ranked.sum())
    if total == 0:
        return ()
    order = sorted(np.flatnonzero(ranked).tolist(), key=lambda row: (-int(ranked[row]), names[row]))
    shares = [Filler(names[row], round(int(ranked[row]) / total, 4)) for row in order[:_MAX_NAMED]]
    return tuple(filler for filler in shares if filler.share > 0)
