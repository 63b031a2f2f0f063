"""The report of `mqtwin commission`: lines for a terminal, and one HTML file with its pictures to hand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from deploy.show.html_page import Curve, draw_curves, page, table
from deploy.show.terminal import print_table, print_wrapped
from kernels.clock import SECOND
from twin.playback.commission import Commission
from twin.playback.fidelity import DriftPoint, ResourceFidelity
from twin.playback.verdicts import Check, Fitness, StoreCommission
from twin.units import as_count, as_seconds, as_span, as_text

_WIDTH = max(len(verdict) for verdict in Fitness)
_SUBJECT_WIDTH = 9
_HOUR_S = 3600.0
_MAX_PICTURES = 40
_LEAST_TOP = 1.0  # percent, of the scale of a picture
_HEADINGS = ("store", "resource", "measurements", "matched", "aligned", "mean distance", "lag", "hours apart")
_DRIFT_HEADINGS = ("store", "resource", "model", "measured", "drift %", "worst %", "from", "to", "drift over time")
_DRIFT_NUMBERS = frozenset({"model", "measured", "drift %", "worst %"})
_BARS = "▁▂▃▄▅▆▇█"
_CELLS = 24  # of the bars of a resource
_METHOD = (
    "Each measurement (MEASURE) was held against what the twin had just before it, and matches within the tolerance of"
    " the store, in percent of the total. Aligned: matched if the twin may be up to three measurements late or early"
    " (global alignment of both traces, as in Munoz, Wimmer, Troya, Vallecillo: IEEE TSE 2024). The twin is as fit as"
    " the least fit of its checks; what cannot be known limits it."
)


def print_commission(report: Commission) -> None:
    """Print the verdict, the checks with what to do, and of each resource that was measured its fidelity and drift."""
    print_wrapped(f"{report.verdict}: {_scope(report)}", "  ")
    print()
    indent = " " * (_WIDTH + _SUBJECT_WIDTH + 4)
    for check in report.checks:
        line = f"{check.verdict:<{_WIDTH}}  {check.subject:<{_SUBJECT_WIDTH}}  {_reason(check)}"
        print_wrapped(line, indent)
        if check.remedy:
            print_wrapped(f"{indent}-> {check.remedy}", indent + "   ")
    rows = [_cells(store, resource) for store in report.stores for resource in store.fidelity]
    if rows:
        print()
        print_table(_HEADINGS, rows, set(_HEADINGS[2:7]), {"mean distance", "lag"})
        print()
        print_table(_DRIFT_HEADINGS, _drift_rows(report), _DRIFT_NUMBERS)
    for cause in _causes(report):
        print_wrapped(cause, "  ")


def commission_page(report: Commission, source: str) -> str:
    """Return the report as HTML. source: what was played, such as the name of a recording."""
    rows = [_cells(store, resource) for store in report.stores for resource in store.fidelity]
    parts = [
        f"<p>{escape(f'{source}, {_scope(report)}.')}</p>",
        f"<h2>Why</h2>{''.join(map(_paragraph, report.checks))}",
    ]
    if rows:
        parts.append(f"<h2>Twin and measurements</h2>{table(_HEADINGS, rows, right=2)}")
        parts.append(f"<h2>Drift</h2>{table(_DRIFT_HEADINGS, _drift_rows(report), right=2)}")
    parts += [f"<p>{escape(cause)}.</p>" for cause in _causes(report)]
    parts += _pictures(report)
    parts.append(f"<h2>Stores</h2>{table(_STORE_HEADINGS, [_store_cells(store) for store in report.stores], right=2)}")
    parts.append(f"<h2>How this was judged</h2><p class=dim>{escape(_METHOD)}</p>")
    return page(f"Commissioning: {report.verdict}", parts)


def _paragraph(check: Check) -> str:
    """Return a check as HTML, with what to do below it."""
    remedy = f"<br><span class=dim>What to do: {escape(check.remedy)}.</span>" if check.remedy else ""
    return f"<p><b>{escape(f'{check.verdict}: {check.subject}.')}</b> {escape(_reason(check))}.{remedy}</p>"


def _scope(report: Commission) -> str:
    stores = as_count(len(report.stores), "store")
    if report.begin is None or report.end is None:
        return f"{stores}, no event"
    begin, end = (text[:16].replace("T", " ") for text in (report.begin, report.end))
    return f"{stores}, {begin} to {end} UTC"


def _reason(check: Check) -> str:
    return check.reason if check.store is None else f"{check.store}: {check.reason}"


def _cells(store: StoreCommission, resource: ResourceFidelity) -> list[str]:
    alignment, lag_s = resource.alignment, resource.lag_s
    return [
        store.store,
        resource.resource,
        f"{resource.measurements:,}",
        f"{100 * resource.share:.1f} %",
        f"{100 * alignment.matched / resource.measurements:.1f} %",
        "" if alignment.distance_pct is None else f"{alignment.distance_pct:.2f} %",
        "" if not lag_s else f"{as_span(abs(lag_s))} {'late' if lag_s > 0 else 'early'}",
        ", ".join(hour.hour[11:16] for hour in resource.apart[:8]) + (" ..." if len(resource.apart) > 8 else ""),
    ]


def _drift_rows(report: Commission) -> list[list[str]]:
    """Return a row per resource: the last measurement, the worst drift, and all of it as bars."""
    return [
        [
            store.store,
            resource.resource,
            f"{resource.points[-1].model:,.0f}",
            f"{resource.points[-1].measured:,.0f}",
            f"{resource.points[-1].pct:+.2f}",
            f"{resource.worst.pct:+.2f}",
            as_text(resource.points[0].time)[:19],
            as_text(resource.points[-1].time)[:19],
            bars(resource.points, store.tolerance_pct or 0.0),
        ]
        for store in report.stores
        for resource in store.fidelity
    ]


def _causes(report: Commission) -> Iterator[str]:
    """Yield the likely causes of drift of each store."""
    for store in report.stores:
        yield from (f"{store.store}, likely cause of drift: {cause}" for cause in store.causes)


def bars(points: Sequence[DriftPoint], tolerance_pct: float) -> str:
    """Return a bar per part of the time: its largest drift; the tolerance is half the height."""
    cells = min(_CELLS, len(points))
    scale = max(2 * tolerance_pct, 1.0)
    result = ""
    for i in range(cells):
        part = points[len(points) * i // cells : len(points) * (i + 1) // cells]
        share = min(1.0, max(abs(point.pct) for point in part) / scale)
        result += _BARS[round(share * (len(_BARS) - 1))]
    return result


_STORE_HEADINGS = ("store", "kind", "events", "with seq", "missing", "queues heard", "fidelity", "looks ahead", "Brier")


def _store_cells(store: StoreCommission) -> list[str]:
    low = min((resource.share for resource in store.fidelity), default=None)
    horizons = () if store.scores is None else store.scores.horizons
    looks = max((own.looks for own in horizons), default=0)
    return [
        store.store,
        store.kind.replace("_", " "),
        f"{store.events:,}",
        f"{100 * store.numbered / store.calls:.0f} %" if store.calls else "",
        f"{store.gaps:,}",
        f"{store.queues - len(store.silent_queues)} of {store.queues}",
        "not known" if low is None else f"{100 * low:.1f} %",
        f"{looks:,}" if looks else "",
        f"{horizons[-1].brier:.3f}" if horizons else "",
    ]


def _pictures(report: Commission) -> Iterator[str]:
    """Yield a picture of each resource that parts from its measurements, and of the fullest of each other store."""
    drawn = [
        (store, resource)
        for store in report.stores
        for resource in store.fidelity
        if resource.apart or resource is max(store.fidelity, key=_peak)
    ]
    for store, resource in drawn[:_MAX_PICTURES]:
        times = [point.time / SECOND for point in resource.points]
        model = [100 * point.model / point.total for point in resource.points]
        measured = [100 * point.measured / point.total for point in resource.points]
        shaded = [(begin := as_seconds(hour.hour), begin + _HOUR_S) for hour in resource.apart]
        name = f"{store.store}, {resource.resource}"
        label = f"{name}: {_cells(store, resource)[3]} of {as_count(resource.measurements, 'measurement')} matched"
        curves = [Curve("measured", times, measured), Curve("twin, just before", times, model)]
        picture = draw_curves(curves, label, top=max(_LEAST_TOP, 1.08 * _peak(resource)), apart=shaded)
        shade = " Shaded: hours in which they part." if shaded else ""
        caption = f"Percent of the total in use; a measurement matches within {store.tolerance_pct:g} %.{shade}"
        yield (
            f"<h2>{escape(name)}</h2><figure tabindex=0>{picture}"
            f"<figcaption>{escape(f'{label}. {caption}')}</figcaption></figure>"
        )
    if len(drawn) > _MAX_PICTURES:
        yield f"<p class=dim>{as_count(len(drawn) - _MAX_PICTURES, 'further picture')} left out.</p>"


def _peak(resource: ResourceFidelity) -> float:
    return max(100 * max(point.model, point.measured) / point.total for point in resource.points)
