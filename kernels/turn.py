"""The effect of a clock that goes back: every stored time that would lie in the future is taken as of now."""

from __future__ import annotations

from kernels import held, meters
from kernels._compile import routine
from kernels.clock import TICK, time_to_turn_to
from kernels.layout import HELD_SHIFT, NEVER, QUEUE_SHIFT, UNIT_SHIFT, Store, touch
from kernels.scm import NANOSECONDS


@routine
def turn_back(store: Store, time: int, queues: int) -> None:
    """Turn the clock back before an event.

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
