"""Sources of pages: records of a Kafka topic, answers of a server to repeated requests.

The position of a collector in its source is a small JSON file, replaced as a whole. Events are delivered before it is
saved: after a crash the events since the last save come again, after a stop none.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TIMESTAMP_LOG_APPEND_TIME, Message, TopicPartition
from typing_extensions import override

from streams.collecting.http import HttpClient, RequestError
from streams.errors import is_passing
from streams.kafka.admin import topic_id
from streams.kafka.clients import LastError, check, new_consumer, offset_range, partitions_of
from twin.decoding import UNREADABLE
from twin.errors import MqtwinError, UsageError
from twin.events import Event
from twin.feeds import Feed, Page
from twin.feeds.connect import APPEND_TIME
from twin.feeds.protocol import Requests
from twin.outputs import locked, replace_file

_BATCH = 500  # records per read
_READ_SECONDS = 0.2
_SETTINGS = {"auto.offset.reset": "earliest", "fetch.wait.max.ms": 100, "queued.max.messages.kbytes": 64 * 1024}
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
    """Return the position in a file, or that of a new source if there is no file.

    Raises:
        UsageError: the file cannot be read, or belongs to another source.
    """
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
    """Replace the file.

    Raises:
        UsageError: it cannot be written.
        MqtwinError: the disk is full, or the like, which may pass.
    """
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

    The lock is on a file beside it, which stays: the position file itself is replaced again and again.

    Raises:
        UsageError: another process holds the lock, or the file beside it cannot be written.
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


class TopicSource(Source):
    """Records of a Kafka topic of someone else, from a position on.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
        topic: its name.
        position: where to begin; partitions that it lacks are read from their beginning.
        complain: called with the code, place and text of records that are gone before they were read.
        from_end: read partitions that it lacks from their end.

    Raises:
        MqtwinError: no Kafka answers, or there is no such topic.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        topic: str,
        position: Position,
        complain: Callable[[str, str, str], None] = lambda _code, _place, _text: None,
        *,
        from_end: bool = False,
    ) -> None:
        self.name = topic
        self._complain = complain
        self._last_error = LastError()
        self._consumer: Any = new_consumer(kafka, _SETTINGS, self._last_error)
        numbers = partitions_of(self._consumer, topic, kafka, self._last_error)
        if not numbers:
            self._consumer.close()
            raise MqtwinError(f"there is no topic {topic}; expected: the topic that the data are written to")
        self._topic_id = topic_id(kafka, topic)
        if position.topic_id and position.topic_id != self._topic_id:
            text = f"the topic was made again (id {self._topic_id}, before {position.topic_id}); what it held before"
            complain("lost", topic, f"{text} and was not read is lost, and it is read from its beginning")
            position = Position(source=topic)
        start = OFFSET_END if from_end else OFFSET_BEGINNING
        begins = {number: self._begin_of(number, position, start) for number in numbers}
        self._next = {number: begin for number, begin in begins.items() if begin >= 0}
        self._consumer.assign([TopicPartition(topic, number, begin) for number, begin in begins.items()])
        self._read_before = dict(position.read)
        self._passed_before = position.passed
        self._read = dict(position.read)
        self._held: dict[str, HeldPages[int]] = {}  # by partition; places are offsets
        self._places: deque[tuple[str, int]] = deque()  # of the pages returned, not yet taken

    def _begin_of(self, number: int, position: Position, start: int) -> int:
        """Return the first offset to read of a partition; complain about records that are gone."""
        begin = position.offsets.get(str(number))
        if begin is None:
            return start
        low, high = offset_range(self._consumer, self.name, number)
        if begin > high:
            text = f"it ends at offset {high:,}, {begin:,} records were read; expected: the topic of the position"
            self._complain("lost", f"{self.name}/{number}", f"{text}. It is read from its beginning")
            position.read.pop(str(number), None)
            return OFFSET_BEGINNING
        self._note_lost(number, begin, low)
        return max(begin, low)

    def _note_lost(self, number: int, expected: int, low: int) -> None:
        """Complain where a partition begins behind the next record to read."""
        if low > expected:
            text = (
                f"{low - expected:,} records, offsets {expected:,} to {low - 1:,}, were removed before they were read"
            )
            self._complain("lost", f"{self.name}/{number}", f"{text}; expected: a retention longer than any stop")

    @override
    def read(self) -> list[Page]:
        return [
            self._page(message)
            for message in self._consumer.consume(_BATCH, _READ_SECONDS)
            if check(message.error(), self.name)
        ]

    def _page(self, message: Message) -> Page:
        partition = message.partition() or 0
        number, offset = str(partition), message.offset() or 0
        expected = self._next.get(partition, offset)
        if offset > expected + 1:  # one is the mark of a transaction; compaction, too, leaves gaps
            low, _ = offset_range(self._consumer, self.name, partition)
            self._note_lost(partition, expected, min(low, offset))
        self._next[partition] = offset + 1
        self._places.append((number, offset))
        headers: Any = message.headers() or ()
        key = _text(message.key())
        texts = {name.lower(): _text(value) for name, value in headers}
        place = {"kafka.topic": self.name, "kafka.partition": number, "kafka.offset": str(offset)}
        kind, created = message.timestamp()
        if kind == TIMESTAMP_LOG_APPEND_TIME:
            place[APPEND_TIME] = "1"
        return Page(
            message.value() or b"",
            f"{self.name}/{number}@{offset}",
            created * 1000 if created > 0 else time.time_ns() // 1000,
            {**texts, **({"kafka.key": key} if message.key() is not None else {}), **place},
            self._passed_before if offset < self._read_before.get(number, 0) else 0,
            f"{self.name}/{number}/{key}",
        )

    @override
    def note_taken(self, page: Page, feed: Feed) -> None:
        number, offset = self._places.popleft()
        self._read[number] = offset + 1
        self._held.setdefault(number, HeldPages()).note_taken(offset, page.name, feed)

    @override
    def position(self, feed: Feed) -> Position:
        offsets = {}
        for number, read in self._read.items():
            held = self._held.get(number)
            first = None if held is None else held.first(feed)
            offsets[number] = read if first is None else first
        return Position(
            source=self.name,
            topic_id=self._topic_id,
            offsets=offsets,
            read=dict(self._read),
            passed=feed.passed,
        )

    @override
    def close(self) -> None:
        self._consumer.close()


class HttpSource(Source):
    """Answers of a server to a request each `interval_s` seconds. After one without an answer the next is made then.

    Args:
        name: name of its position.
        client: for the requests.
        requests: returns the next requests, see `twin.feeds.protocol.Server`.
        interval_s: seconds.
        position: where to begin.
        complain: called with the code, place and text of a failure.
    """

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
        self.name = name
        self._client = client
        self._requests = requests
        self._interval_s = interval_s
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


def _text(value: bytes | str | None) -> str:
    """Return a header or key as text. Bytes that are not UTF-8, such as those of a message id, can be had back."""
    if value is None:
        return ""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
