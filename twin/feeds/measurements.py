"""Measurements of stores, and depths of queues, collected until the end of a page: one MEASURE a store and time."""

from __future__ import annotations

from collections.abc import Iterator

from twin.events import Event, Measured
from twin.feeds.intake import Intake

_MAX_MEASURES = 100_000  # stores and times that wait for the end of a page

_Key = tuple[int, str, str]  # time, queue manager, store


class Measurements:
    """Measurements and depths of one page.

    Args:
        intake: intake of the feed; its estate assigns queues to stores.
    """

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._measured: dict[_Key, Measured] = {}
        self._depths: dict[_Key, dict[str, int]] = {}  # by queue

    def add(self, qmgr: str, time: int, store: str, measured: Measured) -> None:
        """Add fields to the measurement of a store.

        Args:
            qmgr: queue manager that answered.
            time: time of the answer, microseconds since 1970.
            store: its name.
            measured: fields; those of data sets are added to others of the store.
        """
        key = (time, qmgr, store)
        if key not in self._measured and len(self._measured) >= _MAX_MEASURES:
            return
        merged = self._measured.setdefault(key, {})
        datasets = {**merged.get("smds", {}), **measured.get("smds", {})}
        merged.update(measured)
        if datasets:
            merged["smds"] = datasets

    def add_depth(self, qmgr: str, time: int, queue: str, depth: int) -> None:
        """Add the depth of a queue; one that the estate lacks is counted as unknown. Arguments as of `add`."""
        estate = self._intake.estate
        route = None if estate is None else estate.queue_routes.get((qmgr, queue))
        if estate is not None and route is not None:
            store = estate.routes[route].store
            self._depths.setdefault((time, qmgr, store), {})[str(estate.routes[route].queue)] = depth
        self._intake.check_queue(qmgr, queue, time)

    def events(self) -> Iterator[Event]:
        """Yield the measurements added so far, by time, and forget them.

        The depths of queues are the messages of a store if each of its queues was shown.
        """
        for (time, qmgr, store), depths in self._depths.items():
            estate = self._intake.estate
            config = None if estate is None else estate.stores.get(store)
            if config is not None and set(config.queues) <= depths.keys():
                self.add(qmgr, time, store, {"messages": sum(depths[queue] for queue in config.queues)})
        for (time, qmgr, store), measured in sorted(self._measured.items(), key=lambda entry: entry[0]):
            yield {"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store, "measured": measured}
        self._measured, self._depths = {}, {}
