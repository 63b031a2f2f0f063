"""Messages, and units of work whose puts and gets are not committed yet."""

from dataclasses import dataclass, field
from math import ceil
from typing import Any


@dataclass(eq=False)
class Message:
    """A message that holds storage, to which each kind of store adds fields.

    A message keeps the cost it was stored at.
    """

    queue: str  # resolved
    msgid: str | None
    length: int
    priority: int
    persistent: bool
    qmgr: str  # that put it
    available: bool = False  # neither its put nor its get is uncommitted
    got: bool = False  # its get is uncommitted
    overfull: bool = False  # it did not fit when it was put
    expires: int | None = None  # time, microseconds

    def has_expired(self, now: int) -> bool:
        return self.expires is not None and self.expires <= now


def fields_of(event: dict[str, Any], queue: str) -> dict[str, Any]:
    """Return the fields of a message from the event that put it. `queue` is resolved."""
    return {
        "queue": queue,
        "msgid": event.get("msgid"),
        "length": event["length"],
        "priority": event.get("priority", 0),
        "persistent": event.get("persistent", False),
        "qmgr": event["qmgr"],
        "expires": expiry_time(event),
    }


def expiry_time(event: dict[str, Any]) -> int | None:
    """Return the time at which a message expires; MQ counts tenths of a second, begun ones included [assumed]."""
    if event.get("expiry") is None:
        return None
    return int(event["time"]) + ceil(round(event["expiry"] * 10, 6)) * 100_000


@dataclass(eq=False)
class Unit:
    """The operations of an open (queue manager, queue, unit of work), in order."""

    qmgr: str
    queue: str
    uow: str
    operations: list[tuple[str, Message]] = field(default_factory=list)  # ("put" | "get", message)
    prepared: bool = False  # in doubt

    def drop_nonpersistent(self) -> None:
        """Forget the operations that are not in the log, at a restart of the queue manager."""
        self.operations = [(kind, message) for kind, message in self.operations if message.persistent]


class NaiveUnits:
    """The open units of work of a store, in the order they were opened."""

    def __init__(self) -> None:
        self.open_units: list[Unit] = []

    def find(self, qmgr: str, queue: str, uow: str) -> Unit | None:
        """Return the open unit of that name. A unit of work that touched three queues is three units here."""
        for unit in self.open_units:
            if unit.qmgr == qmgr and unit.queue == queue and unit.uow == uow:
                return unit
        return None

    def find_or_open(self, qmgr: str, queue: str, uow: str) -> Unit:
        """Return the open unit of that name, after opening it at its first operation.

        Assumed: a held get is an operation; a put or get that failed, and a put to a waiting getter, are not.
        """
        unit = self.find(qmgr, queue, uow)
        if unit is None:
            unit = Unit(qmgr, queue, uow)
            self.open_units.append(unit)
        return unit

    def of_queue_manager(self, qmgr: str) -> list[Unit]:
        """Return the open units of a queue manager that are not prepared, oldest first."""
        return [unit for unit in self.open_units if unit.qmgr == qmgr and not unit.prepared]

    def in_doubt(self) -> int:
        """Return the messages of prepared units."""
        return sum(len(unit.operations) for unit in self.open_units if unit.prepared)

    def close(self, unit: Unit) -> None:
        """Remove a unit that has ended."""
        self.open_units.remove(unit)
