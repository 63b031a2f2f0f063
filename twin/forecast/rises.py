"""How the rises of a store have ended before, and what that says about the rise under way.

A rise ends by itself after a time, at a height or after a climb: three laws, each of which is believed as far as it
described the past rises of this store. Past rises count by how much they are like the present one: by the pace of the
rise itself and by what caused it, more puts or fewer gets. A rise that ended in 2192 went on.

The share of harmless rises that outlast a given time or height is a weighted product limit [published: Kaplan, Meier,
"Nonparametric estimation from incomplete observations", 1958], smoothed by how much like rises differ. Beside the rises
seen stands half a rise of a kind not seen yet, which is expected to last for as long as it has lasted so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND, TICK
from kernels.layout import Store
from kernels.meter_rows import RISES
from kernels.resources import TOTAL_TIDE
from twin.estate.history import PastRise
from twin.state.arrays import Array

UNSEEN = 0.5  # rises of a kind not seen yet, beside those seen [assumed]
_BANDWIDTHS = (0.3, 0.45, 0.7, 1.0)  # of the logarithm of the pace: the first at which enough rises count
_ENOUGH = 3.0  # rises that count
_CAUSE_BANDWIDTH = 0.35  # of the share of the puts that stayed
_MIN_SPREAD = 0.03  # of what like rises have in common, as a share of it
_SPREAD_OF_ONE = 0.25  # the same where one rise is known
_MIN_CLIMB = 0.3  # of the present rise: lower ones say nothing about it
_DECISIVE = 4  # power by which the law with the smaller error is preferred
_NO_WEIGHT = 1e-3  # a rise that counts for less is none like the present one
_FASTER = 2.5  # times the mean pace of a rise, from which it is another rise
_WEEK = 7 * 86_400 * SECOND
_LONE_TICKS = 1.5  # error of every time: rises begin and end between ticks


@dataclass(frozen=True, slots=True)
class Rise:
    """The rise under way.

    Attributes:
        age: ticks since it began.
        low: utilisation at its beginning, as a share of what the store holds in all.
        height: utilisation now.
        stayed: share of the messages put since then that have stayed.
    """

    age: float
    low: float
    height: float
    stayed: float

    @property
    def pace(self) -> float:
        """Utilisation a tick, on the rise itself."""
        return max(1e-9, self.height - self.low) / max(1.0, self.age)


@dataclass(frozen=True, slots=True)
class Past:
    """Past rises like the present one, f8[n] each.

    Attributes:
        lasted: ticks.
        tops: utilisation at the end.
        climbs: utilisation from beginning to end.
        usages: largest share of a resource in use at the end.
        weights: how much each counts, 0..1.
        went_on: True if it ended in 2192.
    """

    lasted: Array
    tops: Array
    climbs: Array
    usages: Array
    weights: Array
    went_on: Array

    @property
    def count(self) -> float:
        """Harmless rises that count."""
        return float(self.weights[~self.went_on].sum())


def under_way(store: Store, tick: int) -> Rise:
    """Return the rise under way of what a store holds in all; where it does not rise, one that begins now."""
    tide, scalars = store.tides[TOTAL_TIDE], store.scalars[0]
    low, height = float(tide["low"]), float(tide["top"]) if tide["rising"] else float(tide["low"])
    puts = int(scalars["ages"]) - int(tide["puts"])
    stayed = int(scalars["messages"]) - int(tide["messages"])
    age = max(1, tick - int(tide["began"]))
    return Rise(float(age), low, height, _share_stayed(stayed, puts))


def past_of(store: Store, rise: Rise) -> Past:
    """Return the past rises of a store, weighted by how much they are like the one under way."""
    rows = store.rises[: min(RISES, int(store.tides[TOTAL_TIDE]["rises"]))]
    lasted = np.maximum(1.0, (rows["ended"] - rows["began"]).astype(float))
    climbs = np.maximum(1e-6, rows["top"] - rows["low"])
    stayed = np.clip(rows["stayed"] / np.maximum(1, rows["puts"]), 0.0, 1.0)
    apart = np.log(climbs / lasted / rise.pace)
    cause = np.exp(-0.5 * ((stayed - rise.stayed) / _CAUSE_BANDWIDTH) ** 2)
    went_on = rows["refused"] > 0
    low = climbs < _MIN_CLIMB * (rise.height - rise.low)
    weights = np.zeros(rows.size)
    for bandwidth in _BANDWIDTHS:
        weights = np.exp(-0.5 * (apart / bandwidth) ** 2) * cause
        weights[low & ~went_on] = 0.0
        if weights.sum() >= _ENOUGH:
            break
    return Past(lasted, rows["top"].copy(), climbs, rows["usage"].copy(), weights, went_on)


def goes_on(rise: Rise, past: Past, pace: float, steady: int, ahead: Array, heights: Array) -> Array:
    """Return f8[n], the probability that a rise goes on for `ahead` more ticks.

    Args:
        rise: the rise under way.
        past: rises before it.
        pace: utilisation a tick from now on.
        steady: ticks for which the flows have been as they are.
        ahead: f8[n], ticks.
        heights: f8[n], utilisation reached then.
    """
    lasted = _lasted_at(rise, pace, steady)
    prior = lasted / (lasted + ahead)
    harmless = ~past.went_on & (past.weights > _NO_WEIGHT)
    if not harmless.any():
        return np.asarray(prior)
    went_on = float(past.weights[past.went_on].sum())
    weights = past.weights[harmless]
    laws = (
        _Law.fit(np.log(past.lasted[harmless]), weights, past.lasted[harmless]),
        _Law.fit(past.tops[harmless], weights, 1.0 / max(pace, 1e-9)),
        _Law.fit(past.climbs[harmless], weights, 1.0 / max(pace, 1e-9)),
    )
    reached = (np.log(rise.age), rise.height, rise.height - rise.low)
    full = (np.log(rise.age + ahead), heights, heights - rise.low)
    trust = np.array([law.error**-_DECISIVE for law in laws])
    trust /= trust.sum()
    chance = np.zeros(ahead.size)
    for law, share, here, there in zip(laws, trust.tolist(), reached, full, strict=True):
        until_now = law.outlast(np.array([here]), weights)[0] + went_on
        until_then = law.outlast(there, weights) + went_on
        chance += share * (until_then + UNSEEN * prior) / (until_now + UNSEEN)
    return np.minimum(1.0, chance)


def _lasted_at(rise: Rise, pace: float, steady: int) -> float:
    """Return the ticks for which a rise has lasted at its present pace; one that has become faster is young again."""
    lasted = min(rise.age, max(1.0, (rise.height - rise.low) / max(pace, 1e-9)))
    return min(lasted, float(steady)) if pace > _FASTER * rise.pace else lasted


@dataclass(frozen=True, slots=True)
class _Law:
    """One way in which rises end: where each past one ended, how far like ones differ, and the error that it makes."""

    ends: Array
    spread: float
    error: float  # ticks

    @classmethod
    def fit(cls, ends: Array, weights: Array, ticks: Array | float) -> _Law:
        """Return the law. ticks: f8[n] or a number, ticks that a unit of `ends` takes."""
        weight = weights / weights.sum()
        mean = float(weight @ ends)
        count = float(weights.sum() ** 2 / (weights**2).sum())  # as many rises of equal weight
        scale = float(np.mean(ticks)) if not isinstance(ticks, float) else ticks
        least = _MIN_SPREAD if not isinstance(ticks, float) else _MIN_SPREAD * abs(mean)
        single = _SPREAD_OF_ONE if not isinstance(ticks, float) else _SPREAD_OF_ONE * abs(mean)
        variance = float(weight @ (ends - mean) ** 2)
        if count > 1.001:
            variance *= count / (count - 1)  # unbiased
        prior = 1.0 / max(1.0, count)  # of a single rise's spread
        spread = float(np.sqrt((variance * (count - 1) + single**2 * prior) / max(count - 1 + prior, 1e-9)))
        spread = max(least, spread * float(np.sqrt(1 + 1 / count)), _LONE_TICKS / max(scale, 1e-9))
        return cls(ends, spread, spread * scale)

    def outlast(self, places: Array, weights: Array) -> Array:
        """Return f8[n], the harmless rises that had not ended at some times or heights, f8[n].

        Few rises that differ much are a smooth law around their mean; many are their own law.
        """
        width = self.spread / max(1.0, np.sqrt(weights.size) / 1.5)
        apart = (self.ends[:, None] - places) / width
        return np.asarray(weights @ (1.0 / (1.0 + np.exp(np.clip(-1.7 * apart, -50.0, 50.0)))))


def _share_stayed(stayed: int, puts: int) -> float:
    return min(1.0, max(0.0, stayed / puts)) if puts > 0 else 1.0


def kept_rises(store: Store) -> tuple[PastRise, ...]:
    """Return the rises that a store remembers, in order of time."""
    rows = store.rises[: min(RISES, int(store.tides[TOTAL_TIDE]["rises"]))]
    return tuple(
        PastRise(
            began=int(row["began"]) * TICK,
            ended=int(row["ended"]) * TICK,
            low=float(row["low"]),
            top=float(row["top"]),
            usage=float(row["usage"]),
            refused=int(row["refused"]),
            puts=int(row["puts"]),
            stayed=int(row["stayed"]),
        )
        for row in rows[np.argsort(rows["ended"], kind="stable")]
    )


def begin_with(store: Store, rises: Sequence[PastRise]) -> None:
    """Let a new store remember rises, the last ones if there are more than it has room for.

    They are taken as of weeks around the beginning of 1970, at their time of the week: however old the first event
    is, they were before it.
    """
    rises = rises[-RISES:]
    if not rises:
        return
    weeks = rises[-1].ended // _WEEK * _WEEK
    for row, past in enumerate(rises):
        rise = store.rises[row]
        rise["began"], rise["ended"] = (past.began - weeks) // TICK, (past.ended - weeks) // TICK
        for name in ("low", "top", "usage", "refused", "puts", "stayed"):
            rise[name] = getattr(past, name)
    store.tides[TOTAL_TIDE]["rises"] = len(rises)
    store.rises_dirty[:] = 1
    store.tides_dirty[:] = 1
