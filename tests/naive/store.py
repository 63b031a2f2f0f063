"""Events of any store that holds messages. The cost of a message depends on the kind of store.

The rules: docs/events.md#operations, docs/storage-model.md#puts-gets-and-units-of-work.
"""

from abc import ABC, abstractmethod
from typing import Any

from tests.naive.baseline import NaiveBaseline, drift_pct
from tests.naive.clock import TICK_US, NaiveClock
from tests.naive.estimate import Compared, NaiveEstimate, removed_by_queue
from tests.naive.held import HeldGet, NaiveHeldGets
from tests.naive.sequence import NaiveSequences
from tests.naive.units import Message, NaiveUnits, Unit
from twin.base.units import as_text

MQRC_BACKED_OUT = 2003
MQRC_Q_FULL = 2053
MQRC_STORAGE_MEDIUM_FULL = 2192
MQRC_Q_SPACE_NOT_AVAILABLE = 2056  # of distributed queue managers
NEVER_MEASURED = ("bytes", "uncommitted", "in_doubt", "expired_held")  # only counted
OF_A_QUEUE = ("PUT", "GET", "COMMIT", "BACKOUT", "PREPARE", "EXPIRE", "CLEAR")

Event = dict[str, Any]


class NaiveStore(ABC):
    """The twin of a store that holds messages.

    `aliases` has the target of each alias queue. Events are valid public events of this store, with `time` in
    microseconds since 1970 UTC.
    """

    max_messages = 1 << 25  # docs/storage-model.md#what-a-twin-keeps
    max_overfull = 1 << 20
    of_baseline: tuple[str, ...] = ()  # fields of the state record that a baseline takes over
    groups: tuple[tuple[str, ...], ...] = ()  # fields of the same in different ways: the measured ones count, or all
    scan_interval_us = 0  # event time between two scans for expired messages; 0: none
    takes_in_queues = True  # a measurement may name queues that the estate lacks

    def __init__(self, aliases: dict[str, str] | None = None) -> None:
        self.aliases = aliases or {}
        self.clock = NaiveClock()
        self.sequences = NaiveSequences()
        self.units = NaiveUnits()
        self.held = NaiveHeldGets()
        self.messages: list[Any] = []  # all that hold storage, oldest first
        self.next_expiry: int | None = None  # of the available messages, while ticks pass
        self.counted: set[str] = set()  # queues of which a put had a `count` above 1
        self.baseline: NaiveBaseline | None = None
        self.measured: set[str] = set()  # fields that the baseline has from measurements, as in `flat`
        self.has_operated = False  # an operation of a queue was applied: what the store holds is counted
        self.drift_pct: float | None = None
        self.estimate = NaiveEstimate()
        self.queues: set[str] = set()  # names, as far as measured depths count
        self.calls = 0  # messages stored, and got
        self.events = 0
        self.duplicates = 0
        self.full_puts = 0
        self.queue_full_puts = 0
        self.overfull_puts = 0
        self.refused_alters = 0

    # -- for each kind of store

    @abstractmethod
    def _fits(self, event: Event) -> bool:
        """Return True if a message put now fits, after expanding the store for it if it may expand."""

    def _keeps_overfull(self) -> bool:
        """Return True if one more message that does not fit is kept."""
        return len([message for message in self.messages if message.overfull]) < self.max_overfull

    @abstractmethod
    def _keep(self, event: Event) -> Any:
        """Take storage for a message that was put, whether it fits or not, and return the message."""

    @abstractmethod
    def _free(self, message: Any) -> None:
        """Give back the storage of a message that has been removed."""

    @abstractmethod
    def _alter(self, attributes: dict[str, Any]) -> None:
        """Apply an ALTER with the attributes of the event."""

    @abstractmethod
    def _rebuild(self, attributes: dict[str, Any]) -> None:
        """Apply a REBUILD with the attributes of the event."""

    @abstractmethod
    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """Return what was measured beyond the model."""

    @abstractmethod
    def _unknown(self) -> set[str]:
        """Return the fields of the state record that follow from no measurement, beside NEVER_MEASURED."""

    @abstractmethod
    def _compared(self, measured: dict[str, Any]) -> Compared:
        """Return (model, measured, total) of each resource measured."""

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """Return the fields of the state record that only this kind has."""

    def _at_tick(self, tick: int) -> None:
        """Apply the passing of time at a tick (10 s of event time)."""

    def _rests(self) -> bool:
        """Return True if ticks alone change nothing, however many there are."""
        return self.scan_interval_us == 0 or self.next_expiry is None

    def _scanned(self, tick: int) -> None:
        """Apply the consequences of a scan for expired messages at a tick."""

    def _turned_back(self, now: int) -> None:
        """Take later times as of `now`, to which the clock has gone back."""

    def _time_has_come(self) -> None:
        """Apply what is due at the time of an event, before the event."""

    def _has_acted(self) -> None:
        """Apply the consequences of an event, after the event."""

    def _put_done(self, message: Any, unit: Unit | None) -> None:
        """Apply the put of a message that has its storage and is not available yet."""

    def _taking(self, message: Any, unit: Unit | None, operation: str) -> None:
        """Apply a "get" (or held get) or an "expire" of a message, before the message is taken."""

    def _ending(self, operations: list[tuple[str, Message]], *, committed: bool) -> None:
        """Apply the end of a unit of work with these operations, before its commit or backout."""

    def _cleared(self, removed: list[Message]) -> None:
        """Apply a CLEAR that removed these messages."""

    def _restarted(self) -> None:
        """Apply a restart of the queue manager, after its units are backed out. Shared messages stay."""

    # -- one event

    def apply(self, event: Event) -> None:
        """Apply the next event of the store: first its sequence number, then its time, then its operation.

        A duplicate is only counted. `events` counts accepted events.
        """
        if event["op"] == "PUT" and event.get("count", 1) > 1 and event.get("reason", 0) == 0:
            self.counted.add(self._queue(event))
        if self._is_duplicate(event):
            self.duplicates += 1
            return
        self._take_time(event["time"])
        self.events += 1
        self._time_has_come()
        self._act(event)
        self._has_acted()

    def _take_time(self, time: int) -> None:
        """Move the clock. Ticks that it passes or reaches come before the event."""
        before, clock = self.clock.tick(), self.clock.now
        self.clock.advance(time)
        until = self.clock.tick()
        if self.clock.turned and clock is not None:
            self.held.turn_back(clock, self._now())
            self.estimate.tick = None
            self._turned_back(self._now())
        if before is not None and until is not None and until > before:
            self.next_expiry = self._find_next_expiry()
            for tick in range(before + 1, until + 1):
                if self._rests():
                    return
                self._at_tick(tick)
                self._scan_expired(tick)

    def _scan_expired(self, tick: int) -> None:
        """Remove what has expired where a scan is due at a tick, as of the time of the scan."""
        if self.scan_interval_us == 0 or self.next_expiry is None:
            return
        scan = tick * TICK_US // self.scan_interval_us
        is_due = scan > (tick - 1) * TICK_US // self.scan_interval_us
        if is_due and scan * self.scan_interval_us >= self.next_expiry:
            for message in [message for message in self.messages if message.available]:
                if message.has_expired(scan * self.scan_interval_us):
                    self._taking(message, None, "expire")
                    self._take(message, None)
            self._scanned(tick)
            self.next_expiry = self._find_next_expiry()

    def _find_next_expiry(self) -> int | None:
        """Return the earliest time at which an available message expires, or has expired."""
        return min((m.expires for m in self.messages if m.available and m.expires is not None), default=None)

    def _act(self, event: Event) -> None:
        operation = event["op"]
        self.has_operated = self.has_operated or operation in OF_A_QUEUE
        if event.get("reason", 0) != 0:
            self._failed(event)
        elif operation == "PUT":
            self._put(event)
        elif operation == "GET":
            self._get(event)
        elif operation == "COMMIT":
            self._commit(event)
        elif operation == "BACKOUT":
            self._back_out(event)
        elif operation == "PREPARE":
            self._prepare(event)
        elif operation == "EXPIRE":
            self._expire(event)
        elif operation == "CLEAR":
            self._clear(event)
        elif operation == "RESTART":
            self._restart(event)
        elif operation == "ALTER":
            self._alter(event["attributes"])
        elif operation == "REBUILD":
            self._rebuild(event["attributes"])
        elif operation == "MEASURE":
            self._measure(event["measured"])

    def _is_duplicate(self, event: Event) -> bool:
        """Return True if the event repeats a sequence number. Only events of a queue have them, per (qmgr, queue).

        Assumed: the queue is the name in the event, so an alias queue has a numbering of its own.
        """
        if event["op"] not in OF_A_QUEUE or event.get("seq") is None:
            return False
        return self.sequences.is_duplicate(event["qmgr"], event["queue"], event["seq"])

    def _failed(self, event: Event) -> None:
        """Apply an event with a reason other than 0, which stored or removed nothing.

        A COMMIT with 2003 is a BACKOUT. A PUT with 2192 or 2056 adds its `count` to `full_puts`, one with 2053
        to `queue_full_puts`.
        """
        if event["op"] == "PUT" and event["reason"] in (
            MQRC_STORAGE_MEDIUM_FULL,
            MQRC_Q_SPACE_NOT_AVAILABLE,
        ):
            self.full_puts += event.get("count", 1)
        elif event["op"] == "PUT" and event["reason"] == MQRC_Q_FULL:
            self.queue_full_puts += event.get("count", 1)
        elif event["op"] == "COMMIT" and event["reason"] == MQRC_BACKED_OUT:
            self._back_out(event)

    def _queue(self, event: Event) -> str:
        """Return the queue itself: an alias queue holds no messages."""
        queue: str = event["queue"]
        return self.aliases.get(queue, queue)

    def _now(self) -> int:
        assert self.clock.now is not None
        return self.clock.now

    # -- puts

    def _put(self, event: Event) -> None:
        """Put `count` messages one after the other: usage grows from each to the next.

        A message put to a waiting getter (`direct`) is never stored. Storage is taken at MQPUT, before the commit. A
        put accepted by a full store is kept and counted, once per message. Beyond `max_messages` and `max_overfull` a
        put is only counted.
        """
        if event.get("direct", False):
            return
        for _ in range(event.get("count", 1)):
            unit = None
            if event.get("uow") is not None:
                unit = self.units.find_or_open(event["qmgr"], self._queue(event), event["uow"])
            if len(self.messages) >= self.max_messages:
                self.overfull_puts += 1
                continue
            fits = self._fits(event)
            if not fits:
                self.overfull_puts += 1
                if not self._keeps_overfull():
                    continue
            message = self._keep(event)
            message.overfull = not fits
            self.messages.append(message)
            self.calls += 1
            self._put_done(message, unit)
            if unit is None:
                self._make_available(message)
            else:
                unit.operations.append(("put", message))

    def _make_available(self, message: Message) -> None:
        """Make a message available, or give it to a held get that matches.

        Assumed: a get held in a unit of work that is still open takes it in that unit.
        """
        message.available, message.got = True, False
        get = self.held.pop_first_for(message, self._now())
        if get is not None:
            self._taking(message, get.unit, "get")
            self._take(message, get.unit)
            self.calls += get.unit is None

    # -- gets

    def _get(self, event: Event) -> None:
        """Get `count` messages one after the other, and hold the gets that find none."""
        queue = self._queue(event)
        unit = None
        if event.get("uow") is not None:
            unit = self.units.find_or_open(event["qmgr"], queue, event["uow"])
        for _ in range(event.get("count", 1)):
            message = self._next_message(queue, event.get("msgid"))
            if message is not None:
                self._taking(message, unit, "get")
                self._take(message, unit)
                self.calls += unit is None
            else:
                self.held.hold(HeldGet(queue, event.get("msgid"), self._now(), unit))

    def _available(self, queue: str, msgid: str | None) -> list[Message]:
        """Return the available messages of a queue and, if it is not None, a msgid, oldest first."""
        return [m for m in self.messages if m.available and m.queue == queue and msgid in (None, m.msgid)]

    def _next_message(self, queue: str, msgid: str | None) -> Message | None:
        """Return the first matching message by priority, then age, or None.

        What has expired before it is met by the get of any message, and removed. Assumed: a get by id that succeeded
        found its message, whenever that expires.
        """
        messages = self._available(queue, msgid)
        for message in sorted(messages, key=lambda message: -message.priority):  # stable: the oldest first
            if msgid is not None or not message.has_expired(self._now()):
                return message
            self._taking(message, None, "expire")
            self._take(message, None)
        return None

    def _take(self, message: Message, unit: Unit | None) -> None:
        """Remove a message outside syncpoint; under syncpoint it keeps its storage until MQCMIT."""
        message.available, message.got = False, unit is not None
        if unit is None:
            self._remove(message)
        else:
            unit.operations.append(("get", message))

    def _remove(self, message: Message) -> None:
        """Remove a message and free its storage."""
        self.messages.remove(message)
        self._free(message)

    def _expire(self, event: Event) -> None:
        """Remove messages that expired: with a msgid the next of that id, without one the oldest.

        An expiry without a message changes nothing. Assumed: an expiry is always outside syncpoint.
        """
        queue, msgid = self._queue(event), event.get("msgid")
        for _ in range(event.get("count", 1)):
            if msgid is not None:
                message = self._next_message(queue, msgid)
            else:
                message = next(iter(self._available(queue, None)), None)
            if message is not None:
                self._taking(message, None, "expire")
                self._take(message, None)

    def _clear(self, event: Event) -> None:
        """Remove all available messages of a queue; uncommitted ones stay."""
        removed = self._available(self._queue(event), None)
        for message in removed:
            self._take(message, None)
        self._cleared(removed)

    # -- units of work

    def _commit(self, event: Event) -> None:
        """Commit a unit: its puts become available, its gets are final. An unknown unit changes nothing [assumed].

        Its held gets keep waiting without the unit. Assumed: they leave it first, then the operations end in their
        order.
        """
        unit = self._unit_of(event)
        if unit is None:
            return
        self._ending(unit.operations, committed=True)
        self.units.close(unit)
        self.held.commit(unit)
        for kind, message in unit.operations:
            if kind == "put":
                self._make_available(message)
            else:
                self._remove(message)
                self.calls += 1

    def _back_out(self, event: Event) -> None:
        """Back out the unit of an event. An unknown unit changes nothing [assumed]."""
        unit = self._unit_of(event)
        if unit is not None:
            self._back_out_unit(unit)

    def _prepare(self, event: Event) -> None:
        """Put a unit in doubt, which RESTART leaves open. An unknown unit changes nothing [assumed]."""
        unit = self._unit_of(event)
        if unit is not None:
            unit.prepared = True

    def _unit_of(self, event: Event) -> Unit | None:
        if event.get("uow") is None:
            return None
        return self.units.find(event["qmgr"], self._queue(event), event["uow"])

    def _back_out_unit(self, unit: Unit) -> None:
        """Back out a unit: discard its puts, return its gets by age [assumed].

        Its held gets are dropped. Assumed: before anything else.
        """
        self._ending(unit.operations, committed=False)
        self.units.close(unit)
        self.held.back_out(unit, self._now())
        for kind, message in unit.operations:
            if kind == "put":
                self._remove(message)
            else:
                self._make_available(message)

    def _restart(self, event: Event) -> None:
        """Restart a queue manager: back out its open units that are not prepared and restart its numberings.

        Assumed: units are backed out one by one, oldest first.
        """
        for unit in self.units.of_queue_manager(event["qmgr"]):
            self._back_out_unit(unit)
        self._restarted()
        self.sequences.restart(event["qmgr"])

    # -- MEASURE

    def _measure(self, measured: dict[str, Any]) -> None:
        """Set the baseline at the first MEASURE, and `drift_pct` at each one, including the first [assumed].

        Of a store that only measurements know, a later one adds to the baseline what it measures first; what was
        measured before stays as it was. One with facts of queues alone measures nothing of the store. One that shows
        that events are a sample is taken over.
        """
        if self.takes_in_queues:
            self.queues |= {own["name"] for own in measured.get("queues", []) if own.get("depth")}
        if not measured.keys() - {"queues", "asked"}:
            return
        new_fields, held = self._new_fields(measured), self._messages_by(measured)
        before, is_taken = self._compared(measured), held is not None and self._shows_a_sample(measured, held)
        if is_taken and held is not None:
            self.estimate.note_moved(before)
            self._take_over(measured, held)
            self.measured |= new_fields
        elif self.baseline is None or (not self.has_operated and new_fields - self.measured):
            self.baseline = self._new_baseline(self._with_kept(measured))
            self.measured |= new_fields
        compared = self.estimate.unmoved(self._compared(measured))
        if is_taken and self.calls and self.estimate.is_known_sample:
            compared = [own for own in before.values() if own[2] > 0] or compared  # what is corrected
        self.drift_pct = drift_pct(compared, self.drift_pct)

    def _messages_by(self, measured: dict[str, Any]) -> float | None:
        """Return the messages by a measurement: as it says, or by the depths of all queues; None: not known."""
        if measured.get("messages") is not None:
            return float(measured["messages"])
        depths = self._depths(measured)
        return float(sum(depths.values())) if depths and depths.keys() == self.queues else None

    def _known_by(self, measured: dict[str, Any]) -> float:  # noqa: ARG002
        """Return what events and baseline have of these messages."""
        return len(self.messages) + self._beyond("messages")

    def _depths(self, measured: dict[str, Any]) -> dict[str, int]:
        """Return the measured depths of the store's queues."""
        facts = measured.get("queues", [])
        return {
            own["name"]: own["depth"] for own in facts if own.get("depth") is not None and own["name"] in self.queues
        }

    def _shows_a_sample(self, measured: dict[str, Any], held: float) -> bool:
        """Return True if a measurement of that number of messages shows that events are a sample."""
        tick = self.clock.tick()
        assert tick is not None
        gap = held - self._known_by(measured)
        is_sample = self.estimate.shows_a_sample(tick, gap, self.calls, self.has_operated)
        self.estimate.note_seen(len(self.messages), round(held))
        return is_sample

    def _take_over(self, measured: dict[str, Any], held: float) -> None:
        """Make a measurement the baseline, beyond the messages that can still be there: the oldest are removed.

        Gets of any message outside syncpoint end their wait. What was not measured stays as it was.
        """
        record = self.counted_state()
        known = len(self.messages)
        shares = [real / own for own, real in self._known_pools(measured) if own > real]
        surplus = max(known - int(known * min(shares, default=1.0)), known - int(held))
        available = {queue: self._available(queue, None) for queue in sorted({own.queue for own in self.messages})}
        if surplus > 0:
            numbers = {queue: len(messages) for queue, messages in available.items()}
            for queue, number in removed_by_queue(numbers, surplus, self._depths(measured)).items():
                for message in available[queue][:number]:
                    self._taking(message, None, "expire")
                    self._take(message, None)
                self._has_acted()
        if self.estimate.seen is not None:
            self.estimate.seen.known -= known - len(self.messages)
        self.held.end_waits()
        self.baseline = self._new_baseline(self._completed(measured, record))
        self.baseline.fields |= {"resynced_at": as_text(self._now()), "dropped_messages": known - len(self.messages)}
        self.baseline.known = self.baseline.known | {"resynced_at", "dropped_messages"}

    def _completed(self, measured: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
        """Return a measurement with what it lacks as the store had it."""
        lacking = [group for group in self.groups if all(measured.get(name) is None for name in group)]
        return {name: record[name] for group in lacking for name in group} | measured

    def _known_pools(self, measured: dict[str, Any]) -> list[tuple[int, int]]:  # noqa: ARG002
        """Return (by events alone, measured) of the pools that a measurement has."""
        return []

    def _new_fields(self, measured: dict[str, Any]) -> set[str]:
        """Return the fields of a measurement that a baseline takes over."""
        return {name for name in self.of_baseline if measured.get(name) is not None}

    def _with_kept(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Return a measurement in which the fields measured before are as the store has them."""
        record = self.counted_state()
        return measured | {name: record[name] for name in self.measured}

    def _beyond(self, name: str) -> int:
        """Return what is left of an amount of the baseline."""
        return 0 if self.baseline is None else self.baseline.left(name, self.held.unmatched())

    # -- the state record

    def state(self) -> dict[str, Any]:
        """Return the state record (docs/state.md), with null for what was neither counted nor measured."""
        record = self.counted_state()
        if self.has_operated:
            return record
        return record | dict.fromkeys(NEVER_MEASURED) | dict.fromkeys(self._unknown())

    def counted_state(self) -> dict[str, Any]:
        """Return the state record as counted, with every queue that holds messages instead of the ten deepest.

        `messages`, `bytes` and `queues` count everything that holds storage. Assumed: `messages` includes what is left
        of the baseline, where that was measured; `bytes` and `queues`, which were not measured, do not.
        """
        return {
            "time": self.clock.now,
            "messages": len(self.messages) + (self._beyond("messages") if self._are_messages_known() else 0),
            "messages_estimated": 0 if self._are_messages_known() else self._beyond("messages"),
            "bytes": sum(message.length for message in self.messages),
            "uncommitted": len([message for message in self.messages if not message.available]),
            "in_doubt": self.units.in_doubt(),
            "expired_held": len([message for message in self.messages if message.has_expired(self._now())]),
            "queues": {queue: self._depth_and_bytes(queue) for queue in {message.queue for message in self.messages}},
            "events": self.events,
            "duplicates": self.duplicates,
            "gaps": self.sequences.gaps,
            "unmatched_gets": self.held.unmatched(),
            "full_puts": self.full_puts,
            "queue_full_puts": self.queue_full_puts,
            "overfull_puts": self.overfull_puts,
            "refused_alters": self.refused_alters,
            "baseline": self.baseline.record() if self.baseline else None,
            "measured": sorted(self.measured),
            "drift_pct": self.drift_pct,
            **self._fields(),
        }

    def _are_messages_known(self) -> bool:
        """Return True if the messages of the baseline follow from what was measured, or there is no baseline."""
        return self.baseline is None or "messages" in self.baseline.known

    def _of_mean_length(self) -> int:
        """Return the number of messages held of queues of which a put had a `count` above 1."""
        return len([message for message in self.messages if message.queue in self.counted])

    def _depth_and_bytes(self, queue: str) -> tuple[int, int]:
        lengths = [message.length for message in self.messages if message.queue == queue]
        return len(lengths), sum(lengths)
