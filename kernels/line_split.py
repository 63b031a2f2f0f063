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
    """Cut the values data[starts[k]:ends[k]] at their line breaks, skipping lines of white space only.

    Args:
        data: u1[...].
        breaks: i8[b], positions of LF, ascending.
        starts: i8[n], byte at which a value begins, ascending.
        ends: i8[n], byte behind a value, ascending.
        record: i4[b + n], written: k of a line.
        index: i8[b + n], written: number of a line within its value, counting those skipped.
        firsts: i8[b + n], written: first byte of a line.
        lasts: i8[b + n], written: byte behind a line, without a CR at its end.

    Returns:
        The number of lines.
    """
    count = 0
    next_break = 0
    for k in range(starts.size):
        pos = starts[k]
        end = ends[k]
        line = 0
        while next_break < breaks.size and breaks[next_break] < pos:
            next_break += 1
        while pos < end:
            stop = end
            if next_break < breaks.size and breaks[next_break] < end:
                stop = breaks[next_break]
                next_break += 1
            last = stop
            if last > pos and data[last - 1] == 13:
                last -= 1
            first = pos
            while first < last and (data[first] == 32 or data[first] == 9 or data[first] == 13):
                first += 1
            if first < last:
                record[count] = k
                index[count] = line
                firsts[count] = pos
                lasts[count] = last
                count += 1
            line += 1
            pos = stop + 1
    return count
