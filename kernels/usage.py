"""How full each resource of a store is, worked out here for all who ask, and the rises that it shows.

Alerts, state records, samples, forecasts and the meters read USAGE. Only what is checked at every put reads the
counters themselves (watch.py, offload.py). The total of all messages is metered too: it rises and falls with the flows,
wherever the rules place messages, so the length of a burst that never reached a data set predicts that of the next one,
which does.
"""

from __future__ import annotations

from kernels import meters, page_set, pools, queue_file, scm, smds
from kernels._compile import kernel
from kernels.layout import PAGE_SET, QUEUE_FILE, STRUCTURE, Store
from kernels.meter_rows import AUGMENTED, BLOCKS, DATA_SETS, ENTRIES, SCM, SPACE, TOTAL_TIDE

APART = 10  # times: a structure that much larger than a data set does not show its rises [assumed]


@kernel
def _note(store: Store, resource: int, used: int, total: int, maximum: int, held: int) -> None:
    row = store.usage[resource]
    row.used, row.total, row.maximum, row.held = used, total, maximum, held


@kernel
def read(store: Store) -> None:
    """Write USAGE of every resource of a store, as it is now."""
    params, scalars = store.params[0], store.scalars[0]
    held = scalars.messages + pools.base_left(store, scalars.base_messages)
    if params.kind == PAGE_SET:
        total, maximum = store.page_use[0].usable, page_set.max_usable_pages(store)
        _note(store, SPACE, page_set.pages_in_use(store), total, maximum, held)
    elif params.kind == QUEUE_FILE:
        blocks, in_use = params.file_max + params.np_buffer + params.p_buffer, queue_file.blocks_in_use(store)
        _note(store, SPACE, queue_file.overflow(store), params.file_max, params.file_max, held)
        _note(store, BLOCKS, in_use, blocks, blocks, held)
    else:
        _note(store, ENTRIES, pools.entries_in_use(store), params.ents_max, params.ents_max, held)
        _note(store, SPACE, pools.elements_in_use(store), params.elems_max, params.elems_max, held)
        in_scm, used = scm.messages_in_use(store), scm.bytes_in_use(store)
        _note(store, SCM, used, scm.bound(store), scm.max_bytes(store), in_scm)
        _note(store, AUGMENTED, scm.augmented_bytes(store, used), params.aug_max, params.aug_max, in_scm)
        for row in range(store.datasets.size):
            _read_data_set(store, row)


@kernel
def _read_data_set(store: Store, row: int) -> None:
    dataset = store.datasets[row]
    used, held = smds.blocks_in_use(store, row), dataset.messages + pools.base_left(store, dataset.base_messages)
    _note(store, DATA_SETS + row, used, dataset.blocks_total, smds.max_blocks(store, row), held)
    store.usage[DATA_SETS + row].pages = smds.pages_in_use(store, row)


@kernel
def _sample(store: Store) -> None:
    """Sample the share in use of every resource, of its size after all expansions.

    A data set that is APART times smaller than its structure has rises of its own, which that of all messages hardly
    shows. The share of TOTAL_TIDE, which cannot fill, stays 0; its rise is followed.
    """
    params, tides, usage = store.params[0], store.tides, store.usage
    read(store)
    tides[SPACE].share = usage[SPACE].used / max(1, usage[SPACE].maximum)
    if params.kind != STRUCTURE:
        return
    tides[ENTRIES].share = usage[ENTRIES].used / max(1, usage[ENTRIES].maximum)
    tides[SCM].share = usage[SCM].used / usage[SCM].maximum if usage[SCM].total > 0 else 0.0
    for row in range(DATA_SETS, DATA_SETS + store.datasets.size):
        blocks, tide = usage[row].maximum, tides[row]
        tide.share = usage[row].used / max(1, blocks)
        tide.apart = 1 if 1.0 * APART * blocks * params.ds_block < params.size_now else 0


@kernel
def meter(store: Store, before: int, tick: int) -> None:
    """Move the meters to a tick: begin its bin, fade older puts, sample the resources and follow their rises.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
    """
    meters.begin_bin(store, tick)
    meters.fade_puts(store, before, tick, store.datasets.size)
    _sample(store)
    params, tides, count = store.params[0], store.tides, _resources(store)
    fullest = params.share = 0.0
    for resource in range(count):
        fullest = max(fullest, tides[resource].share)
        if resource != SCM:
            params.share = max(params.share, tides[resource].share)
    params.low, params.high = min(params.low, params.share), max(params.high, params.share)
    for resource in range(count):
        share = tides[resource].share
        if resource == TOTAL_TIDE:
            share = _total(store) if params.kind == STRUCTURE else tides[SPACE].share
        meters.watch_tide(store, resource, tick, share, fullest)


@kernel
def _resources(store: Store) -> int:
    """Return the number of rows of `tides` in use."""
    return store.datasets.size + DATA_SETS


@kernel
def _total(store: Store) -> float:
    """Return the share of a structure that all messages would take, each leaving half an element empty.

    It is the sum of their entries and of their elements, wherever they are, as shares of those of the structure. Those
    of the baseline take what was measured.
    """
    params, scalars = store.params[0], store.scalars[0]
    each = pools.MESSAGE_OVERHEAD + pools.ELEMENT_BYTES // 2
    elements = (scalars.bytes + scalars.messages * each) / pools.ELEMENT_BYTES
    entries = scalars.messages + pools.base_left(store, scalars.base_ents) + params.scm_base_messages
    elements += pools.base_left(store, scalars.base_elems) + params.scm_base_elems
    for row in range(store.datasets.size):
        blocks = pools.base_left(store, store.datasets[row].base_blocks)
        elements += blocks * (params.ds_block / pools.ELEMENT_BYTES)
    return entries / max(1, params.ents_max) + elements / max(1, params.elems_max)


@kernel
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
