"""The `forecast` of a state record as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twin.alerts.texts import is_full_now
from twin.units import as_estimate

_UNLIKELY = 0.05  # a probability below which no time is said


def forecast_text(forecast: Mapping[str, Any] | None) -> str:
    """Return the forecast for the resource that is full first, "" without a forecast.

    Example: `smds/QM01 full in 27 min (24 to 31 min, probability 71 %)`. docs/state.md describes the fields.
    """
    if forecast is None:
        return ""
    first = forecast["resources"][0]
    time_to_full_s = first["time_to_full_s"]
    if time_to_full_s is None:
        return "nothing full within the horizon"
    if first["full_probability"] < _UNLIKELY:
        return f"nothing likely to be full ({first['resource']}: probability {100 * first['full_probability']:.0f} %)"
    if is_full_now(time_to_full_s["p50"]):
        return f"{first['resource']} full now"
    return f"{first['resource']} full in {full_in(time_to_full_s, first['full_probability'])}"


def full_in(time_to_full_s: Mapping[str, Any], probability: float) -> str:
    """Return the time until full with its 10 % to 90 % range: `27 min (24 to 31 min, probability 71 %)`.

    Args:
        time_to_full_s: `p10`, `p50` and `p90`, seconds.
        probability: Probability that it is full within the horizon.
    """
    middle, interval = as_estimate(time_to_full_s["p10"], time_to_full_s["p50"], time_to_full_s["p90"])
    return f"{middle} ({interval}, probability {100 * probability:.0f} %)"
