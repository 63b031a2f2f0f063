"""Tables for a terminal or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

_WIDE_TABLE = 7  # columns; wider tables have one space between columns instead of two
_MAX_UNBROKEN = 20  # characters of a word or number that is not broken while the terminal has room


def print_table(
    headings: Sequence[str], lines: Iterable[Sequence[str]], right: Collection[str] = (), *, stderr: bool = False
) -> None:
    """Print a table on a terminal, elsewhere one line per row with tabs, headings first.

    Args:
        headings: Headings of the columns.
        lines: Cells of each row.
        right: Headings of the columns that are aligned right.
        stderr: True prints to standard error.
    """
    console = Console(stderr=stderr)
    if not console.is_terminal:
        for line in (headings, *lines):
            print("\t".join(line), file=sys.stderr if stderr else sys.stdout)
        return
    table = Table(box=None, pad_edge=False, collapse_padding=len(headings) > _WIDE_TABLE)
    lines = list(lines)
    for i, heading in enumerate(headings):
        is_last = i == len(headings) - 1  # the last column takes the remaining width
        width = 0 if is_last else max(len(word) for line in (headings, *lines) for word in line[i].split() or [""])
        justify: JustifyMethod = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, overflow="fold", min_width=min(width, _MAX_UNBROKEN))
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))  # Text, not str: rich would take brackets for markup
    console.print(table)
