"""The live twin of one coupling facility structure with its shared message data sets."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec.structs import asdict
from typing_extensions import override

from kernels import clock, layout, meter_rows, pools, scm, smds, watch
from twin.alerts.episodes import Alert
from twin.alerts.findings import ResourceView
from twin.base.conditions import ELEMENTS, ENTRIES, SCM, Condition, Pool, Resource
from twin.capacity import Allocation, Usage, allocate, display_structure, display_structure_status, room_to_grow
from twin.estate import SMDS_MAX_SIZE, Smds, Structure
from twin.estate.model import FIXED_AUGMENTED
from twin.events import Measured
from twin.forecast.fill_model import FillModel, put_elements, structure_model
from twin.records import Baseline, ElementDemand, StateRecord, Step, StructureState
from twin.stores import alerting, changes, measurement
from twin.stores.drift import SizeMeasured
from twin.stores.estimate import MANY, USUAL_LENGTH, Holding, mean_length
from twin.stores.measurement import messages_of_mean_length
from twin.stores.message_store import MessageStore
from twin.stores.reports import StructureValues
from twin.stores.resources import (
    DATA_SET,
    STRUCTURE,
    KnownBy,
    all_of,
    any_of,
    conditions_of,
    data_set_state,
    demand_rates,
    read_usage,
)
from twin.stores.structure_view import (
    LAST_WATCHED_PCT,
    Counters,
    check_pace,
    count_waits,
    enrol,
    measure_pace,
    pools_pct,
    scm_params,
    scm_state,
    structure_resource,
)

_Total = Literal["ents_max", "elems_max", "size"]
_TOTALS: tuple[_Total, ...] = ("ents_max", "elems_max", "size")
_SAME_RATIO = 0.02  # by which measured pools may differ from the arithmetic of an allocation [assumed]
_ROUNDED_PCT = 1.0  # by which SIZEUSED, a whole number, may differ from the share that it comes from


class KindState(msgspec.Struct, kw_only=True):
    """State of a structure that is in neither records nor attributes."""

    size_now: int
    ratio: tuple[int, int]
    policy_pending: dict[str, Any]
    auto_alters: int
    counted: Counters
    totals: dict[str, int] = {}  # sizes taken over from measurements since it was last altered or rebuilt, by field
    above_since: int | None = None  # time since which measurements are at FULLTHRESHOLD, microseconds; None: not now
    is_unaltered: bool = False  # True if they have been for so long that z/OS should have altered it


class StructureTwin(MessageStore):
    """The twin of a structure."""

    kind = "structure"
    identity = frozenset({"name", "queue_sharing_group", "queue_managers", "queues", "cfrm_policy"})
    resources = STRUCTURE
    conditions = conditions_of(STRUCTURE)
    measurable: ClassVar[tuple[str, ...]] = ("messages", "ents_used", "elems_used")
    known_by: ClassVar[KnownBy] = {
        "messages": any_of("messages", "ents_used"),
        "ents_used": any_of("ents_used"),
        **dict.fromkeys(("elems_used", "elems_low", "elems_high"), any_of("elems_used")),
        "usage_pct": all_of("ents_used", "elems_used") + all_of("ents_used", "usage_pct"),
        **dict.fromkeys(("offloaded_messages", "offloaded_bytes"), ()),
    }
    config: Structure
    allocation: Allocation  # its size and ratio as they are
    policy_pending: dict[str, Any]  # attributes of the CFRM policy that wait for a REBUILD, with their values
    auto_alters: int  # number of times that automatic alter has changed them
    totals: dict[str, int]  # totals, above_since, is_unaltered: as of `KindState`
    above_since: int | None
    is_unaltered: bool

    @override
    def _begin(self) -> None:
        self.allocation = allocate(self.config)
        self.policy_pending = {}
        self.auto_alters = 0
        self.totals, self.above_since, self.is_unaltered = {}, None, False
        self._counted = Counters()

    @override
    def _kind_state(self) -> KindState:
        return KindState(
            size_now=self.allocation.size,
            ratio=self.allocation.ratio.as_integer_ratio(),
            policy_pending=self.policy_pending,
            auto_alters=self.auto_alters,
            counted=self._counted,
            totals=self.totals,
            above_since=self.above_since,
            is_unaltered=self.is_unaltered,
        )

    @override
    def _take_over(self, header_described: dict[str, Any], attributes: dict[str, Any], kind_state: msgspec.Raw) -> None:
        state = msgspec.msgpack.decode(kind_state, type=KindState)
        self.allocation = Allocation(state.size_now, Fraction(*state.ratio))
        self._counted = state.counted
        self.auto_alters = state.auto_alters
        self.totals, self.above_since, self.is_unaltered = state.totals, state.above_since, state.is_unaltered
        self.config = changes.with_attributes(self.config, attributes)
        described = self._described
        config, self.policy_pending = changes.adopt(
            self.config, self._usage(), header_described, described, state.policy_pending
        )
        self._assign(changes.Altered(config, self.allocation))
        for row, qmgr in enumerate(self.qmgrs):
            is_described = qmgr in described["smds"]
            if is_described and header_described["smds"].get(qmgr) != described["smds"][qmgr]:
                changes.resize_dataset(self.tables.store.datasets[row], self.config, qmgr)

    @override
    def set_params(self) -> None:
        params = self.tables.store.params[0]
        fields = changes.structure_params(self.config, self.allocation)
        fields |= {name: total for name, total in self.totals.items() if name in fields}
        fields["alters"] = self.alters_by_itself
        fields["ds_expand"] = self.config.ds_expand and not self._is_set_measured
        if self.is_believed:
            fields["full_threshold"] = min(self.config.full_threshold or LAST_WATCHED_PCT, LAST_WATCHED_PCT)
        bounds = scm_params(self.estate, self.config)
        if "scm_max" in self.totals:
            bounds["scm_max"] = bounds["scm_most"] = self.totals["scm_max"]
        if self.config.scm_max_size is None:
            self.estimate.in_scm = 0, 0
        bounds["scm_base_messages"], bounds["scm_base_elems"] = self.estimate.in_scm
        for name, value in (fields | bounds).items():
            params[name] = value
        enrol(self.tables, has_scm=self.config.scm_max_size is not None)

    @override
    def _reserve_for_put(self, length: int, max_kept: int) -> None:
        store = self.tables.store
        blocks = int(smds.max_rows(store, length, max_kept))
        self.tables.reserve("blocks", int(store.scalars[0]["block_high"]) + blocks)

    @override
    def _on_new_qmgrs(self) -> None:
        """Add the data sets of queue managers not seen before."""
        old = self.tables.store.datasets
        datasets = np.zeros(len(self.qmgrs), layout.DATASET)
        datasets[: old.size] = old
        for row in range(old.size, datasets.size):
            changes.describe_dataset(datasets[row], self.config, self.qmgrs[row])
        self.tables.set_datasets(datasets)

    @override
    def _change(self, op: int, content: dict[str, Any]) -> list[Alert]:
        if op == layout.ALTER and "size" in content and not self.alterable:
            return self._refuse_alters(int(self.tables.store.scalars[0]["clock"]))
        if op == layout.ALTER:
            altered = changes.alter(self.config, self.allocation, self._usage(), content)
        else:
            altered = changes.rebuild(self.config, self._usage(), content, self.policy_pending)
        if altered is None:
            self.tables.store.scalars["refused_alters"] += 1
            return []
        if op == layout.REBUILD or "size" in content:
            self.totals, self.above_since, self.is_unaltered = {}, None, False
        if op == layout.REBUILD:
            self.policy_pending = {}
            if altered.config.coupling_facility != self.config.coupling_facility:
                self.tables.store.scm["bound"] = 0  # others share the SCM there
        self._assign(altered)
        self.set_params()
        self._arm_thresholds()
        return []

    @override
    def value_of(self, attribute: str) -> object:
        return self.allocation.size if attribute == "size" else super().value_of(attribute)

    def rebuild(self) -> bool:
        """Rebuild the structure by its policy; return False where that is refused: what it holds does not fit."""
        self._change(layout.REBUILD, {})
        return not self.policy_pending

    def _usage(self) -> Usage:
        store = self.tables.store
        used = read_usage(store)["used"]
        return Usage(int(used[meter_rows.ENTRIES]), int(used[meter_rows.SPACE]), bool(store.datasets["messages"].any()))

    def _assign(self, altered: changes.Altered) -> None:
        """Take over changed attributes; the data sets are counted in blocks of the new DSBLOCK."""
        is_reblocked = altered.config.ds_block != self.config.ds_block
        self.config, self.allocation = altered.config, altered.allocation
        datasets = self.tables.store.datasets
        if is_reblocked:
            for row, qmgr in enumerate(self.qmgrs):
                changes.reblock_dataset(datasets[row], self.config, qmgr)
        if altered.may_expand:
            datasets["status"] = layout.NORMAL

    @property
    def scm_used(self) -> int:
        """Bytes of storage class memory in use."""
        return int(read_usage(self.tables.store)["used"][meter_rows.SCM])

    @property
    def aug_fixed(self) -> int:
        """Bytes of fixed augmented space, taken as soon as the structure is configured for SCM."""
        return 0 if self.config.scm_max_size is None else FIXED_AUGMENTED

    @property
    def aug_dynamic(self) -> int:
        """Bytes of dynamic augmented space in use."""
        return int(read_usage(self.tables.store)["used"][meter_rows.AUGMENTED])

    @property
    def alterable(self) -> bool:
        """True while nothing is in SCM and no dynamic augmented space is in use [IBM: How SCM works with IBM MQ].

        Otherwise size and ratio cannot change; MQSC ALTER CFSTRUCT, which leaves them as they are, is always taken.
        """
        return self.scm_used == 0

    # --- automatic alter -------------------------------------------------------------------------------------------

    @property
    def alters_by_itself(self) -> bool:
        """True if the twin plays what z/OS alters: never where measurements say what there is."""
        return self.config.allow_auto_alter and not self.totals and not self.has_levels_only

    @property
    def may_grow(self) -> bool:
        """True if z/OS is expected to enlarge the structure as it fills: no measurement has shown that it does not."""
        return self.config.allow_auto_alter and self.config.full_threshold > 0 and not self.is_unaltered

    @override
    def _is_busy(self) -> bool:
        use = self.tables.store.scm[0]
        return bool(use["enrolled"] and use["free_at"] != layout.NEVER) or self._is_alter_due()

    def _is_alter_due(self) -> bool:
        """Return True if the next sample would change the structure or open an alert."""
        if not self.alters_by_itself:
            return False
        usage = self._usage()
        if not changes.is_at_threshold(self.config, self.allocation, usage):
            return False
        if not self.alterable:
            return self.episodes.get(Condition.NOT_ALTERABLE, SCM) is None
        return changes.next_allocation(self.config, self.allocation, usage) != self.allocation

    def _sample(self, count: int, now: int) -> list[Alert]:
        """Alter the structure where it is at its FULLTHRESHOLD; return the alert where it cannot be. All samples since
        the last call but the last found nothing to change (`_is_alter_due`).
        """
        usage = self._usage()
        self._arm_thresholds()
        if not changes.is_at_threshold(self.config, self.allocation, usage):
            return []
        if not self.alterable:
            return self._refuse_alters(now, count)
        altered = changes.next_allocation(self.config, self.allocation, usage)
        self.auto_alters += altered != self.allocation
        sizes, self.allocation = self.sizes(), altered
        self.set_params()
        self.note_sizes(sizes)
        for row in range(len(self.qmgrs)):
            watch.look(self.tables.store, row)
        return []

    def _arm_thresholds(self) -> None:
        """Let the pools fire again whose threshold automatic alter was left to relieve."""
        for pool in (ENTRIES, ELEMENTS):
            if self.episodes.get(Condition.THRESHOLD, pool) is None:
                alerting.arm(self, Condition.THRESHOLD, pool)

    @override
    def is_relieved(self, condition: str, resource: Resource) -> bool:
        """Return True if automatic alter will take a pool below its FULLTHRESHOLD again, so that nobody needs to act.

        The next sample, within 60 s of event time, looks again. Where a measurement was taken over, one has to show it.
        """
        if condition != Condition.THRESHOLD or resource not in (ENTRIES, ELEMENTS):
            return False
        is_measured = self.drift.share_of(resource, self.clock) is not None
        is_on = self.alters_by_itself and self.alterable and not self.is_believed and not is_measured
        return is_on and changes.can_relieve(self.config, self.allocation, self._usage())

    def _refuse_alters(self, now: int, count: int = 1) -> list[Alert]:
        """Count alters of size or ratio that the data in SCM forbids; return the alert, where it is not open."""
        self.tables.store.scalars["refused_alters"] += count
        if self.episodes.get(Condition.NOT_ALTERABLE, SCM) is not None:
            return []
        return self.episodes.open(self.viewer().finding(Condition.NOT_ALTERABLE, SCM, None), now)

    @override
    def _on_tick(self, before: int, tick: int) -> list[Alert]:
        now = tick * clock.TICK
        enrolled = self.tables.store.scm[0]["enrolled"]
        alerts: list[Alert] = []
        if enrolled:
            scm.advance(self.tables.store, now * scm.NANOSECONDS)
        if self._awaits_mix:
            self._take_mix()
        samples = changes.count_samples(before, tick)
        if samples > 0 and self.alters_by_itself:
            alerts += self._sample(samples, now)
        if enrolled:
            watch.move(self.tables.store, now * scm.NANOSECONDS)
            alerts += self._check_pace(tick - before, now)
        return alerts + alerting.open_fired(self, now)

    def _check_pace(self, ticks: int, now: int) -> list[Alert]:
        """Compare the mover with what the structure grew by in the last ticks; return the alerts that change."""
        counted = count_waits(self.tables.store)
        pace = measure_pace(self.tables.store, self._counted, counted, ticks)
        self._counted = counted
        return check_pace(self.tables.store, self.config, pace, self.episodes, now)

    # --- measurements, findings, records ---------------------------------------------------------------------------

    @override
    def take_sizes(self, measured: Measured) -> None:
        totals = self._rescaled({name: total for name in _TOTALS if (total := measured.get(name))})
        if self.config.scm_max_size and (scm_max := measured.get("scm", {}).get("max")):
            totals["scm_max"] = scm_max
        is_new = any(total > self.totals.get(name, 0) for name, total in totals.items())
        self.totals = {**self.totals, **totals}
        self.allocation = self.allocation._replace(size=totals.get("size", self.allocation.size))
        self.set_params()
        if is_new:
            self.above_since, self.is_unaltered = None, False
        self._note_level(measured)
        assumed = changes.assumed_sets(self.config, self.qmgrs)
        measurement.take_data_set_sizes(self.tables.store, self.config.ds_block, self.qmgrs, measured, assumed)
        self.set_params()
        self._arm_thresholds()

    def _rescaled(self, totals: dict[str, int]) -> dict[str, int]:
        """Return measured totals with those that an alter to them changes, too.

        The size scales the pools that were not measured now. Without automatic alter nothing changes the ratio, so a
        pool scales the size and the other pool, beyond what the arithmetic of an allocation may be wrong by.
        """
        params, size = self.tables.store.params[0], self.allocation.size
        before = {"size": size, "ents_max": int(params["ents_max"]), "elems_max": int(params["elems_max"])}
        scaled = {**totals}
        if "size" in totals:
            stay = [name for name in ("ents_max", "elems_max") if name in self.totals and name not in totals]
            return scaled | {name: before[name] * totals["size"] // size for name in stay if totals["size"] != size}
        factors = [total / max(1, before[name]) for name, total in totals.items()]
        is_altered = bool(factors) and max(factors) - min(factors) < _SAME_RATIO and abs(factors[0] - 1) > _SAME_RATIO
        if not is_altered or self.config.allow_auto_alter:
            return scaled
        return {name: round(total * factors[0]) for name, total in before.items()} | scaled

    def _note_level(self, measured: Measured) -> None:
        """Note whether entries or elements are measured at FULLTHRESHOLD, and for how long z/OS has altered nothing."""
        params, now, line = self.tables.store.params[0], self.clock, self.config.full_threshold / 100
        used = {ENTRIES: (measured.get("ents_used"), "ents_max"), ELEMENTS: (measured.get("elems_used"), "elems_max")}
        shares = {name: real / max(1, int(params[field])) for name, (real, field) in used.items() if real is not None}
        above = [name for name, share in shares.items() if 0 < line <= share]
        if not above:
            self.above_since = None if shares else self.above_since
            return
        if self.above_since is None:
            levels = self.monitor.memory.levels
            self.above_since = min(levels.crossed_at(str(name), line, now, shares[name]) for name in above)
        self.is_unaltered = self.is_unaltered or now - self.above_since >= changes.SEEN_AFTER_US

    @override
    def holding(self, measured: Measured) -> Holding | None:
        """Return the messages in the structure and in SCM, and the mean length of what takes elements and blocks."""
        entries, elements = measured.get("ents_used"), measured.get("elems_used")
        each = max(1.0, elements / entries) if entries and elements is not None else 2.0
        bytes_each = pools.ELEMENT_BYTES * (1.0 + each)
        used_of_scm = measured.get("scm", {}).get("used") if self.config.scm_max_size else None
        in_scm = 0.0 if used_of_scm is None else used_of_scm / bytes_each
        if entries is None:
            counted = measurement.counted_holding(self, measured)
            return None if counted is None else counted._replace(in_scm=in_scm, has_rules=False)
        sets, blocks = self.tables.store.datasets, list[int]()
        for row, qmgr in enumerate(self.data_sets):
            used = measured.get("smds", {}).get(qmgr, {}).get("blocks_used")
            if used is None:
                blocks = []
                break
            blocks.append(max(0, used - int(smds.map_blocks(int(sets[row]["blocks_total"]), self.config.ds_block))))
        length = 0.0
        if entries >= MANY and elements is not None:
            length = mean_length(entries, elements, sum(blocks) * self.config.ds_block)
        known = float(pools.entries_in_use(self.tables.store))
        if used_of_scm is not None:
            known += self.scm_used / bytes_each
        shows_data = elements is not None if self.config.offload == "NONE" else bool(blocks)
        has_rules = shows_data and (used_of_scm is not None or not self.config.scm_max_size)
        return Holding(entries + in_scm, length, 0.0, tuple(blocks), in_scm, has_rules, known)

    @override
    def known_pools(self, measured: Measured) -> list[tuple[float, float]]:
        own, real = self.tables.store.scalars[0], measured
        return [(float(own[name]), float(real[name])) for name in ("ents_used", "elems_used") if name in real]

    @property
    @override
    def block_bytes(self) -> int:
        return self.config.ds_block

    @override
    def with_usage(self, measured: Measured) -> Measured:
        """Return a measurement in which elements that it lacks are as full as the structure.

        DISPLAY CFSTATUS has entries, and SIZEUSED as `usage_pct`. A coupling facility counts entries and elements, no
        bytes in use: SIZEUSED is the share of the elements, or of the fuller one of both [assumed]. Where it may be the
        share of the entries, elements are at most as full as they were; a baseline leaves them to the mix. The state
        record of a store of levels has no elements then: nobody has counted them.
        """
        known = self._elements_by_usage(measured)
        return measured if known is None else {**measured, "elems_used": known}

    def _elements_by_usage(self, measured: Measured) -> int | None:
        """Return the elements in use by the share of the structure in use; None: it is not needed, or does not say."""
        if "elems_used" in measured or "usage_pct" not in measured:
            return None
        params = self.tables.store.params[0]
        elements = min(100.0, measured["usage_pct"]) / 100 * int(params["elems_max"])
        entries_pct = 100 * measured.get("ents_used", 0) / max(1, int(params["ents_max"]))
        if abs(measured["usage_pct"] - entries_pct) > _ROUNDED_PCT:
            return round(elements)
        if self.drift.baseline is None and not measured.get("resync"):
            return None
        used = read_usage(self.tables.store)["used"][STRUCTURE[Pool.ELEMENTS].row]
        return min(int(used), round(elements))

    @override
    def set_baseline(self, measured: Measured, holding: Holding | None = None) -> Baseline:
        if holding is not None and self.config.scm_max_size and "used" in measured.get("scm", {}):
            use, messages = self.tables.store.scm[0], round(holding.in_scm)
            each = int(pools.elements_of(int(holding.length or self.estimate.length or USUAL_LENGTH)))
            self.estimate.in_scm = messages - int(use["messages"]), messages * each - int(use["elems"])
        return measurement.set_structure_baseline(self.tables.store, self.config.ds_block, self.qmgrs, measured)

    @override
    def compare(self, measured: Measured) -> dict[Resource, tuple[int, int, int]]:
        return measurement.compare_structure(self.tables.store, self.qmgrs, measured)

    @override
    def in_use(self, measured: Measured) -> dict[Resource, tuple[float, float]]:
        compared = self.compare(measured).items()
        return {resource: (used, total) for resource, (_, used, total) in compared if total > 0}

    @property
    @override
    def _awaits_mix(self) -> bool:
        baseline = self.drift.baseline
        return baseline is not None and baseline.get("elements") is None and int(self._scalars["base_ents"]) > 0

    def _take_mix(self) -> None:
        """Give a baseline without elements those of its entries, at the mean of the messages held."""
        scalars, baseline = self._scalars, self.drift.baseline
        entries, elements = int(scalars["ents_used"]), int(scalars["elems_used"])
        if baseline is None or entries <= 0:
            return
        room = max(0, int(self.tables.store.params[0]["elems_max"]) - elements)
        scalars["base_elems"] = min(room, round(int(scalars["base_ents"]) * elements / entries))
        self.drift.baseline = {**baseline, "elements": int(scalars["base_elems"])}
        for row in range(len(self.qmgrs)):
            watch.look(self.tables.store, row)

    @property
    def _scalars(self) -> np.void:
        row: np.void = self.tables.store.scalars[0]
        return row

    @override
    def compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        return measurement.compare_structure_sizes(self.tables.store, self.allocation.size, self.qmgrs, measured)

    @override
    def own_view(self, resource: Resource) -> ResourceView:
        counted = messages_of_mean_length(self.tables.store, self.queues, self.counted)
        room = room_to_grow(self.estate, self.config, self.allocation.size)
        return structure_resource(
            self.config, self.tables.store, self.qmgrs, len(self.queues), resource, counted, room, grows=self.may_grow
        )

    @override
    def displays(self) -> tuple[Step, ...]:
        return (
            Step("See entries and size", display_structure_status(self.config)),
            Step("See what is allocated", display_structure(self.config.policy_name)),
        )

    @staticmethod
    @override
    def example(qmgr: str, queue: str) -> tuple[Structure, tuple[Resource, ...]]:
        config = Structure(
            name="WARM/UP",
            queue_sharing_group="WARM",
            queue_managers=(qmgr,),
            size=1 << 20,
            scm_max_size=1 << 20,
            cf_level=5,
            queues=(queue,),
            smds={qmgr: Smds(size=1 << 24)},
        )
        return config, (ENTRIES, ELEMENTS, Resource(Pool.SMDS, qmgr))

    @override
    def usage_rows(self) -> dict[Resource, int]:
        sets = {Resource(Pool.SMDS, qmgr): DATA_SET.row + row for row, qmgr in enumerate(self.data_sets)}
        return super().usage_rows() | sets

    @override
    def fill_model(self, tick: int) -> FillModel:
        return structure_model(self.tables.store, self.config, self.qmgrs, tick, alters=self.may_grow)

    @override
    def _report_values(self, target: str) -> StructureValues:
        return StructureValues(
            size=self.allocation.size,
            scm_max=self.config.scm_max_size or 0,
            scm_used=self.scm_used,
            aug_fixed=self.aug_fixed,
            aug_dynamic=self.aug_dynamic,
        )

    def _limits_unknown(self) -> tuple[str, ...]:
        """Return its data sets that expand up to a limit that the estate does not describe."""
        if self.config.offload != "SMDS":
            return ()
        limited = self.tables.store.datasets["limited"].tolist()
        expanding = zip(self.qmgrs, limited, strict=False) if self.config.ds_expand else ()
        unlimited = {qmgr for qmgr, is_limited in expanding if not is_limited}
        return _as_data_sets(tuple(sorted(unlimited | self._sizes_assumed)))

    @property
    def _sizes_assumed(self) -> set[str]:
        """Queue managers whose data set was neither described nor measured: it counts as large as MQ allows."""
        datasets, largest = self.tables.store.datasets, SMDS_MAX_SIZE // self.config.ds_block
        qmgrs = self.qmgrs
        assumed = changes.assumed_sets(self.config, qmgrs)
        return {qmgrs[row] for row in range(datasets.size) if datasets[row]["limit"] >= largest} & assumed

    @property
    def _is_set_measured(self) -> bool:
        """True if no data set is described, and one was measured: what is measured says what there is."""
        qmgrs = self.qmgrs
        assumed = changes.assumed_sets(self.config, qmgrs)
        return len(assumed) == len(qmgrs) and len(self._sizes_assumed) < len(assumed)

    @override
    def _record(self, common: StateRecord) -> StructureState:
        store, qmgrs = self.tables.store, self.qmgrs
        scalars, params = store.scalars[0], store.params[0]
        usage = read_usage(store)
        used = usage["used"].tolist()
        entries, elements, scm_bytes = used[meter_rows.ENTRIES], used[meter_rows.SPACE], used[meter_rows.SCM]
        doubt = messages_of_mean_length(store, self.queues, self.counted)
        usage_pct = pools_pct(store)
        puts_per_s, elements_per_s = demand_rates(
            store, lambda: put_elements(store, len(qmgrs), usage_pct / 100), self.began
        )
        limits_unknown = self._limits_unknown()
        return StructureState(
            **asdict(common) | {"limits_unknown": limits_unknown},
            size=self.allocation.size,
            ents_max=int(params["ents_max"]),
            ents_used=entries,
            elems_max=int(params["elems_max"]),
            elems_used=elements,
            elems_low=max(0, elements - doubt),
            elems_high=elements + doubt,
            usage_pct=usage_pct,
            alterable=scm_bytes == 0,
            policy_pending=self.policy_pending or None,
            auto_alters=self.auto_alters if self.config.allow_auto_alter else None,
            offloaded_messages=int(scalars["offloaded_messages"]),
            offloaded_bytes=int(scalars["offloaded_bytes"]),
            offload_rule=int(pools.highest_rule(store)),
            demand=ElementDemand(puts_per_s=puts_per_s, elements_per_s=elements_per_s),
            smds={
                qmgr: data_set_state(store.datasets[row], usage[DATA_SET.row + row]) for row, qmgr in enumerate(qmgrs)
            },
            scm=scm_state(store),
        )


@lru_cache(maxsize=1024)
def _as_data_sets(qmgrs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of the data sets of queue managers, sorted; those of a group have the same ones."""
    return tuple(sorted(str(Resource(Pool.SMDS, qmgr)) for qmgr in qmgrs))
