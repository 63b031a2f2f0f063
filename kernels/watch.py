"""Conditions of a store: those that are reported at once, and what time alone does at ticks.

- A condition fires once and is then disarmed. The twin arms it again when it clears the alert. A put that was accepted
  shows that there was room, however full the model is: only a refused one fires `full`. Sources: [IBM: z/OS MVS System
  Messages, IXC585E] (structure full monitoring at or above FULLTHRESHOLD); [IBM: MQRC 2192]; [assumed] (thresholds of
  data sets, page sets and queue files); docs/alerts.md#conditions.
- Ticks: the event loop passes quiet ticks by itself; at all others it stops for the twin.
"""

from __future__ import annotations

from kernels import ids, meters, page_set, pools, queue_file, scm, smds, storage
from kernels._compile import kernel, routine
from kernels.clock import HALF_HOUR_TICKS, SECOND, TICK, time_to_turn_to
from kernels.layout import HELD_SHIFT, NEVER, NORMAL, NOTED, PAGE_SET, QUEUE_SHIFT, STRUCTURE, UNIT_SHIFT, Store, touch
from kernels.scm import NANOSECONDS

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
        space = float(pools.placement(store, length)[1])
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
    place, elements = pools.placement(store, length)
    if place == pools.TO_DATASET and not smds.has_room(store, qmgr, smds.pages_of(store, length)):
        store.datasets[qmgr].last_full = scalars.clock
        _fire_dataset(store, qmgr, DATASET_FULL)
        return
    if pools.can_be_put(store, length):
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


# --- ticks ------------------------------------------------------------------------------------------------------------
# A tick is quiet if it changes nothing but samples and meters: no alert is open, no report is due, nothing expires, no
# movement of storage class memory and no automatic alter. By half hours the event loop notes how many messages were put
# and how full the store was, and stops when it has no more room for notes.

QUEUE_SAMPLE_US = 15 * 60 * SECOND  # microseconds between two samples of what queues hold
MIN_GROWTH_PCT = 10  # of MAXDEPTH since the last sample but one, from which the growth of a queue is believed [assumed]
ALTER_TICKS = 60 * SECOND // TICK  # between two samples of automatic alter [assumed]
_SWEEP_TICKS = 6  # between two searches for expired held gets

PASSED, NEEDS_TWIN, NEEDS_JUDGEMENT = range(3)  # what became of a tick


@kernel
def _mark(store: Store) -> None:
    """Take a sample of every queue and keep the last one."""
    for row in range(store.params[0].queues):
        queue = store.queues[row]
        queue.depth_before, queue.depth_then = queue.depth_then, queue.depth
        queue.elems_before, queue.elems_then = queue.elems_then, queue.elems
        queue.pages_before, queue.pages_then = queue.pages_then, queue.pages
        queue.puts_before, queue.puts_then = queue.puts_then, queue.puts
        queue.gets_before, queue.gets_then = queue.gets_then, queue.gets
    for page in range(store.queues_dirty.size):
        store.queues_dirty[page] = 1


@kernel
def begin_tick(store: Store, before: int, tick: int) -> None:
    """Sample the queues and free the rows of gets held for an hour, if that is due.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
    """
    marks = tick * TICK // QUEUE_SAMPLE_US - before * TICK // QUEUE_SAMPLE_US
    if marks > 0:
        _mark(store)
    if marks > 1:
        _mark(store)
    if store.scalars[0].held_open > 0 and tick // _SWEEP_TICKS > before // _SWEEP_TICKS:
        ids.sweep_held_gets(store, store.params[0].queues)


@kernel
def _is_at_threshold(store: Store) -> bool:
    """Return True if entries or elements in use reach the FULLTHRESHOLD of a structure (0: never)."""
    params = store.params[0]
    return params.full_threshold > 0 and (
        pools.entries_in_use(store) * 100 >= params.full_threshold * params.ents_max
        or pools.elements_in_use(store) * 100 >= params.full_threshold * params.elems_max
    )


@kernel
def _is_quiet(store: Store, tick: int) -> bool:
    """Return True if the way to a tick changes samples and meters only."""
    params, scalars = store.params[0], store.scalars[0]
    if params.attended or store.scm[0].enrolled or scalars.in_doubt > 0 or scalars.full_puts != params.seen_full_puts:
        return False
    if scalars.expiring > 0 and params.scan_us > 0:
        scan = tick * TICK // params.scan_us
        if scan > scalars.tick * TICK // params.scan_us and params.expires_from <= scan * params.scan_us:
            return False
    return not (params.alters and _is_at_threshold(store))


@kernel
def _may_fill_queue(store: Store) -> bool:
    """Return True if a queue may hold MAXDEPTH messages within the lead, at the growth since its last sample but one.

    That growth took at least the time between two samples; the twin knows how long.
    """
    params = store.params[0]
    if params.limits == 0:
        return False
    for row in range(params.queues):
        queue = store.queues[row]
        grown = queue.depth - queue.depth_before
        room = queue.max_depth - (queue.depth - queue.uncommitted_gets)
        grows = queue.max_depth > 0 and 100 * grown >= MIN_GROWTH_PCT * queue.max_depth
        if grows and room > 0 and room * (QUEUE_SAMPLE_US // SECOND) <= params.lead_s * grown:
            return True
    return False


@kernel
def _note(store: Store, tick: int) -> None:
    """Note the puts before a tick, the first of a half hour that is acted on, and the shares, for the twin."""
    params, scalars = store.params[0], store.scalars[0]
    params.noted_ticks[params.noted] = tick
    params.noted_puts[params.noted] = scalars.puts + scalars.full_puts
    noted = params.noted_shares[params.noted]
    noted[0], noted[1], noted[2] = params.share, params.low, params.high
    params.low = params.high = params.share
    params.noted += 1


@routine
def pass_quietly(store: Store, tick: int) -> int:
    """Pass the ticks up to `tick`, which the next event reaches, in one step if they are quiet.

    Returns:
        PASSED. NEEDS_TWIN: they are not quiet, and nothing was done. NEEDS_JUDGEMENT: they are passed, and the twin has
        to judge what the meters and samples say.
    """
    if not _is_quiet(store, tick):
        return NEEDS_TWIN
    params, scalars = store.params[0], store.scalars[0]
    before = scalars.tick
    begin_tick(store, before, tick)
    storage.on_tick(store, before, tick)
    if params.alters and tick // ALTER_TICKS > before // ALTER_TICKS:
        scalars.armed |= THRESHOLD_ENTRIES | THRESHOLD_ELEMENTS
    meters.meter_usage(store, before, tick)
    scalars.tick = tick
    if tick // HALF_HOUR_TICKS > before // HALF_HOUR_TICKS:
        _note(store, tick)
        if params.noted == NOTED:
            return NEEDS_JUDGEMENT
    is_rising = meters.leads_to_full(store, tick)
    if (is_rising and tick >= params.look_from) or (params.has_outlook and not is_rising) or tick >= params.due_from:
        return NEEDS_JUDGEMENT
    return NEEDS_JUDGEMENT if _may_fill_queue(store) else PASSED


@routine
def turn_back(store: Store, time: int, queues: int) -> None:
    """Turn the clock back before an event: every stored time that would lie in the future is taken as of now.

    The tick acted on last becomes that of the clock, and later ticks are acted on again. Held gets that have expired
    stay so.

    Args:
        store: arrays of the store.
        time: time of the event, microseconds.
        queues: number of rows of QUEUE in use.
    """
    ids.sweep_held_gets(store, queues)
    scalars = store.scalars[0]
    now = time_to_turn_to(store, time)
    tick = now // TICK
    scalars.clock = now
    scalars.far = NEVER
    scalars.back = NEVER
    scalars.support = store.params[0].trust
    scalars.tick = tick
    scalars.turns += 1
    scalars.last_full_ents = min(scalars.last_full_ents, now)
    scalars.last_full_elems = min(scalars.last_full_elems, now)
    for dataset in range(store.datasets.size):
        store.datasets[dataset].last_full = min(store.datasets[dataset].last_full, now)
    store.page_use[0].last_full = min(store.page_use[0].last_full, now)
    store.file_use[0].last_full = min(store.file_use[0].last_full, now)
    store.file_use[0].checkpoint_at = min(store.file_use[0].checkpoint_at, now)
    store.scm[0].free_at = min(store.scm[0].free_at, now * NANOSECONDS)
    for row in range(scalars.held_high):
        if store.held[row].used == 1 and store.held[row].held_at > now:
            store.held[row].held_at = now
            touch(store.held_dirty, row, HELD_SHIFT)
    for row in range(scalars.unit_high):
        if store.units[row].used == 1 and store.units[row].prepared_at > now:
            store.units[row].prepared_at = now
            touch(store.units_dirty, row, UNIT_SHIFT)
    for queue in range(queues):
        if store.queues[queue].last_full > now:
            store.queues[queue].last_full = now
            touch(store.queues_dirty, queue, QUEUE_SHIFT)
        if store.queues[queue].got_at > tick:
            store.queues[queue].got_at = tick
            touch(store.queues_dirty, queue, QUEUE_SHIFT)
    meters.turn_back(store, tick)
