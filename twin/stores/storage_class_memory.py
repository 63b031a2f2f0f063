"""Storage class memory behind a structure: what kernels need to know of it, and its part of the state record.

A structure knows its own bounds only: SCMMAXSIZE, its share of the coupling facility's SCM, and what the estate leaves
of the facility's storage. What all structures of a facility use together is reported to the facility's own twin.

Where SCM is over-committed, what others use is not there for a structure. Its share is what is left when all of them
take theirs. It does not depend on what the others use at the moment: that would have to come down from the facility's
twin, and arrive at a place among the structure's events that depends on batches. A structure's own puts may show that
others leave it more, or less (`kernels.scm.on_accepted_put`).

Sources: docs/storage-model.md, "Storage class memory".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels import layout, scm
from twin.capacity.structures import assured_scm, bounds
from twin.estate import Estate, Structure
from twin.estate.model import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED
from twin.state.tables import Tables

_SECOND_NS = 10**9


def scm_params(estate: Estate, config: Structure) -> dict[str, Any]:
    """Return the fields of PARAMS that bound a structure's SCM and give its speeds."""
    scm_most, aug_max = bounds(estate, config)
    return {
        "scm_max": min(scm_most, assured_scm(estate, config)),
        "scm_most": scm_most,
        "aug_max": aug_max,
        "aug_ppm": DYNAMIC_AUGMENTED_PPM,
        "stage_ns": _block_ns(config.scm_prestage_rate),
        "fetch_ns": _block_ns(config.scm_prefetch_rate),
        "read_us": config.scm_read_us,
    }


def enrol(tables: Tables, *, has_scm: bool) -> None:
    """Give a structure SCM or take it away, where that has changed: its messages are put in order, or brought back."""
    store = tables.store
    if store.scm[0]["enrolled"] == has_scm:
        return
    if not has_scm:
        scm.bring_back(store)
        store.scm[:] = np.zeros(1, layout.SCM_USE)
        return
    tables.reserve("order", store.messages.size)
    by_age = np.argsort(store.messages["age"][: int(store.scalars[0]["message_high"])], kind="stable")
    scm.enrol(tables.store, by_age)


def scm_fields(store: layout.Store) -> dict[str, Any] | None:
    """Return the state record's `scm`, named as in RMF and SMF 74.4; None where the structure has none."""
    use = store.scm[0]
    if not use["enrolled"]:
        return None
    used = int(scm.bytes_in_use(store))
    return {
        "max": int(scm.bound(store)),
        "used": used,
        "ents": int(use["messages"]),
        "elems": int(use["elems"]),
        "messages": int(use["messages"]),
        "aug_fixed": FIXED_AUGMENTED,
        "aug_dynamic": int(scm.augmented_bytes(store, used)),
        "prestaged": int(use["prestaged"]),
        "prefetched": int(use["prefetched"]),
        "faults": int(use["faults"]),
        "fault_wait_s": int(use["fault_wait_us"]) / 1e6,
    }


def _block_ns(rate: int) -> int:
    """Return the nanoseconds that a block of 4 KB takes at `rate` bytes/s, rounded up."""
    return -(-scm.BLOCK_BYTES * _SECOND_NS // rate)
