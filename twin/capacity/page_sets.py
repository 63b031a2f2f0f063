"""The size of a page set: the pages of its data set, and those that are usable."""

from __future__ import annotations

from bisect import bisect_left

from kernels.page_set import usable_pages


def allocated_pages(usable: int) -> int:
    """Return the smallest number of allocated pages of which `usable` are usable [fitted]."""
    return bisect_left(range(2 * usable + 4), usable, key=usable_pages)
