"""Verification of the files that Spark keeps in a checkpoint on a local file system, by their checksums.

Hadoop writes ``.NAME.crc`` beside each file NAME. Without it, the checksums inside the file are verified: those of the
blocks of a changelog and of the members of a snapshot.

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
_READ_BYTES = 1 << 20
_BLOCK_MAGIC = b"LZ4Block"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCK_HEAD = struct.Struct("<8sBIII")
_METHOD, _RAW, _LZ4 = 0xF0, 0x10, 0x20
_XXHASH_SEED = 0x9747B28C
_XXHASH_MASK = 0x0FFFFFFF


def file_problem(path: Path) -> str:
    """Return the damage of a file of the checkpoint, found by its checksums; empty for none."""
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
    """Return the damage of a file, found by Hadoop's checksums; empty for none."""
    data = checksums.read_bytes()
    if len(data) < _CRC_HEAD.size or data[:3] != b"crc":
        return f"has a damaged checksum file {checksums.name}"
    chunk_bytes = _CRC_HEAD.unpack_from(data)[1]
    expected = data[_CRC_HEAD.size :]
    size = path.stat().st_size
    if chunk_bytes <= 0 or len(expected) != 4 * -(-size // chunk_bytes):
        return f"has {size} bytes, another size than its checksum file {checksums.name} says: it is cut or changed"
    chunks_per_read = max(1, _READ_BYTES // chunk_bytes)
    i = 0
    with path.open("rb") as file:
        while data := file.read(chunks_per_read * chunk_bytes):
            for start in range(0, len(data), chunk_bytes):
                checksum = int.from_bytes(expected[4 * i : 4 * i + 4], "big")
                if zlib.crc32(data[start : start + chunk_bytes]) != checksum:
                    return f"does not match its checksum file {checksums.name}, from byte {i * chunk_bytes} on"
                i += 1
    return ""


def _zip_problem(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return f"is no sound archive: {error}"
    return f"is damaged: member {member} has a wrong checksum" if member else ""


class _BlockError(ValueError):
    """A damaged block; the message is the problem."""


def changelog_problem(data: bytes) -> str:
    """Return the damage of a changelog, found by the checksums of its LZ4 blocks; empty for none.

    A changelog of another codec than Spark's default, lz4, is not read.
    """
    if data.startswith(_ZSTD_MAGIC):
        return ""
    blocks: list[bytes] = []
    offsets: list[int] = []
    expected: list[int] = []
    try:
        for offset, checksum, block in _read_blocks(data):
            blocks.append(block)
            offsets.append(offset)
            expected.append(checksum)
    except _BlockError as error:
        return str(error)
    for i, checksum in enumerate(xxhash32(blocks, _XXHASH_SEED)):
        if checksum & _XXHASH_MASK != expected[i]:
            return f"is damaged at byte {offsets[i]}: the block has a wrong checksum"
    return ""


def _read_blocks(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (offset, checksum, content) of each block. _BlockError."""
    codec = pa.Codec("lz4_raw")
    offset = 0
    while True:
        start = offset + _BLOCK_HEAD.size
        if start > len(data):
            raise _BlockError(f"is cut off after {len(data)} bytes")
        magic, token, packed, size, checksum = _BLOCK_HEAD.unpack_from(data, offset)
        if magic != _BLOCK_MAGIC or token & _METHOD not in {_RAW, _LZ4} or size > 1 << (10 + (token & 0x0F)):
            raise _BlockError(f"is damaged at byte {offset}: no block begins there")
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
            raise _BlockError(f"is damaged at byte {offset}: the block cannot be unpacked")
        yield offset, checksum, block
        offset = start + packed


_P1, _P2, _P3, _P4, _P5 = (np.uint32(prime) for prime in (2654435761, 2246822519, 3266489917, 668265263, 374761393))
Words = npt.NDArray[np.uint32]


def xxhash32(blocks: list[bytes], seed: int) -> list[int]:
    """Return the xxHash32 of each block; blocks of equal length are hashed together.

    Source: xxHash fast digest algorithm, "XXH32 algorithm description".
    """
    by_size: dict[int, list[int]] = {}
    for i, block in enumerate(blocks):
        by_size.setdefault(len(block), []).append(i)
    hashes = [0] * len(blocks)
    for size, indexes in by_size.items():
        table = np.frombuffer(b"".join(blocks[i] for i in indexes), np.uint8).reshape(len(indexes), size)
        for i, value in zip(indexes, _xxhash32_of_rows(table, np.uint32(seed)), strict=True):
            hashes[i] = int(value)
    return hashes


def _xxhash32_of_rows(table: npt.NDArray[np.uint8], seed: np.uint32) -> Words:
    """Return the xxHash32 of each row, u4[rows]."""
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
        column = 16 * stripes
        while column + 4 <= size:
            word: Words = np.ascontiguousarray(table[:, column : column + 4]).view("<u4")[:, 0]
            value = _rotate(value + word * _P3, 17) * _P4
            column += 4
        while column < size:
            value = _rotate(value + table[:, column].astype(np.uint32) * _P5, 11) * _P1
            column += 1
        value = (value ^ (value >> np.uint32(15))) * _P2
        value = (value ^ (value >> np.uint32(13))) * _P3
        return value ^ (value >> np.uint32(16))


def _rotate(value: Words, bits: int) -> Words:
    return (value << np.uint32(bits)) | (value >> np.uint32(32 - bits))
