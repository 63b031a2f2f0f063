"""Chains of messages: available ones by queue and priority, in the order of their age; uncommitted ones by unit.

Sources: domain.md section 6 ("by priority then age"); IBM MQ, MQGET ("first in, first out within priority").
"""

from __future__ import annotations

from kernels._compile import kernel
from kernels.layout import CHAIN_SHIFT, MESSAGE_SHIFT, NONE, PRIORITIES, UNIT_SHIFT, Store, touch


@kernel
def chain_of(queue: int, priority: int) -> int:
    """Row of `chains` for a queue and priority."""
    return queue * PRIORITIES + priority


@kernel
def _join(store: Store, before: int, row: int, after: int, chain: int) -> None:
    """Put `row` between its neighbours (NONE: the chain's end) and mark what was written."""
    message = store.messages[row]
    message.prev = before
    message.next = after
    touch(store.messages_dirty, row, MESSAGE_SHIFT)
    if before == NONE:
        store.chains[chain].head = row
    else:
        store.messages[before].next = row
        touch(store.messages_dirty, before, MESSAGE_SHIFT)
    if after == NONE:
        store.chains[chain].tail = row
    else:
        store.messages[after].prev = row
        touch(store.messages_dirty, after, MESSAGE_SHIFT)
    touch(store.chains_dirty, chain, CHAIN_SHIFT)


@kernel
def insert(store: Store, row: int, hint: int) -> None:
    """Enter an available message at its age into the chain of its queue and priority.

    A plain put is the youngest and goes to the tail at once. A message that returns or is committed late is looked for
    from both ends at the same time, and from `hint` (a row of the same chain, younger ones behind it; NONE: none), so
    that a unit of work is merged in one walk.
    """
    message = store.messages[row]
    chain = chain_of(message.queue, message.priority)
    ends = store.chains[chain]
    age = message.age
    if ends.tail == NONE or store.messages[ends.tail].age < age:
        _join(store, ends.tail, row, NONE, chain)
        return
    if store.messages[ends.head].age > age:
        _join(store, NONE, row, ends.head, chain)
        return
    ahead = ends.head
    if hint != NONE and store.messages[hint].age < age:
        ahead = hint
    behind = ends.tail
    while True:
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


@kernel
def remove(store: Store, row: int) -> None:
    """Take an available message out of the chain of its queue and priority."""
    message = store.messages[row]
    chain = chain_of(message.queue, message.priority)
    if message.prev == NONE:
        store.chains[chain].head = message.next
        touch(store.chains_dirty, chain, CHAIN_SHIFT)
    else:
        store.messages[message.prev].next = message.next
        touch(store.messages_dirty, message.prev, MESSAGE_SHIFT)
    if message.next == NONE:
        store.chains[chain].tail = message.prev
        touch(store.chains_dirty, chain, CHAIN_SHIFT)
    else:
        store.messages[message.next].prev = message.prev
        touch(store.messages_dirty, message.next, MESSAGE_SHIFT)


@kernel
def highest_priority(store: Store, queue: int) -> int:
    """The highest priority of an available message of the queue, or NONE."""
    for priority in range(PRIORITIES - 1, -1, -1):
        if store.chains[chain_of(queue, priority)].head != NONE:
            return priority
    return NONE


@kernel
def oldest(store: Store, queue: int) -> int:
    """The oldest available message of the queue whatever its priority, or NONE."""
    found = NONE
    for priority in range(PRIORITIES):
        head = store.chains[chain_of(queue, priority)].head
        if head != NONE and (found == NONE or store.messages[head].age < store.messages[found].age):
            found = head
    return found


@kernel
def append_to_unit(store: Store, row: int, unit: int) -> None:
    """Enter an uncommitted message at the end of its unit's operations."""
    message = store.messages[row]
    owner = store.units[unit]
    message.unit = unit
    message.next = NONE
    message.prev = owner.tail
    if owner.tail == NONE:
        owner.head = row
    else:
        store.messages[owner.tail].next = row
        touch(store.messages_dirty, owner.tail, MESSAGE_SHIFT)
    owner.tail = row
    touch(store.messages_dirty, row, MESSAGE_SHIFT)
    touch(store.units_dirty, unit, UNIT_SHIFT)
