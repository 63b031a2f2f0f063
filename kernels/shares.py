"""What share of each of its resources a store has in use, and how much is held there in all: what tides are watched on.

How much is held in all rises and falls as flows do, wherever the rules put it: a burst that never reached a data set
tells how long the next one will last, which does.
"""

from __future__ import annotations

from kernels import meters, page_set, pools, queue_file, scm, smds
from kernels._compile import kernel, routine
from kernels.layout import PAGE_SET, QUEUE_FILE, STRUCTURE, Array, Store

ENTRIES, SPACE, SCM, HELD, FIRST_SET = 0, 1, 2, 3, 4  # rows of `tides`; data set d is FIRST_SET + d


@routine
def watch(store: Store, tick: int, shares: Array) -> float:
    """Read the shares in use at a tick into shares, f8[resources], follow their tides; the largest climb under way.

    Of a data set that can expand, the share of what it may become. HELD is no resource: shares[HELD] stays 0, its tide
    is watched: of a structure entries and elements of all messages, wherever they are, as shares of its own, added up.
    """
    params = store.params[0]
    shares[SCM] = 0.0
    shares[HELD] = 0.0
    if params.kind == PAGE_SET:
        shares[ENTRIES] = 0.0
        shares[SPACE] = page_set.pages_in_use(store) / max(1, page_set.usable_at_last(store))
    elif params.kind == QUEUE_FILE:
        shares[ENTRIES] = 0.0
        shares[SPACE] = queue_file.overflow(store) / max(1, params.file_max)
    else:
        shares[ENTRIES] = pools.entries_in_use(store) / max(1, params.ents_max)
        shares[SPACE] = pools.elements_in_use(store) / max(1, params.elems_max)
        if params.scm_max > 0:
            shares[SCM] = scm.bytes_in_use(store) / scm.bytes_at_most(store)
        for dataset in range(shares.size - FIRST_SET):
            most = smds.blocks_at_last(store, dataset)
            shares[FIRST_SET + dataset] = smds.blocks_in_use(store, dataset) / max(1, most)
    climbed = 0.0
    for resource in range(shares.size):
        if resource == HELD:
            meters.watch_tide(store, HELD, tick, _held(store) if params.kind == STRUCTURE else shares[SPACE])
            continue
        meters.watch_tide(store, resource, tick, shares[resource])
        climbed = max(climbed, shares[resource] - store.tides[resource].low)
    return climbed


@kernel
def _held(store: Store) -> float:
    """What all messages would take of a structure, half an element of each left empty."""
    params, scalars = store.params[0], store.scalars[0]
    each = pools.MESSAGE_OVERHEAD + pools.ELEMENT_BYTES // 2
    elements = (scalars.bytes + scalars.messages * each) / pools.ELEMENT_BYTES
    return scalars.messages / max(1, params.ents_max) + elements / max(1, params.elems_max)
