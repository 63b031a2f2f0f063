"""The fill model of a structure: pools, offload rules, data sets and SCM, by length class.

`kernels.fill` reads it from the arrays; here is what attributes say. A rule size within a class offloads the share of
the class above it; lengths are taken as even in their logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from kernels import fill, forecast, layout, meters, offload, resources
from kernels.layout import RULES
from kernels.meter_rows import CLASSES
from kernels.pools import ELEMENT_BYTES, MESSAGE_OVERHEAD
from twin.capacity.offload_rules import SOONER_TH, has_rules, with_all_offloaded_above
from twin.capacity.structures import SCM_POOLS_PCT
from twin.conditions import AUGMENTED, ELEMENTS, ENTRIES, SCM, Pool, Resource
from twin.estate import Structure
from twin.forecast.fill_model import FillModel, put_space, read_fill
from twin.state.arrays import Array


def structure_model(
    store: layout.Store, config: Structure, qmgrs: Sequence[str], tick: int, *, alters: bool
) -> FillModel:
    """Return the fill model of a structure at a tick.

    Args:
        store: the arrays.
        config: its attributes.
        qmgrs: owners of its data sets, by row.
        tick: the tick.
        alters: True if z/OS is expected to alter it at FULLTHRESHOLD.
    """
    params, scalars = store.params[0], np.zeros(1, forecast.MODEL)
    alter_from = config.full_threshold / 100 if alters else 0
    row = scalars[0]
    row["alter_from"], row["size_max"] = alter_from if alter_from > 0 else np.inf, config.size
    row["per_byte"] = SCM_POOLS_PCT / 100 if config.scm_max_size else 1.0
    read, count = read_fill(store, tick, len(qmgrs), _alone, scalars, _offloaded(params))
    used = read.rows[:count].tolist()
    return FillModel(
        resources=(ENTRIES, ELEMENTS, *(Resource(Pool.SMDS, qmgrs[row]) for row in used), _scarce(read.usage[0])),
        tides=(
            resources.ENTRIES,
            resources.SPACE,
            *(resources.FIRST_DATA_SET_TIDE + row for row in used),
            resources.SCM_TIDE,
        ),
        weights=read.weights,
        scalars=scalars,
        classes=read.classes,
        offload=read.offload,
        doubts=read.doubts[: 1 + count],
        sets=read.sets[:count],
        set_put=read.set_put[:count],
        set_held=read.set_held[:count],
        size=int(params["size_now"]),
    )


def put_elements(store: layout.Store, qmgrs: int, used: float) -> Array:
    """Return f8[CLASSES], the elements that a message put takes as the offload rules in force place it.

    Args:
        store: the arrays.
        qmgrs: number of queue managers.
        used: share in use of the pool that is used more.
    """
    away = _offloaded(store.params[0])[fill.rules_in_force(store.params, used)]
    near = put_space(store, qmgrs, _alone)
    return np.asarray((1 - away) * near + away * offload.OFFLOADED_ELEMENTS)


def _scarce(usage: Array) -> Resource:
    """Return the resource that bounds SCM: its own bound, or storage for dynamic augmented space."""
    return SCM if usage["scm_max"] >= usage["scm_bound"] else AUGMENTED


def offloading_sooner(model: FillModel, config: Structure) -> FillModel | None:
    """Return the model under the offload rules that `twin.alerts.texts.pool_actions` proposes; None: no offloading."""
    if not has_rules(config):
        return None
    scalars = model.scalars.copy()
    rules = with_all_offloaded_above(config, SOONER_TH)
    scalars["th"] = [np.inf if rule.off else -1.0 if rule.th == 0 else rule.th / 100 for rule in rules]
    table = _offloaded_by(tuple(rule.sz for rule in rules), config.offload_min_length)
    return replace(model, scalars=scalars, offload=table)


def _middle(size: int) -> int:
    """Return the middle length of a class, bytes."""
    return int(np.sqrt(max(1, meters.EDGES[size]) * meters.EDGES[size + 1]))


_alone = np.array([float(-(-(_middle(size) + MESSAGE_OVERHEAD) // ELEMENT_BYTES)) for size in range(CLASSES)])


def _offloaded(params: Array) -> Array:
    """Return f8[2**RULES, CLASSES], the share of the puts of a class that is offloaded, by the rules in force."""
    if params["offload"] == layout.OFFLOAD_NONE or params["cf_level"] < 4:
        return np.zeros((1 << RULES, CLASSES))
    return _offloaded_by(tuple(params["offld_sz"].tolist()), int(params["offload_min_length"]))


@lru_cache(maxsize=1024)
def _offloaded_by(rule_sizes: tuple[int, ...], min_length: int) -> Array:
    table = np.zeros((1 << RULES, CLASSES))
    for mask in range(1 << RULES):
        sizes = [rule_sizes[rule] for rule in range(RULES) if mask >> rule & 1]
        least = max(min(sizes), min_length) if sizes else offload.ALWAYS_OFFLOADED
        table[mask] = [_above(size, min(least, offload.ALWAYS_OFFLOADED)) for size in range(CLASSES)]
    return table


def _above(size: int, least: int) -> float:
    """Return the share of a class that is longer than `least` bytes."""
    low, high = meters.EDGES[size], meters.EDGES[size + 1]
    if least <= low:
        return 1.0
    if least >= high:
        return 0.0
    return float((np.log(high) - np.log(least)) / (np.log(high) - np.log(max(1, low))))
