"""Random numbers that are a function of a seed and their place: the same on every machine, in every version.

splitmix64, its state a counter [Steele, Lea, Flood 2014].
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.layout import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_NORMAL_OF = 12  # uniform numbers of variance 1/12


@kernel
def _number(seed: np.uint64, place: int) -> float:
    """The number at a place of a seed's row, evenly in [0, 1)."""
    mixed = seed + np.uint64(place + 1) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX2
    return float((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * (1.0 / (1 << 53))


@routine
def below(seed: np.uint64, limit: int, out: Array) -> None:
    """Fill out, i8[n, m], with whole numbers from 0 to limit - 1."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = int(_number(seed, row * out.shape[1] + column) * limit)


@routine
def normal(seed: np.uint64, out: Array) -> None:
    """Fill out, f8[n, m], with numbers of mean 0 and variance 1, within 6: sums of 12, which need no logarithm."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            total = -_NORMAL_OF / 2
            for one in range(_NORMAL_OF):
                total += _number(seed, (row * out.shape[1] + column) * _NORMAL_OF + one)
            out[row, column] = total
