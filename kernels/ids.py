"""The index of messages by id: for each (queue, id) the available message that a get by that id takes.

A bucket holds one row per (queue, id): the oldest message of the highest priority. The other available messages with
the same id are in a heap below it, so that a get by id finds its message at once, however many share the id.
Uncommitted messages are not in the index. The index is in memory only and rebuilt when a store is loaded.
"""

from __future__ import annotations

import numpy as np

from kernels import heap, index, units
from kernels._compile import kernel, routine
from kernels.layout import AVAILABLE, MARK_KEYED, NONE, Array, Store


@kernel
def find(store: Store, queue: int, key: np.uint64) -> int:
    """Return the available message that a get of that queue and id takes, or NONE."""
    mixed = index.mix(key, queue)
    row = index.first(store.message_buckets, mixed)
    while row != NONE:
        if store.message_links[row].mixed == mixed:
            message = store.messages[row]
            if message.key == key and message.queue == queue:
                return row
        row = store.message_links[row].next
    return NONE


@kernel
def enter(store: Store, row: int) -> None:
    """Add a message that has become available."""
    message = store.messages[row]
    link = store.message_links[row]
    link.child = NONE
    first = find(store, message.queue, message.key)
    if first == NONE:
        index.enter(store.message_buckets, store.message_links, row, index.mix(message.key, message.queue))
    else:
        if heap.comes_before(store, row, first, heap.OF_ID):
            index.replace(store.message_buckets, store.message_links, first, row)
        heap.join(store, store.message_links, first, row, heap.OF_ID)


@routine
def _leave_others(store: Store, first: int, row: int) -> None:
    """Remove `row` from the messages that share its id, with `first` on top."""
    if row != first:
        heap.without(store, store.message_links, first, row, heap.OF_ID)
        return
    successor = heap.without_top(store, store.message_links, row, heap.OF_ID)
    index.replace(store.message_buckets, store.message_links, row, successor)


@kernel
def leave(store: Store, row: int, by_id: bool) -> None:
    """Remove a message that is no longer available. by_id: it is what `find` returns."""
    message = store.messages[row]
    first = row if by_id else find(store, message.queue, message.key)
    if first == row and store.message_links[row].child == NONE:
        index.leave(store.message_buckets, store.message_links, row)
    else:
        _leave_others(store, first, row)


@routine
def reindex(store: Store, messages_by_age: Array, held_by_age: Array) -> None:
    """Fill all indexes of a store, after its tables were loaded from pages.

    Args:
        store: arrays of the store.
        messages_by_age: i8[...], rows of MESSAGE from the oldest to the youngest, free rows included.
        held_by_age: i8[...], rows of HELD from the oldest to the youngest, free rows included.
    """
    index.clear(store.message_buckets)
    for row in messages_by_age:
        message = store.messages[row]
        if message.state == AVAILABLE and message.marks & MARK_KEYED:
            enter(store, row)
    index.clear(store.held_buckets)
    for row in held_by_age:
        get = store.held[row]
        if get.used == 1 and get.keyed == 1:
            index.enter(store.held_buckets, store.held_links, row, index.mix(get.key, get.queue))
    index.clear(store.unit_buckets)
    unit = int(store.scalars[0].unit_head)
    while unit != NONE:
        units.enter(store, unit)
        unit = int(store.units[unit].next)
