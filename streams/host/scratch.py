"""Scratch directories of a job: sockets, Java's temporary files, Spark's local files.

A process that is killed removes nothing. A job therefore writes its temporary files into directories
``<base>/mqtwin-<user>/job-<random>``, and its driver holds a lock (flock) on each of them as long as it lives. The next
job of the same user on the same base removes every directory that is not locked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "job-"
_CRASH_REPORT = "java-crash.log"
# The path of a Unix socket has at most 108 bytes (104 on macOS), its final zero included. Spark appends
# /.<uuid>.sock, 43 bytes.
MAX_SOCKET_DIRECTORY_BYTES = (104 if sys.platform == "darwin" else 108) - 1 - 43


class ScratchDirectory:
    """A directory of this process, locked until `remove` or the end of the process."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock

    @classmethod
    def claim(cls, base: Path) -> ScratchDirectory:
        """Create and lock a directory below `base`, and remove those of jobs that have ended. OSError: it cannot be
        created, or the user's directory in `base` belongs to another user.
        """
        root = _user_directory(base)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = root.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "belongs to another user", str(root))
        with _locked(root):  # no other job sees the directory before it is locked
            _remove_abandoned(root)
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
            return cls(path, _lock(path, wait=False))

    def remove(self) -> None:
        """Remove the directory and its contents; what cannot be removed is left to the next job."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def base_of(directory: Path) -> Path:
    """Return the base of a scratch directory; any other directory itself. It outlives the job."""
    root = directory.parent
    if directory.name.startswith(_PREFIX) and root == _user_directory(root.parent):
        return root.parent
    return directory


def temporary_base() -> Path:
    """Return the system's temporary directory, or ``/tmp`` if paths of sockets would become too long."""
    base = Path(tempfile.gettempdir())
    path = _user_directory(base) / f"{_PREFIX}{'x' * 8}"
    return base if len(os.fsencode(path)) <= MAX_SOCKET_DIRECTORY_BYTES else Path("/tmp")  # noqa: S108 -- it is short


def crash_report(base: Path) -> Path:
    """Return the crash report of Java: one file per user, outside the scratch directories, so that it outlives them."""
    return _user_directory(base) / _CRASH_REPORT


def _user_directory(base: Path) -> Path:
    return base / f"mqtwin-{os.getuid()}"


def _remove_abandoned(root: Path) -> None:
    for directory in root.glob(f"{_PREFIX}*"):
        try:
            lock = _lock(directory, wait=False)
        except OSError:  # it is in use, or was removed meanwhile
            continue
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _lock(directory: Path, *, wait: bool) -> int:
    """Lock a directory and return the descriptor that holds the lock. BlockingIOError: another process has it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = _lock(directory, wait=True)
    try:
        yield
    finally:
        os.close(descriptor)
