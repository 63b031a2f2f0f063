"""Utilisation of each resource of a store, sampled once per tick as input to rise detection.

The total of all messages is sampled too. It rises and falls with the flows, wherever the rules place messages: the
length of a burst that never reached a data set predicts the length of the next one, which does.
"""

from __future__ import annotations

from kernels import meters, page_set, pools, queue_file, scm, smds
from kernels._compile import kernel, routine
from kernels.layout import PAGE_SET, QUEUE_FILE, STRUCTURE, Array, Store
from kernels.resources import ENTRIES, FIRST_DATA_SET_TIDE, SCM_TIDE, SPACE, TOTAL_TIDE


@routine
def meter(store: Store, before: int, tick: int, shares: Array) -> float:
    """Let the meters go on to a tick: begin its bin, fade older puts, sample the resources; else as `watch`.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
        shares: f8[rows of `tides`], written.
    """
    meters.begin_bin(store, tick)
    meters.fade_puts(store, before, tick, shares.size - FIRST_DATA_SET_TIDE)
    return watch(store, tick, shares)


@routine
def watch(store: Store, tick: int, shares: Array) -> float:
    """Sample the share in use of every resource and follow its rise.

    The share of a data set that can expand is relative to its size after all expansions. TOTAL_TIDE is no resource:
    shares[TOTAL_TIDE] stays 0, but its rise is followed. For a structure it is the sum of the entries and of the
    elements of all messages, wherever they are, as shares of those of the structure.

    Args:
        store: arrays of the store.
        tick: the present tick.
        shares: f8[rows of `tides`], written.

    Returns:
        The largest climb under way, as a share.
    """
    params = store.params[0]
    shares[SCM_TIDE] = 0.0
    shares[TOTAL_TIDE] = 0.0
    if params.kind == PAGE_SET:
        shares[ENTRIES] = 0.0
        shares[SPACE] = page_set.pages_in_use(store) / max(1, page_set.max_usable_pages(store))
    elif params.kind == QUEUE_FILE:
        shares[ENTRIES] = 0.0
        shares[SPACE] = queue_file.overflow(store) / max(1, params.file_max)
    else:
        shares[ENTRIES] = pools.entries_in_use(store) / max(1, params.ents_max)
        shares[SPACE] = pools.elements_in_use(store) / max(1, params.elems_max)
        if params.scm_max > 0:
            shares[SCM_TIDE] = scm.bytes_in_use(store) / scm.max_bytes(store)
        for dataset in range(shares.size - FIRST_DATA_SET_TIDE):
            blocks = smds.max_blocks(store, dataset)
            shares[FIRST_DATA_SET_TIDE + dataset] = smds.blocks_in_use(store, dataset) / max(1, blocks)
    climb, usage = 0.0, 0.0
    for resource in range(shares.size):
        usage = max(usage, shares[resource])
    for resource in range(shares.size):
        if resource == TOTAL_TIDE:
            total = _total(store) if params.kind == STRUCTURE else shares[SPACE]
            meters.watch_tide(store, resource, tick, total, usage)
            continue
        meters.watch_tide(store, resource, tick, shares[resource], usage)
        climb = max(climb, shares[resource] - store.tides[resource].low)
    return climb


@kernel
def _total(store: Store) -> float:
    """Return the share of a structure that all messages would take, each leaving half an element empty."""
    params, scalars = store.params[0], store.scalars[0]
    each = pools.MESSAGE_OVERHEAD + pools.ELEMENT_BYTES // 2
    elements = (scalars.bytes + scalars.messages * each) / pools.ELEMENT_BYTES
    return scalars.messages / max(1, params.ents_max) + elements / max(1, params.elems_max)
