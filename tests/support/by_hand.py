"""Series, pages and fillings made by hand: minutes as numbers, one store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twin.base.units import as_text
from twin.playback.pages import Alarm, Filling
from twin.playback.timeline import Series
from twin.records import ROOT, AlertData, AlertRecord, IncidentRole

START = 1_795_132_800_000_000  # a whole minute
MINUTE = 60_000_000
STORE = "QSG1/APP1"


def time_at(minutes: float) -> int:
    """Microseconds of a minute since the beginning."""
    return START + round(minutes * MINUTE)


def series(
    *usage: Sequence[float] | np.ndarray,
    refused: Sequence[float] = (),
    queue_full: Sequence[float] = (),
    resources: tuple[str, ...] = (),
    size: np.ndarray | None = None,
) -> Series:
    """Return a series with a sample every half minute from minute 0.

    Args:
        usage: percent in use of each resource.
        refused: minutes of puts with 2192.
        queue_full: minutes of puts with 2053.
    """
    columns = np.array(usage, float).T
    count = len(columns)
    names = resources or ("entries", "elements", "smds/QM01")[: columns.shape[1]]
    return Series(
        store=STORE,
        times=START + np.arange(count) * (MINUTE // 2),
        resources=names,
        usage=columns,
        size=(columns[:, 0] * 1000).astype(np.int64) if size is None else size,
        refused=np.array([time_at(minute) for minute in refused], np.int64),
        queue_full=np.array([time_at(minute) for minute in queue_full], np.int64),
    )


def line(minutes: float, *points: tuple[float, float]) -> np.ndarray:
    """Usage that goes straight from point to point (minute, percent), every half minute."""
    places, levels = zip(*points, strict=True)
    return np.interp(np.arange(round(minutes * 2) + 1) / 2, places, levels)


def filling(onset: float, first: float, last: float) -> Filling:
    """Return a filling: onset, first and last 2192 in minutes."""
    return Filling(
        store=STORE,
        resource="entries",
        onset=time_at(onset),
        first=time_at(first),
        last=time_at(last),
        refused=2,
    )


def alarm(opened: float, cleared: float | None, named: str | None = None) -> Alarm:
    """Return an alarm: opened and cleared in minutes, None while it is open; named: the queue that it names first."""
    return Alarm(time_at(opened), None if cleared is None else time_at(cleared), named)


def record(
    change: str,
    minutes: float,
    alert_id: str,
    severity: str = "warning",
    *,
    incident: str = "",
    role: str = ROOT,
    condition: str = "full-forecast",
    store: str = STORE,
) -> AlertRecord:
    """Return a record of the alerts topic, of a watch if the severity is `info`; without an incident, an early one."""
    time = as_text(time_at(minutes))
    data = AlertData(
        alert_id=alert_id,
        severity=severity,
        store=store,
        resource="entries",
        condition=condition,
        time=time,
        usage_pct=50.0,
        status="cleared" if change == "cleared" else "open",
        **({"incident": IncidentRole(id=incident, role=role, opened=time)} if incident else {}),
    )
    return AlertRecord(id=f"{alert_id}/0", type=f"mqtwin.alert.{change}", subject=store, time=time, data=data)
