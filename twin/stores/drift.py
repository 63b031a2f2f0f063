"""MEASURE: what the real system says it holds. The first sets the baseline, later ones show the drift.

Source: contract section 7. The model is never overwritten: what the first measurement finds beyond it becomes a
baseline that unmatched gets draw down; what later ones find is told as `drift_pct`, and as an alert where it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from twin.alerts import shared_texts
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.conditions import WARNING, Condition

if TYPE_CHECKING:
    from twin.stores.message_store import MessageStore

_PATIENCE = 3  # measurements in a row beyond the tolerance before the alert opens
# More than any structure or data set holds: a wrong measurement must not leave 64 bits in `kernels.pools.base_left`.
_MOST = 1 << 48
MOST_MESSAGES = 1 << 31


class Drift(msgspec.Struct, kw_only=True):
    """Baseline as it was set, and the drift of the last measurement."""

    baseline: dict[str, Any] | None = None
    pct: float | None = None
    resource: str | None = None
    beyond: int = 0  # measurements in a row beyond the tolerance
    cleared_at: int | None = None  # clock when the last alert was cleared


def measure(twin: MessageStore, measured: dict[str, Any]) -> list[Alert]:
    """Take one measurement: any fields of the state record, null as absent. The alerts it brings."""
    measured = present(measured)
    if twin.drift.baseline is None:
        twin.drift.baseline = twin.set_baseline(measured)
    now = int(twin.tables.store.scalars[0]["clock"])
    tolerance = twin.config.drift_tolerance_pct
    return judge(
        twin.drift, twin.compared(measured), tolerance, twin.episodes, now, lambda resource: _finding(twin, resource)
    )


def judge(
    drift: Drift,
    compared: Mapping[str, tuple[float, float, float]],
    tolerance_pct: float,
    episodes: Episodes,
    now: int,
    finding: Callable[[str], Finding],
) -> list[Alert]:
    """Keep what a measurement showed; the alerts it opens or clears.

    compared: (model, measured, total) by resource measured, left out where it has no total; now: the store's clock,
    microseconds; finding: what to say of a resource.
    """
    pcts = {name: 100.0 * (model - real) / total for name, (model, real, total) in compared.items() if total > 0}
    if not pcts:
        return []
    resource, pct = max(pcts.items(), key=lambda entry: abs(entry[1]))
    drift.pct, drift.resource = round(pct, 4), resource
    drift.beyond = drift.beyond + 1 if abs(pct) > tolerance_pct else 0
    episode = next((one for one in episodes if one.condition == Condition.DRIFT), None)
    # An alert's id holds the time it opened: two of one resource must not open at the same time.
    if episode is None and drift.beyond >= _PATIENCE and drift.cleared_at != now:
        return [episodes.open(finding(resource), now)]
    if episode is not None and drift.beyond == 0:
        drift.cleared_at = now
        return [episodes.clear(episode, finding(episode.resource), now)]
    return []


def present(measured: dict[str, Any]) -> dict[str, Any]:
    """The fields of a measurement that are not null, those of `smds` and `scm` too."""
    there = {name: value for name, value in measured.items() if value is not None}
    if "scm" in there:
        there["scm"] = present(there["scm"])
    if "smds" in there:
        there["smds"] = {qmgr: present(fields) for qmgr, fields in there["smds"].items()}
    return there


def beyond(measured: dict[str, Any], field: str, model: int, most: int = _MOST) -> int:
    """What was measured of a field beyond the model; 0 where it was not measured."""
    return min(most, max(0, measured[field] - model)) if field in measured else 0


def _finding(twin: MessageStore, resource: str) -> Finding:
    return Finding(
        condition=Condition.DRIFT,
        resource=resource,
        severity=WARNING,
        usage_pct=twin.viewer().usage_pct(resource),
        full_probability=None,
        fillers=(),
        cause=shared_texts.drifted(twin.name, resource, twin.drift.pct or 0.0, twin.config.drift_tolerance_pct),
        actions=(
            "Look for events missing from the topic (`gaps`) and for applications whose calls are not reported",
            twin.check_against,
        ),
    )
