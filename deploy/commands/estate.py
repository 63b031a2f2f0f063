"""``mqtwin estate``."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from cyclopts import App
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.commands._warnings import warned
from twin.estate import HEADINGS, SummaryRow, load_estate, summary

estate = App(name="estate")


@estate.command
def check(file: Path, /) -> None:
    """Parse an estate, warn of what is unwise, and summarise its stores.

    Wrong text is one line on standard error, exit status 2.

    Args:
        file: The estate, a TOML file.
    """
    _show(summary(warned(load_estate(file))))


def _show(rows: list[SummaryRow]) -> None:
    """A table on a terminal; elsewhere one line a store, fields with tabs between them, headings first."""
    lines = [[str(value) for value in astuple(row)] for row in rows]
    console = Console()
    if not console.is_terminal:
        for line in ([*HEADINGS], *lines):
            print("\t".join(line))
        return
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in {"size", "queues"} else "left", overflow="fold")
    for line in lines:
        table.add_row(*(Text(value) for value in line))  # Text, not str: brackets are no markup here
    console.print(table)
