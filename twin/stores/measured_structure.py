"""The live twin of a structure that holds no queues: an administration structure, or one of another program.

No event says what takes its entries and elements, so there is no model of it: each MEASURE is taken over, totals
included, and the forecast extends the levels. z/OS alters its ratio and size, which the next MEASURE shows. A resource
of which the total was never measured has no usage.

Sources: docs/storage-model.md, "Structures that hold no queues".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec.structs import replace
from typing_extensions import override

from kernels import layout
from twin.alerts.episodes import Alert
from twin.capacity.structures import Usage
from twin.conditions import ELEMENTS, ENTRIES, Resource
from twin.events import Measured
from twin.events.measured import without_nulls
from twin.forecast.levels import Levels
from twin.records import Baseline, StateRecord, StructureState
from twin.stores.drift import SizeMeasured
from twin.stores.state_record import KnownBy, all_of, any_of
from twin.stores.structure import StructureTwin
from twin.stores.structure_view import POOL_BITS

_UNKNOWN = 1 << 48  # of a pool: more than any structure has, so that its share is none
_TOTALS = {"ents_max": ENTRIES, "elems_max": ELEMENTS}


class MeasuredStructureTwin(StructureTwin):
    """The twin of a structure that is known by measured levels."""

    conditions = POOL_BITS
    measurable = ("ents_used", "elems_used")
    known_by: ClassVar[KnownBy] = {
        "ents_used": any_of("ents_used"),
        **dict.fromkeys(("elems_used", "elems_low", "elems_high"), any_of("elems_used")),
        "usage_pct": all_of("ents_used", "elems_used"),
        "demand": (),
    }

    @override
    def _set_params(self) -> None:
        params = self.tables.store.params[0]
        totals = {name: int(params[name]) or _UNKNOWN for name in _TOTALS}  # PARAMS is part of the state
        super()._set_params()
        params["alters"] = False
        for name, total in totals.items():
            params[name] = total

    @override
    def _usage(self) -> Usage:
        return Usage(0, 0, holds_data=False)  # z/OS says whether a size holds what is used

    def _total(self, name: str) -> int | None:
        """Return a total as it was measured; None: it never was."""
        total = int(self.tables.store.params[0][name])
        return None if total == _UNKNOWN else total

    @override
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        refused = int(self.tables.store.scalars[0]["refused_alters"])
        alerts = super()._change(op, content)
        if op == layout.REBUILD and int(self.tables.store.scalars[0]["refused_alters"]) == refused:
            for name in _TOTALS:
                self.tables.store.params[0][name] = _UNKNOWN
            self.monitor.memory.levels = Levels()
        return alerts

    @override
    def _measure(self, content: Mapping[str, Any]) -> list[Alert]:
        measured = without_nulls(content)
        if "size" in measured:
            self.allocation = self.allocation._replace(size=measured["size"])
            self._set_params()
        for name, resource in _TOTALS.items():
            total, before = measured.get(name), self._total(name)
            if not total or total == before:
                continue
            self.tables.store.params[0][name] = total
            if before is None:
                self.monitor.memory.levels = Levels()  # of other resources they begin again, too
            else:
                self.monitor.memory.levels.rescale(str(resource), before / total)
        measured["resync"] = True
        return super()._measure(measured)

    @override
    def _set_baseline(self, measured: Measured) -> Baseline:
        baseline = super()._set_baseline({**measured, "messages": 0})
        return {**baseline, "smds": {}}

    @override
    def _compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        return {}  # there is no model to compare with

    @override
    def _compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        return []

    @override
    def _names_of_datasets(self) -> tuple[str, ...]:
        return ()

    @override
    def _is_alter_due(self) -> bool:
        return False

    @override
    def _sample(self, count: int, now: int) -> list[Alert]:
        return []

    @override
    def is_relieved(self, condition: str, resource: Resource) -> bool:
        return False

    @override
    def usage_of_maximum(self) -> dict[Resource, float]:
        return {resource: self._own_view(resource).usage_pct for resource in (ENTRIES, ELEMENTS)}

    @override
    def _record(self, common: StateRecord) -> StructureState:
        record = super()._record(common)
        totals = {name: self._total(name) for name in _TOTALS}
        is_known = None not in totals.values()
        return replace(record, **totals, smds={}, usage_pct=record.usage_pct if is_known else None)

    @override
    def state(self) -> StructureState:
        record = super().state()
        assert isinstance(record, StructureState)
        nothing = dict.fromkeys(("messages", "messages_estimated", "bytes", "uncommitted", "in_doubt", "expired_held"), 0)
        return replace(record, **nothing, offloaded_messages=0, offloaded_bytes=0)
