"""The report of a period: one replay up to its end, judged as the scorecard judges, and the changes that were made.

    >>> morning = twin.report("friday.arrow", "estate.toml")
    >>> [(page.store, page.verdict) for page in morning.pages]
    [('QSG1/APP1', 'in time')]

The record is `twin.reporting.records.Report`; docs/report.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np

from kernels.clock import SECOND
from twin.base.errors import UsageError
from twin.base.units import EventTime, as_text, event_us
from twin.estate import Estate, as_estate
from twin.events import EventError
from twin.events.fields import FIELD
from twin.forecast.rises import kept_rises, next_begins
from twin.playback.pages import (
    HORIZON,
    TWIN,
    Alarm,
    Filling,
    Verdict,
    fillings,
    from_incidents,
    is_heard,
    lead_of,
    page_verdicts,
    static_pages,
)
from twin.playback.samples import STEP
from twin.playback.timeline import PlayedRecording, Series, play_series
from twin.recordings.files import Chunk
from twin.records import (
    GETTERS,
    URGENCIES,
    AlertRecord,
    DoneAction,
    Incidents,
    Note,
    StateRecord,
    read_alert_record,
    urgency_of,
)
from twin.reporting.records import (
    CallerCounts,
    ChangeLog,
    Consequence,
    Course,
    Coverage,
    EndedRise,
    Growth,
    IncidentReport,
    PageVerdict,
    Peak,
    RecordedChange,
    Refusal,
    Report,
    SeenAction,
    StoreReport,
    Traced,
    Untouched,
    Window,
    minutes,
    trace,
)
from twin.state.arrays import Array
from twin.stores.message_store import MessageStore

LINES: Mapping[str, float] = {"static 80 %": 80.0, "static 85 %": 85.0}  # whose pages stand beside those of the twin
_DAY = 86_400 * SECOND
_MIN_DAYS, _MAX_DAYS = 3, 28  # of the growth
_MIN_ERRORS = 2.5  # standard errors from which a growth is believed [assumed], as a trend in `twin.forecast.flows`
_FULL_PCT = 100.0
_POINTS = 240  # of a course
_VERDICTS: Mapping[Verdict, PageVerdict] = {
    Verdict.IN_TIME: "in time",
    Verdict.LATE: "late",
    Verdict.FALSE: "false",
    Verdict.UNDECIDED: "undecided",
}
_DAYS_BACK = {"today": 0, "yesterday": 1}


def report(
    recording: str | Path,
    estate: Estate | str | Path,
    *,
    since: EventTime | None = None,
    until: EventTime | None = None,
    alerts: Iterable[AlertRecord] | None = None,
    states: Mapping[str, StateRecord] | None = None,
    notes: Iterable[Note] = (),
    on_chunk: Callable[[Chunk, int], None] | None = None,
) -> Report:
    """Return the report of a recording, or of a job whose events were recorded.

    What comes at or after `until` is not known to it. What was before `since` leads to the state of the stores.

    Args:
        recording: `.ndjson`, `.ndjson.zst` or `.arrow`.
        estate: the estate, or its file.
        since: a time as `twin.base.units.EventTime`, a date, "today" or "yesterday" (of the last event, from midnight
            UTC); None: the first event.
        until: a time as `twin.base.units.EventTime`, or a date; None: behind the last event.
        alerts: records that a job has published, in their order; None: those of the replay.
        states: state records of the job, by store; None: those of the replay.
        notes: notes of people on alerts, in their order; those on alerts of other periods are left out.
        on_chunk: as for `twin.playback.replays.replay`.

    Raises:
        UsageError: a time is wrong, the recording cannot be read, or it has no event of the estate in the period.

    Examples:
        >>> morning = twin.report("friday.arrow", "estate.toml", since="2026-11-20T01:00:00Z")
        >>> morning.minutes_full, morning.minutes_avoided
        (43, 0)
    """
    described = as_estate(estate)
    end = None if until is None else _time("until", until) - 1
    changes = ChangeLog(described)
    played = play_series(recording, described, changes, until=end, on_chunk=on_chunk)
    if not played.series:
        raise UsageError(
            f"{recording} has no event of this estate in that time; expected: one of a store with messages"
        )
    last = max(twin.clock for twin in played.twins.values())
    begin = min(int(series.times[0]) for series in played.series.values()) if since is None else _since(since, last)
    end = last if end is None else end
    if begin > last:
        raise UsageError(f"since {as_text(begin)}: the last event is of {as_text(last)}; expected: a time before it")
    replayed = [read_alert_record(alert.record()) for alert in played.alerts]
    records = replayed if alerts is None else _published(alerts, replayed)
    records = [record for record in records if _microseconds(record.data.time) <= end]
    own = tuple(note for note in notes if until is None or _microseconds(note.time) <= end)
    source = _Source(Path(recording), described, played, changes, begin, end, records, own)
    return source.report(states or {})


@dataclass(slots=True)
class _Story:
    """An incident as its records show it. Times in microseconds since 1970."""

    store: str
    opened: int
    worst: AlertRecord  # the first record of its highest urgency
    urgency: int = 0
    over: int | None = None
    advice: list[tuple[int, str, str]] = field(default_factory=list)  # time, alert id, action id
    alerts: set[str] = field(default_factory=set)  # ids
    getters: dict[str, DoneAction] = field(default_factory=dict)  # that are back, by time


@dataclass(slots=True)
class _Source:
    """The sources of a report. Times in microseconds since 1970; `begin` and `end` are within the period."""

    recording: Path
    estate: Estate
    played: PlayedRecording
    log: ChangeLog
    begin: int
    end: int
    records: Sequence[AlertRecord]
    notes: Sequence[Note]

    def report(self, states: Mapping[str, StateRecord]) -> Report:
        """Return the report by the state records of the job; a store without any has that of the replay."""
        series = self.played.series
        by_store = {name: fillings(own) for name, own in series.items()}
        pages = {name: from_incidents(self.records, name) for name in series}
        verdicts = self._verdicts(pages, by_store)
        judged = {
            page.incident: (page, verdict)
            for name in series
            for page, verdict in zip(pages[name], verdicts[name], strict=True)
        }
        stories = {
            id_: own
            for id_, own in self._stories().items()
            if own.store in series and (own.over is None or own.over >= self.begin)
        }
        traced = self._traced(stories)
        incidents = tuple(self._incident(id_, own, judged.get(id_), by_store, traced) for id_, own in stories.items())
        callers = [self._counts(TWIN, pages, verdicts, by_store)]
        for line, percent in LINES.items():
            calls = {name: static_pages(own, percent) for name, own in series.items()}
            callers.append(self._counts(line, calls, self._verdicts(calls, by_store), by_store))
        return Report(
            since=as_text(self.begin),
            until=as_text(self.end),
            events=self.played.events,
            dead_letters=self.played.dead_letters,
            stores=tuple(self._store(name, states.get(name)) for name in series),
            incidents=tuple(sorted(incidents, key=lambda incident: (incident.opened, incident.id))),
            fillings=self._fillings(by_store, pages),
            actions=self._actions(
                (
                    change
                    for change in self.log.changes
                    if self._is_inside(change.time) and not any(_has(own, change) for own in stories.values())
                ),
                traced,
            ),
            callers=tuple(callers),
        )

    def _is_inside(self, time: int) -> bool:
        return self.begin <= time <= self.end

    # --- incidents -------------------------------------------------------------------------------------------------

    def _stories(self) -> dict[str, _Story]:
        """Return the incidents of the records by id, in order of their opening."""
        incidents, stories = Incidents(), dict[str, _Story]()
        for record in self.records:
            time = _microseconds(record.data.time)
            for incident, _, changed in incidents.take(record):
                own = stories.get(incident.id)
                if own is None:
                    opened = min(time, _microseconds(incident.opened))
                    own = stories[incident.id] = _Story(incident.store, opened, changed)
                if changed.is_open and urgency_of(changed.data) > own.urgency:
                    own.urgency, own.worst = urgency_of(changed.data), changed
                own.alerts.add(changed.data.alert_id)
                own.over = (own.over or time) if incident.is_over else None
                own.advice += [(time, changed.data.alert_id, action.id) for action in changed.data.runbook]
                own.getters |= {done.time: done for done in changed.data.done if done.id == GETTERS}
        return stories

    def _traced(self, stories: Mapping[str, _Story]) -> dict[str, Traced]:
        """Return the effects of changes, by store."""
        stores = {change.store for change in self.log.changes if change.store in self.played.series}
        traced = {}
        for store in sorted(stores):
            changes = [change for change in self.log.changes if change.store == store and change.time <= self.end]
            windows = [
                Window(id_, own.opened, self.end if own.over is None else own.over, self._compared_until(own))
                for id_, own in stories.items()
                if own.store == store and any(_has(own, change) for change in changes)
            ]
            traced[store] = trace(self.recording, self.estate, store, changes, windows, self.end)
        return traced

    def _compared_until(self, own: _Story) -> int:
        return self.end if own.over is None else min(self.end, own.over + HORIZON)

    def _incident(
        self,
        id_: str,
        own: _Story,
        judged: tuple[Alarm, Verdict] | None,
        by_store: Mapping[str, Sequence[Filling]],
        traced: Mapping[str, Traced],
    ) -> IncidentReport:
        series, data = self.played.series[own.store], own.worst.data
        page = None if judged is None else judged[0]
        changes = [change for change in self.log.changes if _has(own, change) and change.time <= self.end]
        untouched = traced[own.store].untouched.get(id_) if changes else None
        consequence = None if untouched is None else self._consequence(own, untouched)
        averted = consequence is not None and consequence.minutes_avoided > 0
        leads = [] if page is None else [lead_of(filling, [page]) for filling in by_store[own.store]]
        return IncidentReport(
            id=id_,
            store=own.store,
            opened=as_text(own.opened),
            paged=None if page is None else as_text(page.opened),
            over=None if own.over is None else as_text(own.over),
            urgency=URGENCIES[own.urgency],
            condition=data.condition,
            resource=data.resource,
            cause=data.cause,
            verdict=None if judged is None else _verdict(judged[1], averted=averted),
            lead_s=next((lead for lead in leads if lead is not None), None),
            minutes_full=minutes(_between(series.refused, own.opened, self.end if own.over is None else own.over)),
            actions=self._actions(changes, traced, own),
            consequence=consequence,
            notes=tuple(note for note in self.notes if note.alert_id in own.alerts),
        )

    def _consequence(self, own: _Story, untouched: Untouched) -> Consequence:
        until = self._compared_until(own)
        refused = _between(self.played.series[own.store].refused, untouched.since, until)
        refused_untouched = untouched.refused_at
        return Consequence(
            since=as_text(untouched.since),
            until=as_text(until),
            is_settled=own.over is not None and own.over + HORIZON <= self.end,
            minutes=minutes(refused),
            refused=refused.size,
            minutes_untouched=minutes(refused_untouched),
            refused_untouched=refused_untouched.size,
        )

    def _actions(
        self, changes: Iterable[RecordedChange], traced: Mapping[str, Traced], own: _Story | None = None
    ) -> tuple[SeenAction, ...]:
        """Return what was done, in order: changes, and getters that are back. `own`: the incident they belong to."""
        effects = ((change.store, traced[change.store].effects[change.index]) for change in changes)
        done = [(store, effect) for store, effect in effects if effect is not None]
        advice = [] if own is None else own.advice
        done += [] if own is None else [(own.store, back) for back in own.getters.values()]
        return tuple(
            SeenAction(
                **msgspec.structs.asdict(action),
                store=store,
                alert_id=next(
                    (
                        alert
                        for time, alert, id_ in reversed(advice)
                        if id_ == action.id and as_text(time) <= action.time
                    ),
                    "",
                ),
            )
            for store, action in sorted(done, key=lambda pair: pair[1].time)
        )

    # --- pages and fillings ----------------------------------------------------------------------------------------

    def _verdicts(
        self, pages: Mapping[str, Sequence[Alarm]], by_store: Mapping[str, Sequence[Filling]]
    ) -> dict[str, list[Verdict]]:
        return {
            store: page_verdicts(series, by_store[store], pages[store]) for store, series in self.played.series.items()
        }

    def _counts(
        self,
        name: str,
        pages: Mapping[str, Sequence[Alarm]],
        judged: Mapping[str, Sequence[Verdict]],
        by_store: Mapping[str, Sequence[Filling]],
    ) -> CallerCounts:
        """Return the counts of the pages of a method in the period. judged: the verdicts on them."""
        verdicts = [
            verdict
            for store, own in pages.items()
            for page, verdict in zip(own, judged[store], strict=True)
            if self._is_inside(page.opened)
        ]
        leads = [
            lead_of(filling, pages[store])
            for store, own in by_store.items()
            for filling in own
            if self._is_inside(filling.first)
        ]
        return CallerCounts(
            name=name,
            pages=len(verdicts),
            in_time=verdicts.count(Verdict.IN_TIME),
            late=verdicts.count(Verdict.LATE),
            false=verdicts.count(Verdict.FALSE),
            undecided=verdicts.count(Verdict.UNDECIDED),
            fillings=len(leads),
            missed=leads.count(None),
        )

    def _fillings(
        self, by_store: Mapping[str, Sequence[Filling]], pages: Mapping[str, Sequence[Alarm]]
    ) -> tuple[Refusal, ...]:
        own = [
            Refusal(
                store=store,
                resource=filling.resource,
                first=as_text(filling.first),
                last=as_text(filling.last),
                refused=filling.refused,
                is_heard=is_heard(filling, pages[store]),
            )
            for store, those in by_store.items()
            for filling in those
            if self._is_inside(filling.first)
        ]
        return tuple(sorted(own, key=lambda filling: (filling.first, filling.store)))

    # --- stores ----------------------------------------------------------------------------------------------------

    def _store(self, name: str, published: StateRecord | None) -> StoreReport:
        series, twin = self.played.series[name], self.played.twins[name]
        assert isinstance(twin, MessageStore)
        state = twin.state() if published is None else published
        rows = np.flatnonzero((series.times >= self.begin) & (series.times - STEP <= self.end))
        return StoreReport(
            store=name,
            kind=state.kind,
            peaks=_peaks(series, rows),
            course=_course(series, rows),
            growth=growth_of(series),
            rises=self._rises(twin, series),
            minutes_full=minutes(_between(series.refused, self.begin, self.end)),
            coverage=Coverage(
                measurements=self.log.measurements.get(name, 0),
                drift_pct=state.drift_pct,
                gaps=state.gaps,
                duplicates=state.duplicates,
                unmatched_gets=state.unmatched_gets,
                overfull_puts=state.overfull_puts,
                refused_alters=state.refused_alters,
                seen=state.seen,
            ),
            scores=state.forecast_scores,
            forecast=state.forecast,
            long_forecast=state.long_forecast,
        )

    def _rises(self, twin: MessageStore, series: Series) -> tuple[EndedRise, ...]:
        """Return the rises that ended in the period, each with the puts refused until the next one began.

        The kernels count until they see the rise turn, but long messages are refused while the store empties, too.
        """
        next_began = next_begins(twin.tables.store, twin.qmgrs)
        rises: list[EndedRise] = []
        for rise in reversed(kept_rises(twin.tables.store, twin.qmgrs)):
            if self._is_inside(rise.ended):
                until = min(next_began[rise.data_set] - 1, self.end)
                rises.append(
                    EndedRise(
                        began=as_text(rise.began),
                        ended=as_text(rise.ended),
                        data_set=rise.data_set,
                        usage_pct=round(100 * rise.usage, 1),
                        refused=_between(series.refused, rise.began, until).size,
                    )
                )
            next_began[rise.data_set] = rise.began
        return tuple(reversed(rises))


def _published(alerts: Iterable[AlertRecord], replayed: Sequence[AlertRecord]) -> list[AlertRecord]:
    """Return the records that a job has published, by time: of a compacted topic the earlier ones are of the replay."""
    published = {record.id: record for record in alerts}
    alert_ids = {record.data.alert_id for record in published.values()}
    again = [record for record in replayed if record.data.alert_id in alert_ids]
    others = [record for id_, record in published.items() if id_ not in {record.id for record in again}]
    return sorted([*again, *others], key=lambda record: _microseconds(record.data.time))


def _verdict(verdict: Verdict, *, averted: bool) -> PageVerdict:
    return "averted" if averted and verdict is Verdict.FALSE else _VERDICTS[verdict]


def _has(own: _Story, change: RecordedChange) -> bool:
    return own.store == change.store and own.opened <= change.time and (own.over is None or change.time <= own.over)


def _between(times: Array, first: int, last: int) -> Array:
    """Return the times from `first` to `last`. times: i8[n], ascending."""
    return times[np.searchsorted(times, first) : np.searchsorted(times, last, side="right")]


def _peaks(series: Series, rows: Array) -> tuple[Peak, ...]:
    """Return the highest usage of each resource among some samples, the fullest first."""
    if not rows.size:
        return ()
    highest = rows[np.argmax(series.usage[rows], axis=0)]
    peaks = [
        Peak(
            resource=resource,
            usage_pct=round(float(series.usage[row, column]), 2),
            time=as_text(int(series.times[row])),
            last_pct=round(float(series.usage[rows[-1], column]), 2),
        )
        for column, (resource, row) in enumerate(zip(series.resources, highest.tolist(), strict=True))
    ]
    return tuple(sorted(peaks, key=lambda peak: (-peak.usage_pct, peak.resource)))


def _course(series: Series, rows: Array) -> Course:
    """Return the fullest resource over some samples, in parts of equal length."""
    usage, times, pcts = series.usage[rows].max(axis=1, initial=0.0), [], []
    for part in np.array_split(np.arange(rows.size), min(_POINTS, rows.size)) if rows.size else []:
        highest = int(part[np.argmax(usage[part])])
        times.append(float(series.times[rows[highest]]) / SECOND)
        pcts.append(round(float(usage[highest]), 2))
    return Course(times=tuple(times), usage_pct=tuple(pcts))


def growth_of(series: Series) -> Growth | None:
    """Return the growth of a store by its daily peaks, the resource that is full first; None: too few whole days.

    Days are counted back from the last sample. A growth is believed from 2.5 standard errors on.
    """
    since_last = series.times[-1] - series.times
    days = min(_MAX_DAYS, int(series.days))
    if days < _MIN_DAYS:
        return None
    grown = []
    for column, resource in enumerate(series.resources):
        usage = series.usage[:, column]
        peaks = np.array([usage[since_last // _DAY == back].max() for back in range(days - 1, -1, -1)])
        per_day = _slope(peaks)
        left = None if per_day is None or per_day <= 0 else max(0.0, (_FULL_PCT - float(peaks[-1])) / per_day)
        grown.append((left, float(peaks[-1]), resource, per_day))
    left, _, resource, per_day = min(grown, key=lambda own: (np.inf if own[0] is None else own[0], -own[1], own[2]))
    return Growth(
        resource=resource,
        days=days,
        pct_per_day=None if per_day is None else round(per_day, 3),
        days_left=None if left is None else round(left, 1),
    )


def _slope(peaks: Array) -> float | None:
    """Return the slope of the least-squares line through daily peaks; None where it does not stand out of them."""
    days = np.arange(peaks.size) - (peaks.size - 1) / 2
    square = float(days @ days)
    slope = float(days @ peaks) / square
    errors = peaks - peaks.mean() - slope * days
    error = float(np.sqrt(errors @ errors / (peaks.size - 2) / square))
    return slope if abs(slope) > _MIN_ERRORS * error else None


# --- times -----------------------------------------------------------------------------------------------------------


def _since(text: EventTime, last: int) -> int:
    if isinstance(text, str) and text in _DAYS_BACK:
        return (last // _DAY - _DAYS_BACK[text]) * _DAY
    return _time("since", text)


def _time(name: str, value: EventTime) -> int:
    """Return a time in microseconds since 1970. UsageError: it is not a time."""
    is_date = isinstance(value, str) and len(value) == len("2026-11-20")
    try:
        moment = event_us(value) if isinstance(value, datetime) else f"{value}T00:00:00Z" if is_date else value
        return int(FIELD["time"].checked(moment))
    except EventError as error:
        known = ", a date, today or yesterday" if name == "since" else ", or a date"
        raise UsageError(f"{name}: {error.detail}{known}") from None
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _microseconds(text: str) -> int:
    return int(FIELD["time"].checked(text))
