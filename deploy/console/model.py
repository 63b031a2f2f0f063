"""The topics folded into what the page shows: stores, incidents with their alerts and notes on these, dead letters.

Bounded: the number of stores, alerts, notes, letters and points has a limit. Every change gets a version. A client asks
for what changed since its version, so one that was away gets the latest state once and nothing in between.
"""

from __future__ import annotations

import heapq
import re
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
from msgspec import UNSET

from deploy.console.points import History, Point, points_per_store
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.alerts.findings import REFUSES_FROM_PCT
from twin.base.conditions import CRITICAL, FULL, INFO, OPENED, PAGE, WARNING, Condition, Resource, full_reason
from twin.base.units import zone_periods
from twin.records import (
    LIKELY,
    POSSIBLE,
    AlertData,
    AlertRecord,
    Incident,
    Incidents,
    Note,
    NotedAlert,
    ResourceForecast,
    ResourceUsage,
    StateRecord,
    read_alert_record,
    read_note,
    read_state_record,
    resources_of,
    rise_text,
    urgency_of,
)
from twin.records.bounds import text_of

MAX_STORES = 5_000
MAX_ALERTS = 1_000
MAX_NOTES = 2_000  # on alerts that are known
MAX_EARLY_NOTES = 200  # on others, whose alert may be read later
MAX_NOTES_OF_ALERT = 50
MAX_LETTERS = 200
MAX_REASONS = 100
MAX_LETTER_CHARACTERS = 600
# Fields of a state record that the page does not read in the summary of a store.
_UNREAD = frozenset((
    "smds", "scm", "forecast", "forecast_scores", "sizes_measured", "limits_unknown", "levels", "coverage", "plans",
    "site", "words", "long_forecast",
))  # fmt: skip
_RATE_SECONDS = 60.0  # over which the rates of the job are measured
_LETTER_HEADERS = ("reason", "detail", "topic", "partition", "offset", "index")
_DAY_S = 86_400.0
_RISES = 1e3  # of the urgency of a store that rises: it comes before those that do not, behind those that fill

_RANKS = {FULL: 4, CRITICAL: 3, WARNING: 2, INFO: 1, "": 0}
_COMMAND = re.compile(
    r"\b(?:ALTER|DEFINE|DELETE|DISPLAY|RESET|START|STOP|BACKUP|RECOVER|CLEAR|SETXCF|D) "
    r"(?:(?![a-z]+\b)[A-Z0-9][\w().,=*/'%$#@-]*(?: |$|(?=[;,)])))+"
)


def commands_in(action: str) -> list[str]:
    """Return the MQSC and SETXCF commands in the text of an action, in its order."""
    matches = (match.group(0) for match in _COMMAND.finditer(action))
    return [command.strip(" ,.;") for command in matches if "..." not in command]  # those with a gap cannot be copied


class _Entry:
    """A store with the version of its last change. Its JSON is made once for all clients, and at once: what cannot be
    sent fails as the record that it came with.
    """

    def __init__(self, content: Mapping[str, object], version: int) -> None:
        self.version = version
        self.encoded = msgspec.Raw(msgspec.json.encode(content))


class _StoreEntry(_Entry):
    """The summary of a store."""

    def __init__(self, content: Mapping[str, object], version: int, urgency: float, severity: str) -> None:
        super().__init__(content, version)
        self.urgency, self.severity = urgency, severity


class _AlertEntry:
    """The last record of an alert, what a note on it is checked against, the time at which it opened, its notes."""

    def __init__(self, record: AlertRecord, noted: NotedAlert, opened: str, notes: Sequence[Note]) -> None:
        data = record.data
        self.record, self.noted, self.opened = record, noted, opened
        content = {
            **{name: value for name, value in msgspec.structs.asdict(data).items() if value is not msgspec.UNSET},
            "id": record.id,
            "change": record.change,
            "opened": opened,
            "is_open": record.is_open,
            "is_foreseen": data.is_foreseen,
            "label": ", ".join(Resource.parse(resource).label for resource in data.resources),
            "actions": [{"text": text, "commands": commands_in(text)} for text in data.actions],
            "notes": notes,
        }
        self.encoded = msgspec.Raw(msgspec.json.encode(content))


class _IncidentEntry(_Entry):
    """An incident, its alerts by id, and the version of its last change.

    Its root is that of the fold while it is open; of one that is closed it is the worst alert that it had, as the last
    to clear may be a watch.
    """

    def __init__(self, incident: Incident, alerts: Mapping[str, _AlertEntry], version: int) -> None:
        own = list(alerts.values())
        worst = max(own, key=lambda alert: urgency_of(alert.record.data))  # of several the first
        root = alerts.get(incident.root.data.alert_id, worst) if incident.is_open else worst
        others = [alert for alert in own if alert is not root]
        cleared = sorted((alert for alert in others if not alert.record.is_open), key=lambda alert: alert.record.time)
        self.incident, self.alerts = incident, alerts
        self.severity = _severity(incident, root.record)
        content = {
            "id": incident.id,
            "store": incident.store,
            "opened": incident.opened,
            "time": max(alert.record.time for alert in own),
            "is_open": incident.is_open,
            "is_page": incident.is_calling,
            "urgency": incident.urgency,
            "severity": self.severity,
            "root": root.encoded,
            "parts": [alerts[part.data.alert_id].encoded for part in incident.parts if part is not root.record],
            "cleared": [alert.encoded for alert in reversed(cleared)],
        }
        super().__init__(content, version)
        self.call = None if root.record.data.level != PAGE else (_seconds(root.opened), root.record.data)


class _Letter(msgspec.Struct, frozen=True):
    """A dead letter: the headers of its record, its value, and the time at which it was written."""

    reason: str
    detail: str
    topic: str
    partition: str
    offset: str
    index: str
    value: str
    written_s: float


class _NoteBook:
    """Notes by alert, up to a number. Beyond it the alert goes whose last note was added first.

    That is their order in the topic: the time in a note is what its writer says.
    """

    def __init__(self, max_notes: int) -> None:
        self._max_notes = max_notes
        self._by_alert: dict[str, list[Note]] = {}  # the last added at the end
        self._count = 0

    def notes_on(self, alert_id: str) -> Sequence[Note]:
        """Return the notes on an alert, in their order."""
        return self._by_alert.get(alert_id, ())

    def add(self, note: Note) -> list[str]:
        """Add a note, and return the alerts whose notes changed; none for one that is there already."""
        if note in self.notes_on(note.alert_id):
            return []  # delivered twice
        own = [*self.forget(note.alert_id), note][-MAX_NOTES_OF_ALERT:]
        self._by_alert[note.alert_id] = own
        self._count += len(own)
        changed = [note.alert_id]
        while self._count > self._max_notes:
            changed.append(next(iter(self._by_alert)))
            self.forget(changed[-1])
        return changed

    def forget(self, alert_id: str) -> list[Note]:
        """Forget the notes on an alert, and return them."""
        own = self._by_alert.pop(alert_id, [])
        self._count -= len(own)
        return own


class ConsoleModel:
    """The content of the page, for several threads. `job_problem` returns why the job has stopped, or ""."""

    def __init__(
        self,
        topics: Topics,
        clock: Callable[[], float] = time.time,
        job_problem: Callable[[], str] = str,
        zone: tzinfo = UTC,
    ) -> None:
        self.epoch = uuid.uuid4().hex[:12]  # id of this model; versions of another one mean nothing here
        self._topics, self._clock, self._job_problem, self._zone = topics, clock, job_problem, zone
        self._lock = threading.RLock()
        self._version = 0
        self._stores: dict[str, _StoreEntry] = {}
        self._states: dict[str, StateRecord] = {}
        self._histories: dict[str, History] = {}
        self._alerts: dict[str, _AlertEntry] = {}
        self._fold = Incidents()
        self._incidents: dict[str, _IncidentEntry] = {}
        self._incidents_of: dict[str, dict[str, _IncidentEntry]] = {}  # by store
        self._notes = _NoteBook(MAX_NOTES)  # on alerts that are known
        self._early_notes = _NoteBook(MAX_EARLY_NOTES)  # on others: they push out none of those
        self._letters: deque[_Letter] = deque(maxlen=MAX_LETTERS)
        self._reasons: dict[str, int] = {}
        self._letters_version = 0
        self._removed: deque[tuple[int, str]] = deque(maxlen=MAX_ALERTS)  # (version, incident id)
        self._written: deque[tuple[float, int, float]] = deque(maxlen=2_000)  # (time, state records, events)
        self._records = 0
        self._events = 0.0
        self._last_write_s = 0.0
        self._site = (0, "")  # of the state record that was written last: when, milliseconds, and the site's name
        self._guard = RecordGuard()
        self._source: dict[str, Any] = {"connected": True, "caught_up": False, "missing": [], "problem": ""}

    # --- records ---------------------------------------------------------------------------------------------------

    def fold(self, records: list[TopicRecord]) -> None:
        """Fold records of the topics. One that cannot be read is counted, and nothing else."""
        with self._lock:
            for record in records:
                self._last_write_s = max(self._last_write_s, record.written_ms / 1000)
                unreadable = self._guard.unreadable
                self._guard.take(record, self._fold_one)
                self._version += self._guard.unreadable - unreadable
            self._written.append((self._clock(), self._records, self._events))

    def set_source(self, *, connected: bool, caught_up: bool, missing: list[str], problem: str = "") -> None:
        """Set what is known about the broker."""
        source = {"connected": connected, "caught_up": caught_up, "missing": missing, "problem": problem}
        with self._lock:
            if source != self._source:
                self._source = source
                self._version += 1

    def _fold_one(self, record: TopicRecord) -> None:
        if record.topic == self._topics.dlq:
            self._fold_letter(record)
        elif record.value is None:
            return  # a tombstone of a compacted topic
        elif record.topic == self._topics.state:
            state = read_state_record(record.value)
            self._fold_state(state)
            self._site = max(self._site, (record.written_ms, text_of(state.site)))
        elif record.topic == self._topics.notes:
            self._fold_note(read_note(record.value))
        else:
            self._fold_alert(record.value)

    def _fold_state(self, state: StateRecord) -> None:
        """Fold a state record. Nothing changes until everything that the page needs has been derived from it."""
        name = state.store
        if name not in self._stores and len(self._stores) >= MAX_STORES:
            return
        resources = resources_of(state)
        first = state.rising
        times = None if first is None else first.time_to_full_s
        quantiles = None if times is None else (times.p10, times.p50, times.p90)
        time_s = _seconds(state.time) if state.time else None
        pct = {item.name: item.maximum_pct for item in resources if item.maximum_pct is not None}
        history = self._histories.setdefault(name, History())
        if time_s is not None:
            history.add(Point(time_s, pct, quantiles), points_per_store(len(self._stores) + (name not in self._stores)))
        entry = self._summary(name, state)
        self._version += 1
        self._stores[name] = entry
        self._records += 1
        before = self._states.get(name)
        self._events += max(0, state.events - (0 if before is None else before.events))
        self._states[name] = state

    def _fold_alert(self, value: bytes) -> None:
        """Fold a record of an alert. Nothing changes until everything that the page needs has been derived from it."""
        record = read_alert_record(value)
        data, alert_id = record.data, record.data.alert_id
        before, known = self._alerts.get(alert_id), self._incidents.get(data.incident.id)
        if before is not None and before.record.id == record.id:
            return  # delivered twice
        if before is not None and before.record.data.store != data.store:
            raise ValueError(f"{alert_id} belongs to {before.record.data.store}, not to {data.store}")
        opened = data.time if before is None or record.change == OPENED else before.opened
        noted = NotedAlert.after(None if before is None else before.noted, record)
        early = self._early_notes.notes_on(alert_id)
        entry = _AlertEntry(record, noted, opened, early or self._notes.notes_on(alert_id))
        self._fold.take(record)
        self._alerts[alert_id] = entry
        self._show(self._fold.by_id[data.incident.id], {**({} if known is None else known.alerts), alert_id: entry})
        if before is not None and before.record.data.incident.id != data.incident.id:
            self._hide_alert(before)
        self._early_notes.forget(alert_id)
        for note in early:
            self._fold_note(note)
        while len(self._alerts) > MAX_ALERTS:
            self._forget_alert()

    def _fold_note(self, note: Note) -> None:
        """Fold a note; its alert may be read later, or never. Of too many, those first in the topic are forgotten."""
        book = self._notes if note.alert_id in self._alerts else self._early_notes
        for alert_id in book.add(note):
            self._show_notes(alert_id)

    def _show_notes(self, alert_id: str) -> None:
        """Make the entry of an alert anew with its notes, and that of its incident, if it is known."""
        alert = self._alerts.get(alert_id)
        if alert is None:
            return
        entry = _AlertEntry(alert.record, alert.noted, alert.opened, self._notes.notes_on(alert_id))
        self._alerts[alert_id] = entry
        incident = self._incidents[alert.record.data.incident.id]
        self._show(incident.incident, {**incident.alerts, alert_id: entry})

    def _show(self, incident: Incident, alerts: Mapping[str, _AlertEntry]) -> None:
        """Make the entry of an incident anew; alerts: those that it has or had, by id."""
        entry = _IncidentEntry(incident, alerts, self._version + 1)
        self._version += 1
        self._take_out(incident.id)
        self._incidents[incident.id] = entry
        self._incidents_of.setdefault(incident.store, {})[incident.id] = entry
        self._sum_up(incident.store)

    def _hide_alert(self, alert: _AlertEntry) -> None:
        """Remove an alert from its incident, and the incident with its last one."""
        data = alert.record.data
        entry = self._incidents[data.incident.id]
        alerts = {key: own for key, own in entry.alerts.items() if key != data.alert_id}
        if alerts:
            self._show(entry.incident, alerts)
            return
        self._take_out(data.incident.id)
        self._version += 1
        self._removed.append((self._version, data.incident.id))
        self._sum_up(entry.incident.store)

    def _take_out(self, incident_id: str) -> None:
        entry = self._incidents.pop(incident_id, None)
        if entry is not None:
            own = self._incidents_of[entry.incident.store]
            del own[incident_id]
            if not own:
                del self._incidents_of[entry.incident.store]

    def _forget_alert(self) -> None:
        cleared = (alert_id for alert_id, entry in self._alerts.items() if not entry.record.is_open)
        oldest = next(cleared, next(iter(self._alerts)))
        alert = self._alerts.pop(oldest)
        self._notes.forget(oldest)
        self._fold.forget_alert(oldest)
        self._hide_alert(alert)

    def _sum_up(self, store: str) -> None:
        if store in self._states:
            self._stores[store] = self._summary(store, self._states[store])
            self._version += 1

    def _fold_letter(self, record: TopicRecord) -> None:
        headers = record.headers
        reason = headers.get("reason", "unknown")[:MAX_LETTER_CHARACTERS]
        if reason not in self._reasons and len(self._reasons) >= MAX_REASONS:
            reason = "other"
        self._reasons[reason] = self._reasons.get(reason, 0) + 1
        texts = {name: headers.get(name, "")[:MAX_LETTER_CHARACTERS] for name in _LETTER_HEADERS}
        value = (record.value or b"").decode(errors="replace")[:MAX_LETTER_CHARACTERS]
        self._letters.append(_Letter(**texts, value=value, written_s=record.written_ms / 1000))
        self._version += 1
        self._letters_version = self._version

    def _summary(self, name: str, state: StateRecord) -> _StoreEntry:
        """Return the summary of a store, with the next version: after a state record or an alert of it."""
        incidents = [entry for entry in self._incidents_of.get(name, {}).values() if entry.incident.is_open]
        severity = max((entry.severity for entry in incidents), key=_rank, default="")
        resources = resources_of(state)
        first = state.rising
        fullest = max((resource.maximum_pct or 0.0 for resource in resources), default=0.0)
        falling = {item.name: self._histories[name].falling_since(item.name) for item in resources}
        is_filling, is_foreseen = _outlook(first, falling, [entry.incident for entry in incidents])
        falls = {name: since for name, since in falling.items() if since is not None}
        rises = "" if first is not None and first.resource in falls else rise_text(first)
        urgency = round(_urgency(severity, first if is_filling else None, fullest) + _RISES * bool(rises), 3)
        content = {
            "store": name,
            "kind": state.kind,
            "full_reason": full_reason(state.kind),
            "time": state.time,
            "severity": severity,
            "urgency": urgency,
            "first": first,
            "forecasts": () if state.forecast is None else state.forecast.resources,
            "resources": [_with_texts(resource) for resource in resources],
            "full": [resource for entry in incidents for resource in _full_resources(entry.incident, state, resources)],
            "fields": {key: value for key, value in msgspec.structs.asdict(state).items() if key not in _UNREAD},
        }
        not_known = state.lacks_levels_in(self._zone) if first is None else ""
        if first is None and state.first is not None and state.lacks_limits:  # nothing fills, up to limits assumed
            not_known = f"not known, {state.lacks_limits}"
        rare = {
            "is_filling": is_filling,
            "is_foreseen": is_foreseen,
            "rises": rises,
            "falling": falls,
            "not_known": not_known,
            "seen": ", ".join(state.seen),
            "plans": state.plans,
            "long": "" if state.long_forecast is UNSET else state.long_forecast.sentence_in(self._zone),
        }
        content |= {key: value for key, value in rare.items() if value}
        return _StoreEntry(content, self._version + 1, urgency, severity)

    # --- answers ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the last change."""
        return self._version

    @property
    def unreadable(self) -> int:
        """Number of records that are neither states nor alerts nor dead letters."""
        return self._guard.unreadable

    @property
    def is_ready(self) -> bool:
        """True if the broker answers and the topics were read to their ends."""
        return bool(self._source["connected"] and self._source["caught_up"])

    @property
    def problem(self) -> str:
        """Why the topics are not read; empty if they are."""
        return str(self._source["problem"])

    @property
    def site(self) -> str:
        """Name of the site, by the state record that was written last; "": it has none."""
        return self._site[1]

    def most_urgent(self, number: int) -> list[msgspec.Raw]:
        """Return the summaries of the most urgent stores, the first one first, at most a number of them."""
        with self._lock:
            return [own.encoded for own in heapq.nlargest(number, self._stores.values(), key=attrgetter("urgency"))]

    def severities(self) -> dict[str, int]:
        """Return the number of stores by severity, "" for those without an open incident."""
        with self._lock:
            return Counter(own.severity for own in self._stores.values())

    def freshness(self) -> dict[str, Any]:
        """Return what is known about broker and job, and the seconds since the job wrote something, or None."""
        now = self._clock()
        age_s = round(max(0.0, now - self._last_write_s), 1) if self._last_write_s else None
        return {**self._source, "job_problem": self._job_problem(), "age_s": age_s}

    def changes(self, since: int, extra: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Return (version, JSON of what changed since a version; 0: of all). extra: further fields of `meta`."""
        with self._lock:
            content: dict[str, Any] = {
                "version": self._version,
                "full": since <= 0,
                "meta": {**self._meta(), **(extra or {})},
                "stores": [entry.encoded for entry in self._stores.values() if entry.version > since],
                "incidents": [entry.encoded for entry in self._incidents.values() if entry.version > since],
                "forgotten": [own for version, own in self._removed if version > since > 0],
            }
            if self._letters_version > since:
                content["letters"] = {"reasons": self._reasons, "latest": list(self._letters)[::-1]}
            return self._version, msgspec.json.encode(content)

    def calls(self) -> list[tuple[float, AlertData]]:
        """Return when people were called, seconds since 1970, and by which alert, as far as incidents are kept."""
        with self._lock:
            entries = list(self._incidents.values())
        called = [entry.call for entry in entries]
        return sorted((call for call in called if call is not None), key=itemgetter(0))

    def noted_alerts(self) -> dict[str, NotedAlert]:
        """Return what notes on alerts are checked against, by alert id."""
        with self._lock:
            return {alert_id: entry.noted for alert_id, entry in self._alerts.items()}

    def notes_on(self, alert_id: str) -> list[Note]:
        """Return the notes on an alert, in their order."""
        with self._lock:
            return list(self._notes.notes_on(alert_id) or self._early_notes.notes_on(alert_id))

    def beat(self, extra: Mapping[str, Any] | None = None) -> bytes:
        """Return JSON about freshness alone, for a time without changes. extra: further fields of `meta`."""
        with self._lock:
            return msgspec.json.encode({"meta": {**self._meta(), **(extra or {})}})

    def history(self, store: str) -> dict[str, Any] | None:
        """Return the history of a store as columns; None for a store that is not known."""
        with self._lock:
            history = self._histories.get(store)
            return None if history is None else history.columns()

    def _meta(self) -> dict[str, Any]:
        times = [state.time for state in self._states.values() if state.time]
        now = self._clock()
        recent = [item for item in self._written if item[0] > now - _RATE_SECONDS]
        seconds = max(1.0, now - recent[0][0]) if recent else 1.0
        return {
            **self.freshness(),
            "as_of": max(times, default=None),
            "zone": zone_periods(self._zone, round(now // _DAY_S)),
            **({"site": self.site} if self.site else {}),
            "stores": len(self._stores),
            "state_records": self._records,
            "state_records_per_s": round((self._records - recent[0][1]) / seconds, 2) if recent else 0.0,
            "events_per_s": round((self._events - recent[0][2]) / seconds, 1) if recent else 0.0,
            "events": sum(state.events for state in self._states.values()),
            "dead_letters": sum(self._reasons.values()),
            "unreadable": self.unreadable,
            "likely": LIKELY,
            "possible": POSSIBLE,
        }


def _rank(severity: str) -> int:
    """Return how bad a severity is; a foreign one counts as a warning."""
    return _RANKS.get(severity, _RANKS[WARNING])


def _severity(incident: Incident, root: AlertRecord) -> str:
    """Return the severity of an incident: that of its root while it is a page, info while it is a watch; "": closed."""
    if not incident.is_open:
        return ""
    return root.data.severity if incident.is_calling else INFO


def _with_texts(resource: ResourceUsage) -> dict[str, object]:
    texts = {"usage": resource.text, "in_use": resource.share_text, "amount": resource.amount_text}
    if resource.can_grow:
        texts["maximum_label"] = resource.maximum_label
    rest = {name: value for name, value in msgspec.structs.asdict(resource).items() if name not in ("used", "unit")}
    return {**rest, **texts}


def _full_resources(incident: Incident, state: StateRecord, resources: list[ResourceUsage]) -> list[str]:
    """Return the resources of a store that are full now, in words: `full` is open, and puts do not succeed again.

    An alert stays open until its condition has been over for a while. Where forecasts are made they know of refusals.
    """
    full = [alert.data for alert in incident.alerts.values() if alert.data.condition == Condition.FULL]
    names = [data.resource for data in full if data.severity == FULL]
    if state.forecast is not None:
        unlikely = state.first is not None and state.first.full_probability < POSSIBLE
        at_limit = {item.name for item in resources if (item.maximum_pct or 0.0) >= REFUSES_FROM_PCT and not unlikely}
        refusing = {item.resource for item in state.forecast.resources if item.is_full_now}
        names = [name for name in names if name in at_limit | refusing]
    return [Resource.parse(name).label for name in names]


def _outlook(
    first: ResourceForecast | None, falling: Mapping[str, float | None], incidents: Sequence[Incident]
) -> tuple[bool, bool]:
    """Return whether a store is filling, and whether the page may say when it is full: then, or where an alert does.

    Nothing that falls is filling, and no time is said of what is unlikely. `falling` has when each resource began to
    fall, seconds since 1970; None: it does not.
    """
    if first is None or first.full_probability < POSSIBLE:
        return False, False
    if falling.get(first.resource) is not None and not first.is_full_now:
        return False, False
    is_filling = first.full_probability >= LIKELY
    alerts = [alert.data for incident in incidents for alert in incident.alerts.values()]
    is_said = any(
        data.condition == Condition.FULL_FORECAST
        and first.resource in data.resources
        and data.time_to_full_s is not None
        for data in alerts
    )
    return is_filling, is_filling or is_said


def _urgency(severity: str, first: ResourceForecast | None, fullest_pct: float) -> float:
    """Return a number by which the most urgent store comes first: alerts, then time left, then usage."""
    urgency = 1e6 * _rank(severity) + min(fullest_pct, 999.0)
    if first is not None and first.time_to_full_s is not None:
        urgency += 1e3 * 100 * (1 - min(first.time_to_full_s.p50, _DAY_S) / _DAY_S)
    return urgency


def _seconds(time_text: str) -> float:
    return int(datetime.fromisoformat(time_text).timestamp() * 1000) / 1000  # milliseconds, as a browser reads it
