"""Alarms and pages, from the alerts of the twin or the condition of a baseline.

An **alarm** is what a forecast says: alerts `full-forecast` and `full` of one store that are open at the same time are
one alarm: entries and elements that fill together, `full` after `full-forecast`.

A **page** is what people get: an incident of the alerts topic, whatever its conditions, from when it called somebody
until nothing of it is a page any more (`twin.records.Incidents`). A baseline calls by the same rule: once, and again
only after ten minutes of calm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from kernels.clock import SECOND
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, INFO, Condition
from twin.records import AlertRecord, Change, Incidents
from twin.state.arrays import Array

COUNTED = (Condition.FULL_FORECAST, Condition.FULL)  # conditions whose alerts are alarms
CALM_FOR = 600_000_000  # microseconds without an alarm after which the next one calls again


@dataclass(frozen=True, slots=True)
class Alarm:
    """Alarm or page of a store. Times in microseconds since 1970."""

    opened: int
    cleared: int | None  # None: open at the end
    named: str | None = None  # first queue named
    notices: int = 1  # messages that people get: the call and its escalations
    incident: str = field(default="", compare=False)  # id of that of a page; "": of another alarm

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


def from_incidents(records: Iterable[AlertRecord], store: str, *, watches: bool = False) -> list[Alarm]:
    """Return the pages of one store, in order of time. Those of records without incidents may overlap.

    Args:
        records: records of any stores, those of each store in order.
        store: name of the store.
        watches: True: an incident counts from its opening, even if it calls nobody.
    """
    incidents = Incidents()
    pages: dict[str, Alarm] = {}
    for record in records:
        if record.data.store != store:
            continue
        time = _microseconds(record.data.time)
        for incident, change, _ in incidents.take(record):
            page = pages.get(incident.id)
            if page is None and (change is Change.PAGED or (watches and incident.is_open)):
                named = record.data.fillers[0].queue if record.data.fillers else None
                pages[incident.id] = Alarm(time, None, named, incident=incident.id)
            elif page is not None:
                is_open = incident.is_open if watches else incident.is_calling
                cleared = None if is_open else page.cleared or time
                is_notice = change in (Change.PAGED, Change.ESCALATED)
                pages[incident.id] = replace(page, cleared=cleared, notices=page.notices + is_notice)
    return sorted(pages.values(), key=lambda page: page.opened)


def _microseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * SECOND)


def from_condition(times: Array, holds: Array) -> list[Alarm]:
    """Return the alarms of a condition evaluated at `times`, i8[n]. holds: bool[n]."""
    edges = np.flatnonzero(np.diff(holds, prepend=False, append=False))
    moments = [*times.tolist(), None]
    return [Alarm(moments[start], moments[end]) for start, end in edges.reshape(-1, 2).tolist()]


def merge(alarms: Iterable[Alarm], calm_for: int = 0) -> list[Alarm]:
    """Merge alarms that overlap or touch, in order of time; the first that names a queue names that of the result.

    Args:
        alarms: the alarms.
        calm_for: microseconds that may lie between two alarms that are merged.
    """
    joined: list[Alarm] = []
    for alarm in sorted(alarms, key=lambda alarm: alarm.opened):
        last = joined[-1] if joined else None
        if last is None or (last.cleared is not None and last.cleared + calm_for < alarm.opened):
            joined.append(alarm)
            continue
        ends = last.cleared, alarm.cleared
        cleared = None if None in ends else max(end for end in ends if end is not None)
        joined[-1] = Alarm(last.opened, cleared, last.named or alarm.named)
    return joined
