"""Measures of the scorecard, computed from many judged stores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from kernels.clock import SECOND
from tests.tools.score.chances import add_counts, interval_score
from tests.tools.score.judge import AHEAD, Cause, JudgedStore, Point, StorePages, WarnedFilling
from tests.tools.score.skill import BrierScore, Reliability, bounds_of, brier_scores, crps, reliability, values_of
from twin.playback.pages import HORIZON
from twin.reporting.tuning import Bounds, Figure, Resamples

ENOUGH_LEAD = 900.0  # seconds
MONTH_DAYS = 30.0
ENOUGH_SHARE = 0.8  # of a filling that takes less than ENOUGH_LEAD


@dataclass(frozen=True, slots=True)
class Coverage:
    """Position of the actual time in the predicted interval. Shares of 1, None without predictions.

    A quantile beyond the horizon lies after any time within an hour.
    """

    points: int
    below: float | None  # before p10; a tenth if the interval is right
    up_to_p50: float | None
    above: float | None  # after p90; a tenth if the interval is right

    @property
    def inside(self) -> float | None:
        """Share between p10 and p90."""
        return None if self.below is None or self.above is None else max(0.0, 1.0 - self.below - self.above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Measures of a method over some recordings. None: nothing to measure. Times in seconds, shares of 1."""

    recordings: int
    store_days: float
    fillings: int
    recalled: int
    alarms: int
    false: int
    withdrawn: int
    early: int
    undecided: int
    causes: dict[Cause, int]  # false alarms by cause, those that occur
    recall: float | None
    precision: float | None
    f1: float | None
    false_per_day: float
    alarms_per_day: float | None
    calm: float  # share of recordings without a false alarm
    lead_p10: float | None
    lead_p50: float | None
    enough_lead: float | None  # recalled with 15 minutes, or with 80 % of a filling that takes less
    errors: dict[int, tuple[float, int]]  # by minutes before the first 2192: median relative error, fillings
    interval: Coverage  # in the fillings
    interval_score: float | None  # of the interval, seconds
    reliability: tuple[Reliability, ...]  # of the probability, over whole recordings
    brier: tuple[BrierScore, ...]  # by horizon
    crps: float | None  # survival CRPS of the time until full, seconds
    crps_skill: float | None  # against climatology
    reopened: float | None
    clear_p50: float | None
    named: float | None
    bounds: dict[str, Bounds] = field(default_factory=dict)  # by field, also of the interval, and "error 60" and so on

    def as_json(self) -> dict[str, Any]:
        """Return the measures, JSON-ready; an infinite error is null."""
        fields: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        fields["errors"] = {
            minutes: {"median": value if math.isfinite(value) else None, "fillings": count}
            for minutes, (value, count) in fields["errors"].items()
        }
        fields["interval"]["inside"] = self.interval.inside
        return fields


class PageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of a method about some stores of some recordings. None: nothing to divide by.

    Attributes:
        stores: Number of stores.
        store_days: Their days.
        fillings: Number of their fillings.
        pages: Pages of all conditions.
        right: Those that a refused put followed; false: those that none followed; the others are undecided.
        precision: Share of right ones among right and false ones, 0 to 1.
        per_month: Pages per store and 30 days; false_per_month: false ones.
        per_filling: Pages about the stores in which something fills, per filling.
        calm_stores: Number of stores in which nothing fills; calm_pages: pages about them.
        per_calm_store: Pages per store in which nothing fills.
        again: Pages that open within ten minutes after another one of the store ended.
        per_page: Messages that people get per page: itself and its escalations.
        late: Fillings without a page before the first refused put; unheard: without any page.
        lead_p50: Median time from the page to the first refused put, seconds.
        bounds: Interval of each figure, by field; empty unless resampled.
    """

    stores: int
    store_days: float
    fillings: int
    pages: int
    right: int
    false: int
    undecided: int
    precision: float | None
    per_month: float | None
    false_per_month: float | None
    per_filling: float | None
    calm_stores: int
    calm_pages: int
    per_calm_store: float | None
    again: int
    per_page: float | None
    late: int
    unheard: int
    lead_p50: float | None
    bounds: dict[str, Bounds] = {}


def count_pages(recordings: Sequence[Sequence[StorePages]], resamples: int = 0) -> PageCounts:
    """Count the pages of a method about some stores.

    Args:
        recordings: the stores of each recording.
        resamples: how many times the recordings are drawn again for bounds.
    """
    drawn = Resamples(len(recordings), resamples)
    stores = [store for recording in recordings for store in recording]

    def total(count: Callable[[StorePages], float]) -> list[float]:
        return [sum(map(count, recording)) for recording in recordings]

    pages, days = total(lambda store: store.pages), total(lambda store: store.days)
    decided = total(lambda store: store.pages - store.undecided)
    right = total(lambda store: store.pages - store.false - store.undecided)
    calm = [[store for store in recording if not store.fillings] for recording in recordings]
    calm_pages = [sum(store.pages for store in recording) for recording in calm]
    calm_stores = list(map(len, calm))
    fillings = total(lambda store: store.fillings)
    figures = {
        "precision": drawn.ratio(right, decided),
        "per_month": drawn.ratio(np.multiply(pages, MONTH_DAYS), days),
        "false_per_month": drawn.ratio(np.multiply(total(lambda store: store.false), MONTH_DAYS), days),
        "per_filling": drawn.ratio(np.subtract(pages, calm_pages), fillings),
        "per_calm_store": drawn.ratio(calm_pages, calm_stores),
        "per_page": drawn.ratio(total(lambda store: store.notices), pages),
        "lead_p50": drawn.quantile(
            [[lead for store in stores for lead in store.leads if lead is not None] for stores in recordings], 0.5
        ),
    }
    return PageCounts(
        stores=len(stores),
        store_days=sum(days),
        fillings=sum(store.fillings for store in stores),
        pages=sum(store.pages for store in stores),
        right=sum(store.pages - store.false - store.undecided for store in stores),
        false=sum(store.false for store in stores),
        undecided=sum(store.undecided for store in stores),
        calm_stores=sum(calm_stores),
        calm_pages=sum(calm_pages),
        again=sum(store.again for store in stores),
        late=sum(lead is None for store in stores for lead in store.leads),
        unheard=sum(store.unheard for store in stores),
        **values_of(figures),
        bounds=bounds_of(figures),
    )


def measure(recordings: Sequence[Sequence[JudgedStore]], resamples: int = 0) -> Measures:
    """Compute the measures of a method.

    Args:
        recordings: the judged stores of each recording.
        resamples: how many times the recordings are drawn again for bounds.
    """
    drawn = Resamples(len(recordings), resamples)
    stores = [store for recording in recordings for store in recording]
    warned = [[filling for store in recording for filling in store.warned] for recording in recordings]
    every_filling = [filling for own in warned for filling in own]
    leads = [[filling.lead for filling in own if filling.lead is not None] for own in warned]
    named = [[filling.named for filling in own if filling.named is not None] for own in warned]
    fillings, recalled = list(map(len, warned)), list(map(len, leads))
    false = [sum(store.false for store in recording) for recording in recordings]
    days = [sum(store.days for store in recording) for recording in recordings]
    errors = {
        minutes: [[filling.errors[minutes] for filling in own if minutes in filling.errors] for own in warned]
        for minutes in AHEAD
    }
    points = [[point for store in recording for point in store.points] for recording in recordings]
    counts = [add_counts(store.chances for store in recording) for recording in recordings]
    is_probability = any(own.is_probability for own in counts)
    figures = {
        "recall": drawn.ratio(recalled, fillings),
        "precision": drawn.ratio(recalled, np.add(recalled, false)),
        "f1": drawn.ratio(np.multiply(2, recalled), np.add(np.add(recalled, false), fillings))
        if every_filling
        else Figure(None),
        "false_per_day": drawn.ratio(false, days),
        "alarms_per_day": drawn.ratio([sum(store.alarms for store in recording) for recording in recordings], days),
        "calm": drawn.ratio(np.equal(false, 0), np.ones(len(recordings))),
        "lead_p10": drawn.quantile(leads, 0.1),
        "lead_p50": drawn.quantile(leads, 0.5),
        "enough_lead": drawn.ratio([sum(map(_had_enough_lead, own)) for own in warned], fillings),
        "interval_score": _interval_score(drawn, points),
        "reopened": drawn.ratio([sum(filling.reopened for filling in own) for own in warned], fillings),
        "clear_p50": drawn.quantile([[f.clear for f in own if f.clear is not None] for own in warned], 0.5),
        "named": drawn.ratio(list(map(sum, named)), list(map(len, named))),
        **crps(drawn, counts),
    }
    others = {f"error {minutes}": drawn.quantile(values, 0.5) for minutes, values in errors.items()}
    interval = coverage([point for own in points for point in own] if is_probability else [])
    for name, holds in _WITHIN.items():
        others[name] = drawn.ratio([sum(map(holds, own)) for own in points], list(map(len, points)))
    values = values_of(figures)
    return Measures(
        recordings=len(recordings),
        store_days=sum(days),
        fillings=len(every_filling),
        recalled=sum(recalled),
        alarms=sum(store.alarms for store in stores),
        false=sum(false),
        withdrawn=sum(store.withdrawn for store in stores),
        early=sum(store.early for store in stores),
        undecided=sum(store.undecided for store in stores),
        causes=_count(cause for store in stores for cause in store.causes),
        errors={
            minutes: (value, sum(map(len, values)))
            for minutes, values in errors.items()
            if (value := others[f"error {minutes}"].value) is not None
        },
        interval=interval,
        reliability=reliability(drawn, counts) if is_probability else (),
        brier=brier_scores(drawn, counts),
        bounds=bounds_of(figures | others),
        **{**values, "false_per_day": values["false_per_day"] or 0.0, "calm": values["calm"] or 0.0},
    )


def coverage(points: Sequence[Point]) -> Coverage:
    """Compute the coverage of predicted intervals."""
    shares = {name: _share(sum(map(_WITHIN[name], points)), len(points)) for name in ("below", "up_to_p50", "above")}
    return Coverage(len(points), **shares)


_WITHIN: dict[str, Callable[[Point], bool]] = {  # fields of `Coverage`
    "inside": lambda point: point.p10 <= point.came <= point.p90,
    "below": lambda point: point.came < point.p10,
    "up_to_p50": lambda point: point.came < point.p50,
    "above": lambda point: point.came > point.p90,
}


def _interval_score(drawn: Resamples, points: Sequence[Sequence[Point]]) -> Figure:
    """Return the mean interval score of each point; later than in HORIZON, or never, counts as in HORIZON."""
    sums = []
    for own in points:
        rows = np.array([(point.p10, point.p50, point.p90, point.came) for point in own]).reshape(-1, 4)
        sums.append(float(interval_score(*np.minimum(rows, HORIZON / SECOND).T).sum()))
    return drawn.ratio(sums, list(map(len, points)))


def _had_enough_lead(warned: WarnedFilling) -> bool:
    whole = warned.filling.seconds
    return warned.lead is not None and warned.lead >= (ENOUGH_LEAD if whole >= ENOUGH_LEAD else ENOUGH_SHARE * whole)


def _count(causes: Iterable[Cause]) -> dict[Cause, int]:
    counts = Counter(causes)
    return {cause: counts[cause] for cause in Cause if counts[cause]}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
