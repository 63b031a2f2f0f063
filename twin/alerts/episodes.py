"""Alerts and their life cycle, opened, updated, cleared, and the incidents that hold them: docs/alerts.md.

The id of an alert consists of store, condition, resource and the event time of its opening, so the same input gives the
same ids however the stream was cut into batches. If the store's clock has gone back, a time may occur again: the id
then ends in the number of times the clock went back. An incident is what one person has to do about a store: every
alert from the first one until all have been cleared for ten minutes. The worst open alert is its root, the others are
its parts. Where nothing of an incident that has paged has been a page for ten minutes, the next page begins another
incident, which takes over what is still open: an alert that stays open for days, such as `drift`, hides no danger.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import cast
from urllib.parse import quote

import msgspec
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from msgspec import UNSET, UnsetType

from kernels.clock import TICK
from twin.alerts.texts import OURS, Runbook
from twin.base.conditions import (
    CLEARED,
    CRITICAL,
    FILLING,
    FULL,
    INFO,
    OPENED,
    UPDATED,
    WARNING,
    ChangeName,
    Condition,
    Level,
    Resource,
    Severity,
)
from twin.base.units import as_datetime, as_local, as_text
from twin.records import (
    NO_INCIDENT,
    PART,
    ROOT,
    Action,
    AlertData,
    DoneAction,
    Filler,
    IncidentRole,
    TimeToFull,
    level_of,
    sentences_of,
)
from twin.records.alerts import MAX_DONE

CALM_FOR = 600_000_000  # microseconds for which a condition must be over before its alert is cleared
CALM_TICKS = CALM_FOR // TICK
SET_RIGHT_FOR = 60_000_000  # the same where traffic does not bring a condition back
BRIEF_WIDTH = 100  # characters of a line of a brief, but for a command
STEP = 5.0  # percentage points: change of usage that updates an alert
_SOURCE = "mqtwin"
SEVERITIES = (INFO, WARNING, CRITICAL, FULL)  # the worst last
_format = JSONFormat()


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One record of an alert.

    Attributes:
        change: opened, updated or cleared.
        number: number of this record in its episode, from 0.
        alert_id: the episode.
        severity: info, warning, critical or full.
        store: the store.
        resource: the resource, such as entries, pages or `smds/QM01`.
        condition: the condition, see docs/alerts.md.
        time: event time, microseconds since 1970; `when` has it as a datetime.
        usage_pct: percent of the resource in use; None: it has no usage.
        time_to_full_s: seconds until full (`p10`, `p50`, `p90`); None: nothing is predicted.
        full_probability: probability to be full within the horizon, 0 to 1; None likewise.
        fillers: queues that fill the resource, the largest share first.
        cause: sentences that state resource, number and time.
        runbook: actions, the best first; `actions` has them as sentences.
        evidence: reasons of a forecast, as sentences.
        resources: those that passed a line at the same tick, `resource` first.
        incident: the incident that holds the alert, and its role there.
        done: what was done in the incident, in order of time.
        brief: first lines of a page.
        site: name of the site; UNSET: it has none.
    """

    change: ChangeName
    number: int
    alert_id: str
    severity: Severity
    store: str
    resource: str
    condition: str
    time: int
    usage_pct: float | None
    time_to_full_s: TimeToFull | None
    full_probability: float | None
    fillers: tuple[Filler, ...]
    cause: str
    runbook: tuple[Action, ...] = ()
    evidence: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    incident: IncidentRole = NO_INCIDENT
    done: tuple[DoneAction, ...] = ()
    brief: tuple[str, ...] = ()
    site: str | UnsetType = UNSET

    @property
    def when(self) -> datetime:
        """Event time as an aware datetime."""
        return as_datetime(self.time)

    @property
    def actions(self) -> tuple[str, ...]:
        """The runbook as sentences."""
        return sentences_of(self.runbook)

    @property
    def level(self) -> Level:
        """The level: watch (do not wake anybody) or page (wake someone)."""
        return level_of(self.severity)

    def data(self) -> AlertData:
        """Return the `data` of the record."""
        own = {name: getattr(self, name) for name in AlertData.__struct_fields__ if name not in ("time", "status")}
        status = CLEARED if self.change == CLEARED else "open"
        return AlertData(**own, time=as_text(self.time), status=status)

    def record(self) -> bytes:
        """Return the value of the record on the alerts topic: a CloudEvent in structured mode, JSON."""
        event = CloudEvent(
            attributes={
                "id": f"{self.alert_id}/{self.number}",
                # Of several sites, too, source and id together name one event [CloudEvents 1.0: source].
                "source": _SOURCE if self.site is UNSET else f"{_SOURCE}/{quote(self.site, safe='')}",
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
    headline: str = ""  # what and when, for the first line of a page; "": the first sentence of `cause`
    why: str = ""  # the second line; "": the second sentence of `cause`
    runbook: tuple[Action, ...] = ()
    usage_pct: float | None = None
    full_probability: float | None = None
    time_to_full_s: TimeToFull | None = None
    fillers: tuple[Filler, ...] = ()
    evidence: tuple[str, ...] = ()
    has_eased: bool = False  # gets exceed puts, or full is unlikely
    others: tuple[Resource, ...] = ()  # further resources that passed the same line at the same tick


class Episode(msgspec.Struct, kw_only=True):
    """An open alert, part of the store's state."""

    alert_id: str
    condition: str
    resource_text: str = msgspec.field(name="resource")
    published: int  # number of records
    severity: str
    usage_pct: float  # last published; 0 for a resource that has no usage
    calm_since: int | None = None  # microseconds: time since which the condition no longer holds
    opened: int = 0  # microseconds; 0 in state of earlier versions
    last: Finding | None = None  # last published; None in state of earlier versions
    last_at: int = 0  # microseconds: when it was

    @property
    def resource(self) -> Resource:
        """The resource that the alert is about."""
        return Resource.parse(self.resource_text)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources that the alert is about, `resource` first."""
        return (self.resource, *(self.last.others if self.last else ()))

    @property
    def weight(self) -> tuple[bool, int, int, int]:
        """How much the alert reveals about its store: the open alert with most weight is the root of its incident."""
        condition = Condition(self.condition)
        return self.severity != INFO, condition.about, SEVERITIES.index(self.severity), condition.rank

    def last_finding(self) -> Finding:
        """Return the finding that was published last."""
        if self.last is not None:
            return self.last
        cause = f"{self.resource.label}: {self.usage_pct:.1f} % in use."
        return Finding(
            condition=self.condition,
            resource=self.resource,
            severity=self.severity,
            usage_pct=self.usage_pct,
            cause=cause,
        )


class OpenIncident(msgspec.Struct, kw_only=True):
    """The incident of a store, part of its state, until the next one begins."""

    id: str
    opened: int  # event time of its first alert, microseconds
    root: str = ""  # id of the alert that is its root; "": none is open
    has_paged: bool = False  # True once one of its alerts was a page
    last_open: int = 0  # time, microseconds, an alert of it was last open, as of the last cleared one
    # the same of pages, by what their conditions are about
    last_paged: list[int] = msgspec.field(default_factory=lambda: [0] * (FILLING + 1))
    done: list[DoneAction] = []  # what was done about it, at most the latest `MAX_DONE`
    # event time at which puts that were refused have succeeded for long enough, microseconds; None: not yet, or none
    # was refused
    recovered: int | None = None


class Episodes:
    """Open alerts of one store by condition and resource. `turns` counts how often the store's clock has gone back;
    `refreshed` returns the finding about an open alert as of a time, microseconds, where nothing but its role changes;
    `on_record` gets each record in order.
    """

    def __init__(
        self,
        store: str,
        episodes: Sequence[Episode] = (),
        turns: int = 0,
        incident: OpenIncident | None = None,
        refreshed: Callable[[Episode, int], Finding] = lambda episode, _: episode.last_finding(),
        on_record: Callable[[Alert], None] = lambda _: None,
        zone: tzinfo = UTC,
        runbook: Runbook = OURS,
        site: str = "",
    ) -> None:
        self.zone, self.runbook = zone, runbook
        self._site = site or UNSET
        self._store = store
        self._refreshed = refreshed
        self._on_record = on_record
        self._turns = turns
        self._open = {(episode.condition, episode.resource): episode for episode in episodes}
        self.incident = incident  # the one that holds them, or the last one; None before the first

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.as_list())

    def as_list(self) -> list[Episode]:
        """Return the open episodes in the order in which they were opened."""
        return list(self._open.values())

    def last_records(self) -> list[Alert]:
        """Return the record that opened each open alert, with what was published last, and then the last record."""
        records = []
        for episode in self:
            finding, opened = episode.last_finding(), episode.opened or episode.last_at
            records.append(self._alert(episode, finding, OPENED, opened, 0))
            if episode.published > 1:
                records.append(self._alert(episode, finding, UPDATED, episode.last_at, episode.published - 1))
        return records

    @property
    def any_open(self) -> bool:
        """True if any episode is open."""
        return bool(self._open)

    @property
    def filling(self) -> Episode | None:
        """The worst open alert that is about filling, of the store or a queue; None: there is none."""
        own = (episode for episode in self if Condition(episode.condition).about)
        return max(own, key=lambda episode: episode.weight, default=None)

    def get(self, condition: str, resource: Resource) -> Episode | None:
        """Return the open episode of a condition that names a resource, or None."""
        episode = self._open.get((condition, resource))
        if episode is not None:
            return episode
        return next((open_ for open_ in self if open_.condition == condition and resource in open_.resources), None)

    def turn_back(self, now: int, turns: int) -> None:
        """Continue from an earlier time."""
        self._turns = turns
        for episode in self._open.values():
            if episode.calm_since is not None:
                episode.calm_since = min(episode.calm_since, now)
        if self.incident is not None:
            self.incident.last_open = min(self.incident.last_open, now)
            if self.incident.recovered is not None:
                self.incident.recovered = min(self.incident.recovered, now)
            self.incident.last_paged = [min(time, now) for time in self.incident.last_paged]

    def open(self, finding: Finding, time: int) -> list[Alert]:
        """Open an episode and return the records to publish."""
        episode = Episode(
            alert_id=self._id(f"{finding.condition}/{finding.resource}", time),
            condition=finding.condition,
            resource_text=str(finding.resource),
            published=0,
            severity=finding.severity,
            usage_pct=finding.usage_pct or 0.0,
            opened=time,
        )
        incident = self._incident(time)
        if not self._open and time - incident.last_open >= CALM_FOR:
            self.incident = OpenIncident(id=self._id("", time), opened=time)
        self._open[finding.condition, finding.resource] = episode
        return self._publish(episode, finding, OPENED, time)

    def update(self, episode: Episode, finding: Finding, time: int) -> list[Alert]:
        """Update an episode and return the records to publish."""
        episode.severity = finding.severity
        episode.usage_pct = finding.usage_pct or 0.0
        return self._publish(episode, finding, UPDATED, time)

    def note_recovered(self, time: int) -> str:
        """Record that the incident's puts succeed again; return the words for it. time: event time, microseconds."""
        self._incident(time).recovered = time
        return "puts succeed again"

    def note_done(self, done: DoneAction | None, time: int) -> list[Alert]:
        """Record an action taken in the incident; return the record in which the worst alert about filling has it."""
        episode = self.filling
        if done is None or episode is None:
            return []
        incident = self._incident(time)
        incident.done = [*incident.done, done][-MAX_DONE:]
        return [self._refresh(episode, time)]

    def settle(
        self,
        episode: Episode,
        make_cleared: Callable[[], Finding],
        now: int,
        *,
        is_over: bool,
        calm_for: int | None = None,
    ) -> list[Alert]:
        """Clear an episode whose condition has been over for long enough; return the records, if it is cleared.
        `is_over`: hysteresis included; `calm_for`: microseconds for which it must be over without a break, None: as
        long as most conditions.
        """
        if not is_over:
            episode.calm_since = None
            return []
        if episode.calm_since is None:
            episode.calm_since = now
        if calm_for is None:
            calm_for = CALM_FOR if Condition(episode.condition).about else SET_RIGHT_FOR
        return self.clear(episode, make_cleared(), now) if now - episode.calm_since >= calm_for else []

    def clear(self, episode: Episode, finding: Finding, time: int) -> list[Alert]:
        """End an episode and return the records to publish; if it was the root, the worst alert left is the next."""
        incident = self._incident(time)
        del self._open[episode.condition, episode.resource]
        incident.last_open = time
        if episode.severity != INFO:
            incident.last_paged[Condition(episode.condition).about] = time
        records = [self._record(episode, finding, CLEARED, time)]
        if incident.root == episode.alert_id:
            worst = max(self._open.values(), key=lambda alert: alert.weight, default=None)
            incident.root = "" if worst is None else worst.alert_id
            if worst is not None:
                records.append(self._refresh(worst, time))
        return records

    def _publish(self, episode: Episode, finding: Finding, change: str, time: int) -> list[Alert]:
        """Return the records of an episode that opens or is updated, behind those of the alerts that it displaces."""
        incident, displaced = self._incident(time), []
        if episode.severity != INFO:
            if self._is_another_incident(episode, time):
                self.incident = incident = OpenIncident(id=self._id("", time), opened=time, root=episode.alert_id)
                displaced = [other for other in self if other is not episode]
            incident.has_paged = True
        root = next((alert for alert in self if alert.alert_id == incident.root), None)
        if root is not episode and (root is None or episode.weight > root.weight):
            incident.root = episode.alert_id
            displaced = [] if root is None else [root]
        records = [self._refresh(alert, time) for alert in displaced]
        episode.last, episode.last_at = finding, time
        return [*records, self._record(episode, finding, change, time)]

    def _refresh(self, episode: Episode, time: int) -> Alert:
        """Return the record of an episode whose role or incident changes."""
        return self._publish_again(episode, self._refreshed(episode, time), time)

    def _publish_again(self, episode: Episode, finding: Finding, time: int) -> Alert:
        """Return the record of an episode that is no worse than before."""
        episode.severity = finding.severity
        episode.last, episode.last_at, episode.usage_pct = finding, time, finding.usage_pct or 0.0
        return self._record(episode, finding, UPDATED, time)

    def _is_another_incident(self, episode: Episode, time: int) -> bool:
        """Return True if a page begins another incident: the present one has paged, and has been calm since."""
        incident, number = self._incident(time), Condition(episode.condition).about
        if not incident.has_paged or time <= incident.opened:
            return False
        others = (alert for alert in self if alert is not episode)
        calls = any(alert.severity != INFO and Condition(alert.condition).about >= number for alert in others)
        return not calls and not self._was_page(episode) and time - max(incident.last_paged[number:]) >= CALM_FOR

    def _was_page(self, episode: Episode) -> bool:
        return episode.last is not None and episode.last.severity != INFO

    def _incident(self, time: int) -> OpenIncident:
        """Return the incident; with open alerts from the state of an earlier version, which has none, a new one."""
        if self.incident is None:
            has_paged = any(episode.severity != INFO for episode in self)
            worst = max(self, key=lambda alert: alert.weight, default=None)
            root = "" if worst is None else worst.alert_id
            self.incident = OpenIncident(id=self._id("", time), opened=time, root=root, has_paged=has_paged)
        return self.incident

    def _id(self, name: str, time: int) -> str:
        """Return the id of an alert or incident that begins at `time`, microseconds. name: the alert's, or ""."""
        text = f"{self._store}/{name}/{time}" if name else f"{self._store}/{time}"
        return f"{text}/{self._turns}" if self._turns else text

    def _record(self, episode: Episode, finding: Finding, change: str, time: int) -> Alert:
        alert = self._alert(episode, finding, change, time, episode.published)
        episode.published += 1
        self._on_record(alert)
        return alert

    def _alert(self, episode: Episode, finding: Finding, change: str, time: int, number: int) -> Alert:
        incident = self._incident(time)
        role = ROOT if incident.root == episode.alert_id else PART
        done = tuple(incident.done) if Condition(episode.condition).about else ()
        return Alert(
            change=cast("ChangeName", change),
            number=number,
            alert_id=episode.alert_id,
            severity=cast("Severity", finding.severity),
            store=self._store,
            site=self._site,
            resource=str(finding.resource),
            condition=finding.condition,
            time=time,
            usage_pct=finding.usage_pct,
            time_to_full_s=finding.time_to_full_s,
            full_probability=finding.full_probability,
            fillers=finding.fillers,
            cause=" ".join(
                (finding.cause, *_sentences(done, self.zone, with_effect=not finding.has_eased and change != CLEARED))
            ),
            runbook=finding.runbook,
            evidence=finding.evidence,
            resources=tuple(map(str, (finding.resource, *finding.others))),
            incident=IncidentRole(
                id=incident.id,
                role=role,
                opened=as_text(incident.opened),
                recovered=None if incident.recovered is None else as_text(incident.recovered),
            ),
            done=done,
            brief=brief_of(finding),
        )


def _sentences(done: Iterable[DoneAction], zone: tzinfo, *, with_effect: bool) -> Iterator[str]:
    """Yield the actions taken as sentences; their effect is a time until full, omitted once the danger has eased."""
    for action in done:
        described = action if with_effect else msgspec.structs.replace(action, effect=None)
        yield f"{described.describe(as_local(action.time, zone))}."


def brief_of(finding: Finding) -> tuple[str, ...]:
    """Return the first lines of a page: what and when; why; the first command, if there is something to do."""
    first, _, rest = finding.cause.partition(". ")
    steps = [step for action in finding.runbook for step in action.steps]
    lines = [finding.headline or first.removesuffix("."), finding.why or rest.partition(". ")[0].removesuffix(".")]
    command = steps[0].statement if steps and not finding.has_eased else None
    if steps and not finding.has_eased and command is None:
        lines.append(steps[0].text)
    short = [textwrap.shorten(line, BRIEF_WIDTH, placeholder=" ...") for line in lines if line]
    return tuple(short) if command is None else (*short, command)
