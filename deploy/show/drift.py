"""Drift of stores in the terminal: a line per resource, or per measurement, and the likely causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from deploy.show.terminal import print_table
from twin.playback.drift import DriftPoint, StoreDrift
from twin.units import as_text

_BARS = "▁▂▃▄▅▆▇█"
_CELLS = 24  # of the picture of a resource

_HEADINGS = (
    "store",
    "resource",
    "measurements",
    "from",
    "to",
    "model",
    "measured",
    "drift %",
    "worst %",
    "drift over time",
)
_POINT_HEADINGS = ("time", "store", "resource", "model", "measured", "total", "drift %")


class CauseRecord(msgspec.Struct, frozen=True):
    """A likely cause of a drift."""

    cause: str
    text: str


class DriftRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Drift of a resource as `mqtwin drift --json` prints it."""

    store: str
    resource: str
    drift_pct: float
    causes: list[CauseRecord]
    points: list[DriftPoint]


def drift_records(stores: Sequence[StoreDrift]) -> Iterator[DriftRecord]:
    """Yield a record per resource."""
    for entry in stores:
        causes = [CauseRecord(str(cause), text) for cause, text in entry.causes]
        for resource in entry.resources.values():
            yield DriftRecord(
                store=entry.store,
                resource=resource.resource,
                drift_pct=resource.last_pct,
                causes=causes,
                points=list(resource.points),
            )


def print_drift(stores: Sequence[StoreDrift]) -> None:
    """Print a line per resource, then the likely causes per store."""
    rows = [
        [
            entry.store,
            resource.resource,
            f"{len(resource.points):,}",
            as_text(resource.points[0].time)[:19],
            as_text(resource.points[-1].time)[:19],
            f"{resource.points[-1].model:,.0f}",
            f"{resource.points[-1].measured:,.0f}",
            f"{resource.last_pct:+.2f}",
            f"{resource.worst.pct:+.2f}",
            bars(resource.points, entry.tolerance_pct),
        ]
        for entry in stores
        for resource in entry.resources.values()
    ]
    print_table(_HEADINGS, rows, {"measurements", "model", "measured", "drift %", "worst %"})
    for entry in stores:
        for cause, text in entry.causes:
            print(f"{entry.store}: {cause}: {text}")


def print_points(stores: Sequence[StoreDrift]) -> None:
    """Print a line per measurement."""
    rows = [
        [
            as_text(point.time),
            entry.store,
            resource.resource,
            f"{point.model:,.0f}",
            f"{point.measured:,.0f}",
            f"{point.total:,.0f}",
            f"{point.pct:+.2f}",
        ]
        for entry in stores
        for resource in entry.resources.values()
        for point in resource.points
    ]
    print_table(_POINT_HEADINGS, rows, {"model", "measured", "total", "drift %"})


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
