"""What a structure's twin sees of its pools, its data sets and its storage class memory; see `twin.alerts.findings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kernels import layout, scm, smds, watch
from kernels.pools import elements_in_use, entries_in_use
from twin.alerts import fillers, texts
from twin.alerts.episodes import CRITICAL, WARNING, Filler, Finding
from twin.alerts.findings import Viewer
from twin.alerts.texts import NOTHING
from twin.estate import Structure
from twin.state.arrays import Array
from twin.stores.auto_alter import NOT_ALTERABLE

_POOLS = {"entries": ("depth", "entries"), "elements": ("elems", "elements")}  # counted in QUEUE, in words
_OF_SCM = {
    "scm": "bytes of storage class memory of {name}",
    "augmented": "bytes the coupling facility has for dynamic augmented space of {name}",
}

POOL_BITS = {  # in the order in which alerts of one event are published
    watch.THRESHOLD_ENTRIES: ("threshold", "entries"),
    watch.THRESHOLD_ELEMENTS: ("threshold", "elements"),
    watch.FULL_ENTRIES: ("full", "entries"),
    watch.FULL_ELEMENTS: ("full", "elements"),
}
SCM_BITS = {
    watch.SCM_EXHAUSTED: ("scm-exhausted", "scm"),
    watch.AUGMENTED_EXHAUSTED: ("augmented-exhausted", "augmented"),
}
_LACKS = {"scm-exhausted": scm.NO_SCM, "augmented-exhausted": scm.NO_AUGMENTED}
DATASET_BITS = {
    watch.DATASET_THRESHOLD: "threshold",
    watch.DATASET_CANNOT_EXPAND: "cannot-expand",
    watch.DATASET_FULL: "full",
}
EXPAND_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}


class StructureViewer(Viewer):
    """Resources: entries, elements, smds/<queue manager>, scm, augmented."""

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
        if resource in _OF_SCM:
            used, most = self._of_scm(resource)
            return round(100.0 * used / most, 3) if most else 100.0
        row = self._dataset(resource)
        return round(
            100.0 * smds.blocks_in_use(self._store, row) / max(1, int(self._store.datasets[row]["blocks_total"])), 3
        )

    def _of_scm(self, resource: str) -> tuple[int, int]:
        """(bytes in use, bytes there are) of storage class memory, of storage for dynamic augmented space."""
        used, params = int(scm.bytes_in_use(self._store)), self._store.params[0]
        if resource == "scm":
            return used, int(params["scm_max"])
        return int(scm.augmented_bytes(self._store, used)), int(params["aug_max"])

    def is_over(self, condition: str, resource: str, now: int) -> bool:
        """See `Viewer`. What pre-staging lacked is there again; nothing is in storage class memory any more."""
        if condition == NOT_ALTERABLE:
            return int(self._store.scm[0]["messages"]) == 0
        if condition in _LACKS:
            return int(scm.lacking(self._store)) != _LACKS[condition]
        return super().is_over(condition, resource, now)

    def severity(self, condition: str, usage: float, before: str | None) -> str:
        """See `Viewer`."""
        if condition == NOT_ALTERABLE:
            return WARNING
        return CRITICAL if condition in _LACKS else super().severity(condition, usage, before)

    def finding(self, condition: str, resource: str, severity_before: str | None) -> Finding:
        """See `Viewer`."""
        found = super().finding(condition, resource, severity_before)
        if condition == NOT_ALTERABLE:
            return msgspec.structs.replace(found, actions=texts.alter_actions(self._config, found.fillers))
        return found

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
        if resource in _OF_SCM:
            held = fillers.messages_in_scm(used, self._queues.size)
            return np.minimum(fillers.growth(self._queues, "depth"), held), held
        held = fillers.pages_in_dataset(used, self._dataset(resource), self._queues.size)
        # Growth is known over all data sets only; a queue added to this one no more than it holds there.
        return np.minimum(fillers.growth(self._queues, "pages"), held), held

    def _unit(self, resource: str) -> str:
        if resource in _OF_SCM:
            return "messages"
        return _POOLS[resource][1] if resource in _POOLS else "pages"

    def _of(self, resource: str) -> str:
        name = self._config.name
        if resource in _OF_SCM:
            return _OF_SCM[resource].format(name=name)
        return f"{resource} of {name}" if resource in _POOLS else f"blocks of {resource[5:]}'s data set for {name}"

    def _mark_name(self, resource: str) -> str:
        return "FULLTHRESHOLD" if resource in _POOLS else "mark for expansion"

    def _why_not(self, resource: str) -> str:
        return f"EXPANDST {EXPAND_STATUS[int(self._store.datasets[self._dataset(resource)]['status'])]}"

    def _what(self, condition: str, resource: str, usage: float) -> str:
        if condition == NOT_ALTERABLE:
            used, _ = self._of_scm("scm")
            return texts.cannot_alter(self._config, used, int(self._store.scm[0]["messages"]))
        if condition in _LACKS:
            return texts.stopped_staging(
                self._of(resource), *self._of_scm(resource), max(map(self.usage_pct, ("entries", "elements")))
            )
        return super()._what(condition, resource, usage)

    def _actions(
        self, resource: str, ranked: tuple[Filler, ...], effects: Mapping[str, str] = NOTHING
    ) -> tuple[str, ...]:
        if resource in _OF_SCM:
            return texts.scm_actions(self._config, resource, ranked, effects)
        if resource in _POOLS:
            size_now, alterable = int(self._store.params[0]["size_now"]), int(self._store.scm[0]["messages"]) == 0
            return texts.pool_actions(self._config, resource, size_now, ranked, effects, alterable=alterable)
        return texts.dataset_actions(self._config, resource.partition("/")[2], ranked, effects)
