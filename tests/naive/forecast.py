"""A path of a forecast, rolled in a slow and obvious way: the oracle of `kernels.forecast.roll`.

A store has counts by length class, a path is a loop over its steps. Everything random is an argument, the same as that
of the kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

CLASSES, RULES = 12, 3


ROUNDING = 1e-9  # messages: what is left of none after puts and gets, where automatic alter has left no entry


@dataclass
class NaiveDataSet:
    """A data set. `put` and `gives_back`: mean blocks per offloaded message, by class; `larger`: factor on `put`."""

    used: float  # blocks
    total: float
    larger: float
    put: list[float]
    gives_back: list[float]


@dataclass
class NaiveStore:
    """A store by length class. `in_store`, `in_sets`: messages in the store and in data sets; `thresholds`: shares."""

    ents: float
    ents_max: float
    space: float
    space_max: float
    away_space: float
    served: float
    served_share: float
    counts_ents: bool
    thresholds: list[float]
    put_space: list[float]
    held_space: list[float]
    in_store: list[float]
    in_sets: list[float]
    mix: list[float]
    offloaded: list[list[float]]  # by the set of rules in force, by class
    scm_max: float
    scm_ents: float
    scm_space: float
    alter_from: float
    size: float
    size_max: float
    per_byte: float
    wait: float
    larger: float
    sets: list[NaiveDataSet] = field(default_factory=list)
    scm_was_short: bool = False

    def usage(self) -> float:
        return max(self.ents / self.ents_max, self.space / self.space_max)

    def move(self) -> None:
        """Move to SCM above 90 % of usage, as far as it has room, until 90 %; back at or below 70 %, until 70 %."""
        usage = self.usage()
        moved = 0.0  # of what is in the structure
        back = 0.0  # of what is in SCM
        self.scm_was_short = False
        if usage > 0.9:
            leaving = (self.ents + self.space) * (1 - 0.9 / usage)
            room = max(0.0, self.scm_max - self.scm_ents - self.scm_space)
            moved = min(leaving, room) / (self.ents + self.space)
            self.scm_was_short = leaving > room
        elif usage <= 0.7 and self.scm_ents > 0:
            whole = max(self.scm_ents / self.ents_max, self.scm_space / self.space_max)
            back = min(1.0, (0.7 - usage) / whole)
        ents, space = self.ents * moved - self.scm_ents * back, self.space * moved - self.scm_space * back
        self.ents, self.scm_ents = self.ents - ents, self.scm_ents + ents
        self.space, self.scm_space = self.space - space, self.scm_space + space

    def alter(self, bins: int) -> None:
        """Alter a structure from its threshold on: to the ratio in use, and larger by 10 % per minute."""
        if self.usage() < self.alter_from or self.scm_ents > 0 or self.ents <= 0:
            return
        self.size = min(self.size_max, self.size * 1.1 ** (bins / 6))
        ratio = self.space / self.ents
        self.ents_max = self.size * self.per_byte / (695 + 256 * ratio)
        self.space_max = max(1.0, self.ents_max * ratio)

    def rules_in_force(self) -> int:
        return sum(1 << rule for rule in range(RULES) if self.usage() > self.thresholds[rule])

    def put(self, arriving: list[float], rules: int) -> None:
        """Put messages of each class, which stay."""
        for size in range(CLASSES):
            out = arriving[size] * self.offloaded[rules][size]
            staying = arriving[size] - out
            self.in_store[size] += staying
            self.in_sets[size] += out
            self.space += staying * self.put_space[size] * self.larger + out * self.away_space
            self.ents += arriving[size]
            self.served += arriving[size] * self.served_share
            for data_set in self.sets:
                data_set.used += out * data_set.put[size] * data_set.larger
        for data_set in self.sets:
            data_set.used = max(0.0, data_set.used)

    def leave(self, size: int, near: float, far: float) -> None:
        """Remove messages of a class, from the store itself and from data sets."""
        self.in_store[size] -= near
        self.in_sets[size] -= far
        self.space -= near * self.held_space[size] + far * self.away_space
        self.ents -= near + far
        self.served -= near + far
        for data_set in self.sets:
            data_set.used = max(0.0, data_set.used - far * data_set.gives_back[size])

    def stock(self, size: int) -> tuple[float, float]:
        return max(0.0, self.in_store[size]), max(0.0, self.in_sets[size])

    def get(self, demand: list[tuple[float, float]]) -> None:
        """Remove old messages of each class; where one class lacks messages, others are removed instead."""
        lacking = 0.0
        for size in range(CLASSES):
            want_near, want_far = demand[size]
            stock_near, stock_far = self.stock(size)
            near, far = min(want_near, stock_near), min(want_far, stock_far)
            near += min(want_near + want_far - near - far, stock_near - near)
            far += min(want_near + want_far - near - far, stock_far - far)
            served = max(0.0, self.served)
            if near + far > served:
                near, far = near * served / (near + far), far * served / (near + far)
            lacking += want_near + want_far - near - far
            self.leave(size, near, far)
        stock = sum(sum(self.stock(size)) for size in range(CLASSES))
        lacking = min(lacking, max(0.0, self.served), stock)
        if lacking > 0:
            for size in range(CLASSES):
                near, far = self.stock(size)
                self.leave(size, near * lacking / stock, far * lacking / stock)
        self.ents, self.space = max(0.0, self.ents), max(0.0, self.space)


def crossing(before: float, after: float, limit: float) -> float:
    """Return the share of a step, 0..1, after which a quantity crosses its limit."""
    if after <= before:
        return 0.0
    return min(1.0, max(0.0, (limit - before) / (after - before)))


def roll(
    store: NaiveStore,
    bins: list[list[float]],
    trend: list[list[float]],
    lengths: list[int],
    starts: list[int],
    extra: list[float],
    block: int,
    others: list[list[float]],
    second: int,
) -> tuple[float, int]:
    """Return the bins until something is full (or inf), and its number.

    The number is 0 for entries, 1 for space, then those of data sets and SCM; -1 if nothing fills. `bins` has, per bin
    of the regime, the messages by class that arrive and stay, then those that leave. `others` has other bins, to which
    a start not below `second` refers, unless `second` is 0.
    """
    elapsed, begin, left, drawn = 0.0, 0, 0, bins
    rules_of_steps: list[tuple[float, int]] = []  # (end of a step, rules in force in it)
    for step, length in enumerate(lengths):
        if left < length:
            begin, left, drawn = starts[step], max(block, length), bins
            if second and begin >= second:
                begin, drawn = begin - second, others
        flows = [sum(drawn[(begin + k) % len(drawn)][lane] for k in range(length)) for lane in range(3 * CLASSES)]
        arriving = [flows[c] + (trend[step][c] + extra[step] * store.mix[c]) * length for c in range(CLASSES)]
        departing = [max(0.0, flows[lane] + trend[step][lane] * length) for lane in range(CLASSES, 3 * CLASSES)]
        ents, space, used = store.ents, store.space, [data_set.used for data_set in store.sets]
        rules = store.rules_in_force()
        rules_of_steps.append((elapsed + length, rules))
        store.put(arriving, rules)
        reached: list[tuple[float, int]] = []
        for number, data_set in enumerate(store.sets):
            if data_set.used > data_set.total:
                reached.append((crossing(used[number], data_set.used, data_set.total), 2 + number))
        leaving = [(departing[c], departing[CLASSES + c]) for c in range(CLASSES)]
        if elapsed >= store.wait:  # what leaves was put on this path
            rules_at_put = next(rules for end, rules in rules_of_steps if end > elapsed - store.wait)
            total = sum(map(sum, leaving))
            share_new, share_old = store.served_share, 1 - store.served_share
            messages = [share_new * total * store.mix[c] + share_old * sum(leaving[c]) for c in range(CLASSES)]
            shares = store.offloaded[rules_at_put]
            leaving = [(both * (1 - share), both * share) for both, share in zip(messages, shares, strict=True)]
        store.get(leaving)
        if store.scm_max > 0:
            store.move()
        store.alter(length)
        if store.space > store.space_max:
            resource = 2 + len(store.sets) if store.scm_was_short else 1
            reached.append((crossing(space, store.space, store.space_max), resource))
        if store.counts_ents and store.ents > store.ents_max + ROUNDING:
            resource = 2 + len(store.sets) if store.scm_was_short else 0
            reached.append((crossing(ents, store.ents, store.ents_max), resource))
        if reached:
            part, resource = min(reached, key=lambda entry: entry[0])
            return elapsed + part * length, resource
        elapsed += length
        begin = (begin + length) % len(drawn)
        left -= length
    return math.inf, -1
