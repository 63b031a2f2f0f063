"""Spans beside statistics: what interval counts know beyond the spans of the same queue and time.

The share of messages that spans show is unknown in advance: not every message carries trace context, and applications
sample [IBM: MQ 9.4.3, Trace context]. Statistics count every put and get. Where both exist for a queue, the counts of a
window of time are thinned by the number of spans in it: the rest are the messages that no span shows. Sums are then
those of the statistics, wherever at least as many were counted as spans seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from twin.estate import Estate
from twin.feeds.intake import Event

WINDOW_S = 900.0  # seconds; a window holds whole intervals of most statistics

_Key = tuple[str, str, str, int]  # store, queue, PUT or GET, window


@dataclass(slots=True)
class SpanCoverage:
    """Thinning of the counts of statistics by spans. First `note_span` and `note_count` all, then `thin` the counts.

    Attributes:
        spans: number by store, queue, operation and window.
        counts: number of messages that statistics count, likewise.
    """

    estate: Estate
    window_s: float = WINDOW_S
    spans: Counter[_Key] = field(default_factory=Counter)
    counts: Counter[_Key] = field(default_factory=Counter)
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
        return [
            f"{queue} on {store}: {spans:,} spans of {op}, {counts:,} counted by statistics, "
            + (f"coverage {min(100.0, 100 * spans / counts):.1f} %" if counts else "coverage unknown")
            for (store, queue, op), (spans, counts) in sorted(totals.items())
        ]

    def key(self, event: Event) -> _Key | None:
        """Return the key of a PUT or GET of stored messages on a queue of the estate; None for another event."""
        if event["op"] not in ("PUT", "GET") or event.get("direct") or event.get("reason"):
            return None
        route = self.estate.queue_routes.get((event["qmgr"], event["queue"]))
        if route is None:
            return None
        store = self.estate.routes[route]
        return store.store, store.queue or "", event["op"], int(event["time"] // (self.window_s * 1e6))
