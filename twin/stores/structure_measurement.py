"""MEASURE of a structure: what becomes its baseline, and what is compared (`twin.stores.drift`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernels import layout, pools, scm, smds
from twin.stores.drift import MAX_MESSAGES, SizeMeasured, excess

_OF_DATASET = {"blocks": "blocks_used", "pages": "pages_used", "messages": "messages"}  # field by name in the baseline


def set_baseline(store: layout.Store, ds_block: int, qmgrs: Sequence[str], measured: dict[str, Any]) -> dict[str, Any]:
    """Keep what the real system holds beyond the model; return the state record's `baseline`.

    Args:
        store: the structure's arrays; the fields of the baseline are written.
        ds_block: DSBLOCK, bytes.
        qmgrs: queue managers by the row of their data set.
        measured: fields of the state record as the real system has them.
    """
    scalars = store.scalars[0]
    entries = excess(measured, "ents_used", int(scalars["ents_used"]))
    elements = excess(measured, "elems_used", int(scalars["elems_used"]))
    messages = min(entries, MAX_MESSAGES)  # each entry is a message
    if "messages" in measured:
        messages = excess(measured, "messages", int(scalars["messages"]), MAX_MESSAGES)
    datasets: dict[str, Any] = {}
    for row, qmgr in enumerate(qmgrs):
        real = measured.get("smds", {}).get(qmgr)
        if real is None:
            continue
        dataset = store.datasets[row]
        map_blocks = int(smds.map_blocks(int(dataset["blocks_total"]), ds_block))
        dataset["base_blocks"] = excess(real, "blocks_used", map_blocks + int(dataset["blocks_data"]))
        dataset["base_pages"] = excess(real, "pages_used", int(dataset["pages"]))
        dataset["base_messages"] = excess(real, "messages", int(dataset["messages"]))
        datasets[qmgr] = {
            name: int(dataset[f"base_{name}"]) if field in real else None for name, field in _OF_DATASET.items()
        }
    scalars["based"] = 1
    scalars["unmatched_then"] = scalars["unmatched_gets"]
    scalars["base_messages"], scalars["base_ents"], scalars["base_elems"] = messages, entries, elements
    return {
        "messages": messages if "messages" in measured or "ents_used" in measured else None,
        "entries": entries if "ents_used" in measured else None,
        "elements": elements if "elems_used" in measured else None,
        "smds": datasets,
    }


def compare(store: layout.Store, qmgrs: Sequence[str], measured: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return (model, measured, total) by resource measured."""
    params = store.params[0]
    compared: dict[str, tuple[int, int, int]] = {}
    if "ents_used" in measured:
        compared["entries"] = int(pools.entries_in_use(store)), measured["ents_used"], int(params["ents_max"])
    if "elems_used" in measured:
        compared["elements"] = int(pools.elements_in_use(store)), measured["elems_used"], int(params["elems_max"])
    scm_used = measured.get("scm", {}).get("used")
    if scm_used is not None:
        compared["scm"] = int(scm.bytes_in_use(store)), scm_used, int(scm.bound(store))
    for row, qmgr in enumerate(qmgrs):
        blocks_used = measured.get("smds", {}).get(qmgr, {}).get("blocks_used")
        if blocks_used is not None:
            total = int(store.datasets[row]["blocks_total"])
            compared[f"smds/{qmgr}"] = int(smds.blocks_in_use(store, row)), blocks_used, total
    return compared


def compare_sizes(store: layout.Store, size: int, qmgrs: Sequence[str], measured: dict[str, Any]) -> list[SizeMeasured]:
    """Return the sizes measured: of the structure (bytes, entries, elements), its data sets and its SCM.

    Args:
        store: the structure's arrays.
        size: of the structure, bytes.
        qmgrs: queue managers by the row of their data set.
        measured: fields of the state record as the real system has them.
    """
    params = store.params[0]
    own = (
        ("elements", "size", size),
        ("entries", "ents_max", int(params["ents_max"])),
        ("elements", "elems_max", int(params["elems_max"])),
    )
    sizes = [SizeMeasured(resource, name, model, measured[name]) for resource, name, model in own if name in measured]
    scm_max = measured.get("scm", {}).get("max")
    if scm_max is not None:
        sizes.append(SizeMeasured("scm", "max", int(params["scm_max"]), scm_max))
    for row, qmgr in enumerate(qmgrs):
        blocks_total = measured.get("smds", {}).get(qmgr, {}).get("blocks_total")
        if blocks_total is not None:
            model = int(store.datasets[row]["blocks_total"])
            sizes.append(SizeMeasured(f"smds/{qmgr}", "blocks_total", model, blocks_total))
    return sizes
