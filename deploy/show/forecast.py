"""The `forecast` of a state record in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twin.units import as_range, as_span


def in_words(forecast: Mapping[str, Any] | None) -> str:
    """`smds/QM01 full in 27 min (24 to 31 min), 71 % likely`: the resource that is full first; empty where nothing is
    foreseen. forecast: as docs/state.md has it.
    """
    if forecast is None:
        return ""
    first = forecast["resources"][0]
    left = first["time_to_full_s"]
    if left is None:
        return "nothing full within the horizon"
    if left["p50"] < 1:
        return f"{first['resource']} full now"
    when = f"{as_span(left['p50'])} ({as_range(left['p10'], left['p90'])})"
    return f"{first['resource']} full in {when}, {100 * first['full_probability']:.0f} % likely"
