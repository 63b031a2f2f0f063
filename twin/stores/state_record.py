"""The fields of a state record that every store with messages has.

Sources: docs/state.md. `messages` counts whatever holds storage, what is left of a baseline included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels import expiry, layout, pools
from twin.units import as_text

EXPAND_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}
_MAX_QUEUES = 10
_COUNTERS = (
    *("events", "duplicates", "gaps", "unmatched_gets", "full_puts", "queue_full_puts", "overfull_puts"),
    "refused_alters",
)


def common_fields(store: layout.Store, queues: Sequence[str]) -> dict[str, Any]:
    """Return what the arrays say of any store, JSON-ready; `time` is null before the first event.

    Args:
        store: the arrays.
        queues: names of the queues by row.
    """
    scalars = store.scalars[0]
    base = int(scalars["base_messages"])
    return {
        "time": None if scalars["clock"] == layout.NEVER else as_text(int(scalars["clock"])),
        "messages": int(scalars["messages"]) + (int(pools.base_left(store, base)) if base else 0),
        "bytes": int(scalars["bytes"]),
        "uncommitted": int(scalars["uncommitted"]),
        "in_doubt": int(scalars["in_doubt"]),
        "expired_held": int(expiry.count_expired(store)) if scalars["expiring"] else 0,
        "queues": _deepest(store.queues[: len(queues)], queues),
        **{name: int(scalars[name]) for name in _COUNTERS},
    }


def dataset_fields(dataset: Any, used: Any) -> dict[str, Any]:
    """Return the fields of one data set, named as in DISPLAY USAGE TYPE(SMDS) and SMF 115 QESD.

    Args:
        dataset: its row of DATASET.
        used: its row of `kernels.in_use.DATASET_USAGE`.
    """
    return {
        "blocks_total": int(dataset["blocks_total"]),
        "blocks_max": int(used["blocks_max"]),
        "blocks_used": int(used["blocks"]),
        "pages_used": int(used["pages"]),
        "messages": int(used["messages"]),
        "status": EXPAND_STATUS[int(dataset["status"])],
    }


def _deepest(rows: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the ten deepest queues that hold anything, by depth, then name."""
    order = sorted(np.flatnonzero(rows["depth"]).tolist(), key=lambda row: (-int(rows["depth"][row]), names[row]))
    return [
        {"name": names[row], "depth": int(rows["depth"][row]), "bytes": int(rows["bytes"][row])}
        for row in order[:_MAX_QUEUES]
    ]
