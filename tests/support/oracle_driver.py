"""Oracles driven by events in short form, for cases worked by hand."""

from typing import Any

from tests.naive.estates import structure
from tests.naive.page_set import NaivePageSet
from tests.naive.queue_file import NaiveQueueFile
from tests.naive.scm_estates import with_scm
from tests.naive.store import NaiveStore
from tests.naive.structure import Facility, NaiveStructure
from tests.support.workloads import SECOND_US, START_US

NO_RULES = {"offld1_sz": 65_536, "offld2_sz": 65_536, "offld3_sz": 65_536}


class OracleStoreDriver(NaiveStore):
    """An oracle with a method per operation. Each event comes a second after the previous one."""

    name: str
    time = START_US

    def send(self, op: str, queue: str | None = "A.QUEUE", qmgr: str = "QM01", **fields: Any) -> dict[str, Any]:
        self.time = fields.pop("time", self.time + SECOND_US)
        self.apply({"time": self.time, "qmgr": qmgr, "op": op, "queue": queue, **fields})
        return self.state()

    def put(self, length: int = 100, **fields: Any) -> dict[str, Any]:
        return self.send("PUT", length=length, **fields)

    def get(self, **fields: Any) -> dict[str, Any]:
        return self.send("GET", **fields)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Let seconds pass, with a HEARTBEAT at the end."""
        return self.send("HEARTBEAT", None, time=self.time + int(seconds * SECOND_US), store=self.name)

    def alter(self, **attributes: Any) -> dict[str, Any]:
        return self.send("ALTER", None, store=self.name, attributes=attributes)

    def rebuild(self, **attributes: Any) -> dict[str, Any]:
        return self.send("REBUILD", None, store=self.name, attributes=attributes)

    def measure(self, **measured: Any) -> dict[str, Any]:
        return self.send("MEASURE", None, store=self.name, measured=measured)

    def lengths(self) -> list[int]:
        return [message.length for message in self.messages]


class OracleDriver(OracleStoreDriver, NaiveStructure):
    """A structure, tiny by default."""

    name = "QSG1/APP1"

    def __init__(self, **fields: Any) -> None:
        super().__init__(structure(**fields), {"ALIAS.QUEUE": "A.QUEUE"})


class OracleScmDriver(OracleStoreDriver, NaiveStructure):
    """A structure with SCM, by default of 38 entries and 232 elements.

    A message of 1 KB takes 6 elements. It is moved as a block of 4 KB, in 8.192 microseconds, or in 3.90625 ms at the
    slowest rate.
    """

    name = "QSG1/APP1"

    def __init__(self, **fields: Any) -> None:
        config = with_scm(**fields)
        super().__init__(config, None, Facility(config.facility_size, config.facility_scm or 0))

    def in_scm(self) -> list[int]:
        """Return the lengths of the messages in SCM, oldest first."""
        return [message.length for message in self.messages if message.in_scm]


class OraclePageSetDriver(OracleStoreDriver, NaivePageSet):
    """A page set of 100 pages, 98 of them usable, that by default does not expand."""

    name = "QM01/PS04"

    def __init__(self, **fields: Any) -> None:
        super().__init__({"pages": 100, "expand": "NONE", **fields})


class OracleQueueFileDriver(OracleStoreDriver, NaiveQueueFile):
    """A queue file with buffers of 8 (nonpersistent) and 16 blocks (persistent) by default."""

    name = "QM01/A.QUEUE"

    def __init__(self, **fields: Any) -> None:
        super().__init__({"default_q_buffer_size": 8 * 512, "default_pq_buffer_size": 16 * 512, **fields})
