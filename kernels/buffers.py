"""Compiled loops over buffers: lines of a value, metadata of Arrow IPC streams, columns of rows.

- Arrow IPC: only the flatbuffers in front of the bodies are read, and the eight bytes of a compressed buffer that hold
  its size. Sources: [published: Arrow columnar format, "Encapsulated message format" and "RecordBatch message",
  `Message.fbs`]; [published: FlatBuffers binary format, "Tables" and "Vectors"].
- Columns of event rows: the smallest encoding of a column, its numbers, and back. `twin.events.decoded` describes the
  encodings and writes the head of each column. Rows are words, i8[n, words of a row]. A column is a part of one word:
  `left` bits are above it, `right` bits are above and below it, and it is signed or not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine
from kernels._intrinsics import load_word

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

# --- metadata of Arrow IPC streams ------------------------------------------------------------------------------------

COLUMN_BYTES = 256  # memory that a column of a batch takes besides its buffers

_HUGE = np.int64(1 << 48)  # sums do not grow beyond this
_V5 = 4  # MetadataVersion from which the batch declares compression
_DICTIONARY, _BATCH = 2, 3  # MessageHeader
_KEY = (65, 82, 82, 79, 87, 58, 101, 120)  # "ARROW:ex", with which version 4 declared compression


@kernel
def _number(data: Bytes, pos: int, size: int) -> Any:
    """Return the signed little-endian integer of `size` bytes (2, 4 or 8) at `pos`."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[pos + i]) << np.uint64(8 * i)
    if size < 8 and data[pos + size - 1] >= 128:
        word |= ~np.uint64(0) << np.uint64(8 * size)
    return np.int64(word)


@kernel
def _field(data: Bytes, table: int, slot: int, low: int, high: int) -> Any:
    """Return the position of a field of a table; -1: absent; -2: the table does not lie within low:high."""
    if table < low or table + 4 > high:
        return -2
    vtable = table - _number(data, table, 4)
    if vtable < low or vtable + 4 > high:
        return -2
    size = _number(data, vtable, 2) & 0xFFFF
    if vtable + size > high:
        return -2
    if 4 + 2 * slot + 2 > size:
        return -1
    offset = _number(data, vtable + 4 + 2 * slot, 2) & 0xFFFF
    if offset == 0:
        return -1
    pos = table + offset
    return pos if pos < high else -2


@kernel
def _target(data: Bytes, pos: int, low: int, high: int) -> Any:
    """Return the target of the reference at `pos`; -2 if it is not within low:high."""
    if pos < low or pos + 4 > high:
        return -2
    offset = _number(data, pos, 4) & 0xFFFFFFFF
    if pos + offset + 4 > high:
        return -2
    return pos + offset


@kernel
def _integer(data: Bytes, table: int, slot: int, low: int, high: int) -> Any:
    """Return an int64 field; 0: absent; -1: unreadable."""
    pos = _field(data, table, slot, low, high)
    if pos == -1:
        return np.int64(0)
    if pos < 0 or pos + 8 > high:
        return np.int64(-1)
    return _number(data, pos, 8)


@kernel
def _names_compression(data: Bytes, low: int, high: int) -> bool:
    """Return True if the metadata holds the key with which version 4 declared compression."""
    for pos in range(low, high - 8):
        i = 0
        while i < 8 and data[pos + i] == _KEY[i]:
            i += 1
        if i == 8:
            return True
    return False


@routine
def scan_streams(
    data: Bytes, starts: Array, ends: Array, rows: Array, longest: Array, sizes: Array, sound: Array
) -> None:
    """Read the metadata of the streams data[starts[k]:ends[k]].

    Args:
        data: u1[...].
        starts: i8[n], byte at which a stream begins.
        ends: i8[n], byte behind a stream.
        rows: i8[n], written: rows of all record batches.
        longest: i8[n], written: values of the longest column, nested columns and dictionaries included.
        sizes: i8[n], written: bytes of all buffers once decompressed, and COLUMN_BYTES per column and batch. A
            dictionary that grows counts again as a whole, since Arrow copies it.
        sound: i8[n], written: bytes from the start of the stream that are whole messages; the whole stream if it ends
            with a message or has an end mark.
    """
    for k in range(starts.size):
        rows[k] = 0
        longest[k] = 0
        sizes[k] = 0
        dictionary_bytes = np.int64(0)
        pos = starts[k]
        end = ends[k]
        while True:
            sound[k] = pos - starts[k]
            if pos + 4 > end:
                break
            head = 4
            size = _number(data, pos, 4)
            if size == -1:
                if pos + 8 > end:
                    break
                head = 8
                size = _number(data, pos + 4, 4)
            if size == 0:
                sound[k] = end - starts[k]
                break
            low = pos + head
            high = low + size
            if size < 8 or high > end:
                break
            message = _target(data, low, low, high)
            if message < 0:
                break
            length = _integer(data, message, 3, low, high)
            if length < 0 or length > end - high:
                break
            kind_at = _field(data, message, 1, low, high)
            if kind_at == -2:
                break
            kind = 0 if kind_at == -1 else data[kind_at]
            if kind in (_DICTIONARY, _BATCH):
                batch_at = _field(data, message, 2, low, high)
                batch = -2
                if batch_at >= 0:
                    batch = _target(data, batch_at, low, high)
                grows = False
                if kind == _DICTIONARY and batch >= 0:
                    grows_at = _field(data, batch, 2, low, high)
                    inner_at = _field(data, batch, 1, low, high)
                    batch = -2
                    if inner_at >= 0 and grows_at != -2:
                        grows = grows_at >= 0 and data[grows_at] != 0
                        batch = _target(data, inner_at, low, high)
                if batch < 0:
                    break
                compressed_at = _field(data, batch, 3, low, high)
                version_at = _field(data, message, 0, low, high)
                count = _integer(data, batch, 0, low, high)
                if compressed_at == -2 or version_at == -2 or count < 0:
                    break
                compressed = compressed_at >= 0
                version = np.int64(0)
                if version_at >= 0:
                    version = _number(data, version_at, 2)
                if version < _V5 and not compressed:
                    compressed = _names_compression(data, low, high)
                total = np.int64(0)
                longest_column = count
                is_sound = True
                for slot in range(1, 3):  # nodes, then buffers: both are pairs of 8 bytes
                    vector_at = _field(data, batch, slot, low, high)
                    if vector_at == -1:
                        continue
                    vector = -2
                    if vector_at >= 0:
                        vector = _target(data, vector_at, low, high)
                    if vector < 0:
                        is_sound = False
                        break
                    pairs = _number(data, vector, 4) & 0xFFFFFFFF
                    if vector + 4 + 16 * pairs > high:
                        is_sound = False
                        break
                    for i in range(pairs):
                        first = _number(data, vector + 4 + 16 * i, 8)
                        second = _number(data, vector + 4 + 16 * i + 8, 8)
                        if first < 0 or (second < 0 and slot == 2):
                            is_sound = False
                            break
                        if slot == 1:
                            total += COLUMN_BYTES
                            longest_column = max(longest_column, first)
                        else:
                            if first > length or second > length - first:
                                is_sound = False
                                break
                            if compressed and second >= 8:
                                decompressed = _number(data, high + first, 8)
                                if decompressed >= 0:
                                    second = decompressed
                            total = min(_HUGE, total + min(_HUGE, second))
                    if not is_sound:
                        break
                if not is_sound:
                    break
                if kind == _DICTIONARY:
                    if grows:
                        total += dictionary_bytes
                    dictionary_bytes = min(_HUGE, dictionary_bytes + total)
                else:
                    rows[k] = min(_HUGE, rows[k] + min(_HUGE, count))
                longest[k] = max(longest[k], min(_HUGE, longest_column))
                sizes[k] = min(_HUGE, sizes[k] + total)
            pos = high + length


# --- lines of a value -------------------------------------------------------------------------------------------------


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


# --- columns of rows --------------------------------------------------------------------------------------------------

CONSTANT, PLAIN, STEPS, SPARSE = range(4)


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
def _packed_number(data: Array, place: Any, width: Any) -> np.int64:
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
            value = low + _packed_number(data, place + i * width, width)
        elif kind == STEPS:
            if i > 0:
                value += low + _packed_number(data, place + (i - 1) * width, width)
        elif data[start + (i >> 3)] & (128 >> (i & 7)):
            value = low + _packed_number(data, place, width)
            place += width
        else:
            value = np.int64(0)
        words[i, word] |= np.int64((np.uint64(value) & mask) << up)
