"""The arrays of a store in a memory-mapped file, so that every Python worker of a host finds them where the last one
left them.

Spark's Python workers are a pool: the next batch of a partition may run in another process. Without the mirror that
process would read all pages back from the state store. The mirror is a cache and nothing else:

* a token stands in it that is also in the state store's header; only if both are equal are the arrays current;
* the token is removed before the arrays are touched and written after the batch, so that a batch that failed half way,
  or whose state was not committed, leaves a mirror that no header names;
* who does not get its lock keeps arrays of its own.

A store's mirror is one file: ``<local directory>/mqtwin-mirror-<user>/<query>-<boot>-<plan>/<store>``. Lock (flock),
token and arrays all belong to the file as it was opened: should it be removed and made anew meanwhile, nothing written
to the old one is ever seen in the new one. For the same reason a mirror that begins anew is a new file: the old one may
still be mapped elsewhere. The boot is part of the name because files that were not written back when a machine lost
power may hold anything.

The file begins with a head of `_HEAD_BYTES`: the token, then where each array stands; the arrays follow. A process has
one mapping of it while it keeps the twin, and one descriptor during a batch: thousands of stores must fit into the
limits of one process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import struct
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import psutil

from streams.host.mapping import map_shared
from streams.host.scratch import base_of
from twin.errors import MqtwinError
from twin.state.arrays import Array, Size

ABANDONED_SECONDS = 3600.0  # a mirror nobody used for so long is removed by the next query on this host
NO_ROOM = frozenset(  # a process goes on in its own memory then
    (
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),  # of the disk
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),  # of the process, or the system: descriptors, mappings
        errno.ENOENT,  # the directory has been removed under us
    )
)
_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

_MAGIC = b"mqtwin 2"  # the layout's version: another one is no mirror
_TOKEN = struct.Struct("8sH54s")  # magic, bytes of the token, token
_NO_TOKEN = _TOKEN.pack(_MAGIC, 0, b"")
_PLACES_AT = 64  # where msgpack of [[name, bytes a row, rows, offset], ...] begins
_HEAD_BYTES = 4096
_ALIGNMENT = 64
_NEW = "+new"  # behind the name of a file that becomes a store's; a store's own name has no plus sign


def boot_id() -> str:
    """What tells this start of the machine from any other."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip().replace("-", "")[:12]
    except OSError:
        return f"{int(psutil.boot_time()):012d}"


def block_directory() -> Path:
    """The directory that Spark gives its workers for scratch files; outside Spark the system's temporary one."""
    given = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(given) if given else Path(tempfile.gettempdir()) / "blocks"


def mirror_root(blocks: Path) -> Path:
    """This user's directory of mirrors beside an executor's `block_directory`, made where missing.

    Spark's block manager removes its directory with the executor; the one above it outlives a restart of the job.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    root = base_of(blocks.parent) / f"mqtwin-mirror-{os.getuid()}"
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "belongs to somebody else", str(root))
    return root


def mirrors_of(root: Path, query: str, plan: str) -> Path:
    """The directory of a query (an id that survives restarts) with a plan (a digest: another estate, other arrays)."""
    return root / f"{quote(query, safe='')}-{boot_id()}-{plan[:12]}"


def remove_mirrors(blocks: Path, query: str) -> None:
    """Remove what is kept of a query that has ended, beside an executor's `block_directory`."""
    try:
        root = mirror_root(blocks)
    except OSError:
        return  # then nothing is kept there
    for directory in root.glob(f"{quote(query, safe='')}-*"):
        _remove(directory)


def remove_abandoned(root: Path, keep: Path) -> None:
    """Remove the mirrors of other queries that nobody has used for an hour, and those from before the last boot."""
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
    """Remove a query's directory, except the stores that somebody works on."""
    for store in directory.glob("*"):
        if store.is_dir():  # of a version before this one
            shutil.rmtree(store, ignore_errors=True)
            continue
        mirror = Mirror.claim(store)
        if mirror is not None:
            store.unlink(missing_ok=True)
            mirror.release()
    with contextlib.suppress(OSError):  # a store in use, or one made meanwhile: it goes another time
        directory.rmdir()


class AttachError(MqtwinError):
    """The arrays in a mirror's file cannot be had: another version of the program made it, or it cannot be mapped."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array stands in the file."""

    dtype: np.dtype[Any]
    rows: int
    offset: int

    @property
    def size(self) -> int:
        """Bytes of its rows."""
        return self.rows * self.dtype.itemsize

    @property
    def end(self) -> int:
        """The first offset behind it that another array may have."""
        return self.offset + _aligned(self.size)


class Mirror:
    """The arrays of one store in a file: a `twin.state.arrays.Arrays`. The module says how long its token lives.

    Where there is no room for the file or its mapping, all arrays go on in this process's memory and the mirror takes
    no token (`sound` is False).
    """

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file  # descriptor of the open, locked file; -1: not claimed
        self._places: dict[str, _Place] = {}
        self._arrays: dict[str, Array] = {}
        self.sound = True

    @classmethod
    def claim(cls, path: Path) -> Mirror | None:
        """The mirror in a file (made where missing), this process's alone until `release`; None where it is taken.

        Raises:
            OSError: the file cannot be made or opened; see `NO_ROOM`.
        """
        while True:
            file = _open(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(file, path):
                    return cls(path, file)
            except BlockingIOError:
                os.close(file)
                return None
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # removed, or begun anew, between open and flock

    def release(self) -> None:
        """Let other processes have it, if it is claimed. The arrays stay usable, and current while the token is."""
        if self._file >= 0:
            _unlock(self._file)
            self._file = -1

    def reclaim(self, other: Mirror) -> None:
        """Take over the lock of `other`, a later claim of the same file, keeping the arrays of this one."""
        self._file, other._file = other._file, -1

    def token(self) -> bytes | None:
        """The token of the batch that the file stands at; None where it stands at none."""
        head = os.pread(self._file, _TOKEN.size, 0)
        if len(head) != _TOKEN.size:
            return None
        magic, size, token = _TOKEN.unpack(head)
        return token[:size] if magic == _MAGIC and size else None

    def invalidate(self) -> None:
        """From now on the file stands at no batch."""
        if not os.fstat(self._file).st_size:
            return
        try:
            os.pwrite(self._file, _NO_TOKEN, 0)
        except OSError as error:  # a file system that writes nothing in place, and is full
            if error.errno not in NO_ROOM:
                raise
            self._path.unlink(missing_ok=True)

    def validate(self, token: bytes) -> None:
        """The file stands at the batch of `token`. Does nothing where the arrays are not in it, or it was removed."""
        if not self.sound:
            return
        if not os.fstat(self._file).st_nlink:
            self.sound = False
            return
        try:
            os.pwrite(self._file, _TOKEN.pack(_MAGIC, len(token), token), 0)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.sound = False

    def reset(self) -> None:
        """Forget everything: arrays allocated from now on are new, hence zero."""
        self._places.clear()
        self._arrays.clear()
        self.sound = True
        try:
            if os.fstat(self._file).st_size:
                self._begin_anew()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.sound = False

    def _begin_anew(self) -> None:
        """Let an empty file, locked by this process, take the place of the one it has."""
        name = self._path.with_name(f"{self._path.name}{_NEW}")
        name.unlink(missing_ok=True)  # of a process that was killed in this very place
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            name.replace(self._path)
        except BaseException:
            os.close(file)
            raise
        _unlock(self._file)
        self._file = file

    def tables(self, sizes: Mapping[str, Size]) -> dict[str, Array]:
        """See `twin.state.arrays.Arrays.tables`: what the file holds, zeros where it is new.

        Raises:
            AttachError: the file holds other arrays, or cannot be mapped.
        """
        if self.sound and os.fstat(self._file).st_size:
            self._attach(sizes)
        elif self.sound:
            try:
                self._lay_out(sizes)
            except OSError as error:
                self._move_to_memory(error)
        if not self.sound:
            self._arrays = {name: np.zeros(rows, dtype) for name, (dtype, rows) in sizes.items()}
        return dict(self._arrays)

    def grow(self, rows: Mapping[str, int]) -> dict[str, Array]:
        """See `twin.state.arrays.Arrays.grow`."""
        if self.sound:
            try:
                self._grow(rows)
            except OSError as error:
                self._move_to_memory(error)
        if not self.sound:
            for name, count in rows.items():
                old = self._arrays[name]
                if old.size < count:
                    self._arrays[name] = np.zeros(count, old.dtype)
                    _copy_bytes(old, self._arrays[name])
        return dict(self._arrays)

    @property
    def memory_bytes(self) -> int:
        """See `twin.state.arrays.Arrays.memory_bytes`."""
        return 0 if self.sound else sum(array.nbytes for array in self._arrays.values())

    def _lay_out(self, sizes: Mapping[str, Size]) -> None:
        """Make room for arrays, one behind the other, in a file that is empty."""
        places: dict[str, _Place] = {}
        end = _HEAD_BYTES
        for name, (dtype, rows) in sizes.items():
            places[name] = _Place(dtype, rows, end)
            end = places[name].end
        _allocate(self._file, 0, end)
        self._write_places(places)
        self._places = places
        self._map()

    def _attach(self, sizes: Mapping[str, Size]) -> None:
        """View the arrays that the file holds. Nothing else will do: they are not in this process's memory."""
        self._places = self._read_places(sizes)
        try:
            self._map()
        except OSError as error:
            raise AttachError(f"mirror {self._path.name} cannot be mapped: {error}") from error

    def _grow(self, rows: Mapping[str, int]) -> None:
        """Let arrays grow where they stand or in another place, which no array had before this call."""
        old, have = self._places, os.fstat(self._file).st_size
        new = dict(old)
        for name, count in rows.items():
            place = old[name]
            others = (places[other] for places in (old, new) for other in places if other != name)
            new[name] = _Place(place.dtype, count, _place_of(_aligned(count * place.dtype.itemsize), place, others))
        end = max(place.end for place in new.values())
        if end > have:
            _allocate(self._file, have, end)
        self._places = new
        before = self._arrays
        self._map()
        for name in rows:
            array, place = self._arrays[name], new[name]
            if place.offset != old[name].offset:
                _copy_bytes(before[name], array)
            beyond = array[before[name].size :].view(
                np.uint8
            )  # where another array may have stood; new blocks are zero
            beyond[: max(0, have - place.offset - old[name].size)] = 0
        self._write_places(new)

    def _map(self) -> None:
        """Map the whole file and view the arrays in it. The mapping before goes with the last array that views it."""
        slab = map_shared(self._file, max((place.end for place in self._places.values()), default=_HEAD_BYTES))
        self._arrays = {
            name: slab[place.offset : place.offset + place.size].view(place.dtype)
            for name, place in self._places.items()
        }

    def _read_places(self, sizes: Mapping[str, Size]) -> dict[str, _Place]:
        """Where the arrays of that name and size stand in the file. AttachError: not all of them do."""
        content = os.pread(self._file, _HEAD_BYTES - _PLACES_AT, _PLACES_AT)
        try:
            found = {
                entry[0]: entry[1:] for entry in _decode_places.decode(content[4 : 4 + int.from_bytes(content[:4])])
            }
        except msgspec.MsgspecError as error:
            raise AttachError(f"mirror {self._path.name}: its table of arrays cannot be read: {error}") from error
        wanted = {name: (dtype.itemsize, rows) for name, (dtype, rows) in sizes.items()}
        if {name: entry[:2] for name, entry in found.items()} != wanted:
            raise AttachError(f"mirror {self._path.name}: it holds other arrays than the state's header says")
        places = {name: _Place(dtype, rows, found[name][2]) for name, (dtype, rows) in sizes.items()}
        if max((place.end for place in places.values()), default=0) > os.fstat(self._file).st_size:
            raise AttachError(f"mirror {self._path.name}: the file ends before its arrays do")
        return places

    def _write_places(self, places: Mapping[str, _Place]) -> None:
        entries = [(name, place.dtype.itemsize, place.rows, place.offset) for name, place in places.items()]
        content = msgspec.msgpack.encode(entries)
        if _PLACES_AT + 4 + len(content) > _HEAD_BYTES:
            raise AttachError(f"mirror {self._path.name}: {len(entries)} arrays are more than its head can name")
        os.pwrite(self._file, len(content).to_bytes(4) + content, _PLACES_AT)

    def _move_to_memory(self, error: OSError) -> None:
        """Go on in this process's memory; the file, of no use any more, gives its room back."""
        if error.errno not in NO_ROOM:
            raise error
        self.sound = False
        self._arrays = {name: array.view(np.uint8).copy().view(array.dtype) for name, array in self._arrays.items()}
        self._path.unlink(missing_ok=True)


_decode_places: msgspec.msgpack.Decoder[list[tuple[str, int, int, int]]] = msgspec.msgpack.Decoder(
    list[tuple[str, int, int, int]]
)


def _open(path: Path) -> int:
    """A descriptor of a file, made where missing, with the directories above it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def _unlock(file: int) -> None:
    """Give back the lock of an open file and close it. To close it is not enough: a mapping keeps the file open."""
    fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is the one that has the name now."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _place_of(size: int, place: _Place, others: Iterable[_Place]) -> int:
    """Return the offset for an array that grows: where it stands if there is room, else the first gap, else the end.

    Args:
        size: bytes that it needs now.
        place: where it stands.
        others: the places of all other arrays, before and after their growth.
    """
    taken = [other for other in others if other.size]
    if place.offset + size <= min((other.offset for other in taken if other.offset >= place.offset), default=1 << 62):
        return place.offset
    end = _HEAD_BYTES
    for other in sorted((*taken, place), key=lambda other: other.offset):
        if end + size <= other.offset:
            break
        end = max(end, other.end)
    return end


def _copy_bytes(source: Array, target: Array) -> None:
    """Copy rows into the first ones of another array; as bytes, so that padding is copied too."""
    target.view(np.uint8)[: source.nbytes] = source.view(np.uint8)


def _allocate(file: int, have: int, size: int) -> None:
    """Let a file have `size` bytes instead of `have`.

    Its blocks are allocated at once: a hole that cannot be filled later would end the process with SIGBUS.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, have, size - have)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOCATE:
                raise
        else:
            return
    os.ftruncate(file, size)
