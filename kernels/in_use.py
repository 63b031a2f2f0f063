"""Entries, elements, blocks and SCM that a structure has in use, for its state record and forecast, in one call."""

from __future__ import annotations

import numpy as np

from kernels import offload, pools, scm, smds
from kernels._compile import routine
from kernels.layout import Array, Store

USAGE = np.dtype(
    [
        ("entries", "i8"),
        ("elements", "i8"),
        ("scm_bytes", "i8"),
        ("rule", "i8"),  # see offload.highest_rule
        ("scm_bound", "i8"),  # bytes that may be used, see scm.bound
        ("scm_max", "i8"),  # the same, see scm.max_bytes
    ]
)
DATASET_USAGE = np.dtype([("blocks_max", "i8"), ("blocks", "i8"), ("pages", "i8"), ("messages", "i8")])


@routine
def read(store: Store, usage: Array, datasets: Array) -> None:
    """Read what is in use, what is left of the baseline included.

    Args:
        store: arrays of a structure.
        usage: USAGE[1], written.
        datasets: DATASET_USAGE[rows of `store.datasets`], written.
    """
    usage[0].entries = pools.entries_in_use(store)
    usage[0].elements = pools.elements_in_use(store)
    usage[0].scm_bytes = scm.bytes_in_use(store)
    usage[0].rule = offload.highest_rule(store)
    usage[0].scm_bound = scm.bound(store)
    usage[0].scm_max = scm.max_bytes(store)
    for row in range(store.datasets.size):
        dataset = store.datasets[row]
        datasets[row].blocks_max = smds.max_blocks(store, row)
        datasets[row].blocks = smds.blocks_in_use(store, row)
        datasets[row].pages = smds.pages_in_use(store, row)
        datasets[row].messages = dataset.messages + pools.base_left(store, dataset.base_messages)
