"""The morning report as a page to hand on: one HTML file with its pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from deploy.show.html_page import page, table, time_marks
from deploy.show.morning import (
    CALLER_HEADINGS,
    STORE_HEADINGS,
    caller_rows,
    close_stores,
    coverage_lines,
    incident_lines,
    is_close,
    other_lines,
    rise_lines,
    shown_incidents,
    store_cells,
    summary,
    title,
)
from twin.reporting.records import IncidentReport, Report, StoreReport
from twin.units import as_seconds

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 190, 56, 12, 14, 44  # of a picture, and what its labels take
_MAX_PICTURES = 6
_CAPTION = (
    "The fullest resource, percent of its maximum. Bars below, pale: an incident is open; dark: it has called; red:"
    " puts are refused. Triangles: what people changed."
)


def morning_page(report: Report) -> str:
    """Return the report as HTML."""
    stores, left_out = close_stores(report)
    parts = [
        f"<p>{escape(summary(report))}</p>",
        "<h2>Incidents</h2>",
        *(_incident(incident, report) for incident in shown_incidents(report)),
        *(f"<p>{escape(line)}</p>" for line in other_lines(report)),
        "<h2>What came close</h2>",
        table(STORE_HEADINGS, [_unbroken(store_cells(store, report)) for store in stores], right=len(STORE_HEADINGS)),
        *([f"<p class=dim>{escape(left_out)}</p>"] if left_out else []),
        *_pictures(stores, report),
        *_list("Rises", list(rise_lines(report))),
        "<h2>Who would have called</h2>",
        table(CALLER_HEADINGS, caller_rows(report), right=1),
        *_list("Drift and coverage", list(coverage_lines(report))),
    ]
    return page(title(report), parts)


def _unbroken(cells: Sequence[str]) -> list[str]:
    """Return cells in which no number is parted from its percent sign."""
    return [cell.replace(" %", "\u00a0%") for cell in cells]


def _incident(incident: IncidentReport, report: Report) -> str:
    heading, *rest = incident_lines(incident, report)
    items = "".join(f"<li>{escape(line)}</li>" for line in rest)
    cause = f"<p class=dim>{escape(incident.cause)}</p>"
    return f"<p><b>{escape(heading)}</b></p>{cause}" + (f"<ul>{items}</ul>" if items else "")


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return [f"<h2>{heading}</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"]


def _pictures(stores: Sequence[StoreReport], report: Report) -> Iterator[str]:
    drawn = [store for store in stores if is_close(store) and len(store.course.times) > 1][:_MAX_PICTURES]
    for store in drawn:
        yield f"<figure tabindex=0><p>{escape(store.store)}</p>{_course(store, report)}</figure>"
    if drawn:
        yield f"<p class=dim>{_CAPTION}</p>"


def _course(store: StoreReport, report: Report) -> str:
    """Return a picture of the usage of a store, its incidents, refused puts and actions."""
    begin, end = as_seconds(report.since), as_seconds(report.until)
    top = max(105.0, *store.course.usage_pct)

    def x(time_s: float) -> float:
        share = (min(max(time_s, begin), end) - begin) / max(1.0, end - begin)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(pct: float) -> float:
        return _TOP + (1 - pct / top) * (_HEIGHT - _TOP - _BOTTOM)

    parts = []
    for pct in (0, 50, 100):
        kind = "full" if pct == 100 else "axis"
        parts.append(f'<line class="{kind}" x1="{_LEFT}" y1="{y(pct):.1f}" x2="{_WIDTH - _RIGHT}" y2="{y(pct):.1f}"/>')
        parts.append(
            f'<text class="dim" x="{_LEFT - 6}" y="{y(pct) + 4:.1f}" text-anchor="end">{pct}'
            f"{' %' if pct == 100 else ''}</text>"
        )
    for time_s, text in time_marks(begin, end):
        parts.append(f'<text class="dim" x="{x(time_s):.1f}" y="{_HEIGHT - 6}" text-anchor="middle">{text}</text>')
    points = " ".join(
        f"{x(time):.1f},{y(pct):.1f}" for time, pct in zip(store.course.times, store.course.usage_pct, strict=True)
    )
    parts.append(f'<polyline class="s1" fill="none" stroke-width="2" points="{points}"/>')
    own = [incident for incident in report.incidents if incident.store == store.store]
    bars = [(incident.opened, incident.over or report.until, "f0", ".35") for incident in own]
    bars += [(incident.paged, incident.over or report.until, "f0", "1") for incident in own if incident.paged]
    bars += [(fill.first, fill.last, "bad", "1") for fill in report.fillings if fill.store == store.store]
    foot = _HEIGHT - _BOTTOM + 8
    for first, last, kind, opacity in bars:
        left, right = x(as_seconds(first)), x(as_seconds(last))
        parts.append(
            f'<rect class="{kind}" opacity="{opacity}" x="{left:.1f}" y="{foot}" width="{max(2.0, right - left):.1f}"'
            ' height="8"/>'
        )
    actions = [action for incident in own for action in incident.actions]
    for action in [*actions, *(action for action in report.actions if action.store == store.store)]:
        place = x(as_seconds(action.time))
        parts.append(f'<path class="f2" d="M{place:.1f} {foot - 4} l-6 -10 h12 z"/>')
    label = f"{store.store}: up to {max(store.course.usage_pct):.0f} %"
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
