"""Documents: what a report, an advice or a plan says, in parts that a terminal, a page and JSON show in the same order.

- A command makes one `Document` and gives it to `deploy.show.terminal.emit`, which prints it.
- `page` makes one HTML file of it to hand on, with its pictures and without a link to anything outside.
- JSON is a contract with users: it is the record that the document was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from html import escape
from math import ceil, floor
from typing import Any, Literal, NamedTuple

from twin.base.units import as_local

ZONE: ContextVar[tzinfo] = ContextVar("ZONE", default=UTC)  # of the site whose estate a command has opened
Medium = Literal["terminal", "page"]
TERMINAL: Medium = "terminal"
PAGE: Medium = "page"


def site_time(time: int | str, beside: int | str | None = None, *, seconds: bool = False) -> str:
    """Return a time as a reader at the site has it; arguments as of `twin.base.units.as_local`."""
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


# --- the HTML file ----------------------------------------------------------------------------------------------------

_WIDTH, _RIGHT, _TOP = 760, 36, 16  # of a picture, and what is free at its right and above it
_LEFT, _BOTTOM, _BARS = 56, 34, 14  # of curves: what labels take, and bars below them
_HEIGHT, _LOW_HEIGHT = 300, 190  # of curves, of a single one
_POINTS = 400  # of a curve
_MARKS = 6  # intervals of a time axis, at most
_STEPS_S = (60, 300, 900, 1800, 3600, 7200, 21_600)  # between them, else days
_STEPS_PCT = (0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50)  # between the lines of a scale
_LINES = 5  # of a scale, at most
_DAY_S = 86_400
_DASHES = ("2 3", "", "9 4", "9 3 2 3")
_BAR_STYLES = {"pale": 'class="f0" opacity=".35"', "dark": 'class="f0"', "bad": 'class="bad"'}
_ROW, _NAMES = 44, 200  # of ranges: height of a row, and what names take
_RANGE_STEPS_S = (600, 900, 1800, 3600, 7200, 14_400)
_MAX_NAME = 27  # characters of the second line of a name
_STYLE = """
:root { color-scheme: light dark; --ink: #1b2330; --dim: #5b6675; --line: #d3dae3; --paper: #fff;
  --c0: #6b7786; --c1: #1f54bd; --c2: #a8490f; --c3: #0b6b58; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf2; --dim: #a5b0bf; --line: #38424f; --paper: #12171e;
  --c0: #9aa6b5; --c1: #82aaff; --c2: #f2a065; --c3: #5fd0b4; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--dim); } td.n, th.n { text-align: right; }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: 6px; padding: .7rem; font-size: .88rem; }
figure { margin: 1rem 0; overflow-x: auto; } figcaption, .dim { color: var(--dim); font-size: .92rem; }
svg { width: 100%; min-width: 32rem; height: auto; font: 13px system-ui, sans-serif; } svg text { fill: var(--ink); }
svg .dim { fill: var(--dim); } svg .axis { stroke: var(--line); }
svg .bad { fill: var(--bad); }
svg .apart { fill: var(--bad); opacity: .14; }
svg .full { stroke: var(--bad); stroke-dasharray: 5 4; }
svg .s0 { stroke: var(--c0); } svg .s1 { stroke: var(--c1); }
svg .s2 { stroke: var(--c2); } svg .s3 { stroke: var(--c3); }
svg .f0 { fill: var(--c0); } svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); } svg .f3 { fill: var(--c3); }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } figure, pre { break-inside: avoid; } }
"""


def page(document: Document) -> str:
    """Return a document as HTML."""
    title = escape(document.title)
    head = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
    ]
    return "\n".join([*head, *filter(None, map(_html, document.parts_of(PAGE))), "</body></html>\n"])


def _html(part: Part) -> str:
    """Return a part as HTML; "" for an empty line of a terminal."""
    html = ""
    match part:
        case Heading():
            html = f"<h2>{escape(part.text)}</h2>"
        case Text() if part.text or part.lead:
            lead = " ".join(part.lead.split())
            words = " ".join(filter(None, [lead and f"<b>{escape(lead)}</b>", escape(part.text)]))
            html = f"<p{' class=dim' if part.is_note else ''}>{words}</p>"
        case Items():
            tag = "ol" if part.are_steps and len(part.lines) > 1 else "ul"
            arrow = "→ " if part.are_steps and tag == "ul" else ""
            html = f"<{tag}>{''.join(f'<li>{arrow}{escape(line)}</li>' for line in part.lines)}</{tag}>"
        case Code():
            html = f"<p class=dim>{escape(part.name)}</p><pre>{escape(part.text.strip())}</pre>"
        case Table():
            html = _table(part)
        case Curves():
            html = _figure(_curves(part) + _legend([curve.name for curve in part.curves]), part.caption)
        case Ranges():
            html = _figure(_ranges(part), part.caption)
    return html


def _table(table: Table) -> str:
    def row(tag: str, cells: Sequence[str]) -> str:
        kinds = (" class=n" if heading in table.right else "" for heading in table.headings)
        # No number is parted from its percent sign.
        texts = (escape(cell).replace(" %", "\u00a0%") for cell in cells)
        return (
            "<tr>" + "".join(f"<{tag}{kind}>{text}</{tag}>" for kind, text in zip(kinds, texts, strict=True)) + "</tr>"
        )

    body = row("th", table.headings) + "".join(row("td", cells) for cells in table.rows)
    return f'<div class=wide tabindex=0 role=region aria-label="table"><table>{body}</table></div>'


def _figure(picture: str, caption: str) -> str:
    return f"<figure tabindex=0>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def _svg(height: float, label: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="dim" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


# --- curves ----------------------------------------------------------------------------------------------------------


def _curves(part: Curves) -> str:
    """Return the picture of curves: scale, shaded times, curves, and below them bars and marks."""
    begin = min(curve.times[0] for curve in part.curves) if part.begin is None else part.begin
    last = max(curve.times[-1] for curve in part.curves) if part.end is None else part.end
    end = max(begin + 1, last)
    height = _HEIGHT if len(part.curves) > 1 else _LOW_HEIGHT
    foot = height - _BOTTOM - (_BARS if part.bars or part.marks else 0)

    def x(time_s: float) -> float:
        return _LEFT + (min(max(time_s, begin), end) - begin) / (end - begin) * (_WIDTH - _LEFT - _RIGHT)

    def y(pct: float) -> float:
        return _TOP + (1 - pct / part.top) * (foot - _TOP)

    def span(style: str, since: float, until: float, top: float, tall: float) -> str:
        left, right = x(since), x(until)
        place = f'x="{left:.1f}" y="{top}" width="{max(2.0, right - left):.1f}" height="{tall}"'
        return f"<rect {style} {place}/>"

    parts = [span('class="apart"', since, until, _TOP, foot - _TOP) for since, until in part.apart]
    parts += _scale(part.top, y, height)
    for time_s, text in time_marks(begin, end):
        parts.append(_line("axis", x(time_s), height - _BOTTOM, x(time_s), height - _BOTTOM + 5))
        parts.append(_label(x(time_s), height - 10, text, "middle"))
    styles = [1] if len(part.curves) == 1 else range(len(part.curves))
    for number, curve in zip(styles, part.curves, strict=True):
        every = max(1, len(curve.times) // _POINTS)
        points = " ".join(
            f"{x(time):.1f},{y(pct):.1f}" for time, pct in list(zip(curve.times, curve.pcts, strict=True))[::every]
        )
        parts.append(f'<polyline class="s{number % 4}" fill="none" stroke-width="2"{_dash(number)} points="{points}"/>')
    parts += [span(_BAR_STYLES[bar.style], bar.begin, bar.end, foot + 6, 8) for bar in part.bars]
    parts += [f'<path class="f2" d="M{x(time_s):.1f} {foot + 2} l-6 -10 h12 z"/>' for time_s in part.marks]
    return _svg(height, part.label, parts)


def _scale(top: float, y: Callable[[float], float], height: float) -> list[str]:
    """Return the lines of a scale in percent and their labels; that of 100 % is red."""
    lines = _LINES if height == _HEIGHT else _LINES // 2
    step = next((step for step in _STEPS_PCT if top / step <= lines), _STEPS_PCT[-1])
    pcts = [number * step for number in range(floor(top / step) + 1)]
    parts = []
    for pct in pcts:
        parts.append(_line("full" if pct == 100 else "axis", _LEFT, y(pct), _WIDTH - _RIGHT, y(pct)))
        parts.append(_label(_LEFT - 6, y(pct) + 4, f"{pct:g}{' %' if pct == pcts[-1] else ''}", "end"))
    return parts


def time_marks(begin: float, end: float) -> list[tuple[float, str]]:
    """Return (seconds since 1970, text) of the marks of a time axis: at round times of day, or at midnights."""
    step = next((step for step in _STEPS_S if (end - begin) / step <= _MARKS), None)
    if step is None:
        step = _DAY_S * ceil((end - begin) / _DAY_S / _MARKS)
    form = "%H:%M" if step < _DAY_S else "%m-%d"
    zone = ZONE.get()
    ahead = round((datetime.fromtimestamp(begin, zone).utcoffset() or timedelta()).total_seconds())
    times = range(ceil((begin + ahead) / step) * step - ahead, floor(end) + 1, step)
    return [(time_s, datetime.fromtimestamp(time_s, zone).strftime(form)) for time_s in times]


def _legend(names: Sequence[str]) -> str:
    if len(names) == 1:
        return ""
    parts = []
    for number, name in enumerate(names):
        y = 14 + 20 * number
        parts.append(
            f'<line class="s{number % 4}" stroke-width="2"{_dash(number)} x1="56" y1="{y}" x2="104" y2="{y}"/>'
        )
        parts.append(f'<text x="112" y="{y + 4}">{escape(name)}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {20 * len(names) + 8}" aria-hidden="true">{"".join(parts)}</svg>'


def _dash(number: int) -> str:
    """Return the attribute with the dashes of a curve; "" where it has none."""
    dashes = _DASHES[number % 4]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


# --- ranges ----------------------------------------------------------------------------------------------------------


def _ranges(part: Ranges) -> str:
    """Return the picture of ranges: a name and a bar a row, or its text, and an axis of minutes or hours."""
    scale = (_WIDTH - _NAMES - _RIGHT) / part.end
    foot = _ROW * len(part.rows)
    parts = []
    for number, row in enumerate(part.rows):
        middle = _ROW * number + _ROW / 2
        short, _, rest = row.name.partition(": ")
        parts.append(f'<text x="0" y="{middle - (3 if rest else -4)}">{escape(short)}</text>')
        if rest:
            cut = rest if len(rest) <= _MAX_NAME else f"{rest[: _MAX_NAME - 1]}…"
            parts.append(_label(0, middle + 13, cut, "start"))
        if row.low is None:
            parts.append(_label(_NAMES + 6, middle + 4, row.text, "start"))
            continue
        low = _NAMES + row.low * scale
        high = _NAMES + (part.end if row.high is None else row.high) * scale
        colour = f'class="f{number % 4}"'
        parts.append(
            f'<rect {colour} opacity=".4" x="{low:.1f}" y="{middle - 10}" width="{max(2, high - low):.1f}"'
            ' height="20" rx="3"/>'
        )
        if row.middle is not None:
            x = _NAMES + row.middle * scale
            parts.append(f'<rect {colour} x="{x - 2:.1f}" y="{middle - 14}" width="4" height="28"/>')
    step = next((step for step in _RANGE_STEPS_S if part.end / step <= _MARKS), _RANGE_STEPS_S[-1])
    parts.append(_line("axis", _NAMES, foot, _WIDTH - _RIGHT, foot))
    for second in range(0, int(part.end) + 1, step):
        x = _NAMES + second * scale
        parts.append(_line("axis", x, foot, x, foot + 5))
        parts.append(_label(x, foot + 20, f"{second / 3600:g} h" if step >= 1800 else f"{second // 60} min", "middle"))
    return _svg(foot + _BOTTOM, part.label, parts)
