"""Heaps and chains of messages: by queue and priority, by age; uncommitted ones by unit of work.

A message that returns, or is committed, after younger ones have arrived is late. If its place in the chain is near, it
is inserted there, otherwise into a heap beside the chain. The first message is the older of the head of the chain and
the top of the heap. So no order of commits and backouts makes the search for a place long. Source: [IBM: IBM MQ, MQGET,
"first in, first out within priority"].
"""

from __future__ import annotations

from kernels._compile import kernel, routine
from kernels.layout import CHAIN_SHIFT, MARK_LATE, NONE, PRIORITIES, UNIT_SHIFT, Array, Store, touch, touch_row

# --- heaps ------------------------------------------------------------------------------------------------------------
# Pairing heaps of messages: the highest priority on top, then the oldest, or in some heaps the youngest. A heap is
# stored in the rows of an array with the fields `child`, `next` and `prev`: a row's first child, its next sibling, and
# its previous sibling or, for a first child, its parent. The row on top has no siblings, so its `next` and `prev` are
# free for the owner of the heap. Inserting takes constant time and removing takes logarithmic time, amortised, in any
# order. Source: [published: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting heap",
# 1986].

OF_CHAIN, OLDEST, YOUNGEST = range(3)
"""Kinds of heaps: beside a chain of MESSAGE; beside one of ORDER, with the oldest or the youngest on top."""

MAX_STEPS = 16  # from each end of a chain to the place of a late message, which otherwise goes to the heap beside it


@kernel
def comes_before(store: Store, row: int, other: int, which: int) -> bool:
    """Return True if message `row` belongs above message `other`: a higher priority, then older, or younger."""
    message, against = store.messages[row], store.messages[other]
    if message.priority != against.priority:
        return message.priority > against.priority
    return (message.age < against.age) != (which == YOUNGEST)


@kernel
def _note(store: Store, row: int, which: int) -> None:
    """Mark `row` as written."""
    if which == OF_CHAIN:
        touch_row(store.messages_dirty, row)
    else:
        touch_row(store.order_dirty, row)


@kernel
def _meld(store: Store, links: Array, row: int, other: int, which: int) -> int:
    top = row
    below = other
    if comes_before(store, other, row, which):
        top = other
        below = row
    first = links[top].child
    links[below].next = first
    links[below].prev = top
    if first != NONE:
        links[first].prev = below
        _note(store, first, which)
    links[top].child = below
    _note(store, top, which)
    _note(store, below, which)
    return top


@routine
def join_heap(store: Store, links: Array, row: int, other: int, which: int) -> int:
    """Join the heaps with `row` and `other` on top; return the row on top of both.

    `links` is MESSAGE or ORDER, according to `which`.
    """
    return _meld(store, links, row, other, which)


@routine
def heap_without_top(store: Store, links: Array, row: int, which: int) -> int:
    """Remove `row` from the top of its heap; return the new top, without `next` and `prev`, or NONE."""
    pairs = NONE
    left = int(links[row].child)
    while left != NONE:
        right = int(links[left].next)
        following = NONE
        melded = left
        if right != NONE:
            following = int(links[right].next)
            melded = _meld(store, links, left, right, which)
        links[melded].next = pairs
        pairs = melded
        left = following
    top = NONE
    while pairs != NONE:
        following = int(links[pairs].next)
        top = pairs if top == NONE else _meld(store, links, top, pairs, which)
        pairs = following
    links[row].child = NONE
    _note(store, row, which)
    if top != NONE:
        links[top].next = NONE
        links[top].prev = NONE
        _note(store, top, which)
    return top


@routine
def heap_without(store: Store, links: Array, top: int, row: int, which: int) -> None:
    """Remove `row`, which is not on top, from the heap under `top`."""
    link = links[row]
    before = int(link.prev)
    if links[before].child == row:
        links[before].child = link.next
    else:
        links[before].next = link.next
    _note(store, before, which)
    if link.next != NONE:
        links[link.next].prev = before
        _note(store, int(link.next), which)
    rest = heap_without_top(store, links, row, which)
    if rest != NONE:
        _meld(store, links, top, rest, which)


# --- chains -----------------------------------------------------------------------------------------------------------


@kernel
def chain_of(queue: int, priority: int) -> int:
    """Return the row of `chains` of a queue and priority."""
    return queue * PRIORITIES + priority


@kernel
def _join(store: Store, before: int, row: int, after: int, chain: int) -> None:
    """Insert `row` between its neighbours (NONE: the chain's end) and mark the pages written."""
    message = store.messages[row]
    message.prev = before
    message.next = after
    touch_row(store.messages_dirty, row)
    if before == NONE:
        store.chains[chain].head = row
    else:
        store.messages[before].next = row
        touch_row(store.messages_dirty, before)
    if after == NONE:
        store.chains[chain].tail = row
    else:
        store.messages[after].prev = row
        touch_row(store.messages_dirty, after)
    touch(store.chains_dirty, chain, CHAIN_SHIFT)


@kernel
def insert(store: Store, row: int, hint: int) -> None:
    """Insert an available message by its age into the chain of its queue and priority, or into the heap beside it.

    A plain put is the youngest and goes to the tail at once. The place of a message that returns or is committed late
    is searched from both ends alternately. `hint`, a row of the same chain or NONE, replaces the head as a starting
    point if it is older, so that a unit of work is merged in one walk.
    """
    message = store.messages[row]
    chain = chain_of(message.queue, message.priority)
    ends = store.chains[chain]
    if ends.tail == NONE or store.messages[ends.tail].age < message.age:
        _join(store, ends.tail, row, NONE, chain)
    elif store.messages[ends.head].age > message.age:
        _join(store, NONE, row, ends.head, chain)
    else:
        _insert_late(store, row, hint, chain)


@routine
def _insert_late(store: Store, row: int, hint: int, chain: int) -> None:
    ends = store.chains[chain]
    age = store.messages[row].age
    ahead = ends.head
    if hint != NONE and store.messages[hint].age < age:
        ahead = hint
    behind = ends.tail
    for _ in range(MAX_STEPS):
        after = store.messages[ahead].next
        if store.messages[after].age > age:
            _join(store, ahead, row, after, chain)
            return
        ahead = after
        before = store.messages[behind].prev
        if store.messages[before].age < age:
            _join(store, before, row, behind, chain)
            return
        behind = before
    message = store.messages[row]
    message.marks |= MARK_LATE
    message.child = NONE
    message.next = NONE
    message.prev = NONE
    touch_row(store.messages_dirty, row)
    ends.late = row if ends.late == NONE else join_heap(store, store.messages, ends.late, row, OF_CHAIN)
    touch(store.chains_dirty, chain, CHAIN_SHIFT)
    store.messages[ends.late].next = NONE
    store.messages[ends.late].prev = NONE


@routine
def _remove_late(store: Store, row: int) -> None:
    message = store.messages[row]
    chain = chain_of(message.queue, message.priority)
    ends = store.chains[chain]
    if ends.late == row:
        ends.late = heap_without_top(store, store.messages, row, OF_CHAIN)
        touch(store.chains_dirty, chain, CHAIN_SHIFT)
    else:
        heap_without(store, store.messages, int(ends.late), row, OF_CHAIN)
    message.marks ^= MARK_LATE
    touch_row(store.messages_dirty, row)


@kernel
def remove(store: Store, row: int) -> None:
    """Remove an available message from the chain of its queue and priority, or from the heap beside it."""
    message = store.messages[row]
    if message.marks & MARK_LATE:
        _remove_late(store, row)
        return
    chain = chain_of(message.queue, message.priority)
    if message.prev == NONE:
        store.chains[chain].head = message.next
        touch(store.chains_dirty, chain, CHAIN_SHIFT)
    else:
        store.messages[message.prev].next = message.next
        touch_row(store.messages_dirty, message.prev)
    if message.next == NONE:
        store.chains[chain].tail = message.prev
        touch(store.chains_dirty, chain, CHAIN_SHIFT)
    else:
        store.messages[message.next].prev = message.prev
        touch_row(store.messages_dirty, message.next)


@kernel
def first(store: Store, queue: int, priority: int) -> int:
    """Return the oldest available message of a queue and priority, or NONE."""
    ends = store.chains[chain_of(queue, priority)]
    if ends.late == NONE:
        return ends.head
    if ends.head == NONE or store.messages[ends.late].age < store.messages[ends.head].age:
        return ends.late
    return ends.head


@kernel
def highest_priority(store: Store, queue: int) -> int:
    """Return the highest priority of an available message of the queue, or NONE."""
    for priority in range(PRIORITIES - 1, -1, -1):
        ends = store.chains[chain_of(queue, priority)]
        if ends.head != NONE or ends.late != NONE:
            return priority
    return NONE


@kernel
def oldest(store: Store, queue: int) -> int:
    """Return the oldest available message of the queue of any priority, or NONE."""
    best = NONE
    for priority in range(PRIORITIES):
        row = first(store, queue, priority)
        if row != NONE and (best == NONE or store.messages[row].age < store.messages[best].age):
            best = row
    return best


@kernel
def append_to_unit(store: Store, row: int, unit: int) -> None:
    """Append an uncommitted message to the operations of its unit."""
    message = store.messages[row]
    owner = store.units[unit]
    message.unit = unit
    message.next = NONE
    message.prev = owner.tail
    if owner.tail == NONE:
        owner.head = row
    else:
        store.messages[owner.tail].next = row
        touch_row(store.messages_dirty, owner.tail)
    owner.tail = row
    touch_row(store.messages_dirty, row)
    touch(store.units_dirty, unit, UNIT_SHIFT)


@kernel
def remove_from_unit(store: Store, row: int) -> None:
    """Remove an uncommitted message from the operations of its unit."""
    message = store.messages[row]
    owner = store.units[message.unit]
    if message.prev == NONE:
        owner.head = message.next
    else:
        store.messages[message.prev].next = message.next
        touch_row(store.messages_dirty, message.prev)
    if message.next == NONE:
        owner.tail = message.prev
    else:
        store.messages[message.next].prev = message.prev
        touch_row(store.messages_dirty, message.next)
    touch(store.units_dirty, message.unit, UNIT_SHIFT)
