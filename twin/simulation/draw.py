"""Random parameters of scenarios, drawn from the ranges of the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from twin.simulation.scenario import Range, Scenario

_WIDE_RATIO = 4.0  # a range whose ends differ by this factor is drawn evenly in the logarithm


def draw_settings(kind: type[Scenario], rng: np.random.Generator) -> Mapping[str, float]:
    """Draw a value for every parameter with ranges, for `make_scenario`. Its ranges are equally likely."""
    settings: dict[str, float] = {}
    for parameter in fields(kind):
        ranges = parameter.metadata.get("drawn", ())
        if ranges:
            settings[parameter.name] = draw_in(ranges[int(rng.integers(len(ranges)))], rng)
    return settings


def draw_in(span: Range, rng: np.random.Generator) -> float:
    """Draw a number of a range, with four digits, so that a command line can repeat it."""
    low, high = span
    if isinstance(low, int) and isinstance(high, int):
        return int(rng.integers(low, high + 1))
    place = rng.random()
    value = low * (high / low) ** place if low > 0 and high / low >= _WIDE_RATIO else low + (high - low) * place
    return float(f"{value:.4g}")
