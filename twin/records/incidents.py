"""Incidents as readers of the alerts topic see them: what one person has to do about one store.

An incident holds every alert of a store from the first one until all have been cleared for ten minutes. One of its open
alerts is the root: it says what is wrong and what to do; the others are its parts. An incident pages people once, when
it becomes a page, and notifies them again when it gets worse: docs/incidents.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from twin.base.conditions import CRITICAL, FULL, PAGE, WATCH, Condition
from twin.records.alerts import ROOT, AlertData, AlertRecord

URGENCIES = (WATCH, PAGE, CRITICAL, FULL)  # how bad an incident is, the worst last
_MAX_INCIDENTS = 100_000  # a bound for memory; a site has one a store


class Change(StrEnum):
    """Changes of an incident."""

    WATCHED = "watched"  # it opened, as a watch
    PAGED = "paged"  # it became a page: wake someone
    ESCALATED = "escalated"  # it is worse than it ever was: inform whoever was paged
    REOPENED = "reopened"  # it was over and is a page again: inform whoever was paged
    RECOVERED = "recovered"  # its puts were refused and succeed again: inform whoever was paged
    UPDATED = "updated"  # anything else
    OVER = "over"  # nothing of it is a page any more; of one that never was a page, every alert is cleared


class Incident:
    """An incident, as far as its records have been read."""

    def __init__(self, id_: str, store: str, opened: str) -> None:
        self.id = id_
        self.store = store
        self.opened = opened  # event time of its first alert, as text
        # last record of each of its open alerts, by alert id, in the order in which they came
        self.alerts: dict[str, AlertRecord] = {}
        # the last record of the root that cleared last, else of the first alert that cleared; None: none has
        self.ended: AlertRecord | None = None
        self.urgency = 0  # index into URGENCIES of its worst state ever, or since its puts succeeded again
        self.has_recovered = False  # True once puts that it refused succeeded again

    @property
    def is_open(self) -> bool:
        """True while any of its alerts is open."""
        return bool(self.alerts)

    @property
    def is_calling(self) -> bool:
        """True while any of its alerts is a page."""
        return any(alert.data.level == PAGE for alert in self.alerts.values())

    @property
    def is_over(self) -> bool:
        """True once there is nothing left to do: it has paged people and is no page any more, or all are cleared."""
        return not self.is_calling if self.urgency else not self.is_open

    @property
    def root(self) -> AlertRecord:
        """The record that says what is wrong: of the open root, else of the root that cleared last; it has an alert."""
        root = next((alert for alert in self.alerts.values() if alert.data.incident.role == ROOT), self.ended)
        return root or max(self.alerts.values(), key=lambda alert: urgency_of(alert.data))

    @property
    def parts(self) -> list[AlertRecord]:
        """The other alerts that are open, the most urgent first."""
        root = self.root if self.alerts else None
        parts = [alert for alert in self.alerts.values() if alert is not root]
        return sorted(parts, key=lambda alert: -urgency_of(alert.data))

    @property
    def level(self) -> str:
        """The level: page once it has called people, else watch."""
        return PAGE if self.urgency else WATCH

    def keep(self, record: AlertRecord) -> None:
        """Store the last record of one of its alerts."""
        is_root = record.data.incident.role == ROOT
        if is_root:
            self.urgency = max(self.urgency, urgency_of(record.data))
        if record.is_open:
            self.alerts[record.data.alert_id] = record
            return
        self.alerts.pop(record.data.alert_id, None)
        if is_root or self.ended is None:
            self.ended = record


class IncidentChange(NamedTuple):
    """A change of an incident by one record."""

    incident: Incident
    change: Change
    record: AlertRecord

    @property
    def is_notice(self) -> bool:
        """True if people are notified: it became a page, got worse, eased, returned, or is over after being a page.

        An incident whose alerts pass to the next one of its store closes silently; its successor notifies.
        """
        if self.change is Change.OVER:
            return self.incident.urgency > 0 and not self.record.is_open
        return self.change in (Change.PAGED, Change.ESCALATED, Change.RECOVERED, Change.REOPENED)


class Incidents:
    """The incidents of a topic of alerts by id, those over included until their store has a new one."""

    def __init__(self) -> None:
        self.by_id: dict[str, Incident] = {}  # the incidents
        self._of_alert: dict[str, Incident] = {}  # by id of an open alert
        self._of_store: dict[str, list[Incident]] = {}

    def take(self, record: AlertRecord) -> list[IncidentChange]:
        """Take a record, in the order of the topic or of a compacted one; return what it changes, mostly one thing.

        An alert may pass from an incident that has paged to the next one of its store: then two change.
        """
        alert_id = record.data.alert_id
        incident, is_new = self._incident_of(record)
        changes = []
        former = self._of_alert.get(alert_id, incident)
        if former is not incident:
            was_over = former.is_over
            left = former.alerts.pop(alert_id)
            if former.is_over and not was_over:
                changes.append(IncidentChange(former, Change.OVER, left))
            if not former.alerts:
                self._forget(former)
        if record.is_open:
            self._of_alert[alert_id] = incident
        else:
            self._of_alert.pop(alert_id, None)
        was_over, before = incident.is_over, incident.urgency
        incident.keep(record)
        change = Change.WATCHED if is_new and record.is_open else Change.UPDATED
        had_recovered = incident.has_recovered
        incident.has_recovered = had_recovered or record.data.incident.recovered is not None
        if incident.has_recovered and not had_recovered and before == URGENCIES.index(FULL):
            incident.urgency, change = URGENCIES.index(PAGE), Change.RECOVERED
        elif record.is_open and incident.urgency > before:
            change = Change.ESCALATED if before else Change.PAGED
        elif before and was_over and not incident.is_over:
            change = Change.REOPENED
        if incident.is_over and not was_over:
            change = Change.OVER
        return [*changes, IncidentChange(incident, change, record)]

    def forget_alert(self, alert_id: str) -> None:
        """Forget an alert whose key was deleted from the topic."""
        incident = self._of_alert.pop(alert_id, None)
        if incident is not None:
            incident.alerts.pop(alert_id)
            if not incident.alerts:
                self._forget(incident)

    def open(self) -> list[Incident]:
        """Return the open incidents, the most urgent first, then the one that opened first."""
        return sorted(
            (incident for incident in self.by_id.values() if incident.is_open),
            key=lambda incident: (-incident.urgency, incident.opened, incident.id),
        )

    def _incident_of(self, record: AlertRecord) -> tuple[Incident, bool]:
        """Return the incident of a record, and True if it is a new one."""
        reference = record.data.incident
        incident = self.by_id.get(reference.id)
        if incident is not None:
            return incident, False
        for earlier in [incident for incident in self._of_store.get(record.data.store, ()) if not incident.is_open]:
            self._forget(earlier)
        if len(self.by_id) >= _MAX_INCIDENTS:
            self._forget(next(iter(self.by_id.values())))
        incident = self.by_id[reference.id] = Incident(reference.id, record.data.store, reference.opened)
        self._of_store.setdefault(incident.store, []).append(incident)
        return incident, True

    def _forget(self, incident: Incident) -> None:
        del self.by_id[incident.id]
        for alert_id in incident.alerts:
            del self._of_alert[alert_id]
        of_store = self._of_store[incident.store]
        of_store.remove(incident)
        if not of_store:
            del self._of_store[incident.store]


def urgency_of(data: AlertData) -> int:
    """Return how bad an alert is, an index into URGENCIES.

    A queue at its MAXDEPTH is a page, whatever its severity: its store still takes the puts to other queues.
    """
    if data.level != PAGE:
        return 0
    if data.condition == Condition.QUEUE_FULL:
        return URGENCIES.index(PAGE)
    return URGENCIES.index(data.severity) if data.severity in (CRITICAL, FULL) else URGENCIES.index(PAGE)
