"""One HTML file to hand on: its frame, tables and curves, without a link to anything outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, floor
from typing import NamedTuple

WIDTH, RIGHT = 760, 36  # of a picture, and what is free at its right
_LEFT, _HEIGHT, _TOP, _BOTTOM = 56, 300, 16, 34  # of curves
_POINTS = 400  # of a curve
_MARKS = 6  # intervals of a time axis, at most
_STEPS_S = (60, 300, 900, 1800, 3600, 7200, 21_600)  # between them, else days
_STEPS_PCT = (0.1, 0.25, 0.5, 1, 2, 5, 10, 25)  # between the lines of a scale
_LINES = 5  # of a scale, at most
_DAY_S = 86_400
_DASHES = ("2 3", "", "9 4", "9 3 2 3")
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


class Curve(NamedTuple):
    """A curve. times: seconds since 1970, n; pcts: percent, n."""

    name: str
    times: Sequence[float]
    pcts: Sequence[float]


def page(title: str, parts: Iterable[str]) -> str:
    """Return a page of a title and parts, HTML each."""
    head = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
    ]
    return "\n".join([*head, *parts, "</body></html>\n"])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: int) -> str:
    """Return a table; columns from number `right` on are numbers."""

    def cell(tag: str, number: int, text: str) -> str:
        kind = " class=n" if number >= right else ""
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell("th", number, text) for number, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(cell("td", number, text) for number, text in enumerate(row)) + "</tr>" for row in rows
    )
    return f'<div class=wide tabindex=0 role=region aria-label="table"><table><tr>{head}</tr>{body}</table></div>'


def draw_curves(curves: Sequence[Curve], label: str, *, top: float, apart: Sequence[tuple[float, float]] = ()) -> str:
    """Return a picture of curves over time, and its legend.

    Args:
        curves: at most four, so that each looks different.
        label: what it shows, for readers who do not see it.
        top: percent at the upper edge.
        apart: begin and end of each shaded time, seconds since 1970.
    """
    begin = min(curve.times[0] for curve in curves)
    end = max(begin + 1, *(curve.times[-1] for curve in curves))
    inner = _HEIGHT - _TOP - _BOTTOM

    def x(time_s: float) -> float:
        return _LEFT + (min(max(time_s, begin), end) - begin) / (end - begin) * (WIDTH - _LEFT - RIGHT)

    def y(pct: float) -> float:
        return _TOP + (1 - pct / top) * inner

    parts = [
        f'<rect class="apart" x="{x(since):.1f}" y="{_TOP}" width="{max(2.0, x(until) - x(since)):.1f}"'
        f' height="{inner}"/>'
        for since, until in apart
    ]
    step = next((step for step in _STEPS_PCT if top / step <= _LINES), _STEPS_PCT[-1])
    lines = [number * step for number in range(floor(top / step) + 1)]
    for pct in lines:
        kind = "full" if pct == 100 else "axis"
        parts.append(f'<line class="{kind}" x1="{_LEFT}" y1="{y(pct):.1f}" x2="{WIDTH - RIGHT}" y2="{y(pct):.1f}"/>')
        parts.append(
            f'<text class="dim" x="{_LEFT - 6}" y="{y(pct) + 4:.1f}" text-anchor="end">'
            f"{pct:g}{' %' if pct == lines[-1] else ''}</text>"
        )
    foot = _HEIGHT - _BOTTOM
    for time_s, text in time_marks(begin, end):
        place = f"{x(time_s):.1f}"
        parts.append(f'<line class="axis" x1="{place}" y1="{foot}" x2="{place}" y2="{foot + 5}"/>')
        parts.append(f'<text class="dim" x="{place}" y="{_HEIGHT - 10}" text-anchor="middle">{text}</text>')
    for number, curve in enumerate(curves):
        every = max(1, len(curve.times) // _POINTS)
        points = " ".join(
            f"{x(time):.1f},{y(pct):.1f}" for time, pct in list(zip(curve.times, curve.pcts, strict=True))[::every]
        )
        parts.append(f'<polyline class="s{number % 4}" fill="none" stroke-width="2"{_dash(number)} points="{points}"/>')
    picture = f'<svg viewBox="0 0 {WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    return picture + _legend([curve.name for curve in curves])


def time_marks(begin: float, end: float) -> list[tuple[float, str]]:
    """Return (time, text) of the marks of a time axis: at round times of day, or at midnights.

    Args:
        begin: seconds since 1970.
        end: seconds since 1970.
    """
    step = next((step for step in _STEPS_S if (end - begin) / step <= _MARKS), None)
    if step is None:
        step = _DAY_S * ceil((end - begin) / _DAY_S / _MARKS)
    form = "%H:%M" if step < _DAY_S else "%m-%d"
    times = range(ceil(begin / step) * step, floor(end) + 1, step)
    return [(time_s, datetime.fromtimestamp(time_s, UTC).strftime(form)) for time_s in times]


def _legend(names: Sequence[str]) -> str:
    parts = []
    for number, name in enumerate(names):
        y = 14 + 20 * number
        parts.append(
            f'<line class="s{number % 4}" stroke-width="2"{_dash(number)} x1="56" y1="{y}" x2="104" y2="{y}"/>'
        )
        parts.append(f'<text x="112" y="{y + 4}">{escape(name)}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {20 * len(names) + 8}" aria-hidden="true">{"".join(parts)}</svg>'


def _dash(number: int) -> str:
    """Return the attribute with the dashes of a curve; "" where it has none."""
    dashes = _DASHES[number % 4]
    return f' stroke-dasharray="{dashes}"' if dashes else ""
