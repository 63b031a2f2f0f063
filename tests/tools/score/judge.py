"""Judgement of alarms, pages and predictions against fillings: the same functions for the twin and every baseline.

An alarm is true or false as a page is right or false (`twin.playback.pages`), but for puts refused with 2053, which
make no alarm true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from kernels.clock import SECOND
from tests.tools.score.chances import ChanceCounts, chances_of, count_chances
from tests.tools.score.series import Predictions
from tests.tools.score.truth import Filling
from twin.playback.pages import (
    CALM_FOR,
    EARLY,
    MINUTE,
    Alarm,
    Verdict,
    is_heard,
    is_undecided,
    is_withdrawn,
    lead_of,
    onset,
    owner_of,
    page_verdicts,
)
from twin.playback.pages import Filling as PlainFilling
from twin.playback.timeline import Series

AHEAD = (60, 30, 15, 5)  # minutes before the first 2192
POINTS = range(5, 65, 5)  # minutes before the first 2192 at which intervals are compared with it
SEEN_SECONDS, SEEN_SHARE = 120.0, 0.1  # part of a filling that must have passed before it is predictable
NEARLY = 0.9  # of the largest share of growth

_WATCHED = 7200 * SECOND  # time after an alarm in which a rise turns back, unless the alarm is open for longer
_FALLS = 0.5  # of the rise: a fall by more is a turn
_AS_HIGH = 0.9  # of the peak: an earlier peak of that height has been seen before


class Cause(StrEnum):
    """Cause of a false alarm: what the store did after it."""

    EARLY = "opened before the filling began"
    WITHDRAWN = "withdrawn before the 2192"
    NEW = "turned back, the first time so high"
    KNOWN = "turned back, as it had before"
    LEVEL = "neither turned back nor filled"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarnedFilling:
    """Filling with the results of a method.

    Attributes:
        filling: the filling.
        lead: seconds; None: not recalled, as no alarm was open just before its first 2192.
        reopened: alarms that open in it after the first one, one that was open at its beginning included.
        clear: seconds from the last 2192 to the end of the alarm; None: none was open then, or it never cleared.
        named: True if the first queue named when the alarm opened has at least NEARLY of the largest share of the
            growth of the full resource since the onset; None: no queue was named.
        errors: relative errors of the predicted time, by minutes before the first 2192, provided that enough
            of the filling had passed; inf: no recent prediction, or one beyond the horizon.
    """

    filling: Filling
    lead: float | None
    reopened: int
    clear: float | None
    named: bool | None
    errors: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """Predicted interval and actual time. Seconds, inf: beyond the horizon."""

    p10: float
    p50: float
    p90: float
    came: float  # until the next first 2192


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedStore:
    """Results of a method on one store of one recording."""

    store: str
    days: float
    warned: list[WarnedFilling]
    alarms: int
    false: int  # withdrawn ones included
    withdrawn: int
    early: int
    undecided: int
    causes: tuple[Cause, ...]  # of the false alarms, in order of time
    points: list[Point]  # of the fillings, every five minutes of the last hour
    chances: ChanceCounts  # of the whole recording, every five minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePages:
    """Pages of a method about one store of one recording."""

    store: str
    days: float
    fillings: int
    unheard: int  # fillings without any page
    pages: int
    false: int
    undecided: int
    again: int  # pages that open within ten minutes after another one
    notices: int  # pages and their escalations
    leads: tuple[float | None, ...]  # seconds from the page to the first 2192 of each filling; None: late


def judge(
    series: Series,
    fillings: Sequence[Filling],
    alarms: Sequence[Alarm],
    predictions: Predictions | None,
    *,
    withdrawing_counts: bool,
) -> JudgedStore:
    """Compare the alarms and predictions of a method with the fillings of a store.

    Args:
        series: the store over time.
        fillings: its fillings in order of time.
        alarms: in order of time, none overlapping another.
        predictions: predictions of the method, if it makes any.
        withdrawing_counts: True if a true alarm that clears before the first 2192 is false.
    """
    owners = [owner_of(alarm, fillings) for alarm in alarms]
    both = list(zip(alarms, owners, strict=True))
    undecided = [is_undecided(series, alarm, owner) for alarm, owner in both]
    withdrawn = [withdrawing_counts and is_withdrawn(alarm, owner) for alarm, owner in both]
    early = sum(owner is None and any(alarm.is_open(filling.first) for filling in fillings) for alarm, owner in both)
    causes = tuple(
        cause_of(series, alarm, fillings, withdrawn=gone)
        for alarm, owner, gone, open_end in zip(alarms, owners, withdrawn, undecided, strict=True)
        if (owner is None or gone) and not open_end
    )
    return JudgedStore(
        store=series.store,
        days=series.days,
        warned=[_warned(filling, alarms, owners, predictions) for filling in fillings],
        alarms=len(alarms),
        false=len(causes),
        withdrawn=sum(withdrawn),
        early=early,
        undecided=sum(undecided),
        causes=causes,
        points=_points(fillings, predictions),
        chances=count_chances(chances_of(series, fillings, alarms, predictions)),
    )


def judge_pages(
    series: Series, fillings: Sequence[Filling], pages: Sequence[Alarm], *, withdrawing_counts: bool
) -> StorePages:
    """Compare the pages of a method with the fillings of a store.

    Args:
        series: the store over time.
        fillings: its fillings in order of time.
        pages: in order of time.
        withdrawing_counts: True if a page that is over before the first 2192 is false.
    """
    verdicts = page_verdicts(series, fillings, pages, withdrawing_counts=withdrawing_counts)
    ends = [page.cleared for page in pages]
    return StorePages(
        store=series.store,
        days=series.days,
        fillings=len(fillings),
        unheard=sum(not is_heard(filling, pages) for filling in fillings),
        pages=len(pages),
        false=verdicts.count(Verdict.FALSE),
        undecided=verdicts.count(Verdict.UNDECIDED),
        again=sum(any(_is_just_over(end, page.opened) for end in ends) for page in pages),
        notices=sum(page.notices for page in pages),
        leads=tuple(lead_of(filling, pages) for filling in fillings),
    )


def _is_just_over(end: int | None, time: int) -> bool:
    return end is not None and 0 <= time - end < CALM_FOR


def _warned(
    filling: Filling, alarms: Sequence[Alarm], owners: Sequence[PlainFilling | None], predictions: Predictions | None
) -> WarnedFilling:
    warning = next((alarm for alarm in alarms if alarm.is_open(filling.first)), None)
    begin = filling.onset - EARLY
    openings = sum(owner is filling for owner in owners) + any(alarm.is_open(begin) for alarm in alarms)
    last_alarm = next((alarm for alarm in alarms if alarm.is_open(filling.last) or alarm.opened == filling.last), None)
    ended = None if last_alarm is None else last_alarm.cleared
    return WarnedFilling(
        filling=filling,
        lead=lead_of(filling, alarms),
        reopened=max(0, openings - 1),
        clear=None if ended is None else (ended - filling.last) / SECOND,
        named=_named_right(filling, warning),
        errors={} if predictions is None else _errors(filling, predictions),
    )


def _named_right(filling: Filling, warning: Alarm | None) -> bool | None:
    if warning is None or warning.named is None or not filling.grown:
        return None
    return dict(filling.grown).get(warning.named, 0.0) >= NEARLY * filling.grown[0][1]


def _is_under_way(filling: Filling, ahead: float) -> bool:
    """Return True if enough of a filling had passed `ahead` seconds before its first 2192."""
    return filling.seconds - ahead >= max(SEEN_SECONDS, SEEN_SHARE * filling.seconds)


def _errors(filling: Filling, predictions: Predictions) -> dict[int, float]:
    errors = {}
    for minutes in AHEAD:
        ahead = minutes * 60.0
        if _is_under_way(filling, ahead):
            p50 = predictions.times_at(filling.first - minutes * MINUTE)[1]
            errors[minutes] = abs(p50 - ahead) / ahead
    return errors


def _points(fillings: Sequence[Filling], predictions: Predictions | None) -> list[Point]:
    if predictions is None:
        return []
    return [
        Point(*predictions.times_at(filling.first - minutes * MINUTE), came=minutes * 60.0)
        for filling in fillings
        for minutes in POINTS
        if _is_under_way(filling, minutes * 60.0)
    ]


def cause_of(series: Series, alarm: Alarm, fillings: Sequence[Filling], *, withdrawn: bool) -> Cause:
    """Return the cause of a false alarm: what the store did after it.

    Args:
        series: the store over time.
        alarm: the false alarm.
        fillings: fillings of the store.
        withdrawn: True if it opened in a filling and was cleared before the first 2192.
    """
    if withdrawn:
        return Cause.WITHDRAWN
    if any(alarm.is_open(filling.first) for filling in fillings):
        return Cause.EARLY
    usage = series.usage.max(axis=1, initial=0.0)
    opened = max(1, int(np.searchsorted(series.times, alarm.opened)))
    end = alarm.opened + _WATCHED if alarm.cleared is None else max(alarm.cleared, alarm.opened + _WATCHED)
    after = usage[opened : max(opened + 1, int(np.searchsorted(series.times, end)))]
    began = onset(usage[:opened])
    peak = int(np.argmax(after)) if after.size else 0
    height = float(after[peak]) if after.size else float(usage[-1])
    if after.size == 0 or float(after[peak:].min()) > height - _FALLS * (height - float(usage[began])):
        return Cause.LEVEL
    return Cause.KNOWN if float(usage[:began].max(initial=0.0)) >= _AS_HIGH * height else Cause.NEW
