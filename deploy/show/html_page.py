"""HTML files to hand on: frame, style, tables and time axes. One file each, without a link to anything outside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from math import ceil, floor

_MARKS = 6  # intervals of a time axis, at most
_STEPS_S = (60, 300, 900, 1800, 3600, 7200, 21_600)  # between them, else days
_DAY_S = 86_400
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
svg .full { stroke: var(--bad); stroke-dasharray: 5 4; }
svg .s0 { stroke: var(--c0); } svg .s1 { stroke: var(--c1); }
svg .s2 { stroke: var(--c2); } svg .s3 { stroke: var(--c3); }
svg .f0 { fill: var(--c0); } svg .f1 { fill: var(--c1); } svg .f2 { fill: var(--c2); } svg .f3 { fill: var(--c3); }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } figure, pre { break-inside: avoid; } }
"""


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
