"""Conditions that are reported at once, not at the next tick: thresholds reached, stores that refuse puts.

A condition fires once and is then disarmed. The twin arms it again when it clears the alert. A put that was accepted
shows that there was room, however full the model is: only a refused one fires `full`. Sources: [IBM: z/OS MVS
System Messages, IXC585E] (structure full monitoring at or above FULLTHRESHOLD); [IBM: MQRC 2192]; [assumed] (thresholds
of data sets, page sets and queue files); docs/alerts.md#conditions.
"""

from __future__ import annotations

from kernels import meters, offload, page_set, pools, queue_file, scm, smds, storage
from kernels._compile import kernel, routine
from kernels.layout import NORMAL, PAGE_SET, QUEUE_SHIFT, STRUCTURE, Store, touch

THRESHOLD_ENTRIES = 1  # bits of scalars.armed and .fired of a structure
THRESHOLD_ELEMENTS = 2
FULL_ENTRIES = 4
FULL_ELEMENTS = 8
SCM_EXHAUSTED = 16
AUGMENTED_EXHAUSTED = 32

THRESHOLD = 1  # bits of scalars.armed and .fired of a page set or queue file
FULL = 2
CANNOT_EXPAND = 4

DATASET_THRESHOLD = 1  # bits of datasets.armed and .fired
DATASET_FULL = 2
DATASET_CANNOT_EXPAND = 4

QUEUE_FULL = 1  # bit of queues.armed and .fired


@kernel
def _fire(store: Store, bit: int) -> None:
    scalars = store.scalars[0]
    if scalars.armed & bit:
        scalars.armed ^= bit
        scalars.fired |= bit


@kernel
def _fire_dataset(store: Store, dataset: int, bit: int) -> None:
    data = store.datasets[dataset]
    if data.armed & bit:
        data.armed ^= bit
        data.fired |= bit


@kernel
def depth(store: Store, queue: int) -> int:
    """Return the depth of a queue as CURDEPTH counts it: uncommitted puts included, uncommitted gets not.

    Source: [IBM: MQ 9.0, CurrentQDepth, q106410_].
    """
    return store.queues[queue].depth - store.queues[queue].uncommitted_gets


@kernel
def is_at_max_depth(store: Store, queue: int) -> bool:
    """Return True if a queue holds MAXDEPTH messages, so that a put fails [IBM: MQ 9.1, MaxQDepth, q103290_]."""
    limit = store.queues[queue].max_depth
    return limit > 0 and depth(store, queue) >= limit


@kernel
def _fire_queue(store: Store, queue: int) -> None:
    row = store.queues[queue]
    if row.armed & QUEUE_FULL:
        row.armed ^= QUEUE_FULL
        row.fired |= QUEUE_FULL
        touch(store.queues_dirty, queue, QUEUE_SHIFT)


@kernel
def look_at_queue(store: Store, queue: int) -> bool:
    """Fire `queue-full` after a put if the next one fails with 2053; return True if it has fired."""
    if is_at_max_depth(store, queue):
        _fire_queue(store, queue)
    return store.queues[queue].fired != 0


@kernel
def on_full_queue(store: Store, queue: int, length: int, count: int) -> None:
    """Count puts that got 2053, and fire `queue-full` for their queue."""
    store.scalars[0].queue_full_puts += count
    store.queues[queue].last_full = store.scalars[0].clock
    store.queues[queue].puts += count
    space = storage.space_of(store, length)
    if store.params[0].kind == STRUCTURE:
        space = float(offload.placement(store, length)[1])
    meters.count_at_max_depth(store, space, count)
    touch(store.queues_dirty, queue, QUEUE_SHIFT)
    _fire_queue(store, queue)


@kernel
def on_refused_put(store: Store, queue: int, qmgr: int, length: int, count: int) -> None:
    """Count puts that got 2192 or 2056, and fire `full` for the resource that is full by the model."""
    store.scalars[0].full_puts += count
    store.queues[queue].puts += count
    touch(store.queues_dirty, queue, QUEUE_SHIFT)
    meters.count_refused(store, qmgr, length, storage.space_of(store, length), count)
    kind = store.params[0].kind
    if kind == STRUCTURE:
        _fire_full_of_structure(store, qmgr, length)
    elif kind == PAGE_SET:
        store.page_use[0].last_full = store.scalars[0].clock
        _fire(store, FULL)
    else:
        store.file_use[0].last_full = store.scalars[0].clock
        _fire(store, FULL)


@kernel
def _fire_full_of_structure(store: Store, qmgr: int, length: int) -> None:
    """Fire `full` for the data set that the put needed, else for the pool nearest to its limit.

    The data set is checked as it is: a put that was refused expands nothing.
    """
    scalars = store.scalars[0]
    params = store.params[0]
    place, elements = offload.placement(store, length)
    if place == offload.TO_DATASET and not smds.has_room(store, qmgr, smds.pages_of(store, length)):
        store.datasets[qmgr].last_full = scalars.clock
        _fire_dataset(store, qmgr, DATASET_FULL)
        return
    if offload.can_be_put(store, length):
        scm.on_refused_put(store, elements)
    # Measured numbers may be so large that the product exceeds 64 bits, so it is computed in floats.
    if 1.0 * pools.entries_in_use(store) * params.elems_max >= 1.0 * pools.elements_in_use(store) * params.ents_max:
        scalars.last_full_ents = scalars.clock
        _fire(store, FULL_ENTRIES)
    else:
        scalars.last_full_elems = scalars.clock
        _fire(store, FULL_ELEMENTS)


@kernel
def is_dataset_above_threshold(store: Store, dataset: int) -> bool:
    """Return True if more than 90 % of the blocks of a data set are in use."""
    total = store.datasets[dataset].blocks_total
    return smds.blocks_in_use(store, dataset) * 100 > smds.EXPAND_ABOVE * total


@kernel
def look(store: Store, qmgr: int) -> bool:
    """Fire the conditions that hold after a put by that queue manager; return True if any has fired."""
    kind = store.params[0].kind
    if kind == STRUCTURE:
        return _look_at_structure(store, qmgr)
    if kind == PAGE_SET:
        return _look_at_pages(store)
    return _look_at_file(store)


@routine
def _look_at_pages(store: Store) -> bool:
    use = store.page_use[0]
    used = page_set.pages_in_use(store)
    if used > 0 and used * 100 > page_set.EXPAND_ABOVE * use.usable:
        _fire(store, THRESHOLD)
        if use.status != NORMAL:
            _fire(store, CANNOT_EXPAND)
    return store.scalars[0].fired != 0


@routine
def _look_at_file(store: Store) -> bool:
    used = queue_file.overflow(store)
    if used * 100 > queue_file.WARN_ABOVE * store.params[0].file_max:
        _fire(store, THRESHOLD)
    return store.scalars[0].fired != 0


@routine
def move(store: Store, now: int) -> bool:
    """Begin the movement of SCM due at `now`, in nanoseconds, and fire what it lacks; return True if anything fired."""
    result = scm.begin(store, now)
    if result == scm.NO_SCM:
        _fire(store, SCM_EXHAUSTED)
    elif result == scm.NO_AUGMENTED:
        _fire(store, AUGMENTED_EXHAUSTED)
    return store.scalars[0].fired != 0


@kernel
def _look_at_structure(store: Store, dataset: int) -> bool:
    """Fire the conditions that hold for the structure and the data set of the queue manager that put."""
    params = store.params[0]
    scalars = store.scalars[0]
    entries = pools.entries_in_use(store)
    elements = pools.elements_in_use(store)
    if params.full_threshold > 0:
        if entries * 100 >= params.full_threshold * params.ents_max:
            _fire(store, THRESHOLD_ENTRIES)
        if elements * 100 >= params.full_threshold * params.elems_max:
            _fire(store, THRESHOLD_ELEMENTS)
    data = store.datasets[dataset]
    if data.messages > 0 or data.base_blocks > 0:
        if is_dataset_above_threshold(store, dataset):
            _fire_dataset(store, dataset, DATASET_THRESHOLD)
            if data.status != NORMAL:
                _fire_dataset(store, dataset, DATASET_CANNOT_EXPAND)
    return scalars.fired != 0 or data.fired != 0
