"""Chains of all messages of a structure by priority and age, whatever their queue: what KEYPRIORITY1 looks at.

Ten are of the structure, by priority, ten of storage class memory. Source: seed "How storage class memory works with
IBM MQ for z/OS" (priority, then age, decides what moves).
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import MARK_IN_ORDER, NONE, ORDER_SHIFT, Row, Store, touch


@kernel
def _join(store: Store, ends: Row, before: int, row: int, after: int) -> None:
    """Put `row` between its neighbours (NONE: the chain's end)."""
    link = store.order[row]
    link.prev = before
    link.next = after
    touch(store.order_dirty, row, ORDER_SHIFT)
    if before == NONE:
        ends.head = row
    else:
        store.order[before].next = row
        touch(store.order_dirty, before, ORDER_SHIFT)
    if after == NONE:
        ends.tail = row
    else:
        store.order[after].prev = row
        touch(store.order_dirty, after, ORDER_SHIFT)


@kernel
def append(store: Store, row: int) -> None:
    """Enter a message that was put this moment, the youngest of all, into the structure's chain of its priority."""
    message = store.messages[row]
    ends = store.scm_ends[int(message.priority)]
    message.marks |= MARK_IN_ORDER
    _join(store, ends, ends.tail, row, NONE)


@kernel
def enter(store: Store, row: int, chain: int) -> None:
    """Enter a message at its age.

    It is looked for from both ends at once, the finger being one of them: messages move by age and return by the unit
    of work, so that the next one's place is beside the last one's.
    """
    ends = store.scm_ends[chain]
    age = store.messages[row].age
    if ends.tail == NONE or store.messages[ends.tail].age < age:
        _join(store, ends, ends.tail, row, NONE)
    elif store.messages[ends.head].age > age:
        _join(store, ends, NONE, row, ends.head)
    else:
        low = ends.head
        high = ends.tail
        if ends.finger != NONE and store.messages[ends.finger].age < age:
            low = ends.finger
        elif ends.finger != NONE:
            high = ends.finger
        while True:
            after = store.order[low].next
            if store.messages[after].age > age:
                _join(store, ends, low, row, after)
                break
            low = after
            before = store.order[high].prev
            if store.messages[before].age < age:
                _join(store, ends, before, row, high)
                break
            high = before
    ends.finger = row


@kernel
def leave(store: Store, row: int, chain: int) -> None:
    """Take a message out of its chain."""
    link = store.order[row]
    ends = store.scm_ends[chain]
    if ends.finger == row:
        ends.finger = link.prev if link.prev != NONE else link.next
    if link.prev == NONE:
        ends.head = link.next
    else:
        store.order[link.prev].next = link.next
        touch(store.order_dirty, link.prev, ORDER_SHIFT)
    if link.next == NONE:
        ends.tail = link.prev
    else:
        store.order[link.next].prev = link.prev
        touch(store.order_dirty, link.next, ORDER_SHIFT)
