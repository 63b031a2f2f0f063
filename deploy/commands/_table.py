"""Tables for people."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show(
    headings: Sequence[str], lines: Iterable[Sequence[str]], right: Collection[str] = (), *, stderr: bool = False
) -> None:
    """A table on a terminal; elsewhere a line each, fields with tabs between them, headings first.

    right: headings of the columns that stand at the right; stderr: on standard error instead of standard output.
    """
    console = Console(stderr=stderr)
    if not console.is_terminal:
        for line in (headings, *lines):
            print("\t".join(line), file=sys.stderr if stderr else sys.stdout)
        return
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    for line in lines:
        table.add_row(*(Text(value) for value in line))  # Text, not str: brackets are no markup here
    console.print(table)
