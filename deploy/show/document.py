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


def site_period(begin: int | str, end: int | str) -> str:
    """Return a period as a reader at the site has it, with the zone once unless it changes in between."""
    first, last = site_time(begin), site_time(end, begin)
    clock, _, zone = first.rpartition(" ")
    return f"{clock if last.endswith(zone) else first} to {last}"


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
    """A paragraph; an empty one is an empty line of a terminal."""

    text: str
    lead: str = ""  # words in front, which stand out on a page
    hang: str = "  "  # indent of the lines after the first in a terminal
    is_note: bool = False  # such as a method: pale on a page


@dataclass(frozen=True, slots=True)
class Items(Part):
    """A list: one line each in a terminal."""

    lines: Sequence[str]
    indent: int = 4  # in front of each in a terminal
    are_steps: bool = False  # in this order: numbered on a page, behind an arrow in a terminal


@dataclass(frozen=True, slots=True)
class Code(Part):
    """Text to paste. A terminal shows it below an empty line, a pipe as a line: name, tab, text."""

    name: str  # language or command, such as MQSC
    text: str
    pasted: str = ""  # how a terminal shows it; "": as it is


@dataclass(frozen=True, slots=True)
class Table(Part):
    """A table. A pipe gets a line for each row, cells separated by tabs, headings first."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[str] = ()  # headings of the columns that are aligned right
    optional: Collection[str] = ()  # of those that a terminal too narrow for all leaves out


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
    """A picture of curves over time, on pages only."""

    curves: Sequence[Curve]  # at most four, so that each looks different
    label: str  # for readers who do not see it
    caption: str  # below it
    top: float  # percent at the upper edge
    begin: float | None = None  # left edge, seconds since 1970; None: where the curves begin
    end: float | None = None  # right edge
    apart: Sequence[tuple[float, float]] = ()  # shaded times, seconds since 1970
    bars: Sequence[Bar] = ()  # below the curves
    marks: Sequence[float] = ()  # triangles below the curves, seconds since 1970
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
    """A document."""

    title: str
    parts: Sequence[Part]
    record: Any = None  # what `--json` prints
    warnings: Sequence[str] = ()  # printed on standard error before it

    def parts_of(self, medium: Medium) -> list[Part]:
        """Return the parts that a medium shows."""
        return [part for part in self.parts if part.only in (None, medium)]
