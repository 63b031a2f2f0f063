"""Sampled spans scaled while they come, by the share that earlier statistics say they cover.

Statistics exist some minutes after the spans of the same time. So the share of the last whole windows is taken for what
comes now: a span then stands for 1 / share calls, the span itself and an event with a count for the others. Puts and
gets of a queue have shares of their own. That the share stays what it was is an assumption: it is said, and the drift
against measurements shows where it fails.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

from twin.estate import Estate
from twin.feeds.coverage import SpanCoverage
from twin.feeds.intake import Event

WINDOWS = 4  # whole windows whose sums give the share: an hour
MIN_SPANS = 10  # in them; with fewer the share is not known
MAX_WINDOWS = 96  # that are remembered: a day
MAX_COUNT = 1_000_000  # of an event

_Key = tuple[str, str, str]  # store, queue, PUT or GET


class LiveCoverage:
    """Shares of the calls on each queue that spans show, and the scaling by them.

    Args:
        estate: the estate.
        known: (spans, counts) by store, queue and operation, as `known` was when an earlier process ended.
    """

    def __init__(self, estate: Estate, known: dict[str, tuple[int, int]] | None = None) -> None:
        self._spans = SpanCoverage(estate)
        self._shares: dict[_Key, tuple[int, int]] = {}
        for text, pair in (known or {}).items():
            store, queue, op = text.split("\t")
            self._shares[store, queue, op] = pair
        self._owed: dict[_Key, Fraction] = {}
        self._windows: deque[int] = deque()

    @property
    def known(self) -> dict[str, tuple[int, int]]:
        """(spans, counts) behind the present share, by store, queue and operation with tabs between them."""
        return {"\t".join(key): pair for key, pair in sorted(self._shares.items())}

    def scale(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events of spans, each followed by an event with the count of what else it stands for."""
        for event in events:
            yield event
            key = self._spans.key(event)
            if key is None:
                continue
            self._note(key)
            extra = self._extra(key[:3])
            if extra:
                yield {name: value for name, value in event.items() if name != "msgid"} | {"count": extra}

    def learn(self, counts: Iterable[Event], say: Callable[[str], None]) -> None:
        """Take the shares from statistics, which replace earlier ones.

        Only windows count in which both speak, without the first window of spans and the last one, which are not whole.

        Args:
            counts: events of statistics.
            say: called with a sentence for each queue and operation whose share is known.
        """
        statistics = SpanCoverage(self._spans.estate)
        for event in counts:
            statistics.note_count(event)
        whole = set(list(self._windows)[1:-1])
        by_key: dict[_Key, list[int]] = {}
        for store, queue, op, window in statistics.counts:
            if window in whole:
                by_key.setdefault((store, queue, op), []).append(window)
        for key, windows in sorted(by_key.items()):
            last = sorted(windows)[-WINDOWS:]
            spans = sum(self._spans.spans[*key, window] for window in last)
            counted = sum(statistics.counts[*key, window] for window in last)
            self._shares[key] = spans, counted
            say(self._sentence(key))

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

    def _extra(self, key: _Key) -> int:
        spans, counted = self._shares.get(key, (0, 0))
        if spans < MIN_SPANS or counted <= spans:
            return 0
        owed = self._owed.get(key, Fraction(0)) + Fraction(counted - spans, spans)
        extra = min(int(owed), MAX_COUNT)
        self._owed[key] = (owed - extra).limit_denominator(MAX_COUNT)
        return extra

    def _sentence(self, key: _Key) -> str:
        spans, counted = self._shares[key]
        store, queue, op = key
        text = f"{queue} on {store}: {spans:,} spans of {op}, {counted:,} counted by statistics, "
        text += f"coverage {min(100.0, 100 * spans / counted):.1f} %"
        if spans < MIN_SPANS:
            return f"{text}: too few spans to scale by"
        if counted <= spans:
            return f"{text}: spans are not scaled"
        return f"{text}: a span counts as {counted / spans:.2f} from now on"
