"""Alarms: what the person on call is told, from the twin's alerts or from a baseline's condition.

Alerts of one store that are open at the same time are one alarm, whoever raised them: entries and elements that fill
together, `full` behind `full-forecast`, call one person once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, OPENED, Condition
from twin.state.arrays import Array

COUNTED = (Condition.FULL_FORECAST, Condition.FULL)  # conditions whose alerts are scored


@dataclass(frozen=True, slots=True)
class Alarm:
    """Times in microseconds since 1970. cleared: None where it is open at the end; named: the queue named first."""

    opened: int
    cleared: int | None
    named: str | None = None

    def is_open(self, time: int) -> bool:
        """Whether it was open just before and at `time`."""
        return self.opened < time and (self.cleared is None or self.cleared >= time)


def from_alerts(alerts: Iterable[Alert], store: str, conditions: tuple[str, ...] = COUNTED) -> list[Alarm]:
    """The alarms of one store. alerts: records of any stores, those of a store in its order."""
    found: dict[str, Alarm] = {}
    for alert in alerts:
        if alert.store != store or alert.condition not in conditions:
            continue
        if alert.change == OPENED:
            named = alert.fillers[0].queue if alert.fillers else None
            found[alert.alert_id] = Alarm(alert.time, None, named)
        elif alert.change == CLEARED:
            found[alert.alert_id] = replace(found[alert.alert_id], cleared=alert.time)
    return merged(found.values())


def from_condition(times: Array, holds: Array) -> list[Alarm]:
    """The alarms of a condition that is looked at now and then. times: i8[n]; holds: bool[n]."""
    edges = np.flatnonzero(np.diff(holds, prepend=False, append=False))
    moments = [*times.tolist(), None]
    return [Alarm(moments[start], moments[end]) for start, end in edges.reshape(-1, 2).tolist()]


def merged(alarms: Iterable[Alarm]) -> list[Alarm]:
    """In the order of time; those that overlap or touch are one, and the first that names a queue names it."""
    joined: list[Alarm] = []
    for alarm in sorted(alarms, key=lambda one: one.opened):
        last = joined[-1] if joined else None
        if last is None or (last.cleared is not None and last.cleared < alarm.opened):
            joined.append(alarm)
            continue
        ends = last.cleared, alarm.cleared
        cleared = None if None in ends else max(end for end in ends if end is not None)
        joined[-1] = Alarm(last.opened, cleared, last.named or alarm.named)
    return joined
