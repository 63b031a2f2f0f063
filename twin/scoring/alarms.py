"""Alarms: calls of an operator, from the alerts of the twin or the condition of a baseline.

Alerts of one store that are open at the same time are one alarm, because they call one operator once: entries and
elements that fill together, `full` after `full-forecast`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, INFO, Condition
from twin.state.arrays import Array

COUNTED = (Condition.FULL_FORECAST, Condition.FULL)  # conditions whose alerts are scored


@dataclass(frozen=True, slots=True)
class Alarm:
    """Alarm of a store. Times in microseconds since 1970."""

    opened: int
    cleared: int | None  # None: open at the end
    named: str | None = None  # first queue named

    def is_open(self, time: int) -> bool:
        """Return True if the alarm was open just before and at `time`."""
        return self.opened < time and (self.cleared is None or self.cleared >= time)


def from_alerts(
    alerts: Iterable[Alert], store: str, conditions: tuple[str, ...] = COUNTED, *, watches: bool = False
) -> list[Alarm]:
    """Return the alarms of one store.

    Args:
        alerts: records of any stores, those of each store in order.
        store: name of the store.
        conditions: conditions that raise an alarm.
        watches: True: a watch is an alarm; False: an alert is one from when it is a page.
    """
    alarms: dict[str, Alarm] = {}
    for alert in alerts:
        if alert.store != store or alert.condition not in conditions:
            continue
        if alert.change == CLEARED:
            if alert.alert_id in alarms:
                alarms[alert.alert_id] = replace(alarms[alert.alert_id], cleared=alert.time)
        elif alert.alert_id not in alarms and (watches or alert.severity != INFO):
            named = alert.fillers[0].queue if alert.fillers else None
            alarms[alert.alert_id] = Alarm(alert.time, None, named)
    return merge(alarms.values())


def from_condition(times: Array, holds: Array) -> list[Alarm]:
    """Return the alarms of a condition evaluated at `times`, i8[n]. holds: bool[n]."""
    edges = np.flatnonzero(np.diff(holds, prepend=False, append=False))
    moments = [*times.tolist(), None]
    return [Alarm(moments[start], moments[end]) for start, end in edges.reshape(-1, 2).tolist()]


def merge(alarms: Iterable[Alarm]) -> list[Alarm]:
    """Merge alarms that overlap or touch, in order of time; the first that names a queue names that of the result."""
    joined: list[Alarm] = []
    for alarm in sorted(alarms, key=lambda alarm: alarm.opened):
        last = joined[-1] if joined else None
        if last is None or (last.cleared is not None and last.cleared < alarm.opened):
            joined.append(alarm)
            continue
        ends = last.cleared, alarm.cleared
        cleared = None if None in ends else max(end for end in ends if end is not None)
        joined[-1] = Alarm(last.opened, cleared, last.named or alarm.named)
    return joined
