"""A CF structure with its shared message data sets: what each event does, and what the state record says."""

from typing import Any

from tests.naive import attributes as attrs
from tests.naive.baseline import NaiveBaseline, drift_pct
from tests.naive.clock import NaiveClock
from tests.naive.held import HeldGet, NaiveHeldGets
from tests.naive.pools import (
    Pools,
    cost_of_put,
    fits_pools,
    fits_structure,
    offload_rule,
    pools_of_size,
    ratio_at_allocation,
    usage_pct,
)
from tests.naive.sequence import NaiveSequences
from tests.naive.smds import new_data_set, pages_of_length
from tests.naive.units import Message, NaiveUnits, Unit
from twin.estate.model import Structure

MQRC_BACKED_OUT = 2003
MQRC_STORAGE_MEDIUM_FULL = 2192
OF_A_QUEUE = ("PUT", "GET", "COMMIT", "BACKOUT", "EXPIRE", "CLEAR")

Event = dict[str, Any]


class NaiveStructure:
    """The twin of one CF structure.

    `aliases` says which queue each alias queue leads to. Events
    are the public ones of contract.md, 2, valid and of this store, `time` in microseconds since 1970 UTC.
    """

    def __init__(self, config: Structure, aliases: dict[str, str] | None = None) -> None:
        self.aliases = aliases or {}
        self.attributes = attrs.attributes_of(config)
        self.clock = NaiveClock()
        self.sequences = NaiveSequences()
        self.units = NaiveUnits()
        self.held = NaiveHeldGets()
        self.messages: list[Message] = []  # all that hold storage, in the order of their puts, which is their age
        self.baseline: NaiveBaseline | None = None
        self.drift_pct: float | None = None
        self.events = 0
        self.duplicates = 0
        self.full_puts = 0
        self.overfull_puts = 0
        self.refused_alters = 0
        self._allocate()
        ds_block = self.attributes["ds_block"]
        self.data_sets = {qmgr: new_data_set(smds, ds_block) for qmgr, smds in sorted(config.smds.items())}

    def _allocate(self) -> None:
        """Pools of INITSIZE, else SIZE, at the ratio the rules ask for now (contract.md, 7, Estate)."""
        init_size = self.attributes["init_size"]
        self.size: int = self.attributes["size"] if init_size is None else init_size
        self.ratio = ratio_at_allocation(self.attributes)
        self.pools = pools_of_size(self.size, self.ratio, self.attributes)

    # -- one event

    def apply(self, event: Event) -> None:
        """Take the next event of the store: first its sequence number, then its time, then what it did.

        A duplicate only counts as one. `events` counts the accepted ones (contract.md, 7, State).
        """
        if self._is_duplicate(event):
            self.duplicates += 1
            return
        self.clock.advance(event["time"])
        self.events += 1
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
            self._alter(attrs.read_attributes(event["attributes"]))
        elif operation == "REBUILD":
            self._rebuild(attrs.read_attributes(event["attributes"]))
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

    # -- puts

    def _put(self, event: Event) -> None:
        """`count` messages one after the other (contract.md, 2): usage grows from each to the next.

        A message put to a waiting getter was never stored (contract.md, 2, `direct`).
        """
        if event.get("direct", False):
            return
        for _ in range(event.get("count", 1)):
            message = self._store(event)
            if event.get("uow") is None:
                self._becomes_available(message)
            else:
                unit = self.units.find_or_open(event["qmgr"], self._queue(event), event["uow"])
                unit.operations.append(("put", message))

    def _store(self, event: Event) -> Message:
        """Storage is taken at MQPUT, before the commit (domain.md, 6).

        A put accepted in a full store is a fact: kept and counted (contract.md, 7, State), once a message, whether
        entries, elements or the data set are short.
        """
        length = event["length"]
        used = self._used()
        cost = cost_of_put(length, self.attributes, used, self.pools)
        fits = fits_pools(cost, used, self.pools) and fits_structure(length, cost)
        where: list[tuple[int, int]] = []
        if cost.data == "SMDS":
            fits_data_set, where = self._place(event["qmgr"], length)
            fits = fits and fits_data_set
        if not fits:
            self.overfull_puts += 1
        message = Message(
            queue=self._queue(event),
            msgid=event.get("msgid"),
            length=length,
            priority=event.get("priority", 0),
            qmgr=event["qmgr"],
            elements=cost.elements,
            data=cost.data,
            where=where,
        )
        self.messages.append(message)
        return message

    def _place(self, qmgr: str, length: int) -> tuple[bool, list[tuple[int, int]]]:
        """Into the putting queue manager's own data set (domain.md, 2): whether it fits, and where it lies."""
        data_set = self.data_sets[qmgr]
        pages = pages_of_length(length, self.attributes["smds_prefix"])
        beyond_the_model = self._left_of_data_set(qmgr, "blocks")
        fits = data_set.make_room(pages, self.attributes["ds_expand"], beyond_the_model)
        return fits, data_set.place(pages)

    def _becomes_available(self, message: Message) -> None:
        """A message is there: a get held aside takes it at once (contract.md, 7, Events).

        Our reading: a get held inside a unit of work still open takes it inside that unit.
        """
        message.available = True
        assert self.clock.now is not None
        get = self.held.pop_first_for(message, self.clock.now)
        if get is not None:
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
                self._take(message, unit)
            else:
                assert self.clock.now is not None
                self.held.hold(HeldGet(queue, event.get("msgid"), self.clock.now, unit))

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
        message.available = False
        if unit is None:
            self._remove(message)
        else:
            unit.operations.append(("get", message))

    def _remove(self, message: Message) -> None:
        """Free what the message held."""
        self.messages.remove(message)
        self.data_sets[message.qmgr].release(message.where)

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
                self._take(message, None)

    def _clear(self, event: Event) -> None:
        """CLEAR spares uncommitted messages (contract.md, 7, Events)."""
        for message in self._available(self._queue(event), None):
            self._take(message, None)

    # -- units of work

    def _commit(self, event: Event) -> None:
        """Puts become available, gets are final. A unit that is not known changes nothing (our reading).

        Gets held aside wait on without the unit (contract.md, 7, Events); our reading: they are freed of it first, then
        the operations are ended in their order.
        """
        unit = self._unit_of(event)
        if unit is None:
            return
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
        self.units.close(unit)
        assert self.clock.now is not None
        self.held.back_out(unit, self.clock.now)
        for kind, message in unit.operations:
            if kind == "put":
                self._remove(message)
            else:
                self._becomes_available(message)

    def _restart(self, event: Event) -> None:
        """Open units of that queue manager are backed out; shared messages stay (contract.md, 7, Events).

        Its numberings begin anew. Our reading: unit by unit, in the order they were opened.
        """
        for unit in self.units.of_queue_manager(event["qmgr"]):
            self._back_out_unit(unit)
        self.sequences.restart(event["qmgr"])

    # -- attributes

    def _alter(self, new: dict[str, Any]) -> None:
        """ALTER CFSTRUCT and SETXCF START,ALTER: whole, or refused whole and counted (our reading).

        contract.md, 7 (Estate): `size` takes effect at once at the present ratio, between the used and SIZE; beyond
        that it is refused and counted. The ratio does not follow the rules.
        """
        if any(name in attrs.ONLY_AT_REBUILD for name in new) or self._refuses_block_size(new):
            self.refused_alters += 1
            return
        if "size" in new:
            used, pools = self._used(), pools_of_size(new["size"], self.ratio, self.attributes)
            too_small = pools.entries < max(1, used.entries) or pools.elements < used.elements
            if too_small or new["size"] > self.attributes["size"]:
                self.refused_alters += 1
                return
            self.size, self.pools = new["size"], pools
        self._take_up({name: value for name, value in new.items() if name != "size"})

    def _rebuild(self, new: dict[str, Any]) -> None:
        """New policy values, SIZE and INITSIZE included, and pools allocated anew (contract.md, 7, Estate).

        Our reading: never too small for what it holds (that is a fact), but refused where INITSIZE would be above SIZE.
        """
        policy = self.attributes | new
        unsound = policy["init_size"] is not None and policy["init_size"] > policy["size"]
        if unsound or self._refuses_block_size(new):
            self.refused_alters += 1
            return
        self._take_up(new)
        self._allocate()

    def _refuses_block_size(self, new: dict[str, Any]) -> bool:
        """DSBLOCK can change only while every data set is empty (our reading; a baseline is not seen)."""
        if new.get("ds_block", self.attributes["ds_block"]) == self.attributes["ds_block"]:
            return False
        return any(data_set.pages_used() > 0 for data_set in self.data_sets.values())

    def _take_up(self, new: dict[str, Any]) -> None:
        """Attributes count from this event on; messages already stored keep their cost (contract.md, 7, State)."""
        self.attributes.update({name: value for name, value in new.items() if name in attrs.KEPT})
        for data_set in self.data_sets.values():
            if data_set.ds_block != self.attributes["ds_block"]:
                data_set.set_block_size(self.attributes["ds_block"])
            if new.get("ds_expand", False):
                data_set.try_again()

    # -- what is in use

    def _measure(self, measured: dict[str, Any]) -> None:
        """The first sets the baseline (contract.md, 7, Events). Our reading: each sets `drift_pct`, the first too."""
        if self.baseline is None:
            self.baseline = NaiveBaseline(measured, self.state(), self.held.unmatched())
        self.drift_pct = drift_pct(measured, self.state(), self.drift_pct)

    def _left(self, amount: int) -> int:
        """What is left of an amount of the baseline."""
        return 0 if self.baseline is None else self.baseline.left(amount, self.held.unmatched())

    def _left_of_data_set(self, qmgr: str, what: str) -> int:
        """What is left of the blocks, pages or messages that a MEASURE found in a data set beyond the model."""
        if self.baseline is None or qmgr not in self.baseline.smds:
            return 0
        return self._left(self.baseline.smds[qmgr][what])

    def _used(self) -> Pools:
        """Entries and elements in use: of the messages, and what is left of the baseline (our reading)."""
        entries = len(self.messages)
        elements = sum(message.elements for message in self.messages)
        if self.baseline is not None:
            entries += self._left(self.baseline.entries)
            elements += self._left(self.baseline.elements)
        return Pools(entries, elements)

    # -- the state record

    def state(self) -> dict[str, Any]:
        """The state record of contract.md, 3; every queue that holds messages, not only the ten deepest.

        `messages`, `bytes`, `queues` count whatever holds storage (contract.md, 7, State). Our reading: `messages` has
        what is left of the baseline, `bytes`, `queues` and `offloaded_messages` have not: nobody measured those.
        """
        used = self._used()
        offloaded = [message for message in self.messages if message.data != ""]
        return {
            "time": self.clock.now,
            "messages": len(self.messages) + (self._left(self.baseline.messages) if self.baseline else 0),
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
            "size": self.size,
            "ents_max": self.pools.entries,
            "ents_used": used.entries,
            "elems_max": self.pools.elements,
            "elems_used": used.elements,
            "usage_pct": usage_pct(used, self.pools),
            "alterable": True,  # contract.md, 7 (State): false only while data is in SCM, which is not modelled here
            "offloaded_messages": len(offloaded),
            "offloaded_bytes": sum(message.length for message in offloaded),
            "offload_rule": offload_rule(self.attributes, used, self.pools),
            "smds": {qmgr: self._data_set_state(qmgr) for qmgr in self.data_sets},
            "baseline": self.baseline.record() if self.baseline else None,
            "drift_pct": self.drift_pct,
        }

    def _depth_and_bytes(self, queue: str) -> tuple[int, int]:
        lengths = [message.length for message in self.messages if message.queue == queue]
        return len(lengths), sum(lengths)

    def _data_set_state(self, qmgr: str) -> dict[str, Any]:
        data_set = self.data_sets[qmgr]
        messages = [message for message in self.messages if message.qmgr == qmgr and message.data == "SMDS"]
        return {
            "blocks_total": data_set.blocks_total(),
            "blocks_used": data_set.blocks_used() + self._left_of_data_set(qmgr, "blocks"),
            "pages_used": data_set.pages_used() + self._left_of_data_set(qmgr, "pages"),
            "messages": len(messages) + self._left_of_data_set(qmgr, "messages"),
            "status": data_set.status,
        }
