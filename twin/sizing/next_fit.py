"""How many places of one capacity a mix takes, whose messages come in random order and are stored one after the other.

A message goes into the place being filled if it fits there, else it begins at the next free one and takes as many as
it needs; the rest of its last one becomes the place being filled. Blocks of a shared message data set are filled with
pages this way (domain.md section 2), pages of a page set with records before IBM MQ 7.0.1 (*Page sets 01 to 99*,
Short messages).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def places(sizes: Sequence[int], counts: Sequence[int], capacity: int) -> int:
    """Places for `counts[i]` messages of `sizes[i]` (1 or more), rounded up; exact for messages of one size.

    The messages that begin a place follow each other as a Markov chain: after one that leaves some room, others come
    until one does not fit. Its stationary state gives places a message.
    """
    total = sum(counts)
    if not total:
        return 0
    share = np.array(counts, np.float64) / total
    taken = np.array([-(-size // capacity) for size in sizes])
    until, opener = _until_next(sizes, share, capacity)
    room = taken * capacity - np.array(sizes)
    state = _stationary(opener[room])
    a_message = float(state @ taken) / float(state @ until[room])
    least = -(-sum(size * count for size, count in zip(sizes, counts, strict=True)) // capacity)
    return max(least, math.ceil(round(total * a_message, 6)))


def _until_next(
    sizes: Sequence[int], share: np.ndarray[tuple[int], np.dtype[np.float64]], capacity: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """By the room that is left: messages until one begins a new place, that one counted; whose turn it is then.

    f8[capacity], a mean over what may come, and f8[capacity, n], a probability for each size.
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
    """The state that the chain leaves as it is: f8[n], its sum 1."""
    kinds = len(chain)
    equations = np.vstack([chain.T - np.eye(kinds), np.ones(kinds)])
    solved: np.ndarray[tuple[int], np.dtype[np.float64]] = np.linalg.lstsq(equations, np.eye(kinds + 1)[-1])[0]
    return solved
