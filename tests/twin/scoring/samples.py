"""Series, alarms and fillings made by hand: minutes as numbers, one store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twin.alerts.episodes import Alert
from twin.records import ROOT, AlertData, AlertRecord, Filler, IncidentRole
from twin.scoring.alarms import Alarm
from twin.scoring.series import Predictions, Series
from twin.scoring.truth import Filling
from twin.units import as_text

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
    holdings: np.ndarray | None = None,
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
        queues=("A", "B"),
        holdings=np.zeros((count, 2, 3), np.int64) if holdings is None else holdings,
        refused=np.array([time_at(minute) for minute in refused], np.int64),
        queue_full=np.array([time_at(minute) for minute in queue_full], np.int64),
    )


def line(minutes: float, *points: tuple[float, float]) -> np.ndarray:
    """Usage that goes straight from point to point (minute, percent), every half minute."""
    places, levels = zip(*points, strict=True)
    return np.interp(np.arange(round(minutes * 2) + 1) / 2, places, levels)


def filling(
    onset: float, first: float, last: float, grown: tuple[tuple[str, float], ...] = (("A", 0.8), ("B", 0.2))
) -> Filling:
    return Filling(
        store=STORE,
        resource="entries",
        onset=time_at(onset),
        first=time_at(first),
        last=time_at(last),
        refused=2,
        grown=grown,
    )


def alarm(opened: float, cleared: float | None, named: str | None = None) -> Alarm:
    return Alarm(time_at(opened), None if cleared is None else time_at(cleared), named)


def predict(*words: tuple[float, float, float, float, float]) -> Predictions:
    """Return predictions from rows of (minute, p10, p50, p90 in minutes, chance)."""
    rows = np.array(words, float)
    return Predictions(np.array([time_at(row[0]) for row in rows], np.int64), rows[:, 1:4] * 60.0, rows[:, 4])


def alert(
    change: str,
    minutes: float,
    alert_id: str,
    *,
    condition: str = "full-forecast",
    fillers: tuple[Filler, ...] = (),
    store: str = STORE,
) -> Alert:
    return Alert(
        change=change,
        number=0,
        alert_id=alert_id,
        severity="warning",
        store=store,
        resource="entries",
        condition=condition,
        time=time_at(minutes),
        usage_pct=50.0,
        time_to_full_s=None,
        full_probability=None,
        fillers=fillers,
        cause="",
        incident=IncidentRole(id=f"{store}/1", role=ROOT, opened=as_text(time_at(minutes))),
    )


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
