"""Measures of the scorecard, computed from many judged stores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from twin.scoring.judge import AHEAD, Cause, Chance, JudgedStore, Point, StorePages, WarnedFilling

ENOUGH_LEAD = 900.0  # seconds
MONTH_DAYS = 30.0
CHANCES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
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


@dataclass(frozen=True, slots=True)
class Reliability:
    """Outcome of predictions of about the same probability."""

    count: int
    predicted: float  # mean probability
    observed: float  # share of those with a 2192


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
    calm: float  # share of recordings without a false alarm
    lead_p10: float | None
    lead_p50: float | None
    enough_lead: float | None  # recalled with 15 minutes, or with 80 % of a filling that takes less
    errors: dict[int, tuple[float, int]]  # by minutes before the first 2192: median relative error, fillings
    interval: Coverage  # in the fillings
    reliability: tuple[Reliability, ...]  # of the probability, over whole recordings
    reopened: float | None
    clear_p50: float | None
    named: float | None

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
        per_month: Pages per store and 30 days.
        per_filling: Pages about the stores in which something fills, per filling.
        calm_stores: Number of stores in which nothing fills; calm_pages: pages about them.
        per_calm_store: Pages per store in which nothing fills.
        again: Pages that open within ten minutes after another one of the store ended.
        per_page: Messages that people get per page: itself and its escalations.
        late: Fillings without a page before the first refused put; unheard: without any page.
        lead_p50: Median time from the page to the first refused put, seconds.
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
    per_filling: float | None
    calm_stores: int
    calm_pages: int
    per_calm_store: float | None
    again: int
    per_page: float | None
    late: int
    unheard: int
    lead_p50: float | None


def count_pages(stores: Sequence[StorePages]) -> PageCounts:
    """Count the pages of a method about some stores."""
    pages = sum(store.pages for store in stores)
    false, undecided = sum(store.false for store in stores), sum(store.undecided for store in stores)
    fillings = sum(store.fillings for store in stores)
    calm = [store for store in stores if not store.fillings]
    calm_pages = sum(store.pages for store in calm)
    days = sum(store.days for store in stores)
    leads = [lead for store in stores for lead in store.leads]
    return PageCounts(
        stores=len(stores),
        store_days=days,
        fillings=fillings,
        pages=pages,
        right=pages - false - undecided,
        false=false,
        undecided=undecided,
        precision=_share(pages - false - undecided, pages - undecided),
        per_month=pages * MONTH_DAYS / days if days else None,
        per_filling=_share(pages - calm_pages, fillings),
        calm_stores=len(calm),
        calm_pages=calm_pages,
        per_calm_store=_share(calm_pages, len(calm)),
        again=sum(store.again for store in stores),
        per_page=_share(sum(store.notices for store in stores), pages),
        late=leads.count(None),
        unheard=sum(store.unheard for store in stores),
        lead_p50=_quantile([lead for lead in leads if lead is not None], 0.5),
    )


def measure(recordings: Sequence[Sequence[JudgedStore]]) -> Measures:
    """Compute the measures of a method. recordings: the judged stores of each recording."""
    stores = [store for recording in recordings for store in recording]
    warned = [filling for store in stores for filling in store.warned]
    leads = [filling.lead for filling in warned if filling.lead is not None]
    false = sum(store.false for store in stores)
    recall = _share(len(leads), len(warned))
    precision = _share(len(leads), len(leads) + false)
    days = sum(store.days for store in stores)
    named = [filling.named for filling in warned if filling.named is not None]
    return Measures(
        recordings=len(recordings),
        store_days=days,
        fillings=len(warned),
        recalled=len(leads),
        alarms=sum(store.alarms for store in stores),
        false=false,
        withdrawn=sum(store.withdrawn for store in stores),
        early=sum(store.early for store in stores),
        undecided=sum(store.undecided for store in stores),
        causes=_count(cause for store in stores for cause in store.causes),
        recall=recall,
        precision=precision,
        f1=_f1(len(leads), len(warned), false),
        false_per_day=false / days if days else 0.0,
        calm=_share(sum(not any(store.false for store in recording) for recording in recordings), len(recordings))
        or 0.0,
        lead_p10=_quantile(leads, 0.1),
        lead_p50=_quantile(leads, 0.5),
        enough_lead=_share(sum(map(_had_enough_lead, warned)), len(warned)),
        errors=_errors([filling.errors for filling in warned]),
        interval=coverage([point for store in stores for point in store.points]),
        reliability=reliability([chance for store in stores for chance in store.chances]),
        reopened=_share(sum(filling.reopened for filling in warned), len(warned)),
        clear_p50=_quantile([filling.clear for filling in warned if filling.clear is not None], 0.5),
        named=_share(sum(named), len(named)),
    )


def coverage(points: Sequence[Point]) -> Coverage:
    """Compute the coverage of predicted intervals."""
    count = len(points)
    return Coverage(
        count,
        _share(sum(point.came < point.p10 for point in points), count),
        _share(sum(point.came < point.p50 for point in points), count),
        _share(sum(point.came > point.p90 for point in points), count),
    )


def reliability(chances: Sequence[Chance]) -> tuple[Reliability, ...]:
    """Compute the reliability in bins of the predicted probability with upper ends CHANCES; empty bins are dropped."""
    bins = []
    low = -1.0
    for high in CHANCES:
        in_bin = [chance for chance in chances if low < chance.probability <= high]
        low = high
        if in_bin:
            total = sum(chance.probability for chance in in_bin)
            came = sum(chance.came for chance in in_bin)
            bins.append(Reliability(len(in_bin), total / len(in_bin), came / len(in_bin)))
    return tuple(bins)


def _had_enough_lead(warned: WarnedFilling) -> bool:
    whole = warned.filling.seconds
    return warned.lead is not None and warned.lead >= (ENOUGH_LEAD if whole >= ENOUGH_LEAD else ENOUGH_SHARE * whole)


def _errors(fillings: Sequence[dict[int, float]]) -> dict[int, tuple[float, int]]:
    by_minutes = {minutes: [errors[minutes] for errors in fillings if minutes in errors] for minutes in AHEAD}
    return {minutes: (float(np.median(values)), len(values)) for minutes, values in by_minutes.items() if values}


def _f1(recalled: int, fillings: int, false: int) -> float | None:
    """Return the harmonic mean of recall and precision; 0 if nothing was recalled."""
    return 2 * recalled / (recalled + false + fillings) if fillings else None


def _count(causes: Iterable[Cause]) -> dict[Cause, int]:
    counts = Counter(causes)
    return {cause: counts[cause] for cause in Cause if counts[cause]}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None
