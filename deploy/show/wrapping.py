"""Lines that a terminal breaks between words, but neither within a word nor between a number and its unit."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.segment import Segment
from rich.text import Text

_BEFORE_UNIT = re.compile(r"(?<=[0-9]) (?=(?:s|min|h|%|bytes|[KMGT]i?B|\w+/s)(?!\w))")
_HOLD = "\N{BRAILLE PATTERN BLANK}"  # as wide as a space, and no space: rich breaks lines at a no-break space too


def words(text: str) -> list[str]:
    """Return the parts of a text between which it may be broken."""
    return [word.replace(_HOLD, " ") for word in _held(text).split()]


def fill(line: str, width: int, indent: str) -> str:
    """Return a line, broken so that no part is wider than `width` where a break is possible, further parts indented."""
    filled = textwrap.fill(_held(line), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return filled.replace(_HOLD, " ")


def wrapped(line: str, indent: str = "  ", *, is_terminal: bool) -> str:
    """Return a line as this terminal shows it (`fill`), further parts indented; elsewhere as it is."""
    return fill(line, shutil.get_terminal_size().columns, indent) if is_terminal else line


class Wrapped:
    """A text for rich, in a table or panel, which rich alone would break at any space."""

    def __init__(self, text: Text) -> None:
        """Take over a text; it is changed."""
        text.plain = _held(text.plain)
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        """Yield the segments of its lines."""
        for segment in console.render(self._text, options):
            yield segment._replace(text=segment.text.replace(_HOLD, " "))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the least and the greatest width."""
        return Measurement.get(console, options, self._text)


def _held(text: str) -> str:
    return _BEFORE_UNIT.sub(_HOLD, text)
