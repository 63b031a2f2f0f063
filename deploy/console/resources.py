"""The resources of a state record, with what is used and what there is: docs/state.md describes the fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

State = Mapping[str, Any]

_FILE_BLOCK_BYTES = 512  # of a queue file


class ResourceUsage(msgspec.Struct, frozen=True):
    """A resource of a store.

    Attributes:
        name: as in alerts: entries, elements, smds/QM01, scm, pages, file, capacity.
        label: the words of the page.
        used, total: in `unit`; total is the present size.
        maximum: what it can become by expansion, in `unit`; otherwise total.
        unit: entries, blocks, bytes and the like; with IBM MQ's own word where it has one.
        pct: usage in percent of the maximum, as forecasts are.
        note: a status that is not the usual one, such as EXPANDST(FAILED); else empty.
    """

    name: str
    label: str
    used: float
    total: float
    maximum: float
    unit: str
    pct: float
    note: str = ""


def resources_of(state: State) -> list[ResourceUsage]:
    """Return the resources of a state record; none for a kind that is not known here."""
    by_kind = _BY_KIND.get(state.get("kind", ""))
    return [] if by_kind is None else by_kind(state)


def _usage(
    name: str, label: str, used: float, total: float, unit: str, note: str = "", maximum: float | None = None
) -> ResourceUsage:
    """Return the usage of a resource. maximum: None where it does not expand."""
    limit = total if maximum is None else maximum
    return ResourceUsage(name, label, used, total, limit, unit, round(100 * used / limit, 3) if limit else 0.0, note)


def _structure(state: State) -> list[ResourceUsage]:
    resources = [
        _usage("entries", "entries", state["ents_used"], state["ents_max"], "entries (ENTSUSED)"),
        _usage("elements", "elements", state["elems_used"], state["elems_max"], "elements (ELEMUSED)"),
    ]
    for qmgr, dataset in sorted(state["smds"].items()):
        note = "" if dataset["status"] == "NORMAL" else f"EXPANDST({dataset['status']})"
        used, total = dataset["blocks_used"], dataset["blocks_total"]
        name, label = f"smds/{qmgr}", f"SMDS {qmgr}"
        resources.append(_usage(name, label, used, total, "blocks (USED)", note, dataset["blocks_max"]))
    scm = state["scm"]
    if scm is not None:
        resources.append(_usage("scm", "SCM", scm["used"], scm["max"], "bytes"))
    return resources


def _page_set(state: State) -> list[ResourceUsage]:
    note = "" if state["status"] == "NORMAL" else str(state["status"])
    return [_usage("pages", "pages", state["pages_used"], state["pages_total"], "pages", note, state["pages_max"])]


def _queue_file(state: State) -> list[ResourceUsage]:
    used = state["file_bytes"] // _FILE_BLOCK_BYTES - state["blocks_allocated"]
    return [_usage("file", "queue file", used, state["file_max_bytes"] // _FILE_BLOCK_BYTES, "file blocks")]


def _coupling_facility(state: State) -> list[ResourceUsage]:
    total = state["scm_total"]
    return [_usage("scm", "SCM", state["scm_used"], total, "bytes")] if total else []


def _uniform_cluster(state: State) -> list[ResourceUsage]:
    return [_usage("capacity", "capacity", state["rate"], state["capacity"], "messages/s")]


_BY_KIND: Mapping[str, Callable[[State], list[ResourceUsage]]] = {
    "structure": _structure,
    "page_set": _page_set,
    "queue_file": _queue_file,
    "coupling_facility": _coupling_facility,
    "uniform_cluster": _uniform_cluster,
}
