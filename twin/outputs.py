"""Output files, written in one way by all commands: beside their paths, and moved there when they are whole.

What was there before stays until then, whatever fails. A device or a pipe, such as /dev/stdout, is written directly.
Files that grow while they are read, such as `mqtwin record --follow`, are not written in this way.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from twin.errors import UsageError

_STREAMS = ("/dev/", "/proc/")  # links there name what is open, not a file
_MAX_LINKS = 40


class Draft:
    """Future content of a file. A context manager: it takes the file's place at the end, and is removed on an error.

    Of a link the file that it names is replaced. A file that is there keeps its mode.

    Args:
        path: the file.

    Attributes:
        path: the file.
        file: where to write.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._target: Path | None = None if is_stream(self.path) else Path(os.path.realpath(self.path))
        try:
            self.file = self.path if self._target is None else _create_beside(self._target)
        except OSError as error:
            raise unwritable(self.path, error) from None

    def commit(self) -> None:
        """Let the draft take the file's place. Raise UsageError if it cannot; the file stays then."""
        if self._target is None:
            return
        try:
            _sync(self.file)
            self.file.replace(self._target)
        except OSError as error:
            self.discard()
            raise unwritable(self.path, error) from None

    def discard(self) -> None:
        """Remove the draft, which `commit` then leaves so; the file stays as it is."""
        if self._target is not None:
            with suppress(OSError):
                self.file.unlink(missing_ok=True)
        self._target = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.discard()


def write_output(path: str | Path, content: str | bytes) -> None:
    """Write a whole file. Raise UsageError if it cannot be written; what was there stays then."""
    with Draft(path) as draft:
        try:
            draft.file.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise unwritable(draft.path, error) from None


def unwritable(path: str | Path, error: BaseException) -> UsageError:
    """Return the error of a file that cannot be written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return UsageError(f"{path} cannot be written: {reason}; expected: a file in a folder that exists")


def is_stream(path: Path) -> bool:
    """Return True for a device, a pipe or a link to what a process has open: it has no content to keep."""
    for _ in range(_MAX_LINKS):
        if str(path.absolute()).startswith(_STREAMS):
            return True
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_same_file(path: Path, other: Path) -> bool:
    """Return True if two paths are of one file, also by links; streams have nothing to lose."""
    if is_stream(path) or is_stream(other):
        return False
    try:
        return path.samefile(other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def _create_beside(target: Path) -> Path:
    """Create an empty file in the folder of another one, with its mode. Raise OSError if that cannot be written."""
    mode = None
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode)
        os.close(os.open(target, os.O_WRONLY))  # a folder, and a file that is read-only, may not be replaced either
    draft = target.with_name(f".mqtwin-{secrets.token_hex(6)}.new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        if mode is not None:
            os.fchmod(file, mode)
    finally:
        os.close(file)
    return draft


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
