"""Capacity of a store for some traffic: the number of messages before its first 2192, found by trial.

The kernels decide, whatever rules, data sets and sizes the estate has. A large structure is tried at a smaller scale,
since pools and data sets are linear in their sizes.
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
from twin.capacity.structures import bounds
from twin.errors import UsageError
from twin.estate import MAX_PAGES, Estate, PageSet, QueueFile, Smds, Structure
from twin.stores.message_store import MessageStore
from twin.stores.open import open_message_store

Array = npt.NDArray[Any]

_MAX_TRIAL_BYTES = 1 << 30  # of a store that is tried at full size: about half a million entries
_PIECE = 1 << 14  # puts per piece
_PAGE = 4096  # bytes
_SAMPLE = 1 << 8  # puts between samples of the usage
_STEP_US = 5_000  # between demands when messages move to SCM meanwhile
_START_US = 1_700_000_000_000_000  # of all demands of a trial without SCM


@dataclass(frozen=True, slots=True)
class Capacity:
    """Capacity of a store."""

    messages: int  # puts before the first 2192
    in_dataset: bool  # True if a data set had no room


def try_capacity(
    estate: Estate, store: str, draw: Callable[[int], Array], got: float = 0.0, percent: float | None = None
) -> Capacity:
    """Put until the first 2192, or until `percent` of entries or elements are in use.

    Args:
        estate: the estate.
        store: name of the store.
        draw: returns n puts, EVENT[n] with route, length and priority.
        got: share of the messages, below 1, that are got meanwhile. Old messages in the structure free more of it than
            new offloaded ones take.
        percent: usage at which to stop; None: at the first 2192.

    Raises:
        UsageError: no message fits.
    """
    config = estate.stores[store]
    assert isinstance(config, Structure | PageSet | QueueFile)
    scale = max(1, -(-_bytes_of(config) // _MAX_TRIAL_BYTES))
    twin = _open(estate, config, scale)
    count, demand_count, usage = 0, 0, 0.0
    while True:
        demands = _as_demands(draw(_PIECE if percent is None else _SAMPLE), got)
        if isinstance(config, Structure) and config.scm_max_size is not None:
            demands["time"] = _START_US + (demand_count + np.arange(demands.size)) * _STEP_US
            demand_count += demands.size
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
        raise UsageError(f"{store} refuses the first message; expected: a store, or a data set, of a larger size")
    return Capacity(count * scale, isinstance(config, Structure) and _has_room(twin.state()))


def _open(estate: Estate, config: Structure | PageSet | QueueFile, scale: int) -> MessageStore:
    """Open the store at 1/scale of its size, a structure with 1/scale of the SCM and augmented space."""
    scaled = replace(estate, stores={**estate.stores, config.name: _scale(config, scale)})
    twin = open_message_store(scaled, config.name, forecasts=False)
    if isinstance(config, Structure):
        memory, storage = bounds(estate, config)
        params = twin.tables.store.params[0]
        params["scm_max"] = params["scm_most"] = memory // scale
        params["aug_max"] = storage // scale
    return twin


def _has_room(state: dict[str, Any]) -> bool:
    """Return True if a structure has room for an offloaded message."""
    return bool(state["ents_used"] < state["ents_max"] and state["elems_used"] + 2 <= state["elems_max"])


def _as_demands(puts: Array, got: float) -> Array:
    """Return the puts, some of them followed by a get from the same queue."""
    owner = np.repeat(np.arange(puts.size), 1 + np.diff(np.floor(np.arange(puts.size + 1) * got).astype(np.int64)))
    demands = np.zeros(owner.size, EVENT)
    for name in ("route", "length", "priority"):
        demands[name] = puts[name][owner]
    demands["time"], demands["count"], demands["seq"] = _START_US, 1, -1
    demands["op"] = np.where(np.diff(owner, prepend=-1) != 0, PUT, GET)
    return demands


def _bytes_of(config: Structure | PageSet | QueueFile) -> int:
    """Return the maximum size of a store."""
    if isinstance(config, Structure):
        return (config.init_size or config.size) + (config.scm_max_size or 0)
    if isinstance(config, QueueFile):
        return config.limit
    return _PAGE * (config.pages if config.expand == "NONE" else config.max_pages or MAX_PAGES)


def _scale(config: Structure | PageSet | QueueFile, scale: int) -> Structure | PageSet | QueueFile:
    """Return the config of a store, with its data sets and SCM, at 1/scale of its size."""
    if isinstance(config, QueueFile):
        return replace(config, max_size=config.limit // scale, file_system_size=None)
    if isinstance(config, PageSet):
        return replace(
            config,
            pages=config.pages // scale,
            secondary_pages=None if config.secondary_pages is None else config.secondary_pages // scale,
            max_pages=(config.max_pages or MAX_PAGES) // scale,
        )
    return _scale_structure(config, scale)


def _scale_structure(structure: Structure, scale: int) -> Structure:
    def part(size: int | None) -> int | None:
        return None if size is None else size // scale

    smds = {
        qmgr: Smds(size=data_set.size // scale, secondary=part(data_set.secondary), max_size=part(data_set.max_size))
        for qmgr, data_set in structure.smds.items()
    }
    return replace(
        structure,
        size=structure.size // scale,
        init_size=part(structure.init_size),
        smds=smds,
        scm_max_size=part(structure.scm_max_size),
    )
