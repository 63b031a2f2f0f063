"""The resources of stores that hold messages: a table for each kind of store, and what alerts know of all of them.

A resource is a row of USAGE (`kernels.usage`); the words for it are in `twin.records.usage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from typing_extensions import override

from kernels import layout, meter_rows, page_set, queue_file, smds, usage, watch
from kernels.pools import SMALLEST_ELEMENTS
from twin.alerts import fillers
from twin.alerts.resource_view import ResourceView
from twin.conditions import Condition, Pool, Resource
from twin.estate import StoreConfig
from twin.records.usage import RESOURCES, usage_pct
from twin.state.arrays import Array


class Spec(NamedTuple):
    """A resource of a kind of store, as its kernels know it."""

    row: int  # row of USAGE; of data sets the first one
    counted: str  # field of QUEUE whose growth fills it
    bits: Mapping[str, int] = {}  # bits of `fired` by condition
    threshold_pct: int | None = 0  # percent of the present size from which "threshold" holds; None: FULLTHRESHOLD
    fills: bool = True  # True if puts fail once it is full, so that its usage is sampled


STRUCTURE = {
    Pool.ENTRIES: Spec(
        meter_rows.ENTRIES,
        "depth",
        {Condition.THRESHOLD: watch.THRESHOLD_ENTRIES, Condition.FULL: watch.FULL_ENTRIES},
        threshold_pct=None,
    ),
    Pool.ELEMENTS: Spec(
        meter_rows.SPACE,
        "elems",
        {Condition.THRESHOLD: watch.THRESHOLD_ELEMENTS, Condition.FULL: watch.FULL_ELEMENTS},
        threshold_pct=None,
    ),
    Pool.SCM: Spec(meter_rows.SCM, "depth", {Condition.SCM_EXHAUSTED: watch.SCM_EXHAUSTED}, fills=False),
    Pool.AUGMENTED: Spec(
        meter_rows.AUGMENTED, "depth", {Condition.AUGMENTED_EXHAUSTED: watch.AUGMENTED_EXHAUSTED}, fills=False
    ),
}
DATA_SET = Spec(
    meter_rows.DATA_SETS,
    "pages",
    {
        Condition.THRESHOLD: watch.DATASET_THRESHOLD,
        Condition.CANNOT_EXPAND: watch.DATASET_CANNOT_EXPAND,
        Condition.FULL: watch.DATASET_FULL,
    },
    threshold_pct=smds.EXPAND_ABOVE,
)
PAGE_SET = {
    Pool.PAGES: Spec(
        meter_rows.SPACE,
        "elems",  # of a page set, bytes: messages of several queues may share a page
        {
            Condition.THRESHOLD: watch.THRESHOLD,
            Condition.CANNOT_EXPAND: watch.CANNOT_EXPAND,
            Condition.FULL: watch.FULL,
        },
        threshold_pct=page_set.EXPAND_ABOVE,
    )
}
QUEUE_FILE = {
    Pool.FILE: Spec(
        meter_rows.SPACE,
        "pages",
        {Condition.THRESHOLD: watch.THRESHOLD, Condition.FULL: watch.FULL},
        threshold_pct=queue_file.WARN_ABOVE,
    ),
    Pool.BLOCKS: Spec(meter_rows.BLOCKS, "pages", threshold_pct=queue_file.WARN_ABOVE, fills=False),
}

LEAST: Mapping[str, int] = {
    Pool.ELEMENTS: SMALLEST_ELEMENTS
}  # what a message takes of a resource, where it is more than 1


def conditions_of(specs: Mapping[Pool, Spec]) -> dict[int, tuple[str, Resource]]:
    """Return condition and resource by bit of scalars.fired, as alerts of one event are published."""
    rows = [(condition, pool, bit) for pool, row in specs.items() for condition, bit in row.bits.items()]
    for condition, pool, _ in rows:
        if Condition(condition).order is None or pool not in Condition(condition).pools:
            raise TypeError(f"condition {condition} of {pool} has a bit; expected: one of its pools, raised by puts")
    rows.sort(key=lambda row: Condition(row[0]).order or 0)
    return {bit: (condition, Resource(pool)) for condition, pool, bit in rows}


def read_usage(store: layout.Store) -> Array:
    """Return USAGE of a store, as it is now; the next call overwrites it."""
    usage.read(store)
    return store.usage


class StoreResource(ResourceView):
    """One resource of a store that holds messages, as USAGE has it, in `row`; None: that of `spec`."""

    def __init__(
        self,
        config: StoreConfig,
        store: layout.Store,
        queues: Array,
        resource: Resource,
        spec: Spec,
        row: int | None = None,
    ) -> None:
        super().__init__(store)
        self._config = config
        self._queues = queues
        self._spec = spec
        self._row = spec.row if row is None else row
        self.resource = resource
        words = RESOURCES[resource.pool]
        self.text = words.subject.format(store=config.name, owner=resource.owner)
        self.unit, self.present = words.grown, words.present

    @cached_property
    def _usage(self) -> tuple[int, int, int]:
        """(used, total, maximum) at the moment of the view."""
        used, total, maximum, *_ = read_usage(self._store)[self._row].tolist()
        return used, total, maximum

    @override
    def _read_usage_pct(self) -> float:
        used, total, _ = self._usage
        return usage_pct(used, total)

    @property
    @override
    def beyond_share(self) -> float:
        _, total, maximum = self._usage
        return self.beyond_pct / 100 * total / max(1, maximum)

    @property
    def is_limit_known(self) -> bool:
        """True if it is known up to where the resource can expand, or that it cannot."""
        return True

    @property
    @override
    def maximum_pct(self) -> float:
        used, total, maximum = self._usage
        limit = maximum if self.is_limit_known else total
        return usage_pct(used, limit) + self.beyond_pct * total / max(1, limit)

    @property
    @override
    def threshold_pct(self) -> float:
        return float(self._spec.threshold_pct or 0)

    @override
    def by_queue(self) -> tuple[Array, Array]:
        return fillers.growth(self._queues, self._spec.counted), self._queues[self._spec.counted]
