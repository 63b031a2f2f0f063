"""The fields of a state record that every store with messages has.

Source: contract section 3 and 7 (`messages` counts whatever holds storage; what is left of a baseline is included).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import layout, pools
from twin.units import as_text

if TYPE_CHECKING:
    from twin.stores.message_store import MessageStore

_DEEPEST = 10
_COUNTERS = ("events", "duplicates", "gaps", "unmatched_gets", "full_puts", "overfull_puts", "refused_alters")


def common(twin: MessageStore) -> dict[str, Any]:
    """The common fields, JSON-ready. Raises nothing; `time` is null before the first event."""
    store = twin.tables.store
    scalars = store.scalars[0]
    return {
        "store": twin.name,
        "kind": twin.kind,
        "time": None if scalars["clock"] == layout.NEVER else as_text(int(scalars["clock"])),
        "messages": int(scalars["messages"]) + int(pools.base_left(store, int(scalars["base_messages"]))),
        "bytes": int(scalars["bytes"]),
        "uncommitted": int(scalars["uncommitted"]),
        "queues": _deepest(store.queues[: len(twin.queues)], twin.queues),
        **{name: int(scalars[name]) for name in _COUNTERS},
        "baseline": twin.drift.baseline,
        "drift_pct": twin.drift.pct,
        "forecast": twin.foresight.record(),
    }


def _deepest(rows: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """The ten deepest queues that hold anything, by depth, then name."""
    order = sorted(np.flatnonzero(rows["depth"]).tolist(), key=lambda row: (-int(rows["depth"][row]), names[row]))
    return [
        {"name": names[row], "depth": int(rows["depth"][row]), "bytes": int(rows["bytes"][row])}
        for row in order[:_DEEPEST]
    ]
