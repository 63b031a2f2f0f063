"""Hash index: from a key to the rows of a table that carry it, oldest first.

Buckets hold a chain of rows; links stand beside the table, not in it, so that growing the index dirties no page of
state: the index is in memory only and rebuilt when a store is loaded. Rows are appended at the tail: within a key the
chain goes from the oldest to the youngest, so that the first hit is the oldest. Of messages that share an id only one
stands in the bucket (see ids.py).
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.layout import NONE, Array, Row

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@kernel
def mix(key: np.uint64, queue: int) -> int:
    """The 32-bit hash of (key, queue)."""
    mixed = (key ^ (np.uint64(queue + 1) * _SPREAD)) * _SPREAD
    return int(mixed >> np.uint64(32))


@kernel
def first(buckets: Array, mixed: int) -> int:
    """The oldest row in the bucket of a hash, or NONE; other keys share the bucket. buckets: BUCKET[2**k]."""
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
    """Take `row` out of its bucket."""
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
    """Let row `new`, which has the same hash, stand in its bucket where `old` stood."""
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
    """Spread the rows of the first `old` buckets over all `buckets.size` = 2 * old, order within a key kept."""
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
