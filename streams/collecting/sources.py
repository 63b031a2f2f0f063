"""Sources of pages, and their positions. Here answers of a server to repeated requests.

The position of a collector in its source is a small JSON file, replaced as a whole. Events are delivered before it is
saved: after a crash the events since the last save come again, after a stop none.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from typing_extensions import override

from streams.collecting.http import HttpClient, RequestError
from streams.errors import is_passing
from twin.decoding import UNREADABLE
from twin.errors import MqtwinError, UsageError
from twin.events import Event
from twin.feeds import Feed, Page
from twin.feeds.protocol import Requests
from twin.outputs import locked, replace_file

_READ_SECONDS = 0.2
_MAX_WAITING = 1_000_000  # records whose events may be held back


Place = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Position(msgspec.Struct, kw_only=True):
    """Position in a source."""

    source: str  # topic or address; a position of another source is refused
    topic_id: str = ""  # Kafka's id of the topic; one that was made again has another one
    offsets: dict[str, Place] = {}  # by partition of a topic, as text: the first record to read again
    read: dict[str, Place] = {}  # by partition: the first record that was never read
    marks: dict[str, str] = {}  # by file: see `streams.collecting.growing.FollowedFile`
    passed: int = 0  # microseconds; events of records before `read` up to this time were published
    time: int = 0  # microseconds; the end of what was asked of a server
    busy: dict[str, int] = {}  # microseconds, by queue manager: until then it may run a command that was not answered
    coverage: dict[str, tuple[int, int]] = {}  # coverage of spans, see `twin.feeds.coverage.LiveCoverage.known`
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
