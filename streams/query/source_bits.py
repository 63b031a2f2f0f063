"""Bits for the watched queue managers with events in a batch, combined by Spark (see `streams.query.silence`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from twin.estate import Estate
from twin.events import EventBlock
from twin.stores.silence import is_report, watched_queue_managers

HEARD = "heard"  # column of `streams.query.rows.RECORD_DDL`, and prefix of the names of the observed words
_WORD_BITS = 62  # used bits of a signed 64-bit number


class SourceBits:
    """The watched queue managers of an estate, a bit for each, so that Spark can combine those of all tasks."""

    def __init__(self, estate: Estate) -> None:
        self.names = sorted(watched_queue_managers(estate))
        bits = {name: bit for bit, name in enumerate(self.names)}
        unwatched = len(self.names)
        self._route_bits = np.array([bits.get(route.qmgr, unwatched) for route in estate.routes], np.int32)

    @property
    def columns(self) -> list[str]:
        """Names of the observed words; empty if no queue manager is watched."""
        return [f"{HEARD}_{i}" for i in range(-(-len(self.names) // _WORD_BITS))]

    def words(self, blocks: Iterable[EventBlock]) -> list[int]:
        """Return words with a bit for each watched queue manager with an event; reports of silence do not count."""
        heard = np.zeros(len(self.names) + 1, np.bool_)
        for block in blocks if self.names else ():
            bits = self._route_bits[block.events["route"]]
            heard[bits[~is_report(block)] if block.extras else bits] = True
        words = [0] * len(self.columns)
        for bit in np.flatnonzero(heard[:-1]).tolist():
            words[bit // _WORD_BITS] |= 1 << bit % _WORD_BITS
        return words

    def heard(self, observed: Mapping[str, Any]) -> list[str]:
        """Return the queue managers in the observed words of a batch."""
        words = [int(observed.get(name) or 0) for name in self.columns]
        return [name for bit, name in enumerate(self.names) if words[bit // _WORD_BITS] >> bit % _WORD_BITS & 1]
