"""MEASURE: what the real system says it holds. The first sets the baseline, later ones show the drift.

The model is never overwritten: what the first measurement finds beyond it becomes a baseline that unmatched gets draw
down; what later ones find is `drift_pct`, and an alert where it stays. Sources: docs/events.md, "Measurements".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from twin.alerts import shared_texts
from twin.alerts.episodes import Alert, Episodes, Finding
from twin.conditions import WARNING, Condition

_ALERT_STREAK = 3  # measurements in a row beyond the tolerance before the alert opens
# More than any structure or data set holds: a wrong measurement must not leave 64 bits in `kernels.pools.base_left`.
_MAX_EXCESS = 1 << 48
MAX_MESSAGES = 1 << 31


class Drift(msgspec.Struct, kw_only=True):
    """The baseline as it was set, and the drift of the last measurement.

    streak: measurements in a row beyond the tolerance; cleared_at: the store's clock when the last alert was cleared.
    """

    baseline: dict[str, Any] | None = None
    pct: float | None = None
    resource: str | None = None
    streak: int = 0
    cleared_at: int | None = None


def judge(
    drift: Drift,
    compared: Mapping[str, tuple[float, float, float]],
    tolerance_pct: float,
    episodes: Episodes,
    now: int,
    make_finding: Callable[[str], Finding],
) -> list[Alert]:
    """Keep what a measurement showed; return the alerts it opens or clears.

    Args:
        drift: what is kept of measurements; written.
        compared: (model, measured, total) by resource measured; one with a total of 0 is left out.
        tolerance_pct: drift beyond it counts.
        episodes: the store's open alerts.
        now: the store's clock, microseconds.
        make_finding: returns the finding about a resource.
    """
    pcts = {name: 100.0 * (model - real) / total for name, (model, real, total) in compared.items() if total > 0}
    if not pcts:
        return []
    resource, pct = max(pcts.items(), key=lambda entry: abs(entry[1]))
    drift.pct, drift.resource = round(pct, 4), resource
    drift.streak = drift.streak + 1 if abs(pct) > tolerance_pct else 0
    episode = next((episode for episode in episodes if episode.condition == Condition.DRIFT), None)
    # An alert's id holds the time it opened: two of one resource must not open at the same time.
    if episode is None and drift.streak >= _ALERT_STREAK and drift.cleared_at != now:
        return [episodes.open(make_finding(resource), now)]
    if episode is not None and drift.streak == 0:
        drift.cleared_at = now
        return [episodes.clear(episode, make_finding(episode.resource), now)]
    return []


def present(measured: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a measurement that are not null, those of `smds` and `scm` too."""
    fields = {name: value for name, value in measured.items() if value is not None}
    if "scm" in fields:
        fields["scm"] = present(fields["scm"])
    if "smds" in fields:
        fields["smds"] = {qmgr: present(dataset) for qmgr, dataset in fields["smds"].items()}
    return fields


def excess(measured: dict[str, Any], field: str, model: int, max_excess: int = _MAX_EXCESS) -> int:
    """Return by how much a field was measured beyond the model; 0 where it was not measured."""
    return min(max_excess, max(0, measured[field] - model)) if field in measured else 0


def drift_finding(
    store: str, resource: str, pct: float, tolerance_pct: float, usage_pct: float, check_against: str
) -> Finding:
    """Return the finding about a resource of which the twin holds `pct` percent more than measured (below 0: less)."""
    return Finding(
        condition=Condition.DRIFT,
        resource=resource,
        severity=WARNING,
        usage_pct=usage_pct,
        full_probability=None,
        fillers=(),
        cause=shared_texts.drifted(store, resource, pct, tolerance_pct),
        actions=(
            "Look for events missing from the topic (`gaps`) and for applications whose calls are not reported",
            check_against,
        ),
    )
