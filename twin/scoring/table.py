"""Measures as tables with one column per method, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.table import Table

from twin.scoring.judge import AHEAD
from twin.scoring.measures import Coverage, Measures, PageCounts
from twin.scoring.score import TWIN
from twin.units import as_span

NOTHING = "-"


def percent(share: float | None) -> str:
    """Format a share: `97.2 %`, without decimals below 90 %."""
    if share is None:
        return NOTHING
    return f"{100 * share:.0f} %" if share < 0.895 or share == 1 else f"{100 * share:.1f} %"


def span(seconds: float | None) -> str:
    """Format a span of time: `12 min`."""
    return NOTHING if seconds is None else as_span(seconds)


def number(value: float | None) -> str:
    """Format a number with two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def error(measures: Measures, minutes: int) -> str:
    """Format the median relative error `minutes` before: `12 %`, `none said` if most made no prediction."""
    if minutes not in measures.errors:
        return NOTHING
    value = measures.errors[minutes][0]
    return "none said" if math.isinf(value) else f"{100 * value:.0f} %"


def inside(coverage: Coverage) -> str:
    """Format the coverage: share from p10 to p90, before p10 and after p90."""
    if coverage.inside is None or coverage.below is None or coverage.above is None:
        return NOTHING
    return f"{100 * coverage.inside:.0f} % ({100 * coverage.below:.0f} before, {100 * coverage.above:.0f} after)"


ROWS: Mapping[str, Callable[[Measures], str]] = {
    "recall": lambda measures: percent(measures.recall),
    "precision": lambda measures: percent(measures.precision),
    "F1": lambda measures: number(measures.f1),
    "false alarms a store-day": lambda measures: number(measures.false_per_day),
    "alarms per 100 store-days": lambda measures: number(
        100 * measures.alarms / measures.store_days if measures.store_days else None
    ),
    "recordings without a false alarm": lambda measures: percent(measures.calm),
    "lead, p10": lambda measures: span(measures.lead_p10),
    "lead, p50": lambda measures: span(measures.lead_p50),
    "enough lead": lambda measures: percent(measures.enough_lead),
    **{f"error {minutes} min before": partial(error, minutes=minutes) for minutes in AHEAD},
    "came in p10..p90": lambda measures: inside(measures.interval),
    "reopened a filling": lambda measures: number(measures.reopened),
    "time to clear, p50": lambda measures: span(measures.clear_p50),
    "filler named first": lambda measures: percent(measures.named),
}


PAGE_ROWS: Mapping[str, Callable[[PageCounts], str]] = {
    "pages": lambda counts: f"{counts.pages:,}",
    "right": lambda counts: f"{counts.right:,}",
    "false": lambda counts: f"{counts.false:,}",
    "share that was right": lambda counts: percent(counts.precision),
    "pages a filling": lambda counts: number(counts.per_filling),
    "pages a store in which nothing fills": lambda counts: number(counts.per_calm_store),
    "pages a store and month": lambda counts: number(counts.per_month),
    "called again within ten minutes": lambda counts: f"{counts.again:,}",
    "messages a page": lambda counts: number(counts.per_page),
    "fillings without a page before the first 2192": lambda counts: f"{counts.late:,}",
    "fillings unheard": lambda counts: f"{counts.unheard:,}",
    "lead of a page, p50": lambda counts: span(counts.lead_p50),
}


def page_rows(by_method: Mapping[str, PageCounts]) -> list[list[str]]:
    """Return one row per count: its name, then one cell per method."""
    return [[name, *(make(counts) for counts in by_method.values())] for name, make in PAGE_ROWS.items()]


def page_table(by_method: Mapping[str, PageCounts]) -> Table:
    """Return the table of what people get, for a terminal."""
    counts = by_method[TWIN]
    size = f"{counts.stores} stores, {counts.fillings} fillings, {counts.store_days:.1f} store-days"
    return _table(f"what people get: {size}", list(by_method), page_rows(by_method))


def rows(by_method: Mapping[str, Measures]) -> list[list[str]]:
    """Return one row per measure: its name, then one cell per method."""
    return [[name, *(make(measures) for measures in by_method.values())] for name, make in ROWS.items()]


def table(title: str, by_method: Mapping[str, Measures]) -> Table:
    """Return a table for a terminal. title: beginning of its title."""
    measures = by_method[TWIN]
    counts = f"{measures.recordings} recordings, {measures.fillings} fillings, {measures.store_days:.1f} store-days"
    return _table(f"{title}: {counts}", list(by_method), rows(by_method))


def _table(title: str, methods: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    result = Table("", title=title, title_justify="left")
    for method in methods:
        result.add_column(method, justify="right", style="bold" if method == TWIN else "")
    for line in lines:
        result.add_row(*line)
    return result


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; all columns but the first are right-aligned."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---", *["---:"] * (len(head) - 1)], *lines))
