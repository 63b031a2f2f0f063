"""Lines, tables and warnings: a terminal breaks them between words, but neither within a word nor before a unit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console, ConsoleOptions, JustifyMethod
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text as Styled

from deploy.show.document import TERMINAL, Code, Document, Heading, Items, Part, Table, Text
from twin.base.outputs import write_output

_BEFORE_UNIT = re.compile(r"(?<=[0-9]) (?=(?:s|min|h|%|bytes|[KMGT]i?B|\w+/s)(?!\w))")
_HOLD = "\N{BRAILLE PATTERN BLANK}"  # as wide as a space, and no space: rich breaks lines at a no-break space too

_WIDE_TABLE = 7  # columns; wider tables have one space between columns instead of two
_MAX_UNBROKEN = 30  # characters of a word or number that is not broken while the terminal has room
_OBJECT = re.compile(r"[^\s,/\"]+/[^\s:,\"]+")  # the first name of a warning: QM01/PS04, QSG1/APP1/QM01
_MAX_ALIKE = 3  # warnings that differ in a name only are printed one by one up to this number
_MAX_NAMES = 8
_NO_BREAK_SPACE = "\u00a0"
_PLACE = re.compile(r"^.+, (?:line|byte) [0-9]+: ")  # in front of a complaint about a file
_VARIABLE = re.compile(r"[^\s,:]*[0-9/][^\s,:]*|\b[A-Z][A-Z0-9_.$#@]+\b(?!\()")  # names and numbers in a line


def printable(text: str) -> str:
    """Return a text whose control characters are escaped, as in JSON: whoever chose a name could steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == _NO_BREAK_SPACE else letter.encode("unicode_escape").decode()
        for letter in text
    )


def command_line(arguments: Iterable[str]) -> str:
    """Return a command to paste into a shell; control characters are escaped as bash, ksh and zsh read them."""
    return " ".join(map(_shell_word, arguments))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    letters = (
        "\\" + letter if letter in "\\'" else letter if letter.isprintable() else _escaped_bytes(letter)
        for letter in word
    )
    return f"$'{''.join(letters)}'"


def _escaped_bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(letter))


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

    def __init__(self, text: Styled) -> None:
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


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings to standard error, one per line; many that differ in a name only are one line."""
    for warning in merged(warnings):
        print_line(f"mqtwin: warning: {warning}")


def merged(warnings: Iterable[str]) -> list[str]:
    """Return warnings in order; more than three that differ in the name of an object only are one with their names."""
    alike: dict[str, list[str]] = {}
    names: dict[str, list[str]] = {}
    for warning in warnings:
        match = None if _PLACE.match(warning) else _OBJECT.search(warning)
        text = warning.replace(match[0], "\0") if match else warning
        alike.setdefault(text, []).append(warning)
        names.setdefault(text, []).extend([match[0]] if match else [])
    lines: list[str] = []
    for text, same in alike.items():
        more = f" and {len(same) - _MAX_NAMES} more" if len(same) > _MAX_NAMES else ""
        together = ", ".join(names[text][:_MAX_NAMES]) + more
        # What the warning asks for, such as [smds."QSG1/APP1/QM01"], stands there for the first of them.
        line = text.replace("\0", together, 1).replace("\0", names[text][0]) if names[text] else ""
        lines += [line] if len(same) > _MAX_ALIKE and line else same
    return lines


def kinds(lines: Iterable[str]) -> list[str]:
    """Return lines in order, `merged`; of more than three that differ in names and numbers only, the first."""
    alike: dict[str, list[str]] = {}
    for line in merged(dict.fromkeys(lines)):
        alike.setdefault(_VARIABLE.sub("\0", _PLACE.sub("", line)), []).append(line)
    result = []
    for same in alike.values():
        result += same if len(same) <= _MAX_ALIKE else [f"{same[0]} (and {len(same) - 1} more like it)"]
    return result


def print_command(arguments: Iterable[str]) -> None:
    """Print a command of mqtwin to standard error, to paste into a shell: it is never broken into lines."""
    print(f"  {command_line(('mqtwin', *arguments))}", file=sys.stderr)


def print_line(line: str) -> None:
    """Print a line to standard error; on a terminal it is wrapped between words."""
    print(wrapped(printable(line), is_terminal=sys.stderr.isatty()), file=sys.stderr)


def emit(document: Document, *, as_json: bool = False, html: Path | None = None) -> None:
    """Print a document as text or JSON, and write its page. html: file of the page; None: no page."""
    print_warnings(document.warnings)
    if html is not None:
        from deploy.show.document import page

        write_output(html, page(document))
    if as_json:
        print(msgspec.json.encode(document.record).decode())
    else:
        show(*document.parts_of(TERMINAL))


def show(*parts: Part, stderr: bool = False) -> None:
    """Print parts: on a terminal wrapped and aligned, elsewhere each line as it is. stderr: True for standard error."""
    console, file = Console(stderr=stderr, highlight=False), sys.stderr if stderr else sys.stdout
    for part in parts:
        match part:
            case Heading():
                console.print()
                console.print(Styled(part.text, "bold"))
            case Text() | Items():
                for line, hang in _lines(part):
                    print(wrapped(printable(line), hang, is_terminal=console.is_terminal), file=file)
            case Code():
                below = f"\n{part.pasted or part.text}"
                print(below if console.is_terminal else f"{part.name}\t{part.text}", file=file)
            case Table() if console.is_terminal:
                console.print(_grid(part, console.width))
            case Table():
                for row in (part.headings, *part.rows):
                    print("\t".join(map(printable, row)), file=file)


def _lines(part: Text | Items) -> Iterator[tuple[str, str]]:
    """Yield each line of a part, and the indent of what is wrapped of it."""
    if isinstance(part, Text):
        yield " ".join(filter(None, (part.lead, part.text))), part.hang
        return
    mark = " " * part.indent + ("-> " if part.are_steps else "")
    for line in part.lines:
        yield f"{mark}{line}", " " * (len(mark) if part.are_steps else part.indent + 2)


def _grid(table: Table, width: int) -> Grid:
    """Return a table of rich, in which no word or number is broken if that is possible. width: characters of a line."""
    rows = [table.headings, *([printable(cell) for cell in row] for row in table.rows)]
    columns = list(range(len(table.headings)))
    widths = _column_widths(rows, columns, width)
    if widths is None:
        columns = [i for i in columns if table.headings[i] not in table.optional]
        widths = _column_widths(rows, columns, width)
    grid = Grid(box=None, pad_edge=False, collapse_padding=len(columns) > _WIDE_TABLE)
    for i in columns:
        justify: JustifyMethod = "right" if table.headings[i] in table.right else "left"
        grid.add_column(table.headings[i], justify=justify, overflow="fold", width=widths[i] if widths else None)
    for row in rows[1:]:
        grid.add_row(*(Wrapped(Styled(row[i])) for i in columns))  # Text, not str: rich would take brackets for markup
    return grid


def _column_widths(rows: Sequence[Sequence[str]], columns: Iterable[int], width: int) -> dict[int, int] | None:
    """Return column widths with which a table fits without breaking a word or number; None if there are none."""
    widths = {i: max(len(row[i]) for row in rows) for i in columns}
    unbroken = {i: min(_MAX_UNBROKEN, max(len(word) for row in rows for word in words(row[i]) or [""])) for i in widths}
    padding = (1 if len(widths) > _WIDE_TABLE else 2) * (len(widths) - 1)
    excess = sum(widths.values()) + padding - width
    for _ in range(excess):
        widest = max((i for i in widths if widths[i] > unbroken[i]), key=lambda i: widths[i], default=None)
        if widest is None:
            return None
        widths[widest] -= 1
    return widths
