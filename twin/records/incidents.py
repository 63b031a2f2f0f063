"""Incidents as readers of the alerts topic see them: what one person has to do about one store.

An incident holds every alert of a store from the first one until all have been cleared for ten minutes. One of its open
alerts is the root: it says what is wrong and what to do; the others are its parts. An incident calls people once, when
it becomes a page, and tells them when it gets worse: docs/alerts.md, "Incidents".
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from twin.conditions import CRITICAL, FULL, PAGE, WATCH, Condition
from twin.records.alerts import ROOT, AlertData, AlertRecord

URGENCIES = (WATCH, PAGE, CRITICAL, FULL)  # how bad an incident is, the worst last


class Change(StrEnum):
    """Changes of an incident."""

    WATCHED = "watched"  # it opened, as a watch
    PAGED = "paged"  # it became a page: call somebody
    ESCALATED = "escalated"  # it is worse than it ever was: tell who was called
    UPDATED = "updated"  # anything else
    OVER = "over"  # nothing of it is a page any more; of one that never was a page, every alert is cleared


class Incident:
    """An incident, as far as its records have been read.

    Attributes:
        id: its id.
        store: the store.
        opened: event time of its first alert, as text.
        alerts: last record of each of its alerts, by alert id, in the order in which they came.
        urgency: index into URGENCIES of the worst that it ever was.
    """

    def __init__(self, id_: str, store: str, opened: str) -> None:
        self.id = id_
        self.store = store
        self.opened = opened
        self.alerts: dict[str, AlertRecord] = {}
        self.urgency = 0

    @property
    def is_open(self) -> bool:
        """True while any of its alerts is open."""
        return any(alert.is_open for alert in self.alerts.values())

    @property
    def is_calling(self) -> bool:
        """True while any of its alerts is a page."""
        return any(alert.is_open and alert.data.level == PAGE for alert in self.alerts.values())

    @property
    def root(self) -> AlertRecord:
        """The record that says what is wrong: of the open root, else of the root that cleared last; it has an alert."""
        records = list(self.alerts.values())
        roots = [record for record in records if record.data.incident.role == ROOT] or records
        return max(roots, key=lambda record: (record.is_open, record.data.time))

    @property
    def parts(self) -> list[AlertRecord]:
        """The other alerts that are open, the most urgent first."""
        root = self.root
        parts = [alert for alert in self.alerts.values() if alert.is_open and alert is not root]
        return sorted(parts, key=lambda alert: -urgency_of(alert.data))

    @property
    def level(self) -> str:
        """The level: page once it has called people, else watch."""
        return PAGE if self.urgency else WATCH


class IncidentChange(NamedTuple):
    """A change of an incident by one record."""

    incident: Incident
    change: Change
    record: AlertRecord


class Incidents:
    """The incidents of a topic of alerts by id, those over included until their store has a new one.

    Attributes:
        by_id: the incidents.
    """

    def __init__(self) -> None:
        self.by_id: dict[str, Incident] = {}
        self._of_alert: dict[str, str] = {}  # id of the incident, by alert id

    def take(self, record: AlertRecord) -> list[IncidentChange]:
        """Take a record, in the order of the topic or of a compacted one; return what it changes, mostly one thing.

        An alert may pass from an incident that has paged to the next one of its store: then two change.
        """
        reference, alert_id = record.data.incident, record.data.alert_id
        incident, is_new = self.by_id.get(reference.id), False
        if incident is None:
            self._forget_over(record.data.store)
            incident, is_new = Incident(reference.id, record.data.store, reference.opened), True
            self.by_id[reference.id] = incident
        changes = []
        former = self.by_id.get(self._of_alert.get(alert_id, reference.id), incident)
        if former is not incident:
            state = _state(former)
            left = former.alerts.pop(alert_id)
            if _is_over(former, *state):
                changes.append(IncidentChange(former, Change.OVER, left))
            if not former.alerts:
                del self.by_id[former.id]
        self._of_alert[alert_id] = reference.id
        state, before = _state(incident), incident.urgency
        incident.alerts[alert_id] = record
        if record.is_open and reference.role == ROOT:
            incident.urgency = max(before, urgency_of(record.data))
        change = Change.WATCHED if is_new and record.is_open else Change.UPDATED
        if incident.urgency > before:
            change = Change.ESCALATED if before else Change.PAGED
        elif _is_over(incident, *state):
            change = Change.OVER
        return [*changes, IncidentChange(incident, change, record)]

    def open(self) -> list[Incident]:
        """Return the open incidents, the most urgent first, then the one that opened first."""
        return sorted(
            (incident for incident in self.by_id.values() if incident.is_open),
            key=lambda incident: (-incident.urgency, incident.opened, incident.id),
        )

    def _forget_over(self, store: str) -> None:
        """Forget the incidents of a store that are over."""
        for incident in [one for one in self.by_id.values() if one.store == store and not one.is_open]:
            for alert_id in incident.alerts:
                self._of_alert.pop(alert_id, None)
            del self.by_id[incident.id]


def _state(incident: Incident) -> tuple[bool, bool]:
    """Return (whether it is open, whether it calls people)."""
    return incident.is_open, incident.is_calling


def _is_over(incident: Incident, was_open: bool, was_calling: bool) -> bool:
    """Return True if an incident is over by what has just changed."""
    if incident.urgency:
        return was_calling and not incident.is_calling
    return was_open and not incident.is_open


def urgency_of(data: AlertData) -> int:
    """Return how bad an alert is, an index into URGENCIES.

    A queue at its MAXDEPTH is a page, whatever its severity: its store still takes the puts to other queues.
    """
    if data.level != PAGE:
        return 0
    if data.condition == Condition.QUEUE_FULL:
        return URGENCIES.index(PAGE)
    return URGENCIES.index(data.severity) if data.severity in (CRITICAL, FULL) else URGENCIES.index(PAGE)
