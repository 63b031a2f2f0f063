"""The ends of a store's earlier rises, and the chance that the rise under way lasts until the store is full.

A rise counts all messages of a store, wherever the rules place them; a data set that is far smaller than its structure
(`kernels.usage`) has rises of its own blocks, which those of the store do not show. A rise that ended in 2192 counts as
one that continued. Half a rise of a kind not seen yet is added to those seen; it is expected to last as long again as
it has so far, or three times as long where a getter has stopped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.clock import SECOND, TICK
from kernels.layout import Store
from kernels.meter_rows import DATA_SETS, RISES, SPACE, TOTAL_TIDE
from twin.estate.past_rises import PastRise
from twin.state.arrays import Array

_FASTER = 2.5  # times the mean pace of a rise, from which it is another rise
_MIN_KNOWN = 3  # rises, from which a level that none has reached is unusual [assumed]
_BEYOND = 0.05  # share of a resource by which it is beyond them [assumed]
_TURNED = 0.3  # past rises, by weight, from which rises like them turn back [assumed]
_SELDOM = 0.6  # share of a resource in use, up to which any store may turn back [fitted]
_CAUSE_BANDWIDTH = 0.35  # of the share of the puts that stayed, within which rises are of one cause
_PACE_BANDWIDTH = 0.4  # of the logarithm of the pace, within which they are of one pace
_MIN_CLIMB = 0.3  # of the rise under way: rises of less say nothing about it
_ANY_PACE = 0.63  # weight of the rises of one cause, whatever their pace; the rest: of one pace, too [fitted]
_USUAL_SPREAD = 0.12  # of the logarithm of how long like rises last, before it was seen, counted as one rise [fitted]
_NARROWER = 0.6  # of the spread, over the fifth root of the count: how wide the curve of rises that last is [fitted]
_WIDTHS = (0.012, 0.3)  # the least and the largest
_LOGISTIC = 1.7  # times: a logistic curve as wide as a normal one
_LARGEST = 50.0  # exponent of that curve
_UNSEEN = 0.5  # rises of a kind not seen yet, beside those seen [assumed]
_STOPPED = 0.5  # exponent of the chance that a rise without precedent continues, where a getter has stopped [fitted]
_WEEK = 7 * 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class Rise:
    """The rise under way."""

    age: float  # ticks since it began
    low: float  # utilisation at its beginning, as a share of what the store holds in all, or of the data set
    height: float  # utilisation now
    stayed: float  # share of the messages put since then that have stayed
    # ticks from its beginning to its top: it is known to have lasted as long; None: until now
    topped: float | None = None

    @property
    def pace(self) -> float:
        """Utilisation a tick, on the rise itself."""
        return max(1e-9, self.height - self.low) / max(1.0, self.age)


@dataclass(frozen=True, slots=True)
class Past:
    """Past rises."""

    rows: Array  # RISE[n], the rises
    alike: Array  # f8[2, n], how much each is like the present one: in cause, in pace too; 0..1

    @property
    def weights(self) -> Array:
        """How much each is like the present one in cause and pace, f8[n], 0..1."""
        return np.asarray(self.alike[1])

    @property
    def lasted(self) -> Array:
        """Ticks, f8[n]."""
        return np.asarray(np.maximum(1.0, (self.rows["ended"] - self.rows["began"]).astype(float)))

    @property
    def usages(self) -> Array:
        """Largest share of a resource in use at the end, f8[n]."""
        return np.asarray(self.rows["usage"])

    @property
    def refused(self) -> Array:
        """True if it ended in 2192, bool[n]."""
        return np.asarray(self.rows["refused"] > 0)

    @property
    def count(self) -> float:
        """Harmless rises that count."""
        return float(self.weights[~self.refused].sum())

    @property
    def turns_back(self) -> bool:
        """True if rises like the present one have turned back, and more of them than ended in 2192."""
        return self.count > max(_TURNED, float(self.weights[self.refused].sum()))


def tide_of(store: Store, resource_tide: int) -> int:
    """Return the row of `tides` that a resource rises with: its own if the data set is apart, else the total's."""
    return resource_tide if store.tides[resource_tide]["apart"] else TOTAL_TIDE


def under_way(store: Store, tick: int, tide_row: int = TOTAL_TIDE) -> Rise:
    """Return the rise under way of a row of `tides`; where it does not rise, one that begins now."""
    tide, scalars = store.tides[tide_row], store.scalars[0]
    low, height = float(tide["low"]), float(tide["top"]) if tide["rising"] else float(tide["low"])
    puts = int(scalars["ages"]) - int(tide["puts"])
    stayed = int(scalars["messages"]) - int(tide["messages"])
    age = max(1, tick - int(tide["began"]))
    topped = max(1, int(tide["topped"]) - (tick - age)) if tide["rising"] else age
    share = min(1.0, max(0.0, stayed / puts)) if puts > 0 else 1.0
    return Rise(float(age), low, height, share, float(min(age, topped)))


def kept_rows(store: Store, tide_row: int = TOTAL_TIDE) -> Array:
    """Return RISE[n], a copy of the past rises that a store keeps of a row of `tides`."""
    rows = store.rises[: min(RISES, int(store.tides[TOTAL_TIDE]["rises"]))]
    return np.asarray(rows[rows["tide"] == tide_row])


def past_threshold(store: Store, resource_tides: Sequence[int], percent: float) -> tuple[tuple[int, int], ...]:
    """Return the rises under way that began below a threshold and have reached it: row of `tides`, first tick."""
    tides = store.tides[list(resource_tides)]
    reached = 100.0 * np.maximum(tides["share"], tides["top"])
    is_past = (tides["rising"] == 1) & (100.0 * tides["low"] < percent) & (reached >= percent)
    rows = np.array(resource_tides)[is_past].tolist()
    return tuple(zip(rows, tides["began"][is_past].tolist(), strict=True))


def chance_beyond_past(store: Store, resource_tide: int) -> float:
    """Return the chance that a rise does not turn back, from its height above the end of every past one.

    It is the used part of the room above the highest end, or above _SELDOM: 0 up to there, 1 where the resource is
    full. It is 0 where fewer than three rises are known.
    """
    tide, tops = store.tides[resource_tide], _tops(store)
    if not tide["rising"] or tops.size < _MIN_KNOWN or tide["share"] <= tops.max() + _BEYOND:
        return 0.0
    seen, share = max(_SELDOM, float(tops.max())), float(tide["share"])
    return 1.0 if share >= 1.0 else max(0.0, (share - seen) / (1.0 - seen))


def _tops(store: Store) -> Array:
    """Return f8[n], the largest shares in use at the end of the rises that a store keeps."""
    usages = np.asarray(store.rises[: min(RISES, int(store.tides[TOTAL_TIDE]["rises"]))]["usage"])
    return np.asarray(usages[usages > 0.0])


def past_of(store: Store, rise: Rise, tide_row: int = TOTAL_TIDE) -> Past:
    """Return the past rises of a row of `tides`, weighted by how much each is like the one under way."""
    rows = kept_rows(store, tide_row)
    rows = rows[rows["usage"] > 0.0]  # the others were planned (`twin.forecast.plans`)
    return Past(rows, alike(rows, max(0.0, rise.height - rise.low), rise.pace, rise.stayed))


def alike(rows: Array, climb: float, pace: float, stays: float) -> Array:
    """Return f8[2, n], how much each RISE counts for one, 0..1: by cause, by pace too. `stays`: share of the puts."""
    climbs = np.maximum(1e-6, rows["top"] - rows["low"])
    lasted = np.maximum(1.0, rows["ended"] - rows["began"])
    stayed = np.clip(rows["stayed"] / np.maximum(1, rows["puts"]), 0.0, 1.0)
    cause = np.exp(-0.5 * ((stayed - stays) / _CAUSE_BANDWIDTH) ** 2)
    cause *= (rows["refused"] > 0) | (climbs >= _MIN_CLIMB * climb)
    return np.stack([cause, cause * np.exp(-0.5 * ((np.log(climbs / lasted) - np.log(pace)) / _PACE_BANDWIDTH) ** 2)])


def chance_to_last(
    rise: Rise, past: Past, pace: float, steady: int, ahead: Array, *, has_stopped: bool = False
) -> Array:
    """Return f8[n], the probability that a rise lasts for `ahead` more ticks: the share of earlier rises like it that
    lasted as long, of those that lasted until now: of its cause, and of its cause and pace.

    `has_stopped`: a getter has stopped, so that nothing but its return ends the rise.
    """
    lasted = _lasted_at(rise, pace, steady)
    prior = (lasted / (lasted + ahead)) ** (_STOPPED if has_stopped else 1.0)
    if not past.rows.size:
        return np.asarray(prior)
    unseen = _UNSEEN * np.append(prior, 1.0)
    reached = np.log(np.append(rise.age + ahead, rise.age if rise.topped is None else rise.topped))
    of_cause, of_pace = (_share_lasting(past, weights, reached, unseen) for weights in past.alike)
    share = _ANY_PACE * of_cause + (1.0 - _ANY_PACE) * of_pace
    return np.asarray(np.minimum(1.0, share[:-1] / share[-1]))


def _share_lasting(past: Past, weights: Array, reached: Array, unseen: Array) -> Array:
    """Return f8[m], the share of past rises that last until some ages, smoothed by how much they differ.

    The width falls with the number of rises as in Silverman's rule [published: Silverman, "Density Estimation for
    Statistics and Data Analysis", 1986]. `unseen`: f8[m], what rises of a kind not seen yet add.
    """
    logs, harmless = np.log(past.lasted), np.where(past.refused, 0.0, weights)
    count = float(harmless.sum())
    mean = float(harmless @ logs) / max(count, 1e-9)
    variance = (_USUAL_SPREAD**2 + float(harmless @ (logs - mean) ** 2)) / (1.0 + count)
    width = min(max(_NARROWER * math.sqrt(variance) * max(count, 1.0) ** -0.2, _WIDTHS[0]), _WIDTHS[1])
    late = np.where(past.refused, np.inf, logs)[:, None] - reached
    lasting = 1.0 / (1.0 + np.exp(np.minimum(-_LOGISTIC / width * late, _LARGEST)))
    return np.asarray((weights @ lasting + unseen) / (weights.sum() + _UNSEEN))


def _lasted_at(rise: Rise, pace: float, steady: int) -> float:
    """Return the ticks for which a rise has lasted at its present pace; one that has become faster is young again."""
    lasted = min(rise.age, max(1.0, (rise.height - rise.low) / max(pace, 1e-9)))
    return min(lasted, float(steady)) if pace > _FASTER * rise.pace else lasted


def kept_rises(store: Store, qmgrs: Sequence[str]) -> tuple[PastRise, ...]:
    """Return the rises that a store remembers, in order of time. qmgrs: owners of its data sets, by row."""
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
            data_set=qmgrs[int(row["tide"]) - DATA_SETS] if row["tide"] != TOTAL_TIDE else "",
        )
        for row in rows[np.argsort(rows["ended"], kind="stable")]
        if row["usage"] > 0.0  # the others were planned
    )


def next_begins(store: Store, qmgrs: Sequence[str]) -> dict[str, int]:
    """Return where the rise after the last kept one begins: of the store (""), and of data sets by queue manager."""
    tides = {"": TOTAL_TIDE} | {qmgr: DATA_SETS + row for row, qmgr in enumerate(qmgrs)}
    return {name: int(store.tides[row]["began"]) * TICK for name, row in tides.items()}


def begin_with(store: Store, rises: Sequence[PastRise], qmgrs: Sequence[str]) -> None:
    """Let a new store remember rises, the last ones if there are more than it has room for.

    Those of a data set whose queue manager is not among `qmgrs`, the owners of the data sets by row, are left out. They
    are dated to weeks around the beginning of 1970, at their time of the week, so that they precede any first event.
    """
    rises = [rise for rise in rises if not rise.data_set or rise.data_set in qmgrs][-RISES:]
    if not rises:
        return
    weeks = rises[-1].ended // _WEEK * _WEEK
    for row, past in enumerate(rises):
        rise = store.rises[row]
        rise["began"], rise["ended"] = (past.began - weeks) // TICK, (past.ended - weeks) // TICK
        for name in ("low", "top", "usage", "refused", "puts", "stayed"):
            rise[name] = getattr(past, name)
        rise["tide"] = DATA_SETS + qmgrs.index(past.data_set) if past.data_set else TOTAL_TIDE
    store.tides[TOTAL_TIDE]["rises"] = len(rises)
    store.rises_dirty[:] = 1
    store.tides_dirty[:] = 1


def rescale(store: Store, before: Array, after: Array) -> None:
    """Give the rises of a store, which are shares of its resources, the sizes that were measured."""
    factors = np.maximum(1, before) / np.maximum(1, after)
    factors[TOTAL_TIDE] = factors[SPACE]
    if (factors == 1.0).all():
        return
    tides = store.tides[: store.datasets.size + DATA_SETS]
    for name in ("share", "low", "top", "usage"):
        tides[name] *= factors[: tides.size]
    earlier = store.rises[: min(int(tides[TOTAL_TIDE]["rises"]), RISES)]
    for name in ("low", "top", "usage"):
        earlier[name] *= factors[earlier["tide"]]
    store.tides_dirty[:] = store.rises_dirty[:] = 1
