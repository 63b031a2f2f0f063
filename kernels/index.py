"""Keys of ids (xxHash64, seed 0), and the hash index: from a key to a row of a table that has it.

Index: a bucket is a chain with one row per key, the oldest last; the others with that key are below it (see ids.py).
Links are kept beside the table, not in it: the index is in memory only, and rebuilt when a store is loaded or the
buckets grow. Removing a row takes the one before it in its chain, which the search for the row has met. So a row needs
two numbers, and a bucket one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine
from kernels._intrinsics import load_word
from kernels.layout import NONE, Array

# --- keys -------------------------------------------------------------------------------------------------------------
# 64-bit keys of message ids and unit-of-work ids: xxHash64, seed 0. A test compares it with the reference
# implementation. With n messages held, two different ids of a queue share a key with probability n * n / 2**65: 3 in a
# million for ten million messages. A collision would let a get by message id remove the other message. Source:
# [published: xxHash specification, "XXH64 Algorithm Description"].

GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / 1.618..., odd: spreads consecutive numbers

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_64 = np.uint64(64)


@kernel
def _rotated(x: np.uint64, bits: int) -> np.uint64:
    by = np.uint64(bits)
    return (x << by) | (x >> (_64 - by))


@kernel
def _half_word(data: npt.NDArray[np.uint8], start: int) -> np.uint64:
    """Return the little-endian integer of the four bytes at `start`."""
    word = np.uint64(0)
    for i in range(4):
        word |= np.uint64(data[start + i]) << np.uint64(8 * i)
    return word


@kernel
def _round(acc: np.uint64, lane: np.uint64) -> np.uint64:
    return _rotated(acc + lane * _P2, 31) * PRIME_1


@kernel
def _merged(acc: np.uint64, lane: np.uint64) -> np.uint64:
    return (acc ^ _round(np.uint64(0), lane)) * PRIME_1 + _P4


@kernel
def _xxh64(data: npt.NDArray[np.uint8], start: int, end: int) -> np.uint64:
    i = start
    if end - start >= 32:
        v1 = PRIME_1 + _P2
        v2 = _P2
        v3 = np.uint64(0)
        v4 = np.uint64(0) - PRIME_1
        while i + 32 <= end:
            v1 = _round(v1, load_word(data, i))
            v2 = _round(v2, load_word(data, i + 8))
            v3 = _round(v3, load_word(data, i + 16))
            v4 = _round(v4, load_word(data, i + 24))
            i += 32
        acc = _rotated(v1, 1) + _rotated(v2, 7) + _rotated(v3, 12) + _rotated(v4, 18)
        acc = _merged(_merged(_merged(_merged(acc, v1), v2), v3), v4)
    else:
        acc = _P5
    acc += np.uint64(end - start)
    while i + 8 <= end:
        acc = _rotated(acc ^ _round(np.uint64(0), load_word(data, i)), 27) * PRIME_1 + _P4
        i += 8
    if i + 4 <= end:
        acc = _rotated(acc ^ (_half_word(data, i) * PRIME_1), 23) * _P2 + _P3
        i += 4
    while i < end:
        acc = _rotated(acc ^ (np.uint64(data[i]) * _P5), 11) * PRIME_1
        i += 1
    acc = (acc ^ (acc >> np.uint64(33))) * _P2
    acc = (acc ^ (acc >> np.uint64(29))) * _P3
    return acc ^ (acc >> np.uint64(32))


@routine
def xxh64_bytes(data: npt.NDArray[np.uint8]) -> np.uint64:
    """Return the xxHash64 (seed 0) of `data`, u1[n]."""
    return _xxh64(data, 0, data.size)


@routine
def xxh64_column(offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint64]) -> None:
    """Hash each string of an Arrow string column with xxHash64 (seed 0).

    An empty string gives the hash of no bytes, not 0.

    Args:
        offsets: i4[n + 1] or i8[n + 1], bytes.
        data: u1[...].
        out: u8[n], written.
    """
    for i in range(out.size):
        out[i] = _xxh64(data, offsets[i], offsets[i + 1])


# --- index ------------------------------------------------------------------------------------------------------------


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
