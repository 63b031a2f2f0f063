"""One look at a store: how full each resource is and what each queue holds.

A data set or page set is measured against what it may grow to, not against its size now: one that expands at 90 % of
what it has is in no danger, and whoever watches it knows so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import layout, page_set, smds
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore


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
    rows = store.queues[: len(twin.queues)]
    return Look(
        time=int(scalars["clock"]),
        usage=_usage(twin),
        size=int(scalars["bytes"]),
        queues=tuple(twin.queues),
        holdings=np.stack([rows["depth"], rows["elems"], rows["pages"]], axis=1),
    )


def _usage(twin: MessageStore) -> dict[str, float]:
    store = twin.tables.store
    if twin.kind == "page_set":
        return {"pages": 100.0 * page_set.pages_in_use(store) / max(1, page_set.max_usable_pages(store))}
    if twin.kind == "queue_file":
        return {"file": twin.resource("file").usage_pct}
    usage = {resource: twin.resource(resource).usage_pct for resource in ("entries", "elements")}
    for row, qmgr in enumerate(twin.qmgrs):
        usage[f"smds/{qmgr}"] = 100.0 * smds.blocks_in_use(store, row) / max(1, smds.max_blocks(store, row))
    return usage
