"""What every store that holds messages does with its events; what a message costs is the kind's."""

from abc import ABC, abstractmethod
from typing import Any

from tests.naive.baseline import NaiveBaseline, drift_pct
from tests.naive.clock import NaiveClock
from tests.naive.held import HeldGet, NaiveHeldGets
from tests.naive.sequence import NaiveSequences
from tests.naive.units import Message, NaiveUnits, Unit

MQRC_BACKED_OUT = 2003
MQRC_STORAGE_MEDIUM_FULL = 2192
OF_A_QUEUE = ("PUT", "GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR")

Event = dict[str, Any]


class NaiveStore(ABC):
    """The twin of one store that holds messages.

    `aliases` says which queue each alias queue leads to. Events are the public ones of contract.md, 2, valid and of
    this store, `time` in microseconds since 1970 UTC.
    """

    most_messages = 1 << 25  # that a twin keeps; and of those, that did not fit
    most_overfull = 1 << 20

    def __init__(self, aliases: dict[str, str] | None = None) -> None:
        self.aliases = aliases or {}
        self.clock = NaiveClock()
        self.sequences = NaiveSequences()
        self.units = NaiveUnits()
        self.held = NaiveHeldGets()
        self.messages: list[Any] = []  # all that hold storage, in the order of their puts, which is their age
        self.baseline: NaiveBaseline | None = None
        self.drift_pct: float | None = None
        self.events = 0
        self.duplicates = 0
        self.full_puts = 0
        self.overfull_puts = 0
        self.refused_alters = 0

    # -- what a kind adds

    @abstractmethod
    def _fits(self, event: Event) -> bool:
        """Return whether a message put now fits, the store being expanded for it where it may."""

    @abstractmethod
    def _keep(self, event: Event) -> Any:
        """Take storage for a message that was put, whether it fits or not."""

    @abstractmethod
    def _free(self, message: Any) -> None:
        """Give back what a message held, which is no longer among the messages."""

    @abstractmethod
    def _alter(self, attributes: dict[str, Any]) -> None:
        """ALTER, with the attributes as the event gives them."""

    @abstractmethod
    def _rebuild(self, attributes: dict[str, Any]) -> None:
        """REBUILD, with the attributes as the event gives them."""

    @abstractmethod
    def _new_baseline(self, measured: dict[str, Any]) -> NaiveBaseline:
        """What was measured beyond the model."""

    @abstractmethod
    def _compared(self, measured: dict[str, Any]) -> list[tuple[int, int, int]]:
        """(model, measured, total) of each resource measured."""

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """The fields of the state record that only this kind has."""

    def _ticks(self, before: int, until: int) -> None:
        """Do what time alone does, at the ticks (10 s of event time each) from the one after `before` to `until`."""

    def _turned_back(self, now: int) -> None:
        """The clock has gone back to `now`: what a kind keeps of a later time is taken as of now."""

    def _time_has_come(self) -> None:
        """Do what is due at an event's time, before it acts."""

    def _has_acted(self) -> None:
        """Do what an event brings about, after it acted."""

    def _put_done(self, message: Any, unit: Unit | None) -> None:
        """A message was put and has its storage, but is not available yet."""

    def _taking(self, message: Any, unit: Unit | None, operation: str) -> None:
        """A message is about to be taken by a "get" or an "expire"; a held get too."""

    def _ending(self, operations: list[tuple[str, Message]]) -> None:
        """A unit of work that has done this is about to be committed or backed out."""

    def _cleared(self, removed: list[Message]) -> None:
        """A CLEAR removed these."""

    def _restarted(self) -> None:
        """The queue manager was started again; its units are backed out. Shared messages stay (contract.md, 7)."""

    # -- one event

    def apply(self, event: Event) -> None:
        """Take the next event of the store: first its sequence number, then its time, then what it did.

        A duplicate only counts as one. `events` counts the accepted ones (contract.md, 7, State).
        """
        if self._is_duplicate(event):
            self.duplicates += 1
            return
        self._take_time(event["time"])
        self.events += 1
        self._time_has_come()
        self._act(event)
        self._has_acted()

    def _take_time(self, time: int) -> None:
        """Move the clock; ticks it passes or reaches come before the event. None before the first event."""
        before, clock = self.clock.tick(), self.clock.now
        self.clock.advance(time)
        until = self.clock.tick()
        if self.clock.turned and clock is not None:
            self.held.turn_back(clock, self._now())
            self._turned_back(self._now())
        if before is not None and until is not None and until > before:
            self._ticks(before, until)

    def _act(self, event: Event) -> None:
        operation = event["op"]
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
        """Only the events of a queue have sequence numbers: `seq` counts those of one (qmgr, queue) (contract.md, 2).

        Our reading: by the name the event gives, so an alias queue has a numbering of its own.
        """
        if event["op"] not in OF_A_QUEUE or event.get("seq") is None:
            return False
        return self.sequences.is_duplicate(event["qmgr"], event["queue"], event["seq"])

    def _failed(self, event: Event) -> None:
        """A reason other than 0 stored or removed nothing (contract.md, 7, Events).

        But a COMMIT with 2003 is a BACKOUT, and 2192 on a PUT counts in `full_puts`, as often as its `count` says.
        """
        if event["op"] == "PUT" and event["reason"] == MQRC_STORAGE_MEDIUM_FULL:
            self.full_puts += event.get("count", 1)
        elif event["op"] == "COMMIT" and event["reason"] == MQRC_BACKED_OUT:
            self._back_out(event)

    def _queue(self, event: Event) -> str:
        """The queue itself: an alias queue holds no messages."""
        queue: str = event["queue"]
        return self.aliases.get(queue, queue)

    def _now(self) -> int:
        assert self.clock.now is not None
        return self.clock.now

    # -- puts

    def _put(self, event: Event) -> None:
        """`count` messages one after the other (contract.md, 2): usage grows from each to the next.

        A message put to a waiting getter was never stored (contract.md, 2, `direct`).
        Storage is taken at MQPUT, before the commit (domain.md, 6). A put accepted in a full store is a fact: kept and
        counted (contract.md, 7, State), once a message, whatever is short. Our reading: so many messages, and so many
        that did not fit, are kept; beyond that a put only counts.
        """
        if event.get("direct", False):
            return
        for _ in range(event.get("count", 1)):
            unit = None
            if event.get("uow") is not None:
                unit = self.units.find_or_open(event["qmgr"], self._queue(event), event["uow"])
            if len(self.messages) >= self.most_messages:
                self.overfull_puts += 1
                continue
            fits = self._fits(event)
            if not fits:
                self.overfull_puts += 1
                if len([message for message in self.messages if message.overfull]) >= self.most_overfull:
                    continue
            message = self._keep(event)
            message.overfull = not fits
            self.messages.append(message)
            self._put_done(message, unit)
            if unit is None:
                self._becomes_available(message)
            else:
                unit.operations.append(("put", message))

    def _becomes_available(self, message: Message) -> None:
        """A message is there: a get held aside takes it at once (contract.md, 7, Events).

        Our reading: a get held inside a unit of work still open takes it inside that unit.
        """
        message.available, message.got = True, False
        get = self.held.pop_first_for(message, self._now())
        if get is not None:
            self._taking(message, get.unit, "get")
            self._take(message, get.unit)

    # -- gets

    def _get(self, event: Event) -> None:
        """`count` messages one after the other; what is not there is held aside (contract.md, 7, Events)."""
        queue = self._queue(event)
        unit = None
        if event.get("uow") is not None:
            unit = self.units.find_or_open(event["qmgr"], queue, event["uow"])
        for _ in range(event.get("count", 1)):
            message = self._next_message(queue, event.get("msgid"))
            if message is not None:
                self._taking(message, unit, "get")
                self._take(message, unit)
            else:
                self.held.hold(HeldGet(queue, event.get("msgid"), self._now(), unit))

    def _available(self, queue: str, msgid: str | None) -> list[Message]:
        """The available messages of a queue, those of a msgid if one is given, oldest first."""
        return [m for m in self.messages if m.available and m.queue == queue and msgid in (None, m.msgid)]

    def _next_message(self, queue: str, msgid: str | None) -> Message | None:
        """The first that matches, by priority, then age (domain.md, 6; contract.md, 2, `msgid`)."""
        messages = self._available(queue, msgid)
        highest = max([message.priority for message in messages], default=0)
        for message in messages:
            if message.priority == highest:
                return message
        return None

    def _take(self, message: Message, unit: Unit | None) -> None:
        """Outside syncpoint the message goes; under syncpoint it holds its storage until MQCMIT (domain.md, 6)."""
        message.available, message.got = False, unit is not None
        if unit is None:
            self._remove(message)
        else:
            unit.operations.append(("get", message))

    def _remove(self, message: Message) -> None:
        """The message goes, and frees what it held."""
        self.messages.remove(message)
        self._free(message)

    def _expire(self, event: Event) -> None:
        """Messages that expired went: with a msgid the next of that id, without the oldest (contract.md, 2).

        One that is not there changes nothing (contract.md, 7, Events). Our reading: it is always outside syncpoint.
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
        """CLEAR spares uncommitted messages (contract.md, 7, Events)."""
        removed = self._available(self._queue(event), None)
        for message in removed:
            self._take(message, None)
        self._cleared(removed)

    # -- units of work

    def _commit(self, event: Event) -> None:
        """Puts become available, gets are final. A unit that is not known changes nothing (our reading).

        Gets held aside wait on without the unit (contract.md, 7, Events); our reading: they are freed of it first, then
        the operations are ended in their order.
        """
        unit = self._unit_of(event)
        if unit is None:
            return
        self._ending(unit.operations)
        self.units.close(unit)
        self.held.commit(unit)
        for kind, message in unit.operations:
            if kind == "put":
                self._becomes_available(message)
            else:
                self._remove(message)

    def _back_out(self, event: Event) -> None:
        """As ``_back_out_unit``; a unit that is not known changes nothing (our reading)."""
        unit = self._unit_of(event)
        if unit is not None:
            self._back_out_unit(unit)

    def _unit_of(self, event: Event) -> Unit | None:
        if event.get("uow") is None:
            return None
        return self.units.find(event["qmgr"], self._queue(event), event["uow"])

    def _back_out_unit(self, unit: Unit) -> None:
        """Backout of a put frees, backout of a get puts the message back (domain.md, 6), at its age (our reading).

        Gets held aside in it are dropped (contract.md, 7, Events); our reading: before anything else.
        """
        self._ending(unit.operations)
        self.units.close(unit)
        self.held.back_out(unit, self._now())
        for kind, message in unit.operations:
            if kind == "put":
                self._remove(message)
            else:
                self._becomes_available(message)

    def _restart(self, event: Event) -> None:
        """Open units of that queue manager are backed out (contract.md, 7, Events).

        Its numberings begin anew. Our reading: unit by unit, in the order they were opened.
        """
        for unit in self.units.of_queue_manager(event["qmgr"]):
            self._back_out_unit(unit)
        self._restarted()
        self.sequences.restart(event["qmgr"])

    # -- MEASURE

    def _measure(self, measured: dict[str, Any]) -> None:
        """The first sets the baseline (contract.md, 7, Events). Our reading: each sets `drift_pct`, the first too."""
        if self.baseline is None:
            self.baseline = self._new_baseline(measured)
        self.drift_pct = drift_pct(self._compared(measured), self.drift_pct)

    def _beyond(self, name: str) -> int:
        """What is left of an amount that a MEASURE found beyond the model."""
        return 0 if self.baseline is None else self.baseline.left(name, self.held.unmatched())

    # -- the state record

    def state(self) -> dict[str, Any]:
        """The state record of contract.md, 3; every queue that holds messages, not only the ten deepest.

        `messages`, `bytes`, `queues` count whatever holds storage (contract.md, 7, State). Our reading: `messages` has
        what is left of the baseline, `bytes` and `queues` have not: nobody measured those.
        """
        return {
            "time": self.clock.now,
            "messages": len(self.messages) + self._beyond("messages"),
            "bytes": sum(message.length for message in self.messages),
            "uncommitted": len([message for message in self.messages if not message.available]),
            "queues": {queue: self._depth_and_bytes(queue) for queue in {message.queue for message in self.messages}},
            "events": self.events,
            "duplicates": self.duplicates,
            "gaps": self.sequences.gaps,
            "unmatched_gets": self.held.unmatched(),
            "full_puts": self.full_puts,
            "overfull_puts": self.overfull_puts,
            "refused_alters": self.refused_alters,
            "baseline": self.baseline.record() if self.baseline else None,
            "drift_pct": self.drift_pct,
            **self._fields(),
        }

    def _depth_and_bytes(self, queue: str) -> tuple[int, int]:
        lengths = [message.length for message in self.messages if message.queue == queue]
        return len(lengths), sum(lengths)
