"""What a structure's twin sees of its pools and data sets; see `twin.findings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kernels import layout, smds, watch
from kernels.pools import elements_in_use, entries_in_use
from twin import fillers, wording
from twin.alerts import Filler
from twin.arrays import Array
from twin.estate import Structure
from twin.findings import Viewer
from twin.wording import NOTHING

_POOLS = {"entries": ("depth", "entries"), "elements": ("elems", "elements")}  # counted in QUEUE, in words

POOL_BITS = {  # in the order in which alerts of one event are published
    watch.THRESHOLD_ENTRIES: ("threshold", "entries"),
    watch.THRESHOLD_ELEMENTS: ("threshold", "elements"),
    watch.FULL_ENTRIES: ("full", "entries"),
    watch.FULL_ELEMENTS: ("full", "elements"),
}
DATASET_BITS = {
    watch.DATASET_THRESHOLD: "threshold",
    watch.DATASET_CANNOT_EXPAND: "cannot-expand",
    watch.DATASET_FULL: "full",
}
EXPAND_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}


class StructureViewer(Viewer):
    """Resources: entries, elements, smds/<queue manager>."""

    def __init__(self, config: Structure, store: layout.Store, qmgrs: Sequence[str], queues: Sequence[str]) -> None:
        super().__init__(config, store, queues)
        self._qmgrs = qmgrs

    def usage_pct(self, resource: str) -> float:
        """See `Viewer`."""
        params = self._store.params[0]
        if resource == "entries":
            return round(100.0 * entries_in_use(self._store) / max(1, int(params["ents_max"])), 3)
        if resource == "elements":
            return round(100.0 * elements_in_use(self._store) / max(1, int(params["elems_max"])), 3)
        row = self._dataset(resource)
        return round(
            100.0 * smds.blocks_in_use(self._store, row) / max(1, int(self._store.datasets[row]["blocks_total"])), 3
        )

    def _dataset(self, resource: str) -> int:
        return self._qmgrs.index(resource.partition("/")[2])

    def mark_pct(self, condition: str, resource: str) -> float:
        """See `Viewer`. FULLTHRESHOLD(0): not watched."""
        if condition == "full":
            return 100.0
        return float(self._config.full_threshold) if resource in _POOLS else float(smds.EXPAND_ABOVE)

    def _exhausted(self, resource: str) -> bool:
        if resource == "entries":
            return bool(watch.entries_exhausted(self._store))
        if resource == "elements":
            return bool(watch.elements_exhausted(self._store))
        return bool(smds.is_full(self._store, self._dataset(resource)))

    def _last_full(self, resource: str) -> int:
        scalars = self._store.scalars[0]
        if resource in _POOLS:
            return int(scalars["last_full_ents" if resource == "entries" else "last_full_elems"])
        return int(self._store.datasets[self._dataset(resource)]["last_full"])

    def _can_expand(self, resource: str) -> bool:
        return int(self._store.datasets[self._dataset(resource)]["status"]) == layout.NORMAL

    def _by_queue(self, resource: str) -> tuple[Array, Array]:
        if resource in _POOLS:
            counted = _POOLS[resource][0]
            return fillers.growth(self._queues, counted), self._queues[counted]
        used = self._store.messages[: int(self._store.scalars[0]["message_high"])]
        held = fillers.pages_in_dataset(used, self._dataset(resource), self._queues.size)
        # Growth is known over all data sets only; a queue added to this one no more than it holds there.
        return np.minimum(fillers.growth(self._queues, "pages"), held), held

    def _unit(self, resource: str) -> str:
        return _POOLS[resource][1] if resource in _POOLS else "pages"

    def _of(self, resource: str) -> str:
        name = self._config.name
        return f"{resource} of {name}" if resource in _POOLS else f"blocks of {resource[5:]}'s data set for {name}"

    def _mark_name(self, resource: str) -> str:
        return "FULLTHRESHOLD" if resource in _POOLS else "mark for expansion"

    def _why_not(self, resource: str) -> str:
        return f"EXPANDST {EXPAND_STATUS[int(self._store.datasets[self._dataset(resource)]['status'])]}"

    def _actions(
        self, resource: str, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
    ) -> tuple[str, ...]:
        if resource in _POOLS:
            return wording.pool_actions(self._config, resource, int(self._store.params[0]["size_now"]), ranked, effects)
        return wording.dataset_actions(self._config, resource.partition("/")[2], ranked, effects)
