"""The state record of a structure.

Source: contract section 3 and 7 (`messages` counts whatever holds storage; what is left of a baseline is included).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import layout, offload, pools, smds
from twin.timestamps import as_text

if TYPE_CHECKING:
    from twin.structure import StructureTwin

_DEEPEST = 10
_COUNTERS = ("events", "duplicates", "gaps", "unmatched_gets", "full_puts", "overfull_puts", "refused_alters")
_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}


def record(twin: StructureTwin, qmgrs: Sequence[str], queues: Sequence[str]) -> dict[str, Any]:
    """The record, JSON-ready. Raises nothing; `time` is null before the first event."""
    store = twin.tables.store
    scalars, params = store.scalars[0], store.params[0]
    entries, elements = int(pools.entries_in_use(store)), int(pools.elements_in_use(store))
    ents_max, elems_max = int(params["ents_max"]), int(params["elems_max"])
    usage = 100.0 * max(entries / max(1, ents_max), elements / max(1, elems_max))
    return {
        "store": twin.name,
        "kind": "structure",
        "time": None if scalars["clock"] == layout.NEVER else as_text(int(scalars["clock"])),
        "messages": int(scalars["messages"]) + int(pools.base_left(store, int(scalars["base_messages"]))),
        "bytes": int(scalars["bytes"]),
        "uncommitted": int(scalars["uncommitted"]),
        "queues": _deepest(store.queues[: len(queues)], queues),
        **{name: int(scalars[name]) for name in _COUNTERS},
        "baseline": twin.drift.baseline,
        "drift_pct": twin.drift.pct,
        "forecast": None,
        "size": twin.size_now,
        "ents_max": ents_max,
        "ents_used": entries,
        "elems_max": elems_max,
        "elems_used": elements,
        "usage_pct": round(usage, 3),
        "alterable": True,
        "offloaded_messages": int(scalars["offloaded_messages"]),
        "offloaded_bytes": int(scalars["offloaded_bytes"]),
        "offload_rule": int(offload.highest_rule(store)),
        "smds": {qmgr: _dataset(store, row) for row, qmgr in enumerate(qmgrs)},
        "scm": None,
    }


def _deepest(rows: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """The ten deepest queues that hold anything, by depth, then name."""
    order = sorted(np.flatnonzero(rows["depth"]).tolist(), key=lambda row: (-int(rows["depth"][row]), names[row]))
    return [
        {"name": names[row], "depth": int(rows["depth"][row]), "bytes": int(rows["bytes"][row])}
        for row in order[:_DEEPEST]
    ]


def _dataset(store: layout.Store, row: int) -> dict[str, Any]:
    """One data set, named as in DISPLAY USAGE TYPE(SMDS) and SMF 115 QESD."""
    dataset = store.datasets[row]
    messages = int(dataset["messages"]) + int(pools.base_left(store, int(dataset["base_messages"])))
    return {
        "blocks_total": int(dataset["blocks_total"]),
        "blocks_used": int(smds.blocks_in_use(store, row)),
        "pages_used": int(smds.pages_in_use(store, row)),
        "messages": messages,
        "status": _STATUS[int(dataset["status"])],
    }
