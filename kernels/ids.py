"""The index of messages by id: for each (queue, id) the available message that a get by that id takes.

A bucket holds one row per (queue, id): the oldest message of the highest priority. The other available messages with
the same id are in a heap below it, so that a get by id finds its message at once, however many share the id.
Uncommitted messages are not in the index. The index is in memory only and rebuilt when a store is loaded.
"""

from __future__ import annotations

import numpy as np

from kernels import heap, index
from kernels._compile import kernel, routine
from kernels.layout import NONE, Store


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
def leave(store: Store, row: int) -> None:
    """Remove a message that is no longer available."""
    message = store.messages[row]
    first = find(store, message.queue, message.key)
    if first == row and store.message_links[row].child == NONE:
        index.leave(store.message_buckets, store.message_links, row)
    else:
        _leave_others(store, first, row)
