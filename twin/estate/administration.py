"""The size of an administration structure by the number of queue managers, as IBM has published it.

Sources: [IBM: WebSphere MQ V6, Concepts and Planning, Table 19] for CFLEVEL 9: "for higher levels of CFCC, they
probably need to be larger"; [IBM: IBM MQ for z/OS: Performance on IBM z16, CSQ_ADMIN by queue managers] for CFLEVEL 21
to 24 and for 25, read off a chart to half a megabyte; [IBM: CSQE022E Structure CSQ_ADMIN unusable, swg21264321] for the
list entries, which are counted for the queue managers that CSQ5PQSG has added, also for those that are down.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from twin.units import KIB, MIB

ENTRIES_PER_QMGR = 1000  # list entries that it must have room for [IBM: swg21264321]
MAX_QMGRS = 32  # of the published sizes
NEWEST_CFLEVEL = 25  # of the published sizes


class PublishedSizes(NamedTuple):
    """Least sizes for the coupling facilities of some levels."""

    from_cflevel: int  # the first level
    source: str  # the document, in words
    kilobytes: Mapping[int, int]  # size by number of queue managers
    error: int  # bytes by which a size may be wrong

    def is_listed(self, qmgrs: int) -> bool:
        """Return True if the document has that number of queue managers."""
        return qmgrs in self.kilobytes

    def least(self, qmgrs: int) -> int:
        """Return the least size for a number of queue managers, bytes; between two that are listed on their line."""
        listed = sorted(self.kilobytes.items())
        pieces = list(pairwise(listed))
        (low, small), (high, large) = next((piece for piece in pieces if qmgrs <= piece[1][0]), pieces[-1])
        return -(-KIB * (small * (high - low) + (large - small) * (qmgrs - low)) // (high - low))


PUBLISHED = (
    PublishedSizes(
        9,
        "WebSphere MQ V6 Concepts and Planning, Table 19",
        {1: 2560, 2: 3328, 4: 4608, 8: 7680, 16: 13568, 31: 24832},
        0,
    ),
    PublishedSizes(21, "Performance on IBM z16, chart", {1: 14300, 8: 20500, 16: 28700, 32: 43000}, MIB // 2),
    PublishedSizes(25, "Performance on IBM z16, chart", {1: 22500, 8: 28700, 16: 35800, 32: 51200}, MIB // 2),
)


def published_for(cflevel: int | None) -> PublishedSizes:
    """Return the sizes for a facility: of its level, else of the next one published; None takes the largest."""
    if cflevel is None:
        return PUBLISHED[-1]
    covering = (sizes for sizes, after in pairwise(PUBLISHED) if cflevel < after.from_cflevel)
    fitting = next(covering, PUBLISHED[-1])
    # Between CFLEVEL 9 and 21 nothing is published: the older figure would be too small.
    return PUBLISHED[1] if fitting is PUBLISHED[0] and cflevel > fitting.from_cflevel else fitting
