"""Files that all commands write in one way: beside their paths, and moved there when they are whole; and secrets.

The previous content stays until then, whatever fails. A device or a pipe, such as /dev/stdout, is written directly.
Files that grow while they are read, such as `mqtwin record --follow`, are not written in this way.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from twin.base.decoding import UNREADABLE
from twin.base.errors import UsageError

_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")  # links there name what is open, not a file
_MAX_LINKS = 40
_WRITTEN = ".mqtwin-written.json"
_COMPARED_BYTES = 64 << 20


class Draft:
    """Future content of a file. A context manager: it takes the file's place at the end, and is removed on an error.

    Of a link the file that it names is replaced. A file that is there keeps its mode. UsageError: the file cannot be
    written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._target: Path | None = None if is_stream(self.path) else Path(os.path.realpath(self.path))
        try:
            self.file = self.path if self._target is None else _create_beside(self._target)  # where to write
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


class OwnFolder:
    """Folder of the results of a command, under fixed names.

    A file of such a name stays if the command did not write it, if it was changed since, or if it is read: then the
    result gets another name, such as estate.new.toml. The digests of what was written are in `.mqtwin-written.json`.

    Args:
        reads: files that the command reads.
    """

    def __init__(self, path: Path, reads: Iterable[Path] = ()) -> None:
        self.path = path  # the folder; it is made when something is written
        self._reads = tuple(reads)

    def free(self, name: str) -> Path:
        """Return the path for a result of that name. Raise UsageError if the folder cannot be written or read."""
        self.make()
        stem, dot, suffix = name.partition(".")
        written = self._written()
        for number in count():
            place = f".new{number if number > 1 else ''}" if number else ""
            path = self.path / f"{stem}{place}{dot}{suffix}"
            if not os.path.lexists(path):
                return path
            is_read = any(is_same_file(path, other) for other in self._reads)
            if not is_read and _digest(path) == written.get(path.name, "none"):
                return path
        raise AssertionError

    def note_written(self, path: Path) -> None:
        """Note that a file of the folder, as it is now, is one of the results."""
        written = self._written() | {path.name: _digest(path)}
        write_output(self.path / _WRITTEN, msgspec.json.format(msgspec.json.encode(written)) + b"\n")

    def write(self, name: str, text: str) -> Path:
        """Write a text, if it is not there already; return its path. Raise UsageError."""
        named = self.path / name
        if named.is_file() and named.stat().st_size < _COMPARED_BYTES and named.read_bytes() == text.encode():
            return named
        path = self.free(name)
        write_output(path, text)
        self.note_written(path)
        return path

    def make(self) -> None:
        """Make the folder. Raise UsageError if that cannot be."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "it is a file" if self.path.is_file() else error.strerror
            raise UsageError(f"{self.path} cannot be written: {reason}; expected: a folder") from None

    def _written(self) -> dict[str, str]:
        try:
            return msgspec.json.decode((self.path / _WRITTEN).read_bytes(), type=dict[str, str])
        except (OSError, *UNREADABLE):
            return {}  # then nothing is known to be a result, and everything stays


def write_output(path: str | Path, content: str | bytes) -> None:
    """Write a whole file. Raise UsageError if it cannot be written; its previous content stays then."""
    with Draft(path) as draft:
        try:
            draft.file.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise unwritable(draft.path, error) from None


def unwritable(path: str | Path, error: BaseException) -> UsageError:
    """Return the error of a file that cannot be written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return UsageError(
        f"{path} cannot be written: {reason}; expected: a file in a folder that exists and may be written"
    )


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


def _digest(path: Path) -> str:
    """Return the digest of a file, "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


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


def write_draft(path: Path, data: bytes, *, is_synced: bool = True) -> Path:
    """Write the future content of a file beside it, and return the path of this draft, to be renamed. `is_synced`:
    flush it to the disk, so that a crash of the machine cannot leave the file empty. OSError: the draft cannot be
    written.
    """
    # Nobody can guess its name: in a folder where others may write a link of it would lead to a file of theirs.
    draft = path.with_name(f".mqtwin-{secrets.token_hex(6)}.new")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            file.write(data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return draft


def replace_file(path: Path, data: bytes, *, is_synced: bool = True) -> None:
    """Replace a file by a draft of its new content, as `write_draft`; a device or a pipe is written directly."""
    if is_stream(path):
        path.write_bytes(data)
        return
    draft = write_draft(path, data, is_synced=is_synced)
    try:
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path, busy: str, right: str) -> Iterator[None]:
    """Hold the lock of a file, which has the number of the process and stays: two locks of one name would be two files.
    UsageError: another process holds the lock, or the file cannot be written.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(file, 20, 0).decode("ascii", "replace").strip()
            process = f"pid {owner}" if owner.isdecimal() else "pid unknown"
            raise UsageError(f"{busy} ({process}); expected: {right}") from None
        with suppress(OSError):  # of a full disk: the lock is held all the same
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def read_secret(option: str, path: Path) -> str:
    """Return the secret in the first line of a file. UsageError: unreadable, or the line is empty or not printable."""
    try:
        line = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {path} cannot be read: {error}; expected: a file with one line") from None
    if not line or not line.isprintable():
        raise UsageError(f"{option} {path} has no secret in its first line; expected: a file with one line")
    return line
