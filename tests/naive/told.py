"""An oracle to which events are told in a few words, for cases worked by hand."""

from typing import Any

from tests.naive.estates import structure
from tests.naive.structure import NaiveStructure
from tests.workloads import SECOND_US, START_US

NO_RULES = {"offld1_sz": 65_536, "offld2_sz": 65_536, "offld3_sz": 65_536}


class Twin(NaiveStructure):
    """An oracle to which events are given in a few words; each comes a second after the one before."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(structure(**fields), {"ALIAS.QUEUE": "A.QUEUE"})
        self.time = START_US

    def did(self, op: str, queue: str | None = "A.QUEUE", qmgr: str = "QM01", **fields: Any) -> dict[str, Any]:
        self.time = fields.pop("time", self.time + SECOND_US)
        self.apply({"time": self.time, "qmgr": qmgr, "op": op, "queue": queue, **fields})
        return self.state()

    def put(self, length: int = 100, **fields: Any) -> dict[str, Any]:
        return self.did("PUT", length=length, **fields)

    def get(self, **fields: Any) -> dict[str, Any]:
        return self.did("GET", **fields)

    def alter(self, **attributes: Any) -> dict[str, Any]:
        return self.did("ALTER", None, store="QSG1/APP1", attributes=attributes)

    def rebuild(self, **attributes: Any) -> dict[str, Any]:
        return self.did("REBUILD", None, store="QSG1/APP1", attributes=attributes)

    def measure(self, **measured: Any) -> dict[str, Any]:
        return self.did("MEASURE", None, store="QSG1/APP1", measured=measured)

    def lengths(self) -> list[int]:
        return [message.length for message in self.messages]
