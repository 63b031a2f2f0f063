"""Paths of a forecast: a store's own rules rolled forward over resampled flows.

A path is one possible future. Bins of the present regime are drawn in blocks, so that bursts stay bursts, shifted by
the uncertainty of their mean, and put through the rules of the store step by step, by length class. Everything random
is drawn beforehand, so a path is a plain function of its arguments (tests/naive/forecast.py is the same, slowly). The
rules are those of the kernels that move single messages: pools.py, smds.py, scm.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels._compile import kernel, routine
from kernels.clock import MINUTE_TICKS
from kernels.layout import RULES, Array, Row
from kernels.meter_rows import ENTRIES, FIRST_DATA_SET, NOTHING_FULL, SPACE
from kernels.pools import AUTO_ALTER_GROWTH_PCT, ELEMENT_BYTES, ENTRY_BYTES
from kernels.scm import PREFETCH_UNTIL, PRESTAGE_ABOVE

# Columns of `Model.classes`
PUT_SPACE = 0  # space that a message put takes of the store when it is not offloaded
HELD_SPACE = 1  # space that a message held in the store itself takes
IN_STORE = 2  # messages held in the store itself
IN_DATA_SETS = 3  # messages held in data sets
COLUMNS = 4

MODEL = np.dtype(
    [
        ("ents", "f8"),  # in use
        ("ents_max", "f8"),
        ("space", "f8"),  # elements, pages or blocks in use
        ("space_max", "f8"),
        ("away_space", "f8"),  # space that an offloaded message takes of the store
        ("served", "f8"),  # messages held on queues that have a getter
        ("served_share", "f8"),  # share of the messages that stay which a getter will take
        ("th", "f8", (RULES,)),  # shares above which the offload rules are in force
        ("scm_max", "f8"),  # what SCM can take, entries and elements together; 0: there is no SCM
        ("scm_ents", "f8"),
        ("scm_space", "f8"),
        ("alter_from", "f8"),  # share in use from which automatic alter acts; inf: never
        ("size", "f8"),  # bytes
        ("size_max", "f8"),  # bytes it may grow to
        ("per_byte", "f8"),  # share of the pools that fit into its size which it has
        ("wait", "f8"),  # bins from the put of a message to its get, where it is not got soon
        ("counts_ents", "i8"),  # 1: entries can run out
    ],
    align=True,
)

PATH = np.dtype(
    [
        ("ents", "f8"),  # as in MODEL, from here on as of the present step
        ("ents_max", "f8"),
        ("space", "f8"),
        ("space_max", "f8"),
        ("served", "f8"),
        ("scm_ents", "f8"),
        ("scm_space", "f8"),
        ("scm_short", "i8"),  # 1: SCM had too little room in this step
        ("size", "f8"),
        ("first", "i8"),  # resource that is full first in this step, or NOTHING_FULL
        ("part", "f8"),  # share of this step after which it is full
    ],
    align=True,
)

_PRESTAGE_ABOVE, _PREFETCH_UNTIL = PRESTAGE_ABOVE / 100, PREFETCH_UNTIL / 100  # shares of the structure in use
_GROWTH = 1 + AUTO_ALTER_GROWTH_PCT / 100  # factor on the size per minute


class Model(NamedTuple):
    """The fill model of a store, with c length classes (any) and d data sets.

    Attributes:
        scalars: MODEL[1].
        classes: f8[c, COLUMNS].
        offload: f8[2**RULES, c], share of the puts of a class that is offloaded, by the offload rules in force.
        sets: f8[d, 2], blocks in use, and at most.
        set_put: f8[d, c], blocks of an offloaded message put, on average over all data sets.
        set_held: f8[d, c], blocks that an offloaded message gives back, on average over all data sets.
    """

    scalars: Array
    classes: Array
    offload: Array
    sets: Array
    set_put: Array
    set_held: Array


class Flows(NamedTuple):
    """Drawn futures of the flows of a store, by length class.

    Attributes:
        cumulated: f8[bins + longest + 1, 3 * c], sums of the bins before each: messages that stay, that leave the store
            itself, that leave data sets. The first bins stand again behind the last one, as many as the longest step or
            block has.
        bins: number of bins of the regime.
        trend: f8[steps, 3 * c], messages per bin more than the regime has.
        lengths: i8[steps], bins per step.
        starts: i8[paths, steps], bin of the regime with which a block begins, should it begin with that step.
        extra: f8[paths, steps], messages put per bin more than the regime has.
        larger: f8[paths, 1 + d], factor on the space of a message put, in the store itself and in each data set.
        block: bins per block.
        second: row of `cumulated` from which on the sums of other bins stand, likewise, for starts that are not below
            it; 0: there are none.
        others: number of these bins.
        mix: f8[c], shares of the puts.
    """

    cumulated: Array
    bins: int
    trend: Array
    lengths: Array
    starts: Array
    extra: Array
    larger: Array
    block: int
    second: int
    others: int
    mix: Array


class Scratch(NamedTuple):
    """Working space of `roll`, and its results.

    Attributes:
        path: PATH[1], the path being rolled.
        comes, leaves: b1[c], True for a class of which messages come; of which messages leave that are held now.
        in_store, in_sets: f8[c], messages held in the store itself, and in data sets.
        offloaded: f8[c], messages offloaded in this step.
        used: f8[d], blocks of each data set in use.
        rules: i8[steps], bits of the offload rules in force.
        full_at: f8[paths], the result: bins until something is full, or inf.
        full_of: i8[paths], the result: the resource that is full (kernels/meter_rows.py), or NOTHING_FULL.
    """

    path: Array
    comes: Array
    leaves: Array
    in_store: Array
    in_sets: Array
    offloaded: Array
    used: Array
    rules: Array
    full_at: Array
    full_of: Array


def new_scratch(model: Model, flows: Flows) -> Scratch:
    """Return working space for a model and flows."""
    classes, paths = model.classes.shape[0], flows.starts.shape[0]
    return Scratch(
        path=np.zeros(1, PATH),
        comes=np.empty(classes, np.bool_),
        leaves=np.empty(classes, np.bool_),
        in_store=np.empty(classes),
        in_sets=np.empty(classes),
        offloaded=np.empty(classes),
        used=np.empty(model.sets.shape[0]),
        rules=np.empty(flows.lengths.size, np.int64),
        full_at=np.empty(paths),
        full_of=np.empty(paths, np.int64),
    )


@routine
def roll(model: Model, flows: Flows, scratch: Scratch) -> None:
    """Roll every path to the end of the horizon, or until something is full; write the results into `scratch`.

    What leaves was put `wait` bins before. As long as that was before the forecast, it leaves in the lengths and from
    where messages leave now; later, from where the rules in force at its put placed it, and of what comes only the
    share that is got at all (`served_share`) leaves in the lengths that come.
    """
    scalars, path = model.scalars[0], scratch.path[0]
    _note_classes(model, flows, scratch)
    has_rules = min(scalars.th[0], scalars.th[1], scalars.th[2]) < np.inf
    for number in range(flows.starts.shape[0]):
        _begin_path(model, scratch)
        scratch.full_at[number] = np.inf
        scratch.full_of[number] = NOTHING_FULL
        elapsed = 0.0  # bins before the step
        begin, left = 0, 0  # bin of the regime with which the step begins, bins left of the block
        put_step, put_elapsed = 0, 0.0  # step in which what leaves was put, bins before that step
        for step in range(flows.lengths.size):
            length = flows.lengths[step]
            if left < length:
                begin, left = flows.starts[number, step], max(flows.block, length)
            scratch.rules[step] = _rules_in_force(scalars, _usage(path)) if has_rules else 0
            path.first, path.part = NOTHING_FULL, 2.0
            ents_before, space_before = path.ents, path.space
            _put(model, flows, scratch, number, step, begin)
            _fill_data_sets(model, flows, scratch, number)
            while put_elapsed + flows.lengths[put_step] <= elapsed - scalars.wait:
                put_elapsed += flows.lengths[put_step]
                put_step += 1
            _get(model, flows, scratch, step, begin, put_step if elapsed >= scalars.wait else -1)
            if scalars.scm_max > 0.0:
                _move_to_scm(model, path)
            _alter(model, path, length)
            _check_pools(model, path, ents_before, space_before)
            if path.first != NOTHING_FULL:
                scratch.full_at[number] = elapsed + path.part * length
                scratch.full_of[number] = path.first
                break
            elapsed += length
            begin = _after(flows, begin, length)
            left -= length


@kernel
def _after(flows: Flows, begin: int, length: int) -> int:
    """Return the row of `cumulated` with which the bin behind a step stands: behind the last bin the first comes."""
    if begin >= flows.second > 0:
        return int(flows.second + (begin - flows.second + length) % flows.others)
    return int((begin + length) % flows.bins)


@kernel
def _note_classes(model: Model, flows: Flows, scratch: Scratch) -> None:
    """Note of which classes messages come or leave: a step leaves out the others, for which it would add zeros."""
    count = model.classes.shape[0]
    for size in range(count):
        scratch.comes[size] = flows.mix[size] != 0.0 or _is_used(flows, size)
        scratch.leaves[size] = _is_used(flows, count + size) or _is_used(flows, 2 * count + size)
        scratch.offloaded[size] = 0.0


@kernel
def _is_used(flows: Flows, lane: int) -> bool:
    """Return True if the flow of a lane is not 0 in every bin and step."""
    for table in (flows.cumulated, flows.trend):
        for row in range(table.shape[0]):
            if table[row, lane] != 0.0:
                return True
    return False


@kernel
def _usage(path: Row) -> float:
    """Return the share of the pools in use, entries or space, whichever is larger."""
    return max(path.ents / path.ents_max, path.space / path.space_max)


@kernel
def _begin_path(model: Model, scratch: Scratch) -> None:
    """Set a path to the store as it is now."""
    scalars, path = model.scalars[0], scratch.path[0]
    for size in range(model.classes.shape[0]):
        scratch.in_store[size] = model.classes[size, IN_STORE]
        scratch.in_sets[size] = model.classes[size, IN_DATA_SETS]
    for data_set in range(model.sets.shape[0]):
        scratch.used[data_set] = model.sets[data_set, 0]
    path.ents = scalars.ents
    path.ents_max = scalars.ents_max
    path.space = scalars.space
    path.space_max = scalars.space_max
    path.served = scalars.served
    path.scm_ents = scalars.scm_ents
    path.scm_space = scalars.scm_space
    path.scm_short = 0
    path.size = scalars.size


@kernel
def _rules_in_force(scalars: Row, usage: float) -> int:
    """Return the bits of the offload rules whose threshold is exceeded."""
    mask = 0
    for rule in range(RULES):
        if usage > scalars.th[rule]:
            mask |= 1 << rule
    return mask


@kernel
def _usage_of(scalars: Row, sets: Array, resource: int) -> float:
    """Return the share of a resource in use now, as `usage_of`."""
    if resource == ENTRIES:
        return scalars.ents / scalars.ents_max
    if resource == SPACE:
        return scalars.space / scalars.space_max
    data_set = resource - FIRST_DATA_SET
    if data_set == sets.shape[0]:
        return (scalars.scm_ents + scalars.scm_space) / max(1.0, scalars.scm_max)
    return sets[data_set, 0] / max(1.0, sets[data_set, 1])


@routine
def usage_of(scalars: Array, sets: Array, resource: int) -> float:
    """Return the share of a resource in use now. Arguments: as of `Model`, and the number of the resource."""
    return _usage_of(scalars[0], sets, resource)


@routine
def fullest(scalars: Array, sets: Array) -> int:
    """Return the resource of which most is in use now, the first one of several. Arguments: as of `Model`.

    Stores that have no entries have one resource.
    """
    if scalars[0].counts_ents == 0:
        return SPACE
    first = ENTRIES
    for resource in range(SPACE, FIRST_DATA_SET + sets.shape[0] + 1):
        if _usage_of(scalars[0], sets, resource) > _usage_of(scalars[0], sets, first):
            first = resource
    return first


# --- puts ------------------------------------------------------------------------------------------------------------


@kernel
def _put(model: Model, flows: Flows, scratch: Scratch, number: int, step: int, begin: int) -> None:
    """Add the messages of a step that stay, to the store itself and to data sets."""
    scalars, path = model.scalars[0], scratch.path[0]
    length, mask = flows.lengths[step], scratch.rules[step]
    extra, larger = flows.extra[number, step], flows.larger[number, 0]
    away_space, served_share = scalars.away_space, scalars.served_share
    before, after, trend = flows.cumulated[begin], flows.cumulated[begin + length], flows.trend[step]
    ents, space, served = path.ents, path.space, path.served
    for size in range(model.classes.shape[0]):
        if not scratch.comes[size]:
            continue
        arriving = after[size] - before[size]
        arriving += (trend[size] + extra * flows.mix[size]) * length
        out = arriving * model.offload[mask, size]
        scratch.offloaded[size] = out
        scratch.in_store[size] += arriving - out
        scratch.in_sets[size] += out
        space += (arriving - out) * model.classes[size, PUT_SPACE] * larger + out * away_space
        ents += arriving
        served += arriving * served_share
    path.ents = ents
    path.space = space
    path.served = served


@kernel
def _fill_data_sets(model: Model, flows: Flows, scratch: Scratch, number: int) -> None:
    """Add the blocks of the messages offloaded in this step, and check whether a data set is full."""
    path = scratch.path[0]
    for data_set in range(model.sets.shape[0]):
        before = scratch.used[data_set]
        blocks = 0.0
        for size in range(model.classes.shape[0]):
            blocks += scratch.offloaded[size] * model.set_put[data_set, size]
        scratch.used[data_set] = max(0.0, before + blocks * flows.larger[number, 1 + data_set])
        if scratch.used[data_set] > model.sets[data_set, 1]:
            _note_full(path, FIRST_DATA_SET + data_set, before, scratch.used[data_set], model.sets[data_set, 1])


# --- gets ------------------------------------------------------------------------------------------------------------


@kernel
def _get(model: Model, flows: Flows, scratch: Scratch, step: int, begin: int, put_step: int) -> None:
    """Let messages leave. What one class lacks is taken from all of them.

    Args:
        model: the fill model.
        flows: the futures.
        scratch: working space.
        step: the present step.
        begin: bin of the regime with which it begins.
        put_step: step in which what leaves was put; -1: it was put before the forecast.
    """
    path, served_share = scratch.path[0], model.scalars[0].served_share
    count, length = model.classes.shape[0], flows.lengths[step]
    mask = scratch.rules[max(0, put_step)]
    before, after, trend = flows.cumulated[begin], flows.cumulated[begin + length], flows.trend[step]
    leaving = 0.0
    if put_step >= 0:
        for lane in range(count, 3 * count):
            leaving += _leaving(before[lane], after[lane], trend[lane], length)
    ents, space, served, lacking = path.ents, path.space, path.served, 0.0
    for size in range(count):
        if not (scratch.leaves[size] or (put_step >= 0 and scratch.comes[size])):
            continue
        near = _leaving(before[count + size], after[count + size], trend[count + size], length)
        far = _leaving(before[2 * count + size], after[2 * count + size], trend[2 * count + size], length)
        if put_step >= 0:
            both = near + far + served_share * (leaving * flows.mix[size] - near - far)
            offloaded = model.offload[mask, size]
            near, far = both * (1.0 - offloaded), both * offloaded
        if near == 0.0 and far == 0.0:
            continue
        near, far, lack = _limit_to_stock(near, far, scratch.in_store[size], scratch.in_sets[size], served)
        ents, space, served = _leave(model, scratch, size, near, far, ents, space, served)
        lacking += lack
    share = _share_lacking(scratch, lacking, served) if lacking > 0.0 else 0.0
    if share > 0.0:
        for size in range(count):
            near, far = max(0.0, scratch.in_store[size]) * share, max(0.0, scratch.in_sets[size]) * share
            ents, space, served = _leave(model, scratch, size, near, far, ents, space, served)
    path.ents = max(0.0, ents)
    path.space = max(0.0, space)
    path.served = served


@kernel
def _share_lacking(scratch: Scratch, lacking: float, served: float) -> float:
    """Return the share of all messages held that leave in place of those that are lacking."""
    stock = 0.0
    for size in range(scratch.in_store.size):
        stock += max(0.0, scratch.in_store[size]) + max(0.0, scratch.in_sets[size])
    lacking = min(lacking, max(0.0, served), stock)
    return lacking / stock if lacking > 0.0 else 0.0


@kernel
def _leaving(before: float, after: float, trend: float, length: int) -> float:
    """Return the messages that are to leave in a step of one kind of flow."""
    return max(0.0, after - before + trend * length)


@kernel
def _limit_to_stock(
    near: float, far: float, in_store: float, in_sets: float, served: float
) -> tuple[float, float, float]:
    """Return what of a class leaves the store itself, what leaves data sets, and what is lacking.

    `near` and `far` are to leave, `in_store` and `in_sets` are held in these places, `served` on queues that have a
    getter. What one place lacks, the other has to give.
    """
    if near <= in_store and far <= in_sets and near + far <= served:
        return near, far, 0.0
    in_store, in_sets = max(0.0, in_store), max(0.0, in_sets)
    demand = near + far
    near, far = min(near, in_store), min(far, in_sets)
    near += min(demand - near - far, in_store - near)
    far += min(demand - near - far, in_sets - far)
    total = near + far
    if total > max(0.0, served):
        near *= max(0.0, served) / total
        far *= max(0.0, served) / total
        total = max(0.0, served)
    return near, far, demand - total


@kernel
def _leave(
    model: Model, scratch: Scratch, size: int, near: float, far: float, ents: float, space: float, served: float
) -> tuple[float, float, float]:
    """Remove messages of a class from the stocks and the pools.

    The pools are numbers here, not fields of `scratch.path`: memory slows the innermost loop.

    Args:
        model: the fill model.
        scratch: working space.
        size: the class.
        near: messages that leave the store itself.
        far: messages that leave data sets.
        ents: entries in use.
        space: space in use.
        served: messages held on queues that have a getter.

    Returns:
        `ents`, `space` and `served` without these messages.
    """
    scratch.in_store[size] -= near
    scratch.in_sets[size] -= far
    if far > 0.0:
        for data_set in range(scratch.used.size):
            scratch.used[data_set] = max(0.0, scratch.used[data_set] - far * model.set_held[data_set, size])
    space = space - near * model.classes[size, HELD_SPACE] - far * model.scalars[0].away_space
    return ents - near - far, space, served - near - far


# --- the pools -------------------------------------------------------------------------------------------------------


@kernel
def _move_to_scm(model: Model, path: Row) -> None:
    """Move messages into SCM above its pre-staging mark, back from it at its pre-fetching mark."""
    usage = _usage(path)
    ents, space = 0.0, 0.0  # to move into SCM, below 0: back
    path.scm_short = 0
    if usage > _PRESTAGE_ABOVE:
        share = 1.0 - _PRESTAGE_ABOVE / usage
        demand = (path.ents + path.space) * share
        room = max(0.0, model.scalars[0].scm_max - path.scm_ents - path.scm_space)
        if demand > room:
            share *= room / demand
            path.scm_short = 1
        ents, space = path.ents * share, path.space * share
    elif usage <= _PREFETCH_UNTIL and path.scm_ents > 0.0:
        whole = max(path.scm_ents / path.ents_max, path.scm_space / path.space_max)
        share = min(1.0, (_PREFETCH_UNTIL - usage) / max(whole, 1e-12))
        ents, space = -path.scm_ents * share, -path.scm_space * share
    path.ents -= ents
    path.scm_ents += ents
    path.space -= space
    path.scm_space += space


@kernel
def _alter(model: Model, path: Row, length: int) -> None:
    """Alter the structure as ALLOWAUTOALT(YES) does: to the ratio in use, and larger by a share per minute."""
    scalars = model.scalars[0]
    if scalars.alter_from < np.inf and _usage(path) >= scalars.alter_from and path.scm_ents <= 0.0 < path.ents:
        path.size = min(scalars.size_max, path.size * _GROWTH ** (length / MINUTE_TICKS))
        ratio = path.space / path.ents
        path.ents_max = path.size * scalars.per_byte / (ENTRY_BYTES + ELEMENT_BYTES * ratio)
        path.space_max = max(1.0, path.ents_max * ratio)


@kernel
def _check_pools(model: Model, path: Row, ents_before: float, space_before: float) -> None:
    """Check whether space or entries are full; where SCM lacked room for them, SCM is what is full."""
    scm = FIRST_DATA_SET + model.sets.shape[0]
    if path.space > path.space_max:
        _note_full(path, scm if path.scm_short == 1 else SPACE, space_before, path.space, path.space_max)
    if model.scalars[0].counts_ents == 1 and path.ents > path.ents_max:
        _note_full(path, scm if path.scm_short == 1 else ENTRIES, ents_before, path.ents, path.ents_max)


@kernel
def _note_full(path: Row, resource: int, before: float, after: float, limit: float) -> None:
    """Note a resource as the first to be full in this step if it passes its limit before any other."""
    part = 0.0
    if after > before:
        part = min(1.0, max(0.0, (limit - before) / (after - before)))
    if part < path.part:
        path.first = resource
        path.part = part
