"""The live twin of what the structures of a coupling facility share: SCM, and the storage that they may grow into.

A structure's twin knows its own SCMMAXSIZE only. The coupling facility's twin checks their sum against the SCM
installed, and augmented space against the storage that structures leave free. SIZE is a promise that all of them share:
what each can still have is in the state record. Sources: docs/storage-model.md, "What several stores share";
docs/alerts.md, "Conditions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import asdict
from typing_extensions import override

from twin.alerts import texts
from twin.alerts.episodes import CALM_TICKS, Alert, Finding
from twin.alerts.findings import HYSTERESIS_PCT
from twin.base.conditions import AUGMENTED, INFO, SCM, Condition, Resource
from twin.base.units import percent, readable_size
from twin.capacity import allocate
from twin.estate import CouplingFacility
from twin.estate.model import DYNAMIC_AUGMENTED_PPM, FIXED_AUGMENTED, structures_of
from twin.events import Measured
from twin.records import Action, Baseline, CouplingFacilityState, ScmShare, StateRecord, StorageShare
from twin.stores.drift import SizeMeasured
from twin.stores.reports import Report, StructureValues
from twin.stores.shared_store import SharedStore


class _FacilityState(msgspec.Struct):
    """State of a coupling facility beside that of any shared store."""

    latest: dict[str, StructureValues] = {}  # values last reported, by structure
    base_scm: int = 0  # baseline, bytes
    base_augmented: int = 0
    free_measured: int | None = None  # storage_free as it was measured last


class CouplingFacilityTwin(SharedStore[CouplingFacility, StructureValues]):
    """The twin of a coupling facility."""

    kind = "coupling_facility"
    takes = StructureValues
    measurable = ("scm_used", "augmented")  # of a baseline; storage_free is taken as it is
    settling_ticks = CALM_TICKS + 1  # an alert clears after that time of calm

    @override
    def _restore(self, kind_state: bytes) -> None:
        self._facility = msgspec.msgpack.decode(kind_state, type=_FacilityState) if kind_state else _FacilityState()

    @override
    def _kind_state(self) -> bytes:
        return msgspec.msgpack.encode(self._facility)

    @override
    def _on_report(self, report: Report, values: StructureValues) -> None:
        self._facility.latest[report.source] = values

    @override
    def _on_source_left(self, source: str) -> None:
        self._facility.latest.pop(source, None)

    @override
    def _can_alter(self, changes: dict[str, Any]) -> bool:
        return True

    # --- usage -----------------------------------------------------------------------------------------------------

    def _structures(self) -> dict[str, StructureValues]:
        """Return the values of each structure with SCM: those last reported, else those the estate implies."""
        former = set(self._state.frontier.former_sources) - self._facility.latest.keys()
        described = {
            config.name: StructureValues(
                size=allocate(config).size,
                scm_max=config.scm_max_size or 0,
                scm_used=0,
                aug_fixed=FIXED_AUGMENTED,
                aug_dynamic=0,
            )
            for config in structures_of(self.sources.values())
            if config.name not in former
        }
        return described | self._facility.latest

    def _unreported_bytes(self) -> int:
        """Return the bytes allocated to structures without SCM, which do not report."""
        stores = [self.estate.stores[name] for name in self.config.structures if name not in self.sources]
        unreported = [store for store in stores if store.name not in self._facility.latest]
        return sum(allocate(store).size for store in structures_of(unreported))

    def _usage(self) -> _FacilityUsage:
        structures = self._structures().values()
        augmented = sum(values.aug_fixed + values.aug_dynamic for values in structures) + self._facility.base_augmented
        sizes = sum(values.size for values in structures) + self._unreported_bytes()
        return _FacilityUsage(
            scm_total=self.config.scm or 0,
            scm_committed=sum(values.scm_max for values in structures),
            scm_used=sum(values.scm_used for values in structures) + self._facility.base_scm,
            augmented=augmented,
            free=None if self.config.size is None else self.config.size - self.config.dump_space - sizes - augmented,
        )

    def _storage(self, usage: _FacilityUsage) -> dict[str, StorageShare]:
        """Return the storage of each structure. Whoever asks first gets the free space.

        A structure without SCM counts as it is allocated at first, as it does not report. A measurement of the free
        storage has what all have grown by.
        """
        free = usage.free if self._facility.free_measured is None else self._facility.free_measured
        reported, shares = self._structures(), {}
        for name in sorted({*self.config.structures, *reported}):
            config = self.estate.structures.get(name)
            if config is not None:
                size = reported[name].size if name in reported else allocate(config).size
                left = max(0, config.size - size)
                growth = None if free is None else min(left, max(0, free))
                shares[name] = StorageShare(size=size, size_max=config.size, growth_left=growth)
        return shares

    def _promised(self, shares: Mapping[str, StorageShare], usage: _FacilityUsage) -> int:
        """Return the bytes that structures may have together, as XCF_CF_STR_MAXSPACE of Health Checker sums them."""
        structures = self._structures().values()
        scm = min(usage.scm_total, usage.scm_committed)
        augmented = sum(values.aug_fixed for values in structures) - (-scm * DYNAMIC_AUGMENTED_PPM // 1_000_000)
        sizes = sum(max(share.size, share.size_max) for share in shares.values()) + sum(self.config.others.values())
        return sizes + augmented + self.config.dump_space

    def _policy(self) -> str | None:
        """Return the name of the CFRM policy, None where the estate has none."""
        on_it = structures_of(self.estate.stores[name] for name in self.config.structures)
        return next((store.cfrm_policy for store in on_it if store.cfrm_policy), None)

    # --- alerts ----------------------------------------------------------------------------------------------------

    @override
    def _check_conditions(self, now: int) -> list[Alert]:
        usage = self._usage()
        is_described = self.config.size is not None  # else only its CFRM policy is known, which does not have its SCM
        scm, total = f"SCM of {self.name}", readable_size(usage.scm_total)
        free, used = readable_size(max(0, usage.free or 0)), readable_size(usage.scm_used)
        structures = self._structures()
        return [
            *self._update(
                (Condition.SCM_OVERCOMMITTED, SCM, usage.scm_committed_pct),
                {name: values.scm_max for name, values in structures.items()},
                lambda scm_max: texts.scm_overcommitted(self.name, usage.scm_total, scm_max),
                f"{scm}: {total}, its structures may use {readable_size(usage.scm_committed)}",
                holds=is_described and usage.scm_committed > usage.scm_total,
                is_over=not is_described or usage.scm_committed <= usage.scm_total,
                total=usage.scm_total,
            ),
            *self._update(
                (Condition.SCM_EXHAUSTED, SCM, usage.scm_pct),
                {name: values.scm_used for name, values in structures.items()},
                lambda scm_used: texts.scm_exhausted(self.name, usage.scm_total, scm_used),
                f"{scm}: {used} of {total} in use",
                holds=0 < usage.scm_total <= usage.scm_used,
                is_over=usage.scm_used * 100 < (100 - HYSTERESIS_PCT) * usage.scm_total or not usage.scm_total,
            ),
            *self._update(
                (Condition.AUGMENTED_EXHAUSTED, AUGMENTED, usage.augmented_pct),
                {name: values.aug_fixed + values.aug_dynamic for name, values in structures.items()},
                lambda augmented: texts.augmented_exhausted(self.name, self.config.size or 0, augmented),
                f"Storage of {self.name}: {free} free",
                holds=usage.free is not None and usage.augmented > 0 and usage.free <= 0,
                is_over=usage.free is None or usage.free * 100 > HYSTERESIS_PCT * (usage.augmented + usage.free),
            ),
        ]

    def _update(
        self,
        subject: tuple[str, Resource, float],
        amounts: Mapping[str, int],
        describe: Callable[[Mapping[str, int]], str],
        state: str,
        *,
        holds: bool,
        is_over: bool,
        total: int | None = None,
    ) -> list[Alert]:
        """Open, update or clear an alert.

        subject: condition, resource, its usage in percent; amounts: bytes by structure; state: the resource in words;
        total: bytes that the structures may have together, where that is not to be full.
        """
        condition, resource, usage_pct = subject

        def make(severity: str | None, *, is_cleared: bool = False) -> Finding:
            actions: tuple[Action, ...] = ()
            if not is_cleared:
                facts = texts.facility_facts(self.name, amounts, self._policy(), total)
                actions = self.episodes.runbook.actions(condition, facts)
            return Finding(
                condition=condition,
                resource=resource,
                severity=severity if severity and is_cleared else INFO,
                usage_pct=usage_pct,
                full_probability=None if is_cleared or total is not None else 1.0,
                cause=f"{state}, alert cleared." if is_cleared else describe(amounts),
                runbook=actions,
            )

        return self._update_alert(
            condition,
            resource,
            holds=holds,
            is_over=is_over,
            make_finding=make,
            make_cleared=partial(make, is_cleared=True),
        )

    # --- measurements ----------------------------------------------------------------------------------------------

    @override
    def _set_baseline(self, measured: Measured) -> Baseline:
        facility, usage = self._facility, self._usage()
        facility.base_scm = max(0, measured.get("scm_used", 0) - usage.scm_used)
        facility.base_augmented = max(0, measured.get("augmented", 0) - usage.augmented)
        excesses = {"scm_used": facility.base_scm, "augmented": facility.base_augmented}
        return {name: value if name in measured else None for name, value in excesses.items()}

    @override
    def _draw_down(self, measured: Measured) -> None:
        facility, usage = self._facility, self._usage()
        facility.free_measured = measured.get("storage_free", facility.free_measured)
        if "scm_used" in measured:
            excess = measured["scm_used"] - (usage.scm_used - facility.base_scm)
            facility.base_scm = min(facility.base_scm, max(0, excess))
        if "augmented" in measured:
            excess = measured["augmented"] - (usage.augmented - facility.base_augmented)
            facility.base_augmented = min(facility.base_augmented, max(0, excess))

    @override
    def _compare(self, measured: Measured) -> dict[Resource, tuple[float, float, float]]:
        usage = self._usage()
        compared: dict[Resource, tuple[float, float, float]] = {}
        if "scm_used" in measured:
            compared[SCM] = (usage.scm_used, measured["scm_used"], usage.scm_total)
        if "augmented" in measured:
            compared[AUGMENTED] = (usage.augmented, measured["augmented"], usage.max_augmented)
        return compared

    @override
    def _compare_sizes(self, measured: Measured) -> list[SizeMeasured]:
        total = measured.get("scm_total")
        return [] if total is None else [SizeMeasured(str(SCM), "scm_total", self.config.scm or 0, total)]

    @override
    def _drift_finding(self, resource: Resource) -> Finding:
        usage_pct = self._usage().resource_pct(resource)
        return msgspec.structs.replace(super()._drift_finding(resource), usage_pct=usage_pct)

    @override
    def _record(self, common: StateRecord) -> CouplingFacilityState:
        usage, has_reports = self._usage(), bool(self._facility.latest) or not self.sources
        shares = self._storage(usage)
        return CouplingFacilityState(
            **asdict(common),
            scm_total=usage.scm_total,
            scm_committed=usage.scm_committed,
            scm_used=usage.scm_used if self._is_known("scm_used", reported=has_reports) else None,
            storage_total=self.config.size,
            storage_promised=self._promised(shares, usage),
            storage_free=None if usage.free is None else max(0, usage.free),
            storage_measured=self._facility.free_measured,
            augmented=usage.augmented,
            storage=shares,
            structures=self._scm_by_structure(usage),
            late_reports=self._state.late_reports,
        )

    def _scm_by_structure(self, usage: _FacilityUsage) -> dict[str, ScmShare]:
        """Return the SCM in use by each structure and what it may still take: what others use is not there for it.

        Nothing but SCMMAXSIZE limits it where only the CFRM policy of the coupling facility is known. A structure that
        has not reported has null.
        """
        left = None if self.config.size is None else usage.scm_total - usage.scm_used
        by_structure = {}
        for name, values in sorted(self._structures().items()):
            own = values.scm_max - values.scm_used
            is_known = name in self._facility.latest
            by_structure[name] = ScmShare(
                scm_used=values.scm_used if is_known else None,
                scm_left=max(0, own if left is None else min(own, left)) if is_known else None,
            )
        return by_structure


class _FacilityUsage(msgspec.Struct, frozen=True):
    """Usage of a coupling facility, bytes, as in its state record."""

    scm_total: int
    scm_committed: int
    scm_used: int
    augmented: int
    free: int | None  # left by structures and augmented space, below 0 where they exceed it; None: size not known

    @property
    def scm_pct(self) -> float:
        """Percent of the SCM in use; 0 without SCM."""
        return percent(self.scm_used, self.scm_total)

    @property
    def scm_committed_pct(self) -> float:
        """Sum of SCMMAXSIZE, percent of the SCM; 100 without SCM."""
        return percent(self.scm_committed, self.scm_total, of_nothing=100.0)

    @property
    def augmented_pct(self) -> float:
        """Percent of `max_augmented` in use."""
        return percent(self.augmented, self.max_augmented)

    @property
    def max_augmented(self) -> int:
        """Bytes that augmented space could have: those in use and the storage that is free."""
        return self.augmented + max(0, self.free or 0)

    def resource_pct(self, resource: Resource) -> float:
        """Return the percent in use of SCM or augmented space."""
        return self.augmented_pct if resource == AUGMENTED else self.scm_pct
