"""The fields of a state record that every store with messages has, and which of them are known.

Sources: docs/state.md. `messages` counts whatever holds storage, what is left of a measured baseline included. A usage
is known once a queue operation of the store was applied (counted) or a MEASURE had it (measured); else it is null.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import expiry, layout, pools
from twin.events import Measured
from twin.events.measured import without_nulls
from twin.units import as_text

# Of each field of a usage the sets of measured fields of which one makes it known; () is no field at all.
KnownBy = Mapping[str, tuple[frozenset[str], ...]]

EXPAND_STATUS = {layout.NORMAL: "NORMAL", layout.FAILED: "FAILED", layout.MAXIMUM: "MAXIMUM"}
_MAX_QUEUES = 10
_COUNTED_ONLY: KnownBy = dict.fromkeys(("bytes", "uncommitted", "in_doubt", "expired_held"), ())
_OF_DATASET = ("blocks_used", "pages_used", "messages")
_OF_SCM = ("used", "ents", "elems", "messages", "aug_dynamic")
_COUNTERS = (
    *("events", "duplicates", "gaps", "unmatched_gets", "full_puts", "queue_full_puts", "overfull_puts"),
    "refused_alters",
)


def any_of(*fields: str) -> tuple[frozenset[str], ...]:
    """Return that a usage is known by any of these measured fields."""
    return tuple(frozenset({field}) for field in fields)


def all_of(*fields: str) -> tuple[frozenset[str], ...]:
    """Return that a usage is known by these measured fields together."""
    return (frozenset(fields),)


def has_counted(events: npt.NDArray[Any]) -> bool:
    """Return True if events, EVENT[n], contain a queue operation, which counts what a store holds."""
    return bool((events["op"] <= layout.CLEAR).any())


def fields_to_take(measured: Measured, fields: Collection[str], qmgrs: Collection[str]) -> set[str]:
    """Return the fields of a measurement that a baseline takes over; those of data sets as smds/QM01/blocks_used.

    Args:
        measured: fields of the state record, without nulls.
        fields: those of the kind of store.
        qmgrs: queue managers with a data set.
    """
    datasets = ((qmgr, real) for qmgr, real in measured.get("smds", {}).items() if qmgr in qmgrs)
    of_datasets = {f"smds/{qmgr}/{name}" for qmgr, real in datasets for name in _OF_DATASET if name in real}
    return {name for name in fields if name in measured} | of_datasets


def with_kept(measured: Measured, record: Mapping[str, Any], fields: Collection[str]) -> Measured:
    """Return a measurement in which some fields, named as by `fields_to_take`, are as the state record has them."""
    result: dict[str, Any] = {**measured}
    for field in fields:
        _, _, of_dataset = field.partition("/")
        if not of_dataset:
            result[field] = record[field]
            continue
        qmgr, _, name = of_dataset.rpartition("/")
        datasets = result.get("smds", {})
        result["smds"] = {**datasets, qmgr: {**datasets.get(qmgr, {}), name: record["smds"][qmgr][name]}}
    return without_nulls(result)


def known_part(record: dict[str, Any], known_by: KnownBy, measured: Collection[str]) -> dict[str, Any]:
    """Return the state record of a store of which nothing was counted, with null for what was not measured either.

    Args:
        record: the record as the arrays have it.
        known_by: `known_by` of the kind of store.
        measured: the measured fields, as `fields_to_take` names them.
    """
    known_fields = frozenset(measured)
    ways = {**_COUNTED_ONLY, **known_by}
    result = record | {name: None for name, sets in ways.items() if not any(fields <= known_fields for fields in sets)}
    if result.get("smds"):
        result["smds"] = {
            qmgr: dataset | {name: None for name in _OF_DATASET if f"smds/{qmgr}/{name}" not in known_fields}
            for qmgr, dataset in result["smds"].items()
        }
    if result.get("scm"):
        result["scm"] = result["scm"] | dict.fromkeys(_OF_SCM)
    return result


def common_fields(store: layout.Store, queues: Sequence[str], *, is_estimate: bool) -> dict[str, Any]:
    """Return what the arrays say of any store, JSON-ready; `time` is null before the first event.

    Args:
        store: the arrays.
        queues: names of the queues by row.
        is_estimate: True if the messages of the baseline were not measured: one for each of its pages or blocks.
    """
    scalars = store.scalars[0]
    base = int(scalars["base_messages"])
    left = int(pools.base_left(store, base)) if base else 0
    return {
        "time": None if scalars["clock"] == layout.NEVER else as_text(int(scalars["clock"])),
        "messages": int(scalars["messages"]) + (0 if is_estimate else left),
        "messages_estimated": left if is_estimate else 0,
        "bytes": int(scalars["bytes"]),
        "uncommitted": int(scalars["uncommitted"]),
        "in_doubt": int(scalars["in_doubt"]),
        "expired_held": int(expiry.count_expired(store)) if scalars["expiring"] else 0,
        "queues": _deepest(store.queues[: len(queues)], queues),
        **{name: int(scalars[name]) for name in _COUNTERS},
    }


def dataset_fields(dataset: np.void, used: np.void) -> dict[str, Any]:
    """Return the fields of one data set, named as in DISPLAY USAGE TYPE(SMDS) and SMF 115 QESD.

    Args:
        dataset: its row of DATASET.
        used: its row of `kernels.in_use.DATASET_USAGE`.
    """
    return {
        "blocks_total": int(dataset["blocks_total"]),
        "blocks_max": int(used["blocks_max"]),
        "blocks_used": int(used["blocks"]),
        "pages_used": int(used["pages"]),
        "messages": int(used["messages"]),
        "status": EXPAND_STATUS[int(dataset["status"])],
    }


def _deepest(rows: npt.NDArray[Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the ten deepest queues that hold anything, by depth, then name."""
    order = sorted(np.flatnonzero(rows["depth"]).tolist(), key=lambda row: (-int(rows["depth"][row]), names[row]))
    return [
        {"name": names[row], "depth": int(rows["depth"][row]), "bytes": int(rows["bytes"][row])}
        for row in order[:_MAX_QUEUES]
    ]
