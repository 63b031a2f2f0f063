"""Messages whose length is a mean, because statistics count them: how wrong the sum of their elements may be.

With the mean instead of the single lengths, each message is wrong by less than one element (docs/state.md).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from kernels import layout
from twin.state.arrays import Array


def counted_rows(events: Array, routes: Array, base: int) -> list[int]:
    """Return the rows of the queues of which a put is a count of several messages.

    Args:
        events: EVENT[n].
        routes: of the store, with the row of the queue of each.
        base: number of the first of them among the routes of the estate.
    """
    if events["count"].max(initial=1) == 1:
        return []
    puts = (events["count"] > 1) & (events["op"] == layout.PUT) & (events["reason"] == 0)
    rows: list[int] = np.unique(routes["queue"][events["route"][puts] - base]).tolist()
    return rows


def messages_of_mean_length(store: layout.Store, queues: Sequence[str], counted: Collection[str]) -> int:
    """Return the number of messages held of queues that are counted.

    Args:
        store: the arrays.
        queues: names of the queues by row.
        counted: names of those whose messages have a mean length.
    """
    depths = store.queues["depth"]
    return sum(int(depths[row]) for row, queue in enumerate(queues) if queue in counted)
