"""Ticks: what time alone does to a store, and which ticks need the twin.

A tick is quiet if it changes nothing but samples and meters: no alert is open, no report is due, nothing expires, no
movement of storage class memory and no automatic alter. The event loop passes quiet ticks by itself; at all others it
stops for the twin. By half hours it notes how many messages were put and how full the store was, and stops when it has
no more room for notes.
"""

from __future__ import annotations

from kernels import held, meters, pools, storage, usage
from kernels._compile import kernel, routine
from kernels.clock import HALF_HOUR_TICKS, SECOND, TICK, time_to_turn_to
from kernels.layout import HELD_SHIFT, NEVER, NOTED, QUEUE_SHIFT, UNIT_SHIFT, Store, touch
from kernels.scm import NANOSECONDS
from kernels.watch import THRESHOLD_ELEMENTS, THRESHOLD_ENTRIES

MARK = 15 * 60 * SECOND  # microseconds between two samples of what queues hold
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
def begin(store: Store, before: int, tick: int) -> None:
    """Sample the queues and free the rows of gets held for an hour, if that is due.

    Args:
        store: arrays of the store.
        before: the tick acted on last.
        tick: the present tick.
    """
    marks = tick * TICK // MARK - before * TICK // MARK
    if marks > 0:
        _mark(store)
    if marks > 1:
        _mark(store)
    if store.scalars[0].held_open > 0 and tick // _SWEEP_TICKS > before // _SWEEP_TICKS:
        held.sweep(store, store.params[0].queues)


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
        if grows and room > 0 and room * (MARK // SECOND) <= params.lead_s * grown:
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
    begin(store, before, tick)
    storage.on_tick(store, before, tick)
    if params.alters and tick // ALTER_TICKS > before // ALTER_TICKS:
        scalars.armed |= THRESHOLD_ENTRIES | THRESHOLD_ELEMENTS
    usage.meter(store, before, tick)
    scalars.tick = tick
    if tick // HALF_HOUR_TICKS > before // HALF_HOUR_TICKS:
        _note(store, tick)
        if params.noted == NOTED:
            return NEEDS_JUDGEMENT
    is_rising = usage.leads_to_full(store, tick)
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
    held.sweep(store, queues)
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
