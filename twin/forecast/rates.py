"""Puts of a store by half hours, and experts that predict them from its own days.

The puts of the last eight days are kept. At a look, experts predict how many there will be in the next half hour and in
the next one, two, four and eight hours: as many as now, as many as at this hour of earlier days, between the two, now
with the change that earlier days had at this hour, as many as a week ago. Each expert is scored, for each of these
spans, by the logarithm of the ratio between its prediction and what came, at every half hour of the last days; what is
predicted is the mean of their logarithms, weighted by the likelihood of these errors. So the prediction follows days
that repeat; where they do not, it is the present rate. There is none before the second day has been compared with the
first. Sources: [published: Vovk, "Aggregating strategies", 1990] (experts weighted by the logarithm of what they
predicted); [published: Bates and Granger, "The combination of forecasts", 1969] (their mean has a smaller error than
any).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np

from kernels.clock import HALF_HOUR_TICKS, TICK
from twin.estate.past_rises import PastPuts
from twin.state.arrays import Array

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
def trust(counts: bytes) -> Trust | None:
    """Return the trust in the experts of a store; None: too little is known. counts: as of `Puts`."""
    puts = _as_puts(counts)
    known = int(np.isfinite(puts).sum())
    if known < LEAST_KNOWN:
        return None
    least, sums = _least(puts), sums_of(puts)
    weights, spread = np.zeros((EXPERTS, len(SPANS))), np.zeros(len(SPANS))
    for number, span in enumerate(SPANS):
        origins = np.arange(max(1, puts.size - _SCORED), puts.size - span + 1)
        came = np.log(np.maximum(_mean_of(sums, origins, span), least))
        errors = predict(sums, origins, span, least) - came
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
    sums, least = sums_of(puts), _least(puts)
    variance = np.zeros(len(SPANS))
    for number, span in enumerate(SPANS):
        origins = np.arange(1, puts.size - span + 1)
        errors = predict(sums, origins, span, least)[NOW] - np.log(np.maximum(_mean_of(sums, origins, span), least))
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


def sums_of(puts: Array) -> Array:
    """Return f8[2, m + 1], the sum of the puts of half hours, f8[m] or NaN, before each, and how many are known."""
    sums = np.zeros((2, puts.size + 1))
    known = np.isfinite(puts)
    np.cumsum(np.where(known, puts, 0.0), out=sums[0, 1:])
    np.cumsum(known, out=sums[1, 1:])
    return sums


def predict(sums: Array, origins: Array, span: int, least: float) -> Array:
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


def expected(trusted: Trust, tick: int, now: float, ahead: Array) -> Expected:
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
