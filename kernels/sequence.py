"""Duplicates and gaps in the numbering of a (queue manager, queue).

The last 4,096 numbers are remembered. One of them that was not seen before is late and closes its gap, an older one
counts as a duplicate. The first number seen starts a numbering.

The rule: docs/events.md#duplicates-gaps-and-late-events.
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel
from kernels.layout import FLOW_SHIFT, SEEN_SHIFT, SEEN_WORDS, SEQ_WINDOW, Store, touch


@kernel
def _word(flow: int, number: int) -> int:
    return flow * SEEN_WORDS + (number % SEQ_WINDOW) // 64


@kernel
def _bit(number: int) -> np.uint64:
    return np.uint64(1) << np.uint64(number % 64)


@kernel
def is_duplicate(store: Store, flow: int, number: int) -> bool:
    """Return True if this number was seen before, or is older than the numbers remembered."""
    numbering = store.flows[flow]
    if numbering.started == 0 or number > numbering.highest:
        return False
    if number <= numbering.highest - SEQ_WINDOW:
        return True
    return (store.seen[_word(flow, number)] & _bit(number)) != np.uint64(0)


@kernel
def take_number(store: Store, flow: int, number: int) -> None:
    """Remember a number that is no duplicate, and count the gaps that it opens or closes."""
    numbering = store.flows[flow]
    scalars = store.scalars[0]
    if numbering.started == 0:
        numbering.started = 1
        numbering.first = number
        numbering.highest = number
        for word in range(flow * SEEN_WORDS, (flow + 1) * SEEN_WORDS):
            store.seen[word] = np.uint64(0)
    elif number > numbering.highest:
        if number > numbering.highest + 1:
            scalars.gaps += number - numbering.highest - 1
            _forget(store, flow, numbering.highest + 1, number)
        numbering.highest = number
    elif number > numbering.first:
        scalars.gaps -= 1
    word = _word(flow, number)
    store.seen[word] |= _bit(number)
    touch(store.seen_dirty, word, SEEN_SHIFT)
    touch(store.flows_dirty, flow, FLOW_SHIFT)


@kernel
def _forget(store: Store, flow: int, start: int, end: int) -> None:
    """Clear the bits of the numbers start..end, which are new to the window."""
    if end - start >= SEQ_WINDOW - 1:
        for word in range(flow * SEEN_WORDS, (flow + 1) * SEEN_WORDS):
            store.seen[word] = np.uint64(0)
    else:
        for number in range(start, end + 1):
            store.seen[_word(flow, number)] &= ~_bit(number)
    touch(store.seen_dirty, flow * SEEN_WORDS, SEEN_SHIFT)


@kernel
def restart_numbering(store: Store, qmgr: int, flows: int) -> None:
    """Restart every numbering of a queue manager. Numbers missing before stay in `gaps`.

    Args:
        store: arrays of the store.
        qmgr: number of the queue manager.
        flows: number of rows of FLOW in use.
    """
    for flow in range(flows):
        if store.flows[flow].qmgr == qmgr and store.flows[flow].started == 1:
            store.flows[flow].started = 0
            touch(store.flows_dirty, flow, FLOW_SHIFT)
