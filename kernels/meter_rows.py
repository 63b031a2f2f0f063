"""The tables of the meters: bins of flow, stocks by length class, rises of each resource; and the resources' numbers.

The tables are cut into pages of state like any other table (see layout.py).
"""

from __future__ import annotations

import numpy as np

# Resources of a store: rows of `usage` and of `tides`, and results of a forecast, in which entries and space come first
# too, but only the data sets of its fill model follow.
ENTRIES = 0
BLOCKS = 0  # of a queue file, which has no entries: those of file and buffers together
SPACE = 1  # elements, pages or file blocks
SCM = 2
AUGMENTED = 3  # a row of `usage`: storage of the coupling facility for dynamic augmented space
TOTAL_TIDE = 3  # a row of `tides`: what all messages would take of a structure, wherever they are; it cannot be full
DATA_SETS = 4  # data set d, by its row of `datasets`, is DATA_SETS + d

# What a path of a forecast fills first
NOTHING_FULL = -1  # within the horizon
FIRST_DATA_SET = 2  # data set d of the fill model is FIRST_DATA_SET + d; SCM comes behind the last one

CLASSES = 12  # length classes of messages (see meters.py)
LANES = 16  # room for the classes of one kind of flow in a bin
PUTS = 0  # offset in a bin of puts, by class
YOUNG_GETS = LANES  # of messages removed soon after their put
STORE_GETS = 2 * LANES  # of messages removed later, from the store itself
DATA_SET_GETS = 3 * LANES  # of messages removed later, from a data set
COUNTS = 4 * LANES  # i4 in `counts` per bin
# Behind the classes of the first three kinds are puts refused for lack of storage, four classes each; behind those of
# the last kind are puts refused at MAXDEPTH, and their space.
REFUSED = np.array([size // 4 * LANES + CLASSES + size % 4 for size in range(CLASSES)])  # offset in a bin, by class
AT_MAX_DEPTH = DATA_SET_GETS + CLASSES
SPACE_AT_MAX_DEPTH = AT_MAX_DEPTH + 1
SPACE_PARTS = 64  # SPACE_AT_MAX_DEPTH is in such parts of an element, page or block
BINS = 384  # bins of one tick in the ring: 64 minutes

BIN = np.dtype(
    [
        ("tick", "i8"),  # with which it begins
        ("ages", "i8"),  # puts of the store before it
        ("lag", "i8"),  # sum over the messages removed late: puts of the store since their own
    ],
    align=True,
)

# Rows 0..CLASSES-1 are of the store itself, the next CLASSES rows of data set 0 and the puts of its owner, and so on.
STOCK = np.dtype(
    [
        ("held", "i8"),  # messages
        ("held_space", "i8"),  # elements in the structure, 4 KB pages in a data set
        ("puts", "f8"),  # puts, those of each earlier quarter of an hour counted half as much
        ("puts_space", "f8"),  # space of these puts in the store itself, if not offloaded
        ("puts_pages", "f8"),  # pages of these puts in a data set, if offloaded
    ],
    align=True,
)

RISES = 32  # past rises kept, of what the store holds in all and of data sets apart
RISE = np.dtype(
    [
        ("tide", "i8"),  # row of `tides` whose rise it was
        ("began", "i8"),  # ticks
        ("ended", "i8"),
        ("low", "f8"),  # utilisation, as a share
        ("top", "f8"),
        ("usage", "f8"),  # largest share of a resource in use at the top
        ("refused", "i8"),  # puts with 2192 during the rise: it did not end by itself
        ("puts", "i8"),  # messages put from the beginning to the top
        ("stayed", "i8"),  # messages more at the top than at the beginning
    ],
    align=True,
)
TIDE = np.dtype(  # the rise of a resource that is under way, or its fall
    [
        ("share", "f8"),  # utilisation at the last tick; 0 of the total of all messages
        ("rising", "i8"),  # 1: it rises since `began`
        ("began", "i8"),  # tick at which utilisation was last near its lowest
        ("low", "f8"),  # utilisation at that tick
        ("topped", "i8"),  # tick at which utilisation was last at its highest
        ("top", "f8"),
        ("usage", "f8"),  # largest share of a resource in use at that tick
        ("apart", "i8"),  # 1: of a data set so small beside its structure that TOTAL_TIDE does not show its rises
        ("rises", "i8"),  # of TOTAL_TIDE: rises kept so far, of all tides
        ("refused", "i8"),  # puts with 2192 of the store before the rise
        ("puts", "i8"),  # of the store, before the rise and at the top
        ("puts_at_top", "i8"),
        ("messages", "i8"),  # held before the rise and at the top
        ("messages_at_top", "i8"),
    ],
    align=True,
)

BIN_SHIFT = 7  # rows per page, as powers of two
COUNT_SHIFT = 10  # 16 bins
STOCK_SHIFT = 6
TIDE_SHIFT = 5
RISE_SHIFT = 7
