"""How a store's earlier rises ended, the chance that the present one lasts until full, and puts by half hours.

- A rise counts all messages of a store, wherever the rules place them; a data set that is far smaller than its
  structure (`kernels.meters`) has rises of its own blocks, which those of the store do not show. A rise that ended in
  2192 counts as one that continued. Half a rise of a kind not seen yet is added to those seen; it is expected to last
  as long again as it has so far, or three times as long where a getter has stopped.
- Puts: experts predict them from the store's own days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np

from kernels.clock import HALF_HOUR_TICKS, SECOND, TICK
from kernels.layout import Store
from kernels.meter_rows import DATA_SETS, RISES, SPACE, TOTAL_TIDE
from twin.estate.planned import PastPuts, PastRise
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


# --- puts by half hours -----------------------------------------------------------------------------------------------
# The puts of the last eight days are kept. At a look, experts predict how many there will be in the next half hour and
# in the next one, two, four and eight hours: as many as now, as many as at this hour of earlier days, between the two,
# now with the change that earlier days had at this hour, as many as a week ago.
#
# Each expert is scored, for each of these spans, by the logarithm of the ratio between its prediction and what came, at
# every half hour of the last days; what is predicted is the mean of their logarithms, weighted by the likelihood of
# these errors. So the prediction follows days that repeat; where they do not, it is the present rate. There is none
# before the second day has been compared with the first.
#
# Sources: [published: Vovk, "Aggregating strategies", 1990] (experts weighted by the logarithm of what they predicted);
# [published: Bates and Granger, "The combination of forecasts", 1969] (their mean has a smaller error than any).

DAY, WEEK = 48, 336  # half hours
HALF_HOURS = 8 * DAY  # half hours of puts
UNKNOWN = -1  # puts of a half hour that was not seen as a whole
NOW, HOUR, BETWEEN, CHANGE, WEEK_AGO = range(5)  # the experts
EXPERTS = 5
SPANS = (1, 2, 4, 8, 16)  # half hours ahead that are predicted
_EARLIER = DAY * np.arange(1, 8)[:, None]  # half hours back to the same hour of the days that are averaged
_SCORED = 3 * DAY  # half hours of which the errors count
_MIN_SCORED = 8  # half hours of which the errors of an expert must be known [assumed]
LEAST_KNOWN = DAY + _MIN_SCORED + SPANS[-1]  # half hours: with less, earlier days have not been seen to repeat
_LEAST_WANDERED = 8  # half hours of which the puts must be known to say how they wander [assumed]
_STEADY = 0.02  # squared error of puts that stay as they are, before they were seen, counted as one [assumed]
_SPREADS = 1.6  # times: variance of the errors over twice as long a span, where that was not seen [assumed]
_FADE = 0.5 ** (1 / DAY)  # by which an error of an earlier half hour counts less
_LEAST = 0.05  # of the mean of the puts: fewer are taken as that many
_PRIOR = 0.1  # squared error of an expert before it was scored, counted as one [assumed]
_FAVOUR = 1.0  # logarithm by which the expert NOW is likelier beforehand: others need days that repeat [assumed]
_I4 = np.dtype("<i4")
_MOST_PUTS = np.iinfo(_I4).max


class Puts(msgspec.Struct):
    """Puts of a store by half hours of event time, part of its state: at most 1.5 KB."""

    counts: bytes = b""  # i4, little-endian: messages put or refused by half hour, oldest first; UNKNOWN
    slot: int = 0  # number of the half hour under way since 1970, or of the one behind a history
    total: int | None = None  # puts of the store before it; None: its beginning was not observed
    is_begun: bool = False  # True once a half hour of the store's own events is under way

    def note(self, tick: int, total: int) -> None:
        """Advance to a tick."""
        slot = tick // HALF_HOUR_TICKS
        if not self.is_begun:
            self._append([UNKNOWN] * ((slot - self.slot) % WEEK if self.counts else 0))
            self.slot, self.is_begun = slot, True
        elif slot > self.slot:
            first = UNKNOWN if self.total is None else min(total - self.total, _MOST_PUTS)
            self._append([first] + [0] * min(slot - self.slot - 1, HALF_HOURS))
            self.slot, self.total = slot, total

    def turn_back(self, tick: int) -> None:
        """Continue from an earlier tick; later puts are forgotten."""
        slot = tick // HALF_HOUR_TICKS
        if self.is_begun and slot <= self.slot:
            self.counts = self.counts[: max(0, len(self.counts) - (self.slot - slot) * _I4.itemsize)]
            self.slot, self.total = slot, None

    def begin_with(self, past: PastPuts) -> None:
        """Let a new store remember puts: they count at their time of the week, however old its first event is."""
        self._append(past.counts)
        self.slot = past.until // (HALF_HOUR_TICKS * TICK) % WEEK

    def as_history(self) -> PastPuts | None:
        """Return the puts that are known; None: none are."""
        if not self.counts:
            return None
        return PastPuts(until=self.slot * HALF_HOUR_TICKS * TICK, counts=tuple(self.by_half_hour()))

    def by_half_hour(self) -> list[int]:
        """Return the messages put in each half hour, oldest first; UNKNOWN."""
        return [int(count) for count in np.frombuffer(self.counts, _I4)]

    def _append(self, counts: Sequence[int]) -> None:
        self.counts = (self.counts + np.array(counts, _I4).tobytes())[-HALF_HOURS * _I4.itemsize :]


@dataclass(frozen=True, slots=True)
class Trust:
    """Trust in the experts of a store, and their predictions for the half hours around the present one."""

    weights: Array  # f8[EXPERTS, SPANS], together 1 for each span
    spread: Array  # f8[SPANS], standard deviation of the logarithm of the actual puts over the prediction
    usual: Array  # f8[SPANS[-1] + 3], mean of the puts on earlier days, from the half hour before the one under way on
    week_ago: Array  # f8[SPANS[-1] + 3], puts a week ago
    days: int  # earlier days that are known of the half hour under way
    least: float  # puts of a half hour, below which no count is taken


@lru_cache(1024)
def trust_rates(counts: bytes) -> Trust | None:
    """Return the trust in the experts of a store; None: too little is known. counts: as of `Puts`."""
    puts = _as_puts(counts)
    known = int(np.isfinite(puts).sum())
    if known < LEAST_KNOWN:
        return None
    least, sums = _least(puts), sums_of_puts(puts)
    weights, spread = np.zeros((EXPERTS, len(SPANS))), np.zeros(len(SPANS))
    for number, span in enumerate(SPANS):
        origins = np.arange(max(1, puts.size - _SCORED), puts.size - span + 1)
        came = np.log(np.maximum(_mean_of(sums, origins, span), least))
        errors = predict_puts(sums, origins, span, least) - came
        weights[:, number], spread[number] = _weigh(errors, span)
    around = np.arange(puts.size - 1, puts.size + SPANS[-1] + 2)
    usual, days = _usual(sums, around, 1)
    return Trust(
        weights,
        spread,
        np.maximum(usual, least),
        np.maximum(_mean_of(sums, around - WEEK, 1), least),
        int(days[1]),
        least,
    )


@lru_cache(1024)
def wandering(counts: bytes) -> Array | None:
    """Return f8[SPANS], the drift of puts: standard deviation of the logarithm of the puts over the present rate.

    It is for stores too young for `trust`: None for older ones, and where less than four hours are known.
    """
    puts = _as_puts(counts)
    known = int(np.isfinite(puts).sum())
    if not _LEAST_WANDERED <= known < LEAST_KNOWN:
        return None
    sums, least = sums_of_puts(puts), _least(puts)
    variance = np.zeros(len(SPANS))
    for number, span in enumerate(SPANS):
        origins = np.arange(1, puts.size - span + 1)
        errors = predict_puts(sums, origins, span, least)[NOW] - np.log(
            np.maximum(_mean_of(sums, origins, span), least)
        )
        errors = errors[np.isfinite(errors)]
        if errors.size >= span + _LEAST_WANDERED // 2:
            variance[number] = (float(errors @ errors) + _STEADY) / (errors.size + 1)
        else:
            variance[number] = _SPREADS * variance[number - 1]
    return np.sqrt(variance)


def _as_puts(counts: bytes) -> Array:
    """Return f8[m], the puts of half hours, NaN where unknown."""
    puts = np.frombuffer(counts, _I4)
    return np.where(puts == UNKNOWN, np.nan, puts.astype(float))


def _least(puts: Array) -> float:
    """Return the puts of a half hour, below which no count is taken. puts: f8[m], NaN where unknown."""
    return _LEAST * float(np.nanmean(puts)) + 1.0


def sums_of_puts(puts: Array) -> Array:
    """Return f8[2, m + 1], the sum of the puts of half hours, f8[m] or NaN, before each, and how many are known."""
    sums = np.zeros((2, puts.size + 1))
    known = np.isfinite(puts)
    np.cumsum(np.where(known, puts, 0.0), out=sums[0, 1:])
    np.cumsum(known, out=sums[1, 1:])
    return sums


def predict_puts(sums: Array, origins: Array, span: int, least: float) -> Array:
    """Return f8[EXPERTS, n], the logarithm of the puts a half hour that each expert predicts for `span` of them from
    each origin, i8[n], by those before it alone; NaN: it cannot. Below `least` puts no count is taken.
    """
    says = np.empty((EXPERTS, origins.size))
    says[NOW], says[HOUR] = _mean_of(sums, origins - 1, 1), _usual(sums, origins, span)[0]
    says[BETWEEN], says[CHANGE] = says[HOUR], _usual(sums, origins - 1, 1)[0]
    says[WEEK_AGO] = _mean_of(sums, origins - WEEK, span)
    np.log(np.maximum(says, least), out=says)
    says[BETWEEN] = (says[NOW] + says[HOUR]) / 2
    says[CHANGE] = says[NOW] + says[HOUR] - says[CHANGE]
    return says


def _mean_of(sums: Array, starts: Array, span: int) -> Array:
    """Return f8, the mean of the puts of `span` half hours from each start on, NaN where not all are known."""
    last = sums.shape[1] - 1
    among = sums[:, np.clip(starts + span, 0, last)] - sums[:, np.clip(starts, 0, last)]
    return np.where(among[1] == span, among[0] / span, np.nan)


def _usual(sums: Array, starts: Array, span: int) -> tuple[Array, Array]:
    """Return (mean over earlier days of the puts of the same half hours, f8[n], NaN: none is known; their number)."""
    days = _mean_of(sums, starts - _EARLIER, span)
    known = np.isfinite(days)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, days, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan), count


def _weigh(errors: Array, span: int) -> tuple[Array, float]:
    """Return (weight of each expert, standard deviation of the error of their weighted mean).

    Errors of spans that overlap are not independent: as many of them as a span is long count as one. `errors`:
    f8[EXPERTS, n], of logarithms, the newest last; NaN where there is none.
    """
    known = np.isfinite(errors)
    fade = _FADE ** np.arange(errors.shape[1])[::-1]
    count = known @ fade
    variance = ((np.where(known, errors, 0.0) ** 2) @ fade + _PRIOR) / (count + 1)
    chosen = known.sum(axis=1) >= _MIN_SCORED
    chosen[NOW] = True
    score = _FAVOUR * (np.flatnonzero(chosen) == NOW) - 0.5 * count[chosen].min() / span * np.log(variance[chosen])
    weights = np.zeros(EXPERTS)
    weights[chosen] = np.exp(score - score.max())
    weights /= weights.sum()
    both = known[chosen].all(axis=0)
    mean = weights[chosen] @ errors[np.ix_(chosen, both)]
    return weights, float(np.sqrt((mean**2 @ fade[both] + _PRIOR) / (fade[both].sum() + 1)))


@dataclass(frozen=True, slots=True)
class Expected:
    """Puts that are expected at some times ahead."""

    factor: Array  # f8[n], of the puts at present
    spread: Array  # f8[n], standard deviation of the logarithm of the puts until then
    now: Array  # f8[n], weight of the expert NOW
    persistent: Array  # f8[n], share of a change of the present puts that lasts until then, on the scale of logarithms
    days: int  # earlier days that are known of this half hour


def expected_puts(trusted: Trust, tick: int, now: float, ahead: Array) -> Expected:
    """Return the expected puts. For the next minutes the present rate, messages a half hour, is trusted fully."""
    spans, middles = np.array([0, *SPANS], float), np.arange(trusted.usual.size) - 0.5
    passed = tick % HALF_HOUR_TICKS / HALF_HOUR_TICKS
    after = ahead / HALF_HOUR_TICKS
    present = np.log(max(now, trusted.least))
    hour, week_ago = (
        np.log(np.interp(passed + after, middles, levels)) - present for levels in (trusted.usual, trusted.week_ago)
    )
    change = hour + present - np.log(np.interp(passed, middles, trusted.usual))
    logs = np.nan_to_num(np.stack([np.zeros_like(hour), hour, hour / 2, change, week_ago]))
    weights = np.stack([np.interp(after, spans, [float(i == NOW), *trusted.weights[i]]) for i in range(EXPERTS)])
    return Expected(
        factor=np.exp((weights * logs).sum(axis=0)),
        spread=np.sqrt(np.interp(after, spans, [0.0, *trusted.spread**2])),
        now=weights[NOW],
        persistent=weights[NOW] + weights[CHANGE] + weights[BETWEEN] / 2,
        days=trusted.days,
    )
