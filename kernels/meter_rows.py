"""The rows that meters are made of: bins of flow, what is held by class, rises of each resource.

Their tables are pages of a store's state like any other (see layout.py).
"""

from __future__ import annotations

import numpy as np

CLASSES = 12  # of messages by their length (see meters.py)
LANES = 16  # room for the classes of one kind of flow in a row of `counts`
PUTS, YOUNG, KEPT, AWAY = 0, LANES, 2 * LANES, 3 * LANES  # where in a row: puts; given back soon after; later, and then
# from the store itself, or from a data set
COUNTS = 4 * LANES  # i4 a bin in `counts`
BINS = 384  # bins of one tick in the ring: 64 minutes

BIN = np.dtype(
    [
        ("tick", "i8"),  # which span of 10 s: the tick that begins it
        ("ages", "i8"),  # puts of the store when it began
        ("ents", "i8"),  # messages that held storage then
        ("space", "i8"),  # bytes of them
        ("lag", "i8"),  # of what was given back later: puts of the store since its own, in all
    ],
    align=True,
)

STOCK = (
    np.dtype(  # row 0..CLASSES-1: in the store itself; further CLASSES rows: in, or put by the owner of, data set 0...
        [
            ("held", "i8"),  # messages
            ("held_space", "i8"),  # elements in the structure; 4 KB pages in a data set
            ("puts", "f8"),  # puts of the last quarters of an hour, older ones counting half as much each quarter
            ("puts_space", "f8"),  # what they take in the store itself, whether or not they were offloaded
            ("puts_pages", "f8"),  # what they take in a data set
        ],
        align=True,
    )
)

SLOTS = 672  # quarters of an hour in a week
SLOT = np.dtype([("tick", "i8"), ("puts", "i8"), ("gets", "i8"), ("space", "i8")], align=True)

RISES = 16  # past rises kept for each resource
RISE = np.dtype(
    [
        ("began", "i8"),  # ticks
        ("ended", "i8"),
        ("low", "f8"),  # shares of 1
        ("top", "f8"),
        ("refused", "i8"),  # puts with 2192 since it began: it did not end of itself
    ],
    align=True,
)
TIDE = np.dtype(
    [
        ("rising", "i8"),  # 1: since `began`
        ("began", "i8"),  # tick at which usage was last near its lowest
        ("low", "f8"),  # share of the resource in use then
        ("topped", "i8"),  # tick at which usage last reached a new height
        ("top", "f8"),
        ("rises", "i8"),  # ended so far; the last RISES of them are kept
        ("refused", "i8"),  # puts with 2192 of the store, as counted when the rise began
    ],
    align=True,
)

BIN_SHIFT = 7  # rows a page, as powers of two
COUNT_SHIFT = 10  # 16 bins
STOCK_SHIFT = 6
SLOT_SHIFT = 7
TIDE_SHIFT = 5
RISE_SHIFT = 7
