"""Paths: a store's own rules rolled forward over resampled flows.

One path is one possible future: bins of the present regime, drawn in blocks so that bursts stay bursts, shifted by what
is not known of their mean, are put through the rules of the store step by step, by class of length. Everything random
is drawn beforehand, so a path is a plain function of its arguments (tests/naive/forecast.py is the same, slowly).

Sources of the rules: those of the kernels that move single messages (offload.py, pools.py, smds.py).
"""

from __future__ import annotations

import numpy as np

from kernels._compile import kernel, routine
from kernels.layout import RULES, Array, Row
from kernels.meter_rows import CLASSES

# columns of `classes`, f8[CLASSES, COLUMNS]
PUT_SPACE = 0  # a message put takes so much of the store when not offloaded
HELD_SPACE = 1  # a message held there takes so much
KEPT = 2  # messages held in the store itself
AWAY = 3  # messages held in data sets
MIX = 4  # share of the puts
COLUMNS = 5

MODEL = np.dtype(
    [
        ("ents", "f8"),  # in use
        ("ents_max", "f8"),
        ("space", "f8"),  # elements, pages or blocks in use
        ("space_max", "f8"),
        ("away_space", "f8"),  # what an offloaded message takes of the store
        ("served", "f8"),  # messages held that anybody gets
        ("served_share", "f8"),  # of the messages that stay: those that anybody will get
        ("th", "f8", (RULES,)),  # shares above which the rules are in force
        ("counts_ents", "i8"),  # 1: entries can run out
    ],
    align=True,
)

NOWHERE = -1  # no resource was full within the horizon
ENTRIES, SPACE, FIRST_SET = 0, 1, 2  # resources; data set d is FIRST_SET + d


@kernel
def _rules_in_force(model: Row, ents: float, space: float) -> int:
    """Bits of the rules whose threshold is exceeded."""
    usage = max(ents / model.ents_max, space / model.space_max)
    mask = 0
    for rule in range(RULES):
        if usage > model.th[rule]:
            mask |= 1 << rule
    return mask


@kernel
def _crossed(before: float, after: float, limit: float) -> float:
    """The share of a step after which a quantity passes its limit."""
    if after <= before:
        return 0.0
    return min(1.0, max(0.0, (limit - before) / (after - before)))


@routine
def roll(
    model: Array,
    classes: Array,
    offload: Array,
    sets: Array,
    set_put: Array,
    set_held: Array,
    cumulated: Array,
    bins: int,
    trend: Array,
    lengths: Array,
    starts: Array,
    extra: Array,
    block: int,
    held: Array,
    used: Array,
    full_at: Array,
    full_of: Array,
) -> None:
    """Roll every path to the end of the horizon, or until something is full.

    model: MODEL[1]; classes: f8[CLASSES, COLUMNS]; offload: f8[2**RULES, CLASSES], share of the puts of a class that is
    offloaded, by the rules in force; sets: f8[d, 2], blocks in use and at most; set_put, set_held: f8[d, CLASSES],
    blocks that an offloaded message put takes, or one held gives back, on average over all data sets. cumulated:
    f8[bins + most + 1, 2 * CLASSES], sums of the bins before each, of messages that stay and of those that leave, the
    bins and then the first `most` (the longest step or block) again; trend: f8[steps, 2 * CLASSES], what a bin of each step has more; lengths: i8[steps], bins a
    step; starts: i8[paths, steps], 0..bins-1, where a new block begins; extra: f8[paths, steps], messages more a bin;
    block: bins a block has. held, used: room for 2 * CLASSES, d numbers. Out: full_at f8[paths], bins until something
    is full, or inf; full_of i8[paths], what, or NOWHERE.
    """
    rules = model[0]
    for path in range(starts.shape[0]):
        for size in range(CLASSES):
            held[size] = classes[size, KEPT]
            held[CLASSES + size] = classes[size, AWAY]
        for one in range(sets.shape[0]):
            used[one] = sets[one, 0]
        full_at[path] = np.inf
        full_of[path] = NOWHERE
        ents, space, served = rules.ents, rules.space, rules.served
        elapsed = 0.0
        begin, left = 0, 0
        for step in range(lengths.size):
            length = lengths[step]
            if left < length:
                begin, left = starts[path, step], max(block, length)
            mask = _rules_in_force(rules, ents, space)
            ents_before, space_before = ents, space
            first, part = NOWHERE, 2.0
            lacking, stock = 0.0, 0.0
            for size in range(CLASSES):
                come = cumulated[begin + length, size] - cumulated[begin, size]
                come += (trend[step, size] + extra[path, step] * classes[size, MIX]) * length
                away = offload[mask, size]
                held[size] += come * (1.0 - away)
                held[CLASSES + size] += come * away
                space += come * ((1.0 - away) * classes[size, PUT_SPACE] + away * rules.away_space)
                ents += come
                served += come * rules.served_share
            for one in range(sets.shape[0]):
                before = used[one]
                for size in range(CLASSES):
                    come = cumulated[begin + length, size] - cumulated[begin, size]
                    come += (trend[step, size] + extra[path, step] * classes[size, MIX]) * length
                    used[one] += come * offload[mask, size] * set_put[one, size]
                used[one] = max(0.0, used[one])
                if used[one] > sets[one, 1]:
                    share = _crossed(before, used[one], sets[one, 1])
                    if share < part:
                        first, part = FIRST_SET + one, share
            for size in range(CLASSES):
                go = cumulated[begin + length, CLASSES + size] - cumulated[begin, CLASSES + size]
                go = max(0.0, go + trend[step, CLASSES + size] * length)
                here = max(0.0, held[size]) + max(0.0, held[CLASSES + size])
                take = min(go, here, max(0.0, served))
                lacking += go - take
                if take > 0.0:
                    space, ents, served = _leave(
                        rules, classes, sets, set_held, held, used, size, take / here, space, ents, served
                    )
                stock += max(0.0, held[size]) + max(0.0, held[CLASSES + size])
            lacking = min(lacking, max(0.0, served), stock)
            if lacking > 0.0:
                share = lacking / stock
                for size in range(CLASSES):
                    space, ents, served = _leave(
                        rules, classes, sets, set_held, held, used, size, share, space, ents, served
                    )
            ents = max(0.0, ents)
            space = max(0.0, space)
            if space > rules.space_max:
                share = _crossed(space_before, space, rules.space_max)
                if share < part:
                    first, part = SPACE, share
            if rules.counts_ents == 1 and ents > rules.ents_max:
                share = _crossed(ents_before, ents, rules.ents_max)
                if share < part:
                    first, part = ENTRIES, share
            if first != NOWHERE:
                full_at[path] = elapsed + part * length
                full_of[path] = first
                break
            elapsed += length
            begin = (begin + length) % bins
            left -= length


@kernel
def _leave(
    rules: Row,
    classes: Array,
    sets: Array,
    set_held: Array,
    held: Array,
    used: Array,
    size: int,
    share: float,
    space: float,
    ents: float,
    served: float,
) -> tuple[float, float, float]:
    """Let a share of what is held of a class go; (space, entries, messages that anybody gets) then."""
    kept = max(0.0, held[size]) * share
    away = max(0.0, held[CLASSES + size]) * share
    held[size] -= kept
    held[CLASSES + size] -= away
    for one in range(sets.shape[0]):
        used[one] = max(0.0, used[one] - away * set_held[one, size])
    return space - kept * classes[size, HELD_SPACE] - away * rules.away_space, ents - kept - away, served - kept - away
