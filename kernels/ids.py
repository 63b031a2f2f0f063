"""Units of work, available messages and held gets, each found by its id.

- Units of work are identified by (queue manager, queue, id) and opened by their first operation. A COMMIT or BACKOUT of
  the same qmgr, queue and uow ends a unit, a PREPARE leaves it in doubt until then (docs/events.md#operations).
- Messages: a bucket of the index holds one row per (queue, id), of messages the oldest of the highest priority. The
  other available messages with the same id are in a tree below it, so that a get by id finds its message at once,
  however many share the id; held gets likewise. Uncommitted messages are not in the index.
- Held gets: gets whose message has not arrived yet, or is not available.
"""

from __future__ import annotations

import numpy as np

from kernels import chains, index
from kernels._compile import kernel, routine
from kernels.clock import SECOND
from kernels.layout import AVAILABLE, HELD_SHIFT, MARK_KEYED, NEVER, NONE, QUEUE_SHIFT, UNIT_SHIFT, Array, Store, touch

# --- units of work ----------------------------------------------------------------------------------------------------

_QMGR = np.uint64(0xD6E8FEB86659FD93)


@kernel
def _mix(uow: np.uint64, qmgr: int, queue: int) -> int:
    return index.mix(uow ^ (np.uint64(qmgr + 1) * _QMGR), queue)


@kernel
def find_unit(store: Store, uow: np.uint64, qmgr: int, queue: int) -> int:
    """Return the row of the open unit, or NONE."""
    row = index.first(store.unit_buckets, _mix(uow, qmgr, queue))
    while row != NONE:
        unit = store.units[row]
        if unit.key == uow and unit.qmgr == qmgr and unit.queue == queue:
            return row
        row = store.unit_links[row].next
    return NONE


@kernel
def find_or_open_unit(store: Store, uow: np.uint64, qmgr: int, queue: int) -> int:
    """Return the row of the unit, after opening a new one."""
    row = find_unit(store, uow, qmgr, queue)
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
    enter_unit(store, row)
    touch(store.units_dirty, row, UNIT_SHIFT)
    return row


@kernel
def enter_unit(store: Store, row: int) -> None:
    """Add an open unit to the index."""
    unit = store.units[row]
    mixed = _mix(unit.key, unit.qmgr, unit.queue)
    buckets, links = store.unit_buckets, store.unit_links
    index.append(buckets, links, index.before(buckets, links, NONE, mixed), row, mixed)


@kernel
def close_unit(store: Store, row: int) -> None:
    """Free the row of a unit whose operations are done."""
    scalars = store.scalars[0]
    unit = store.units[row]
    mixed = _mix(unit.key, unit.qmgr, unit.queue)
    buckets, links = store.unit_buckets, store.unit_links
    index.leave(buckets, links, index.before(buckets, links, row, mixed), row, mixed)
    if is_unit_prepared(store, row):
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
def is_unit_prepared(store: Store, row: int) -> bool:
    """Return True if a unit is in doubt: prepared, and neither committed nor backed out."""
    return bool(store.units[row].prepared_at != NEVER)


@routine
def prepare_unit(store: Store, row: int) -> None:
    """Put an open unit in doubt; a unit that is in doubt already stays so."""
    scalars = store.scalars[0]
    unit = store.units[row]
    if is_unit_prepared(store, row):
        return
    unit.prepared_at = scalars.clock
    scalars.prepared += 1
    message = int(unit.head)
    while message != NONE:
        scalars.in_doubt += 1
        message = int(store.messages[message].next)
    touch(store.units_dirty, row, UNIT_SHIFT)


# --- index of messages and held gets ----------------------------------------------------------------------------------
# The tree below a row is a treap: a search tree by priority and age, in which a row with a higher rank, a number
# without order, is above those with lower ones; so its depth is logarithmic in any order of arrivals. Source:
# [published: Seidel, Aragon, "Randomized search trees", 1996].

MESSAGES, GETS, UNITS = range(3)  # tables with an index
_RANKS, _LOW = 0x9E3779B1, 0xFFFFFFFF  # a product with an odd number, of which 32 bits are kept, names no row twice

# --- rows that share an id -------------------------------------------------------------------------------------------


@kernel
def _comes_before(store: Store, row: int, other: int, table: int) -> bool:
    """Return True if `row` is served before `other`."""
    if table == GETS:
        return bool(store.held[row].age < store.held[other].age)
    return chains.comes_before(store, row, other, chains.OLDEST)


@kernel
def _is_above(row: int, other: int) -> bool:
    """Return True if `row` has the higher rank; two rows never have the same."""
    return (int(row) * _RANKS) & _LOW > (int(other) * _RANKS) & _LOW


@kernel
def _below(links: Array, row: int, is_left: bool) -> int:
    return int(links[row].left if is_left else links[row].right)


@kernel
def _hang(links: Array, root: int, parent: int, is_left: bool, row: int) -> int:
    """Hang `row`, or NONE, below `parent`, or on top of the tree if that is NONE; return the root."""
    if parent == NONE:
        return row
    if is_left:
        links[parent].left = row
    else:
        links[parent].right = row
    return root


@routine
def _planted(store: Store, links: Array, root: int, row: int, table: int) -> int:
    """Add `row` to the tree under `root`, or NONE; return its root."""
    parent, is_left, node = NONE, False, root
    while node != NONE and _is_above(node, row):
        parent, is_left = node, _comes_before(store, row, node, table)
        node = _below(links, node, is_left)
    root = _hang(links, root, parent, is_left, row)
    low, high = row, row  # `node` is cut in two, below the left and the right of `row`
    while node != NONE:
        if _comes_before(store, node, row, table):
            _hang(links, root, low, low == row, node)
            low, node = node, _below(links, node, False)
        else:
            _hang(links, root, high, high != row, node)
            high, node = node, _below(links, node, True)
    _hang(links, root, low, low == row, NONE)
    _hang(links, root, high, high != row, NONE)
    return root


@routine
def _uprooted(store: Store, links: Array, root: int, row: int, table: int) -> int:
    """Remove `row` from the tree under `root`; return its root, or NONE."""
    parent, is_left, node = NONE, False, root
    while node != row:
        parent, is_left = node, _comes_before(store, row, node, table)
        node = _below(links, node, is_left)
    left, right = _below(links, row, True), _below(links, row, False)
    while left >= 0 and right >= 0:
        if _is_above(left, right):
            root = _hang(links, root, parent, is_left, left)
            parent, is_left, left = left, False, _below(links, left, False)
        else:
            root = _hang(links, root, parent, is_left, right)
            parent, is_left, right = right, True, _below(links, right, True)
    return _hang(links, root, parent, is_left, right if left == NONE else left)


@routine
def _join_others(
    store: Store, buckets: Array, links: Array, previous: int, first: int, row: int, mixed: int, table: int
) -> None:
    """Add `row` to those that share its id, of which `first` is in the bucket, after `previous`."""
    root = NONE if links[first].mixed >= 0 else ~int(links[first].mixed)
    top, below = first, row
    if _comes_before(store, row, first, table):
        top, below = row, first
        links[row].next = links[first].next
        index.put(buckets, links, previous, row, mixed)
    links[top].mixed = ~_planted(store, links, root, below, table)


@routine
def _leave_others(
    store: Store, buckets: Array, links: Array, previous: int, first: int, row: int, mixed: int, table: int
) -> None:
    """Remove `row` from those that share its id, of which `first` is in the bucket, after `previous`."""
    root = ~int(links[first].mixed)
    top, below = first, row
    if row == first:
        below = root
        while links[below].left != NONE:
            below = int(links[below].left)
        top = below
    root = _uprooted(store, links, root, below, table)
    if row == first:
        links[top].next = links[row].next
        index.put(buckets, links, previous, top, mixed)
    links[top].mixed = mixed if root == NONE else ~root


# --- messages --------------------------------------------------------------------------------------------------------


@kernel
def _search(store: Store, queue: int, key: np.uint64, mixed: int) -> tuple[int, int]:
    """Return the row before that of an id in its bucket, and its row; or the last of the bucket, and NONE."""
    previous = NONE
    row = index.first(store.message_buckets, mixed)
    while row != NONE:
        link = store.message_links[row]
        if link.mixed == mixed or link.mixed < 0:
            message = store.messages[row]
            if message.key == key and message.queue == queue:
                break
        previous = row
        row = int(link.next)
    return previous, row


@kernel
def find(store: Store, queue: int, key: np.uint64) -> int:
    """Return the available message that a get of that queue and id takes, or NONE."""
    return _search(store, queue, key, index.mix(key, queue))[1]


@kernel
def enter(store: Store, row: int) -> None:
    """Add a message that has become available."""
    message = store.messages[row]
    mixed = index.mix(message.key, message.queue)
    previous, first = _search(store, message.queue, message.key, mixed)
    buckets, links = store.message_buckets, store.message_links
    if first == NONE:
        index.append(buckets, links, previous, row, mixed)
    else:
        _join_others(store, buckets, links, previous, first, row, mixed, MESSAGES)


@kernel
def leave(store: Store, row: int) -> None:
    """Remove a message that is no longer available."""
    message = store.messages[row]
    mixed = index.mix(message.key, message.queue)
    previous, first = _search(store, message.queue, message.key, mixed)
    buckets, links = store.message_buckets, store.message_links
    if links[first].mixed >= 0:
        index.leave(buckets, links, previous, row, mixed)
    else:
        _leave_others(store, buckets, links, previous, first, row, mixed, MESSAGES)


# --- held gets -------------------------------------------------------------------------------------------------------


@kernel
def _search_get(store: Store, queue: int, key: np.uint64, mixed: int) -> tuple[int, int]:
    """Return the same as `_search`, of held gets."""
    previous = NONE
    row = index.first(store.held_buckets, mixed)
    while row != NONE:
        get = store.held[row]
        if get.key == key and get.queue == queue:
            break
        previous = row
        row = int(store.held_links[row].next)
    return previous, row


@kernel
def find_get(store: Store, queue: int, key: np.uint64) -> int:
    """Return the oldest held get of that queue and id, or NONE."""
    return _search_get(store, queue, key, index.mix(key, queue))[1]


@kernel
def enter_get(store: Store, row: int) -> None:
    """Add a held get."""
    get = store.held[row]
    mixed = index.mix(get.key, get.queue)
    previous, first = _search_get(store, get.queue, get.key, mixed)
    buckets, links = store.held_buckets, store.held_links
    if first == NONE:
        index.append(buckets, links, previous, row, mixed)
    else:
        _join_others(store, buckets, links, previous, first, row, mixed, GETS)


@kernel
def leave_get(store: Store, row: int) -> None:
    """Remove a held get."""
    get = store.held[row]
    mixed = index.mix(get.key, get.queue)
    previous, first = _search_get(store, get.queue, get.key, mixed)
    buckets, links = store.held_buckets, store.held_links
    if links[first].mixed >= 0:
        index.leave(buckets, links, previous, row, mixed)
    else:
        _leave_others(store, buckets, links, previous, first, row, mixed, GETS)


# --- all -------------------------------------------------------------------------------------------------------------


@routine
def reindex(store: Store, table: int) -> None:
    """Fill the index of a table, MESSAGES, GETS or UNITS, after it was loaded from pages or its buckets have grown."""
    scalars = store.scalars[0]
    if table == MESSAGES:
        index.clear(store.message_buckets)
        for row in range(scalars.message_high):
            message = store.messages[row]
            if message.state == AVAILABLE and message.marks & MARK_KEYED:
                enter(store, row)
    elif table == GETS:
        index.clear(store.held_buckets)
        for row in range(scalars.held_high):
            get = store.held[row]
            if get.used == 1 and get.keyed == 1:
                enter_get(store, row)
    else:
        index.clear(store.unit_buckets)
        unit = int(scalars.unit_head)
        while unit != NONE:
            enter_unit(store, unit)
            unit = int(store.units[unit].next)


# --- gets that wait for their message ---------------------------------------------------------------------------------
# A get is held for an hour of event time and takes its message when that arrives or becomes available. In a unit of
# work it keeps waiting after the commit and is dropped by the backout. A get of several messages is one row with a
# count and takes them one by one. The rule: docs/events.md#duplicates-gaps-and-late-events.

HELD_FOR = 3600 * SECOND


@kernel
def _has_expired(store: Store, row: int) -> bool:
    return store.scalars[0].clock - store.held[row].held_at >= HELD_FOR


@routine
def hold_get(store: Store, key: np.uint64, keyed: bool, queue: int, unit: int, count: int) -> None:
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
        enter_get(store, row)
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
def forget_get(store: Store, row: int) -> None:
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
        leave_get(store, row)
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
        forget_get(store, row)


@kernel
def _oldest_keyed(store: Store, key: np.uint64, queue: int) -> int:
    row = find_get(store, queue, key)
    while row != NONE and _has_expired(store, row):
        forget_get(store, row)
        row = find_get(store, queue, key)
    return row


@kernel
def _oldest_of_any(store: Store, queue: int) -> int:
    row = store.queues[queue].any_head
    while row != NONE and _has_expired(store, row):
        forget_get(store, row)
        row = store.queues[queue].any_head
    return row


@kernel
def match_held_get(store: Store, queue: int, key: np.uint64, keyed: bool) -> int:
    """Return the longest held get that takes a message of that queue and id, or NONE."""
    if store.scalars[0].held_open == 0:
        return NONE
    return _match_held_get(store, queue, key, keyed)


@routine
def _match_held_get(store: Store, queue: int, key: np.uint64, keyed: bool) -> int:
    get = _oldest_of_any(store, queue)
    if keyed:
        by_key = _oldest_keyed(store, key, queue)
        if get == NONE or (by_key != NONE and store.held[by_key].age < store.held[get].age):
            get = by_key
    return get


@kernel
def release_gets_of_unit(store: Store, unit: int, dropped: bool) -> None:
    """Release the held gets of a unit that ends: they keep waiting (commit) or are dropped (backout)."""
    row = store.units[unit].held_head
    while row != NONE:
        following = store.held[row].unit_next
        if not dropped:
            touch(store.held_dirty, row, HELD_SHIFT)
            store.held[row].unit = NONE
        else:
            if not _has_expired(store, row):
                store.scalars[0].unmatched_gets -= store.held[row].count
            forget_get(store, row)
        row = following
    store.units[unit].held_head = NONE
    store.units[unit].held_tail = NONE


@routine
def sweep_held_gets(store: Store, queues: int) -> None:
    """Free the rows of gets held for an hour; they stay counted. `queues` is the number of rows of QUEUE in use."""
    for queue in range(queues):
        row = store.queues[queue].keyed_head
        while row != NONE and _has_expired(store, row):
            forget_get(store, row)
            row = store.queues[queue].keyed_head
        _oldest_of_any(store, queue)
