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
from kernels.pools import ELEMENT_BYTES, ENTRY_BYTES

# columns of `classes`
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
        ("scm_most", "f8"),  # what SCM can take: entries and elements in it together; 0: none
        ("scm_ents", "f8"),
        ("scm_space", "f8"),
        ("alter_from", "f8"),  # share in use from which the structure is altered by itself; inf: never
        ("size", "f8"),  # bytes now, and what it may grow to
        ("size_most", "f8"),
        ("per_byte", "f8"),  # pools for each byte of its size, 1: as many as fit
        ("wait", "f8"),  # bins from a message's put to its get, where it is not got soon
        ("counts_ents", "i8"),  # 1: entries can run out
    ],
    align=True,
)

NOWHERE = -1  # no resource was full within the horizon
ENTRIES, SPACE, FIRST_SET = 0, 1, 2  # resources; data set d is FIRST_SET + d; behind them SCM
PRESTAGE_ABOVE, PREFETCH_UNTIL = 0.9, 0.7  # shares of the structure in use (see scm.py)
GROWTH = 1.1  # of the size, a minute (twin/stores/auto_alter.py)
MINUTE = 6.0  # bins


@kernel
def _rules_in_force(model: Row, usage: float) -> int:
    """Bits of the rules whose threshold is exceeded."""
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
    larger: Array,
    block: int,
    work: Array,
    used: Array,
    masks: Array,
    full_at: Array,
    full_of: Array,
) -> None:
    """Roll every path to the end of the horizon, or until something is full.

    model: MODEL[1]; classes: f8[c, COLUMNS], of any c classes; offload: f8[2**RULES, c], share of the puts of a class
    that is offloaded, by the rules in force; sets: f8[d, 2], blocks in use and at most; set_put, set_held: f8[d, c],
    blocks that an offloaded message put takes, or one held gives back, on average over all data sets. cumulated:
    f8[bins + most + 1, 3 * c], sums of the bins before each, of messages that stay, of those that leave the store
    itself and of those that leave data sets, the bins and then the first `most` (the longest step or block) again;
    trend: f8[steps, 3 * c], what a bin of each step has more; lengths: i8[steps], bins a step; starts: i8[paths,
    steps], 0..bins-1, where a new block begins; extra: f8[paths, steps], messages more a bin; larger: f8[paths,
    1 + d], times as much as on average that messages put take, of the store itself and of each data set; block: bins
    a block has. work, used, masks: room for f8[3, c], f8[d], i8[steps]. Out: full_at f8[paths], bins until something
    is full, or inf; full_of i8[paths], what, or NOWHERE.

    What leaves was put `wait` bins before. As long as that was before the forecast, it leaves in the lengths and from
    where messages leave now; later, where the rules of then put it, and as far as what comes is got at all
    (`served_share`) in the lengths that come.
    """
    rules = model[0]
    kept, away, offloaded = work[0], work[1], work[2]
    count = classes.shape[0]
    for path in range(starts.shape[0]):
        for size in range(count):
            kept[size] = classes[size, KEPT]
            away[size] = classes[size, AWAY]
        for one in range(sets.shape[0]):
            used[one] = sets[one, 0]
        full_at[path] = np.inf
        full_of[path] = NOWHERE
        ents, space, served = rules.ents, rules.space, rules.served
        ents_max, space_max, bytes_now = rules.ents_max, rules.space_max, rules.size
        scm_ents, scm_space, short = rules.scm_ents, rules.scm_space, False
        elapsed = 0.0
        begin, left = 0, 0
        behind, passed = 0, 0.0  # the step in which what leaves was put, when it began
        for step in range(lengths.size):
            length = lengths[step]
            if left < length:
                begin, left = starts[path, step], max(block, length)
            mask = _rules_in_force(rules, max(ents / ents_max, space / space_max))
            masks[step] = mask
            ents_before, space_before = ents, space
            for size in range(count):
                come = cumulated[begin + length, size] - cumulated[begin, size]
                come += (trend[step, size] + extra[path, step] * classes[size, MIX]) * length
                out = come * offload[mask, size]
                offloaded[size] = out
                kept[size] += come - out
                away[size] += out
                space += (come - out) * classes[size, PUT_SPACE] * larger[path, 0] + out * rules.away_space
                ents += come
                served += come * rules.served_share
            first, part = NOWHERE, 2.0
            for one in range(sets.shape[0]):
                before = used[one]
                blocks = 0.0
                for size in range(count):
                    blocks += offloaded[size] * set_put[one, size]
                used[one] = max(0.0, before + blocks * larger[path, 1 + one])
                if used[one] > sets[one, 1]:
                    share = _crossed(before, used[one], sets[one, 1])
                    if share < part:
                        first, part = FIRST_SET + one, share
            while passed + lengths[behind] <= elapsed - rules.wait:
                passed += lengths[behind]
                behind += 1
            leaving = 0.0
            if elapsed >= rules.wait:
                for lane in range(count, 3 * count):
                    leaving += _lane(cumulated, trend, begin, length, step, lane)
            lacking, stock = 0.0, 0.0
            for size in range(count):
                near = _lane(cumulated, trend, begin, length, step, count + size)
                far = _lane(cumulated, trend, begin, length, step, 2 * count + size)
                if elapsed >= rules.wait:
                    both = near + far + rules.served_share * (leaving * classes[size, MIX] - near - far)
                    near, far = _shared_out(both, offload[masks[behind], size])
                near, far, lack = _found(near, far, kept[size], away[size], served)
                space, ents, served = _leave(
                    rules, classes, set_held, kept, away, used, size, near, far, space, ents, served
                )
                lacking += lack
                stock += max(0.0, kept[size]) + max(0.0, away[size])
            lacking = min(lacking, max(0.0, served), stock)
            if lacking > 0.0:
                share = lacking / stock
                for size in range(count):
                    near, far = max(0.0, kept[size]) * share, max(0.0, away[size]) * share
                    space, ents, served = _leave(
                        rules, classes, set_held, kept, away, used, size, near, far, space, ents, served
                    )
            ents = max(0.0, ents)
            space = max(0.0, space)
            if rules.scm_most > 0.0:
                usage = max(ents / ents_max, space / space_max)
                near, far, short = _moved(usage, ents, space, ents_max, space_max, scm_ents, scm_space, rules.scm_most)
                ents, scm_ents = ents - near, scm_ents + near
                space, scm_space = space - far, scm_space + far
            if max(ents / ents_max, space / space_max) >= rules.alter_from and scm_ents <= 0.0 and ents > 0.0:
                bytes_now = min(rules.size_most, bytes_now * GROWTH ** (length / MINUTE))
                ratio = space / ents
                ents_max = bytes_now * rules.per_byte / (ENTRY_BYTES + ELEMENT_BYTES * ratio)
                space_max = max(1.0, ents_max * ratio)
            if space > space_max:
                share = _crossed(space_before, space, space_max)
                if share < part:
                    first, part = FIRST_SET + sets.shape[0] if short else SPACE, share
            if rules.counts_ents == 1 and ents > ents_max:
                share = _crossed(ents_before, ents, ents_max)
                if share < part:
                    first, part = FIRST_SET + sets.shape[0] if short else ENTRIES, share
            if first != NOWHERE:
                full_at[path] = elapsed + part * length
                full_of[path] = first
                break
            elapsed += length
            begin = (begin + length) % bins
            left -= length


@kernel
def _moved(
    usage: float,
    ents: float,
    space: float,
    ents_max: float,
    space_max: float,
    scm_ents: float,
    scm_space: float,
    scm_most: float,
) -> tuple[float, float, bool]:
    """(entries, elements that move into SCM, below 0: back; whether SCM had too little room for them)."""
    if usage > PRESTAGE_ABOVE:
        share = 1.0 - PRESTAGE_ABOVE / usage
        wanted = (ents + space) * share
        room = max(0.0, scm_most - scm_ents - scm_space)
        if wanted > room:
            share *= room / wanted
        return ents * share, space * share, wanted > room
    if usage <= PREFETCH_UNTIL and scm_ents > 0.0:
        whole = max(scm_ents / ents_max, scm_space / space_max)
        share = min(1.0, (PREFETCH_UNTIL - usage) / max(whole, 1e-12))
        return -scm_ents * share, -scm_space * share, False
    return 0.0, 0.0, False


@kernel
def _lane(cumulated: Array, trend: Array, begin: int, length: int, step: int, lane: int) -> float:
    """Messages that want to leave by one lane in a step."""
    return max(0.0, cumulated[begin + length, lane] - cumulated[begin, lane] + trend[step, lane] * length)


@kernel
def _shared_out(messages: float, away: float) -> tuple[float, float]:
    """(those kept in the store itself, those in data sets)."""
    return messages * (1.0 - away), messages * away


@kernel
def _found(near: float, far: float, kept: float, away: float, served: float) -> tuple[float, float, float]:
    """(messages of a class that leave the store itself, that leave data sets, wanted but not there).

    Where there are not enough in one place, the other has to do.
    """
    kept, away = max(0.0, kept), max(0.0, away)
    wanted = near + far
    near, far = min(near, kept), min(far, away)
    near += min(wanted - near - far, kept - near)
    far += min(wanted - near - far, away - far)
    taken = near + far
    if taken > max(0.0, served):
        near *= max(0.0, served) / taken
        far *= max(0.0, served) / taken
        taken = max(0.0, served)
    return near, far, wanted - taken


@kernel
def _leave(
    rules: Row,
    classes: Array,
    set_held: Array,
    kept: Array,
    away: Array,
    used: Array,
    size: int,
    near: float,
    far: float,
    space: float,
    ents: float,
    served: float,
) -> tuple[float, float, float]:
    """Let messages of a class go, from the store itself and from data sets; (space, entries, served) then."""
    kept[size] -= near
    away[size] -= far
    if far > 0.0:
        for one in range(used.size):
            used[one] = max(0.0, used[one] - far * set_held[one, size])
    return space - near * classes[size, HELD_SPACE] - far * rules.away_space, ents - near - far, served - near - far
