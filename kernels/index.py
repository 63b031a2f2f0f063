"""Hash index: from a key to a row of a table that has it.

A bucket is a chain with one row per key, the oldest last; the others with that key are below it (see ids.py). Links are
kept beside the table, not in it: the index is in memory only, and rebuilt when a store is loaded or the buckets grow.
Removing a row takes the one before it in its chain, which the search for the row has met. So a row needs two numbers,
and a bucket one.
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.hashing import GOLDEN_RATIO
from kernels.layout import NONE, Array


@kernel
def mix(key: np.uint64, queue: int) -> int:
    """Return the 31-bit hash of (key, queue)."""
    mixed = (key ^ (np.uint64(queue + 1) * GOLDEN_RATIO)) * GOLDEN_RATIO
    return int(mixed >> np.uint64(33))


@kernel
def first(buckets: Array, mixed: int) -> int:
    """Return the first row in the bucket of a hash, which other hashes share, or NONE. `buckets`: i4[2**k]."""
    return int(buckets[mixed & (buckets.size - 1)])


@kernel
def before(buckets: Array, links: Array, row: int, mixed: int) -> int:
    """Return the row before `row` in the bucket of its hash, or NONE; for NONE the last of the bucket."""
    previous = NONE
    current = first(buckets, mixed)
    while current != row:
        previous = current
        current = int(links[current].next)
    return previous


@kernel
def put(buckets: Array, links: Array, previous: int, row: int, mixed: int) -> None:
    """Let `row`, or NONE, follow `previous` in the bucket of a hash, or begin it."""
    if previous == NONE:
        buckets[mixed & (buckets.size - 1)] = row
    else:
        links[previous].next = row


@kernel
def append(buckets: Array, links: Array, last: int, row: int, mixed: int) -> None:
    """Append `row` to the bucket of its hash, which ends with `last`."""
    links[row].next = NONE
    links[row].mixed = mixed
    put(buckets, links, last, row, mixed)


@kernel
def leave(buckets: Array, links: Array, previous: int, row: int, mixed: int) -> None:
    """Remove `row` from the bucket of its hash, in which it follows `previous`."""
    put(buckets, links, previous, int(links[row].next), mixed)


@routine
def clear(buckets: Array) -> None:
    """Empty every bucket."""
    for i in range(buckets.size):
        buckets[i] = NONE
