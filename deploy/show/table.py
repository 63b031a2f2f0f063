"""Tables for people."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

_MANY = 7  # columns: beyond them one space has to do between two
_WORD = 20  # characters of a word, or a number, that is not broken as long as the terminal has room for it


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
    table = Table(box=None, pad_edge=False, collapse_padding=len(headings) > _MANY)
    lines = list(lines)
    for number, heading in enumerate(headings):
        is_last = number == len(headings) - 1  # it takes what is left
        width = 0 if is_last else max(len(word) for line in (headings, *lines) for word in line[number].split() or [""])
        justify: JustifyMethod = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, overflow="fold", min_width=min(width, _WORD))
    for line in lines:
        table.add_row(*(Text(value) for value in line))  # Text, not str: brackets are no markup here
    console.print(table)
