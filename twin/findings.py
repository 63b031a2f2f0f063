"""What a structure's twin sees: is a condition there, how bad is it, who fills it, what helps.

Sources: contract section 4 and 7; z/OS structure full monitoring (IXC585E at or above FULLTHRESHOLD, IXC586I below).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels import layout, smds, watch
from kernels.clock import SECOND
from kernels.pools import elements_in_use, entries_in_use
from twin import fillers, wording
from twin.alerts import CRITICAL, FULL, WARNING, Filler, Finding
from twin.arrays import Array
from twin.estate import Structure
from twin.timestamps import as_span

HYSTERESIS = 2  # percentage points below its mark at which a condition counts as over
CALM_FOR = 60 * SECOND  # event time a condition must be over before its alert is cleared
CALM_AFTER_FULL = 300 * SECOND  # the same after the last 2192: getters and putters come back in waves
CRITICAL_FROM = 95.0  # percent
CRITICAL_UNTIL = 90.0
_USED_UP = 99.0  # percent: below it a 2192 is not what the model expects
STEP = 5.0  # percentage points of usage that are worth telling again

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
_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}


class Viewer:
    """Findings about one store, from its arrays as they are now."""

    def __init__(self, config: Structure, store: layout.Store, qmgrs: Sequence[str], queues: Sequence[str]) -> None:
        self._config = config
        self._store = store
        self._qmgrs = qmgrs
        self._names = queues
        self._queues: Array = store.queues[: len(queues)]

    def usage_pct(self, resource: str) -> float:
        """Percent of a resource in use."""
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
        """The percentage at which a condition begins."""
        if condition == "full":
            return 100.0
        return float(self._config.full_threshold) if resource in _POOLS else float(smds.EXPAND_ABOVE)

    def is_over(self, condition: str, resource: str, now: int) -> bool:
        """Whether a condition no longer holds at `now`, with its hysteresis; before any time of calm."""
        mark = self.mark_pct(condition, resource)
        calm = self.usage_pct(resource) < mark - min(HYSTERESIS, mark / 2) or mark == 0  # FULLTHRESHOLD(0): not watched
        if condition == "full":
            return calm and not self._exhausted(resource) and self._last_full(resource) + CALM_AFTER_FULL <= now
        if condition == "cannot-expand":
            row = self._dataset(resource)
            return calm or int(self._store.datasets[row]["status"]) == layout.NORMAL
        return calm

    def _exhausted(self, resource: str) -> bool:
        """Whether the next put finds no room: of few entries, elements or blocks the last one is more than 2 %."""
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

    def finding(self, condition: str, resource: str, severity_before: str | None) -> Finding:
        """What there is to say of a condition that holds. severity_before: as last published, None: not yet."""
        usage = self.usage_pct(resource)
        grown, held = self._by_queue(resource)
        ranked = fillers.fillers(grown, held, self._names)
        return Finding(
            condition=condition,
            resource=resource,
            severity=self.severity(condition, usage, severity_before),
            usage_pct=usage,
            full_probability=1.0 if condition == "full" else None,
            fillers=ranked,
            cause=f"{self._what(condition, resource, usage)}; {self._filled(resource, ranked, grown)}.",
            actions=self._actions(resource, ranked),
        )

    def who_fills(self, resource: str) -> tuple[Filler, ...]:
        """The queues that fill a resource, the first one most."""
        return fillers.fillers(*self._by_queue(resource), self._names)

    def was_refused_lately(self, now: int) -> bool:
        """Whether a put got 2192 in the last minutes, for want of any resource."""
        resources = [*_POOLS, *(f"smds/{qmgr}" for qmgr in self._qmgrs)]
        return any(self._last_full(resource) + CALM_AFTER_FULL > now for resource in resources)

    def foreseen(
        self, resource: str, severity: str, times: tuple[float, float, float], probability: float
    ) -> Finding:
        """What there is to say of a resource that will be full in so many seconds (p10, p50, p90)."""
        usage = self.usage_pct(resource)
        grown, held = self._by_queue(resource)
        ranked = fillers.fillers(grown, held, self._names)
        p10, p50, p90 = times
        return Finding(
            condition="full-forecast",
            resource=resource,
            severity=severity,
            usage_pct=usage,
            time_to_full_s={"p10": round(p10, 1), "p50": round(p50, 1), "p90": round(p90, 1)},
            full_probability=round(probability, 4),
            fillers=ranked,
            cause=f"{usage:.1f} % of the {self._of(resource)} are in use; as it goes, they are used up in "
            f"{as_span(p50)} ({as_span(p10)} to {as_span(p90)}), and puts get 2192; "
            f"{self._filled(resource, ranked, grown)}.",
            actions=self._actions(resource, ranked),
        )

    def _actions(self, resource: str, ranked: tuple[Filler, ...]) -> tuple[str, ...]:
        if resource in _POOLS:
            return wording.pool_actions(self._config, resource, self._pool_bytes(), ranked)
        return wording.dataset_actions(self._config, resource.partition("/")[2], ranked)

    def over(self, condition: str, resource: str, severity_before: str) -> Finding:
        """What there is to say of a condition that holds no more."""
        usage = self.usage_pct(resource)
        return Finding(
            condition=condition,
            resource=resource,
            severity=severity_before,
            usage_pct=usage,
            full_probability=None,
            fillers=fillers.fillers(*self._by_queue(resource), self._names),
            cause=f"It is over: {usage:.1f} % of the {self._of(resource)} are in use.",
            actions=(),
        )

    def _by_queue(self, resource: str) -> tuple[Array, Array]:
        """(what each queue added lately, what it holds) of a resource, i8[queues]."""
        if resource in _POOLS:
            counted = _POOLS[resource][0]
            return fillers.growth(self._queues, counted), self._queues[counted]
        used = self._store.messages[: int(self._store.scalars[0]["message_high"])]
        held = fillers.pages_in_dataset(used, self._dataset(resource), self._queues.size)
        # Growth is known over all data sets only; a queue added to this one no more than it holds there.
        return np.minimum(fillers.growth(self._queues, "pages"), held), held

    def _filled(self, resource: str, ranked: tuple[Filler, ...], grown: Array) -> str:
        unit = _POOLS[resource][1] if resource in _POOLS else "pages"
        span = as_span(fillers.growth_span(int(self._store.scalars[0]["clock"])) / SECOND)
        return wording.filled_by(ranked, int(grown.sum()), unit, span)

    def _pool_bytes(self) -> int:
        return int(self._store.params[0]["size_now"])

    def severity(self, condition: str, usage: float, before: str | None) -> str:
        """How bad a condition is at a usage, in percent. before: as last published, None: not yet."""
        if condition == "full":
            return FULL
        if condition == "cannot-expand" or usage >= CRITICAL_FROM:
            return CRITICAL
        if before == CRITICAL and usage >= CRITICAL_UNTIL:
            return CRITICAL
        return WARNING

    def _of(self, resource: str) -> str:
        name = self._config.name
        return f"{resource} of {name}" if resource in _POOLS else f"blocks of {resource[5:]}'s data set for {name}"

    def _what(self, condition: str, resource: str, usage: float) -> str:
        of = self._of(resource)
        if condition == "full":
            recent = self._last_full(resource) + CALM_AFTER_FULL > int(self._store.scalars[0]["clock"])
            if recent and usage < _USED_UP:
                return f"Puts get 2192 while, by the model, {usage:.1f} % of the {of} are in use"
            got = "puts get 2192" if recent else "the next put gets 2192"
            return f"The {of} are used up ({usage:.1f} %): {got}"
        if condition == "cannot-expand":
            status = _STATUS[int(self._store.datasets[self._dataset(resource)]["status"])]
            return f"{usage:.1f} % of the {of} are in use and it cannot expand (EXPANDST {status})"
        mark = self.mark_pct(condition, resource)
        by = "FULLTHRESHOLD" if resource in _POOLS else "mark for expansion"
        return f"{usage:.1f} % of the {of} are in use, its {by} is {mark:.0f} %"
