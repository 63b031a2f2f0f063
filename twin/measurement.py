"""MEASURE: what the real system says it holds. The first sets the baseline, later ones show the drift.

Source: contract section 7. The model is never overwritten: what the first measurement finds beyond it becomes a
baseline that unmatched gets draw down; what later ones find is told as `drift_pct`, and as an alert where it stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kernels import pools, smds
from twin.alerts import WARNING, Alert, Finding

if TYPE_CHECKING:
    from twin.structure import StructureTwin

DRIFT = "drift"
_PATIENCE = 3  # measurements in a row beyond the tolerance before the alert opens
# More than any structure or data set holds: a wrong measurement must not leave 64 bits in `kernels.pools.base_left`.
_MOST = 1 << 48
_MOST_MESSAGES = 1 << 31


class Drift(msgspec.Struct, kw_only=True):
    """Baseline as it was set, and the drift of the last measurement."""

    baseline: dict[str, Any] | None = None
    pct: float | None = None
    resource: str | None = None
    beyond: int = 0  # measurements in a row beyond the tolerance
    cleared_at: int | None = None  # clock when the last alert was cleared


def measure(twin: StructureTwin, measured: dict[str, Any]) -> list[Alert]:
    """Take one measurement: any fields of the state record, null as absent. The alerts it brings."""
    measured = _present(measured)
    if twin.drift.baseline is None:
        _set_baseline(twin, measured)
    compared = _compared(twin, measured)
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


def _beyond(measured: dict[str, Any], field: str, model: int, most: int = _MOST) -> int:
    return min(most, max(0, measured[field] - model)) if field in measured else 0


def _set_baseline(twin: StructureTwin, measured: dict[str, Any]) -> None:
    scalars = twin.tables.store.scalars[0]
    entries = _beyond(measured, "ents_used", int(scalars["ents_used"]))
    elements = _beyond(measured, "elems_used", int(scalars["elems_used"]))
    messages = min(entries, _MOST_MESSAGES)
    if "messages" in measured:
        messages = _beyond(measured, "messages", int(scalars["messages"]), _MOST_MESSAGES)
    datasets: dict[str, Any] = {}
    for row, qmgr in enumerate(twin.qmgrs):
        found = measured.get("smds", {}).get(qmgr)
        if found is None:
            continue
        dataset = twin.tables.store.datasets[row]
        of_map = int(smds.map_blocks(int(dataset["blocks_total"]), twin.config.ds_block))
        dataset["base_blocks"] = _beyond(found, "blocks_used", of_map + int(dataset["blocks_data"]))
        dataset["base_pages"] = _beyond(found, "pages_used", int(dataset["pages"]))
        dataset["base_messages"] = _beyond(found, "messages", int(dataset["messages"]))
        datasets[qmgr] = {name: int(dataset[f"base_{name}"]) for name in ("blocks", "pages", "messages")}
    scalars["based"] = 1
    scalars["unmatched_then"] = scalars["unmatched_gets"]
    scalars["base_messages"], scalars["base_ents"], scalars["base_elems"] = messages, entries, elements
    twin.drift.baseline = {"messages": messages, "entries": entries, "elements": elements, "smds": datasets}


def _compared(twin: StructureTwin, measured: dict[str, Any]) -> dict[str, float]:
    """Twin less measured, in percent of the total, by resource measured that has a total."""
    store = twin.tables.store
    params = store.params[0]
    found: dict[str, float] = {}

    def compare(resource: str, model: int, real: int, total: int) -> None:
        if total > 0:
            found[resource] = 100.0 * (model - real) / total

    if "ents_used" in measured:
        compare("entries", int(pools.entries_in_use(store)), measured["ents_used"], int(params["ents_max"]))
    if "elems_used" in measured:
        compare("elements", int(pools.elements_in_use(store)), measured["elems_used"], int(params["elems_max"]))
    for row, qmgr in enumerate(twin.qmgrs):
        real = measured.get("smds", {}).get(qmgr, {}).get("blocks_used")
        if real is not None:
            total = int(store.datasets[row]["blocks_total"])
            compare(f"smds/{qmgr}", int(smds.blocks_in_use(store, row)), real, total)
    return found


def _alerts(twin: StructureTwin) -> list[Alert]:
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


def _finding(twin: StructureTwin, resource: str) -> Finding:
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
            "Check the structure's attributes in the estate against DISPLAY CFSTATUS and D XCF,STR.",
        ),
    )
