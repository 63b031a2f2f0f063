"""Tables for a terminal or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from deploy.show.wrapping import Wrapped, words

_WIDE_TABLE = 7  # columns; wider tables have one space between columns instead of two
_MAX_UNBROKEN = 30  # characters of a word or number that is not broken while the terminal has room


def print_table(
    headings: Sequence[str],
    lines: Iterable[Sequence[str]],
    right: Collection[str] = (),
    optional: Collection[str] = (),
    *,
    stderr: bool = False,
) -> None:
    """Print a table on a terminal, elsewhere one line per row with tabs, headings first.

    Args:
        headings: Headings of the columns.
        lines: Cells of each row.
        right: Headings of the columns that are aligned right.
        optional: Headings of the columns that a terminal too narrow for all leaves out.
        stderr: True prints to standard error.
    """
    console = Console(stderr=stderr)
    if not console.is_terminal:
        for line in (headings, *lines):
            print("\t".join(line), file=sys.stderr if stderr else sys.stdout)
        return
    rows = [headings, *lines]
    columns = list(range(len(headings)))
    widths = _column_widths(rows, columns, console.width)
    if widths is None:
        columns = [i for i in columns if headings[i] not in optional]
        widths = _column_widths(rows, columns, console.width)
    table = Table(box=None, pad_edge=False, collapse_padding=len(columns) > _WIDE_TABLE)
    for i in columns:
        justify: JustifyMethod = "right" if headings[i] in right else "left"
        table.add_column(headings[i], justify=justify, overflow="fold", width=widths[i] if widths else None)
    for row in rows[1:]:
        table.add_row(*(Wrapped(Text(row[i])) for i in columns))  # Text, not str: rich would take brackets for markup
    console.print(table)


def _column_widths(rows: Sequence[Sequence[str]], columns: Sequence[int], width: int) -> dict[int, int] | None:
    """Return the widths of columns so that a table fits without breaking a word or number; None if that is impossible.

    Args:
        rows: Cells of each row, headings first.
        columns: Indexes of the columns to show.
        width: Characters of a line.
    """
    widths = {i: max(len(row[i]) for row in rows) for i in columns}
    unbroken = {
        i: min(_MAX_UNBROKEN, max(len(word) for row in rows for word in words(row[i]) or [""])) for i in columns
    }
    padding = (1 if len(columns) > _WIDE_TABLE else 2) * (len(columns) - 1)
    excess = sum(widths.values()) + padding - width
    for _ in range(excess):
        widest = max((i for i in columns if widths[i] > unbroken[i]), key=lambda i: widths[i], default=None)
        if widest is None:
            return None
        widths[widest] -= 1
    return widths
