"""How many messages of some traffic a structure takes before its first 2192: tried, not computed.

Whatever rules, data sets and sizes the estate has, the kernels decide. A large structure is tried at a smaller scale:
pools and data sets are linear in their sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import EVENT
from kernels.event_loop import MQRC_STORAGE_MEDIUM_FULL
from kernels.layout import GET, PUT
from twin.errors import UsageError
from twin.estate import Estate, Smds, Structure
from twin.store import open_message_store

Array = npt.NDArray[Any]

_LARGEST_TRIAL = 1 << 30  # bytes of a structure that is tried at full size: about half a million entries
_PIECE = 1 << 14
_LOOK = 1 << 8  # puts from one look at the usage to the next, where it matters
_NOW = 1_700_000_000_000_000  # microseconds; every put of a trial comes at the same time


@dataclass(frozen=True, slots=True)
class Capacity:
    """messages: puts before the first 2192; in_dataset: whether it was a data set that had no room."""

    messages: int
    in_dataset: bool


def try_capacity(
    estate: Estate, store: str, draw: Callable[[int], Array], got: float = 0.0, percent: float | None = None
) -> Capacity:
    """Put until the first 2192, or until `percent` of entries or elements are used, where that comes first.

    draw(n): EVENT[n], puts with route, length and priority; the rest is not looked at.

    got: share of the messages, below 1, that are got meanwhile. It makes room in a way of its own: the old messages
    that go take more of the structure than the offloaded ones that come. UsageError where not one message fits.
    """
    structure = estate.stores[store]
    assert isinstance(structure, Structure)
    scale = max(1, -(-(structure.init_size or structure.size) // _LARGEST_TRIAL))
    twin = open_message_store(replace(estate, stores={**estate.stores, store: _scaled(structure, scale)}), store)
    count, usage = 0, 0.0
    while True:
        demands = _as_demands(draw(_PIECE if percent is None else _LOOK), got)
        twin.demand(demands)
        puts = demands[demands["op"] == PUT]
        refused = np.flatnonzero(puts["reason"] == MQRC_STORAGE_MEDIUM_FULL)
        if refused.size:
            count += int(refused[0])
            break
        before, usage = usage, float(twin.state()["usage_pct"])
        if percent is not None and usage >= percent:
            count += round(puts.size * (percent - before) / (usage - before))
            break
        count += puts.size
    if not count:
        raise UsageError(f"{store} refuses the first message; right: a structure, or a data set, of a larger size")
    state = twin.state()
    room = state["ents_used"] < state["ents_max"] and state["elems_used"] + 2 <= state["elems_max"]
    return Capacity(count * scale, room)


def _as_demands(puts: Array, got: float) -> Array:
    """The puts, and after some of them a get from the same queue."""
    owner = np.repeat(np.arange(puts.size), 1 + np.diff(np.floor(np.arange(puts.size + 1) * got).astype(np.int64)))
    demands = np.zeros(owner.size, EVENT)
    for name in ("route", "length", "priority"):
        demands[name] = puts[name][owner]
    demands["time"], demands["count"], demands["seq"] = _NOW, 1, -1
    demands["op"] = np.where(np.diff(owner, prepend=-1) != 0, PUT, GET)
    return demands


def _scaled(structure: Structure, scale: int) -> Structure:
    """The structure with its data sets, 1/scale of their sizes."""

    def part(size: int | None) -> int | None:
        return None if size is None else size // scale

    smds = {
        qmgr: Smds(size=one.size // scale, secondary=part(one.secondary), max_size=part(one.max_size))
        for qmgr, one in structure.smds.items()
    }
    return replace(structure, size=structure.size // scale, init_size=part(structure.init_size), smds=smds)
