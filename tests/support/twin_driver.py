"""A twin driven by public events in short form, for cases worked by hand."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernels import EVENT, FLAG_HAS_MSGID, OPS
from tests.kernels.beside import Config, Decoding
from tests.naive.estates import structure
from tests.naive.private_estates import page_set, queue_file
from tests.support.workloads import SECOND_US, START_US
from twin.alerts.episodes import Alert

NO_RULES = {"offld1_sz": 65_536, "offld2_sz": 65_536, "offld3_sz": 65_536}
KIB, MIB, GIB = 1024, 1024**2, 1024**3


class TwinDriver:
    """The twin of a structure with a method per operation, and all its alerts.

    Each event comes a second after the previous one.
    """

    def __init__(self, **fields: Any) -> None:
        self.open(structure(**fields))

    def open(self, config: Config) -> None:
        """Open the twin of a store, without events."""
        self.decoding = Decoding(config)
        self.twin = self.decoding.twin()
        self.alerts: list[Alert] = []
        self.pages: dict[int, bytes] = {}
        self.time = START_US

    def send(self, op: str, queue: str | None = "A.QUEUE", qmgr: str = "QM01", **fields: Any) -> dict[str, Any]:
        """Apply an event; return the state after it."""
        self.time = fields.pop("time", self.time + SECOND_US)
        event = {"time": self.time, "qmgr": qmgr, "op": op, **fields}
        if queue is not None:
            event["queue"] = queue
        elif op == "RESTART":
            event["store"] = self.decoding.name  # else it concerns every store of the queue manager
        block, accepted = self.decoding.block([event])
        assert accepted, f"a dead letter: {event}"
        self.alerts += self.twin.apply(block)
        return self.state()

    def state(self) -> dict[str, Any]:
        return self.twin.state()

    def put(self, length: int = 100, **fields: Any) -> dict[str, Any]:
        return self.send("PUT", length=length, **fields)

    def get(self, **fields: Any) -> dict[str, Any]:
        return self.send("GET", **fields)

    def alter(self, **attributes: Any) -> dict[str, Any]:
        return self.send("ALTER", None, store=self.decoding.name, attributes=attributes)

    def rebuild(self, **attributes: Any) -> dict[str, Any]:
        return self.send("REBUILD", None, store=self.decoding.name, attributes=attributes)

    def measure(self, **measured: Any) -> dict[str, Any]:
        return self.send("MEASURE", None, store=self.decoding.name, measured=measured)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Let seconds pass, with a HEARTBEAT at the end."""
        return self.send("HEARTBEAT", None, time=self.time + int(seconds * SECOND_US), store=self.decoding.name)

    def alert_changes(self) -> list[tuple[str, str, str]]:
        """Return (change, condition, resource) of the alerts so far."""
        return [(alert.change, alert.condition, alert.resource) for alert in self.alerts]

    def reopen(self, arrays: Any = None) -> "TwinDriver":
        """Open the twin again from its header and the pages it has written, as after a restart."""
        self.pages |= dict(self.twin.dirty_pages())
        self.twin = self.decoding.twin(arrays, self.twin.header(), self.pages.items())
        return self


class PageSetDriver(TwinDriver):
    """A page set of 100 pages, 98 of them for messages, which by default does not expand."""

    def __init__(self, **fields: Any) -> None:
        self.open(page_set(**{"expand": "NONE", **fields}))


class QueueFileDriver(TwinDriver):
    """A queue file with buffers of 8 (nonpersistent) and 16 blocks (persistent) by default."""

    def __init__(self, **fields: Any) -> None:
        self.open(queue_file(**{"default_q_buffer_size": 8 * 512, "default_pq_buffer_size": 16 * 512, **fields}))


def demands(route: int, lengths: Iterable[int], op: str = "PUT", keys: Iterable[int] | None = None) -> np.ndarray:
    """Return EVENT[n]: puts or gets at the same time, with `keys` as message ids or without ids."""
    sizes = np.fromiter(lengths, np.int32)
    events = np.zeros(sizes.size, EVENT)
    events["time"], events["seq"], events["count"] = START_US, -1, 1
    events["route"], events["length"], events["op"] = route, sizes, OPS.index(op)
    if keys is not None:
        events["msgid"], events["flags"] = np.fromiter(keys, np.uint64), FLAG_HAS_MSGID
    return events
