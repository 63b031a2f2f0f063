"""ALLOWAUTOALT(YES): what z/OS alters of a structure that fills. Pure functions; the twin assigns and alerts.

Sources: [published] z/OS, Setting Up a Sysplex: automatic alter from FULLTHRESHOLD on. [assumed] a sample every 60 s of
event time, to the ratio in use, then by 10 % up to SIZE.
"""

from __future__ import annotations

from fractions import Fraction

from kernels.pools import AUTO_ALTER_GROWTH_PCT
from kernels.ticks import ALTER_TICKS
from twin.allocation import Allocation, Usage, pool_sizes
from twin.estate import Structure


def count_samples(before: int, tick: int) -> int:
    """Return how many times the structure is sampled after the tick `before`, up to `tick`."""
    return tick // ALTER_TICKS - before // ALTER_TICKS


def is_at_threshold(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if entries or elements in use reach FULLTHRESHOLD of an allocation (0: never)."""
    threshold = config.full_threshold
    if threshold == 0:
        return False
    ents_max, elems_max = pool_sizes(config, *allocation)
    return usage.entries * 100 >= threshold * ents_max or usage.elements * 100 >= threshold * elems_max


def _ratio_in_use(allocation: Allocation, usage: Usage) -> Fraction:
    entries, elements = usage.entries, usage.elements
    return Fraction(elements, entries) if entries and elements else Fraction(allocation.ratio)


def can_relieve(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if automatic alter takes what is in use below FULLTHRESHOLD, by ratio and SIZE, in time."""
    largest = Allocation(max(allocation.size, config.size), _ratio_in_use(allocation, usage))
    return not is_at_threshold(config, largest, usage)


def next_allocation(config: Structure, allocation: Allocation, usage: Usage) -> Allocation:
    """Return the allocation that automatic alter gives a structure at its threshold."""
    ratio = _ratio_in_use(allocation, usage)
    size = allocation.size
    if is_at_threshold(config, Allocation(size, ratio), usage):
        size = max(size, min(config.size, size + size * AUTO_ALTER_GROWTH_PCT // 100))
    return Allocation(size, ratio)
