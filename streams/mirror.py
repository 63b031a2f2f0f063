"""The arrays of a store in memory-mapped files, so that every Python worker of a host finds them where the last one
left them.

Spark's Python workers are a pool: the next batch of a partition may run in another process. Without the mirror that
process would read all pages back from the state store. The mirror is a cache and nothing else:

* a token stands in it that is also in the state store's header; only if both are equal are the arrays current;
* the token is removed before the arrays are touched and written after the batch, so that a batch that failed half way,
  or whose state was not committed, leaves a mirror that no header names;
* who does not get its lock keeps arrays of its own.

A store's mirror is a directory: ``<local directory>/mqtwin-mirror-<user>/<query>-<boot>-<plan>/<store>``. Lock (flock),
token and arrays all belong to the directory as it was opened: should it be removed and made anew meanwhile, nothing
written to the old one is ever seen in the new one. The boot is part of the name because files that were not written
back when a machine lost power may hold anything.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import psutil

from streams.scratch import base_of
from twin.arrays import Array

ABANDONED_SECONDS = 3600.0  # a mirror nobody used for so long is removed by the next query on this host
_TOKEN_FILE = "token"  # noqa: S105 -- a file's name
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT)  # ENOENT: the directory has been removed under us
_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


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
    for path in (directory, *directory.glob("*"), *directory.glob(f"*/{_TOKEN_FILE}")):
        with contextlib.suppress(FileNotFoundError):  # removed by another process meanwhile
            times.append(path.stat().st_mtime)
    return max(times)


def _remove(directory: Path) -> None:
    """Remove a query's directory, except the stores that somebody works on."""
    for store in directory.glob("*"):
        mirror = Mirror.claim(store)
        if mirror is not None:
            shutil.rmtree(store, ignore_errors=True)
            mirror.release()
    with contextlib.suppress(OSError):  # a store in use, or one made meanwhile: it goes another time
        directory.rmdir()


class Mirror:
    """The arrays of one store in files, an allocator as `twin.arrays.Arrays`; see the module for the life of its token.

    Where the disk is full, arrays go on in this process's memory and the mirror takes no token (`sound` is False).
    """

    def __init__(self, directory: int) -> None:
        self._directory = directory  # file descriptor of the open, locked directory
        self._arrays: dict[str, tuple[np.dtype[Any], Array]] = {}
        self.sound = True

    @classmethod
    def claim(cls, path: Path) -> Mirror | None:
        """The mirror in a directory (made where missing), this process's alone until `release`; None where it is taken.

        Raises:
            OSError: the directory cannot be made or opened.
        """
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(directory)
            return None
        return cls(directory)

    def release(self) -> None:
        """Let other processes have it, if it is claimed. The arrays stay usable, and current while the token is."""
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def reclaim(self, other: Mirror) -> None:
        """Take over the lock of `other`, a later claim of the same directory, keeping the arrays of this one."""
        self._directory, other._directory = other._directory, -1

    def token(self) -> bytes | None:
        """The token of the batch that the files stand at; None where they stand at none."""
        try:
            file = os.open(_TOKEN_FILE, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory)
        except FileNotFoundError:
            return None
        try:
            return os.read(file, 256) or None
        finally:
            os.close(file)

    def invalidate(self) -> None:
        """From now on the files stand at no batch."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_TOKEN_FILE, dir_fd=self._directory)

    def validate(self, token: bytes) -> None:
        """The files stand at the batch of `token`. Does nothing where some arrays are not in files."""
        if not self.sound:
            return
        try:
            file = os.open(
                _TOKEN_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=self._directory
            )
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self.sound = False
            return
        try:
            if os.write(file, token) != len(token):  # disk full: a part of a token is no token
                self.invalidate()
        finally:
            os.close(file)

    def reset(self) -> None:
        """Forget everything: arrays allocated from now on are new, hence zero."""
        for name in os.listdir(self._directory):  # noqa: PTH208 -- a Path has no descriptor
            os.unlink(name, dir_fd=self._directory)
        self._arrays.clear()
        self.sound = True

    def table(self, name: str, dtype: np.dtype[Any], rows: int) -> Array:
        """See `twin.arrays.Arrays.table`: what the file holds, zeros where it is new."""
        array = self._mapped(name, dtype, rows)
        self._arrays[name] = dtype, array
        return array

    def grow(self, name: str, rows: int) -> Array:
        """See `twin.arrays.Arrays.grow`."""
        dtype, old = self._arrays[name]
        array = self._mapped(name, dtype, rows)
        if not self.sound:
            array[: old.size] = old
        self._arrays[name] = dtype, array
        return array

    def _mapped(self, name: str, dtype: np.dtype[Any], rows: int) -> Array:
        if self.sound:
            try:
                return np.ndarray(rows, dtype, _map(f"{name}.array", max(1, rows * dtype.itemsize), self._directory))
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                self.sound = False
        return np.zeros(rows, dtype)


def _map(name: str, size: int, directory: int) -> mmap.mmap:
    """A shared mapping of `size` bytes of a file that is made or enlarged where needed.

    Its blocks are allocated at once: a hole that cannot be filled later would end the process with SIGBUS.
    """
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        have = os.fstat(file).st_size
        if have < size:
            _allocate(file, have, size)
        return mmap.mmap(file, size)
    finally:
        os.close(file)


def _allocate(file: int, have: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, have, size - have)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOCATE:
                raise
        else:
            return
    os.ftruncate(file, size)
