"""Spans beside statistics: the calls that interval counts show beyond the spans of the same queue and time.

Not every message carries trace context, and applications sample [IBM: MQ 9.4.3, Trace context]; statistics count every
put and get. Of files (`SpanCoverage`), the counts of a window of time are thinned by the number of spans in it: the
rest are the messages that no span shows. Sums are then those of the statistics, where these counted at least as many.
Live (`LiveCoverage`), statistics arrive some minutes after the spans of the same time, so the share of the last whole
windows is applied to the present spans of each queue's puts and gets: one stands for 1 / share calls, the span itself
and an event with a count for the others. The assumption that the share stays the same is printed; the drift against
measurements shows where it fails.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from twin.estate import Estate
from twin.events import Event

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
