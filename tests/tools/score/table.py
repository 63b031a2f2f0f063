"""Measures as tables with one column per method, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.table import Table

from tests.tools.score.judge import AHEAD
from tests.tools.score.measures import Measures, PageCounts
from tests.tools.score.score import TWIN
from twin.base.units import as_span
from twin.reporting.tuning import Bounds

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
    bounds = bounds_text(measures.bounds.get(f"error {minutes}"), percent_end)
    return "none said" if math.isinf(value) else whole_percent(value) + bounds


def inside(measures: Measures) -> str:
    """Format the coverage: share from p10 to p90, before p10 and after p90."""
    covered = measures.interval
    if covered.inside is None or covered.below is None or covered.above is None:
        return NOTHING
    tails = f"; {100 * covered.below:.0f} before, {100 * covered.above:.0f} after"
    return f"{whole_percent(covered.inside)}{bounds_text(measures.bounds.get('inside'), percent_end)}{tails}"


def whole_percent(share: float) -> str:
    """Format a share without decimals: `12 %`."""
    return f"{100 * share:.0f} %"


def bounds_text(bounds: Bounds | None, end: Callable[[float], str]) -> str:
    """Format an interval: ` (94 to 99)`, nothing without one. end: formats its ends."""
    return "" if bounds is None else f" ({end(bounds.low)} to {end(bounds.high)})"


def percent_end(share: float) -> str:
    """Format an end of an interval of a share: `94`."""
    return f"{100 * share:.0f}" if math.isfinite(share) else "none said"


def format_field(
    name: str, form: Callable[[float | None], str], end: Callable[[float], str], times: float = 1.0
) -> Callable[[Any], str]:
    """Return what formats a field, times a factor, with its interval."""

    def show(figures: Measures | PageCounts) -> str:
        value, bounds = getattr(figures, name), figures.bounds.get(name)
        if value is None:
            return NOTHING
        return form(value * times) + bounds_text(bounds and Bounds(bounds.low * times, bounds.high * times), end)

    return show


share_of = partial(format_field, form=percent, end=percent_end)
span_of = partial(format_field, form=span, end=span)
number_of = partial(format_field, form=number, end=number)


ROWS: Mapping[str, Callable[[Measures], str]] = {
    "recall": share_of("recall"),
    "precision": share_of("precision"),
    "F1": number_of("f1"),
    "false alarms a store-day": number_of("false_per_day"),
    "alarms per 100 store-days": number_of("alarms_per_day", times=100.0),
    "recordings without a false alarm": share_of("calm"),
    "lead, p10": span_of("lead_p10"),
    "lead, p50": span_of("lead_p50"),
    "enough lead": share_of("enough_lead"),
    **{f"error {minutes} min before": partial(error, minutes=minutes) for minutes in AHEAD},
    "came in p10..p90": inside,
    "interval score": span_of("interval_score"),
    "CRPS": span_of("crps"),
    "reopened a filling": number_of("reopened"),
    "time to clear, p50": span_of("clear_p50"),
    "filler named first": share_of("named"),
}


PAGE_ROWS: Mapping[str, Callable[[PageCounts], str]] = {
    "pages": lambda counts: f"{counts.pages:,}",
    "right": lambda counts: f"{counts.right:,}",
    "false": lambda counts: f"{counts.false:,}",
    "share that was right": share_of("precision"),
    "pages a filling": number_of("per_filling"),
    "pages a store in which nothing fills": number_of("per_calm_store"),
    "called again within ten minutes": lambda counts: f"{counts.again:,}",
    "messages a page": number_of("per_page"),
    "fillings without a page before the first 2192": lambda counts: f"{counts.late:,}",
    "fillings unheard": lambda counts: f"{counts.unheard:,}",
    "lead of a page, p50": span_of("lead_p50"),
}


MONTH_ROWS: Mapping[str, Callable[[PageCounts], str]] = {
    "pages a store and month": number_of("per_month"),
    "of these for nothing": number_of("false_per_month"),
    **{name: PAGE_ROWS[name] for name in ("share that was right", "pages a store in which nothing fills")},
    "fillings": lambda counts: f"{counts.fillings:,}",
    **{name: PAGE_ROWS[name] for name in ("fillings unheard", "messages a page", "lead of a page, p50")},
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
