"""One path of a forecast, the slow and obvious way: what `kernels.forecast.roll` must say of it.

A store is a dict of counts by class of message length, data sets are dicts, a path is a loop over its steps. What is
random comes as arguments, the same that the kernel gets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

CLASSES, RULES = 12, 3


@dataclass
class NaiveDataSet:
    """used, most: blocks; put, gives_back: blocks of an offloaded message of each class, on average; larger: times."""

    used: float
    most: float
    larger: float
    put: list[float]
    gives_back: list[float]


@dataclass
class NaiveStore:
    """A store by classes of length. kept, away: messages in the store and in data sets; thresholds: shares."""

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
    kept: list[float]
    away: list[float]
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
        """Above 90 % to SCM, as far as it has room, until 90 %; at 70 % and below back, until 70 %."""
        usage = self.usage()
        moved = 0.0  # of what is in the structure
        back = 0.0  # of what is in SCM
        self.scm_was_short = False
        if usage > 0.9:
            wanted = (self.ents + self.space) * (1 - 0.9 / usage)
            room = max(0.0, self.scm_max - self.scm_ents - self.scm_space)
            moved = min(wanted, room) / (self.ents + self.space)
            self.scm_was_short = wanted > room
        elif usage <= 0.7 and self.scm_ents > 0:
            whole = max(self.scm_ents / self.ents_max, self.scm_space / self.space_max)
            back = min(1.0, (0.7 - usage) / whole)
        ents, space = self.ents * moved - self.scm_ents * back, self.space * moved - self.scm_space * back
        self.ents, self.scm_ents = self.ents - ents, self.scm_ents + ents
        self.space, self.scm_space = self.space - space, self.scm_space + space

    def alter(self, bins: int) -> None:
        """From its threshold on a structure takes the ratio of what is in use, and grows by 10 % a minute."""
        if self.usage() < self.alter_from or self.scm_ents > 0 or self.ents <= 0:
            return
        self.size = min(self.size_max, self.size * 1.1 ** (bins / 6))
        ratio = self.space / self.ents
        self.ents_max = self.size * self.per_byte / (695 + 256 * ratio)
        self.space_max = max(1.0, self.ents_max * ratio)

    def rules_in_force(self) -> int:
        return sum(1 << rule for rule in range(RULES) if self.usage() > self.thresholds[rule])

    def put(self, come: list[float], rules: int) -> None:
        """Messages of each class come and stay."""
        for size in range(CLASSES):
            away = come[size] * self.offloaded[rules][size]
            kept = come[size] - away
            self.kept[size] += kept
            self.away[size] += away
            self.space += kept * self.put_space[size] * self.larger + away * self.away_space
            self.ents += come[size]
            self.served += come[size] * self.served_share
            for one in self.sets:
                one.used += away * one.put[size] * one.larger
        for one in self.sets:
            one.used = max(0.0, one.used)

    def leave(self, size: int, kept: float, away: float) -> None:
        """Messages of a class go, from the store itself and from data sets."""
        self.kept[size] -= kept
        self.away[size] -= away
        self.space -= kept * self.held_space[size] + away * self.away_space
        self.ents -= kept + away
        self.served -= kept + away
        for one in self.sets:
            one.used = max(0.0, one.used - away * one.gives_back[size])

    def here(self, size: int) -> tuple[float, float]:
        return max(0.0, self.kept[size]), max(0.0, self.away[size])

    def get(self, wanted: list[tuple[float, float]]) -> None:
        """Old messages of each class go; where there are not enough of one kind, others go in their stead."""
        lacking = 0.0
        for size in range(CLASSES):
            want_kept, want_away = wanted[size]
            here_kept, here_away = self.here(size)
            kept, away = min(want_kept, here_kept), min(want_away, here_away)
            kept += min(want_kept + want_away - kept - away, here_kept - kept)
            away += min(want_kept + want_away - kept - away, here_away - away)
            served = max(0.0, self.served)
            if kept + away > served:
                kept, away = kept * served / (kept + away), away * served / (kept + away)
            lacking += want_kept + want_away - kept - away
            self.leave(size, kept, away)
        stock = sum(sum(self.here(size)) for size in range(CLASSES))
        lacking = min(lacking, max(0.0, self.served), stock)
        if lacking > 0:
            for size in range(CLASSES):
                kept, away = self.here(size)
                self.leave(size, kept * lacking / stock, away * lacking / stock)
        self.ents, self.space = max(0.0, self.ents), max(0.0, self.space)


def passes(before: float, after: float, limit: float) -> float:
    """Where in a step a quantity passes its limit, 0..1."""
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
) -> tuple[float, int]:
    """(bins until something is full or inf, what: 0 entries, 1 space, 2 and on data sets, then SCM, or -1) of one path.

    bins: messages of each class that come and stay, then those that go, for each bin of the regime.
    """
    elapsed, at, left = 0.0, 0, 0
    rules_then: list[tuple[float, int]] = []  # (end of a step, rules in force in it)
    for step, length in enumerate(lengths):
        if left < length:
            at, left = starts[step], max(block, length)
        flows = [sum(bins[(at + k) % len(bins)][lane] for k in range(length)) for lane in range(3 * CLASSES)]
        come = [flows[c] + (trend[step][c] + extra[step] * store.mix[c]) * length for c in range(CLASSES)]
        gone = [max(0.0, flows[lane] + trend[step][lane] * length) for lane in range(CLASSES, 3 * CLASSES)]
        ents, space, used = store.ents, store.space, [one.used for one in store.sets]
        rules = store.rules_in_force()
        rules_then.append((elapsed + length, rules))
        store.put(come, rules)
        reached: list[tuple[float, int]] = []
        for number, one in enumerate(store.sets):
            if one.used > one.most:
                reached.append((passes(used[number], one.used, one.most), 2 + number))
        wanted = [(gone[c], gone[CLASSES + c]) for c in range(CLASSES)]
        if elapsed >= store.wait:  # what leaves was put on this path
            then = next(rules for end, rules in rules_then if end > elapsed - store.wait)
            all_of_them = sum(map(sum, wanted))
            lengths_of = store.served_share, 1 - store.served_share
            messages = [
                lengths_of[0] * all_of_them * store.mix[c] + lengths_of[1] * sum(wanted[c]) for c in range(CLASSES)
            ]
            shares = store.offloaded[then]
            wanted = [(both * (1 - share), both * share) for both, share in zip(messages, shares, strict=True)]
        store.get(wanted)
        if store.scm_max > 0:
            store.move()
        store.alter(length)
        if store.space > store.space_max:
            what = 2 + len(store.sets) if store.scm_was_short else 1
            reached.append((passes(space, store.space, store.space_max), what))
        if store.counts_ents and store.ents > store.ents_max:
            what = 2 + len(store.sets) if store.scm_was_short else 0
            reached.append((passes(ents, store.ents, store.ents_max), what))
        if reached:
            part, what = min(reached, key=lambda entry: entry[0])
            return elapsed + part * length, what
        elapsed += length
        at = (at + length) % len(bins)
        left -= length
    return math.inf, -1
