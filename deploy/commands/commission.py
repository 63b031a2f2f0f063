"""``mqtwin commission``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import (
    MAX_HOURS,
    EstateFile,
    Flag,
    InputFile,
    KafkaOptions,
    OutputFile,
    open_estate,
    record_events,
)
from deploy.show.document import (
    PAGE,
    TERMINAL,
    ZONE,
    Curve,
    Curves,
    Document,
    Heading,
    Items,
    Part,
    Table,
    Text,
    site_period,
    site_time,
)
from deploy.show.summaries import show_progress
from deploy.show.terminal import emit
from kernels.clock import SECOND
from twin.base.errors import UsageError
from twin.base.units import as_count, as_seconds, as_span, in_zone
from twin.playback.commission import Commission
from twin.playback.commission import commission as judge
from twin.playback.fidelity import DriftPoint, ResourceFidelity
from twin.playback.verdicts import Fitness, JobFigures, LimitUse, NotShown, StoreCommission

_LIVE_HOURS = 24.0


def commission(
    *,
    estate: EstateFile,
    recording: InputFile | None = None,
    kafka: KafkaOptions | None = None,
    last_hours: Annotated[float | None, Parameter(validator=Number(gt=0, lte=MAX_HOURS))] = None,
    status_file: InputFile | None = None,
    html: OutputFile | None = None,
    json_: Flag = False,
) -> int:
    """Say whether the twin does what it promises at this site: fit, fit with limits, or not fit, each with its reason.

    Plays a recording with measurements (MEASURE events), or what the events topic has of a running job. Exit status 1
    if it is not fit.

    Args:
        estate: Estate file (TOML).
        recording: Recording to play: .ndjson, .ndjson.zst or .arrow.
        kafka: Kafka connection, instead of a recording.
        last_hours: Hours before the end within which measurements count. Default: of a recording all, of the topics 24.
        status_file: File of `mqtwin stream --status-file`, for the job's own limits.
        html: File for a page with pictures, to hand on.
        json_: Print JSON instead of text.
    """
    loaded_estate = open_estate(estate)
    if (recording is None) == (kafka is None):
        raise UsageError("commission: --recording or --bootstrap-servers; expected: one of them")
    if status_file is not None and kafka is None:
        raise UsageError("--status-file is of a running job; expected: --bootstrap-servers, too")
    with tempfile.TemporaryDirectory() as folder, show_progress("commission"):
        if kafka is not None:
            hours = last_hours or _LIVE_HOURS
            job = _job(kafka, hours, status_file)
            report = judge(record_events(kafka, Path(folder)), loaded_estate, hours=hours, job=job)
        else:
            assert recording is not None
            report = judge(recording, loaded_estate, hours=last_hours)
    source = "the running job" if recording is None else recording.name
    emit(commission_document(report, source), as_json=json_, html=html)
    return 1 if report.verdict == Fitness.UNFIT else 0


def _job(kafka: KafkaOptions, hours: float, status_file: Path | None) -> JobFigures:
    """Return what the topics and the status file show of the job. UsageError: there is no such file."""
    from streams.host.resources import LIMITED_RESOURCES
    from streams.kafka.present import read_latency, read_lateness
    from streams.log import configure_logging
    from streams.query.status import read_status

    configure_logging(level="warning")
    topics = kafka.topics
    latency, lateness = (read(kafka.client(), topics, hours) for read in (read_latency, read_lateness))
    if status_file is None:
        return JobFigures(latency=latency, lateness=lateness)
    status = read_status(status_file)
    if status is None:
        raise UsageError(f"--status-file {status_file}: expected: the file of `mqtwin stream --status-file`")
    figures = status.figures
    limits = tuple(
        LimitUse(noun=row.noun, used=figures[row.used], limit=figures[row.limit], remedy=row.remedy)
        for row in LIMITED_RESOURCES
        if row.used in figures and row.limit in figures
    )
    return JobFigures(
        latency=latency,
        lateness=lateness,
        limits=limits,
        behind=status.behind,
        beat_age_s=round(max(0.0, time.time() - status.beat_s), 1),
    )


_WIDTH = max(len(verdict) for verdict in Fitness)
_SUBJECT_WIDTH = 9
_INDENT = _WIDTH + _SUBJECT_WIDTH + 4
_HOUR_S = 3600.0
_MAX_PICTURES = 40
_MAX_NAMED = 3  # stores, in a cell
_LEAST_TOP = 1.0  # percent, of the scale of a picture
_HEADINGS = ("store", "resource", "measurements", "matched", "aligned", "mean distance", "lag", "hours apart")
_DRIFT_HEADINGS = ("store", "resource", "model", "measured", "drift %", "worst %", "from", "to", "drift over time")
_GAPS = ("not shown", "stores", "so it cannot say", "a feed that shows it")
_STORES = ("store", "kind", "events", "with seq", "missing", "queues heard", "fidelity", "looks ahead", "Brier")
_BARS = "▁▂▃▄▅▆▇█"
_CELLS = 24  # of the bars of a resource
_METHOD = (
    "Each measurement (MEASURE) was held against what the twin had just before it, and matches within the tolerance of"
    " the store, in percent of the total. Aligned: matched if the twin may be up to three measurements late or early"
    " (global alignment of both traces, as in Munoz, Wimmer, Troya, Vallecillo: IEEE TSE 2024). The twin is as fit as"
    " the least fit of its checks; what cannot be known limits it."
)


def commission_document(report: Commission, source: str) -> Document:
    """Return the verdict, the checks with what to do, and of each resource that was measured its fidelity and drift."""
    gaps = [_gap_cells(own, len(report.stores)) for own in report.not_shown]
    rows = [_cells(store, resource) for store in report.stores for resource in store.fidelity]
    parts: list[Part] = [
        Text(f"{report.verdict}: {_scope(report)}", only=TERMINAL),
        Text(f"{source}, {_scope(report)}.", only=PAGE),
        Heading("Why", only=PAGE),
        Text(""),
    ]
    for check in report.checks:
        subject = f"{check.verdict:<{_WIDTH}}  {check.subject:<{_SUBJECT_WIDTH}} "
        reason = check.reason if check.store is None else f"{check.store}: {check.reason}"
        parts.append(Text(reason, lead=subject, hang=" " * _INDENT))
        parts += [Items([check.remedy], indent=_INDENT, are_steps=True)] if check.remedy else []
    if gaps:
        parts += [Heading("What the feeds do not show", only=PAGE), Text(""), Table(_GAPS, gaps, set())]
    if rows:
        parts += [
            Heading("Twin and measurements", only=PAGE),
            Text(""),
            Table(_HEADINGS, rows, set(_HEADINGS[2:7]), {"mean distance", "lag"}),
            Heading("Drift", only=PAGE),
            Text(""),
            Table(_DRIFT_HEADINGS, _drift_rows(report), {"model", "measured", "drift %", "worst %"}),
        ]
    parts += [
        Text(f"{store.store}, likely cause of drift: {cause}") for store in report.stores for cause in store.causes
    ]
    stores = Table(_STORES, [_store_cells(store) for store in report.stores], set(_STORES[2:]), only=PAGE)
    parts += [*_pictures(report), Heading("Stores", only=PAGE), stores]
    parts += [Heading("How this was judged", only=PAGE), Text(_METHOD, is_note=True, only=PAGE)]
    return Document(f"Commissioning: {report.verdict}", parts, report)


def _scope(report: Commission) -> str:
    stores = as_count(len(report.stores), "store")
    if report.begin is None or report.end is None:
        return f"{stores}, no event"
    return f"{stores}, {site_period(report.begin, report.end)}"


def _cells(store: StoreCommission, resource: ResourceFidelity) -> list[str]:
    alignment, lag_s = resource.alignment, resource.lag_s
    hours = (f"{in_zone(hour.hour, ZONE.get()):%H:%M}" for hour in resource.apart[:8])
    return [
        store.store,
        resource.resource,
        f"{resource.measurements:,}",
        f"{100 * resource.share:.1f} %",
        f"{100 * alignment.matched / resource.measurements:.1f} %",
        "" if alignment.distance_pct is None else f"{alignment.distance_pct:.2f} %",
        "" if not lag_s else f"{as_span(abs(lag_s))} {'late' if lag_s > 0 else 'early'}",
        ", ".join(hours) + (" ..." if len(resource.apart) > 8 else ""),
    ]


def _gap_cells(own: NotShown, stores: int) -> list[str]:
    names = own.stores[:_MAX_NAMED]
    more = len(own.stores) - len(names)
    named = ", ".join(names) + (f" and {more:,} more" if more else "")
    return [own.what, "all" if len(own.stores) == stores else named, own.effect, ", ".join(own.formats)]


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
            site_time(resource.points[0].time, seconds=True),
            site_time(resource.points[-1].time, seconds=True),
            bars(resource.points, store.tolerance_pct or 0.0),
        ]
        for store in report.stores
        for resource in store.fidelity
    ]


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


def _pictures(report: Commission) -> Iterator[Part]:
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
        shade = " Shaded: hours in which they part." if shaded else ""
        caption = f"Percent of the total in use; a measurement matches within {store.tolerance_pct:g} %.{shade}"
        yield Heading(name, only=PAGE)
        yield Curves(
            curves=[Curve("measured", times, measured), Curve("twin, just before", times, model)],
            label=label,
            caption=f"{label}. {caption}",
            top=max(_LEAST_TOP, 1.08 * _peak(resource)),
            apart=shaded,
        )
    if len(drawn) > _MAX_PICTURES:
        more = as_count(len(drawn) - _MAX_PICTURES, "further picture")
        yield Text(f"{more} left out.", is_note=True, only=PAGE)


def _peak(resource: ResourceFidelity) -> float:
    return max(100 * max(point.model, point.measured) / point.total for point in resource.points)
