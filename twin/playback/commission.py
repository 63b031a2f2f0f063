"""Commissioning: does the twin do what it promises, at this site and in this time? docs/commission.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from kernels.clock import SECOND
from twin.estate import Estate, Structure, as_estate
from twin.playback.alignment import align
from twin.playback.drift import DriftPoint, Observation, Observed, observe
from twin.playback.verdicts import (
    Check,
    Fitness,
    HourApart,
    JobFigures,
    ResourceFidelity,
    StoreCommission,
    check_job,
    check_names,
    check_stores,
    worst,
)
from twin.stores.warm_up import warm
from twin.units import as_text

_HOUR = 3600 * SECOND


class Commission(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a commissioning.

    Attributes:
        verdict: that of the least fit check.
        checks: by subject, of each the least fit first.
        begin, end: event times within which measurements count; null without an event.
        silent_queue_managers: those of the estate without an event, sorted.
        stores: by name, sorted: all of the estate.
        job: what only a running job has; null of a recording.
    """

    verdict: Fitness
    checks: tuple[Check, ...]
    begin: str | None
    end: str | None
    silent_queue_managers: tuple[str, ...]
    stores: tuple[StoreCommission, ...]
    job: JobFigures | None


def commission(
    recording: str | Path, estate: Estate | str | Path, *, hours: float | None = None, job: JobFigures | None = None
) -> Commission:
    """Return whether the twin does what it promises, by a recording with measurements (MEASURE events).

    Args:
        recording: the recording.
        estate: the estate, or its file.
        hours: event time before the end, within which measurements count; None: all. Events count from the first.
        job: what a running job shows of itself.

    Raises:
        UsageError: the file is missing, has an unknown suffix, or cannot be read to its end; the estate is wrong.

    Examples:
        >>> report = twin.commission("friday.arrow", "estate.toml")
        >>> report.verdict
        <Fitness.LIMITED: 'fit with limits'>
        >>> [check.reason for check in report.checks if check.subject == "numbering"]
        ['2 stores: no number of `seq` is missing']
    """
    described = as_estate(estate)
    warm()
    seen = observe(recording, described)
    since = None if hours is None or seen.end is None else seen.end - round(hours * _HOUR)
    stores = [_store(described, name, seen, since) for name in described.stores]
    heard = {route.qmgr for route, events in zip(described.routes, seen.heard.tolist(), strict=True) if events}
    silent = sorted(described.queue_managers.keys() - heard)
    events = int(seen.heard.sum())
    checks = check_names(silent, len(described.queue_managers), seen.unknown, events) + check_stores(stores)
    checks += [] if job is None else check_job(job)
    begin = seen.begin if since is None or seen.begin is None else max(since, seen.begin)
    return Commission(
        verdict=worst(checks),
        checks=tuple(checks),
        begin=None if begin is None else as_text(begin),
        end=None if seen.end is None else as_text(seen.end),
        silent_queue_managers=tuple(silent),
        stores=tuple(stores),
        job=job,
    )


def _store(estate: Estate, name: str, seen: Observation, since: int | None) -> StoreCommission:
    config, state = estate.stores[name], seen.states.get(name)
    own = seen.stores.get(name, Observed())
    rows = [row for row, route in enumerate(estate.routes) if route.store == name]
    queues = sorted({estate.routes[row].queue or "" for row in rows} - {""})
    heard = {estate.routes[row].queue for row in rows if seen.calls[row]}
    held = 0 if state is None or state.baseline is None else state.baseline.get("messages")
    unmatched = 0 if state is None else state.unmatched_gets - (held if isinstance(held, int) else 0)
    tolerance_pct = seen.tolerances.get(name)
    fidelity = [
        measured
        for resource, drift in sorted(own.tested.items())
        if tolerance_pct is not None
        and (measured := _fidelity(resource, drift.points, tolerance_pct, since)) is not None
    ]
    return StoreCommission(
        store=name,
        kind=config.kind,
        has_model=not isinstance(config, Structure) or config.holds_queues,
        events=int(seen.heard[rows].sum()),
        calls=int(seen.calls[rows].sum()),
        numbered=int(seen.numbered[rows].sum()),
        counted=int(seen.counted[rows].sum()),
        gaps=0 if state is None else state.gaps,
        unmatched=max(0, unmatched),
        gets=own.gets.total(),
        measurements=own.measurements,
        levels="" if state is None or state.first is not None else state.lacks_levels,
        sizes=tuple(
            f"{name}: {real:,} measured, {model:,} in the model"
            for name, (model, real) in sorted(own.sizes.items())
            if model != real
        ),
        silent_queues=tuple(queue for queue in queues if queue not in heard),
        queues=len(queues),
        tolerance_pct=tolerance_pct,
        fidelity=tuple(fidelity),
        causes=tuple(text for _, text in seen.causes(name)) if tolerance_pct is not None else (),
        scores=None if state is None else state.forecast_scores,
    )


def _fidelity(
    resource: str, points: Sequence[DriftPoint], tolerance_pct: float, since: int | None
) -> ResourceFidelity | None:
    """Return how a resource followed its measurements since a time; None where there are none."""
    own = [point for point in points if since is None or point.time >= since]
    if not own:
        return None
    pcts = np.array([(100.0 * point.model / point.total, 100.0 * point.measured / point.total) for point in own])
    alignment = align(pcts[:, 0].tolist(), pcts[:, 1].tolist(), tolerance_pct)
    gap_s = median(after.time - before.time for before, after in pairwise(own)) / SECOND if len(own) > 1 else 0.0
    return ResourceFidelity(
        resource=resource,
        measurements=len(own),
        matched=sum(abs(point.pct) <= tolerance_pct for point in own),
        alignment=alignment,
        lag_s=alignment.lag * gap_s if alignment.matched else None,
        apart=tuple(_hours_apart(own, tolerance_pct)),
        points=tuple(own),
    )


def _farthest(pcts: Sequence[float]) -> float:
    """Return the number with the largest absolute value."""
    return max(pcts, key=abs)


def _hours_apart(points: Sequence[DriftPoint], tolerance_pct: float) -> list[HourApart]:
    """Return the hours with a measurement beyond the tolerance, in order."""
    by_hour: dict[int, list[float]] = {}
    for point in points:
        by_hour.setdefault(point.time // _HOUR, []).append(point.pct)
    return [
        HourApart(
            hour=as_text(hour * _HOUR),
            measurements=len(pcts),
            matched=sum(abs(pct) <= tolerance_pct for pct in pcts),
            worst_pct=round(_farthest(pcts), 4),
        )
        for hour, pcts in sorted(by_hour.items())
        if any(abs(pct) > tolerance_pct for pct in pcts)
    ]
