"""The fill model of a store, as `kernels.forecast` rolls it forward, read from its arrays in one pass.

The rules are those of offload.py, pools.py, smds.py and scm.py, for a class of messages instead of one.
tests/naive/fill.py is the same, slowly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels import forecast, scm, usage
from kernels._compile import kernel, routine
from kernels.layout import OFFLOAD_NONE, RULE_OFF, RULES, STRUCTURE, Array, Row, Store
from kernels.meter_rows import CLASSES, DATA_SETS, ENTRIES, SCM, SPACE
from kernels.offload import OFFLOADED_ELEMENTS
from kernels.pools import ELEMENT_BYTES
from kernels.smds import PAGE_BYTES

MAX_ERROR = 0.6  # of what messages will take, as a share
_SERVED_TICKS = 60  # ten minutes: a queue is served while a message left it in this time
_MIN_BLOCKS = 20  # in use, from which on they show how loosely blocks are filled
_MAX_LOOSENESS = 1.5  # times the blocks that messages packed one after the other take; looser are old holes
_LEAST = 1e-9  # messages, by which something is divided


class Fill(NamedTuple):
    """A fill model being read, with d data sets of which n are used.

    Attributes:
        weights: f8[CLASSES], elements, pages or blocks that a message put takes when not offloaded.
        scalars: forecast.MODEL[1], of a structure with what its attributes say of automatic alter.
        classes: f8[CLASSES, forecast.COLUMNS].
        offload: f8[2**RULES, CLASSES], not written: as `forecast.Model`.
        doubts: f8[1 + d], the first 1 + n written: standard deviation of what messages will take of the store and of
            each data set, as a share of it.
        sets, set_put, set_held: as `forecast.Model`, with d rows of which the first n are written.
        rows: i8[d], the first n written: rows of the data sets that are used.
    """

    weights: Array
    scalars: Array
    classes: Array
    offload: Array
    doubts: Array
    sets: Array
    set_put: Array
    set_held: Array
    rows: Array


@kernel
def _threshold(params: Row, rule: int) -> float:
    """Return the share in use above which an offload rule is in force, inf: never."""
    if params.cf_level < 5 or params.offload == OFFLOAD_NONE or params.offld_sz[rule] >= RULE_OFF:
        return np.inf
    return -1.0 if params.offld_th[rule] == 0 else params.offld_th[rule] / 100


@routine
def rules_in_force(params: Array, used: float) -> int:
    """Return the bits of the offload rules in force. params: PARAMS[1]; used: share in use of the fuller pool."""
    mask = 0
    for rule in range(RULES):
        if used > _threshold(params[0], rule):
            mask |= 1 << rule
    return mask


@kernel
def _weigh(stocks: Array, owners: int, alone: Array, weights: Array) -> None:
    """Write f8[CLASSES], what a message put takes, as `weigh`."""
    for size in range(CLASSES):
        puts, space = 0.0, 0.0
        for owner in range(1, owners + 1):
            stock = stocks[owner * CLASSES + size]
            puts += stock.puts
            space += stock.puts_space
        weights[size] = space / max(puts, _LEAST) if puts > 0.5 else alone[size]


@routine
def weigh(stocks: Array, owners: int, alone: Array, weights: Array) -> None:
    """Write what a message put takes of a store itself on average, not offloaded.

    Args:
        stocks: STOCK, of the store.
        owners: data sets, or queue managers that put.
        alone: f8[CLASSES], the same where none were put.
        weights: f8[CLASSES], written.
    """
    _weigh(stocks, owners, alone, weights)


@routine
def read(store: Store, tick: int, owners: int, alone: Array, fill: Fill) -> int:
    """Read the fill model of a store; return the number of data sets used.

    Args:
        store: the arrays.
        tick: the tick of the forecast.
        owners: data sets, or queue managers that put: 1 of a store with one resource.
        alone: f8[CLASSES], elements, pages or blocks of a message in a class in which none were put.
        fill: written.
    """
    scalars, stocks, weights = fill.scalars[0], store.stocks, fill.weights
    usage.read(store)
    _weigh(stocks, owners, alone, weights)
    scalars.served = 0.0
    for row in range(store.queues.size):
        if store.queues[row].got_at > tick - _SERVED_TICKS:
            scalars.served += store.queues[row].depth
    for size in range(CLASSES):
        stock = stocks[size]
        fill.classes[size, forecast.PUT_SPACE] = weights[size]
        fill.classes[size, forecast.HELD_SPACE] = stock.held_space / stock.held if stock.held > 0 else weights[size]
        fill.classes[size, forecast.IN_STORE] = stock.held
        fill.classes[size, forecast.IN_DATA_SETS] = 0.0
    if store.params[0].kind == STRUCTURE:
        return _read_structure(store, owners, fill)
    scalars.ents, scalars.ents_max, scalars.counts_ents = 0.0, 1.0, 0
    space = store.usage[SPACE]
    scalars.space, scalars.space_max = space.used, max(1.0, float(space.maximum))
    scalars.away_space, scalars.alter_from = 0.0, np.inf
    for rule in range(RULES):
        scalars.th[rule] = np.inf
    fill.doubts[0] = _doubt_of_mean(stocks, owners, weights, space.maximum - scalars.space)
    return 0


@kernel
def _read_structure(store: Store, owners: int, fill: Fill) -> int:
    """Read what a structure has besides; return the number of data sets used."""
    scalars, params, stocks = fill.scalars[0], store.params[0], store.stocks
    entries, elements, in_scm = store.usage[ENTRIES], store.usage[SPACE], store.usage[SCM]
    scalars.ents, scalars.ents_max = entries.used, max(1, entries.total)
    scalars.space, scalars.space_max = elements.used, max(1, elements.total - 1)
    scalars.away_space, scalars.counts_ents = OFFLOADED_ELEMENTS, 1
    scalars.size = params.size_now
    for rule in range(RULES):
        scalars.th[rule] = _threshold(params, rule)
    if in_scm.total != 0:  # SCM can take what the structure's own bound leaves
        scalars.scm_ents, scalars.scm_space = scm.messages_in_use(store), scm.elements_in_use(store)
        scalars.scm_max = max(in_scm.maximum, in_scm.used) / ELEMENT_BYTES  # an entry takes as much as an element
    for size in range(CLASSES):
        for owner in range(1, owners + 1):
            fill.classes[size, forecast.IN_DATA_SETS] += stocks[owner * CLASSES + size].held
    fill.doubts[0] = _doubt_of_mean(stocks, owners, fill.weights, scalars.space_max - scalars.space)
    used = 0
    for row in range(owners):
        if _is_used(store, row):
            fill.rows[used] = row
            _read_data_set(store, owners, row, used, fill)
            used += 1
    return used


@kernel
def _is_used(store: Store, row: int) -> bool:
    """Return True if a data set holds messages, or may be put to."""
    puts = 0.0
    for size in range(CLASSES):
        puts += store.stocks[(row + 1) * CLASSES + size].puts
    return puts > 0.5 or store.datasets[row].messages > 0 or store.datasets[row].base_blocks > 0


@kernel
def _read_data_set(store: Store, owners: int, row: int, place: int, fill: Fill) -> None:
    """Read a data set into a place among those that are used.

    What comes and goes soon leaves holes in the block being filled, which are not filled again
    (docs/storage-model.md, "Shared message data sets"): how loosely the blocks in use are filled shows how many more
    there will be.
    """
    stocks, dataset = store.stocks, store.datasets[row]
    per_block = store.params[0].ds_block // PAGE_BYTES
    packed = dataset.blocks_data * per_block / max(1, dataset.pages)
    puts, blocks = 0.0, 0.0  # counted that may be offloaded, and what those of all owners would take here
    for size in range(CLASSES):
        own, all_puts = stocks[(row + 1) * CLASSES + size], 0.0
        for owner in range(1, owners + 1):
            all_puts += stocks[owner * CLASSES + size].puts
        waste = _waste(own.puts_pages, own.puts, per_block)
        if dataset.blocks_data >= _MIN_BLOCKS:
            waste = max(waste, min(packed, _MAX_LOOSENESS * waste))
        fill.set_put[place, size] = own.puts_pages / per_block * waste / max(all_puts, _LEAST)
        held = max(1.0, fill.classes[size, forecast.IN_DATA_SETS])
        fill.set_held[place, size] = own.held_space / per_block / held * (packed if dataset.pages != 0 else 1.0)
        offloaded = fill.offload[(1 << RULES) - 1, size]
        puts += own.puts * offloaded
        blocks += fill.set_put[place, size] * all_puts * offloaded
    used = store.usage[DATA_SETS + row]
    fill.sets[place, 0], fill.sets[place, 1] = used.used, used.maximum
    fill.doubts[1 + place] = _doubt_of_data_set(puts, blocks, fill.sets[place, 1] - fill.sets[place, 0])


@kernel
def _waste(pages: float, messages: float, per_block: int) -> float:
    """Return by what factor messages take more than their pages: some do not fit in what is left of a block."""
    each = max(1.0, pages / max(messages, _LEAST))
    together = np.floor(per_block / each)
    if together >= 1:
        return float(per_block / (each * together))
    return float((np.floor(each / per_block) + 1) * per_block / each)


@kernel
def _doubt_of_data_set(puts: float, blocks: float, room: float) -> float:
    """Return the error of how fast a data set will fill, as a share: which queue manager puts next is chance.

    `puts` messages were counted that may be offloaded; they take `blocks`, of which there is `room` for more.
    """
    if puts < 1:
        return MAX_ERROR
    each = blocks / puts
    return min(MAX_ERROR, np.sqrt(1 / puts + each / max(each, room)))


@kernel
def _doubt_of_mean(stocks: Array, owners: int, weights: Array, room: float) -> float:
    """Return the error of the mean of what messages will take, as a share: few were put, or few still fit."""
    count, space = 0.0, 0.0
    for row in range(CLASSES, (owners + 1) * CLASSES):
        count += stocks[row].puts
        space += stocks[row].puts * weights[row % CLASSES]
    if count < 1:
        return MAX_ERROR
    mean = max(_LEAST, space / count)
    squares = 0.0
    for row in range(CLASSES, (owners + 1) * CLASSES):
        squares += stocks[row].puts * (weights[row % CLASSES] - mean) ** 2
    variance = squares / count / mean**2
    return min(MAX_ERROR, np.sqrt(variance * (1 / count + mean / max(room, mean))))
