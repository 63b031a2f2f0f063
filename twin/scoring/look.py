"""One look at a store: how full each resource is and what each queue holds.

A data set is measured against what it may grow to, not against its size now: one that expands at 90 % of what it has is
in no danger, and whoever watches it knows so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import layout, smds
from twin.arrays import Array
from twin.message_store import MessageStore


@dataclass(frozen=True, slots=True)
class Look:
    """time: the store's clock, microseconds; usage: percent of each resource; size: bytes of the messages held;
    holdings: i8[q, 3], what each queue holds (messages, elements, 4 KB pages).
    """

    time: int
    usage: dict[str, float]
    size: int
    queues: tuple[str, ...]
    holdings: Array


def look(twin: MessageStore) -> Look | None:
    """The store as it is now; None before its first event."""
    store = twin.tables.store
    scalars = store.scalars[0]
    if scalars["clock"] == layout.NEVER:
        return None
    viewer = twin.viewer()
    usage = {resource: viewer.usage_pct(resource) for resource in twin.resources()}
    for row, qmgr in enumerate(twin.qmgrs):
        if f"smds/{qmgr}" in usage:
            usage[f"smds/{qmgr}"] = 100.0 * smds.blocks_in_use(store, row) / max(1, _blocks_at_most(store, row))
    rows = store.queues[: len(twin.queues)]
    return Look(
        time=int(scalars["clock"]),
        usage=usage,
        size=int(scalars["bytes"]),
        queues=tuple(twin.queues),
        holdings=np.stack([rows["depth"], rows["elems"], rows["pages"]], axis=1),
    )


def _blocks_at_most(store: layout.Store, dataset: int) -> int:
    """Blocks a data set can come to have, expanded as far as it may."""
    data = store.datasets[dataset]
    total, limit, extent = int(data["blocks_total"]), int(data["limit"]), int(data["extent"])
    if not store.params[0]["ds_expand"] or data["status"] != layout.NORMAL or total >= limit:
        return total
    return total + (limit - total) // extent * extent if extent else limit  # without an extent: tenths of what it has
