"""Utilisation of each resource of a store, sampled once per tick as input to rise detection.

The total of all messages is sampled too. It rises and falls with the flows, wherever the rules place messages: the
length of a burst that never reached a data set predicts the length of the next one, which does.
"""

from __future__ import annotations

from kernels import meters, page_set, pools, queue_file, scm, smds
from kernels._compile import kernel, routine
from kernels.layout import PAGE_SET, QUEUE_FILE, STRUCTURE, Store
from kernels.resources import ENTRIES, FIRST_DATA_SET_TIDE, SCM_TIDE, SPACE, TOTAL_TIDE

APART = 10  # times: a structure that much larger than a data set does not show its rises [assumed]


@routine
def meter(store: Store, before: int, tick: int) -> None:
    """Let the meters go on to a tick: begin its bin, fade older puts, sample the resources and follow their rises.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
    """
    meters.begin_bin(store, tick)
    meters.fade_puts(store, before, tick, store.datasets.size)
    _sample(store)
    tides, count = store.tides, _resources(store)
    usage = 0.0
    for resource in range(count):
        usage = max(usage, tides[resource].share)
    for resource in range(count):
        share = tides[resource].share
        if resource == TOTAL_TIDE:
            share = _total(store) if store.params[0].kind == STRUCTURE else tides[SPACE].share
        meters.watch_tide(store, resource, tick, share, usage)


@routine
def leads_to_full(store: Store, tick: int) -> bool:
    """Return True if a rise is high enough for a forecast, and one could fill its resource within the horizon.

    Args:
        store: arrays of the store; PARAMS say how high, how much faster a rise may become, and the horizon.
        tick: that was metered last.
    """
    params = store.params[0]
    climb, may_fill = 0.0, False
    for resource in range(_resources(store)):
        tide = store.tides[resource]
        height = max(tide.share - tide.low, 0.0)
        climb = max(climb, height)
        pace = height / max(1, tick - tide.began) * params.look_pace
        if tide.share + pace * params.look_ticks >= 1.0:
            may_fill = True
    return may_fill and climb >= params.look_rise


@kernel
def _resources(store: Store) -> int:
    """Return the number of rows of `tides` in use."""
    return store.datasets.size + FIRST_DATA_SET_TIDE


@kernel
def _sample(store: Store) -> None:
    """Sample the share in use of every resource.

    The share of a data set that can expand is relative to its size after all expansions. One that is APART times
    smaller than its structure has rises of its own, which that of all messages hardly shows. TOTAL_TIDE is no resource:
    its share stays 0, but its rise is followed. For a structure it is the sum of the entries and of the elements of all
    messages, wherever they are, as shares of those of the structure.
    """
    params, tides = store.params[0], store.tides
    if params.kind == PAGE_SET:
        tides[SPACE].share = page_set.pages_in_use(store) / max(1, page_set.max_usable_pages(store))
    elif params.kind == QUEUE_FILE:
        tides[SPACE].share = queue_file.overflow(store) / max(1, params.file_max)
    else:
        tides[ENTRIES].share = pools.entries_in_use(store) / max(1, params.ents_max)
        tides[SPACE].share = pools.elements_in_use(store) / max(1, params.elems_max)
        tides[SCM_TIDE].share = scm.bytes_in_use(store) / scm.max_bytes(store) if scm.bound(store) > 0 else 0.0
        for dataset in range(store.datasets.size):
            blocks, tide = smds.max_blocks(store, dataset), tides[FIRST_DATA_SET_TIDE + dataset]
            tide.share = smds.blocks_in_use(store, dataset) / max(1, blocks)
            tide.apart = 1 if 1.0 * APART * blocks * params.ds_block < params.size_now else 0


@kernel
def _total(store: Store) -> float:
    """Return the share of a structure that all messages would take, each leaving half an element empty."""
    params, scalars = store.params[0], store.scalars[0]
    each = pools.MESSAGE_OVERHEAD + pools.ELEMENT_BYTES // 2
    elements = (scalars.bytes + scalars.messages * each) / pools.ELEMENT_BYTES
    return scalars.messages / max(1, params.ents_max) + elements / max(1, params.elems_max)
