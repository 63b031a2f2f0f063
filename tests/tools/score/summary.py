"""Tables that a run prints: overall, by class and by scenario."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.tools.score.people import by_method
from tests.tools.score.table import ROWS, page_table, percent, span, table
from tests.tools.score.targets import Target
from tests.tools.score.work import CaseScore, classes, measured, scenarios
from twin.playback.pages import TWIN

COLUMNS = (
    "recall",
    "precision",
    "recordings without a false alarm",
    "lead, p10",
    "lead, p50",
    "enough lead",
    "reopened a filling",
)


def show(console: Console, scores: Sequence[CaseScore], *, each: bool = False) -> None:
    """Everything as tables on the terminal."""
    if each:
        show_each(console, scores)
    by_scenario = Table("the twin", "class", "cases", "fillings", *COLUMNS, title="by scenario", title_justify="left")
    for name, some in scenarios(scores).items():
        twin = measured(some)[TWIN]
        cells = [make(twin) for title, make in ROWS.items() if title in COLUMNS]
        by_scenario.add_row(name, some[0].case.class_, str(len(some)), str(twin.fillings), *cells)
    _print(console, by_scenario)
    _print(console, page_table(by_method(scores)))
    for title, some in classes(scores).items():
        if some:
            _print(console, table(title, measured(some)))


def show_loads(console: Console, title: str, scores: Sequence[CaseScore], *, each: bool) -> None:
    """Print the tables of a set of real loads. title: that of the set."""
    if each:
        show_each(console, scores)
    _print(console, page_table(by_method(scores)))
    _print(console, table(title, measured(scores)))


def show_targets(console: Console, results: Sequence[Target]) -> None:
    """Print the targets of the twin, a line for each set."""
    held = Table("quantity", "target", "set", "measured", title="targets", title_justify="left")
    for target in results:
        for name, cell in target.cells.items():
            held.add_row(
                target.what, target.aim, name, f"{cell.measured} {'[red]missed[/]' if cell.met is False else ''}"
            )
    _print(console, held)


def show_each(console: Console, scores: Sequence[CaseScore]) -> None:
    """A line a case: what became of it under the twin."""
    for score in scores:
        twin = measured([score])[TWIN]
        parts = [f"{twin.recalled} of {twin.fillings} recalled", f"{twin.false} false"]
        parts += [f"{count} {what}" for what in ("withdrawn", "early", "undecided") if (count := getattr(twin, what))]
        if twin.fillings:
            parts.append(f"lead {span(twin.lead_p50)}, enough {percent(twin.enough_lead)}")
        fills = [
            f"{filled.filling.resource} {span(filled.filling.seconds)}"
            for store in score.judged[TWIN]
            for filled in store.warned
        ]
        console.print(f"{score.case.name:34} {', '.join(parts)}; {'; '.join(fills)}", highlight=False, soft_wrap=True)


def _print(console: Console, table: Table) -> None:
    """Wide tables stay whole where standard output is no terminal."""
    if not console.is_terminal:
        console = Console(width=240)
    console.print(table)
