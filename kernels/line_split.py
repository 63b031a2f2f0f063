"""Compiled cutting of values into lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import routine

Array = npt.NDArray[Any]


@routine
def split_lines(
    data: npt.NDArray[np.uint8],
    breaks: Array,
    starts: Array,
    ends: Array,
    record: Array,
    index: Array,
    firsts: Array,
    lasts: Array,
) -> int:
    """Cut the values data[starts[k]:ends[k]] at their line breaks; lines of nothing but white space are left out.

    data u1[...]; breaks i8[b]: where LF stands, ascending; starts, ends i8[n], ascending; written: record i4[b + n]
    (k), index i8[b + n] (line within the value, those left out counted), firsts, lasts i8[b + n] (the line, without
    a CR at its end). Returns how many.
    """
    count = 0
    at_break = 0
    for k in range(starts.size):
        at = starts[k]
        end = ends[k]
        line = 0
        while at_break < breaks.size and breaks[at_break] < at:
            at_break += 1
        while at < end:
            stop = end
            if at_break < breaks.size and breaks[at_break] < end:
                stop = breaks[at_break]
                at_break += 1
            last = stop
            if last > at and data[last - 1] == 13:
                last -= 1
            first = at
            while first < last and (data[first] == 32 or data[first] == 9 or data[first] == 13):
                first += 1
            if first < last:
                record[count] = k
                index[count] = line
                firsts[count] = at
                lasts[count] = last
                count += 1
            line += 1
            at = stop + 1
    return count
