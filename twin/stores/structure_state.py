"""The parts of a structure's state record.

Source: contract section 3 and 7 (what is left of a baseline is included).
"""

from __future__ import annotations

from typing import Any

from kernels import layout, pools, smds
from twin.stores.structure_view import EXPAND_STATUS


def dataset_fields(store: layout.Store, row: int) -> dict[str, Any]:
    """One data set, named as in DISPLAY USAGE TYPE(SMDS) and SMF 115 QESD."""
    dataset = store.datasets[row]
    messages = int(dataset["messages"]) + int(pools.base_left(store, int(dataset["base_messages"])))
    return {
        "blocks_total": int(dataset["blocks_total"]),
        "blocks_used": int(smds.blocks_in_use(store, row)),
        "pages_used": int(smds.pages_in_use(store, row)),
        "messages": messages,
        "status": EXPAND_STATUS[int(dataset["status"])],
    }
