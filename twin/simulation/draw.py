"""Random stories: a scenario whose parameters are drawn from the ranges that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from twin.simulation.scenario import Range, Scenario

_WIDE = 4.0  # a range whose end is so many times its begin is drawn from evenly in the logarithm


def draw_settings(kind: type[Scenario], rng: np.random.Generator) -> Mapping[str, float]:
    """A value for every parameter that names ranges, for `make_scenario`. Each range is as likely as the others."""
    found: dict[str, float] = {}
    for one in fields(kind):
        ranges = one.metadata.get("drawn", ())
        if ranges:
            found[one.name] = draw_in(ranges[int(rng.integers(len(ranges)))], rng)
    return found


def draw_in(span: Range, rng: np.random.Generator) -> float:
    """A number of a range; of four digits, so that a command line says the same."""
    low, high = span
    if isinstance(low, int) and isinstance(high, int):
        return int(rng.integers(low, high + 1))
    place = rng.random()
    value = low * (high / low) ** place if low > 0 and high / low >= _WIDE else low + (high - low) * place
    return float(f"{value:.4g}")
