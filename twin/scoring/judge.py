"""Alarms and predictions held against what happened: the same function for the twin and for every baseline.

Definitions (the scorecard's, and what it leaves open):

- An alarm is **true** where it opens between five minutes before the onset of a filling and its last 2192, else
  **false**. One that opened earlier is false even if it is still open when the 2192 comes: it is counted as `early`
  beside. One that opened in the two hours before the recording's end and is still open there is `undecided`, neither
  true nor false: what it foretold had no time to come.
- Where withdrawing counts (hard classes), a true alarm that clears before the first 2192 is false, too.
- A filling is **recalled** where an alarm is open just before its first 2192. The **lead** is the time from its
  opening, from five minutes before the onset at most: before there was anything to see it has warned of nothing.
- **Reopened**: alarms that open in a filling beyond the first, one that was open at its beginning included.
- **Time to clear**: from the last 2192 to the end of the alarm that was open then.
- **Named**: whether the queue named first, when the alarm opened, is the one that took up most of the full resource
  from the onset on (or nearly so: nine tenths of it at least).
- **Error**: of the predicted time to the first 2192, 60, 30, 15 and 5 minutes before it, relative to the true one, as
  far as the filling had been under way for two minutes and a tenth of its time. No word lately or "beyond the
  horizon" is an infinite error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernels.clock import SECOND
from twin.scoring.alarms import Alarm
from twin.scoring.predictions import Predictions
from twin.scoring.series import Series
from twin.scoring.truth import MINUTE, Filling

EARLY = 5 * MINUTE  # before the onset, from which on an alarm is true
HORIZON = 120 * MINUTE  # of a forecast, by default
AHEAD = (60, 30, 15, 5)  # minutes before the first 2192
POINTS = range(5, 65, 5)  # minutes before the first 2192 at which the interval is held against what came
EVERY = 5 * MINUTE  # from one look at all predictions to the next
SEEN_SECONDS, SEEN_SHARE = 120.0, 0.1  # of a filling that must have passed before it can be predicted
NEARLY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """How one filling was warned of. lead: seconds, None: not recalled; errors: by minutes before the first 2192;
    clear: seconds, None: no alarm was open at the last 2192, or it never cleared; named: None: nobody was named.
    """

    filling: Filling
    lead: float | None
    reopened: int
    clear: float | None
    named: bool | None
    errors: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """A prediction and what came. p10, p50, p90: seconds, inf: beyond the horizon; came: seconds until the next first
    2192.
    """

    p10: float
    p50: float
    p90: float
    came: float


@dataclass(frozen=True, slots=True)
class Chance:
    """The probability that was given to a 2192 within the horizon, and whether one came."""

    given: float
    came: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One method on one store of one recording. false: alarms, those withdrawn included; points: predictions in the
    fillings, every five minutes of the last hour; chances: over the whole recording, every five minutes.
    """

    store: str
    days: float
    warned: list[Warned]
    alarms: int
    false: int
    withdrawn: int
    early: int
    undecided: int
    points: list[Point]
    chances: list[Chance]


def judge(
    series: Series,
    filled: Sequence[Filling],
    alarms: Sequence[Alarm],
    predictions: Predictions | None,
    *,
    withdrawing_counts: bool,
) -> Judged:
    """Hold what a method said of one store against what happened there.

    filled: the store's fillings, in the order of time; alarms: in the order of time, none overlapping another;
    withdrawing_counts: whether a true alarm that clears before the first 2192 is false.
    """
    owners = [_owner(alarm, filled) for alarm in alarms]
    end = int(series.times[-1])
    undecided = [
        owner is None and alarm.cleared is None and alarm.opened > end - HORIZON
        for alarm, owner in zip(alarms, owners, strict=True)
    ]
    withdrawn = [
        withdrawing_counts and owner is not None and alarm.cleared is not None and alarm.cleared < owner.first
        for alarm, owner in zip(alarms, owners, strict=True)
    ]
    early = sum(
        owner is None and any(alarm.is_open(one.first) for one in filled)
        for alarm, owner in zip(alarms, owners, strict=True)
    )
    false = sum(
        (owner is None or gone) and not open_end
        for owner, gone, open_end in zip(owners, withdrawn, undecided, strict=True)
    )
    return Judged(
        store=series.store,
        days=series.days,
        warned=[_warned(one, alarms, owners, predictions) for one in filled],
        alarms=len(alarms),
        false=false,
        withdrawn=sum(withdrawn),
        early=early,
        undecided=sum(undecided),
        points=_points(filled, predictions),
        chances=_chances(series, filled, predictions),
    )


def _owner(alarm: Alarm, filled: Sequence[Filling]) -> Filling | None:
    """The filling in which an alarm opened."""
    return next((one for one in filled if one.onset - EARLY <= alarm.opened <= one.last), None)


def _warned(
    filling: Filling, alarms: Sequence[Alarm], owners: Sequence[Filling | None], predictions: Predictions | None
) -> Warned:
    warning = next((alarm for alarm in alarms if alarm.is_open(filling.first)), None)
    begin = filling.onset - EARLY
    openings = sum(owner is filling for owner in owners) + any(alarm.is_open(begin) for alarm in alarms)
    standing = next((one for one in alarms if one.is_open(filling.last) or one.opened == filling.last), None)
    ended = None if standing is None else standing.cleared
    return Warned(
        filling=filling,
        lead=None if warning is None else (filling.first - max(warning.opened, begin)) / SECOND,
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
    """Whether a filling had been going on for a while, so many seconds before its first 2192."""
    return filling.seconds - ahead >= max(SEEN_SECONDS, SEEN_SHARE * filling.seconds)


def _errors(filling: Filling, predictions: Predictions) -> dict[int, float]:
    found = {}
    for minutes in AHEAD:
        ahead = minutes * 60.0
        if _is_under_way(filling, ahead):
            p50 = predictions.at(filling.first - minutes * MINUTE)[1]
            found[minutes] = abs(p50 - ahead) / ahead
    return found


def _points(filled: Sequence[Filling], predictions: Predictions | None) -> list[Point]:
    if predictions is None or predictions.chance is None:
        return []
    return [
        Point(*predictions.at(one.first - minutes * MINUTE), came=minutes * 60.0)
        for one in filled
        for minutes in POINTS
        if _is_under_way(one, minutes * 60.0)
    ]


def _chances(series: Series, filled: Sequence[Filling], predictions: Predictions | None) -> list[Chance]:
    """At a raster, chosen without regard to what came; the last hours, whose end nobody saw, are left out."""
    if predictions is None or predictions.chance is None:
        return []
    end = int(series.times[-1])
    found = []
    for time in range(-(-int(series.times[0]) // EVERY) * EVERY, end, EVERY):
        if any(one.first <= time <= one.last for one in filled):
            continue
        came = any(time < one.first <= time + HORIZON for one in filled)
        if came or time + HORIZON <= end:
            found.append(Chance(predictions.chance_at(time), came))
    return found
