"""Series and fillings with their queues, predictions and alerts made by hand: minutes as numbers, one store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from tests.support import by_hand
from tests.support.by_hand import STORE, time_at
from tests.tools.score.series import Predictions, QueueSeries
from tests.tools.score.truth import Filling
from twin.alerts.episodes import Alert
from twin.base.conditions import ChangeName
from twin.base.units import as_text
from twin.records import ROOT, Filler, IncidentRole


def series(*usage: Any, holdings: np.ndarray | None = None, **fields: Any) -> QueueSeries:
    """Return a series of `by_hand` with two queues."""
    plain = by_hand.series(*usage, **fields)
    held = np.zeros((plain.times.size, 2, 3), np.int64) if holdings is None else holdings
    return QueueSeries(**asdict(plain), queues=("A", "B"), holdings=held)


def filling(
    onset: float, first: float, last: float, grown: tuple[tuple[str, float], ...] = (("A", 0.8), ("B", 0.2))
) -> Filling:
    """Return a filling with what its queues grew by. Times: minutes, as of `by_hand.filling`."""
    return Filling(**asdict(by_hand.filling(onset, first, last)), grown=grown)


def predict(*words: tuple[float, float, float, float, float]) -> Predictions:
    """Return predictions from rows of (minute, p10, p50, p90 in minutes, chance)."""
    rows = np.array(words, float)
    return Predictions(np.array([time_at(row[0]) for row in rows], np.int64), rows[:, 1:4] * 60.0, rows[:, 4])


def alert(
    change: ChangeName,
    minutes: float,
    alert_id: str,
    *,
    condition: str = "full-forecast",
    fillers: tuple[Filler, ...] = (),
    store: str = STORE,
) -> Alert:
    """Return an alert record. minutes: its event time."""
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
