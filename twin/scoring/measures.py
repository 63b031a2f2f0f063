"""The measures of the scorecard, from many judged stores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from twin.scoring.judge import AHEAD, Chance, Judged, Point, Warned

ENOUGH_LEAD = 900.0  # seconds
CHANCES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
ENOUGH_SHARE = 0.8  # of the filling, where the whole of it takes less than ENOUGH_LEAD


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often what came lay where it was said to be. Shares of 1, None: nothing to judge by.

    below: came before p10, above: after p90 (each a tenth, if the interval is right); up_to_p50: came before p50. An
    end that was said to be beyond the horizon lies after whatever came within an hour.
    """

    points: int
    below: float | None
    up_to_p50: float | None
    above: float | None

    @property
    def inside(self) -> float | None:
        """Share from p10 to p90."""
        return None if self.below is None or self.above is None else max(0.0, 1.0 - self.below - self.above)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Of predictions that gave about the same probability: how many, the mean of it, and how often a 2192 came."""

    count: int
    given: float
    came: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """One method over some recordings. None: nothing to measure. Times in seconds, shares of 1.

    enough_lead: recalled with 15 minutes, or with 80 % of a filling that takes less; errors: median relative error by
    minutes before the first 2192, with the number of fillings it is of; interval: in the fillings; reliability: of the
    probability, over whole recordings. calm: share of recordings without a false alarm.
    """

    recordings: int
    store_days: float
    fillings: int
    recalled: int
    alarms: int
    false: int
    withdrawn: int
    early: int
    undecided: int
    recall: float | None
    precision: float | None
    f1: float | None
    false_per_day: float
    calm: float
    lead_p10: float | None
    lead_p50: float | None
    enough_lead: float | None
    errors: dict[int, tuple[float, int]]
    interval: Coverage
    reliability: tuple[Reliability, ...]
    reopened: float | None
    clear_p50: float | None
    named: float | None

    def as_json(self) -> dict[str, Any]:
        """JSON-ready; an infinite error is null."""
        fields: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        fields["errors"] = {
            minutes: {"median": value if math.isfinite(value) else None, "fillings": count}
            for minutes, (value, count) in fields["errors"].items()
        }
        fields["interval"]["inside"] = self.interval.inside
        return fields


def measure(recordings: Sequence[Sequence[Judged]]) -> Measures:
    """The measures of one method. recordings: for each, its judged stores."""
    stores = [store for recording in recordings for store in recording]
    warned = [one for store in stores for one in store.warned]
    leads = [one.lead for one in warned if one.lead is not None]
    false = sum(store.false for store in stores)
    recall = _share(len(leads), len(warned))
    precision = _share(len(leads), len(leads) + false)
    days = sum(store.days for store in stores)
    named = [one.named for one in warned if one.named is not None]
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
        recall=recall,
        precision=precision,
        f1=_f1(len(leads), len(warned), false),
        false_per_day=false / days if days else 0.0,
        calm=_share(sum(not any(store.false for store in one) for one in recordings), len(recordings)) or 0.0,
        lead_p10=_quantile(leads, 0.1),
        lead_p50=_quantile(leads, 0.5),
        enough_lead=_share(sum(map(_had_enough_lead, warned)), len(warned)),
        errors=_errors([one.errors for one in warned]),
        interval=coverage([point for store in stores for point in store.points]),
        reliability=reliability([chance for store in stores for chance in store.chances]),
        reopened=_share(sum(one.reopened for one in warned), len(warned)),
        clear_p50=_quantile([one.clear for one in warned if one.clear is not None], 0.5),
        named=_share(sum(named), len(named)),
    )


def coverage(points: Sequence[Point]) -> Coverage:
    """How often what came lay below, up to the middle of, and above what was said."""
    count = len(points)
    return Coverage(
        count,
        _share(sum(point.came < point.p10 for point in points), count),
        _share(sum(point.came < point.p50 for point in points), count),
        _share(sum(point.came > point.p90 for point in points), count),
    )


def reliability(chances: Sequence[Chance]) -> tuple[Reliability, ...]:
    """In bins of the probability given, CHANCES their upper ends; those that are empty are left out."""
    found = []
    low = -1.0
    for high in CHANCES:
        some = [one for one in chances if low < one.given <= high]
        low = high
        if some:
            given, came = sum(one.given for one in some), sum(one.came for one in some)
            found.append(Reliability(len(some), given / len(some), came / len(some)))
    return tuple(found)


def _had_enough_lead(warned: Warned) -> bool:
    whole = warned.filling.seconds
    return warned.lead is not None and warned.lead >= (ENOUGH_LEAD if whole >= ENOUGH_LEAD else ENOUGH_SHARE * whole)


def _errors(found: Sequence[dict[int, float]]) -> dict[int, tuple[float, int]]:
    by_minutes = {minutes: [one[minutes] for one in found if minutes in one] for minutes in AHEAD}
    return {minutes: (float(np.median(values)), len(values)) for minutes, values in by_minutes.items() if values}


def _f1(recalled: int, fillings: int, false: int) -> float | None:
    """The harmonic mean of recall and precision; 0 where nothing was recalled."""
    return 2 * recalled / (recalled + false + fillings) if fillings else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None
