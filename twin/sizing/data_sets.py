"""Space of data sets: units of a 3390 in which they are allocated, and blocks or pages that messages take by next fit.

A 3390 has 15 tracks per cylinder [IBM: z/OS DFSMS, Direct access storage devices, table 1] and 12 control intervals of
4096 bytes per track. Real SMF 115 records agree: page sets of 540, 1,080, 50,040 or 963,720 pages are whole cylinders.

By next fit a message goes into the current bin if it fits there. Otherwise it starts a new bin and takes as many as it
needs, and its last one becomes the current bin. Blocks of a shared message data set are filled with pages this way
(docs/storage-model.md), and pages of a page set with records before MQ 7.0.1 [IBM: Page sets 01 to 99, Short messages].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.units import CYLINDER, GIB, TRACK

PAGE_BYTES = 4096
PAGES_PER_TRACK = TRACK // PAGE_BYTES


@dataclass(frozen=True, slots=True)
class Extent:
    """Space of a data set: bytes, 4 KB pages (records of its cluster), and cylinders of a 3390, rounded up."""

    bytes: int
    pages: int
    cylinders: int

    @classmethod
    def of_pages(cls, pages: int) -> Extent:
        """Return the extent of a number of 4 KB pages."""
        return cls(pages * PAGE_BYTES, pages, -(-pages * PAGE_BYTES // CYLINDER))


def extended_addressability(size: int) -> list[str]:
    """Return the warning about a VSAM data set of more than 4 GB, none below [IBM: z/OS DFSMS Using Data Sets]."""
    if size < 4 * GIB:
        return []
    return ["more than 4 GB: its SMS data class needs extended addressability, else it ends at 4 GB"]


def places(sizes: Sequence[int], counts: Sequence[int], capacity: int) -> int:
    """Return the bins of equal capacity that messages in random order take, rounded up; exact for those of one size.

    The messages that start a bin form a Markov chain: after one that leaves room, others follow until one does not fit.
    Its stationary distribution gives the bins per message.

    Args:
        sizes: sizes of messages, at least 1.
        counts: number of messages of each size.
        capacity: size of a bin.
    """
    total = sum(counts)
    if not total:
        return 0
    share = np.array(counts, np.float64) / total
    bins = np.array([-(-size // capacity) for size in sizes])
    until, opener = _until_next(sizes, share, capacity)
    room = bins * capacity - np.array(sizes)
    state = _stationary(opener[room])
    bins_per_message = float(state @ bins) / float(state @ until[room])
    min_bins = -(-sum(size * count for size, count in zip(sizes, counts, strict=True)) // capacity)
    return max(min_bins, math.ceil(round(total * bins_per_message, 6)))


def _until_next(
    sizes: Sequence[int], share: np.ndarray[tuple[int], np.dtype[np.float64]], capacity: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Return, by the room left in a bin, the messages until a new bin starts, and the size that starts it.

    Returns:
        f8[capacity], the mean number of messages, the one that starts the bin included, and f8[capacity, n], the
        probability that it has each size.
    """
    until = np.ones(capacity)
    opener = np.zeros((capacity, len(sizes)))
    for room in range(capacity):
        for kind, size in enumerate(sizes):
            if size > room:
                opener[room, kind] += share[kind]
            else:
                until[room] += share[kind] * until[room - size]
                opener[room] += share[kind] * opener[room - size]
    return until, opener


def _stationary(
    chain: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the stationary distribution of a chain, f8[n]."""
    kinds = len(chain)
    equations = np.vstack([chain.T - np.eye(kinds), np.ones(kinds)])
    solved: np.ndarray[tuple[int], np.dtype[np.float64]] = np.linalg.lstsq(equations, np.eye(kinds + 1)[-1])[0]
    return solved
