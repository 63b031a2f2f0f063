"""Compiled loops over the columns of event rows: the smallest encoding of a column, its numbers, and back.

`twin.events.block` describes the encodings and writes the head of each column. Rows are words, i8[n, words of a row]. A
column is a part of one word: `left` bits are above it, `right` bits are above and below it, and it is signed or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine
from kernels._intrinsics import load_word

CONSTANT, PLAIN, STEPS, SPARSE = range(4)

Array = npt.NDArray[Any]


@kernel
def _width(span: np.uint64) -> int:
    """Return the number of bytes of a number from 0 to `span`: 1, 2, 4 or 8."""
    if span < np.uint64(1 << 8):
        return 1
    if span < np.uint64(1 << 16):
        return 2
    return 4 if span < np.uint64(1 << 32) else 8


@kernel
def _span(low: np.int64, high: np.int64) -> np.uint64:
    """Return high - low, which may take all 64 bits."""
    return np.uint64(high) - np.uint64(low)


@routine
def pack_column(
    words: Array, word: int, left: int, right: int, is_signed: bool, values: Array, bits: Array, out: Array, head: Array
) -> None:
    """Encode a column of at least one row.

    Args:
        words: i8[n, m], the rows.
        word: of a row, with the column.
        left: bits above the column.
        right: bits above and below it.
        is_signed: True for a column of signed integers.
        values: i8[n], overwritten.
        bits: u1[(n + 7) // 8], written: the bits of a SPARSE column, a byte's highest bit first.
        out: u1[8 * n], written: the numbers, little-endian.
        head: i8[5], written: kind, width, first, low, bytes of `out`.
    """
    count = words.shape[0]
    up, down = np.int64(left), np.int64(right)
    low, high = np.int64(2**63 - 1), np.int64(-(2**63))
    for i in range(count):
        value = words[i, word] << up
        value = value >> down if is_signed else np.int64(np.uint64(value) >> np.uint64(right))
        values[i] = value
        low, high = min(low, value), max(high, value)
    kind, first, width = CONSTANT, np.int64(0), 0
    size = 0
    if low != high:
        kind, width = PLAIN, _width(_span(low, high))
        size = count * width
        step_low, step_high = np.int64(2**63 - 1), np.int64(-(2**63))
        nonzero = np.int64(values[0] != 0)
        for i in range(1, count):
            step = values[i] - values[i - 1]  # one that does not fit wraps around, and back when steps are summed up
            step_low, step_high = min(step_low, step), max(step_high, step)
            nonzero += values[i] != 0
        step_width = _width(_span(step_low, step_high))
        smallest = min(size, (count - 1) * step_width)
        if (count + 7) // 8 + nonzero < smallest:
            low_present, high_present = np.int64(2**63 - 1), np.int64(-(2**63))
            for i in range(count):
                if values[i] != 0:
                    low_present, high_present = min(low_present, values[i]), max(high_present, values[i])
            present_width = _width(_span(low_present, high_present))
            if (count + 7) // 8 + nonzero * present_width < smallest:
                kind, width, first, low = SPARSE, present_width, nonzero, low_present
                size = int(nonzero) * present_width
        if kind == PLAIN and (count - 1) * step_width < size:
            kind, width, first, low = STEPS, step_width, values[0], step_low
            size = (count - 1) * step_width
            count -= 1
            for i in range(count):
                values[i] = values[i + 1] - values[i]
    if kind == SPARSE:
        bits[:] = 0
        place = 0
        for i in range(count):
            if values[i] != 0:
                bits[i >> 3] |= np.uint8(128 >> (i & 7))
                values[place] = values[i]
                place += 1
        count = place
    if kind != CONSTANT:
        _write_numbers(values, count, low, width, out)
    head[0], head[1], head[2], head[3], head[4] = kind, width, first, low, size


@kernel
def _write_numbers(values: Array, count: int, low: np.int64, width: int, out: Array) -> None:
    """Write values[:count] - low as little-endian numbers of `width` bytes."""
    if width == 1:
        for i in range(count):
            out[i] = np.uint8(values[i] - low)
        return
    for i in range(count):
        number = np.uint64(values[i] - low)
        for k in range(width):
            out[i * width + k] = np.uint8(number >> np.uint64(8 * k))


@kernel
def _number(data: Array, place: Any, width: Any) -> np.int64:
    """Return the little-endian number of `width` bytes at `place`."""
    if width == 1:
        return np.int64(data[place])
    if width == 8:
        return np.int64(load_word(data, place))
    number = np.uint64(data[place]) | np.uint64(data[place + 1]) << np.uint64(8)
    if width == 4:
        number |= np.uint64(data[place + 2]) << np.uint64(16) | np.uint64(data[place + 3]) << np.uint64(24)
    return np.int64(number)


@routine
def unpack_column(data: Array, start: int, head: Array, words: Array, word: int, left: int, right: int) -> None:
    """Decode a column into rows whose part of it is 0. Arguments of the same name as in `pack_column`.

    Args:
        data: u1[...]: the bits of a SPARSE column, then the numbers; all exist.
        start: their first byte.
        head: i8[4]: kind, width, first, low.
        words: i8[n, m], written.
        word: of a row, with the column.
        left: bits above the column.
        right: bits above and below it.
    """
    kind, width, value, low = head[0], np.int64(head[1]), head[2], head[3]
    count = words.shape[0]
    mask = ~np.uint64(0) >> np.uint64(right)
    up = np.uint64(right - left)
    place = start + (count + 7) // 8 if kind == SPARSE else start
    for i in range(count):
        if kind == CONSTANT:
            value = low
        elif kind == PLAIN:
            value = low + _number(data, place + i * width, width)
        elif kind == STEPS:
            if i > 0:
                value += low + _number(data, place + (i - 1) * width, width)
        elif data[start + (i >> 3)] & (128 >> (i & 7)):
            value = low + _number(data, place, width)
            place += width
        else:
            value = np.int64(0)
        words[i, word] |= np.int64((np.uint64(value) & mask) << up)
