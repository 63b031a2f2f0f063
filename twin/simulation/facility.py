"""Shared resources of a coupling facility in a simulation: its storage class memory can run out.

The twin of a structure knows its own bounds (`twin.capacity.structures.bounds`). If several share a facility, each may
use what it has and its part of the rest, which is divided again at every tick. Together they never use more than
exists, and the result does not depend on the pieces of demands. SCMMAXSIZE may be over-committed, and storage for
augmented space belongs to the coupling facility: docs/storage-model.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.clock import TICK
from twin.capacity.structures import allocate
from twin.estate import CouplingFacility, Estate, Structure
from twin.estate.model import FIXED_AUGMENTED
from twin.stores.message_store import MessageStore
from twin.stores.structure import StructureTwin

Array = npt.NDArray[Any]


class Facilities:
    """Coupling facilities whose SCM several structures of an estate share. False if there are none."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._sharing: dict[str, list[str]] = {}
        self._tick = -1
        for facility in estate.stores.values():
            if isinstance(facility, CouplingFacility) and facility.size is not None:
                names = [name for name in facility.structures if _scm_of(estate, name)]
                if len(names) > 1:
                    self._sharing[facility.name] = names

    def __bool__(self) -> bool:
        return bool(self._sharing)

    def share_out(self, time: int, twins: Mapping[str, MessageStore]) -> None:
        """Divide the rest, once per tick. time: microseconds; twins: opened so far, by store."""
        if time // TICK == self._tick:
            return
        self._tick = time // TICK
        for name, structures in self._sharing.items():
            facility = self._estate.stores[name]
            assert isinstance(facility, CouplingFacility)
            self._share(facility, [twin for store in structures if isinstance(twin := twins.get(store), StructureTwin)])

    def _share(self, facility: CouplingFacility, twins: list[StructureTwin]) -> None:
        """Set the SCM and augmented space that each structure may use."""
        if not twins:
            return
        memory = max(0, (facility.scm or 0) - sum(twin.scm_used for twin in twins)) // len(twins)
        storage = max(0, self._storage_left(facility) - sum(twin.aug_dynamic for twin in twins)) // len(twins)
        for twin in twins:
            params = twin.tables.store.params[0]
            params["scm_max"] = params["scm_most"] = min(twin.config.scm_max_size or 0, twin.scm_used + memory)
            params["aug_max"] = twin.aug_dynamic + storage

    def _storage_left(self, facility: CouplingFacility) -> int:
        """Return the bytes that neither structures nor fixed augmented space use."""
        fixed = FIXED_AUGMENTED * sum(_scm_of(self._estate, name) > 0 for name in facility.structures)
        stores = [self._estate.stores[name] for name in facility.structures]
        return (
            (facility.size or 0) - fixed - sum(allocate(store).size for store in stores if isinstance(store, Structure))
        )


def by_tick(demands: Array) -> Iterator[slice]:
    """Yield the slice of each tick. demands: EVENT[n] in order of time."""
    if not demands.size:
        return
    cuts = np.flatnonzero(np.diff(demands["time"] // TICK)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), demands.size]):
        yield slice(begin, end)


def _scm_of(estate: Estate, name: str) -> int:
    store = estate.stores[name]
    return (store.scm_max_size or 0) if isinstance(store, Structure) else 0
