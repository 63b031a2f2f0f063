"""How many messages of some traffic a store takes before its first 2192: tried, not computed.

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
from twin.allocation import bounds
from twin.errors import UsageError
from twin.estate import MAX_PAGES, Estate, PageSet, QueueFile, Smds, Structure
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store

Array = npt.NDArray[Any]

_LARGEST_TRIAL = 1 << 30  # bytes of a structure that is tried at full size: about half a million entries
_PIECE = 1 << 14
_PAGE = 4096  # bytes
_LOOK = 1 << 8  # puts from one look at the usage to the next, where it matters
_MOVES_IN = 5_000  # microseconds from one demand to the next, where messages move to SCM meanwhile
_NOW = 1_700_000_000_000_000  # microseconds; every demand of a trial comes at the same time, but for SCM


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
    config = estate.stores[store]
    assert isinstance(config, Structure | PageSet | QueueFile)
    scale = max(1, -(-_bytes_of(config) // _LARGEST_TRIAL))
    twin = _opened(estate, config, scale)
    count, asked, usage = 0, 0, 0.0
    while True:
        demands = _as_demands(draw(_PIECE if percent is None else _LOOK), got)
        if isinstance(config, Structure) and config.scm_max_size is not None:
            demands["time"] = _NOW + (asked + np.arange(demands.size)) * _MOVES_IN
            asked += demands.size
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
        raise UsageError(f"{store} refuses the first message; right: a store, or a data set, of a larger size")
    return Capacity(count * scale, isinstance(config, Structure) and _has_room(twin.state()))


def _opened(estate: Estate, config: Structure | PageSet | QueueFile, scale: int) -> MessageStore:
    """The store, 1/scale of its size; a structure beside a coupling facility that has 1/scale as much for it."""
    scaled = replace(estate, stores={**estate.stores, config.name: _scaled(config, scale)})
    twin = open_message_store(scaled, config.name, forecasts=False)
    if isinstance(config, Structure):
        memory, storage = bounds(estate, config)
        params = twin.tables.store.params[0]
        params["scm_max"], params["aug_max"] = memory // scale, storage // scale
    return twin


def _has_room(state: dict[str, Any]) -> bool:
    """Whether a structure could take an offloaded message."""
    return bool(state["ents_used"] < state["ents_max"] and state["elems_used"] + 2 <= state["elems_max"])


def _as_demands(puts: Array, got: float) -> Array:
    """The puts, and after some of them a get from the same queue."""
    owner = np.repeat(np.arange(puts.size), 1 + np.diff(np.floor(np.arange(puts.size + 1) * got).astype(np.int64)))
    demands = np.zeros(owner.size, EVENT)
    for name in ("route", "length", "priority"):
        demands[name] = puts[name][owner]
    demands["time"], demands["count"], demands["seq"] = _NOW, 1, -1
    demands["op"] = np.where(np.diff(owner, prepend=-1) != 0, PUT, GET)
    return demands


def _bytes_of(config: Structure | PageSet | QueueFile) -> int:
    """How much it may take."""
    if isinstance(config, Structure):
        return (config.init_size or config.size) + (config.scm_max_size or 0)
    if isinstance(config, QueueFile):
        return config.limit
    return _PAGE * (config.pages if config.expand == "NONE" else config.max_pages or MAX_PAGES)


def _scaled(config: Structure | PageSet | QueueFile, scale: int) -> Structure | PageSet | QueueFile:
    """The store, a structure with its data sets and SCM, 1/scale of its size."""
    if isinstance(config, QueueFile):
        return replace(config, max_size=config.limit // scale, file_system_size=None)
    if isinstance(config, PageSet):
        return replace(
            config,
            pages=config.pages // scale,
            secondary_pages=None if config.secondary_pages is None else config.secondary_pages // scale,
            max_pages=(config.max_pages or MAX_PAGES) // scale,
        )
    return _scaled_structure(config, scale)


def _scaled_structure(structure: Structure, scale: int) -> Structure:
    def part(size: int | None) -> int | None:
        return None if size is None else size // scale

    smds = {
        qmgr: Smds(size=one.size // scale, secondary=part(one.secondary), max_size=part(one.max_size))
        for qmgr, one in structure.smds.items()
    }
    return replace(
        structure,
        size=structure.size // scale,
        init_size=part(structure.init_size),
        smds=smds,
        scm_max_size=part(structure.scm_max_size),
    )
