"""Hash index: from a key to the rows of a table that have it, oldest first.

A bucket is a chain of rows. Links are kept beside the table, not in it, so that growing the index dirties no page of
state: the index is in memory only and rebuilt when a store is loaded. Rows are appended at the tail, so the first row
with a key is the oldest. Of messages that share an id only one is in the bucket (see ids.py).
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.hashing import GOLDEN_RATIO
from kernels.layout import NONE, Array, Row


@kernel
def mix(key: np.uint64, queue: int) -> int:
    """Return the 32-bit hash of (key, queue)."""
    mixed = (key ^ (np.uint64(queue + 1) * GOLDEN_RATIO)) * GOLDEN_RATIO
    return int(mixed >> np.uint64(32))


@kernel
def first(buckets: Array, mixed: int) -> int:
    """Return the oldest row in the bucket of a hash, which other hashes share, or NONE. `buckets`: BUCKET[2**k]."""
    return int(buckets[mixed & (buckets.size - 1)].head)


@kernel
def enter(buckets: Array, links: Array, row: int, mixed: int) -> None:
    """Append `row` to the bucket of its hash."""
    links[row].mixed = mixed
    _append(buckets[mixed & (buckets.size - 1)], links, row)


@kernel
def _append(bucket: Row, links: Array, row: int) -> None:
    link = links[row]
    link.next = NONE
    link.prev = bucket.tail
    if bucket.tail == NONE:
        bucket.head = row
    else:
        links[bucket.tail].next = row
    bucket.tail = row


@kernel
def leave(buckets: Array, links: Array, row: int) -> None:
    """Remove `row` from its bucket."""
    link = links[row]
    bucket = buckets[int(link.mixed) & (buckets.size - 1)]
    if link.prev == NONE:
        bucket.head = link.next
    else:
        links[link.prev].next = link.next
    if link.next == NONE:
        bucket.tail = link.prev
    else:
        links[link.next].prev = link.prev


@kernel
def replace(buckets: Array, links: Array, old: int, new: int) -> None:
    """Replace row `old` in its bucket by row `new`, which has the same hash."""
    link = links[new]
    link.next = links[old].next
    link.prev = links[old].prev
    link.mixed = links[old].mixed
    bucket = buckets[int(link.mixed) & (buckets.size - 1)]
    if link.prev == NONE:
        bucket.head = new
    else:
        links[link.prev].next = new
    if link.next == NONE:
        bucket.tail = new
    else:
        links[link.next].prev = new


@routine
def split(buckets: Array, links: Array, old: int) -> None:
    """Distribute the rows of the first `old` buckets over all 2 * old, keeping the order within a key."""
    for i in range(old, buckets.size):
        buckets[i].head = NONE
        buckets[i].tail = NONE
    for i in range(old):
        row = int(buckets[i].head)
        buckets[i].head = NONE
        buckets[i].tail = NONE
        while row != NONE:
            following = int(links[row].next)
            _append(buckets[int(links[row].mixed) & (buckets.size - 1)], links, row)
            row = following


@routine
def clear(buckets: Array) -> None:
    """Empty every bucket."""
    for i in range(buckets.size):
        buckets[i].head = NONE
        buckets[i].tail = NONE
