"""Held gets: gets whose message has not arrived yet, or is not available.

A get is held for an hour of event time and takes its message when that arrives or becomes available. In a unit of work
it keeps waiting after the commit and is dropped by the backout. A get of several messages is one row with a count and
takes them one by one. The rule: docs/events.md#duplicates-gaps-and-late-events.
"""

from __future__ import annotations

import numpy as np

from kernels import ids
from kernels._compile import kernel, routine
from kernels.clock import SECOND
from kernels.layout import HELD_SHIFT, NONE, QUEUE_SHIFT, UNIT_SHIFT, Store, touch

HELD_FOR = 3600 * SECOND


@kernel
def _expired(store: Store, row: int) -> bool:
    return store.scalars[0].clock - store.held[row].held_at >= HELD_FOR


@routine
def hold(store: Store, key: np.uint64, keyed: bool, queue: int, unit: int, count: int) -> None:
    """Hold a get of `count` messages. `unit` is a row of UNIT, or NONE outside syncpoint."""
    scalars = store.scalars[0]
    row = scalars.held_free
    if row == NONE:
        row = scalars.held_high
        scalars.held_high += 1
    else:
        scalars.held_free = store.held[row].next
    get = store.held[row]
    get.key = key
    get.age = scalars.holds
    get.held_at = scalars.clock
    get.queue = queue
    get.count = count
    get.keyed = 1 if keyed else 0
    get.used = 1
    get.unit = NONE
    get.next = NONE
    owner = store.queues[queue]
    before = owner.keyed_tail if keyed else owner.any_tail
    get.prev = before
    if before != NONE:
        store.held[before].next = row
        touch(store.held_dirty, before, HELD_SHIFT)
    elif keyed:
        owner.keyed_head = row
    else:
        owner.any_head = row
    if keyed:
        owner.keyed_tail = row
        ids.enter_get(store, row)
    else:
        owner.any_tail = row
    if unit != NONE:
        _join_unit(store, row, unit)
    scalars.holds += 1
    scalars.held_open += 1
    scalars.unmatched_gets += count
    touch(store.held_dirty, row, HELD_SHIFT)
    touch(store.queues_dirty, queue, QUEUE_SHIFT)


@kernel
def _join_unit(store: Store, row: int, unit: int) -> None:
    get = store.held[row]
    owner = store.units[unit]
    get.unit = unit
    get.unit_next = NONE
    get.unit_prev = owner.held_tail
    if owner.held_tail == NONE:
        owner.held_head = row
    else:
        store.held[owner.held_tail].unit_next = row
        touch(store.held_dirty, owner.held_tail, HELD_SHIFT)
    owner.held_tail = row
    touch(store.units_dirty, unit, UNIT_SHIFT)


@kernel
def _leave_unit(store: Store, row: int) -> None:
    get = store.held[row]
    owner = store.units[get.unit]
    if get.unit_prev == NONE:
        owner.held_head = get.unit_next
    else:
        store.held[get.unit_prev].unit_next = get.unit_next
        touch(store.held_dirty, get.unit_prev, HELD_SHIFT)
    if get.unit_next == NONE:
        owner.held_tail = get.unit_prev
    else:
        store.held[get.unit_next].unit_prev = get.unit_prev
        touch(store.held_dirty, get.unit_next, HELD_SHIFT)
    touch(store.units_dirty, get.unit, UNIT_SHIFT)
    get.unit = NONE


@routine
def forget(store: Store, row: int) -> None:
    """Remove a held get from every chain and free its row; the caller adjusts `unmatched_gets`."""
    scalars = store.scalars[0]
    get = store.held[row]
    owner = store.queues[get.queue]
    keyed = get.keyed == 1
    if get.unit != NONE:
        _leave_unit(store, row)
    if get.prev != NONE:
        store.held[get.prev].next = get.next
        touch(store.held_dirty, get.prev, HELD_SHIFT)
    elif keyed:
        owner.keyed_head = get.next
    else:
        owner.any_head = get.next
    if get.next != NONE:
        store.held[get.next].prev = get.prev
        touch(store.held_dirty, get.next, HELD_SHIFT)
    elif keyed:
        owner.keyed_tail = get.prev
    else:
        owner.any_tail = get.prev
    if keyed:
        ids.leave_get(store, row)
    touch(store.queues_dirty, get.queue, QUEUE_SHIFT)
    touch(store.held_dirty, row, HELD_SHIFT)
    get.used = 0
    get.next = scalars.held_free
    scalars.held_free = row
    scalars.held_open -= 1


@kernel
def give_message(store: Store, row: int) -> None:
    """Give a held get one message; it keeps waiting if it wants more."""
    store.scalars[0].unmatched_gets -= 1
    if store.held[row].count > 1:
        store.held[row].count -= 1
        touch(store.held_dirty, row, HELD_SHIFT)
    else:
        forget(store, row)


@kernel
def _oldest_keyed(store: Store, key: np.uint64, queue: int) -> int:
    row = ids.find_get(store, queue, key)
    while row != NONE and _expired(store, row):
        forget(store, row)
        row = ids.find_get(store, queue, key)
    return row


@kernel
def _oldest_of_any(store: Store, queue: int) -> int:
    row = store.queues[queue].any_head
    while row != NONE and _expired(store, row):
        forget(store, row)
        row = store.queues[queue].any_head
    return row


@kernel
def match(store: Store, queue: int, key: np.uint64, keyed: bool) -> int:
    """Return the longest held get that takes a message of that queue and id, or NONE."""
    if store.scalars[0].held_open == 0:
        return NONE
    return _match(store, queue, key, keyed)


@routine
def _match(store: Store, queue: int, key: np.uint64, keyed: bool) -> int:
    get = _oldest_of_any(store, queue)
    if keyed:
        by_key = _oldest_keyed(store, key, queue)
        if get == NONE or (by_key != NONE and store.held[by_key].age < store.held[get].age):
            get = by_key
    return get


@kernel
def release_unit(store: Store, unit: int, dropped: bool) -> None:
    """Release the held gets of a unit that ends: they keep waiting (commit) or are dropped (backout)."""
    row = store.units[unit].held_head
    while row != NONE:
        following = store.held[row].unit_next
        if not dropped:
            touch(store.held_dirty, row, HELD_SHIFT)
            store.held[row].unit = NONE
        else:
            if not _expired(store, row):
                store.scalars[0].unmatched_gets -= store.held[row].count
            forget(store, row)
        row = following
    store.units[unit].held_head = NONE
    store.units[unit].held_tail = NONE


@routine
def sweep(store: Store, queues: int) -> None:
    """Free the rows of gets held for an hour; they stay counted. `queues` is the number of rows of QUEUE in use."""
    for queue in range(queues):
        row = store.queues[queue].keyed_head
        while row != NONE and _expired(store, row):
            forget(store, row)
            row = store.queues[queue].keyed_head
        _oldest_of_any(store, queue)
