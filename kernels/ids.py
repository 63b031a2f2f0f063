"""Messages and held gets by id: for each (queue, id) the available message that a get takes, and the oldest held get.

A bucket of the index holds one row per (queue, id): of messages the oldest of the highest priority. The other available
messages with the same id are in a tree below it, so that a get by id finds its message at once, however many share the
id; held gets likewise. Uncommitted messages are not in the index. The tree is a treap: a search tree by priority and
age, in which a row with a higher rank, a number without order, is above those with lower ones; so its depth is
logarithmic in any order of arrivals. Source: [published: Seidel, Aragon, "Randomized search trees", 1996].
"""

from __future__ import annotations

import numpy as np

from kernels import heap, index, units
from kernels._compile import kernel, routine
from kernels.layout import AVAILABLE, MARK_KEYED, NONE, Array, Store

MESSAGES, GETS, UNITS = range(3)  # tables with an index
_RANKS, _LOW = 0x9E3779B1, 0xFFFFFFFF  # a product with an odd number, of which 32 bits are kept, names no row twice

# --- rows that share an id -------------------------------------------------------------------------------------------


@kernel
def _comes_before(store: Store, row: int, other: int, table: int) -> bool:
    """Return True if `row` is served before `other`."""
    if table == GETS:
        return bool(store.held[row].age < store.held[other].age)
    return heap.comes_before(store, row, other, heap.OLDEST)


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
            units.enter(store, unit)
            unit = int(store.units[unit].next)
