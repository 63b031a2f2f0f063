"""MEASURE of a structure: what becomes its baseline, what is compared; see `twin.stores.drift`.

Source: contract section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernels import pools, smds
from twin.stores.drift import MOST_MESSAGES, beyond

if TYPE_CHECKING:
    from twin.stores.structure import StructureTwin


def set_baseline(twin: StructureTwin, measured: dict[str, Any]) -> dict[str, Any]:
    """Keep what the real system holds beyond the model; what the state record calls `baseline`."""
    scalars = twin.tables.store.scalars[0]
    entries = beyond(measured, "ents_used", int(scalars["ents_used"]))
    elements = beyond(measured, "elems_used", int(scalars["elems_used"]))
    messages = min(entries, MOST_MESSAGES)
    if "messages" in measured:
        messages = beyond(measured, "messages", int(scalars["messages"]), MOST_MESSAGES)
    datasets: dict[str, Any] = {}
    for row, qmgr in enumerate(twin.qmgrs):
        found = measured.get("smds", {}).get(qmgr)
        if found is None:
            continue
        dataset = twin.tables.store.datasets[row]
        of_map = int(smds.map_blocks(int(dataset["blocks_total"]), twin.config.ds_block))
        dataset["base_blocks"] = beyond(found, "blocks_used", of_map + int(dataset["blocks_data"]))
        dataset["base_pages"] = beyond(found, "pages_used", int(dataset["pages"]))
        dataset["base_messages"] = beyond(found, "messages", int(dataset["messages"]))
        datasets[qmgr] = {name: int(dataset[f"base_{name}"]) for name in ("blocks", "pages", "messages")}
    scalars["based"] = 1
    scalars["unmatched_then"] = scalars["unmatched_gets"]
    scalars["base_messages"], scalars["base_ents"], scalars["base_elems"] = messages, entries, elements
    return {"messages": messages, "entries": entries, "elements": elements, "smds": datasets}


def compared(twin: StructureTwin, measured: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """(model, measured, total) by resource measured."""
    store = twin.tables.store
    params = store.params[0]
    found: dict[str, tuple[int, int, int]] = {}
    if "ents_used" in measured:
        found["entries"] = int(pools.entries_in_use(store)), measured["ents_used"], int(params["ents_max"])
    if "elems_used" in measured:
        found["elements"] = int(pools.elements_in_use(store)), measured["elems_used"], int(params["elems_max"])
    scm_used = measured.get("scm", {}).get("used")
    if scm_used is not None:
        found["scm"] = twin.scm_used, scm_used, int(params["scm_max"])
    for row, qmgr in enumerate(twin.qmgrs):
        real = measured.get("smds", {}).get(qmgr, {}).get("blocks_used")
        if real is not None:
            total = int(store.datasets[row]["blocks_total"])
            found[f"smds/{qmgr}"] = int(smds.blocks_in_use(store, row)), real, total
    return found
