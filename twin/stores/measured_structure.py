"""The live twin of a structure that holds no queues: an administration structure, or one of another program.

No event says what takes its entries and elements, so there is no model of it: each MEASURE is taken over, totals
included, and the forecast extends the levels. z/OS alters its ratio and size, which the next MEASURE shows. A resource
of which the total was never measured has no usage.

Sources: docs/storage-model.md, "Structures that hold no queues".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from msgspec.structs import asdict, replace
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
from twin.stores.structure import KindState, StructureTwin
from twin.stores.structure_view import POOL_BITS

_UNKNOWN = 1 << 48  # of a pool: more than any structure has, so that its share is none
_TOTALS = {"ents_max": ENTRIES, "elems_max": ELEMENTS}


class _MeasuredState(KindState, kw_only=True):
    """State of a structure, and the totals that were measured, by field."""

    totals: dict[str, int]


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

    _totals: dict[str, int]  # as they were measured, by field

    @override
    def _begin(self) -> None:
        super()._begin()
        self._totals = {}

    @override
    def _kind_state(self) -> _MeasuredState:
        return _MeasuredState(**asdict(super()._kind_state()), totals=self._totals)

    @override
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], kind_state: msgspec.Raw) -> None:
        self._totals = msgspec.msgpack.decode(kind_state, type=_MeasuredState).totals
        super()._take_over(header_described, attributes, kind_state)

    @override
    def _set_params(self) -> None:
        super()._set_params()
        params = self.tables.store.params[0]
        params["alters"] = False
        for name in _TOTALS:
            params[name] = self._totals.get(name, _UNKNOWN)

    @override
    def _usage(self) -> Usage:
        return Usage(0, 0, holds_data=False)  # z/OS says whether a size holds what is used

    @override
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        refused = int(self.tables.store.scalars[0]["refused_alters"])
        alerts = super()._change(op, content)
        if op == layout.REBUILD and int(self.tables.store.scalars[0]["refused_alters"]) == refused:
            self._totals = {}
            self._set_params()
            self.monitor.memory.levels = Levels()
        return alerts

    @override
    def _measure(self, content: Mapping[str, Any]) -> list[Alert]:
        measured = without_nulls(content)
        if "size" in measured:
            self.allocation = self.allocation._replace(size=measured["size"])
        totals = {"ents_max": measured.get("ents_max"), "elems_max": measured.get("elems_max")}
        for name, resource in _TOTALS.items():
            total, before = totals[name], self._totals.get(name)
            if not total or total == before:
                continue
            self._totals = {**self._totals, name: total}
            if before is None:
                self.monitor.memory.levels = Levels()  # of other resources they begin again, too
            else:
                self.monitor.memory.levels.rescale(str(resource), before / total)
        self._set_params()
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
        is_known = self._totals.keys() == _TOTALS.keys()
        return replace(
            record,
            ents_max=self._totals.get("ents_max"),
            elems_max=self._totals.get("elems_max"),
            smds={},
            usage_pct=record.usage_pct if is_known else None,
        )

    @override
    def state(self) -> StructureState:
        record = super().state()
        assert isinstance(record, StructureState)
        nothing = dict.fromkeys(
            ("messages", "messages_estimated", "bytes", "uncommitted", "in_doubt", "expired_held"), 0
        )
        return replace(record, **nothing, offloaded_messages=0, offloaded_bytes=0)
