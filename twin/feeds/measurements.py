"""Measurements that answers and records of queue managers make, by store, with the facts of its queues.

Each queue manager knows its own handles of a shared queue only: those of the members of its group are summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypedDict, cast

from twin.estate import Estate
from twin.events import Event, Measured
from twin.events.measured import MAX_ASKED, MAX_QUEUES, MEASURED_QUEUE, QueueMeasured
from twin.feeds.intake import Intake, is_passed_over
from twin.units import as_text

AHEAD_US = 60_000_000  # by which a clock may be ahead of that of the collector [assumed]
_SUMMED = ("getters", "putters", "uncommitted")  # over the members of a group
_LATEST = ("oldest_s", "last_get", "last_put")  # the largest of those of the members
_MEMBER_US = 15 * 60_000_000  # for which the handles of another member count as of its last answer [assumed]
_MAX_MEASURES = 100_000  # stores and times that wait for the end of a page or a round
_MAX_STATUSES = 500_000  # states of queues, likewise

_Key = tuple[int, str, str]  # time, queue manager, store


class QueueStatus(TypedDict, total=False):
    """State of a queue as one queue manager shows it; absent: not known. Times are microseconds since 1970."""

    depth: int
    getters: int
    putters: int
    oldest_s: int
    uncommitted: int
    last_get: int
    last_put: int
    has_facts: bool  # True if it shows more than the depth, even if that is not known


class Measurements:
    """Measurements and states of queues of one page, or of the pages of a round, by the estate of the intake."""

    def __init__(self, intake: Intake) -> None:
        # True while answers have the time of their text, for lack of their own: then two that differ are two
        # measurements, in their order
        self.is_timeless = False
        self.twice: set[str] = set()  # stores that were measured again at such a time
        self._intake = intake
        self._latest: dict[tuple[str, str], dict[str, tuple[int, QueueStatus]]] = {}  # by store and queue, and member
        self.free_bytes: dict[str, int] = {}  # free space of the file system with the queue files, by queue manager
        self._measured: dict[_Key, Measured] = {}
        self._statuses: dict[_Key, dict[str, QueueStatus]] = {}  # by queue
        self._status_count = 0

    @property
    def is_full(self) -> bool:
        """True if no more are kept."""
        return len(self._measured) >= _MAX_MEASURES or self._status_count >= _MAX_STATUSES

    @property
    def answering(self) -> set[str]:
        """Queue managers that have shown the state of a queue."""
        return {qmgr for _, qmgr, _ in self._statuses}

    def add(self, qmgr: str, time: int, store: str, measured: Measured) -> None:
        """Add fields to the measurement of a store."""
        key = (time, qmgr, store)
        while self.is_timeless and _differ(self._measured.get(key, {}), measured):
            self.twice.add(store)
            key = (key[0] + 1, qmgr, store)
        if key in self._measured or len(self._measured) < _MAX_MEASURES:
            _merge(self._measured.setdefault(key, {}), measured)

    def add_status(self, qmgr: str, time: int, queue: str, status: QueueStatus, *, is_own: bool = False) -> None:
        """Add the state of a queue, or count it as unknown. `is_own`: it is a store, its depth is measured by `add`."""
        estate = self._intake.estate
        if estate is None or (is_own and "has_facts" not in status):
            return
        route = estate.queue_routes.get((qmgr, queue))
        store: str | None
        if route is not None:
            store, queue = estate.routes[route].store, str(estate.routes[route].queue)
        elif is_own:
            return
        else:
            note_unknown_queue(self._intake, qmgr, time, queue)
            store = self._place_of(qmgr, queue)
        if store is not None and self._status_count < _MAX_STATUSES:
            self._status_count += 1
            while self.is_timeless and _differ(self._statuses.get((time, qmgr, store), {}).get(queue, {}), status):
                self.twice.add(store)
                time += 1
            self._statuses.setdefault((time, qmgr, store), {}).setdefault(queue, {}).update(status)

    def _place_of(self, qmgr: str, queue: str) -> str | None:
        """Return the store of a queue that the estate lacks, by its definition; None: there is none to take it.

        A definition that was not seen is noted in the intake, for a source that can ask for it.
        """
        estate, facts, group = self._intake.estate, self._intake.facts, self._intake.group_of(qmgr)
        if estate is None or is_passed_over(queue):
            return None
        for owner in filter(None, (group, qmgr)):
            structure = facts.value("queue", f"{owner}/{queue}", "structure")
            storage_class = facts.value("queue", f"{owner}/{queue}", "storage_class")
            page_set = facts.value("storage_class", f"{owner}/{storage_class}", "page_set")
            if structure is not None or page_set is not None:
                store = f"{owner}/{structure}" if structure is not None else f"{owner}/PS{page_set:02d}"
                return store if store in estate.stores else None
        self._intake.note_unplaced(qmgr, queue)
        return None

    def events(self, *, is_round: bool = False, is_end: bool = True) -> Iterator[Event]:
        """Yield the measurements added so far, by time, and forget them.

        The depths of queues are the messages of a store if each of its queues was shown. In a round all answers about a
        store are one measurement, of the time of the latest; otherwise those of one time are, and the handles of other
        members are as of their last answers. Before the end what is shown of queues waits until all queues of the store
        were shown.
        """
        waiting = {} if is_end else self._waiting()
        for key in waiting:
            del self._statuses[key]
        answers: dict[tuple[int, str], list[_Key]] = {}
        for key in sorted(self._measured.keys() | self._statuses.keys()):
            answers.setdefault((0 if is_round else key[0], key[2]), []).append(key)
        events = [event for keys in answers.values() for event in self._events_of(keys, is_round=is_round)]
        self._measured, self._statuses, self._status_count = {}, waiting, sum(map(len, waiting.values()))
        yield from sorted(events, key=lambda event: event["time"])

    def _waiting(self) -> dict[_Key, dict[str, QueueStatus]]:
        """Return the states of queues of the latest answers, of which the store has more queues."""
        estate, latest = self._intake.estate, max((key[0] for key in self._statuses), default=0)
        return {
            key: own
            for key, own in self._statuses.items()
            if key[0] == latest and estate is not None and not set(estate.stores[key[2]].queues) <= own.keys()
        }

    def _events_of(self, keys: list[_Key], *, is_round: bool) -> Iterator[Event]:
        """Yield the measurement that answers about one store are, and further ones of its other queues."""
        estate, store = self._intake.estate, keys[0][2]
        config = None if estate is None else estate.stores.get(store)
        measured: Measured = {}
        queues: dict[str, dict[str, QueueStatus]] = {}  # by queue and queue manager, the latest answer last
        for key in keys:
            _merge(measured, self._measured.get(key, {}))
            for queue, status in self._statuses.get(key, {}).items():
                by_qmgr = queues.setdefault(queue, {})
                by_qmgr[key[1]] = by_qmgr.pop(key[1], {}) | status
        depths = {queue: depth for queue, own in queues.items() if (depth := _depth(own)) is not None}
        is_sum = config is not None and bool(depths) and set(config.queues) <= depths.keys()
        if config is not None and is_sum:
            measured["messages"] = sum(depths.values())
        facts = {queue: own for queue, own in queues.items() if any("has_facts" in status for status in own.values())}
        if not is_round:
            facts = {queue: self._with_members(store, queue, keys[-1][0], own) for queue, own in facts.items()}
        used = [
            key
            for key in keys
            if key in self._measured or (is_sum and key in self._statuses) or facts.keys() & self._statuses[key].keys()
        ]
        if not used:
            return
        time, qmgr, _ = used[-1]
        if "file_bytes" in measured and qmgr in self.free_bytes:  # a file grows to its maximum if there is room
            room = measured["file_bytes"] + self.free_bytes[qmgr]
            measured["file_max_bytes"] = min(room, measured.get("file_max_bytes", room))
        members = () if config is None else config.queue_managers
        yield from measures_of({"time": time, "qmgr": qmgr, "op": "MEASURE", "store": store}, facts, members, measured)

    def _with_members(
        self, store: str, queue: str, time: int, statuses: dict[str, QueueStatus]
    ) -> dict[str, QueueStatus]:
        """Return the state of a queue with what other members have shown of it last, and keep it for these."""
        latest = self._latest.setdefault((store, queue), {})
        others = {
            qmgr: status
            for qmgr, (before, status) in latest.items()
            if qmgr not in statuses and 0 <= time - before <= _MEMBER_US
        }
        for qmgr, status in statuses.items():
            own = status.copy()
            own.pop("depth", None)  # that of the queue, of its latest answer
            latest[qmgr] = time, own
        return {**others, **statuses}


def measures_of(
    base: Event, facts: Mapping[str, Mapping[str, QueueStatus]], members: Iterable[str], measured: Measured
) -> Iterator[Event]:
    """Yield the measurement of a store with the facts of its queues, and further ones of more than `MAX_QUEUES`."""
    ordered = sorted(facts)
    for start in range(0, max(1, len(ordered)), MAX_QUEUES):
        names = ordered[start : start + MAX_QUEUES]
        asked = {name for queue in names for name, own in facts[queue].items() if {"getters", "putters"} & own.keys()}
        if names:
            measured["queues"] = [_queue_measured(queue, facts[queue], members) for queue in names]
        if asked:
            measured["asked"] = sorted(asked)[:MAX_ASKED]
        yield {**base, "measured": measured}
        measured = {}


def note_unknown_queue(intake: Intake, qmgr: str, time: int, queue: str) -> None:
    """Count a queue that the estate lacks; a shared one once, for the first member. Without estate none is unknown."""
    group = intake.group_of(qmgr)
    if intake.estate is None:
        return
    if group is not None and intake.facts.value("queue", f"{group}/{queue}", "structure"):
        qmgr = min(members_of(intake.estate, group), default=qmgr)
    intake.note_unknown(qmgr, time, queue=queue)


def members_of(estate: Estate, group: str) -> list[str]:
    """Return the queue managers of a queue-sharing group in an estate, sorted."""
    return [name for name, config in estate.queue_managers.items() if config.queue_sharing_group == group]


def _merge(into: Measured, measured: Measured) -> None:
    datasets = {**into.get("smds", {}), **measured.get("smds", {})}
    into.update(measured)
    if datasets:
        into["smds"] = datasets


def _differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True if a field of both has two values; those of `smds` are by queue manager."""
    common = before.keys() & after.keys()
    return any(
        _differ(before[name], after[name]) if isinstance(after[name], Mapping) else before[name] != after[name]
        for name in common
    )


def _depth(statuses: Mapping[str, QueueStatus]) -> int | None:
    """Return the depth of a queue in the latest answer that shows it: it is the same in all members of a group."""
    return next((status["depth"] for status in reversed([*statuses.values()]) if "depth" in status), None)


def _queue_measured(queue: str, statuses: Mapping[str, QueueStatus], members: Iterable[str]) -> QueueMeasured:
    """Return the facts of a queue over all that have answered; with a member missing, a sum of 0 is not known."""
    facts: dict[str, Any] = {"name": queue}
    depth = _depth(statuses)
    if depth is not None:
        facts["depth"] = depth
    for name in _SUMMED:
        values = _values(name, statuses)
        total = sum(values)
        is_known = bool(values) and all(name in statuses.get(member, {}) for member in members)
        if (total or is_known) and total <= MEASURED_QUEUE[name]:
            facts[name] = total
    for name in _LATEST:
        values = _values(name, statuses)
        if values:
            facts[name] = max(values) if name in MEASURED_QUEUE else as_text(max(values))
    return cast("QueueMeasured", facts)


def _values(name: str, statuses: Mapping[str, QueueStatus]) -> list[int]:
    return [cast("Mapping[str, int]", status)[name] for status in statuses.values() if name in status]
