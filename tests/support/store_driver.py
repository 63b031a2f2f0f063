"""Base of the drivers: a store driven by public events in short form, for cases worked by hand."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from tests.support.workloads import SECOND_US, START_US

NO_RULES = {"offld1_sz": 65_536, "offld2_sz": 65_536, "offld3_sz": 65_536}
KIB, MIB, GIB = 1024, 1024**2, 1024**3

State = dict[str, Any]


class StoreDriver(ABC):
    """A store with a method per operation, each of which returns the state record after it.

    Each event comes a second after the previous one.
    """

    name: str  # of the store
    time: int = START_US  # of the last event

    @abstractmethod
    def apply(self, event: dict[str, Any]) -> None:
        """Apply an event."""

    @abstractmethod
    def state(self) -> State:
        """Return the state record."""

    @abstractmethod
    def lengths_in_scm(self) -> list[int]:
        """Return the lengths of the messages in SCM, oldest first."""

    def send(self, op: str, queue: str | None = "A.QUEUE", qmgr: str = "QM01", **fields: Any) -> State:
        """Apply an event made of its fields; return the state after it."""
        self.time = fields.pop("time", self.time + SECOND_US)
        event = {"time": self.time, "qmgr": qmgr, "op": op, **fields}
        if queue is not None:
            event["queue"] = queue
        else:
            event.setdefault("store", self.name)  # a RESTART without it concerns every store of the queue manager
        self.apply(event)
        return self.state()

    def put(self, length: int = 100, **fields: Any) -> State:
        """Put a message to A.QUEUE; return the state. length: bytes."""
        return self.send("PUT", length=length, **fields)

    def get(self, **fields: Any) -> State:
        """Get the next message of A.QUEUE; return the state."""
        return self.send("GET", **fields)

    def get_all(self) -> list[int]:
        """Get all messages of A.QUEUE; return their lengths in the order of the gets."""
        lengths = []
        while (before := self.state())["messages"]:
            lengths.append(before["bytes"] - self.get()["bytes"])
        return lengths

    def alter(self, **attributes: Any) -> State:
        """Alter the store; return the state."""
        return self.send("ALTER", None, attributes=attributes)

    def rebuild(self, **attributes: Any) -> State:
        """Rebuild the store; return the state."""
        return self.send("REBUILD", None, attributes=attributes)

    def measure(self, **measured: Any) -> State:
        """Measure the store; return the state."""
        return self.send("MEASURE", None, measured=measured)

    def wait(self, seconds: float) -> State:
        """Let seconds pass, with a HEARTBEAT at the end."""
        return self.send("HEARTBEAT", None, time=self.time + int(seconds * SECOND_US))


Open = Callable[..., StoreDriver]  # what opens a store, with its attributes as keyword arguments
