"""The alert rule: from a forecast in numbers to watch, page, or neither.

It has no state: hold times and the time since which a danger is over are kept by who asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from twin.estate import ForecastSettings

CALM_S = 600.0  # how long a danger must be gone before its alert is cleared
_NEAR_S = 900.0  # time left, below which a danger has to be less likely for a watch [fitted]
_NEAR_RATIO = 0.5  # of the probability at which one opens, where no time is left [fitted]
_FAR_S = 7200.0  # time left, from which a watch has to be as good as certain
_FAR_PROBABILITY = 0.9  # of full, from which one opens so early [fitted]
_CALM_PROBABILITY_RATIO = 0.3  # of the probability at which an alert opens
_CALM_LEAD_RATIO = 2.5  # of the lead: full further off than this is no danger
_HOLD_RATIO = 0.04  # of the time left: how long a danger must be there before its alert opens
_MAX_HOLD_S = 60.0
PAGE_PROBABILITY = 0.8  # of full, from which a watch may become a page [fitted]
SURE_PROBABILITY = 0.92  # the same where rises like the present one have turned back before [fitted]
TURNED_BEFORE = 0.3  # past rises that turned back, by weight, from which that is so
_LEAD_MINUTES = 15.0  # left, at which a minute of lead is worth one; twice as much at half of them
_MAX_WORTH = 10.0  # of a minute of lead


def is_danger(probability: float, times: Sequence[float], config: ForecastSettings) -> bool:
    """Return True if full is likely and near enough for an alert; the nearer, the less likely it has to be.

    Args:
        probability: probability of full within the horizon.
        times: seconds until full (p10, p50, p90).
        config: settings of the store's forecasts.
    """
    least = near = config.forecast_probability
    if times[1] <= _NEAR_S:
        least = near * (_NEAR_RATIO + (1 - _NEAR_RATIO) * times[1] / _NEAR_S)
    elif near < _FAR_PROBABILITY:
        far = min(1.0, math.log(times[1] / _NEAR_S) / math.log(_FAR_S / _NEAR_S))
        least = near + far * (_FAR_PROBABILITY - near)
    return probability >= least and times[1] <= config.forecast_lead_s


def hold_s(times: Sequence[float]) -> float:
    """Return the seconds for which a danger must be there before its alert opens."""
    return min(_HOLD_RATIO * times[1], _MAX_HOLD_S)


def is_calm(probability: float, times: Sequence[float] | None, config: ForecastSettings) -> bool:
    """Return True if the danger of an open alert is over; see `is_danger`. times: None if nothing becomes full."""
    if times is None or probability < _CALM_PROBABILITY_RATIO * config.forecast_probability:
        return True
    return times[1] > _CALM_LEAD_RATIO * config.forecast_lead_s


def is_worth_a_page(
    probability: float, left: float, ends_soon: float, miss_cost: float, *, turned_before: bool
) -> bool:
    """Return True if waiting for another minute would cost more than calling somebody now.

    Args:
        probability: probability of full within the horizon.
        left: seconds until full, p10.
        ends_soon: probability that the rise ends within a minute.
        miss_cost: what a missed minute of lead costs, as a share of a false call.
        turned_before: True if rises like the present one have turned back before: a false call at one more of them
            costs trust, so it has to be surer.
    """
    worth = min(_MAX_WORTH, _LEAD_MINUTES * 60 / max(left, 1.0))
    least = SURE_PROBABILITY if turned_before else PAGE_PROBABILITY
    return probability >= least and probability * worth * miss_cost >= ends_soon
