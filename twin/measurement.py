"""MEASURE: what the real system says it holds. The first sets the baseline, later ones show the drift.

Source: contract section 7. The model is never overwritten: what the first measurement finds beyond it becomes a
baseline that unmatched gets draw down; what later ones find is told as `drift_pct`, and as an alert where it stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from twin.alerts import WARNING, Alert, Finding

if TYPE_CHECKING:
    from twin.message_store import MessageStore

DRIFT = "drift"
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
    measured = _present(measured)
    if twin.drift.baseline is None:
        twin.drift.baseline = twin.set_baseline(measured)
    compared = _drifts(twin, measured)
    if not compared:
        return []
    resource, pct = max(compared.items(), key=lambda entry: abs(entry[1]))
    drift = twin.drift
    drift.pct, drift.resource = round(pct, 4), resource
    drift.beyond = drift.beyond + 1 if abs(pct) > twin.config.drift_tolerance_pct else 0
    return _alerts(twin)


def _present(measured: dict[str, Any]) -> dict[str, Any]:
    """The fields that are not null, those of `smds` too."""
    present = {name: value for name, value in measured.items() if value is not None}
    if "smds" in present:
        present["smds"] = {qmgr: _present(fields) for qmgr, fields in present["smds"].items()}
    return present


def beyond(measured: dict[str, Any], field: str, model: int, most: int = _MOST) -> int:
    """What was measured of a field beyond the model; 0 where it was not measured."""
    return min(most, max(0, measured[field] - model)) if field in measured else 0


def _drifts(twin: MessageStore, measured: dict[str, Any]) -> dict[str, float]:
    """Twin less measured, in percent of the total, by resource measured that has a total."""
    return {
        resource: 100.0 * (model - real) / total
        for resource, (model, real, total) in twin.compared(measured).items()
        if total > 0
    }


def _alerts(twin: MessageStore) -> list[Alert]:
    drift = twin.drift
    now = int(twin.tables.store.scalars[0]["clock"])
    episode = next((one for one in twin.episodes if one.condition == DRIFT), None)
    # An alert's id holds the time it opened: two of one resource must not open at the same time.
    if episode is None and drift.beyond >= _PATIENCE and drift.cleared_at != now:
        return [twin.episodes.open(_finding(twin, str(drift.resource)), now)]
    if episode is not None and drift.beyond == 0:
        drift.cleared_at = now
        return [twin.episodes.clear(episode, _finding(twin, episode.resource), now)]
    return []


def _finding(twin: MessageStore, resource: str) -> Finding:
    pct = twin.drift.pct or 0.0
    direction = "more" if pct > 0 else "less"
    return Finding(
        condition=DRIFT,
        resource=resource,
        severity=WARNING,
        usage_pct=twin.viewer().usage_pct(resource),
        full_probability=None,
        fillers=(),
        cause=(
            f"The twin of {twin.name} holds {abs(pct):.1f} % of its {resource} {direction} than measured; "
            f"its tolerance is {twin.config.drift_tolerance_pct:g} %."
        ),
        actions=(
            "Look for events that do not reach the topic (`gaps`), or for applications whose calls are not reported.",
            twin.check_against,
        ),
    )
