"""Sources of pages, and their positions: answers of a server, a file that grows, standard input.

- The position of a collector in its source is a small JSON file, replaced as a whole. Events are delivered before it is
  saved: after a crash the events since the last save come again, after a stop none.
- A growing file and standard input become pages of whole lines or records, so that a position is between two of these.
"""

from __future__ import annotations

import hashlib
import os
import select
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import IO, Annotated, Any, Generic, TypeVar

import msgspec
from typing_extensions import override

from streams.collecting.http import HttpClient, RequestError
from streams.errors import is_passing
from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError, UsageError
from twin.base.outputs import locked, replace_file
from twin.events import Event
from twin.feeds import Feed, Page
from twin.feeds.protocol import Requests

_READ_SECONDS = 0.2
_MAX_WAITING = 1_000_000  # records whose events may be held back


Place = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Position(msgspec.Struct, kw_only=True):
    """Position in a source."""

    source: str  # topic or address; a position of another source is refused
    topic_id: str = ""  # Kafka's id of the topic; one that was made again has another one
    offsets: dict[str, Place] = {}  # by partition of a topic, as text: the first record to read again
    read: dict[str, Place] = {}  # by partition: the first record that was never read
    marks: dict[str, str] = {}  # by file: see `FollowedFile`
    passed: int = 0  # microseconds; events of records before `read` up to this time were published
    time: int = 0  # microseconds; the end of what was asked of a server
    busy: dict[str, int] = {}  # microseconds, by queue manager: until then it may run a command that was not answered
    coverage: dict[str, tuple[int, int]] = {}  # coverage of spans, see `twin.feeds.intervals.LiveCoverage.known`
    announced: dict[str, dict[str, tuple[Any, Any]]] = {}  # definitions, see `twin.feeds.Feed.announced`


def load_position(path: Path, source: str) -> Position:
    """Return the position in a file; without one a new one. UsageError: it is not readable, or of another source."""
    try:
        position = msgspec.json.decode(path.read_bytes(), type=Position)
    except FileNotFoundError:
        return Position(source=source)
    except (OSError, *UNREADABLE) as error:
        raise UsageError(f"--position {path}: {error}; expected: a file that mqtwin collect wrote, or none") from None
    if position.source != source:
        raise UsageError(f"--position {path} is of {position.source}; expected: {source}, or another file")
    return position


def save_position(path: Path, position: Position) -> None:
    """Replace the file. UsageError: it cannot be written. MqtwinError: the disk is full or the like, which may pass."""
    try:
        replace_file(path, msgspec.json.encode(position) + b"\n")
    except OSError as error:
        text = f"--position {path} cannot be written: {error.strerror}"
        if is_passing(error):
            raise MqtwinError(f"{text}; expected: a disk with room") from error
        raise UsageError(f"{text}; expected: a file in a folder") from None


@contextmanager
def locked_position(path: Path | None) -> Iterator[None]:
    """Lock a position file, so that no second collector publishes the same again. None: there is none.

    The lock is on a file beside it, which stays: the position file itself is replaced again and again. UsageError:
    another process holds the lock, or the file beside it cannot be written.
    """
    if path is None:
        yield
        return
    busy = f"--position {path}: another mqtwin collect uses it"
    with locked(path.with_name(f".{path.name}.lock"), busy, "a file of its own for each collector"):
        yield


_Place = TypeVar("_Place")


class HeldPages(Generic[_Place]):
    """Pages of which a feed holds something back, in the order in which they were read: a source reads them again."""

    def __init__(self) -> None:
        """Begin without pages."""
        self._pages: deque[tuple[_Place, str, int]] = deque()  # place, name, latest event that may be held back

    def note_taken(self, place: _Place, name: str, feed: Feed) -> None:
        """Note that a feed has taken a page."""
        self._pages.append((place, name, feed.page_latest))
        self.first(feed)
        if len(self._pages) > _MAX_WAITING:
            self._pages.popleft()

    def first(self, feed: Feed) -> _Place | None:
        """Return the place of the first page that is to be read again; None: of none."""
        while self._pages and self._pages[0][2] <= feed.passed and self._pages[0][1] not in feed.begun_in:
            self._pages.popleft()
        return self._pages[0][0] if self._pages else None


class Source(ABC):
    """A source of pages. `name` is that of its position; after the last page, if there is one, `is_ended` is true.

    `is_asked` is true of a server: a stop does not wait for its answer.
    """

    name: str
    is_ended = False
    is_asked = False

    @abstractmethod
    def read(self) -> list[Page]:
        """Return the next pages, after waiting for at most a part of a second; possibly none."""

    @abstractmethod
    def note_taken(self, page: Page, feed: Feed) -> None:
        """Note that a feed has taken a page."""

    def note_events(self, events: Iterable[Event]) -> None:  # noqa: B027 -- most sources have nothing to say
        """Note the events that the pages of the last `read` gave."""

    @abstractmethod
    def position(self, feed: Feed) -> Position:
        """Return the position after everything that was taken."""

    def close(self) -> None:  # noqa: B027 -- a server that is asked has no connection
        """Close the connection."""


class HttpSource(Source):
    """Answers of a server to a request each `interval_s` seconds. After one without an answer the next is made then."""

    is_asked = True

    def __init__(
        self,
        name: str,
        client: HttpClient,
        requests: Requests,
        interval_s: float,
        position: Position,
        complain: Callable[[str, str, str], None],
    ) -> None:
        self.name, self._client, self._requests, self._interval_s = name, client, requests, interval_s
        self._complain = complain
        self._asked = position.time
        self._next_s = 0.0

    @override
    def read(self) -> list[Page]:
        wait_s = self._next_s - time.monotonic()
        if wait_s > 0:
            time.sleep(min(wait_s, _READ_SECONDS))
            return []
        self._next_s = time.monotonic() + self._interval_s
        now = time.time_ns() // 1000
        pages = []
        for url, accept in self._requests(self._asked, now):
            try:
                body, kind = self._client.get(url, accept)
            except RequestError as error:
                text = str(error).removeprefix(self.name).lstrip()
                self._complain("no-answer", self.name, f"{text}; asked again in {self._interval_s:g} s")
                return []
            pages.append(Page(body, url, now, {"content-type": kind}))
        self._asked = now
        return pages

    @override
    def note_taken(self, page: Page, feed: Feed) -> None:
        pass

    @override
    def position(self, feed: Feed) -> Position:
        return Position(source=self.name, time=self._asked)


# --- a file that grows, and standard input ----------------------------------------------------------------------------
# A file that is replaced, as logs are rotated, is read to its end before the ones behind it; one whose content is
# another is read from its start again, and what is lost then is said.

_READ_BYTES = 1 << 18
_MAX_REST = 1 << 20  # bytes without an end of a line or record that wait for it
_WAIT_S = 0.2
_MARK_BYTES = 1024  # before a place, by which its content is known again
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".Z")
_QUIET_READS = 5  # at the end of a file that was replaced, before it is left: its writer may still have it open


class GrowingSource(Source):
    """Bytes that come one behind the other."""

    def __init__(self, name: str, feed: Feed) -> None:
        self.name, self._feed = name, feed
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
        return time.time_ns() // 1000

    def _before(self) -> int:
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
    """A file that grows. UsageError: there is no such file.

    Args:
        position: where to begin. The rest of a file that was replaced since then is read if it is in the same folder,
            and those that came between. `marks` has of each file a digest of the bytes before what was not read.
    """

    def __init__(self, path: Path, feed: Feed, position: Position, complain: Callable[[str, str, str], None]) -> None:
        super().__init__(str(path), feed)
        self._path, self._complain = path, complain
        self._read_before = dict(position.read)  # by file: the first byte that no process before has read
        self._passed_before = position.passed
        self._read: dict[str, int] = {}  # by file that was left: its end
        self._left: set[str] = set()  # files that were left
        self._marks: dict[str, str] = {}
        self._tail = b""  # the last bytes before the first that is in no page yet
        self._written = position.time  # when the file was last written, microseconds since 1970
        self._quiet = 0
        self._file: IO[bytes] = self._open(path)
        self._begin(position.offsets.get(_identity(os.fstat(self._file.fileno())), 0))
        for own, start in position.offsets.items():
            if own != self._own:
                self._begin_before(own, start, position.time)
        self._check_mark(position.marks.get(self._own, ""), position.read.get(self._own, 0))

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
        self._tail = _bytes_before(self._file, start, _MARK_BYTES)

    def _begin_before(self, own: str, start: int, written: int) -> None:
        """Begin with the file that was followed before; or say that it is gone, and begin with the first behind it. It
        was written last at `written`, 0 if that is not known.
        """
        for path in self._path.absolute().parent.iterdir():
            if path.is_file() and _identity(path.stat()) == own:
                self._file.close()
                self._file = path.open("rb")
                self._begin(start)
                return
        text = f"the file before it, read up to byte {start:,}, is gone; expected: one in the same folder"
        self._complain("replaced", self.name, f"{text}. What was not read of it is lost")
        between = self._behind(written * 1000) if written else None
        if between is not None:
            self._file.close()
            self._file = between.open("rb")
            self._begin(0)

    def _check_mark(self, mark: str, read: int) -> None:
        """Begin at the start of a file whose content is not that of the position: it was cut, or made again. The mark
        is that of the bytes before `read`, "" if the position has none.
        """
        size, _, _ = mark.partition(":")
        if not size.isdecimal() or os.fstat(self._file.fileno()).st_size < self._start:
            return
        if mark != _mark(_bytes_before(self._file, read, min(int(size), _MARK_BYTES))):
            self._begin_again(read)

    def _begin_again(self, read: int) -> None:
        """Begin at the start of the file, whose content is another than the one of which `read` bytes were read."""
        text = f"the {read:,} bytes that were read are no longer in it: it was cut, as by copytruncate, or made again"
        self._complain("replaced", self.name, f"{text}. It is read from its start; what came before that is lost")
        self._read_before.pop(self._own, None)
        self._begin(0)

    def _behind(self, written_ns: int) -> Path | None:
        """Return the first rotated file, of those not read, that was written after a time; None: the followed one is.

        It has the name of the followed file with another end, such as LOG.1 or LOG-20261128. One that is compressed is
        not read, which is said.
        """
        stem, rotated = self._path.name.partition(".")[0], list[tuple[int, int, Path]]()
        current = self._identity_of(self._path)
        for path in self._path.absolute().parent.iterdir():
            rest = path.name.removeprefix(stem)
            if rest == path.name or (rest and rest[0].isalnum()) or not path.is_file():
                continue
            status, own = path.stat(), _identity(path.stat())
            if status.st_mtime_ns < written_ns or own in {self._own, current, *self._left}:
                continue
            if path.suffix in _COMPRESSED:
                text = (
                    f"{path.name} was written since the last file that was read; expected: rotated files that are not"
                )
                self._complain("replaced", self.name, f"{text} compressed before they are read. What it holds is lost")
                self._left.add(own)
                continue
            rotated.append((status.st_mtime_ns, status.st_ctime_ns, path))
        return min(rotated)[2] if rotated else None

    @staticmethod
    def _identity_of(path: Path) -> str:
        """Return the identity of a file; "": there is none."""
        try:
            return _identity(path.stat())
        except OSError:
            return ""

    @override
    def _more(self) -> tuple[bytes, bool]:
        place, size = self._start + len(self._rest), os.fstat(self._file.fileno()).st_size
        if size < place:
            text = f"it has {size:,} bytes, {place:,} were read; expected: a file that grows. It is read from its start"
            self._complain("shorter", self.name, text)
            self._read_before.pop(self._own, None)
            self._begin(0)
            place = 0
        elif size > place and not self._has_same_content(place):
            self._begin_again(place)
            place = 0
        again = self._read_before.get(self._own, 0) - place  # bytes up to where new ones begin
        self._file.seek(place)
        data = self._file.read(min(_READ_BYTES, again) if again > 0 else _READ_BYTES)
        if data:
            self._quiet = 0
            return data, len(data) == again
        return b"", self._is_left()

    def _has_same_content(self, place: int) -> bool:
        read = (self._tail + self._rest)[-_MARK_BYTES:]
        return read == _bytes_before(self._file, place, len(read))

    @override
    def read(self) -> list[Page]:
        pages = super().read()
        for page in pages:
            self._tail = (self._tail + bytes(page.data[-_MARK_BYTES:]))[-_MARK_BYTES:]
        return pages

    def _is_left(self) -> bool:
        """Wait at the end of the file; move to its replacement once the old one is read whole."""
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
        path = self._behind(os.fstat(self._file.fileno()).st_mtime_ns) or self._path
        try:
            file = path.open("rb")
        except OSError:
            return False
        new = "the new one" if path == self._path else path.name
        self._complain("replaced", self.name, f"the file before it ends at byte {self._start:,}; {new} follows")
        self._read[self._own] = self._start
        self._marks[self._own] = _mark(self._tail)
        self._left.add(self._own)
        self._file.close()
        self._file = file
        self._begin(0)
        return False

    @override
    def _time(self) -> int:
        self._written = os.fstat(self._file.fileno()).st_mtime_ns // 1000
        return self._written

    @override
    def _before(self) -> int:
        return self._passed_before if self._start < self._read_before.get(self._own, 0) else 0

    @override
    def position(self, feed: Feed) -> Position:
        own, start = self._held.first(feed) or (self._own, self._start)
        if own == self._own:
            self._read.clear()
            self._marks.clear()
        return Position(
            source=self.name,
            offsets={own: start},
            read={**self._read, self._own: self._start},
            marks={**self._marks, self._own: _mark(self._tail)},
            passed=feed.passed,
            time=self._written,
        )

    @override
    def close(self) -> None:
        self._file.close()


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def _bytes_before(file: IO[bytes], place: int, number: int) -> bytes:
    first = max(0, place - number)
    return os.pread(file.fileno(), place - first, first)


def _mark(before: bytes) -> str:
    """Return by how many bytes before a place, and by which digest, the content of a file is known again."""
    return f"{len(before)}:{hashlib.sha256(before).hexdigest()}"
