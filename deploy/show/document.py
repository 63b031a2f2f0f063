"""Documents: what a report, an advice or a plan says, in parts that a terminal, a page and JSON show in the same order.

A command makes one `Document` and gives it to `deploy.show.terminal.emit`. `deploy.show.terminal` prints it, and
`deploy.show.page` makes its page. JSON is a contract with users: it is the record that the document was made from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Literal, NamedTuple

from twin.units import as_local

ZONE: ContextVar[tzinfo] = ContextVar("ZONE", default=UTC)  # of the site whose estate a command has opened
Medium = Literal["terminal", "page"]
TERMINAL: Medium = "terminal"
PAGE: Medium = "page"


def site_time(time: int | str, beside: int | str | None = None, *, seconds: bool = False) -> str:
    """Return a time as a reader at the site has it; arguments as of `twin.units.as_local`."""
    return as_local(time, ZONE.get(), beside, seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a document. only: the medium that shows it; None: both."""

    only: Medium | None = None


@dataclass(frozen=True, slots=True)
class Heading(Part):
    """A heading below the title; a terminal leaves a line above it."""

    text: str


@dataclass(frozen=True, slots=True)
class Text(Part):
    """A paragraph; an empty one is an empty line of a terminal.

    Attributes:
        text: its words.
        lead: words in front, which stand out on a page.
        hang: indent of the lines after the first in a terminal.
        is_note: True for what a page shows pale, such as a method.
    """

    text: str
    lead: str = ""
    hang: str = "  "
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class Items(Part):
    """A list: one line each in a terminal.

    Attributes:
        lines: its lines.
        indent: characters in front of each in a terminal.
        are_steps: True for what to do, in this order: numbered on a page, behind an arrow in a terminal.
    """

    lines: Sequence[str]
    indent: int = 4
    are_steps: bool = False


@dataclass(frozen=True, slots=True)
class Code(Part):
    """Text to paste. A terminal shows it below an empty line, a pipe as a line: name, tab, text.

    Attributes:
        name: its language or command, such as MQSC.
        text: the text.
        pasted: how a terminal shows it; "": as it is.
    """

    name: str
    text: str
    pasted: str = ""


@dataclass(frozen=True, slots=True)
class Table(Part):
    """A table. A pipe gets a line for each row, cells separated by tabs, headings first.

    Attributes:
        headings: headings of the columns.
        rows: cells of each row.
        right: headings of the columns that are aligned right.
        optional: headings of the columns that a terminal too narrow for all leaves out.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[str] = ()
    optional: Collection[str] = ()


class Curve(NamedTuple):
    """A curve. times: seconds since 1970, n; pcts: percent, n."""

    name: str
    times: Sequence[float]
    pcts: Sequence[float]


BarStyle = Literal["pale", "dark", "bad"]


class Bar(NamedTuple):
    """A span of time below curves. begin, end: seconds since 1970; style: pale, dark or bad."""

    begin: float
    end: float
    style: BarStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves(Part):
    """A picture of curves over time, on pages only.

    Attributes:
        curves: at most four, so that each looks different.
        label: what it shows, for readers who do not see it.
        caption: what stands below it.
        top: percent at the upper edge.
        begin: left edge, seconds since 1970; None: where the curves begin.
        end: right edge; None: where they end.
        apart: begin and end of each shaded time, seconds since 1970.
        bars: spans below the curves.
        marks: times of triangles below the curves, seconds since 1970.
    """

    curves: Sequence[Curve]
    label: str
    caption: str
    top: float
    begin: float | None = None
    end: float | None = None
    apart: Sequence[tuple[float, float]] = ()
    bars: Sequence[Bar] = ()
    marks: Sequence[float] = ()
    only: Medium | None = PAGE


class Range(NamedTuple):
    """A row of `Ranges`. low, middle, high: seconds from now, None beyond the axis; text: instead of a bar."""

    name: str
    low: float | None
    middle: float | None
    high: float | None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges(Part):
    """A picture of ranges of time from now, a bar a row, on pages only. end: end of the axis, seconds."""

    rows: Sequence[Range]
    label: str
    caption: str
    end: float
    only: Medium | None = PAGE


@dataclass(frozen=True, slots=True)
class Document:
    """A document.

    Attributes:
        title: title of its page.
        parts: its parts.
        record: what `--json` prints.
        warnings: warnings, printed on standard error before it.
    """

    title: str
    parts: Sequence[Part]
    record: Any = None
    warnings: Sequence[str] = ()

    def parts_of(self, medium: Medium) -> list[Part]:
        """Return the parts that a medium shows."""
        return [part for part in self.parts if part.only in (None, medium)]
