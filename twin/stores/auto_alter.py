"""ALLOWAUTOALT(YES): what z/OS alters of a structure that fills. Pure functions; the twin assigns and alerts.

Sources: [published] z/OS, Setting Up a Sysplex: automatic alter from FULLTHRESHOLD on; the ratio stays where it is "in
line" with the one in use (Conditions preventing a system-initiated alter). [assumed] a sample every 60 s of event time,
to the ratio in use, then by 10 % up to SIZE; in line is what servers of CICS coupling facility data tables take so,
ALTERELEMPC(5) and ALTERENTRYPC(5).
"""

from __future__ import annotations

from fractions import Fraction

from kernels.clock import SECOND
from kernels.pools import AUTO_ALTER_GROWTH_PCT
from kernels.ticks import ALTER_TICKS
from twin.capacity.structures import Allocation, Usage, pool_sizes
from twin.estate import Structure

SEEN_AFTER_US = 180 * SECOND  # at FULLTHRESHOLD, after which a measurement would show an alter [assumed]
IN_LINE_PCT = 5  # percent of one pool left when the other runs out, up to which the ratio stays [assumed]


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


def _next_ratio(config: Structure, allocation: Allocation, usage: Usage) -> Fraction:
    """Return the ratio in use, or the allocated one where both are in line: z/OS alters no ratio for a small drift."""
    ents_max, elems_max = pool_sizes(config, *allocation)
    less, more = sorted((usage.entries * elems_max, usage.elements * ents_max))  # shares in use, times both totals
    if less == 0 or (more - less) * 100 <= IN_LINE_PCT * more:
        return Fraction(allocation.ratio)
    return Fraction(usage.elements, usage.entries)


def can_relieve(config: Structure, allocation: Allocation, usage: Usage) -> bool:
    """Return True if automatic alter takes what is in use below FULLTHRESHOLD, by ratio and SIZE, in time."""
    largest = Allocation(max(allocation.size, config.size), _next_ratio(config, allocation, usage))
    return not is_at_threshold(config, largest, usage)


def next_allocation(config: Structure, allocation: Allocation, usage: Usage) -> Allocation:
    """Return the allocation that automatic alter gives a structure at its threshold."""
    ratio = _next_ratio(config, allocation, usage)
    size = allocation.size
    if is_at_threshold(config, Allocation(size, ratio), usage):
        size = max(size, min(config.size, size + size * AUTO_ALTER_GROWTH_PCT // 100))
    return Allocation(size, ratio)
