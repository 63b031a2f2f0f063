"""The live twin of one coupling facility structure with its shared message data sets."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from kernels import clock, layout, offload, pools, scm, watch
from twin.alerts.episodes import Alert
from twin.allocation import FIXED_AUGMENTED, allocate
from twin.estate import Structure
from twin.forecast import structure_model
from twin.forecast.fill_model import Rules
from twin.stores import alteration, auto_alter, drift, storage_class_memory, structure_measurement
from twin.stores.message_store import MessageStore
from twin.stores.reports import StructureValues
from twin.stores.structure_state import dataset_fields
from twin.stores.structure_view import DATASET_BITS, POOL_BITS, SCM_BITS, StructureViewer


class StructureTwin(MessageStore):
    """See the module. size_now: bytes allocated; ratio: elements for each entry."""

    kind = "structure"
    is_foreseen = True
    check_against = "Check the structure's attributes in the estate against DISPLAY CFSTATUS and D XCF,STR."
    config: Structure
    size_now: int
    ratio: int | Fraction

    def _attributes(self) -> dict[str, Any]:
        return alteration.attributes_of(self.config)

    def _begin(self) -> None:
        self.size_now, self.ratio = allocate(self.config)

    def _own(self) -> dict[str, Any]:
        return {"size_now": self.size_now, "ratio": self.ratio.as_integer_ratio()}

    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], own: dict[str, Any]) -> None:
        self.size_now, self.ratio = own["size_now"], Fraction(*own["ratio"])
        self.config = alteration.with_attributes(self.config, attributes)
        alteration.adopt(self, header_described, self._described)

    def _set_params(self) -> None:
        alteration.set_params(self)

    def _new_qmgrs(self) -> None:
        """Add the data sets of queue managers not seen before."""
        old = self.tables.store.datasets
        datasets = np.zeros(len(self.qmgrs), layout.DATASET)
        datasets[: old.size] = old
        for row in range(old.size, datasets.size):
            alteration.describe_dataset(datasets[row], self.config, self.qmgrs[row])
        self.tables.store = self.tables.store._replace(datasets=datasets)

    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        if op == layout.ALTER and not self.alterable:
            return auto_alter.refuse(self, int(self.tables.store.scalars[0]["clock"]))
        if op == layout.ALTER:
            alteration.alter(self, content)
        elif op == layout.REBUILD:
            alteration.rebuild(self, content)
        else:
            return drift.measure(self, content)
        return []

    @property
    def scm_used(self) -> int:
        """Bytes of storage class memory in use."""
        return int(scm.bytes_in_use(self.tables.store))

    @property
    def aug_fixed(self) -> int:
        """Bytes of fixed augmented space, taken as soon as the structure is configured for SCM."""
        return 0 if self.config.scm_max_size is None else FIXED_AUGMENTED

    @property
    def aug_dynamic(self) -> int:
        """Bytes of dynamic augmented space in use."""
        return int(scm.augmented_bytes(self.tables.store, self.scm_used))

    @property
    def alterable(self) -> bool:
        """Whether the structure can be altered: nothing is in SCM, no dynamic augmented space in use [seed]."""
        return self.scm_used == 0

    def _is_busy(self) -> bool:
        use = self.tables.store.scm[0]
        return bool(use["enrolled"] and use["free_at"] != layout.NEVER) or auto_alter.is_due(self)

    def _at_tick(self, before: int, tick: int) -> list[Alert]:
        now = tick * clock.TICK
        enrolled = self.tables.store.scm[0]["enrolled"]
        alerts: list[Alert] = []
        if enrolled:
            scm.advance(self.tables.store, now * scm.NANOSECONDS)
        samples = auto_alter.samples(before, tick)
        if samples > 0:
            alerts += auto_alter.sample(self, samples, now)
        if enrolled:
            watch.move(self.tables.store, now * scm.NANOSECONDS)
        return alerts + self._fired(now)

    def set_baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Keep what the real system holds beyond the model, and say it."""
        return structure_measurement.set_baseline(self, measured)

    def compared(self, measured: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
        """(model, measured, total) of each resource measured."""
        return structure_measurement.compared(self, measured)

    def viewer(self) -> StructureViewer:
        """Findings about the store as it is now."""
        return StructureViewer(self.config, self.tables.store, self.qmgrs, self.queues)

    def _conditions(self) -> dict[int, tuple[str, str]]:
        return POOL_BITS | SCM_BITS

    def _fired_elsewhere(self) -> list[tuple[str, str]]:
        fired = []
        for row, qmgr in enumerate(self.qmgrs):
            bits = int(self.tables.store.datasets[row]["fired"])
            fired += [(condition, f"smds/{qmgr}") for bit, condition in DATASET_BITS.items() if bits & bit]
        return fired

    def _arm(self, condition: str, resource: str) -> None:
        super()._arm(condition, resource)
        if resource.startswith("smds/"):
            row = self.qmgrs.index(resource.partition("/")[2])
            for bit, name in DATASET_BITS.items():
                if name == condition:
                    self.tables.store.datasets["armed"][row] |= np.uint8(bit)

    def rules(self, tick: int) -> Rules:
        """What the forecast rolls forward, as it stands at a tick."""
        return structure_model.rules_of(self.tables.store, self.config, self.estate, self.qmgrs, tick)

    def _report_values(self) -> StructureValues:
        return StructureValues(
            size=self.size_now,
            scm_max=self.config.scm_max_size or 0,
            scm_used=self.scm_used,
            aug_fixed=self.aug_fixed,
            aug_dynamic=self.aug_dynamic,
        )

    def _fields(self) -> dict[str, Any]:
        store = self.tables.store
        scalars, params = store.scalars[0], store.params[0]
        entries, elements = int(pools.entries_in_use(store)), int(pools.elements_in_use(store))
        ents_max, elems_max = int(params["ents_max"]), int(params["elems_max"])
        usage = 100.0 * max(entries / max(1, ents_max), elements / max(1, elems_max))
        return {
            "size": self.size_now,
            "ents_max": ents_max,
            "ents_used": entries,
            "elems_max": elems_max,
            "elems_used": elements,
            "usage_pct": round(usage, 3),
            "alterable": self.alterable,
            "offloaded_messages": int(scalars["offloaded_messages"]),
            "offloaded_bytes": int(scalars["offloaded_bytes"]),
            "offload_rule": int(offload.highest_rule(store)),
            "smds": {qmgr: dataset_fields(store, row) for row, qmgr in enumerate(self.qmgrs)},
            "scm": storage_class_memory.fields(self),
        }
