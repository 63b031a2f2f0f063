"""Chains of all messages of a structure by priority and age, across queues, as KEYPRIORITY1 needs them.

There are ten chains of the structure, by priority, and ten of storage class memory. The mover takes the youngest
message of the structure and the oldest of SCM. A message whose place in its chain is not near goes to a heap beside it
(see heap.py). Source: [IBM: IBM MQ, "How storage class memory works with IBM MQ for z/OS"] (priority, then age, decides
what moves).
"""

from __future__ import annotations

from kernels import heap
from kernels._compile import kernel, routine
from kernels.layout import MARK_IN_ORDER, MARK_ORDER_LATE, NONE, PRIORITIES, Row, Store, touch_row


@kernel
def _join(store: Store, ends: Row, before: int, row: int, after: int) -> None:
    """Insert `row` between its neighbours (NONE: the chain's end)."""
    link = store.order[row]
    link.prev = before
    link.next = after
    touch_row(store.order_dirty, row)
    if before == NONE:
        ends.head = row
    else:
        store.order[before].next = row
        touch_row(store.order_dirty, before)
    if after == NONE:
        ends.tail = row
    else:
        store.order[after].prev = row
        touch_row(store.order_dirty, after)


@kernel
def append(store: Store, row: int) -> None:
    """Append a message just put, the youngest of all, to the structure's chain of its priority."""
    message = store.messages[row]
    ends = store.scm_ends[int(message.priority)]
    message.marks |= MARK_IN_ORDER
    _join(store, ends, ends.tail, row, NONE)


@kernel
def _heap_of(chain: int) -> int:
    return heap.YOUNGEST if chain < PRIORITIES else heap.OLDEST


@kernel
def first(store: Store, chain: int) -> int:
    """Return the message that the mover takes next from a chain, or NONE."""
    ends = store.scm_ends[chain]
    row = ends.tail if chain < PRIORITIES else ends.head
    if ends.late == NONE:
        return int(row)
    if row == NONE or heap.comes_before(store, ends.late, row, _heap_of(chain)):
        return int(ends.late)
    return int(row)


@kernel
def enter(store: Store, row: int, chain: int) -> None:
    """Insert a message by its age into the chain, or into the heap beside it."""
    ends = store.scm_ends[chain]
    age = store.messages[row].age
    if ends.tail == NONE or store.messages[ends.tail].age < age:
        _join(store, ends, ends.tail, row, NONE)
        ends.finger = row
    elif store.messages[ends.head].age > age:
        _join(store, ends, NONE, row, ends.head)
        ends.finger = row
    else:
        _enter_within(store, row, chain)


@routine
def _enter_within(store: Store, row: int, chain: int) -> None:
    """Search the place of a message from both ends alternately, with the finger as one of them.

    Messages move by age and return by unit of work, so that the place of the next one is beside that of the last one.
    """
    ends = store.scm_ends[chain]
    age = store.messages[row].age
    low = ends.head
    high = ends.tail
    if ends.finger != NONE and store.messages[ends.finger].age < age:
        low = ends.finger
    elif ends.finger != NONE:
        high = ends.finger
    for _ in range(heap.MAX_STEPS):
        after = store.order[low].next
        if store.messages[after].age > age:
            _join(store, ends, low, row, after)
            ends.finger = row
            return
        low = after
        before = store.order[high].prev
        if store.messages[before].age < age:
            _join(store, ends, before, row, high)
            ends.finger = row
            return
        high = before
    link = store.order[row]
    link.next = NONE
    link.prev = NONE
    link.child = NONE
    touch_row(store.order_dirty, row)
    store.messages[row].marks |= MARK_ORDER_LATE
    ends.late = row if ends.late == NONE else heap.join(store, store.order, ends.late, row, _heap_of(chain))
    store.order[ends.late].next = NONE
    store.order[ends.late].prev = NONE


@routine
def _leave_heap(store: Store, row: int, chain: int) -> None:
    ends = store.scm_ends[chain]
    if ends.late == row:
        ends.late = heap.without_top(store, store.order, row, _heap_of(chain))
    else:
        heap.without(store, store.order, int(ends.late), row, _heap_of(chain))
    store.messages[row].marks ^= MARK_ORDER_LATE


@kernel
def leave(store: Store, row: int, chain: int) -> None:
    """Remove a message from its chain, or from the heap beside it; the caller marks the message as written."""
    if store.messages[row].marks & MARK_ORDER_LATE:
        _leave_heap(store, row, chain)
        return
    link = store.order[row]
    ends = store.scm_ends[chain]
    if ends.finger == row:
        ends.finger = link.prev if link.prev != NONE else link.next
    if link.prev == NONE:
        ends.head = link.next
    else:
        store.order[link.prev].next = link.next
        touch_row(store.order_dirty, link.prev)
    if link.next == NONE:
        ends.tail = link.prev
    else:
        store.order[link.next].prev = link.prev
        touch_row(store.order_dirty, link.next)
