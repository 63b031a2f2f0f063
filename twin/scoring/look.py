"""Samples of a store: usage of each resource and contents of each queue.

The usage of a data set or page set is relative to its maximum, not to its current size: one that expands at 90 % is in
no danger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import layout
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore


@dataclass(frozen=True, slots=True)
class Look:
    """Sample of a store."""

    time: int  # the store's clock, microseconds
    usage: dict[str, float]  # by resource, percent
    size: int  # bytes of the messages held
    queues: tuple[str, ...]
    holdings: Array  # i8[queues, 3]: messages, elements, 4 KB pages of each queue


def look(twin: MessageStore) -> Look | None:
    """Take a sample of a store; None before its first event."""
    store = twin.tables.store
    scalars = store.scalars[0]
    if scalars["clock"] == layout.NEVER:
        return None
    rows = store.queues[: len(twin.queues)]
    return Look(
        time=int(scalars["clock"]),
        usage={str(resource): pct for resource, pct in twin.usage_of_maximum().items()},
        size=int(scalars["bytes"]),
        queues=tuple(twin.queues),
        holdings=np.stack([rows["depth"], rows["elems"], rows["pages"]], axis=1),
    )
