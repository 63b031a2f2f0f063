"""MEASURE: what a store takes from the real system's own figures (`twin.stores.drift` judges how far off the twin is).

The first measurement sets the baseline, later ones test it. A MEASURE with `resync`, or any while events are a sample,
is taken over: the model's messages are dropped, those of open units of work excepted, and the measurement becomes the
baseline, which unmatched gets draw down. What was not measured stays as large as it was. Described in docs/events.md,
"Resync". Statistics count messages and have the mean of their lengths: with it instead of the single lengths, each
message is wrong by less than one element (docs/state.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from kernels import clock, layout, meters, pools, smds
from kernels.ids import HELD_FOR
from twin.alerts.episodes import Alert, Finding
from twin.alerts.texts import Facts
from twin.base.conditions import ELEMENTS, ENTRIES, SCM, Condition, Pool, Resource
from twin.base.units import as_text
from twin.events import Measured
from twin.events.fields import has_levels, without_nulls
from twin.forecast import rises
from twin.records import Baseline, StateRecord
from twin.records.usage import usage_pct
from twin.state.arrays import Array
from twin.stores import alerting, watches
from twin.stores.drift import MAX_MESSAGES, SizeMeasured, drift_finding, excess, judge
from twin.stores.estimate import MANY, Holding
from twin.stores.kind import StoreKind
from twin.stores.resources import DATA_SET, LEAST, STRUCTURE, data_sets_of, fields_to_take, read_usage, with_kept

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


# --- what a store takes ----------------------------------------------------------------------------------------------


def take(store: StoreKind, measured: Measured, time: int) -> list[Alert]:
    """Apply a MEASURE of that time, microseconds; return the alerts it opens or clears. measured: without nulls."""
    alerts = _note_readers(store, measured, time)
    levels = store.levels_of(measured)
    return alerts + _take_levels(store, levels) if has_levels(levels) else alerts


def _note_readers(store: StoreKind, measured: Measured, time: int) -> list[Alert]:
    """Take what a measurement says about the queues; return the alerts. Getters that stop or return ask for a look."""
    if "queues" not in measured:
        return []
    store.take_in(measured)
    refused, rows = store.monitor.memory.refused_at, store.tables.store.queues
    refused_at = None if refused is None else refused * clock.TICK
    if store.readers.note(measured, min(time, store.clock), store.queues, rows, refused_at):
        store.monitor.look_soon()
    store.monitor.plans.forget_absences(store.readers, store.clock)
    return watches.check_unread(store, store.clock, store.monitor.plans.away(store.clock))


def _take_levels(store: StoreKind, measured: Measured) -> list[Alert]:
    is_test = store.is_counted and store.drift.baseline is not None
    store.found_sizes = store.compare_sizes(measured)
    sizes_before, sizes = read_usage(store.tables.store)["maximum"].copy(), store.sizes()
    store.take_sizes(measured)
    store.note_sizes(sizes)
    rises.rescale(store.tables.store, sizes_before, read_usage(store.tables.store)["maximum"])
    seen, measured = measured, store.with_usage(measured)
    before = store.compare(measured)
    store.tested = store.estimate.unmoved(before) if is_test else {}
    alerts: list[Alert] = []
    new_fields = fields_to_take(measured, store.measurable, store.data_sets)
    if "elems_used" in measured.keys() - seen.keys():  # by SIZEUSED: nobody has counted them
        new_fields = new_fields - {"elems_used"} | {"usage_pct"}
    holding = store.holding(measured)
    if is_taken := _is_taken(store, measured, holding):
        store.estimate.note_moved(before, is_believed=bool(measured.get("resync")))
        alerts = _take_over(store, measured, new_fields, holding)
    elif store.drift.baseline is None or (not store.is_counted and new_fields - set(store.drift.measured)):
        known = with_kept(measured, store.whole_record(), store.drift.measured)
        store.drift.take(new_fields, store.set_baseline(known))
    now, memory = store.clock, store.monitor.memory
    alerts += judge(
        store.drift,
        store.tested,
        store.estimate.unmoved(store.compare(measured)),
        store.compare_sizes(measured),
        store.config.drift_tolerance_pct,
        store.episodes,
        now,
        partial(_drift_finding, store),
    )
    if is_taken and _calls(store) and store.estimate.is_sample and not measured.get("resync"):
        store.drift.note(before)  # what is corrected is said, and no alert: events do not claim to be complete
    is_line = is_taken and memory.estimated_at is None and (holding is None or store.estimate.is_partial)
    alerts += _guard(store, store.in_use(measured), is_line=is_line)
    if is_taken and memory.estimated_at is not None:
        meters.meter_usage(store.tables.store, now // clock.TICK, now // clock.TICK)
        store.monitor.look_soon()
        alerts += store.monitor.tick(store, now // clock.TICK)
    return alerts + store.monitor.warn(store, now // clock.TICK)


def _guard(store: StoreKind, in_use: Mapping[Resource, tuple[float, float]], *, is_line: bool) -> list[Alert]:
    """Open the alerts that measured shares call for, whatever the model says; return them. `is_line`: a line through
    such levels says how the store fills, as no flows are known or estimated.
    """
    now, alerts = store.clock, list[Alert]()
    for resource, (used, total) in in_use.items():
        store.drift.note_share(resource, usage_pct(used, total), store.own_view(resource).usage_pct, now)
    if in_use or is_line:
        store.monitor.note_levels(store, now // clock.TICK, is_taken=is_line)
    for resource, (used, total) in in_use.items():
        if store.drift.shares[str(resource)].pct >= store.view(resource).watched_pct:
            alerts += alerting.fire(store, Condition.THRESHOLD, resource, now)
        if used + LEAST.get(resource.pool, 1) > total and resource in store.usage_rows():
            alerts += alerting.fire(store, Condition.FULL, resource, now)
    return alerts + alerting.open_fired(store, now)


def _drift_finding(store: StoreKind, resource: Resource) -> Finding:
    facts = Facts(frozenset(("message_store",)), {"store": store.name}, {"look": store.displays()})
    actions, used_pct = store.episodes.runbook.actions(Condition.DRIFT, facts), store.view(resource).usage_pct
    return drift_finding(store.name, resource, store.drift, store.config.drift_tolerance_pct, used_pct, actions)


def _calls(store: StoreKind) -> int:
    """Return the puts and gets that events have reported."""
    arrays = store.tables.store
    return int(arrays.scalars[0]["ages"]) + int(arrays.queues["gets"][: len(store.queues)].sum())


def _is_taken(store: StoreKind, measured: Measured, holding: Holding | None) -> bool:
    """Return True if a measurement is taken over, as it asks for that or as events are a sample of what happens."""
    is_sample = False
    if holding is not None:
        estimate, tick, calls = store.estimate, store.clock // clock.TICK, _calls(store)
        scalars, rows = store.tables.store.scalars[0], store.tables.store.queues["depth"]
        known = int(scalars["messages"])
        left = int(pools.base_left(store.tables.store, int(scalars["base_messages"])))
        gap = holding.messages - (known + left if holding.known is None else holding.known)
        is_sample = estimate.note_agreement(tick, gap, calls, is_reported=store.is_counted)
        estimate.note_seen(known, round(holding.messages), store.clock)
        depths = depths_of(measured, store.queues)
        pairs = {name: (int(rows[row]), depths[name]) for row, name in enumerate(store.queues) if name in depths}
        estimate.note_depths(pairs, store.clock)
        if not is_sample:
            store.monitor.memory.estimated_at = None
        if not is_sample and not estimate.odd:
            estimate.note(known, holding, calls, tick)
    return is_sample or bool(measured.get("resync"))


def _take_over(store: StoreKind, measured: Measured, new_fields: set[str], holding: Holding | None) -> list[Alert]:
    """Make a measurement the baseline, beyond the messages that events know; return the alerts that this causes.

    Messages that are no longer there by the measurement are removed, the oldest first. Without `holding` it does not
    say how many there are.
    """
    whole = store.to_take(measured, holding)
    new_fields = new_fields | (whole.keys() - measured.keys())
    state, now, estimate = store.whole_record(), store.clock, store.estimate
    before = int(store.tables.store.scalars[0]["messages"])
    alerts = _remove_surplus(store, whole, holding)
    known, ages = store.tables.store.scalars[0][["messages", "ages"]].item()
    if known < before:
        depths = store.tables.store.queues["depth"][: len(store.queues)].tolist()
        estimate.note_dropped(before - known, dict(zip(store.queues, depths, strict=True)))
    release_gets(store.tables.store)
    # Flows are estimated where events report a part of them, or rules say which resource takes them.
    if holding is not None and estimate.is_partial and (holding.has_rules or ages > 0):
        owners = max(1, len(store.qmgrs))
        estimate.correct(store.tables, holding, _calls(store), owners, store.block_bytes, now // clock.TICK)
        store.monitor.memory.estimated_at = now // clock.TICK
    elif holding is not None and estimate.is_partial:
        estimate.note(known, holding, _calls(store), now // clock.TICK)
    baseline = store.set_baseline(completed(whole, state), holding)
    store.drift.baseline = None
    store.drift.take(new_fields, {**baseline, "resynced_at": as_text(now), "dropped_messages": before - known})
    if measured.get("resync"):
        store.drift.streak = 0
    store.set_params()
    return alerts


def _remove_surplus(store: StoreKind, measured: Measured, holding: Holding | None) -> list[Alert]:
    """Remove messages of events that are no longer there by a measurement; return the alerts that this causes."""
    known = int(store.tables.store.scalars[0]["messages"])
    share = min((real / own for own, real in store.known_pools(measured) if own > real), default=1.0)
    surplus = known - int(known * share)
    if holding is not None:
        surplus = max(surplus, known - int(holding.messages))
    depths = depths_of(measured, store.queues)
    rows = {row: depths[name] for row, name in enumerate(store.queues) if name in depths}
    return store.forget(surplus, rows) if surplus > 0 else []


def counted_holding(store: StoreKind, measured: Measured) -> Holding | None:
    """Return the messages that a measurement counts, in all or by queue; None: it does not."""
    depths = depths_of(measured, store.queues)
    if "messages" in measured:
        return Holding(float(measured["messages"]))
    if len(depths) == len(store.queues) and depths:
        return Holding(float(sum(depths.values())))
    return None


def holding_by_space(store: StoreKind, measured: Measured, used: int | None, known: int) -> Holding | None:
    """Return what a store in which one resource fills holds by a measurement of the pages or blocks used, of which
    events and baseline know some; None: not measured.
    """
    counted = counted_holding(store, measured)
    each = store.estimate.usual_space(store.tables.store)
    if counted is not None:
        is_many = used is not None and counted.messages >= MANY
        return counted._replace(each=max(1.0, used / counted.messages) if used and is_many else each or 0.0)
    each = each or 1.0
    return None if used is None else Holding(used / each, each=each, known=known / each)


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
    """Return EXPIREs of the oldest messages, EVENT[n], by which a store holds more than was measured. What a queue has
    beyond its measured depth, by row, goes first. `base`: index of the first of its routes, ROUTE[m], in the estate.
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
    """Keep in the arrays what the real system holds beyond the model; return the state record's `baseline`."""
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
    """Give data sets their measured sizes; one found larger has expanded, unless its queue manager is among `assumed`:
    the estate does not describe it, so it is expected to stay as it is measured.
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
    """Return the measured sizes of a structure of `size`: bytes, entries, elements, of its data sets and its SCM."""
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
