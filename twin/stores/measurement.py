"""MEASURE: resync on request, the baseline of a structure, and messages of a mean length (`twin.stores.drift` judges).

A MEASURE with `resync` makes a store twin take over what was measured: the model's messages are dropped, those of open
units of work excepted, and the measurement becomes the baseline, which unmatched gets draw down. What was not measured
stays as large as it was. Described in docs/events.md, "Resync". Statistics count messages and have the mean of their
lengths: with it instead of the single lengths, each message is wrong by less than one element (docs/state.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from kernels import layout, smds
from kernels.held import HELD_FOR
from twin.conditions import ELEMENTS, ENTRIES, SCM, Pool, Resource
from twin.events import Measured
from twin.events.measured import without_nulls
from twin.records import Baseline, StateRecord
from twin.state.arrays import Array
from twin.stores.drift import MAX_MESSAGES, SizeMeasured, excess
from twin.stores.resources import DATA_SET, STRUCTURE, read_usage
from twin.stores.state_record import data_sets_of

# Fields that say the same in different ways: of each group the measured ones count, or else all of the model.
_GROUPS = (
    ("ents_used",),
    ("elems_used",),
    ("pages_used", "pages_persistent", "pages_nonpersistent"),
    ("blocks_persistent",),
    ("blocks_nonpersistent",),
)
_DATASET = ("blocks_used", "pages_used", "messages")
_OF_DATASET = {"blocks": "blocks_used", "pages": "pages_used", "messages": "messages"}  # field by name in the baseline


# --- resync ----------------------------------------------------------------------------------------------------------


def completed(measured: Measured, state: StateRecord) -> Measured:
    """Return a measurement with the fields that it lacks, as the model has them."""
    result: dict[str, Any] = {**measured}
    for group in _GROUPS:
        if not any(name in measured for name in group):
            result |= {name: getattr(state, name) for name in group if hasattr(state, name)}
    datasets = data_sets_of(state)
    real = measured.get("smds", {})
    if datasets or real:
        result["smds"] = {
            **real,
            **{
                qmgr: {**{name: getattr(dataset, name) for name in _DATASET}, **real.get(qmgr, {})}
                for qmgr, dataset in datasets.items()
            },
        }
    return without_nulls(result)


def depths_of(measured: Measured, queues: Collection[str]) -> dict[str, int]:
    """Return the measured depths of the store's own queues, by name."""
    own, facts = set(queues), measured.get("queues", ())
    return {fact["name"]: fact["depth"] for fact in facts if "depth" in fact and fact["name"] in own}


def surplus_events(
    store: layout.Store, routes: Array, base: int, queues: int, surplus: int, time: int, depths: Mapping[int, int]
) -> Array:
    """Return EXPIREs of the oldest messages, EVENT[n], by which a store holds more than was measured.

    Args:
        store: the arrays.
        routes: ROUTE[m] of the store.
        base: index of the first of them in the estate.
        queues: number of queues.
        surplus: number of messages to remove.
        time: microseconds.
        depths: measured depths by row of the queue: what a queue has beyond its depth goes first.
    """
    rows = store.queues[:queues]
    held = (rows["depth"] - rows["uncommitted"]).astype(float)
    beyond = np.array([max(0.0, own - depths.get(row, own)) for row, own in enumerate(held.tolist())])
    left = max(0.0, surplus - float(beyond.sum()))
    scale = min(1.0, surplus / max(1.0, float(beyond.sum())))
    rest = held - beyond
    shares = beyond * scale + (rest * min(1.0, left / max(1.0, float(rest.sum()))) if left else 0.0)
    numbers = np.minimum(np.rint(shares), held).astype(np.int64)
    of_queues, firsts = np.unique(routes["queue"], return_index=True)
    firsts_of = zip(of_queues.tolist(), firsts.tolist(), strict=True)
    chosen = [(row, first) for row, first in firsts_of if 0 <= row < queues and numbers[row] > 0]
    events = np.zeros(len(chosen), layout.EVENT)
    events["time"], events["seq"], events["op"] = time, -1, layout.EXPIRE
    events["count"] = [numbers[row] for row, _ in chosen]
    events["route"] = [base + first for _, first in chosen]
    return events


# --- structures ------------------------------------------------------------------------------------------------------


def release_gets(store: layout.Store) -> None:
    """End the wait of gets without a message id and a unit of work: a measurement that is taken over knows of them."""
    held, high = store.held, int(store.scalars[0]["held_high"])
    rows = np.flatnonzero(
        (held["used"][:high] == 1) & (held["keyed"][:high] == 0) & (held["unit"][:high] == layout.NONE)
    )
    held["held_at"][rows] = store.scalars[0]["clock"] - HELD_FOR
    store.held_dirty[rows >> layout.HELD_SHIFT] = 1


def set_structure_baseline(store: layout.Store, ds_block: int, qmgrs: Sequence[str], measured: Measured) -> Baseline:
    """Keep what the real system holds beyond the model; return the state record's `baseline`.

    Args:
        store: the structure's arrays; the fields of the baseline are written.
        ds_block: DSBLOCK, bytes.
    """
    scalars = store.scalars[0]
    entries = excess(measured.get("ents_used"), int(scalars["ents_used"]))
    elements = excess(measured.get("elems_used"), int(scalars["elems_used"]))
    messages = min(entries, MAX_MESSAGES)  # each entry is a message
    if "messages" in measured:
        messages = excess(measured.get("messages"), int(scalars["messages"]), MAX_MESSAGES)
    datasets: dict[str, Any] = {}
    for row, qmgr in enumerate(qmgrs):
        real = measured.get("smds", {}).get(qmgr)
        if real is None:
            continue
        dataset = store.datasets[row]
        map_blocks = int(smds.map_blocks(int(dataset["blocks_total"]), ds_block))
        dataset["base_blocks"] = excess(real.get("blocks_used"), map_blocks + int(dataset["blocks_data"]))
        dataset["base_pages"] = excess(real.get("pages_used"), int(dataset["pages"]))
        dataset["base_messages"] = excess(real.get("messages"), int(dataset["messages"]))
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


def take_data_set_sizes(
    store: layout.Store, ds_block: int, qmgrs: Sequence[str], measured: Measured, assumed: Collection[str]
) -> None:
    """Give data sets their measured sizes; one found larger has expanded.

    Args:
        ds_block: DSBLOCK, bytes.
        assumed: queue managers whose data set the estate does not describe: it is expected to stay as it is measured.
    """
    for row, qmgr in enumerate(qmgrs):
        total = measured.get("smds", {}).get(qmgr, {}).get("blocks_total")
        dataset = store.datasets[row]
        if total and qmgr in assumed:
            dataset["limit"] = total
        if not total or total == dataset["blocks_total"]:
            continue
        if total > dataset["blocks_total"]:
            dataset["status"] = layout.NORMAL
        dataset["blocks_total"], dataset["size"] = total, total * ds_block


def compare_structure(
    store: layout.Store, qmgrs: Sequence[str], measured: Measured
) -> dict[Resource, tuple[int, int, int]]:
    """Return (model, measured, total) by resource measured."""
    real = {
        ENTRIES: (STRUCTURE[Pool.ENTRIES].row, measured.get("ents_used")),
        ELEMENTS: (STRUCTURE[Pool.ELEMENTS].row, measured.get("elems_used")),
        SCM: (STRUCTURE[Pool.SCM].row, measured.get("scm", {}).get("used")),
    }
    sets = measured.get("smds", {})
    for row, qmgr in enumerate(qmgrs):
        real[Resource(Pool.SMDS, qmgr)] = DATA_SET.row + row, sets.get(qmgr, {}).get("blocks_used")
    usage = read_usage(store)[["used", "total"]].tolist()
    return {
        resource: (usage[row][0], used, usage[row][1]) for resource, (row, used) in real.items() if used is not None
    }


def compare_structure_sizes(
    store: layout.Store, size: int, qmgrs: Sequence[str], measured: Measured
) -> list[SizeMeasured]:
    """Return the measured sizes of a structure (bytes, entries, elements), its data sets and its SCM.

    Args:
        size: size of the structure, bytes.
    """
    params = store.params[0]
    own = (
        (ELEMENTS, "size", size, measured.get("size")),
        (ENTRIES, "ents_max", int(params["ents_max"]), measured.get("ents_max")),
        (ELEMENTS, "elems_max", int(params["elems_max"]), measured.get("elems_max")),
    )
    sizes = [SizeMeasured(str(pool), name, model, real) for pool, name, model, real in own if real is not None]
    scm_max = measured.get("scm", {}).get("max")
    if scm_max is not None:
        sizes.append(SizeMeasured(str(SCM), "max", int(params["scm_max"]), scm_max))
    for row, qmgr in enumerate(qmgrs):
        blocks_total = measured.get("smds", {}).get(qmgr, {}).get("blocks_total")
        if blocks_total is not None:
            model = int(store.datasets[row]["blocks_total"])
            sizes.append(SizeMeasured(str(Resource(Pool.SMDS, qmgr)), "blocks_total", model, blocks_total))
    return sizes


# --- messages of a mean length ---------------------------------------------------------------------------------------


def counted_rows(events: Array, routes: Array, base: int) -> list[int]:
    """Return the rows of the queues of which a put is a count of several messages."""
    if events["count"].max(initial=1) == 1:
        return []
    puts = (events["count"] > 1) & (events["op"] == layout.PUT) & (events["reason"] == 0)
    rows: list[int] = np.unique(routes["queue"][events["route"][puts] - base]).tolist()
    return rows


def messages_of_mean_length(store: layout.Store, queues: Sequence[str], counted: Collection[str]) -> int:
    """Return the number of messages held of queues that are counted."""
    depths = store.queues["depth"]
    return sum(int(depths[row]) for row, queue in enumerate(queues) if queue in counted)
