"""Random numbers that are a function of words: the same on every machine, in every version of numpy.

splitmix64 [Steele, Lea, Flood 2014], its state a counter.
"""

from __future__ import annotations

import hashlib

import numpy as np

from twin.arrays import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_NORMAL_FROM = 12  # uniform numbers of variance 1/12


def seed_of(*words: object) -> int:
    """64 bits that stand for the words."""
    return int.from_bytes(hashlib.blake2b("\0".join(map(str, words)).encode(), digest_size=8).digest(), "big")


def uniform(seed: int, *shape: int) -> Array:
    """f8[shape], evenly in [0, 1)."""
    count = int(np.prod(shape))
    numbers = np.arange(1, count + 1, dtype=np.uint64) * _STEP + np.uint64(seed)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX1
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX2
    numbers ^= numbers >> np.uint64(31)
    return ((numbers >> np.uint64(11)) * (1.0 / (1 << 53))).reshape(shape)


def normal(seed: int, count: int) -> Array:
    """f8[count], of mean 0 and variance 1, within 6: sums of uniform numbers, which need no logarithm."""
    return np.asarray(uniform(seed, count, _NORMAL_FROM).sum(axis=1) - _NORMAL_FROM / 2)
