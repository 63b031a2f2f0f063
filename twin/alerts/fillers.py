"""Which queues fill a store: growth by queue since a mark in event time.

The queue that gets 2192 is not necessarily the one that filled the store (domain.md section 1): what grew is named
first, not what is asked for. Marks lie on a raster of 15 minutes; growth is counted from the mark before the last, so
over 15 to 30 minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels import layout
from kernels.clock import SECOND
from twin.alerts.episodes import Filler
from twin.state.arrays import Array

MARK = 15 * 60 * SECOND
_NAMED_AT_MOST = 5
_COUNTED = ("depth", "elems", "pages", "puts", "gets")


def mark(queues: Array) -> None:
    """Move the marks on: what was at the last mark is now before it. queues: QUEUE[n]."""
    for name in _COUNTED:
        queues[f"{name}_before"] = queues[f"{name}_then"]
        queues[f"{name}_then"] = queues[name]


def growth(queues: Array, counted: str) -> Array:
    """i8[n]: by how much each queue grew since the mark before the last, in entries, elements or pages."""
    grown: Array = queues[counted] - queues[f"{counted}_before"]
    return grown


def growth_span(now: int) -> int:
    """Microseconds over which `growth` counts at the time `now`: since the mark before the last."""
    return now % MARK + MARK


def pages_in_dataset(messages: Array, dataset: int, queues: int) -> Array:
    """i8[queues]: pages that each queue holds in one data set, counted message by message. messages: MESSAGE[n]."""
    inside = messages[messages["owner"] == dataset]  # free rows have no pages
    pages: Array = np.bincount(inside["queue"], inside["pages"], queues).astype(np.int64)
    return pages


def messages_in_scm(messages: Array, queues: int) -> Array:
    """i8[queues]: messages that each queue has in storage class memory, counted one by one. messages: MESSAGE[n]."""
    inside = messages[messages["marks"] & layout.MARK_IN_SCM != 0]  # free rows have no marks
    held: Array = np.bincount(inside["queue"], minlength=queues).astype(np.int64)
    return held


def rank_fillers(grown: Array, held: Array, names: Sequence[str]) -> tuple[Filler, ...]:
    """The queues that grew, by their share of the growth; of a store that does not grow, by share of what is held.

    grown, held: i8[n], by queue, in entries, elements or pages.
    """
    ranked = np.maximum(grown if grown.sum() > 0 else held, 0)
    total = int(ranked.sum())
    if total == 0:
        return ()
    order = sorted(np.flatnonzero(ranked).tolist(), key=lambda row: (-int(ranked[row]), names[row]))
    shares = [Filler(names[row], round(int(ranked[row]) / total, 4)) for row in order[:_NAMED_AT_MOST]]
    return tuple(filler for filler in shares if filler.share > 0)
