"""Heartbeats for stores of which an interval was read, and that had no event in it.

Counts of an interval say of each queue that they name that nothing else happened to it. Without an event its store
would stand still, and with it what the store shares with others. A heartbeat at the end of the interval says so: for a
store whose counts were read, never for one of which the data say nothing.

Sources: docs/feeds.md, "Idle stores"; docs/events.md, "Time".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from twin.estate import Estate, RoutingError

MAX_STORES = 100_000  # stores by queue manager that are kept
_SAME_US = 10_000_000  # intervals that end within a tick of each other are one: some collectors read queue by queue


@dataclass(slots=True)
class _Interval:
    """The present interval of a queue manager.

    Attributes:
        end: of the interval that is read now, microseconds since 1970.
        known: stores of which counts have been read, in this interval or earlier.
        active: those of them with an event in this interval.
    """

    end: int
    known: dict[str, None] = field(default_factory=dict)  # a set in the order of reading
    active: set[str] = field(default_factory=set)


class IdleStores:
    """The stores of which counts were read, by queue manager.

    Args:
        estate: assigns queues to stores; None: there are no stores, and no heartbeats.
    """

    def __init__(self, estate: Estate | None) -> None:
        self._estate = estate
        self._intervals: dict[str, _Interval] = {}
        self._due: list[dict[str, Any]] = []
        self._stores = 0

    def note_read(self, qmgr: str, queue: str, end: int, *, has_events: bool) -> None:
        """Report that the counts of a queue in an interval were read.

        All counts of a queue manager that end together are an interval. It is complete when those of a later one come.

        Args:
            qmgr: queue manager.
            queue: its queue; one that the estate lacks is ignored.
            end: of the interval, microseconds since 1970.
            has_events: True if there is an event of the queue in the interval.
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

    def heartbeats(self, *, is_end: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the heartbeats that are due since the last call.

        Args:
            is_end: True at the end of the input: the intervals that were read last are complete too.
        """
        if is_end:
            for qmgr, interval in self._intervals.items():
                self._close(qmgr, interval)
            self._intervals.clear()
        due, self._due = self._due, []
        yield from due
