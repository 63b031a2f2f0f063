"""The watched queue managers that a batch had events of, as bits that Spark combines (`streams.query.silence`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from twin.estate import Estate
from twin.events import EventBlock
from twin.stores.silence import is_report, watched_queue_managers

HEARD = "heard"  # column of `streams.query.rows.RECORD_DDL`, and beginning of the names of its observed words
_WORD_BITS = 62  # of a signed 64-bit number


class SourceBits:
    """The watched queue managers of an estate as bits, so that Spark can bring those of a batch together."""

    def __init__(self, estate: Estate) -> None:
        self.names = sorted(watched_queue_managers(estate))
        place = {name: number for number, name in enumerate(self.names)}
        nobody = len(self.names)
        self._of_route = np.array([place.get(route.qmgr, nobody) for route in estate.routes], np.int32)

    @property
    def columns(self) -> list[str]:
        """Names of the observed words; none where nobody is watched."""
        return [f"{HEARD}_{number}" for number in range(-(-len(self.names) // _WORD_BITS))]

    def words(self, blocks: Iterable[EventBlock]) -> list[int]:
        """Return a bit for each watched queue manager that has an event in the blocks. Reports of silence are none."""
        heard = np.zeros(len(self.names) + 1, np.bool_)
        for block in blocks if self.names else ():
            places = self._of_route[block.events["route"]]
            heard[places[~is_report(block)] if block.extras else places] = True
        words = [0] * len(self.columns)
        for number in np.flatnonzero(heard[:-1]).tolist():
            words[number // _WORD_BITS] |= 1 << number % _WORD_BITS
        return words

    def heard(self, observed: Mapping[str, Any]) -> list[str]:
        """Return the queue managers in the observed words of a batch."""
        words = [int(observed.get(name) or 0) for name in self.columns]
        return [
            name for number, name in enumerate(self.names) if words[number // _WORD_BITS] >> number % _WORD_BITS & 1
        ]
