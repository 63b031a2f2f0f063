"""One look at a store: how full each resource is and what each queue holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels import layout
from twin.arrays import Array
from twin.structure import StructureTwin


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


def look(twin: StructureTwin) -> Look | None:
    """The store as it is now; None before its first event."""
    store = twin.tables.store
    scalars = store.scalars[0]
    if scalars["clock"] == layout.NEVER:
        return None
    viewer = twin.viewer()
    resources = ["entries", "elements", *(f"smds/{qmgr}" for qmgr in twin.qmgrs)]
    rows = store.queues[: len(twin.queues)]
    return Look(
        time=int(scalars["clock"]),
        usage={resource: viewer.usage_pct(resource) for resource in resources},
        size=int(scalars["bytes"]),
        queues=tuple(twin.queues),
        holdings=np.stack([rows["depth"], rows["elems"], rows["pages"]], axis=1),
    )
