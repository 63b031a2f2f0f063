"""Storage class memory behind a structure, and the augmented space it costs its coupling facility.

A structure knows its own bounds only: SCMMAXSIZE, the coupling facility's SCM, and what the estate leaves of the
facility's storage. What all structures of a facility use together is told to the facility's own store.

Sources: seed "How storage class memory works with IBM MQ for z/OS" (augmented space is never taken from a structure);
domain.md section 3 (how much of it: assumptions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels import layout, scm
from twin.allocation import DYNAMIC_AUGMENTED_PPM, bounds

if TYPE_CHECKING:
    from twin.stores.structure import StructureTwin

_SECOND = 10**9  # nanoseconds


def set_params(twin: StructureTwin) -> None:
    """Write the bounds and the speeds where kernels read them; have SCM, or have it no more."""
    config = twin.config
    params = twin.tables.store.params[0]
    params["scm_max"], params["aug_max"] = bounds(twin.estate, config)
    params["aug_ppm"] = DYNAMIC_AUGMENTED_PPM
    params["stage_ns"] = _ns_a_block(config.scm_prestage_rate)
    params["fetch_ns"] = _ns_a_block(config.scm_prefetch_rate)
    params["read_us"] = config.scm_read_us
    store = twin.tables.store
    if store.scm[0]["enrolled"] == (config.scm_max_size is not None):
        return
    if config.scm_max_size is None:
        scm.bring_back(store)
        store.scm[:] = np.zeros(1, layout.SCM_USE)
        return
    twin.tables.reserve("order", store.messages.size)
    by_age = np.argsort(store.messages["age"][: int(store.scalars[0]["message_high"])], kind="stable")
    scm.enrol(twin.tables.store, by_age)


def _ns_a_block(rate: int) -> int:
    """Nanoseconds that a block of 4 KB takes at `rate` bytes/s, rounded up."""
    return -(-scm.BLOCK_BYTES * _SECOND // rate)


def fields(twin: StructureTwin) -> dict[str, Any] | None:
    """The state record's `scm`, as RMF and SMF 74.4 have it; None where the structure has none."""
    use = twin.tables.store.scm[0]
    if not use["enrolled"]:
        return None
    return {
        "max": int(twin.tables.store.params[0]["scm_max"]),
        "used": twin.scm_used,
        "ents": int(use["messages"]),
        "elems": int(use["elems"]),
        "messages": int(use["messages"]),
        "aug_fixed": twin.aug_fixed,
        "aug_dynamic": twin.aug_dynamic,
        "prestaged": int(use["prestaged"]),
        "prefetched": int(use["prefetched"]),
        "faults": int(use["faults"]),
        "fault_wait_s": int(use["fault_wait_us"]) / 1e6,
    }
