"""The live twin of a structure that holds no queues: an administration structure, or one of another program.

No event says what takes its entries and elements, so there is no model of it: each MEASURE is taken over, totals
included, and the forecast extends the levels. z/OS alters its ratio and size, which the next MEASURE shows. A resource
of which the total was never measured has no usage. Sources: docs/storage-model.md, "Structures that hold no queues".
"""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec.structs import replace
from typing_extensions import override

from kernels import layout
from twin.alerts.episodes import Alert
from twin.base.conditions import ELEMENTS, ENTRIES, Resource
from twin.capacity import Usage
from twin.events import Measured
from twin.forecast.levels import Levels
from twin.records import Baseline, MessageStoreState, StateRecord, StructureState
from twin.stores.drift import SizeMeasured
from twin.stores.estimate import Holding
from twin.stores.resources import STRUCTURE, KnownBy, all_of, any_of, conditions_of
from twin.stores.structure import StructureTwin

_UNKNOWN = 1 << 48  # of a pool: more than any structure has, so that its share is none
_TOTALS = {"ents_max", "elems_max"}


class MeasuredStructureTwin(StructureTwin):
    """The twin of a structure that is known by measured levels."""

    conditions = conditions_of({pool: spec for pool, spec in STRUCTURE.items() if spec.fills})
    measurable = ("ents_used", "elems_used")
    takes_in_queues: ClassVar[bool] = False
    known_by: ClassVar[KnownBy] = {
        "ents_used": any_of("ents_used"),
        **dict.fromkeys(("elems_used", "elems_low", "elems_high"), any_of("elems_used")),
        "usage_pct": all_of("ents_used", "elems_used") + all_of("ents_used", "usage_pct"),
        "demand": (),
    }

    @override
    def set_params(self) -> None:
        super().set_params()
        params = self.tables.store.params[0]
        for name in _TOTALS - self.totals.keys():
            params[name] = _UNKNOWN

    @override
    def _usage(self) -> Usage:
        return Usage(0, 0, holds_data=False)  # z/OS says whether a size holds what is used

    @override
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        refused = int(self.tables.store.scalars[0]["refused_alters"])
        alerts = super()._change(op, content)
        if op == layout.REBUILD and int(self.tables.store.scalars[0]["refused_alters"]) == refused:
            self.monitor.memory.levels = Levels()
        return alerts

    @override
    def levels_of(self, measured: Measured) -> Measured:
        return {**measured, "resync": True}

    @override
    def take_sizes(self, measured: Measured) -> None:
        unknown = _TOTALS - self.totals.keys()
        super().take_sizes(measured)
        if unknown & self.totals.keys():
            self.monitor.memory.levels = Levels()  # of other resources they begin again, too

    @override
    def _rescaled(self, totals: dict[str, int]) -> dict[str, int]:
        return totals  # z/OS alters its ratio

    @override
    def sizes(self) -> dict[int, int]:
        return {row: 0 if size == _UNKNOWN else size for row, size in super().sizes().items()}

    @override
    def in_use(self, measured: Measured) -> dict[Resource, tuple[float, float]]:
        """Return what was measured of pools of which the total is known."""
        of_pool = {ENTRIES: "ents", ELEMENTS: "elems"}
        return {
            pool: (measured[f"{name}_used"], self.totals[f"{name}_max"])  # type: ignore[literal-required]
            for pool, name in of_pool.items()
            if f"{name}_used" in measured and self.totals.get(f"{name}_max")
        }

    @property
    @override
    def _awaits_mix(self) -> bool:
        return False

    @override
    def _elements_by_usage(self, measured: Measured) -> int | None:
        return super()._elements_by_usage(measured) if "elems_max" in self.totals else None

    @override
    def set_baseline(self, measured: Measured, holding: Holding | None = None) -> Baseline:
        baseline = super().set_baseline({**measured, "messages": 0}, holding)
        return {**baseline, "smds": {}}

    @override
    def compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        return {}  # there is no model to compare with

    @override
    def compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        return []

    @property
    @override
    def data_sets(self) -> tuple[str, ...]:
        return ()

    @property
    @override
    def alters_by_itself(self) -> bool:
        return False

    @property
    @override
    def may_grow(self) -> bool:
        return False

    @override
    def is_relieved(self, condition: str, resource: Resource) -> bool:
        return False

    @override
    def _record(self, common: StateRecord) -> StructureState:
        record = super()._record(common)
        is_known = self.totals.keys() >= _TOTALS
        return replace(
            record,
            ents_max=self.totals.get("ents_max"),
            elems_max=self.totals.get("elems_max"),
            smds={},
            limits_unknown=(),
            usage_pct=record.usage_pct if is_known else None,
        )

    @override
    def state(self) -> MessageStoreState:
        nothing = dict.fromkeys(
            ("messages", "messages_estimated", "bytes", "uncommitted", "in_doubt", "expired_held"), 0
        )
        return replace(super().state(), **nothing, offloaded_messages=0, offloaded_bytes=0)
