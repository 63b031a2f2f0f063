"""Demands: the puts of a recording as requests, which the given estate may refuse.

In a recording a put with 2192 or 2056 is a fact. As a demand, each put is tried: the given estate decides whether it
fits. Gets, ends of units of work and expiries happen as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernels.event_loop import (
    MQRC_NO_MSG_AVAILABLE,
    MQRC_Q_FULL,
    MQRC_Q_SPACE_NOT_AVAILABLE,
    MQRC_STORAGE_MEDIUM_FULL,
)
from kernels.layout import FLAG_HAS_MSGID, GET, PUT
from twin.events import EventBlock
from twin.state.arrays import Array

_FULL = (MQRC_STORAGE_MEDIUM_FULL, MQRC_Q_SPACE_NOT_AVAILABLE)
_REFUSALS = (*_FULL, MQRC_Q_FULL)


@dataclass(slots=True)
class Refusals:
    """Puts of a store, and those that were refused. Counts are messages, `first_full` microseconds since 1970."""

    puts: int = 0  # messages asked to be put
    full: int = 0  # with 2192, of distributed queue managers 2056
    queue_full: int = 0  # with 2053
    first_full: int | None = None  # time of the first of them

    def add(self, events: Array) -> None:
        """Count the refused puts among events, EVENT[n], in order of time."""
        puts = events[events["op"] == PUT]
        full = puts[np.isin(puts["reason"], _FULL)]
        self.puts += int(puts["count"].sum())
        self.full += int(full["count"].sum())
        self.queue_full += int(puts["count"][puts["reason"] == MQRC_Q_FULL].sum())
        if self.first_full is None and full.size:
            self.first_full = int(full["time"][0])


@dataclass(slots=True)
class StoreRefusals:
    """Refusals of a store as recorded, and by the given estate in the replay.

    unserved_gets: gets of the recording whose message was refused, or had not come.
    """

    recorded: Refusals = field(default_factory=Refusals)
    replayed: Refusals = field(default_factory=Refusals)
    unserved_gets: int = 0


def as_demands(block: EventBlock) -> EventBlock:
    """Return a block whose refused puts are tried again, one message per event."""
    events = block.events
    single = (events["op"] != PUT) & ((events["op"] != GET) | (events["flags"] & FLAG_HAS_MSGID != 0))
    copies = np.where(single, 1, events["count"])
    rows = np.repeat(np.arange(events.size), copies)
    demands = np.ascontiguousarray(events[rows])
    is_first = np.diff(rows, prepend=-1) != 0
    is_copy = copies[rows] > 1
    demands["count"][is_copy] = 1
    demands["seq"][~is_first] = -1  # a number is taken once
    demands["reason"][(demands["op"] == PUT) & np.isin(demands["reason"], _REFUSALS)] = 0
    starts = np.cumsum(copies) - copies
    extras = {int(starts[row]): text for row, text in block.extras.items()}
    return EventBlock(block.store, demands, extras)


def count_unserved(events: Array) -> int:
    """Return the gets among events, EVENT[n] after they were applied, that found no message."""
    return int(((events["op"] == GET) & (events["reason"] == MQRC_NO_MSG_AVAILABLE)).sum())
