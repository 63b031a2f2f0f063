"""Compiled reading of the metadata of Arrow IPC streams: the size of a stream in memory, before it is read into memory.

Only the flatbuffers in front of the bodies are read, and the eight bytes of a compressed buffer that hold its size.
Sources: [published: Arrow columnar format, "Encapsulated message format" and "RecordBatch message", `Message.fbs`];
[published: FlatBuffers binary format, "Tables" and "Vectors"].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

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
