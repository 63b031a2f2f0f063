"""Bytes that come one behind the other: a file that grows, and standard input.

They become pages of whole lines or records, so that a position is between two of these. A file that is replaced, as
logs are rotated, is read to its end before the new one; one that has become shorter is read from its start again.
"""

from __future__ import annotations

import os
import select
import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG
from typing import IO

from typing_extensions import override

from streams.collecting.sources import HeldPages, Position, Source
from twin.errors import UsageError
from twin.feeds import Feed, Page

_READ_BYTES = 1 << 18
_MAX_REST = 1 << 20  # bytes without an end of a line or record that wait for it
_WAIT_S = 0.2
_QUIET_READS = 5  # at the end of a file that was replaced, before it is left: its writer may still have it open


class GrowingSource(Source):
    """Bytes that come one behind the other.

    Args:
        name: name of the position.
        feed: reader of the pages, which knows where its lines or records end.
    """

    def __init__(self, name: str, feed: Feed) -> None:
        self.name = name
        self._feed = feed
        self._rest = b""  # without an end
        self._start = 0  # of the rest: the first byte that is in no page yet
        self._own = ""  # identity of the file
        self._place = "", 0  # file and byte of the page that was returned
        self._held = HeldPages[tuple[str, int]]()

    @abstractmethod
    def _more(self) -> tuple[bytes, bool]:
        """Return what has come, after waiting for at most a part of a second; and whether nothing follows it."""

    @override
    def read(self) -> list[Page]:
        more, is_end = self._more()
        self._rest += more
        data = self._rest
        size = len(data) if is_end else self._feed.whole_bytes(data) if more else 0
        if not size and len(data) > _MAX_REST:
            size = len(data)
        if not size:
            return []
        page = Page(data[:size], f"{self.name}@{self._start}", self._time(), before=self._before(), stream=self.name)
        self._place = self._own, self._start
        self._rest, self._start = data[size:], self._start + size
        return [page]

    def _time(self) -> int:
        """Return the time of what has come, microseconds since 1970."""
        return time.time_ns() // 1000

    def _before(self) -> int:
        """Return the `before` of a page that begins where the rest does."""
        return 0

    @override
    def note_taken(self, page: Page, feed: Feed) -> None:
        self._held.note_taken(self._place, page.name, feed)


class StandardInput(GrowingSource):
    """Standard input, until its end. It has no position: what was read is gone. UsageError: it is closed."""

    def __init__(self, feed: Feed) -> None:
        super().__init__("standard input", feed)
        try:
            os.fstat(0)
        except OSError:
            raise UsageError(
                "no standard input: it is closed; expected: a pipe or a redirected file, such as amqsevt ... |"
            ) from None

    @override
    def _more(self) -> tuple[bytes, bool]:
        if not select.select([0], [], [], _WAIT_S)[0]:
            return b"", False
        data = os.read(0, _READ_BYTES)
        self.is_ended = not data
        return data, self.is_ended

    @override
    def position(self, feed: Feed) -> Position:
        return Position(source=self.name)


class FollowedFile(GrowingSource):
    """A file that grows.

    Args:
        path: the file.
        feed: reader of the pages.
        position: where to begin. The rest of a file that was replaced since then is read if it is in the same folder.
        complain: called with the code, place and text of a file that was replaced, or has become shorter.

    Raises:
        UsageError: there is no such file.
    """

    def __init__(self, path: Path, feed: Feed, position: Position, complain: Callable[[str, str, str], None]) -> None:
        super().__init__(str(path), feed)
        self._path = path
        self._complain = complain
        self._read_before = dict(position.read)  # by file: the first byte that no process before has read
        self._passed_before = position.passed
        self._read: dict[str, int] = {}  # by file that was left: its end
        self._quiet = 0
        self._file: IO[bytes] = self._open(path)
        self._begin(position.offsets.get(_identity(os.fstat(self._file.fileno())), 0))
        for own, start in position.offsets.items():
            if own != self._own:
                self._begin_before(own, start)

    @staticmethod
    def _open(path: Path) -> IO[bytes]:
        try:
            if not S_ISREG(path.stat().st_mode):
                raise UsageError(f"--follow {path} is not a file; expected: a file, or - for standard input")
            return path.open("rb")
        except OSError as error:
            raise UsageError(f"--follow {path} cannot be read: {error.strerror}; expected: a file") from None

    def _begin(self, start: int) -> None:
        self._own = _identity(os.fstat(self._file.fileno()))
        self._start, self._rest, self._quiet = start, b"", 0

    def _begin_before(self, own: str, start: int) -> None:
        """Begin with the file that was followed before, or say that it is gone."""
        for path in self._path.absolute().parent.iterdir():
            if path.is_file() and _identity(path.stat()) == own:
                self._file.close()
                self._file = path.open("rb")
                self._begin(start)
                return
        text = f"the file before it, read up to byte {start:,}, is gone; expected: one in the same folder"
        self._complain("replaced", self.name, text)

    @override
    def _more(self) -> tuple[bytes, bool]:
        place, size = self._start + len(self._rest), os.fstat(self._file.fileno()).st_size
        if size < place:
            text = f"it has {size:,} bytes, {place:,} were read; expected: a file that grows. It is read from its start"
            self._complain("shorter", self.name, text)
            self._read_before.pop(self._own, None)
            self._begin(0)
            place = 0
        again = self._read_before.get(self._own, 0) - place  # bytes up to where new ones begin
        self._file.seek(place)
        data = self._file.read(min(_READ_BYTES, again) if again > 0 else _READ_BYTES)
        if data:
            self._quiet = 0
            return data, len(data) == again
        return b"", self._is_left()

    def _is_left(self) -> bool:
        """Wait at the end of the file; go to the one that has replaced it once nothing of the old is in the rest."""
        try:
            is_replaced = _identity(self._path.stat()) != self._own
        except OSError:
            is_replaced = False  # it is being replaced
        self._quiet = self._quiet + 1 if is_replaced else 0
        if self._quiet < _QUIET_READS:
            time.sleep(_WAIT_S)
            return False
        if self._rest:
            return True
        try:
            file = self._path.open("rb")
        except OSError:
            return False
        self._complain("replaced", self.name, f"the file before it ends at byte {self._start:,}; the new one follows")
        self._read[self._own] = self._start
        self._file.close()
        self._file = file
        self._begin(0)
        return False

    @override
    def _time(self) -> int:
        return os.fstat(self._file.fileno()).st_mtime_ns // 1000

    @override
    def _before(self) -> int:
        return self._passed_before if self._start < self._read_before.get(self._own, 0) else 0

    @override
    def position(self, feed: Feed) -> Position:
        own, start = self._held.first(feed) or (self._own, self._start)
        if own == self._own:
            self._read.clear()
        return Position(
            source=self.name, offsets={own: start}, read={**self._read, self._own: self._start}, passed=feed.passed
        )

    @override
    def close(self) -> None:
        self._file.close()


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"
