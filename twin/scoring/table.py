"""Measures as cells of a table: one line a method, the same words on a terminal and in a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from twin.scoring.judge import AHEAD
from twin.scoring.measures import Coverage, Measures
from twin.timestamps import as_span

NOTHING = "-"


def percent(share: float | None) -> str:
    """`97 %`, with one digit after the point above 95 where it matters."""
    if share is None:
        return NOTHING
    return f"{100 * share:.0f} %" if share in {0, 1} or 0.005 < share < 0.945 else f"{100 * share:.1f} %"


def span(seconds: float | None) -> str:
    """`12 min`."""
    return NOTHING if seconds is None else as_span(seconds)


def error(measures: Measures, minutes: int) -> str:
    """The median relative error so many minutes before: `12 %`, `none` where most said nothing."""
    if minutes not in measures.errors:
        return NOTHING
    value = measures.errors[minutes][0]
    return "none" if math.isinf(value) else f"{100 * value:.0f} %"


def inside(coverage: Coverage) -> str:
    """`80 % (-12 +8)`: between p10 and p90, and what came before p10 and after p90."""
    if coverage.inside is None or coverage.below is None or coverage.above is None:
        return NOTHING
    return f"{100 * coverage.inside:.0f} % (-{100 * coverage.below:.0f} +{100 * coverage.above:.0f})"


def number(value: float | None) -> str:
    """Two digits after the point."""
    return NOTHING if value is None else f"{value:.2f}"


COLUMNS: Mapping[str, Callable[[Measures], str]] = {
    "recall": lambda one: percent(one.recall),
    "precision": lambda one: percent(one.precision),
    "F1": lambda one: number(one.f1),
    "false a store-day": lambda one: number(one.false_per_day),
    "calm": lambda one: percent(one.calm),
    "lead p10": lambda one: span(one.lead_p10),
    "lead p50": lambda one: span(one.lead_p50),
    "enough lead": lambda one: percent(one.enough_lead),
    **{f"error {minutes} min": partial(error, minutes=minutes) for minutes in AHEAD},
    "in p10..p90": lambda one: inside(one.interval),
    "reopened": lambda one: number(one.reopened),
    "to clear": lambda one: span(one.clear_p50),
    "named": lambda one: percent(one.named),
}


def cells(measures: Measures) -> list[str]:
    """One line of a table, in the order of COLUMNS."""
    return [make(measures) for make in COLUMNS.values()]
