"""The fill model of a store, read column by column: the oracle of `kernels.futures`.

What is in use is given: tests/kernels/test_usage.py compares that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
CLASSES, RULES = 12, 3
NO_OFFLOAD, RULE_OFF = 0, 65_536  # of PARAMS
PAGE = 4096


@dataclass
class NaiveFill:
    """The fill model, as `kernels.futures.Fill`, of the data sets that are used; `rows` are theirs."""

    weights: Array
    put_space: Array
    held_space: Array
    in_store: Array
    in_sets: Array
    served: float
    thresholds: list[float]
    doubts: list[float]
    rows: list[int]
    sets: Array
    set_put: Array
    set_held: Array


def put_space(stocks: Array, alone: Array) -> Array:
    """Return what a message put takes of the store on average. stocks: STOCK[1 + owners, CLASSES]."""
    puts, space = stocks["puts"][1:].sum(axis=0), stocks["puts_space"][1:].sum(axis=0)
    return np.where(puts > 0.5, space / np.maximum(puts, 1e-9), alone)


def threshold(params: Array, rule: int) -> float:
    """Return the share in use above which a rule is in force, inf: never. params: a row of PARAMS."""
    if params["cf_level"] < 5 or params["offload"] == NO_OFFLOAD or params["offld_sz"][rule] >= RULE_OFF:
        return np.inf
    return -1.0 if params["offld_th"][rule] == 0 else float(params["offld_th"][rule]) / 100


def doubt_of_mean(puts: Array, each: Array, room: float) -> float:
    """Return the error of the mean of what messages take: few were put, or few still fit."""
    count = float(puts.sum())
    if count < 1:
        return 0.6
    mean = max(1e-9, float(puts @ each) / count)
    variance = float(puts @ (each - mean) ** 2) / count / mean**2
    return float(min(0.6, np.sqrt(variance * (1 / count + mean / max(room, mean)))))


def doubt_of_data_set(puts: float, blocks: float, room: float) -> float:
    """Return the error of how fast a data set fills: which queue manager puts next is chance."""
    if puts < 1:
        return 0.6
    each = blocks / puts
    return float(min(0.6, np.sqrt(1 / puts + each / max(each, room))))


def waste(pages: Array, messages: Array, per_block: int) -> Array:
    """Return by what factor messages take more than their pages: some do not fit in what is left of a block."""
    each = np.maximum(1.0, pages / np.maximum(messages, 1e-9))
    together = np.floor(per_block / each)
    small = per_block / (each * np.maximum(together, 1))
    return np.where(together >= 1, small, (np.floor(each / per_block) + 1) * per_block / each)


def read(store: Any, tick: int, owners: int, alone: Array, offload: Array, room: float, set_usage: Array) -> NaiveFill:
    """Return the fill model of a store.

    Args:
        store: the arrays.
        tick: the tick.
        owners: data sets, or queue managers that put.
        alone: what a message takes in a class in which none were put.
        offload: share of the puts that is offloaded, by the rules in force and the class.
        room: what is left of the space of the store itself.
        set_usage: USAGE of each data set.
    """
    stocks = store.stocks[: (owners + 1) * CLASSES].reshape(owners + 1, CLASSES)
    weights, held = put_space(stocks, alone), stocks["held"][0]
    puts = stocks["puts"][1:]
    all_puts, in_sets = puts.sum(axis=0), stocks["held"][1:].sum(axis=0)
    doubts = [doubt_of_mean(all_puts, weights, room)]
    sets, set_put, set_held, rows = [], [], [], []
    per_block = int(store.params[0]["ds_block"]) // PAGE
    for row, dataset in enumerate(store.datasets):
        own = stocks[row + 1]
        if not (own["puts"].sum() > 0.5 or dataset["messages"] > 0 or dataset["base_blocks"] > 0):
            continue
        packed = float(dataset["blocks_data"]) * per_block / max(1, int(dataset["pages"]))
        wasted = waste(own["puts_pages"], own["puts"], per_block)
        if dataset["blocks_data"] >= 20:
            wasted = np.maximum(wasted, np.minimum(packed, 1.5 * wasted))
        put = own["puts_pages"] / per_block * wasted / np.maximum(all_puts, 1e-9)
        blocks = float((put * all_puts) @ offload[-1])
        used, total = float(set_usage["used"][row]), float(set_usage["maximum"][row])
        rows.append(row)
        sets.append([used, total])
        set_put.append(put)
        holes = packed if dataset["pages"] != 0 else 1.0
        set_held.append(own["held_space"] / per_block / np.maximum(in_sets, 1) * holes)
        doubts.append(doubt_of_data_set(float(own["puts"] @ offload[-1]), blocks, total - used))
    return NaiveFill(
        weights=weights,
        put_space=weights,
        held_space=np.where(held > 0, stocks["held_space"][0] / np.maximum(held, 1), weights),
        in_store=held.astype(float),
        in_sets=in_sets.astype(float),
        served=float(store.queues["depth"][store.queues["got_at"] > tick - 60].sum()),
        thresholds=[threshold(store.params[0], rule) for rule in range(RULES)],
        doubts=doubts,
        rows=rows,
        sets=np.array(sets).reshape(-1, 2),
        set_put=np.array(set_put).reshape(-1, CLASSES),
        set_held=np.array(set_held).reshape(-1, CLASSES),
    )
