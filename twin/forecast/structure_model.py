"""The fill model of a structure: pools, offload rules, data sets and SCM, by length class.

The rules are those of `kernels.offload`, `kernels.pools` and `kernels.smds`, for a class of messages instead of one. A
rule size within a class offloads the share of the class above it; lengths are taken as even in their logarithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from kernels import forecast, in_use, layout, meters, offload, resources, smds
from kernels.layout import RULES
from kernels.meter_rows import CLASSES
from kernels.pools import ELEMENT_BYTES, MESSAGE_OVERHEAD
from twin.capacity.offload_rules import SOONER_TH, has_rules, with_all_offloaded_above
from twin.capacity.structures import SCM_POOLS_PCT
from twin.conditions import AUGMENTED, ELEMENTS, ENTRIES, SCM, Pool, Resource
from twin.estate import Structure
from twin.forecast.fill_model import MAX_ERROR, FillModel, doubt_of_mean, put_space, served, stocks_of
from twin.state.arrays import Array


def structure_model(store: layout.Store, config: Structure, qmgrs: Sequence[str], tick: int) -> FillModel:
    """Return the fill model of a structure at a tick. qmgrs: owners of its data sets, by row."""
    params = store.params[0]
    stocks = stocks_of(store, len(qmgrs))
    used_now, used_of_sets = np.zeros(1, in_use.USAGE), np.zeros(store.datasets.size, in_use.DATASET_USAGE)
    in_use.read(store, used_now, used_of_sets)
    usage = used_now[0]
    weights = put_space(stocks, _alone)
    classes = np.zeros((CLASSES, forecast.COLUMNS))
    classes[:, forecast.PUT_SPACE] = weights
    held = stocks["held"][0]
    classes[:, forecast.HELD_SPACE] = np.where(held > 0, stocks["held_space"][0] / np.maximum(held, 1), weights)
    classes[:, forecast.IN_STORE] = held
    classes[:, forecast.IN_DATA_SETS] = stocks["held"][1:].sum(axis=0)
    scalars = np.zeros(1, forecast.MODEL)
    scalars["ents"], scalars["ents_max"] = usage["entries"], max(1, int(params["ents_max"]))
    scalars["space"], scalars["space_max"] = usage["elements"], max(1, int(params["elems_max"]) - 1)
    scalars["away_space"], scalars["counts_ents"] = offload.OFFLOADED_ELEMENTS, 1
    scalars["served"] = served(store, tick)
    _set_scm(store, usage, scalars)
    _set_alter(params, config, scalars)
    scalars["th"] = [_threshold(params, rule) for rule in range(RULES)]
    used = [row for row in range(len(qmgrs)) if _is_used(stocks[row + 1], store.datasets[row])]
    puts = stocks["puts"][1:]
    all_puts = puts.sum(axis=0)
    sets, set_put, set_held = _datasets(store, stocks, used_of_sets, used, all_puts)
    offloaded, room = _offloaded(params), float(scalars["space_max"][0] - scalars["space"][0])
    doubts = [doubt_of_mean(all_puts, weights, room)]
    for i, row in enumerate(used):
        blocks = float((set_put[i] * all_puts) @ offloaded[-1])
        doubts.append(_doubt_of_dataset(float(puts[row] @ offloaded[-1]), blocks, float(sets[i, 1] - sets[i, 0])))
    return FillModel(
        resources=(ENTRIES, ELEMENTS, *(Resource(Pool.SMDS, qmgrs[row]) for row in used), _scarce(usage)),
        tides=(
            resources.ENTRIES,
            resources.SPACE,
            *(resources.FIRST_DATA_SET_TIDE + row for row in used),
            resources.SCM_TIDE,
        ),
        weights=weights,
        scalars=scalars,
        classes=classes,
        offload=offloaded,
        doubts=np.array(doubts),
        sets=sets,
        set_put=set_put,
        set_held=set_held,
        size=int(params["size_now"]),
    )


def put_elements(store: layout.Store, qmgrs: int, used: float) -> Array:
    """Return f8[CLASSES], the elements that a message put takes as the offload rules in force place it.

    Args:
        store: the arrays.
        qmgrs: number of queue managers.
        used: share in use of the pool that is used more.
    """
    params = store.params[0]
    in_force = sum(1 << rule for rule in range(RULES) if used > _threshold(params, rule))
    away = _offloaded(params)[in_force]
    near = put_space(stocks_of(store, qmgrs), _alone)
    return np.asarray((1 - away) * near + away * offload.OFFLOADED_ELEMENTS)


def _set_scm(store: layout.Store, usage: Array, scalars: Array) -> None:
    """Set what SCM can take, which is what the structure's own bound leaves (`scm_params`)."""
    if usage["scm_bound"] == 0:
        return
    limit = max(int(usage["scm_max"]), int(usage["scm_bytes"]))
    scalars["scm_ents"], scalars["scm_space"] = int(store.scm[0]["messages"]), int(store.scm[0]["elems"])
    scalars["scm_max"] = limit / ELEMENT_BYTES  # an entry takes as much as an element there


def _set_alter(params: Array, config: Structure, scalars: Array) -> None:
    threshold = config.full_threshold / 100 if config.allow_auto_alter else 0
    scalars["alter_from"] = threshold if threshold > 0 else np.inf
    scalars["size"], scalars["size_max"] = int(params["size_now"]), config.size
    scalars["per_byte"] = SCM_POOLS_PCT / 100 if config.scm_max_size else 1.0


def _scarce(usage: Array) -> Resource:
    """Return the resource that bounds SCM: its own bound, or storage for dynamic augmented space."""
    return SCM if usage["scm_max"] >= usage["scm_bound"] else AUGMENTED


def offloading_sooner(fill: FillModel, config: Structure) -> FillModel | None:
    """Return the model under the offload rules that `twin.alerts.texts.pool_actions` proposes; None: no offloading."""
    if not has_rules(config):
        return None
    scalars = fill.scalars.copy()
    rules = with_all_offloaded_above(config, SOONER_TH)
    scalars["th"] = [np.inf if rule.off else -1.0 if rule.th == 0 else rule.th / 100 for rule in rules]
    table = _offloaded_by(tuple(rule.sz for rule in rules), config.offload_min_length)
    return replace(fill, scalars=scalars, offload=table)


def _middle(size: int) -> int:
    """Return the middle length of a class, bytes."""
    return int(np.sqrt(max(1, meters.EDGES[size]) * meters.EDGES[size + 1]))


_alone = np.array([float(-(-(_middle(size) + MESSAGE_OVERHEAD) // ELEMENT_BYTES)) for size in range(CLASSES)])


def _threshold(params: Array, rule: int) -> float:
    """Return the share in use above which a rule is in force, inf: never."""
    if params["cf_level"] < 5 or params["offload"] == layout.OFFLOAD_NONE:
        return np.inf
    if params["offld_sz"][rule] >= layout.RULE_OFF:
        return np.inf
    return -1.0 if params["offld_th"][rule] == 0 else float(params["offld_th"][rule]) / 100


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


_MIN_BLOCKS = 20  # in use, from which on they show how loosely blocks are filled
_MAX_LOOSENESS = 1.5  # times the blocks that messages packed one after the other take; looser are old holes


def _is_used(stocks: Array, dataset: Array) -> bool:
    return bool(stocks["puts"].sum() > 0.5 or dataset["messages"] > 0 or dataset["base_blocks"] > 0)


def _datasets(
    store: layout.Store, stocks: Array, usage: Array, used: list[int], puts: Array
) -> tuple[Array, Array, Array]:
    """Return (blocks in use and at most, blocks a message put takes, blocks a message held gives back) by data set.

    What comes and goes soon leaves holes in the block being filled, which are not filled again
    (docs/storage-model.md, "Shared message data sets"): how loosely the blocks in use are filled shows how many more
    there will be.
    """
    if not used:
        return np.zeros((0, 2)), np.zeros((0, CLASSES)), np.zeros((0, CLASSES))
    per_block = int(store.params[0]["ds_block"]) // smds.PAGE_BYTES
    dataset, own = store.datasets[used], stocks[1:][used]
    packed = dataset["blocks_data"] * per_block / np.maximum(1, dataset["pages"])
    waste = _waste(own["puts_pages"], own["puts"], per_block)
    looser = np.maximum(waste, np.minimum(packed[:, None], _MAX_LOOSENESS * waste))
    waste = np.where(dataset["blocks_data"][:, None] >= _MIN_BLOCKS, looser, waste)
    all_held = np.maximum(stocks["held"][1:].sum(axis=0), 1)
    sets = np.array([usage["blocks"][used], usage["blocks_max"][used]], dtype=float).T
    set_put = own["puts_pages"] / per_block * waste / np.maximum(puts, 1e-9)
    set_held = own["held_space"] / per_block / all_held * np.where(dataset["pages"] != 0, packed, 1.0)[:, None]
    return np.ascontiguousarray(sets), set_put, set_held


def _doubt_of_dataset(puts: float, blocks: float, room: float) -> float:
    """Return the error of how fast a data set will fill, as a share: which queue manager puts next is chance.

    Args:
        puts: messages counted that may be offloaded.
        blocks: what they take.
        room: blocks left.
    """
    if puts < 1:
        return MAX_ERROR
    each = blocks / puts
    return float(min(MAX_ERROR, np.sqrt(1 / puts + each / max(each, room))))


def _waste(pages: Array, messages: Array, per_block: int) -> Array:
    """Return f8[n, CLASSES], by what factor messages take more than their pages: some do not fit in what is left."""
    each = np.maximum(1.0, pages / np.maximum(messages, 1e-9))
    together = np.floor(per_block / each)
    small = per_block / (each * np.maximum(together, 1))
    return np.where(together >= 1, small, (np.floor(each / per_block) + 1) * per_block / each)
