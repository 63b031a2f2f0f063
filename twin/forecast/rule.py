"""The alert rule: from a forecast in numbers to watch, page, or neither; and stores that refuse puts now.

- The rule has no state: the caller keeps hold times and the time since which a danger is over.
- A full resource needs no forecast. The check here is the only one of whether a store refuses puts.
- `Left` is the time that a store has left if its traffic continues, just before and just after a change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Self

import numpy as np

from kernels import meter_rows
from kernels.clock import MINUTE_TICKS
from twin.base.conditions import Condition, Resource
from twin.estate import ForecastSettings
from twin.forecast import flows
from twin.forecast.fill_model import FillModel, ForecastView
from twin.forecast.outlook import Forecast, look_closely, usage

CALM_S = 600.0  # how long a danger must be gone before its alert is cleared
_NEAR_S = 900.0  # time left, below which a danger has to be less likely for a watch [fitted]
_NEAR_RATIO = 0.5  # of the probability at which one opens, where no time is left [fitted]
SOON_S = 3600.0  # within which full has to be likely for a watch, unless it is very likely at all
_SOON_PROBABILITY = 0.65  # of full within that time, from which one opens as long before [fitted]
_LIKELY = 0.77  # probability of full within the horizon, from which a watch opens as well [fitted]
_FAR_S = 7200.0  # time left, from which a watch has to be as good as certain
_FAR_PROBABILITY = 0.9  # of full within the horizon, from which one opens so early [fitted]
_CALM_PROBABILITY_RATIO = 0.3  # of the probability at which an alert opens
_CALM_LEAD_RATIO = 2.5  # of the lead: beyond it full is too far off to matter
_HOLD_RATIO = 0.04  # of the time left: how long a danger must be there before its alert opens
_MAX_HOLD_S = 60.0
PAGE_PROBABILITY = 0.75  # of full, from which a watch may become a page [fitted]
CLEAR_PROBABILITY = 0.7  # the same where what fills is read by nobody, or as never before [fitted]
SURE_PROBABILITY = 0.92  # the same where rises like the present one have turned back before [fitted]
KEEPS_UP_PROBABILITY = 0.9  # the same where getters get almost as much as is put [fitted]
_LOW = 0.75  # share in use of what fills first, below which a page has to be as sure, too [fitted]
ASKED_PROBABILITY = 0.65  # of full, from which what passes its threshold is a page [fitted]
_URGENT_S = 600.0  # time left, from which what people said of such pages makes none later
FLOOR_PROBABILITY = 0.85  # of full, from which what is so near is a page whatever the choice and the situation [fitted]
_ASKED_RATIO = 2.0  # of the lead of a page, within which it is; what is later can wait for that lead
# Needless calls that a filling heard in time is worth, at which the probabilities here hold as they stand.
_FITTED_AT = 1.5


class Situation(StrEnum):
    """Situations in which a danger is a page, each with a probability of its own."""

    ASKED = "asked"  # what fills passes its threshold just now
    ASKED_KEEPING_UP = "asked-keeping-up"  # the same, and getters get almost as much as is put
    CLEAR = "clear"
    TURNED = "turned"  # rises like it have turned back, or little is in use
    KEEPING_UP = "keeping-up"
    USUAL = "usual"


_NEEDED = {
    Situation.ASKED: ASKED_PROBABILITY,
    Situation.ASKED_KEEPING_UP: PAGE_PROBABILITY,
    Situation.CLEAR: CLEAR_PROBABILITY,
    Situation.TURNED: SURE_PROBABILITY,
    Situation.KEEPING_UP: KEEPS_UP_PROBABILITY,
    Situation.USUAL: PAGE_PROBABILITY,
}
_ASKED = (Situation.ASKED, Situation.ASKED_KEEPING_UP)
Worth = Callable[[Situation], float]
"""By situation a factor on the odds that a page saves a filling: what people have said of such pages."""


class Danger(NamedTuple):
    """Facts by which a watch becomes a page."""

    probability: float  # probability of full within the horizon
    times: Sequence[float]  # seconds until full (p10, p50, p90)
    usage: float = 1.0  # share in use of the resource that is full first
    # True if rises like the present one have turned back before: a false call at one more of them costs trust, so it
    # has to be surer
    turned_before: bool = False
    is_asked: bool = False  # True if a resource passes its threshold just now, which is asked once in a rise
    is_clear: bool = False  # True if nobody reads what fills the store, or its getters stopped or lag as they never did
    keeps_up: bool = False  # True if the getters of the queue that fills the store get almost as much as is put


def is_danger(probability: float, soon: float, times: Sequence[float], config: ForecastSettings) -> bool:
    """Return True if full is likely and near enough for an alert; the nearer, the less likely it has to be. `soon`:
    probability of full within `SOON_S`; `times`: seconds until full (p10, p50, p90).
    """
    near, left = likely(config), times[1]
    if left > config.forecast_lead_s:
        return False
    if left <= _NEAR_S:
        return soon >= near * (_NEAR_RATIO + (1 - _NEAR_RATIO) * left / _NEAR_S)
    if left <= SOON_S and soon >= _between(near, _watched(_SOON_PROBABILITY, config), left, SOON_S):
        return True
    far = _between(near, _watched(_FAR_PROBABILITY, config), left, _FAR_S)
    return probability >= max(_watched(_LIKELY, config), far)


def likely(config: ForecastSettings) -> float:
    """Return the probability of full from which a watch may open, and an open alert is updated."""
    return _watched(config.forecast_probability, config)


def _watched(probability: float, config: ForecastSettings) -> float:
    """Return a probability of the rule for watches: where pages may be earlier, so are the watches they come from."""
    return paying(probability, max(_FITTED_AT, config.needless))


def paying(probability: float, needless: float) -> float:
    """Return the probability from which a call pays where a saved filling is worth some needless calls.

    A call pays from the odds 1 : needless that it saves a filling. These odds are those of the probability but for a
    factor of the situation, which the table above has: `probability` is where they are 1 : `_FITTED_AT`.
    """
    return probability / (probability + (1 - probability) * needless / _FITTED_AT)


def _between(near: float, far: float, left: float, far_s: float) -> float:
    """Return a probability between that at `_NEAR_S` and that at `far_s`, of seconds left; never less than near."""
    share = min(1.0, math.log(left / _NEAR_S) / math.log(far_s / _NEAR_S))
    return near + share * max(0.0, far - near)


def hold_s(times: Sequence[float]) -> float:
    """Return the seconds for which a danger must last before its alert opens."""
    return min(_HOLD_RATIO * times[1], _MAX_HOLD_S)


def is_calm(probability: float, times: Sequence[float] | None, config: ForecastSettings) -> bool:
    """Return True if the danger of an open alert is over; see `is_danger`. times: None if nothing becomes full."""
    if times is None or probability < _CALM_PROBABILITY_RATIO * config.forecast_probability:
        return True
    return times[1] > _CALM_LEAD_RATIO * config.forecast_lead_s


def is_worth_a_page(danger: Danger, config: ForecastSettings, worth: Worth = lambda _: 1.0) -> bool:
    """Return True if people must act now to be in time, and full is likely enough to call them."""
    situation = situation_of(danger, config, worth)
    lead_s = config.forecast_page_lead_s * (_ASKED_RATIO if situation in _ASKED else 1.0)
    return danger.times[1] <= lead_s and _is_likely(danger, situation, config, worth)


def situation_of(danger: Danger, config: ForecastSettings, worth: Worth = lambda _: 1.0) -> Situation:
    """Return the situation by which a danger is a page, or would be one if full were likelier, or nearer.

    Where a threshold is passed just now, a fixed one would page: then it is enough that full is likely and not far off.
    """
    asked = Situation.ASKED_KEEPING_UP if danger.keeps_up else Situation.ASKED
    is_near = danger.times[1] <= _ASKED_RATIO * config.forecast_page_lead_s
    if danger.is_asked and is_near and _is_likely(danger, asked, config, worth):
        return asked
    if danger.is_clear:
        return Situation.CLEAR
    if danger.turned_before or danger.usage < _LOW:
        return Situation.TURNED
    return Situation.KEEPING_UP if danger.keeps_up else Situation.USUAL


def _is_likely(danger: Danger, situation: Situation, config: ForecastSettings, worth: Worth) -> bool:
    """Return True if full is as likely as a page in a situation needs."""
    least = needed(situation, config, worth)
    if danger.times[1] <= _URGENT_S:
        least = min(least, needed(situation, config), FLOOR_PROBABILITY)
    return danger.probability >= least


def needed(situation: Situation, config: ForecastSettings, worth: Worth = lambda _: 1.0) -> float:
    """Return the probability of full from which a danger in a situation is a page."""
    return paying(_NEEDED[situation], config.needless * worth(situation))


# --- refused puts, and the time left ----------------------------------------------------------------------------------

LEFT_HOURS = 8  # for which a store is rolled forward when it is asked how long it has left


def refusing(view: ForecastView, now: int) -> tuple[Resource, ...]:
    """Return the full resources for which a store refuses puts, the last one refused in front."""
    full = [
        resource for episode in view.episodes if episode.condition == Condition.FULL for resource in episode.resources
    ]
    if not full:
        return ()
    viewer = view.viewer()
    views = [viewer.resource(resource) for resource in full]
    refused = sorted((viewed for viewed in views if viewed.is_refusing(now)), key=lambda viewed: -viewed.last_full)
    return tuple(viewed.resource for viewed in refused)


def full_now(view: ForecastView, refused: tuple[Resource, ...], now: int) -> tuple[Forecast, ...]:
    """Return the forecasts of full resources for which puts are refused: full now, for certain."""
    fill = view.fill_model(int(view.tables.store.scalars[0]["tick"]))
    usages = {resource: 100 * usage(fill, number) for number, resource in enumerate(fill.resources)}
    return tuple(
        Forecast(
            store=view.name,
            time=now,
            resource=str(resource),
            usage_pct=round(usages.get(resource, 100.0), 3),
            p10=0.0,
            p50=0.0,
            p90=0.0,
            probability=1.0,
            first=resource == refused[0],
        )
        for resource in refused
    )


def is_same(fill: FillModel, other: FillModel) -> bool:
    """Return True if two models of one store have the same room and the same rules."""
    pairs = ((fill.scalars, other.scalars), (fill.offload, other.offload), (fill.sets, other.sets))
    return all(np.array_equal(mine, its) for mine, its in pairs)


def without_rest(fill: FillModel, before: FillModel, refused: Sequence[Resource]) -> FillModel:
    """Return a fill model without the room that is left in resources: puts are refused in spite of it.

    That room is too small for the next message, or the model counts too little. Only room added by settings counts.
    """
    scalars, sets = fill.scalars.copy(), fill.sets.copy()
    for resource in refused:
        if resource not in before.resources or resource not in fill.resources:
            continue
        number, place = before.resources.index(resource), fill.resources.index(resource)
        if place >= meter_rows.FIRST_DATA_SET:
            used, total = before.sets[number - meter_rows.FIRST_DATA_SET]
            sets[place - meter_rows.FIRST_DATA_SET, 0] += max(0.0, float(total - used))
        else:
            name = "ents" if place == meter_rows.ENTRIES else "space"
            scalars[name] += np.maximum(before.scalars[f"{name}_max"] - before.scalars[name], 0.0)
    return replace(fill, scalars=scalars, sets=sets)


@dataclass(frozen=True, slots=True)
class Left:
    """The time that a store has left if its traffic continues."""

    seconds: float | None  # median until any resource is full; inf: beyond `LEFT_HOURS`; None: traffic not known
    fill: FillModel  # its fill model
    refused: tuple[Resource, ...]  # the full resources for which puts are refused

    @classmethod
    def ask(cls, view: ForecastView, before: Left | None = None, changed_at: int = 0) -> Self:
        """Return what a store has left now. `before` a change: where it refused puts, only the room that the change
        made counts, and what changes nothing leaves as much. Puts refused before the tick `changed_at` count no more;
        0: nothing changed.
        """
        store = view.tables.store
        scalars = store.scalars[0]
        tick = int(scalars["tick"])
        fill = view.fill_model(tick)
        rolled, refused = fill, tuple[Resource, ...]()
        if before is not None:
            if is_same(fill, before.fill):
                return cls(before.seconds, fill, before.refused)
            refused = before.refused
            rolled = without_rest(fill, before.fill, refused) if refused else fill
        elif not changed_at and (refused := refusing(view, int(scalars["clock"]))):
            return cls(0.0, fill, refused)
        now = flows.present(store, tick, fill.weights, not_before=changed_at)
        if now is None:
            return cls(None, fill, refused)
        outlook = look_closely(store, view.name, rolled, now, tick, LEFT_HOURS * 60 * MINUTE_TICKS)
        return cls(float(np.quantile(outlook.full_at, 0.5, method="nearest")), fill, refused)
