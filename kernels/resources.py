"""Numbers of the resources of a store, as rows of `tides` and as results of a forecast.

Entries and space come first in both. Behind them the numberings differ: rows of `tides` have a place for every data set
of the store, a forecast only for those that its fill model has.
"""

from __future__ import annotations

ENTRIES = 0
SPACE = 1  # elements, pages or blocks

# Rows of `tides`, whose rises are detected
SCM_TIDE = 2
TOTAL_TIDE = 3  # what all messages would take of a structure, wherever they are; it cannot be full
FIRST_DATA_SET_TIDE = 4  # data set d, by its row of `datasets`, is FIRST_DATA_SET_TIDE + d

# What a path of a forecast fills first
NOTHING_FULL = -1  # within the horizon
FIRST_DATA_SET = 2  # data set d of the fill model is FIRST_DATA_SET + d; SCM comes behind the last one
