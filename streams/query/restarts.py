"""Producers whose `seq` has started again, which the twins take for duplicates until it passes the old numbers.

A repeated delivery has old times, a producer that numbers from the beginning has new ones: most events of a store in a
batch are duplicates, and younger than the store's clock. This is a warning of the job only: it changes no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import structlog

from twin.estate import Estate
from twin.events import EventBlock

RESTARTED = "restarted_route"  # observed name: the largest number of a route with such a producer, plus one
MIN_EVENTS = 10  # of a store in a batch, for a judgement

_log = structlog.get_logger("mqtwin.stream")


def restarted_route(blocks: Iterable[EventBlock], duplicates: int, clock: int) -> int:
    """Return the number, plus one, of the route with most young duplicates of a store in a batch; 0 if they are few.

    Args:
        blocks: events of the store in the batch.
        duplicates: how many of them were duplicates.
        clock: of the store after the batch, microseconds. Events that were applied are not younger.
    """
    total, young = 0, []
    for block in blocks:
        total += len(block)
        young.append(block.events["route"][(block.events["time"] > clock) & (block.events["seq"] >= 0)])
    count = min(duplicates, sum(map(len, young)))
    if total < MIN_EVENTS or 2 * count <= total:
        return 0
    routes, counts = np.unique(np.concatenate(young), return_counts=True)
    return int(routes[np.argmax(counts)]) + 1


class RestartLog:
    """Warnings of producers whose `seq` has started again, one for each store and queue manager.

    Args:
        estate: of the job.
    """

    def __init__(self, estate: Estate) -> None:
        self._routes = estate.routes
        self._named: set[tuple[str, str]] = set()

    def on_progress(self, observed: Mapping[str, Any], duplicates: int) -> None:
        """Warn of the producer that a batch names. observed: its metrics; duplicates: in the whole batch."""
        number = int(observed.get(RESTARTED) or 0)
        if not number:
            return
        route = self._routes[number - 1]
        if (route.store, route.qmgr) in self._named:
            return
        self._named.add((route.store, route.qmgr))
        _log.warning(
            "a producer's seq has started again",
            store=route.store,
            qmgr=route.qmgr,
            duplicates=duplicates,
            effect="its events are taken for duplicates, which change nothing, until seq passes its old numbers",
            remedy="let it continue its numbers, or leave seq out; then send a MEASURE for the store",
        )
