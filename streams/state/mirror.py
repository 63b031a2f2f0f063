"""The arrays of a store in a memory-mapped file that all Python workers of a host share.

Spark's Python workers are a pool: the next batch of a partition may run in another process, which without the mirror
would read all pages back from the state store. The mirror is only a cache. Its arrays are current if its token equals
that of the state store's header (docs/architecture.md, The cache); the token is removed before the arrays change and
written after the batch. A process that does not get the lock uses arrays of its own. A mirror is one file, ``<local
directory>/mqtwin-mirror-<user>/<query>-<boot>-<plan>/<store>``: a head of `_HEAD_BYTES` with the token and the position
of each array, then the arrays. A large array may double where it is: the file has no blocks for what it does not use
yet. Lock (flock), token and arrays belong to the open file, so writes to a removed file are not visible in its
successor; a reset creates a new file, as the old one may be mapped elsewhere. The boot is part of the name because
files not written back before a power failure may hold anything. A process has one mapping while it caches the twin, and
one descriptor during a batch.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import numpy.typing as npt
import psutil

from streams.host.resources import base_of
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError
from twin.state.arrays import LARGE_BYTES, Array, Size, copy_bytes, room

ABANDONED_SECONDS = 3600.0  # the next query on the host removes mirrors unused for this long
NO_ROOM = frozenset(  # errors after which a process continues in its own memory
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),  # of the disk
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),  # of the process or the system: descriptors, mappings
        errno.ENOENT,  # the directory was removed meanwhile
    )
)
_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

_MAGIC = b"mqtwin 3"  # name and version of the layout
_TOKEN = struct.Struct("8sH54s")  # magic, bytes of the token, token
_NO_TOKEN = _TOKEN.pack(_MAGIC, 0, b"")
_EXTENTS_OFFSET = 64  # of the length, 4 bytes, and msgpack of [[name, bytes per row, rows, offset], ...]
_HEAD_BYTES = 4096
_ALIGNMENT = 64
_PUNCH_HOLE = 1 | 2  # keep the size, free the blocks [published: Linux man-pages, fallocate(2)]
_NEW_SUFFIX = "+new"  # of a file that will replace a store's; quoted names of stores have no plus sign
_FAILED = ctypes.c_void_p(-1).value
_NOTHING = np.zeros(0, np.uint8)


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_int64,  # off_t, on every 64-bit system
    ]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    if hasattr(libc, "fallocate"):
        libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return libc


class _Mapping:
    """A mapping that is unmapped when the last array that views it is deleted."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, False)}
        # Not at exit: arrays may still be in use then, and the system unmaps everything by itself.
        weakref.finalize(self, _libc().munmap, address, size).atexit = False


def map_shared(file: int, size: int) -> npt.NDArray[np.uint8]:
    """Map the first `size` bytes of a file, writable and shared, and return them as an array.

    The descriptor may be closed afterwards. OSError: the file cannot be mapped; ENOMEM if the process has reached its
    limit of mappings.
    """
    address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
    if address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"mapping of {size} bytes")
    return np.asarray(_Mapping(address, size))


def boot_id() -> str:
    """Return an id of this boot of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip().replace("-", "")[:12]
    except OSError:
        return f"{int(psutil.boot_time()):012d}"


def block_directory() -> Path:
    """Return Spark's directory for scratch files of workers; outside Spark one in the system's temporary directory."""
    spark_directory = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(spark_directory) if spark_directory else Path(tempfile.gettempdir()) / "blocks"


def mirror_root(blocks: Path) -> Path:
    """Return this user's directory of mirrors beside an executor's `block_directory`; create it if it is missing.

    Spark removes the block directory with the executor. The directory above it outlives a restart of the job. OSError:
    it cannot be created, or belongs to another user.
    """
    root = base_of(blocks.parent) / f"mqtwin-mirror-{os.getuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = root.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "belongs to somebody else", str(root))
    return root


def mirror_directory(root: Path, query: str, plan: str) -> Path:
    """Return the directory of a query's mirrors."""
    return root / f"{quote(query, safe='')}-{boot_id()}-{plan[:12]}"


def remove_mirrors(blocks: Path, query: str) -> None:
    """Remove the mirrors of a query that has ended. blocks: an executor's `block_directory`."""
    try:
        root = mirror_root(blocks)
    except OSError:
        return  # there are no mirrors
    for directory in root.glob(f"{quote(query, safe='')}-*"):
        _remove(directory)


def remove_abandoned(root: Path, keep: Path) -> None:
    """Remove the mirrors in `root` unused for an hour, and those of an earlier boot, except the directory `keep`."""
    this_boot = boot_id()
    for directory in root.iterdir():
        if directory != keep and (
            this_boot not in directory.name or time.time() - _last_use(directory) > ABANDONED_SECONDS
        ):
            _remove(directory)


def _last_use(directory: Path) -> float:
    times = [0.0]
    for path in (directory, *directory.glob("*")):
        with contextlib.suppress(FileNotFoundError):  # removed by another process meanwhile
            times.append(path.stat().st_mtime)
    return max(times)


def _remove(directory: Path) -> None:
    """Remove a query's directory, except the mirrors in use."""
    for store in directory.glob("*"):
        mirror = Mirror.claim(store)
        if mirror is not None:
            store.unlink(missing_ok=True)
            mirror.release()
    with contextlib.suppress(OSError):  # a mirror is in use, or was created meanwhile
        directory.rmdir()


class AttachError(MqtwinError):
    """The arrays of a mirror's file cannot be used: another version wrote it, or it cannot be mapped."""


@dataclass(frozen=True, slots=True)
class _Extent:
    """The position of an array in the file. offset: bytes."""

    dtype: np.dtype[Any]
    rows: int
    offset: int

    @property
    def size(self) -> int:
        """The size of its rows in bytes."""
        return self.rows * self.dtype.itemsize

    @property
    def end(self) -> int:
        """The first offset behind it for another array."""
        return self.offset + _room(self.size)


class Mirror:
    """The arrays of one store in a file, a `twin.state.arrays.Arrays`. Created by `claim`.

    Without room for the file or its mapping the arrays are in this process's memory, and `validate` has no effect.
    """

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file  # descriptor of the open, locked file; -1: released
        self._extents: dict[str, _Extent] = {}
        self._arrays: dict[str, Array] = {}
        self._content = _NOTHING  # the file, mapped
        self.is_shared = True  # other processes can map the arrays: they are in the file, and it was not removed

    @classmethod
    def claim(cls, path: Path) -> Mirror | None:
        """Lock the mirror in a file, created if it is missing, until `release`; None if another process has the lock.
        OSError: the file cannot be created or opened; see `NO_ROOM`.
        """
        while True:
            file = _open(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file_at(file, path):
                    return cls(path, file)
            except BlockingIOError:
                os.close(file)
                return None
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # removed or replaced between open and flock

    def release(self) -> None:
        """Release the lock, if there is one. The arrays stay mapped, and current while the token is."""
        if self._file >= 0:
            _unlock(self._file)
            self._file = -1

    def reclaim(self, other: Mirror) -> None:
        """Take over the lock of `other`, a later claim of the same file, and keep the arrays of this mirror."""
        self._file, other._file = other._file, -1

    def token(self) -> bytes | None:
        """Return the token of the batch that the file is current for; None if there is none."""
        head = os.pread(self._file, _TOKEN.size, 0)
        if len(head) != _TOKEN.size:
            return None
        magic, size, token = _TOKEN.unpack(head)
        return token[:size] if magic == _MAGIC and size else None

    def invalidate(self) -> None:
        """Remove the token."""
        if not os.fstat(self._file).st_size:
            return
        try:
            os.pwrite(self._file, _NO_TOKEN, 0)
        except OSError as error:  # a full file system that does not write in place
            if error.errno not in NO_ROOM:
                raise
            self._path.unlink(missing_ok=True)

    def validate(self, token: bytes) -> None:
        """Write the token, unless the arrays are not in the file or the file was removed."""
        if not self.is_shared:
            return
        if not os.fstat(self._file).st_nlink:
            self.is_shared = False
            return
        try:
            os.pwrite(self._file, _TOKEN.pack(_MAGIC, len(token), token), 0)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.is_shared = False

    def reset(self) -> None:
        """Discard all arrays: those created afterwards are zero."""
        self._extents.clear()
        self._arrays.clear()
        self._content = _NOTHING
        self.is_shared = True
        try:
            if os.fstat(self._file).st_size:
                self._replace_file()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.is_shared = False

    def _replace_file(self) -> None:
        new = self._path.with_name(f"{self._path.name}{_NEW_SUFFIX}")
        new.unlink(missing_ok=True)  # left by a process that was killed here
        file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.replace(self._path)
        except BaseException:
            os.close(file)
            raise
        _unlock(self._file)
        self._file = file

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        """Return arrays of these sizes: the content of the file, or zeros if it is new. AttachError: the file holds
        other arrays, or cannot be mapped.
        """
        if self.is_shared and os.fstat(self._file).st_size:
            self._attach(sizes)
        elif self.is_shared:
            try:
                self._lay_out(sizes)
            except OSError as error:
                self._move_to_memory(error)
        if not self.is_shared:
            self._arrays = {name: np.zeros(rows, dtype) for name, (dtype, rows) in sizes.items()}
        return dict(self._arrays)

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        """Return all arrays once those named have that many rows; new rows are zero."""
        if self.is_shared:
            try:
                self._grow(rows)
            except OSError as error:
                self._move_to_memory(error)
        if not self.is_shared:
            for name, count in rows.items():
                old = self._arrays[name]
                if old.size < count:
                    self._arrays[name] = np.zeros(count, old.dtype)
                    copy_bytes(old, self._arrays[name])
        return dict(self._arrays)

    @property
    def memory_bytes(self) -> int:
        """The size of arrays in this process's own memory."""
        return 0 if self.is_shared else sum(array.nbytes for array in self._arrays.values())

    def _lay_out(self, sizes: Mapping[str, Size]) -> None:
        """Allocate arrays one after another in an empty file."""
        extents: dict[str, _Extent] = {}
        end, start, full = _HEAD_BYTES, 0, _HEAD_BYTES
        for name, (dtype, rows) in sizes.items():
            extents[name] = extent = _Extent(dtype, rows, end)
            if end > full:  # the array before has room to grow
                _allocate(self._file, start, full)
                start = end
            end, full = extent.end, end + _aligned(extent.size)
        _allocate(self._file, start, full)
        os.ftruncate(self._file, end)
        self._write_extents(extents)
        self._extents = extents
        self._map()

    def _attach(self, sizes: Mapping[str, Size]) -> None:
        """Map the arrays of the file. AttachError: there is no other copy in this process."""
        self._extents = self._read_extents(sizes)
        try:
            self._map()
        except OSError as error:
            raise AttachError(f"mirror {self._path.name} cannot be mapped: {error}") from error

    def _grow(self, rows: Mapping[str, int]) -> None:
        """Grow arrays in place, or move them to bytes that no array had before this call: such bytes are zero."""
        old = self._extents
        new = dict(old)
        for name, count in rows.items():
            extent = old[name]
            others = (extents[other] for extents in (old, new) for other in extents if other != name)
            offset = _find_offset(count * extent.dtype.itemsize, extent, others)
            new[name] = grown = _Extent(extent.dtype, count, offset)
            _allocate(self._file, grown.offset, grown.offset + _aligned(grown.size))
        end = max(extent.end for extent in new.values())
        if end > os.fstat(self._file).st_size:
            os.ftruncate(self._file, end)
        self._extents = new
        before = self._arrays
        self._map()
        for name in rows:
            if new[name].offset != old[name].offset:
                copy_bytes(before[name], self._arrays[name])
                _clear(self._file, before[name], old[name])
        self._write_extents(new)

    def _map(self) -> None:
        """View the arrays in the mapping of the whole file. The previous one ends with the last array that views it."""
        size = max((extent.end for extent in self._extents.values()), default=_HEAD_BYTES)
        if self._content.size < size:
            self._content = map_shared(self._file, size)
        self._arrays = {
            name: self._content[extent.offset : extent.offset + extent.size].view(extent.dtype)
            for name, extent in self._extents.items()
        }

    def _read_extents(self, sizes: Mapping[str, Size]) -> dict[str, _Extent]:
        """Return the positions of arrays of these names and sizes. AttachError: the file has other arrays."""
        content = os.pread(self._file, _HEAD_BYTES - _EXTENTS_OFFSET, _EXTENTS_OFFSET)
        try:
            entries = _extents_decoder.decode(content[4 : 4 + int.from_bytes(content[:4])])
        except UNREADABLE as error:
            raise AttachError(f"mirror {self._path.name}: its table of arrays cannot be read: {error}") from error
        offsets = {name: offset for name, _, _, offset in entries}
        expected = {name: (dtype.itemsize, rows) for name, (dtype, rows) in sizes.items()}
        if {name: (row_bytes, rows) for name, row_bytes, rows, _ in entries} != expected:
            raise AttachError(f"mirror {self._path.name}: it holds other arrays than the state's header says")
        extents = {name: _Extent(dtype, rows, offsets[name]) for name, (dtype, rows) in sizes.items()}
        if max((extent.end for extent in extents.values()), default=0) > os.fstat(self._file).st_size:
            raise AttachError(f"mirror {self._path.name}: the file ends before its arrays do")
        return extents

    def _write_extents(self, extents: Mapping[str, _Extent]) -> None:
        entries = [(name, extent.dtype.itemsize, extent.rows, extent.offset) for name, extent in extents.items()]
        content = msgspec.msgpack.encode(entries)
        if _EXTENTS_OFFSET + 4 + len(content) > _HEAD_BYTES:
            raise AttachError(f"mirror {self._path.name}: {len(entries)} arrays are more than its head can name")
        os.pwrite(self._file, len(content).to_bytes(4) + content, _EXTENTS_OFFSET)

    def _move_to_memory(self, error: OSError) -> None:
        """Copy the arrays to this process's memory and remove the file, to free its room."""
        if error.errno not in NO_ROOM:
            raise error
        self.is_shared = False
        self._arrays = {name: array.view(np.uint8).copy().view(array.dtype) for name, array in self._arrays.items()}
        self._content = _NOTHING
        self._path.unlink(missing_ok=True)


_extents_decoder: msgspec.msgpack.Decoder[list[tuple[str, int, int, int]]] = msgspec.msgpack.Decoder(
    list[tuple[str, int, int, int]]
)


def _open(path: Path) -> int:
    """Open a file; create it, and the directories above it, if it is missing. Return its descriptor."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def _unlock(file: int) -> None:
    """Unlock an open file and close it. Closing alone would not unlock it: a mapping keeps the file open."""
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _is_file_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _room(size: int) -> int:
    """Return the bytes between the beginning of an array of `size` bytes and that of the next array."""
    return _aligned(room(size))


def _find_offset(size: int, extent: _Extent, others: Iterable[_Extent]) -> int:
    """Return the offset for a growing array of `size` bytes: its own if there is room, the first gap, or the end."""
    obstacles = [other for other in others if other.size]
    next_offset = min((other.offset for other in obstacles if other.offset >= extent.offset), default=1 << 62)
    size = _room(size)
    if extent.size and extent.offset + size <= next_offset:  # one of no rows has no place of its own
        return extent.offset
    end = _HEAD_BYTES
    for other in sorted((*obstacles, extent), key=lambda other: other.offset):
        if end + size <= other.offset:
            break
        end = max(end, other.end)
    return end


def _allocate(file: int, start: int, end: int) -> None:
    """Give a file blocks from `start` to `end`, at least for what it has none for; its content stays.

    All blocks are allocated at once: a hole without a free block would end the process with SIGBUS when it is written.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, start, end - start)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOCATE:
                raise
        else:
            return
    os.ftruncate(file, max(end, os.fstat(file).st_size))


def _clear(file: int, array: Array, extent: _Extent) -> None:
    """Make the bytes of an array that has moved zero, and give the blocks of a large one back."""
    is_large = extent.size >= LARGE_BYTES and hasattr(_libc(), "fallocate")
    if not is_large or _libc().fallocate(file, _PUNCH_HOLE, extent.offset, extent.size) != 0:
        array.view(np.uint8)[:] = 0
