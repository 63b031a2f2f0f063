"""Checksums of the files that Spark keeps in a checkpoint on a local file system: what is wrong with one, if anything.

Hadoop writes ``.NAME.crc`` beside each file NAME. Where that is missing, what the file itself can tell is looked at:
the blocks of a changelog, the members of a snapshot.

Sources: Hadoop, ChecksumFileSystem ("crc", bytes per checksum, CRC-32 of each piece); lz4-java, LZ4BlockOutputStream
(magic, token, compressed length, length, xxHash32 & 0x0FFFFFFF, all little-endian).
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_CRC_HEAD = struct.Struct(">3sxI")
_CRC_PIECE = 1 << 20
_BLOCK_MAGIC = b"LZ4Block"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK_HEAD = struct.Struct("<8sBIII")
_METHOD, _RAW, _LZ4 = 0xF0, 0x10, 0x20
_XXHASH_SEED = 0x9747B28C
_XXHASH_MASK = 0x0FFFFFFF


def file_problem(path: Path) -> str:
    """Return what is wrong with a file of the checkpoint; empty where nothing is, as far as its checksum can tell."""
    try:
        if path.stat().st_size == 0:
            return "is empty"
        checksums = path.with_name(f".{path.name}.crc")
        if checksums.is_file():
            return _crc_problem(path, checksums)
        if path.suffix == ".changelog":
            return changelog_problem(path.read_bytes())
        return _zip_problem(path) if path.suffix == ".zip" else ""
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _crc_problem(path: Path, checksums: Path) -> str:
    """Compare a file with Hadoop's checksums of it."""
    data = checksums.read_bytes()
    if len(data) < _CRC_HEAD.size or data[:3] != b"crc":
        return f"has a damaged checksum file {checksums.name}"
    piece = _CRC_HEAD.unpack_from(data)[1]
    expected = data[_CRC_HEAD.size :]
    size = path.stat().st_size
    if piece <= 0 or len(expected) != 4 * -(-size // piece):
        return f"has {size} bytes, another size than its checksum file {checksums.name} says: it is cut or changed"
    pieces_per_read = max(1, _CRC_PIECE // piece)
    place = 0
    with path.open("rb") as file:
        while data := file.read(pieces_per_read * piece):
            for start in range(0, len(data), piece):
                if zlib.crc32(data[start : start + piece]) != int.from_bytes(expected[place : place + 4], "big"):
                    return f"does not match its checksum file {checksums.name}, from byte {place // 4 * piece} on"
                place += 4
    return ""


def _zip_problem(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return f"is no sound archive: {error}"
    return f"is damaged: member {member} has a wrong checksum" if member else ""


class _BlockError(ValueError):
    """A block that is not sound; the message is the problem."""


def changelog_problem(data: bytes) -> str:
    """Return what is wrong with a changelog, by the checksums of its own LZ4 blocks; empty where nothing is.

    A changelog of another codec than Spark's default, lz4, is not looked into.
    """
    if data.startswith(_ZSTD_MAGIC):
        return ""
    blocks: list[bytes] = []
    places: list[int] = []
    expected: list[int] = []
    try:
        for place, checksum, block in _blocks(data):
            blocks.append(block)
            places.append(place)
            expected.append(checksum)
    except _BlockError as error:
        return str(error)
    for i, checksum in enumerate(xxhash32(blocks, _XXHASH_SEED)):
        if checksum & _XXHASH_MASK != expected[i]:
            return f"is damaged at byte {places[i]}: the block has a wrong checksum"
    return ""


def _blocks(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (place, checksum, content) of each block. _BlockError."""
    codec = pa.Codec("lz4_raw")
    place = 0
    while True:
        start = place + _BLOCK_HEAD.size
        if start > len(data):
            raise _BlockError(f"is cut off after {len(data)} bytes")
        magic, token, packed, size, checksum = _BLOCK_HEAD.unpack_from(data, place)
        if magic != _BLOCK_MAGIC or token & _METHOD not in {_RAW, _LZ4} or size > 1 << (10 + (token & 0x0F)):
            raise _BlockError(f"is damaged at byte {place}: no block begins there")
        if size == 0:  # the last block
            if start < len(data):
                raise _BlockError(f"has {len(data) - start} bytes too many")
            return
        body = data[start : start + packed]
        if len(body) < packed:
            raise _BlockError(f"is cut off after {len(data)} bytes")
        try:
            block = body if token & _METHOD == _RAW else codec.decompress(body, size).to_pybytes()
        except (pa.ArrowException, OSError, ValueError):
            block = b""
        if len(block) != size:
            raise _BlockError(f"is damaged at byte {place}: the block cannot be unpacked")
        yield place, checksum, block
        place = start + packed


_P1, _P2, _P3, _P4, _P5 = (np.uint32(prime) for prime in (2654435761, 2246822519, 3266489917, 668265263, 374761393))
Words = npt.NDArray[np.uint32]


def xxhash32(blocks: list[bytes], seed: int) -> list[int]:
    """Return the xxHash32 of each block. Blocks of one length are worked on side by side.

    Source: xxHash fast digest algorithm, "XXH32 algorithm description".
    """
    by_size: dict[int, list[int]] = {}
    for i, block in enumerate(blocks):
        by_size.setdefault(len(block), []).append(i)
    hashes = [0] * len(blocks)
    for size, members in by_size.items():
        table = np.frombuffer(b"".join(blocks[i] for i in members), np.uint8).reshape(len(members), size)
        for i, value in zip(members, _xxhash32_of_rows(table, np.uint32(seed)), strict=True):
            hashes[i] = int(value)
    return hashes


def _xxhash32_of_rows(table: npt.NDArray[np.uint8], seed: np.uint32) -> Words:
    """Return the xxHash32 of each row."""
    count, size = table.shape
    with np.errstate(over="ignore"):
        stripes = size // 16
        if stripes:
            lanes = np.tile(np.array([seed + _P1 + _P2, seed + _P2, seed, seed - _P1], np.uint32), (count, 1))
            words: Words = np.ascontiguousarray(table[:, : 16 * stripes]).view("<u4").reshape(count, stripes, 4)
            for i in range(stripes):
                lanes = _rotate(lanes + words[:, i] * _P2, 13) * _P1
            value = _rotate(lanes[:, 0], 1) + _rotate(lanes[:, 1], 7) + _rotate(lanes[:, 2], 12)
            value = value + _rotate(lanes[:, 3], 18)
        else:
            value = np.full(count, seed + _P5, np.uint32)
        value = value + np.uint32(size)
        place = 16 * stripes
        while place + 4 <= size:
            word: Words = np.ascontiguousarray(table[:, place : place + 4]).view("<u4")[:, 0]
            value = _rotate(value + word * _P3, 17) * _P4
            place += 4
        while place < size:
            value = _rotate(value + table[:, place].astype(np.uint32) * _P5, 11) * _P1
            place += 1
        value = (value ^ (value >> np.uint32(15))) * _P2
        value = (value ^ (value >> np.uint32(13))) * _P3
        return value ^ (value >> np.uint32(16))


def _rotate(value: Words, bits: int) -> Words:
    return (value << np.uint32(bits)) | (value >> np.uint32(32 - bits))
