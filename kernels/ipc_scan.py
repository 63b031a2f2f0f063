"""Compiled reading of the metadata of Arrow IPC streams: how much a stream would be in memory, before any of it is.

Only the flatbuffers in front of the bodies are read, and of a compressed buffer the eight bytes that say how long it
will be. Sources: the Arrow columnar format, "Encapsulated message format" and "RecordBatch message"; `Message.fbs`;
the FlatBuffers binary format, "Tables" and "Vectors".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernels._compile import kernel, routine

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

COLUMN_BYTES = 256  # of memory that one column of one batch takes beside its buffers

_HUGE = np.int64(1 << 48)  # sums stop here
_V5 = 4  # MetadataVersion: compression is declared by the batch
_DICTIONARY, _BATCH = 2, 3  # MessageHeader
_KEY = (65, 82, 82, 79, 87, 58, 101, 120)  # "ARROW:ex": how version 4 declared compression


@kernel
def _number(data: Bytes, at: int, size: int) -> Any:
    """The signed little-endian integer of `size` bytes (2, 4 or 8) at `at`."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    if size < 8 and data[at + size - 1] >= 128:
        word |= ~np.uint64(0) << np.uint64(8 * size)
    return np.int64(word)


@kernel
def _field(data: Bytes, table: int, slot: int, low: int, high: int) -> Any:
    """Where a field of a table stands; -1: absent; -2: the table does not lie within low:high."""
    if table < low or table + 4 > high:
        return -2
    places = table - _number(data, table, 4)
    if places < low or places + 4 > high:
        return -2
    size = _number(data, places, 2) & 0xFFFF
    if places + size > high:
        return -2
    if 4 + 2 * slot + 2 > size:
        return -1
    offset = _number(data, places + 4 + 2 * slot, 2) & 0xFFFF
    if offset == 0:
        return -1
    at = table + offset
    return at if at < high else -2


@kernel
def _target(data: Bytes, at: int, low: int, high: int) -> Any:
    """Where the reference at `at` leads; -2 where that is not within low:high."""
    if at < low or at + 4 > high:
        return -2
    offset = _number(data, at, 4) & 0xFFFFFFFF
    if at + offset + 4 > high:
        return -2
    return at + offset


@kernel
def _integer(data: Bytes, table: int, slot: int, low: int, high: int) -> Any:
    """An int64 field, 0 where absent, -1 where unreadable."""
    at = _field(data, table, slot, low, high)
    if at == -1:
        return np.int64(0)
    if at < 0 or at + 8 > high:
        return np.int64(-1)
    return _number(data, at, 8)


@kernel
def _names_compression(data: Bytes, low: int, high: int) -> bool:
    """True if the metadata holds the key by which version 4 declared compression."""
    for at in range(low, high - 8):
        i = 0
        while i < 8 and data[at + i] == _KEY[i]:
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
        starts: i8[n].
        ends: i8[n].
        rows: i8[n], written: rows of all record batches.
        longest: i8[n], written: values of the longest column, those nested in others and dictionaries included.
        sizes: i8[n], written: bytes of all buffers once decompressed, and COLUMN_BYTES for each column of each batch; a
            dictionary that grows counts again as a whole, since Arrow copies it.
        sound: i8[n], written: the bytes of the value up to which whole messages stand; all of them where the stream
            ends there, or with an end mark before.
    """
    for k in range(starts.size):
        rows[k] = 0
        longest[k] = 0
        sizes[k] = 0
        words = np.int64(0)
        at = starts[k]
        end = ends[k]
        while True:
            sound[k] = at - starts[k]
            if at + 4 > end:
                break
            head = 4
            size = _number(data, at, 4)
            if size == -1:
                if at + 8 > end:
                    break
                head = 8
                size = _number(data, at + 4, 4)
            if size == 0:
                sound[k] = end - starts[k]
                break
            low = at + head
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
                most = count
                good = True
                for slot in range(1, 3):  # nodes, then buffers: both are pairs of 8 bytes
                    vector_at = _field(data, batch, slot, low, high)
                    if vector_at == -1:
                        continue
                    vector = -2
                    if vector_at >= 0:
                        vector = _target(data, vector_at, low, high)
                    if vector < 0:
                        good = False
                        break
                    pairs = _number(data, vector, 4) & 0xFFFFFFFF
                    if vector + 4 + 16 * pairs > high:
                        good = False
                        break
                    for i in range(pairs):
                        one = _number(data, vector + 4 + 16 * i, 8)
                        two = _number(data, vector + 4 + 16 * i + 8, 8)
                        if one < 0 or (two < 0 and slot == 2):
                            good = False
                            break
                        if slot == 1:
                            total += COLUMN_BYTES
                            most = max(most, one)
                        else:
                            if one > length or two > length - one:
                                good = False
                                break
                            if compressed and two >= 8:
                                whole = _number(data, high + one, 8)
                                if whole >= 0:
                                    two = whole
                            total = min(_HUGE, total + min(_HUGE, two))
                    if not good:
                        break
                if not good:
                    break
                if kind == _DICTIONARY:
                    if grows:
                        total += words
                    words = min(_HUGE, words + total)
                else:
                    rows[k] = min(_HUGE, rows[k] + min(_HUGE, count))
                longest[k] = max(longest[k], min(_HUGE, most))
                sizes[k] = min(_HUGE, sizes[k] + total)
            at = high + length
