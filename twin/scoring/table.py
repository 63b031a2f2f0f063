"""Measures as rows of a table with a column a method: the same words on a terminal and in a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.table import Table

from twin.scoring.judge import AHEAD
from twin.scoring.measures import Coverage, Measures
from twin.scoring.score import TWIN
from twin.units import as_span

NOTHING = "-"


def percent(share: float | None) -> str:
    """`97.2 %`; whole ones below 90, where a digit more says nothing."""
    if share is None:
        return NOTHING
    return f"{100 * share:.0f} %" if share < 0.895 or share == 1 else f"{100 * share:.1f} %"


def span(seconds: float | None) -> str:
    """`12 min`."""
    return NOTHING if seconds is None else as_span(seconds)


def number(value: float | None) -> str:
    """Two digits after the point."""
    return NOTHING if value is None else f"{value:.2f}"


def error(measures: Measures, minutes: int) -> str:
    """The median relative error so many minutes before: `12 %`, `none said` where most said nothing."""
    if minutes not in measures.errors:
        return NOTHING
    value = measures.errors[minutes][0]
    return "none said" if math.isinf(value) else f"{100 * value:.0f} %"


def inside(coverage: Coverage) -> str:
    """`80 % (12 < 8 >)`: from p10 to p90, and the percentages before p10 and after p90."""
    if coverage.inside is None or coverage.below is None or coverage.above is None:
        return NOTHING
    return f"{100 * coverage.inside:.0f} % ({100 * coverage.below:.0f} before, {100 * coverage.above:.0f} after)"


ROWS: Mapping[str, Callable[[Measures], str]] = {
    "recall": lambda one: percent(one.recall),
    "precision": lambda one: percent(one.precision),
    "F1": lambda one: number(one.f1),
    "false alarms a store-day": lambda one: number(one.false_per_day),
    "recordings without one": lambda one: percent(one.calm),
    "lead, p10": lambda one: span(one.lead_p10),
    "lead, p50": lambda one: span(one.lead_p50),
    "enough lead": lambda one: percent(one.enough_lead),
    **{f"error {minutes} min before": partial(error, minutes=minutes) for minutes in AHEAD},
    "came in p10..p90": lambda one: inside(one.interval),
    "reopened a filling": lambda one: number(one.reopened),
    "time to clear, p50": lambda one: span(one.clear_p50),
    "filler named first": lambda one: percent(one.named),
}


def rows(by_method: Mapping[str, Measures]) -> list[list[str]]:
    """A row a measure: its name, then a cell a method, in their order."""
    return [[name, *(make(one) for one in by_method.values())] for name, make in ROWS.items()]


def table(title: str, by_method: Mapping[str, Measures]) -> Table:
    """For a terminal. title: of what; how much there was of it is added."""
    one = by_method[TWIN]
    head = f"{title}: {one.recordings} recordings, {one.fillings} fillings, {one.store_days:.1f} store-days"
    made = Table("", title=head, title_justify="left")
    for method in by_method:
        made.add_column(method, justify="right", style="bold" if method == TWIN else "")
    for row in rows(by_method):
        made.add_row(*row)
    return made


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table of a page; all columns but the first stand to the right."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---", *["---:"] * (len(head) - 1)], *lines))
