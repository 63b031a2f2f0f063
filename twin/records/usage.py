"""The words for resources, and the resources of a state record: console, exporter, tables and alerts show these.

A usage is in percent of the present size, as DISPLAY has it and `usage_pct` of alerts, and where a resource can grow
also in percent of what it can grow to.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from twin.base.conditions import AUGMENTED, CAPACITY, ELEMENTS, ENTRIES, FILE, PAGES, SCM, Pool, Resource
from twin.base.units import as_span, as_times, as_usage, percent, readable_size
from twin.records.states import (
    CouplingFacilityState,
    PageSetState,
    QueueFileState,
    ResourceForecast,
    StateRecord,
    StructureState,
    UniformClusterState,
)

LIKELY = 0.5  # probability from which a forecast counts: the default for alerts too
POSSIBLE = 0.3  # one from which it counts while its alert is open
_UNLIKELY = 0.1  # one below which full is called unlikely
NOT_MEASURED = "not measured"  # the words for a usage that was neither counted nor measured
_FILE_BLOCK_BYTES = 512  # of a queue file


def usage_pct(used: float, total: float) -> float:
    """Return the percentage in use of a resource, to three decimals; of one without a size, as if it had one unit."""
    return percent(used, total or 1)


class Words(NamedTuple):
    """The words for a kind of resource."""

    unit: str  # unit of its amounts, with IBM MQ's own word where it has one
    subject: str = ""  # a resource of it as subject of a sentence, with {store}, {owner}; "": it has no sentences
    grown: str = ""  # unit of its growth in sentences; "": it has no sentences
    present: str = "size"  # what its present size counts, in sentences
    kind: str = ""  # the only kind of store that has it; "": several have it


SIZEUSED = "SIZEUSED"  # of DISPLAY CFSTATUS

RESOURCES: dict[str, Words] = {
    Pool.ENTRIES: Words("entries (ENTSUSED)", "Entries of {store}", "entries", "entries", "structure"),
    Pool.ELEMENTS: Words("elements (ELEMUSED)", "Elements of {store}", "elements", "elements", "structure"),
    Pool.SMDS: Words("blocks (with space map)", "SMDS blocks of {owner} for {store}", "pages", "blocks", "structure"),
    Pool.SCM: Words("bytes", "SCM of {store}", "messages"),
    Pool.AUGMENTED: Words("bytes", "Storage for dynamic augmented space of {store}", "messages"),
    Pool.PAGES: Words("pages", "Pages of {store}", "pages", "pages", "page_set"),
    Pool.FILE: Words("file blocks", "File blocks of {store}", "blocks", kind="queue_file"),
    Pool.BLOCKS: Words("blocks", "Blocks of {store}", "blocks", kind="queue_file"),
    Pool.CAPACITY: Words("messages/s", kind="uniform_cluster"),
}


class ResourceUsage(msgspec.Struct, frozen=True):
    """The usage of one resource of a store."""

    name: str  # as in alerts: entries, elements, smds/QM01, scm, augmented, pages, file, capacity
    label: str  # the resource in words
    used: float | None  # in `unit`; None if it was neither counted nor measured
    total: float  # the present size, in `unit`
    maximum: float  # what it can become by expansion up to a limit that is known, in `unit`; otherwise total
    unit: str  # entries, blocks, bytes and the like; with IBM MQ's own word where it has one
    pct: float | None  # percent of the present size in use, as `usage_pct` of alerts; None as `used`
    maximum_pct: float | None  # percent of `maximum` in use, as forecasts have it; None as `used`
    # a status that is not the usual one, such as EXPANDST(FAILED), that nothing was measured, or SIZEUSED: the
    # percentage is that of DISPLAY CFSTATUS, a whole number, of the structure; else empty
    note: str = ""

    @property
    def text(self) -> str:
        """The usage in words, as causes of alerts have it."""
        if self.note == SIZEUSED:
            return f"{self.pct:.0f} % ({SIZEUSED})"
        return NOT_MEASURED if self.pct is None else as_usage(self.pct)

    @property
    def growth_text(self) -> str:
        """The words for what it can grow to: `can grow to twice as many blocks`; "" where it cannot grow."""
        return f"can grow to {as_times(self.maximum / self.total)} as many {self.bare_unit}" if self.can_grow else ""

    @property
    def resource(self) -> Resource:
        """The resource."""
        return Resource.parse(self.name)

    @property
    def can_grow(self) -> bool:
        """True if it can become larger than it is."""
        return self.maximum > self.total > 0

    @property
    def bare_unit(self) -> str:
        """The unit without IBM MQ's word for it."""
        return self.unit.partition(" (")[0]

    @property
    def maximum_label(self) -> str:
        """The label of `maximum_pct`: `SMDS QM01, of what it can grow to`; `elements`."""
        return f"{self.label}, of what it can grow to" if self.can_grow else self.label

    @property
    def share_text(self) -> str:
        """The words behind `pct`: `of SMDS QM01 in use, can grow to twice as many blocks`, `of elements in use`."""
        return f"of {self.label} in use" + (f", {self.growth_text}" if self.can_grow else "")

    @property
    def amount_text(self) -> str:
        """The amounts: `228 of 256 blocks (with space map), can grow to 512`; empty if it was not measured."""
        if self.used is None:
            return ""
        growth = f", can grow to {self._amount(self.maximum)}" if self.can_grow else ""
        unit = "" if self.unit == "bytes" else f" {self.unit}"
        return f"{self._amount(self.used)} of {self._amount(self.total)}{unit}{growth}"

    def _amount(self, value: float) -> str:
        return readable_size(int(value)) if self.unit == "bytes" else f"{value:,.0f}"


def resources_of(state: StateRecord) -> list[ResourceUsage]:
    """Return the resources of a state record; none for a kind that has none, or that is not known here."""
    match state:
        case StructureState():
            return _structure(state)
        case PageSetState():
            return _page_set(state)
        case QueueFileState():
            return _queue_file(state)
        case CouplingFacilityState():
            return _coupling_facility(state)
        case UniformClusterState():
            return _uniform_cluster(state)
    return []


def rise_text(first: ResourceForecast | None) -> str:
    """Return what is said of a store that rises and is not likely to be full: the one place that says it.

    Example: `rises, 18 min at this rate, not sure (31 %)`. "" where nothing rises, or a time until full is said anyhow.
    Of a resource that has begun to fall the caller says that instead.
    """
    if first is None or first.time_to_full_s is None or first.full_probability >= LIKELY:
        return ""
    probability = first.full_probability
    chance = f"{100 * probability:.0f} %" if probability >= 0.005 else "less than 1 %"
    doubt = "not sure" if probability >= _UNLIKELY else "unlikely"
    return f"rises, {as_span(first.time_to_full_s.p50)} at this rate, {doubt} ({chance})"


def fullest_of(resources: list[ResourceUsage]) -> ResourceUsage | None:
    """Return the resource nearest to the most it can become; one of unknown usage, or None, where none is known."""
    known = [resource for resource in resources if resource.maximum_pct is not None]
    return max(known or resources[:1], key=lambda resource: resource.maximum_pct or 0.0, default=None)


def _usage(
    resource: Resource, used: float | None, total: float | None, maximum: float | None = None, note: str = ""
) -> ResourceUsage:
    """Return the usage of a resource. maximum: None where it does not expand."""
    name, label, unit = str(resource), resource.label, RESOURCES[resource.pool].unit
    if used is None or total is None:
        return ResourceUsage(name, label, None, total or 0, maximum or total or 0, unit, None, None, NOT_MEASURED)
    limit = total if maximum is None else maximum
    return ResourceUsage(name, label, used, total, limit, unit, usage_pct(used, total), usage_pct(used, limit), note)


def _structure(state: StructureState) -> list[ResourceUsage]:
    resources = [_usage(ENTRIES, state.ents_used, state.ents_max), _usage(ELEMENTS, state.elems_used, state.elems_max)]
    if state.elems_used is None and state.usage_pct is not None:  # DISPLAY shows no elements, but how full it is
        label, unit, pct = ELEMENTS.label, RESOURCES[Pool.ELEMENTS].unit, state.usage_pct
        resources[1] = ResourceUsage(str(ELEMENTS), label, None, 0, 0, unit, pct, pct, SIZEUSED)
    for qmgr, dataset in sorted(state.smds.items()):
        note = "" if dataset.status == "NORMAL" else f"EXPANDST({dataset.status})"
        used, total = dataset.blocks_used, dataset.blocks_total
        resource = Resource(Pool.SMDS, qmgr)
        maximum = None if str(resource) in state.limits_unknown else dataset.blocks_max
        resources.append(_usage(resource, used, total, maximum, note))
    if state.scm is not None and state.scm.max:
        resources.append(_usage(SCM, state.scm.used, state.scm.max))
    return resources


def _page_set(state: PageSetState) -> list[ResourceUsage]:
    note = "" if state.status == "NORMAL" else state.status
    maximum = None if state.limits_unknown else state.pages_max
    return [_usage(PAGES, state.pages_used, state.pages_total, maximum, note)]


def _queue_file(state: QueueFileState) -> list[ResourceUsage]:
    file_bytes, allocated = state.file_bytes, state.blocks_allocated
    used = None if file_bytes is None or allocated is None else file_bytes // _FILE_BLOCK_BYTES - allocated
    return [_usage(FILE, used, state.file_max_bytes // _FILE_BLOCK_BYTES)]


def _coupling_facility(state: CouplingFacilityState) -> list[ResourceUsage]:
    resources = []
    if state.scm_total:
        resources.append(_usage(SCM, state.scm_used, state.scm_total))
    augmented, free = state.augmented, state.storage_free
    if augmented and free is not None:
        resources.append(_usage(AUGMENTED, augmented, augmented + free))
    return resources


def _uniform_cluster(state: UniformClusterState) -> list[ResourceUsage]:
    capacity = _usage(CAPACITY, state.load, state.capacity)
    return [msgspec.structs.replace(capacity, pct=state.usage_pct, maximum_pct=state.usage_pct)]
