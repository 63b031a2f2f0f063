"""The event loop with each storage mechanism, at ever more messages held: what the mechanism itself costs."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernels import EVENT, FLAG_HAS_MSGID, FLAG_PERSISTENT, layout
from tests.tools.bench.rig import Say
from twin.estate import Estate, load_estate
from twin.events import EventBlock
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store
from twin.stores.warm_up import warm

LEVELS = (10_000, 1_000_000, 10_000_000)
_BLOCK = 20_000  # events of a block: puts and gets in turn
_FILL = 500_000  # events of a block while the store is filled
_START = 1_795_176_000_000_000
_IN_TURN = np.tile(np.array([layout.PUT, layout.GET], np.uint8), _BLOCK // 2)

_GROUP = '[queue_sharing_group.QSG1]\nqueue_managers = ["QM01"]\n[queue."QSG1/Q"]\nstructure = "APP1"\n'
_SMDS = '[smds."QSG1/APP1/QM01"]\nsize = "16T"\n'
_PRIVATE = '[storage_class."QM01/ALL"]\npage_set = 1\n[queue."QM01/Q"]\nstorage_class = "ALL"\n'
_FILE = '[queue_manager.QM01]\nplatform = "distributed"\n[queue_file."QM01/Q"]\nmax_size = "2T"\n'


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A store that uses it. bytes_each: bytes of SIZE per message held, if it matters; length: bytes of a message."""

    name: str
    store: str
    described: str
    length: int = 2048
    persistent: bool = False
    bytes_each: int = 0

    def estate(self, folder: Path, held: int) -> Estate:
        """Return its estate, for `held` messages."""
        path = folder / "mechanism.toml"
        size = max(1 << 24, held * self.bytes_each) if self.bytes_each else "1T"
        described = self.described.replace("SIZE", f'"{size}"' if isinstance(size, str) else str(size))
        path.write_text(f"schema = 1\n{described}", encoding="utf-8")
        return load_estate(path)


def _structure(attributes: str = "") -> str:
    return f'[structure."QSG1/APP1"]\nsize = SIZE\n{attributes}{_GROUP}{_SMDS}'


def _page_set(version: str) -> str:
    pages = '[page_set."QM01/1"]\npages = 16777216\nexpand = "NONE"\n'
    return f'[queue_manager.QM01]\nplatform = "zos"\nversion = "{version}"\n{pages}{_PRIVATE}'


# A message of 2 KB takes 10 elements: at 3,255 bytes of SIZE each it would have a structure of its own in full.
MECHANISMS = (
    Mechanism("structure", "QSG1/APP1", _structure()),
    Mechanism("structure, data in SMDS", "QSG1/APP1", _structure("offld1_th = 0\noffld1_sz = 0\n")),
    Mechanism("structure, SCM at hand", "QSG1/APP1", _structure('scm_max_size = "16T"\n')),
    Mechanism("structure, SCM in use", "QSG1/APP1", _structure('scm_max_size = "16T"\n'), bytes_each=3_500),
    Mechanism("page set", "QM01/PS01", _page_set("9.4")),
    Mechanism("page set, packed", "QM01/PS01", _page_set("7.0.0"), length=500),
    Mechanism("queue file, nonpersistent", "QM01/Q", _FILE),
    Mechanism("queue file, persistent", "QM01/Q", _FILE, persistent=True),
)


def measure(folder: Path, say: Say, *, quick: bool) -> dict[str, dict[int, float]]:
    """Million events a CPU second by mechanism and messages held: the median of single blocks."""
    warm()
    rates_by_level: dict[str, dict[int, float]] = {}
    for mechanism in MECHANISMS:
        rates_by_level[mechanism.name] = {}
        for held in LEVELS[: 2 if quick else 3]:
            say(f"{mechanism.name} at {held:,} messages held")
            rates_by_level[mechanism.name][held] = _rate(mechanism, folder, held, 10 if quick else 30)
    return rates_by_level


class Calls:
    """Puts, and gets of the oldest message by its id, a microsecond apart."""

    def __init__(self, mechanism: Mechanism, estate: Estate) -> None:
        self._mechanism = mechanism
        self._route = estate.route_of_queue("QM01", "Q")
        self._puts = self._gets = 0
        self._now = _START

    def puts(self, count: int) -> EventBlock:
        """A block of puts."""
        return self._block(np.full(count, layout.PUT, np.uint8))

    def in_turn(self) -> EventBlock:
        """A block of puts and gets in turn."""
        return self._block(_IN_TURN)

    def _block(self, ops: npt.NDArray[np.uint8]) -> EventBlock:
        """Return a block of these calls, in their order."""
        events = np.zeros(ops.size, EVENT)
        is_put = ops == layout.PUT
        events["op"], events["route"], events["count"], events["seq"] = ops, self._route, 1, -1
        events["time"] = self._now + np.arange(ops.size)
        events["length"] = self._mechanism.length
        events["priority"] = 4
        events["flags"] = FLAG_HAS_MSGID | (FLAG_PERSISTENT if self._mechanism.persistent else 0)
        puts, gets = int(is_put.sum()), int((~is_put).sum())
        events["msgid"][is_put] = np.arange(self._puts, self._puts + puts)
        events["msgid"][~is_put] = np.arange(self._gets, self._gets + gets)
        self._puts, self._gets, self._now = self._puts + puts, self._gets + gets, self._now + ops.size
        return EventBlock(self._mechanism.store, events, {})


def _rate(mechanism: Mechanism, folder: Path, held: int, repeats: int) -> float:
    """Return million events a CPU second with `held` messages, the median of that number of blocks."""
    estate = mechanism.estate(folder, held)
    twin = open_message_store(estate, mechanism.store)
    calls = Calls(mechanism, estate)
    for start in range(0, held, _FILL):
        twin.apply(calls.puts(min(_FILL, held - start)))
    rates = [_applied(twin, calls.in_turn()) for _ in range(repeats + 1)]
    return statistics.median(rates[1:])


def _applied(twin: MessageStore, block: EventBlock) -> float:
    began = time.process_time()
    twin.apply(block)
    return len(block) / (time.process_time() - began) / 1e6
