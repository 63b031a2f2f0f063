"""Buckets: the keys by which rows of many stores go through the shuffle together.

A key costs Spark about 0.3 ms of CPU a batch, however few rows it has: its rows become Arrow batches of their own, and
so does its output. So the key is a bucket. It has no state. The state of a store stays under the store's name, in the
partition that Spark's hash gives it, and a bucket holds only stores of one partition: the state does not know of
buckets, and a checkpoint, its repartition and its readers do not either.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from twin.errors import MqtwinError

STORES = 256  # in a bucket, at most about: the output of a bucket is in memory at once
_SEED = 42  # of Spark's partitioning: HashPartitioning, Murmur3Hash
_WORD, _LOW = 4, 0xFFFF_FFFF


class Buckets:
    """The buckets of a query.

    Args:
        stores: names of the estate's stores.
        partitions: number of state partitions.
    """

    def __init__(self, stores: Iterable[str], partitions: int) -> None:
        self._partitions = partitions
        self._keys: list[list[str]] = [[] for _ in range(partitions)]
        self._each = 1 + len(set(stores)) // (partitions * STORES)
        number = missing = 0
        while missing < partitions * self._each:
            keys = self._keys[self.partition_of(str(number))]
            if len(keys) < self._each:
                keys.append(str(number))
                missing += 1
            number += 1
        self.key_of = cache(self._key_of)

    def partition_of(self, key: str) -> int:
        """Return the state partition of a key, a store's name or a bucket's."""
        return spark_hash(key) % self._partitions

    def _key_of(self, store: str) -> str:
        """Return the bucket of a store, which is in the store's partition."""
        number, partition = divmod(spark_hash(store), self._partitions)
        return self._keys[partition][number % self._each]

    def key_of_task(self, task: int) -> str:
        """Return a bucket for rows without state; those of different tasks are spread over the partitions."""
        return self._keys[task % self._partitions][0]

    def check(self, key: str, partition: int) -> None:
        """Check that a bucket came to the partition that has the state of its stores.

        Raises:
            MqtwinError: it did not; its stores would begin anew.
        """
        if self.partition_of(key) != partition:
            raise MqtwinError(
                f"bucket {key} of {self._partitions} state partitions came to partition {partition}; expected: "
                f"{self.partition_of(key)}; does the checkpoint have another number of partitions?"
            )


def spark_hash(text: str) -> int:
    """Return Spark's hash of a string, i4, as its SQL function `hash` does.

    Source: Spark 4.2, Murmur3_x86_32.hashUnsafeBytes: MurmurHash3 of whole words, then each byte left, with its sign,
    as a word of its own.
    """
    data = text.encode()
    whole = len(data) - len(data) % _WORD
    words = [int.from_bytes(data[start : start + _WORD], "little") for start in range(0, whole, _WORD)]
    words += [byte - 256 & _LOW if byte > 127 else byte for byte in data[whole:]]
    state = _SEED
    for word in words:
        mixed = _rotated(word * 0xCC9E2D51 & _LOW, 15) * 0x1B873593 & _LOW
        state = (_rotated(state ^ mixed, 13) * 5 + 0xE6546B64) & _LOW
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _LOW
    state = (state ^ state >> 13) * 0xC2B2AE35 & _LOW
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _LOW
