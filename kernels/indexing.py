"""Rebuilding the indexes of a store from its tables, after these were loaded from pages."""

from __future__ import annotations

from kernels import ids, index, units
from kernels._compile import routine
from kernels.layout import AVAILABLE, MARK_KEYED, NONE, Array, Store


@routine
def reindex(store: Store, messages_by_age: Array, held_by_age: Array) -> None:
    """Fill all indexes.

    Args:
        store: arrays of the store.
        messages_by_age: i8[...], rows of MESSAGE from the oldest to the youngest, free rows included.
        held_by_age: i8[...], rows of HELD from the oldest to the youngest, free rows included.
    """
    index.clear(store.message_buckets)
    for row in messages_by_age:
        message = store.messages[row]
        if message.state == AVAILABLE and message.marks & MARK_KEYED:
            ids.enter(store, row)
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
