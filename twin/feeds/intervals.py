"""Counts of an interval as events: spread over slices, beside idle stores, and beside spans.

- Slices: an interval is cut into slices of about `slice_s` seconds. At the end of each slice come its puts, then its
  gets. The sum of the bytes is kept exactly.
- Idle stores get a heartbeat. Spans: the calls that interval counts show beyond the spans of the same queue and time.
- Sources: docs/feeds.md, "Idle stores"; docs/events.md, "Time".
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

from kernels.json_scan import COUNT_MAX, LENGTH_MAX
from twin.estate import Estate, RoutingError
from twin.events import Event
from twin.events.fields import Op

# --- slices -----------------------------------------------------------------------------------------------------------
# With steady rates a peak is too high by little more than the puts of one slice (`peak_error`); with rates that change
# within the interval only a measured depth bounds it: between `depth - gets` and `depth + puts` of the interval.
#
# The lengths are the mean, rounded down, and the mean plus one byte, as often as the sum of the bytes requires. A
# message takes data elements of 256 bytes, so the elements of `n` messages are wrong by less than `n`, and exact if all
# have one length.

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
# A queue whose counts are 0 has no event, and the clock that its store shares with others would stop. So a heartbeat at
# the end of the interval is sent for each store whose counts were read and that had no event (`IdleStores`), never for
# one whose counts were not read.


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


# --- spans beside statistics ------------------------------------------------------------------------------------------
# Not every message carries trace context, and applications sample [IBM: MQ 9.4.3, Trace context]; statistics count
# every put and get. Of files (`SpanCoverage`), the counts of a window of time are thinned by the number of spans in it:
# the rest are the messages that no span shows. Sums are then those of the statistics, where these counted at least as
# many. Live (`LiveCoverage`), statistics arrive some minutes after the spans of the same time, so the share of the last
# whole windows is applied to the present spans of each queue's puts and gets: one stands for 1 / share calls, the span
# itself and an event with a count for the others. The assumption that the share stays the same is printed; the drift
# against measurements shows where it fails.

WINDOW_S = 900.0  # seconds; a window holds whole intervals of most statistics
WINDOWS = 4  # whole windows whose sums give the share: an hour
MIN_SPANS = 10  # in them; with fewer the share is not known
MAX_WINDOWS = 96  # that are remembered: a day
MAX_COUNT = 1_000_000  # of an event

_Key = tuple[str, str, str, int]  # store, queue, PUT or GET, window
_Share = tuple[str, str, str]  # store, queue, PUT or GET


@dataclass(slots=True)
class SpanCoverage:
    """Thinning of the counts of statistics by spans. First `note_span` and `note_count` all, then `thin` the counts."""

    estate: Estate
    window_s: float = WINDOW_S
    spans: Counter[_Key] = field(default_factory=Counter)  # number by store, queue, operation and window
    counts: Counter[_Key] = field(default_factory=Counter)  # number of messages that statistics count, likewise
    _thinned: Counter[_Key] = field(default_factory=Counter)

    def note_span(self, event: Event) -> None:
        """Count an event that was a span."""
        key = self.key(event)
        if key is not None:
            self.spans[key] += 1

    def note_count(self, event: Event) -> None:
        """Count the messages of an event from statistics."""
        key = self.key(event)
        if key is not None:
            self.counts[key] += event.get("count", 1)

    def thin(self, event: Event) -> Event | None:
        """Return an event from statistics without the messages that spans show; None if none is left.

        Messages are taken evenly from all events of a window. Other events than PUT and GET are returned unchanged.
        """
        key = self.key(event)
        if key is None:
            return event
        total = self.counts[key]
        rest = max(0, total - self.spans[key])
        before = self._thinned[key]
        self._thinned[key] = after = before + event.get("count", 1)
        left = after * rest // total - before * rest // total
        return {**event, "count": left} if left else None

    def lines(self) -> list[str]:
        """Return a text per queue and operation: the share of messages that spans show."""
        totals: dict[tuple[str, str, str], list[int]] = {}
        for source, place in ((self.spans, 0), (self.counts, 1)):
            for (store, queue, op, _), number in source.items():
                totals.setdefault((store, queue, op), [0, 0])[place] += number
        return [_sentence(key, spans, counts) for key, (spans, counts) in sorted(totals.items())]

    def key(self, event: Event) -> _Key | None:
        """Return the key of a PUT or GET of stored messages on a queue of the estate; None for another event."""
        if event["op"] not in ("PUT", "GET") or event.get("direct") or event.get("reason"):
            return None
        route = self.estate.queue_routes.get((event["qmgr"], event["queue"]))
        if route is None:
            return None
        store = self.estate.routes[route]
        return store.store, store.queue or "", event["op"], int(event["time"] // (self.window_s * 1e6))


def _sentence(key: _Share, spans: int, counts: int) -> str:
    store, queue, op = key
    share = f"{min(100.0, 100 * spans / counts):.1f} %" if counts else "unknown"
    return f"{queue} on {store}: {spans:,} spans of {op}, {counts:,} counted by statistics, coverage {share}"


# --- live -------------------------------------------------------------------------------------------------------------


class LiveCoverage:
    """Shares of the calls on each queue that spans show, and the scaling by them; begins with `known` ones."""

    def __init__(self, estate: Estate, known: dict[str, tuple[int, int]] | None = None) -> None:
        self._spans = SpanCoverage(estate)
        self._shares: dict[_Share, tuple[int, int]] = {}
        for text, pair in (known or {}).items():
            store, queue, op = text.split("\t")
            self._shares[store, queue, op] = pair
        self._owed: dict[_Share, Fraction] = {}
        self._windows: deque[int] = deque()

    @property
    def known(self) -> dict[str, tuple[int, int]]:
        """(spans, counts) behind the present share, by store, queue and operation with tabs between them."""
        return {"\t".join(key): pair for key, pair in sorted(self._shares.items())}

    def scale(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events of spans, each followed by an event with the count of the other calls that it represents."""
        for event in events:
            yield event
            key = self._spans.key(event)
            if key is None:
                continue
            self._note(key)
            extra = self._extra(key[:3])
            if extra:
                others = event.copy()
                others.pop("msgid", None)
                others["count"] = extra
                yield others

    def learn(self, counts: Iterable[Event], say: Callable[[str], None]) -> None:
        """Take the shares from statistics, which replace earlier ones.

        Only windows with data of both count, without the first window of spans and the last one, which are not whole.
        """
        statistics = SpanCoverage(self._spans.estate)
        for event in counts:
            statistics.note_count(event)
        whole = set(list(self._windows)[1:-1])
        by_key: dict[_Share, list[int]] = {}
        for store, queue, op, window in statistics.counts:
            if window in whole:
                by_key.setdefault((store, queue, op), []).append(window)
        for key, windows in sorted(by_key.items()):
            last = sorted(windows)[-WINDOWS:]
            spans = sum(self._spans.spans[*key, window] for window in last)
            counted = sum(statistics.counts[*key, window] for window in last)
            self._shares[key] = spans, counted
            say(self._scaling(key))

    def _note(self, key: tuple[str, str, str, int]) -> None:
        """Count a span, and forget the spans of windows long ago."""
        self._spans.spans[key] += 1
        window = key[3]
        if not self._windows or window > self._windows[-1]:
            self._windows.append(window)
            if len(self._windows) > MAX_WINDOWS:
                self._windows.popleft()
                recent = {old: n for old, n in self._spans.spans.items() if old[3] >= self._windows[0]}
                self._spans.spans = Counter(recent)

    def _extra(self, key: _Share) -> int:
        spans, counted = self._shares.get(key, (0, 0))
        if spans < MIN_SPANS or counted <= spans:
            return 0
        owed = self._owed.get(key, Fraction(0)) + Fraction(counted - spans, spans)
        extra = min(int(owed), MAX_COUNT)
        self._owed[key] = (owed - extra).limit_denominator(MAX_COUNT)
        return extra

    def _scaling(self, key: _Share) -> str:
        spans, counted = self._shares[key]
        text = _sentence(key, spans, counted)
        if spans < MIN_SPANS:
            return f"{text}: too few spans to scale by"
        if counted <= spans:
            return f"{text}: spans are not scaled"
        return f"{text}: a span counts as {counted / spans:.2f} from now on"
