"""Records in segments and objects over several lines, which begin in a page of a stream and end in a later one.

Each stream keeps at most one, and what waits is bounded by its number, its bytes and its age by the times of the pages
of its partition: the same pages in the same order give the same events, however far other partitions are read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from twin.feeds.intake import Complaint
from twin.feeds.protocol import Feed, Page

_MAX_STREAMS = 1000
_MAX_BYTES = 64 << 20
_MAX_AGE_US = 600 * 1_000_000


class Begun(Protocol):
    """A record or object that has begun in a stream."""

    begun_in: str  # name of the page in which it begins; "": nothing has begun that is not whole

    @property
    def size(self) -> int:
        """Bytes of it."""

    def give_up(self) -> Iterator[Complaint]:
        """Forget it, with a complaint if there is anything."""


_Begun = TypeVar("_Begun", bound=Begun)
_Item = TypeVar("_Item")


class Streams(Generic[_Begun]):
    """Records and objects that have begun, by stream of a feed; `make` returns what a stream keeps."""

    def __init__(self, feed: Feed, make: Callable[[], _Begun]) -> None:
        self._feed = feed
        self._make = make
        self._begun: dict[str, OrderedDict[str, tuple[int, _Begun]]] = {}  # by partition and stream: time, and what
        self._number = self._bytes = 0  # of these

    def take(self, page: Page, read: Callable[[_Begun], Iterator[_Item]]) -> Iterator[_Item | Complaint]:
        """Yield what is whole with a page: `read` yields it, given what has begun in pages before."""
        partition, time = partition_of(page.stream), page.time or 0
        own = self._begun.get(partition, OrderedDict())
        begun = own.pop(page.stream)[1] if page.stream in own else self._make()
        before, size = begun.begun_in, begun.size
        yield from read(begun)
        if not page.stream:
            yield from begun.give_up()
        self._note(before, begun.begun_in, begun.size - size)
        if begun.begun_in:
            self._begun.setdefault(partition, own)[page.stream] = time, begun
        while own and next(iter(own.values()))[0] < time - _MAX_AGE_US:
            yield from self._give_up(partition)
        while self._bytes > _MAX_BYTES or self._number > _MAX_STREAMS:
            oldest = {name: next(iter(others.values()))[0] for name, others in self._begun.items() if others}
            yield from self._give_up(min(oldest, key=lambda name: oldest[name]))

    def finish(self) -> Iterator[Complaint]:
        """Give up everything that has begun."""
        for partition, own in self._begun.items():
            while own:
                yield from self._give_up(partition)

    def _give_up(self, partition: str) -> Iterator[Complaint]:
        """Give up what has begun in the stream of a partition that has been silent for longest."""
        _, (_, begun) = self._begun[partition].popitem(last=False)
        self._note(begun.begun_in, "", -begun.size)
        yield from begun.give_up()

    def _note(self, before: str, after: str, more: int) -> None:
        """Move an unfinished part from the page in which it began to the one in which it begins now, with its bytes."""
        self._bytes += more
        self._number += bool(after) - bool(before)
        self._feed.note_begun(before, after)


def partition_of(stream: str) -> str:
    """Return a stream without its key: streams of one topic and partition have that in common."""
    return "/".join(stream.split("/", 2)[:2])
