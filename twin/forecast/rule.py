"""The alert rule: from a forecast in numbers to watch, page, or neither.

It has no state: the caller keeps hold times and the time since which a danger is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from twin.estate import ForecastSettings

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
SURE_PROBABILITY = 0.92  # the same where rises like the present one have turned back before [fitted]
_LOW = 0.75  # share in use of what fills first, below which a page has to be as sure, too [fitted]
ASKED_PROBABILITY = 0.65  # of full, from which what passes its threshold is a page [fitted]
_ASKED_RATIO = 2.0  # of the lead of a page, within which it is; what is later can wait for that lead
_LEAD_MINUTES = 15.0  # left, at which a minute of lead is worth one; twice as much at half of them
_MAX_WORTH = 10.0  # of a minute of lead


class Danger(NamedTuple):
    """Facts by which a watch becomes a page.

    Attributes:
        probability: probability of full within the horizon.
        times: seconds until full (p10, p50, p90).
        ends_soon: probability that the rise ends within a minute.
        usage: share in use of the resource that is full first.
        turned_before: True if rises like the present one have turned back before: a false call at one more of them
            costs trust, so it has to be surer.
        is_asked: True if a resource passes its threshold just now, which is asked once in a rise.
        is_unread: True if most of the rise is due to queues that nobody reads: it does not end by itself.
    """

    probability: float
    times: Sequence[float]
    ends_soon: float
    usage: float = 1.0
    turned_before: bool = False
    is_asked: bool = False
    is_unread: bool = False


def is_danger(probability: float, soon: float, times: Sequence[float], config: ForecastSettings) -> bool:
    """Return True if full is likely and near enough for an alert; the nearer, the less likely it has to be.

    Args:
        probability: probability of full within the horizon.
        soon: probability of full within `SOON_S`.
        times: seconds until full (p10, p50, p90).
        config: settings of the store's forecasts.
    """
    near, left = config.forecast_probability, times[1]
    if left > config.forecast_lead_s:
        return False
    if left <= _NEAR_S:
        return soon >= near * (_NEAR_RATIO + (1 - _NEAR_RATIO) * left / _NEAR_S)
    if left <= SOON_S and soon >= _between(near, _SOON_PROBABILITY, left, SOON_S):
        return True
    return probability >= max(_LIKELY, _between(near, _FAR_PROBABILITY, left, _FAR_S))


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


def is_worth_a_page(danger: Danger, config: ForecastSettings) -> bool:
    """Return True if people must act now to be in time, and waiting another minute would cost more than a page now.

    Where a threshold is passed just now, a fixed one would page: then it is enough that full is likely and not far off.

    Args:
        danger: the danger.
        config: settings of the store's forecasts.
    """
    probability, (p10, p50, _) = danger.probability, danger.times
    if danger.is_asked and probability >= ASKED_PROBABILITY and p50 <= _ASKED_RATIO * config.forecast_page_lead_s:
        return True
    is_doubtful = not danger.is_unread and (danger.turned_before or danger.usage < _LOW)
    worth = min(_MAX_WORTH, _LEAD_MINUTES * 60 / max(p10, 1.0))
    return (
        p50 <= config.forecast_page_lead_s
        and probability >= (SURE_PROBABILITY if is_doubtful else PAGE_PROBABILITY)
        and probability * worth * config.forecast_miss_cost >= danger.ends_soon
    )
