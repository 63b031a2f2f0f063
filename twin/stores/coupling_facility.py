"""The live twin of what the structures of a coupling facility share: SCM, and storage for augmented space.

Each structure knows its own SCMMAXSIZE; that their sum may exceed the SCM there is, and that augmented space comes out
of the storage the structures leave, only the coupling facility can tell. Source: domain.md section 3; contract
sections 3, 4 and 7 ("`scm-exhausted`, `augmented-exhausted` ... say that it is already so").
"""

from __future__ import annotations

from typing import Any

import msgspec

from twin.alerts import shared_texts
from twin.alerts.episodes import Alert, Finding
from twin.alerts.resource_view import HYSTERESIS_PCT
from twin.allocation import FIXED_AUGMENTED, allocate
from twin.conditions import CRITICAL, WARNING, Condition
from twin.estate import CouplingFacility, Structure
from twin.stores.reports import Report, StructureValues
from twin.stores.shared_store import DRIFT_TOLERANCE_PCT, SharedStore
from twin.units import readable_size


class _Contents(msgspec.Struct):
    heard: dict[str, StructureValues] = {}
    base_scm: int = 0  # baseline, as measured first, bytes
    base_augmented: int = 0


class CouplingFacilityTwin(SharedStore[CouplingFacility]):
    """See the module."""

    kind = "coupling_facility"
    alterable = ("size", "scm")
    settles_after = 7  # ticks: an alert clears after a minute of calm

    def _open(self, contents: bytes) -> None:
        self._own = msgspec.msgpack.decode(contents, type=_Contents) if contents else _Contents()

    def _contents(self) -> bytes:
        return msgspec.msgpack.encode(self._own)

    def _hear(self, report: Report) -> None:
        if isinstance(report.values, StructureValues):
            self._own.heard[report.source] = report.values

    def _leave(self, source: str) -> None:
        self._own.heard.pop(source, None)

    def _takes(self, changes: dict[str, Any]) -> bool:  # noqa: ARG002 -- an ALTER of a facility names nothing else
        return True

    # --- what there is ---------------------------------------------------------------------------------------------

    def _sharing(self) -> dict[str, StructureValues]:
        """What each structure with SCM takes: as reported last, by the estate before its first report."""
        left = set(self.kept.frontier.left) - self._own.heard.keys()
        described = {
            name: StructureValues(
                size=allocate(config).size,
                scm_max=config.scm_max_size or 0,
                scm_used=0,
                aug_fixed=FIXED_AUGMENTED,
                aug_dynamic=0,
            )
            for name, config in self.sources.items()
            if isinstance(config, Structure) and name not in left
        }
        return described | self._own.heard

    def _others(self) -> int:
        """Bytes allocated to the structures that do not report: those without SCM."""
        stores = [self.estate.stores[name] for name in self.config.structures if name not in self.sources]
        others = [store for store in stores if store.name not in self._own.heard]
        return sum(allocate(store).size for store in others if isinstance(store, Structure))

    def _measures(self) -> _Measures:
        sharing = self._sharing().values()
        augmented = sum(values.aug_fixed + values.aug_dynamic for values in sharing) + self._own.base_augmented
        sizes = sum(values.size for values in sharing) + self._others()
        return _Measures(
            scm_total=self.config.scm or 0,
            scm_committed=sum(values.scm_max for values in sharing),
            scm_used=sum(values.scm_used for values in sharing) + self._own.base_scm,
            augmented=augmented,
            free=None if self.config.size is None else self.config.size - sizes - augmented,
        )

    # --- alerts ----------------------------------------------------------------------------------------------------

    def _look(self, now: int) -> list[Alert]:  # noqa: ARG002 -- what it shares changes by reports alone
        has = self._measures()
        known = self.config.size is not None  # else only its CFRM policy is, which says nothing of SCM
        return [
            *self._follow(
                Condition.SCM_OVERCOMMITTED,
                "scm",
                holds=known and has.scm_committed > has.scm_total,
                is_over=not known or has.scm_committed <= has.scm_total,
                finding=lambda _: self._overcommitted(has),
                over=lambda severity: self._over(Condition.SCM_OVERCOMMITTED, "scm", severity, has),
            ),
            *self._follow(
                Condition.SCM_EXHAUSTED,
                "scm",
                holds=0 < has.scm_total <= has.scm_used,
                is_over=has.scm_used * 100 < (100 - HYSTERESIS_PCT) * has.scm_total or not has.scm_total,
                finding=lambda _: self._scm_exhausted(has),
                over=lambda severity: self._over(Condition.SCM_EXHAUSTED, "scm", severity, has),
            ),
            *self._follow(
                Condition.AUGMENTED_EXHAUSTED,
                "augmented",
                holds=has.free is not None and has.augmented > 0 and has.free <= 0,
                is_over=has.free is None or has.free * 100 > HYSTERESIS_PCT * (has.augmented + has.free),
                finding=lambda _: self._augmented_exhausted(has),
                over=lambda severity: self._over(Condition.AUGMENTED_EXHAUSTED, "augmented", severity, has),
            ),
        ]

    def _overcommitted(self, has: _Measures) -> Finding:
        wanting = {name: values.scm_max for name, values in self._sharing().items()}
        return Finding(
            condition=Condition.SCM_OVERCOMMITTED,
            resource="scm",
            severity=WARNING,
            usage_pct=has.scm_committed_pct,
            full_probability=None,
            fillers=(),
            cause=shared_texts.scm_overcommitted(self.name, has.scm_total, wanting),
            actions=shared_texts.scm_overcommitted_actions(self.name, has.scm_total, wanting),
        )

    def _scm_exhausted(self, has: _Measures) -> Finding:
        using = {name: values.scm_used for name, values in self._sharing().items()}
        return Finding(
            condition=Condition.SCM_EXHAUSTED,
            resource="scm",
            severity=CRITICAL,
            usage_pct=has.scm_pct,
            full_probability=1.0,
            fillers=(),
            cause=shared_texts.scm_exhausted(self.name, has.scm_total, using),
            actions=shared_texts.scm_exhausted_actions(self.name, using),
        )

    def _augmented_exhausted(self, has: _Measures) -> Finding:
        using = {name: values.aug_fixed + values.aug_dynamic for name, values in self._sharing().items()}
        return Finding(
            condition=Condition.AUGMENTED_EXHAUSTED,
            resource="augmented",
            severity=CRITICAL,
            usage_pct=has.augmented_pct,
            full_probability=1.0,
            fillers=(),
            cause=shared_texts.augmented_exhausted(self.name, self.config.size or 0, using),
            actions=shared_texts.augmented_exhausted_actions(self.name, using),
        )

    def _over(self, condition: str, resource: str, severity: str, has: _Measures) -> Finding:
        usage = has.augmented_pct if resource == "augmented" else has.scm_pct
        scm = f"SCM of {self.name}"
        what: dict[str, str] = {
            Condition.SCM_OVERCOMMITTED: f"{scm}: {readable_size(has.scm_total)}, its structures may use"
            f" {readable_size(has.scm_committed)}",
            Condition.SCM_EXHAUSTED: f"{scm}: {readable_size(has.scm_used)} of {readable_size(has.scm_total)} in use",
            Condition.AUGMENTED_EXHAUSTED: f"Storage of {self.name}: {readable_size(max(0, has.free or 0))} free",
        }
        return Finding(
            condition=condition,
            resource=resource,
            severity=severity,
            usage_pct=has.scm_committed_pct if condition == Condition.SCM_OVERCOMMITTED else usage,
            full_probability=None,
            fillers=(),
            cause=f"{what[condition]}, alert cleared.",
            actions=(),
        )

    # --- measurements ----------------------------------------------------------------------------------------------

    def _baseline(self, measured: dict[str, Any]) -> dict[str, Any]:
        has = self._measures()
        self._own.base_scm = max(0, measured.get("scm_used", 0) - has.scm_used)
        self._own.base_augmented = max(0, measured.get("augmented", 0) - has.augmented)
        return {"scm_used": self._own.base_scm, "augmented": self._own.base_augmented}

    def _draw_down(self, measured: dict[str, Any]) -> None:
        own, has = self._own, self._measures()
        if "scm_used" in measured:
            own.base_scm = min(own.base_scm, max(0, measured["scm_used"] - (has.scm_used - own.base_scm)))
        if "augmented" in measured:
            beyond = measured["augmented"] - (has.augmented - own.base_augmented)
            own.base_augmented = min(own.base_augmented, max(0, beyond))

    def _compared(self, measured: dict[str, Any]) -> dict[str, tuple[float, float, float]]:
        has = self._measures()
        found: dict[str, tuple[float, float, float]] = {}
        if "scm_used" in measured:
            found["scm"] = (has.scm_used, measured["scm_used"], has.scm_total)
        if "augmented" in measured:
            found["augmented"] = (has.augmented, measured["augmented"], has.augmented + max(0, has.free or 0))
        return found

    def _drifted(self, resource: str) -> Finding:
        has = self._measures()
        return Finding(
            condition=Condition.DRIFT,
            resource=resource,
            severity=WARNING,
            usage_pct=has.augmented_pct if resource == "augmented" else has.scm_pct,
            full_probability=None,
            fillers=(),
            cause=shared_texts.drifted(self.name, resource, self.kept.drift.pct or 0.0, DRIFT_TOLERANCE_PCT),
            actions=(f"Compare size and scm of {self.name} in the estate with D CF,CFNAME={self.name}",),
        )

    def _fields(self) -> dict[str, Any]:
        has = self._measures()
        return {
            "scm_total": has.scm_total,
            "scm_committed": has.scm_committed,
            "scm_used": has.scm_used,
            "storage_free": None if has.free is None else max(0, has.free),
            "augmented": has.augmented,
        }


class _Measures(msgspec.Struct, frozen=True):
    """Bytes of a coupling facility. free: below 0 where structures and augmented space exceed it; None: not known."""

    scm_total: int
    scm_committed: int
    scm_used: int
    augmented: int
    free: int | None

    @property
    def scm_pct(self) -> float:
        """Percent of the SCM in use; of none, 0."""
        return round(100.0 * self.scm_used / self.scm_total, 3) if self.scm_total else 0.0

    @property
    def scm_committed_pct(self) -> float:
        """Percent of the SCM that structures may use; of none, 100."""
        return round(100.0 * self.scm_committed / self.scm_total, 3) if self.scm_total else 100.0

    @property
    def augmented_pct(self) -> float:
        """Percent in use of what augmented space may have: itself and the storage that is free."""
        most = self.augmented + max(0, self.free or 0)
        return round(100.0 * self.augmented / most, 3) if most else 0.0
