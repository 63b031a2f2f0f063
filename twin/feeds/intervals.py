"""Counts of an interval as events: spread over slices, with the sum of the bytes kept exactly; and of idle stores.

An interval is cut into slices of about `slice_s` seconds. At the end of each slice come its puts, then its gets. With
steady rates a peak is too high by little more than the puts of one slice (`peak_error`); with rates that change within
the interval only a measured depth bounds it: between `depth - gets` and `depth + puts` of the interval. The lengths are
the mean, rounded down, and the mean plus one byte, as often as the sum of the bytes requires. A message takes data
elements of 256 bytes, so the elements of `n` messages are wrong by less than `n`, and exact if all have one length. A
queue whose counts are 0 has no event, and the clock that its store shares with others would stop. So a heartbeat at the
end of the interval is sent for each store whose counts were read and that had no event (`IdleStores`), never for one
whose counts were not read.

Sources:
    docs/feeds.md, "Idle stores"; docs/events.md, "Time".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kernels.json_scan import COUNT_MAX, LENGTH_MAX
from twin.estate import Estate, RoutingError
from twin.events import Event
from twin.events.fields import Op

MAX_SLICES = 1000
MAX_RATE = 10_000_000  # messages/s of a queue; far more than any queue manager moves
MAX_STORES = 100_000  # stores by queue manager that are kept
_SAME_US = 10_000_000  # intervals that end within a tick of each other are one: some collectors read queue by queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Puts:
    """Puts of an interval that have persistence and way in common."""

    count: int
    bytes: int  # sum of the lengths
    persistent: bool = False
    direct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """Puts and gets of a queue in an interval, as seen by one queue manager."""

    qmgr: str
    queue: str
    start: int  # microseconds since 1970
    end: int
    puts: tuple[Puts, ...] = ()
    gets: int = 0
    expired: int = 0
    cleared: bool = False  # CLEAR QLOCAL at the end

    @property
    def messages(self) -> int:
        """Number of puts."""
        return sum(puts.count for puts in self.puts)

    @property
    def has_events(self) -> bool:
        """True if anything happened."""
        return bool(self.messages or self.gets or self.expired or self.cleared)


def slices_of(start: int, end: int, slice_s: float) -> int:
    """Return the number of slices of an interval, from 1 to MAX_SLICES."""
    return max(1, min(MAX_SLICES, round((end - start) / 1e6 / slice_s)))


def spread(total: int, slices: int, *, is_early: bool = False) -> list[int]:
    """Return the share of each slice of a total, as even as integers can be. `is_early` rounds up the sum to the end of
    each slice instead of down: so puts come before their gets.
    """
    ends = [(total * i + (slices - 1 if is_early else 0)) // slices for i in range(slices + 1)]
    return [after - before for before, after in pairwise(ends)]


def peak_error(flows: Flows, slice_s: float) -> int:
    """Return the number of messages by which a peak may be too high at steady rates.

    These are the puts of a slice, and the loss to rounding: one message per length of each kind of put, and one get.
    """
    slices = slices_of(flows.start, flows.end, slice_s)
    stored = [puts.count for puts in flows.puts if puts.count > 0 and not puts.direct]
    return -(-sum(stored) // slices) + 2 * len(stored) + 1 if stored else 0


def implausible(flows: Flows) -> str | None:
    """Return the text of what cannot be in the counts of an interval, or None."""
    limit = MAX_RATE * max(1, (flows.end - flows.start) // 1_000_000)
    largest = max(flows.gets, flows.expired, *(puts.count for puts in flows.puts), 0)
    if largest > limit:
        return f"{flows.queue}: {largest} messages in an interval; expected: at most {limit}"
    for puts in flows.puts:
        if puts.bytes > puts.count * LENGTH_MAX:
            return f"{flows.queue}: {puts.bytes} bytes in {puts.count} messages; expected: at most {LENGTH_MAX} each"
    return None


def net(puts: Iterable[Puts], rolled_back: int) -> tuple[Puts, ...]:
    """Return the puts without those rolled back, taken evenly from all that were stored: their kind is not reported."""
    puts = tuple(puts)
    stored = sum(group.count for group in puts if not group.direct)
    left = max(0, stored - rolled_back)
    counted, remaining = 0, []
    for group in puts:
        if group.direct or not stored:
            remaining.append(group)
            continue
        count = (counted + group.count) * left // stored - counted * left // stored
        counted += group.count
        remaining.append(replace(group, count=count, bytes=group.bytes * count // group.count if group.count else 0))
    return tuple(remaining)


def backed_out_later(puts: Iterable[Puts], rolled_back: int) -> int:
    """Return the puts that an earlier interval counted and this one rolled back: they leave, as expired messages do."""
    return max(0, rolled_back - sum(group.count for group in puts if not group.direct))


def events_of(flows: Flows, slice_s: float) -> Iterator[Event]:
    """Yield the events of an interval in order of time; negative counts are 0."""
    slices = slices_of(flows.start, flows.end, slice_s)
    parts: list[tuple[list[int], Event]] = []
    for puts in flows.puts:
        if puts.count <= 0:
            continue
        length, longer = divmod(max(0, puts.bytes), puts.count)
        for count, size in ((puts.count - longer, length), (longer, length + 1)):
            put = _event(flows, "PUT")
            put["length"] = size
            if puts.persistent:
                put["persistent"] = True
            if puts.direct:
                put["direct"] = True
            parts.append((spread(count, slices, is_early=True), put))
    parts.append((spread(max(0, flows.gets), slices), _event(flows, "GET")))
    parts.append((spread(max(0, flows.expired), slices), _event(flows, "EXPIRE")))
    for i in range(slices):
        time = flows.start + (flows.end - flows.start) * (i + 1) // slices
        for counts, event in parts:
            for count in _pieces(counts[i]):
                yield {**event, "time": time, "count": count}
    if flows.cleared:
        yield {"time": flows.end, "qmgr": flows.qmgr, "op": "CLEAR", "queue": flows.queue}


def _event(flows: Flows, op: Op) -> Event:
    return {"time": flows.end, "qmgr": flows.qmgr, "queue": flows.queue, "op": op}


def _pieces(count: int) -> Iterator[int]:
    """Yield counts that an event may have, which sum up to `count`."""
    while count > 0:
        yield min(count, COUNT_MAX)
        count -= COUNT_MAX


# --- idle stores ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Interval:
    """The present interval of a queue manager."""

    end: int  # of the interval that is read now, microseconds since 1970
    known: dict[str, None] = field(default_factory=dict)  # stores of which counts were ever read, in that order
    active: set[str] = field(default_factory=set)  # those of them with an event in this interval


class IdleStores:
    """The stores of which counts were read, by queue manager. Without an estate there are none, and no heartbeats."""

    def __init__(self, estate: Estate | None) -> None:
        self._estate = estate
        self._intervals: dict[str, _Interval] = {}
        self._due: list[Event] = []
        self._stores = 0

    def note_read(self, qmgr: str, queue: str, end: int, *, has_events: bool) -> None:
        """Report that the counts of a queue in an interval were read.

        All counts of a queue manager that end together are an interval. It is complete when those of a later one come.
        A queue that the estate lacks is ignored.
        """
        if self._estate is None:
            return
        try:
            store = self._estate.routes[self._estate.route_of_queue(qmgr, queue)].store
        except RoutingError:
            return
        interval = self._intervals.setdefault(qmgr, _Interval(end))
        if end >= interval.end + _SAME_US:
            self._close(qmgr, interval)
            interval.end, interval.active = end, set()
        if store not in interval.known and self._stores < MAX_STORES:
            self._stores += 1
            interval.known[store] = None
        if has_events or end < interval.end:  # of a late report it is not known what else is in its interval
            interval.active.add(store)

    def _close(self, qmgr: str, interval: _Interval) -> None:
        """Make the heartbeats of an interval that was read to its end."""
        idle = [store for store in interval.known if store not in interval.active]
        self._due += [{"time": interval.end, "qmgr": qmgr, "op": "HEARTBEAT", "store": store} for store in idle]

    def heartbeats(self, *, is_end: bool = False) -> Iterator[Event]:
        """Yield the heartbeats due since the last call; at the end of input the last intervals are complete, too."""
        if is_end:
            for qmgr, interval in self._intervals.items():
                self._close(qmgr, interval)
            self._intervals.clear()
        due, self._due = self._due, []
        yield from due
