"""Directories of this job alone: sockets, Java's temporary files, Spark's local files.

A process that is killed removes nothing. So whatever a job writes for its own lifetime is in directories
``<base>/mqtwin-<user>/job-<random>``. The driver holds a lock (flock) on each of them while it lives, whatever its end.
The next job of the same user on the same base removes every directory that is not locked.
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
# A Unix socket's path takes 108 bytes (104 on macOS), its final zero included; Spark appends /.<uuid>.sock, 43 bytes.
MAX_SOCKET_DIRECTORY_BYTES = (104 if sys.platform == "darwin" else 108) - 1 - 43


class ScratchDirectory:
    """A directory of this process alone, locked until `remove` or the end of the process."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def claim(cls, base: Path) -> ScratchDirectory:
        """Make a directory below `base` and remove those of jobs that are gone.

        Raises:
            OSError: it cannot be made, or the user's directory in `base` belongs to somebody else.
        """
        root = _root(base)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = root.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "belongs to another user", str(root))
        with _locked(root):  # nobody takes a directory that is made but not yet locked for an abandoned one
            _remove_abandoned(root)
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
            return cls(path, _lock(path, wait=False))

    def remove(self) -> None:
        """Remove it with all it holds; what cannot be removed is left to the next job."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def base_of(directory: Path) -> Path:
    """Return the directory that outlives the job: the base of a scratch directory, any other directory itself."""
    root = directory.parent
    if directory.name.startswith(_PREFIX) and root == _root(root.parent):
        return root.parent
    return directory


def temporary_base() -> Path:
    """Return the system's temporary directory, or ``/tmp`` where a socket's path would become too long."""
    base = Path(tempfile.gettempdir())
    longest = _root(base) / f"{_PREFIX}{'x' * 8}"
    return base if len(os.fsencode(longest)) <= MAX_SOCKET_DIRECTORY_BYTES else Path("/tmp")  # noqa: S108 -- the short one


def crash_report(base: Path) -> Path:
    """Return the file that a Java which crashes writes: one per user, outside the jobs' directories, so it is kept."""
    return _root(base) / _CRASH_REPORT


def _root(base: Path) -> Path:
    return base / f"mqtwin-{os.getuid()}"


def _remove_abandoned(root: Path) -> None:
    for directory in root.glob(f"{_PREFIX}*"):
        try:
            lock = _lock(directory, wait=False)
        except OSError:  # in use, or removed meanwhile
            continue
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _lock(directory: Path, *, wait: bool) -> int:
    """Lock a directory. BlockingIOError: another process holds it."""
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
