"""Alerts and their life cycle: opened, updated, cleared, with one id per episode.

An id consists of store, condition, resource and the event time of the opening, so the same input gives the same ids
however the stream was cut into batches. If the store's clock has gone back, a time may occur again: the id then ends in
the number of times the clock went back. The records are described in docs/alerts.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from twin.conditions import CLEARED, OPENED, UPDATED, Resource
from twin.records import AlertData, Filler, TimeToFull, level_of
from twin.units import as_datetime, as_text

CALM_FOR = 60_000_000  # microseconds for which a condition must be over before its alert is cleared
STEP = 5.0  # percentage points: change of usage that updates an alert
_SOURCE = "mqtwin"
_format = JSONFormat()


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One record of an alert."""

    change: str  # opened | updated | cleared
    number: int  # of this record in its episode, from 0
    alert_id: str
    severity: str
    store: str
    resource: str
    condition: str
    time: int  # event time, microseconds
    usage_pct: float | None  # None for a resource that has no usage
    time_to_full_s: TimeToFull | None
    full_probability: float | None
    fillers: tuple[Filler, ...]
    cause: str
    actions: tuple[str, ...]
    evidence: tuple[str, ...] = ()

    @property
    def when(self) -> datetime:
        """Event time as an aware datetime."""
        return as_datetime(self.time)

    @property
    def level(self) -> str:
        """The level: watch (do not wake anybody) or page (wake someone)."""
        return level_of(self.severity)

    def data(self) -> AlertData:
        """Return the `data` of the record."""
        return AlertData(
            alert_id=self.alert_id,
            severity=self.severity,
            store=self.store,
            resource=self.resource,
            condition=self.condition,
            time=as_text(self.time),
            usage_pct=self.usage_pct,
            time_to_full_s=self.time_to_full_s,
            full_probability=self.full_probability,
            fillers=self.fillers,
            cause=self.cause,
            actions=self.actions,
            evidence=self.evidence,
            status=CLEARED if self.change == CLEARED else "open",
            level=self.level,
        )

    def record(self) -> bytes:
        """Return the value of the record on the alerts topic: a CloudEvent in structured mode, JSON."""
        event = CloudEvent(
            attributes={
                "id": f"{self.alert_id}/{self.number}",
                "source": _SOURCE,
                "type": f"mqtwin.alert.{self.change}",
                "subject": self.store,
                "time": as_datetime(self.time),
                "datacontenttype": "application/json",
            },
            data=msgspec.to_builtins(self.data()),
        )
        return bytes(_format.write(event))


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """State of one condition of one resource at one time."""

    condition: str
    resource: Resource
    severity: str
    cause: str
    actions: tuple[str, ...] = ()
    usage_pct: float | None = None
    full_probability: float | None = None
    time_to_full_s: TimeToFull | None = None
    fillers: tuple[Filler, ...] = ()
    evidence: tuple[str, ...] = ()


class Episode(msgspec.Struct, kw_only=True):
    """An open alert, part of the store's state."""

    alert_id: str
    condition: str
    resource_text: str = msgspec.field(name="resource")
    published: int  # number of records
    severity: str
    usage_pct: float  # last published; 0 for a resource that has no usage
    calm_since: int | None = None  # microseconds: time since which the condition no longer holds

    @property
    def resource(self) -> Resource:
        """The resource that the alert is about."""
        return Resource.parse(self.resource_text)


class Episodes:
    """Open alerts of one store by condition and resource."""

    def __init__(self, store: str, episodes: list[Episode], turns: int = 0) -> None:
        self._store = store
        self._turns = turns
        self._open = {(episode.condition, episode.resource): episode for episode in episodes}

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.as_list())

    def as_list(self) -> list[Episode]:
        """Return the open episodes in the order in which they were opened."""
        return list(self._open.values())

    @property
    def any_open(self) -> bool:
        """True if any episode is open."""
        return bool(self._open)

    def get(self, condition: str, resource: Resource) -> Episode | None:
        """Return the open episode of a condition and resource, or None."""
        return self._open.get((condition, resource))

    def turn_back(self, now: int, turns: int) -> None:
        """Continue from an earlier time.

        Args:
            now: the store's clock, microseconds.
            turns: number of times that the clock has gone back.
        """
        self._turns = turns
        for episode in self._open.values():
            if episode.calm_since is not None:
                episode.calm_since = min(episode.calm_since, now)

    def open(self, finding: Finding, time: int) -> Alert:
        """Open an episode and return the record to publish."""
        alert_id = f"{self._store}/{finding.condition}/{finding.resource}/{time}"
        if self._turns:
            alert_id += f"/{self._turns}"
        episode = Episode(
            alert_id=alert_id,
            condition=finding.condition,
            resource_text=str(finding.resource),
            published=0,
            severity=finding.severity,
            usage_pct=finding.usage_pct or 0.0,
        )
        self._open[finding.condition, finding.resource] = episode
        return self._record(episode, finding, OPENED, time)

    def update(self, episode: Episode, finding: Finding, time: int) -> Alert:
        """Update an episode and return the record to publish."""
        episode.severity = finding.severity
        episode.usage_pct = finding.usage_pct or 0.0
        return self._record(episode, finding, UPDATED, time)

    def settle(
        self,
        episode: Episode,
        make_cleared: Callable[[], Finding],
        now: int,
        *,
        is_over: bool,
        calm_for: int = CALM_FOR,
    ) -> list[Alert]:
        """Clear an episode whose condition has been over for long enough; return the record, if it is cleared.

        Args:
            episode: the episode.
            make_cleared: returns the finding to clear it with.
            now: event time, microseconds.
            is_over: True if the condition is over, hysteresis included.
            calm_for: microseconds for which it must be over without a break.
        """
        if not is_over:
            episode.calm_since = None
            return []
        if episode.calm_since is None:
            episode.calm_since = now
        return [self.clear(episode, make_cleared(), now)] if now - episode.calm_since >= calm_for else []

    def clear(self, episode: Episode, finding: Finding, time: int) -> Alert:
        """End an episode and return the record to publish."""
        del self._open[episode.condition, episode.resource]
        return self._record(episode, finding, CLEARED, time)

    def _record(self, episode: Episode, finding: Finding, change: str, time: int) -> Alert:
        number = episode.published
        episode.published += 1
        return Alert(
            change=change,
            number=number,
            alert_id=episode.alert_id,
            severity=finding.severity,
            store=self._store,
            resource=str(finding.resource),
            condition=finding.condition,
            time=time,
            usage_pct=finding.usage_pct,
            time_to_full_s=finding.time_to_full_s,
            full_probability=finding.full_probability,
            fillers=finding.fillers,
            cause=finding.cause,
            actions=finding.actions,
            evidence=finding.evidence,
        )
