"""Random numbers as a function of a seed and an index: the same on every machine, in every version.

The generator is splitmix64 with a counter as its state.

Source: [published: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014].
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.hashing import GOLDEN_RATIO
from kernels.layout import Array

_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_SUMMANDS = 12  # uniform numbers of variance 1/12 per normal number


@kernel
def uniform(seed: np.uint64, index: int) -> float:
    """Return the number of a seed at an index, uniform in [0, 1)."""
    mixed = seed + np.uint64(index + 1) * GOLDEN_RATIO
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX2
    return float((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * (1.0 / (1 << 53))


@routine
def below(seed: np.uint64, limit: int, out: Array) -> None:
    """Fill `out`, i8[n, m], with uniform integers from 0 to limit - 1."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = int(uniform(seed, row * out.shape[1] + column) * limit)


@routine
def normal(seed: np.uint64, out: Array) -> None:
    """Fill `out`, f8[n, m], with numbers of mean 0 and variance 1, between -6 and 6.

    Each is a sum of 12 uniform numbers, which needs no logarithm.
    """
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            total = -_SUMMANDS / 2
            for i in range(_SUMMANDS):
                total += uniform(seed, (row * out.shape[1] + column) * _SUMMANDS + i)
            out[row, column] = total
