"""Units of work, identified by (queue manager, queue, id) and opened by their first operation.

A COMMIT or BACKOUT of the same qmgr, queue and uow ends a unit, a PREPARE leaves it in doubt until then
(docs/events.md#operations).
"""

from __future__ import annotations

import numpy as np

from kernels import index
from kernels._compile import kernel, routine
from kernels.layout import NEVER, NONE, UNIT_SHIFT, Store, touch

_QMGR = np.uint64(0xD6E8FEB86659FD93)


@kernel
def _mix(uow: np.uint64, qmgr: int, queue: int) -> int:
    return index.mix(uow ^ (np.uint64(qmgr + 1) * _QMGR), queue)


@kernel
def find(store: Store, uow: np.uint64, qmgr: int, queue: int) -> int:
    """Return the row of the open unit, or NONE."""
    row = index.first(store.unit_buckets, _mix(uow, qmgr, queue))
    while row != NONE:
        unit = store.units[row]
        if unit.key == uow and unit.qmgr == qmgr and unit.queue == queue:
            return row
        row = store.unit_links[row].next
    return NONE


@kernel
def find_or_open(store: Store, uow: np.uint64, qmgr: int, queue: int) -> int:
    """Return the row of the unit, after opening a new one."""
    row = find(store, uow, qmgr, queue)
    if row != NONE:
        return row
    scalars = store.scalars[0]
    row = scalars.unit_free
    if row == NONE:
        row = scalars.unit_high
        scalars.unit_high += 1
    else:
        scalars.unit_free = store.units[row].next
    unit = store.units[row]
    unit.key = uow
    unit.opened = scalars.opens
    scalars.opens += 1
    unit.qmgr = qmgr
    unit.queue = queue
    unit.head = NONE
    unit.tail = NONE
    unit.held_head = NONE
    unit.held_tail = NONE
    unit.used = 1
    unit.logged = 0
    unit.prepared_at = NEVER
    unit.next = NONE
    unit.prev = scalars.unit_tail
    if scalars.unit_tail == NONE:
        scalars.unit_head = row
    else:
        store.units[scalars.unit_tail].next = row
        touch(store.units_dirty, scalars.unit_tail, UNIT_SHIFT)
    scalars.unit_tail = row
    enter(store, row)
    touch(store.units_dirty, row, UNIT_SHIFT)
    return row


@kernel
def enter(store: Store, row: int) -> None:
    """Add an open unit to the index."""
    unit = store.units[row]
    mixed = _mix(unit.key, unit.qmgr, unit.queue)
    buckets, links = store.unit_buckets, store.unit_links
    index.append(buckets, links, index.before(buckets, links, NONE, mixed), row, mixed)


@kernel
def close(store: Store, row: int) -> None:
    """Free the row of a unit whose operations are done."""
    scalars = store.scalars[0]
    unit = store.units[row]
    mixed = _mix(unit.key, unit.qmgr, unit.queue)
    buckets, links = store.unit_buckets, store.unit_links
    index.leave(buckets, links, index.before(buckets, links, row, mixed), row, mixed)
    if is_prepared(store, row):
        scalars.prepared -= 1
    if unit.prev == NONE:
        scalars.unit_head = unit.next
    else:
        store.units[unit.prev].next = unit.next
        touch(store.units_dirty, unit.prev, UNIT_SHIFT)
    if unit.next == NONE:
        scalars.unit_tail = unit.prev
    else:
        store.units[unit.next].prev = unit.prev
        touch(store.units_dirty, unit.next, UNIT_SHIFT)
    unit.used = 0
    unit.next = scalars.unit_free
    scalars.unit_free = row
    touch(store.units_dirty, row, UNIT_SHIFT)


@kernel
def is_prepared(store: Store, row: int) -> bool:
    """Return True if a unit is in doubt: prepared, and neither committed nor backed out."""
    return bool(store.units[row].prepared_at != NEVER)


@routine
def prepare(store: Store, row: int) -> None:
    """Put an open unit in doubt; a unit that is in doubt already stays so."""
    scalars = store.scalars[0]
    unit = store.units[row]
    if is_prepared(store, row):
        return
    unit.prepared_at = scalars.clock
    scalars.prepared += 1
    message = int(unit.head)
    while message != NONE:
        scalars.in_doubt += 1
        message = int(store.messages[message].next)
    touch(store.units_dirty, row, UNIT_SHIFT)
