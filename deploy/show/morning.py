"""The answer of ``mqtwin start``, and the morning report.

- The answer: what fills next, when, why, and what to do first.
- The morning report: what came close, who was called and rightly, what people changed, what that was worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import UNSET

from deploy.show.document import (
    PAGE,
    TERMINAL,
    ZONE,
    Bar,
    BarStyle,
    Curve,
    Curves,
    Document,
    Heading,
    Items,
    Part,
    Table,
    Text,
    site_period,
    site_time,
)
from deploy.show.summaries import full_in
from kernels.clock import SECOND
from twin.alerts.episodes import Alert
from twin.base.conditions import CLEARED, WATCH
from twin.base.conditions import PAGE as CALLS
from twin.base.units import as_count, as_microseconds, as_seconds, as_span, as_text, in_zone
from twin.feeds.estate_import import CFRM
from twin.feeds.protocol import DEFINITIONS, FLOWS, LEVELS, POLICY, formats_for
from twin.feeds.site import MQSC, RECORDING, SiteFile, UnknownFileError
from twin.playback.pages import TWIN
from twin.records import (
    LIKELY,
    NOT_MEASURED,
    ROOT,
    Action,
    ResourceForecast,
    ResourceUsage,
    StateRecord,
    fullest_of,
    resources_of,
    rise_text,
)
from twin.reporting.records import EndedRise, Growth, IncidentReport, Report, SeenAction, StoreReport

# --- the answer of mqtwin start ---------------------------------------------------------------------------------------

HEADINGS = ("store", "usage", "full at", "cause", "first action")
_MAX_ANSWERED = 20  # that are listed
_RANKS = {CALLS: 0, WATCH: 1, "": 2}


class StoreAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A store of the answer."""

    store: str
    kind: str
    resource: str | None  # that is full first, else the fullest; None: none was measured
    usage_pct: float | None  # of its present size; None as `resource`
    usage: str  # the same in words, with what it can grow to
    level: str  # page or watch of its open alerts, the worse one; "": none is open
    full_at: str | None  # by the median forecast, RFC 3339, UTC; None: nothing is foreseen, or it is full now
    is_full: bool  # puts are refused now
    full_probability: float | None  # within the horizon; None without a forecast
    forecast: str  # in words, at the site's time
    cause: str  # without an open alert the deepest queue of a store that rises; "": nothing is open
    action: str | None  # to take first
    statement: str | None  # the first command of it


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer that `mqtwin start --json` prints."""

    time: str | None  # of the last event, RFC 3339, UTC; None: no file shows what stores hold
    zone: str  # of the site; "": none was given, times in words are UTC
    stores: tuple[StoreAnswer, ...]  # that matter, what is full first first
    others: int  # number of other stores
    estate: str
    recording: str | None
    not_read: tuple[str, ...]  # files, and what they seem to be
    clocks: tuple[str, ...]  # that do not fit each other, and the option that corrects it
    missing: tuple[str, ...]  # what the data do not show
    next: tuple[str, ...]  # what to bring next


def store_answers(states: Iterable[StateRecord], alerts: Iterable[Alert]) -> tuple[list[StoreAnswer], int]:
    """Return the stores that matter, what is full first first, and the number of others."""
    open_alerts = _open_alerts(alerts)
    answers = [_answer(state, open_alerts.get(state.store, [])) for state in states if resources_of(state)]
    ranked = sorted(answers, key=_rank)
    close = [own for own in ranked if own.level or own.full_at or own.is_full or (own.usage_pct or 0) >= _CLOSE_PCT]
    listed = (close or ranked[:1])[:_MAX_ANSWERED]
    return listed, len(ranked) - len(listed)


def answer_document(answer: Answer) -> Document:
    """Return the answer as a document."""
    parts: list[Part] = []
    if answer.stores and answer.time is not None:
        rows = [_row(own) for own in answer.stores]
        parts += [Text(f"At {site_time(answer.time)}:"), Table(HEADINGS, rows)]
        if not any(own.level or own.forecast for own in answer.stores):
            parts.append(
                Text(f"No store rises; the fullest is at {max(own.usage_pct or 0 for own in answer.stores):.1f} %.")
            )
        if answer.others:
            parts.append(Text(f"{answer.others:,} more below {_CLOSE_PCT:.0f} %, without an alert."))
    parts += [Text(f"Next: {line}") for line in answer.next]
    return Document("Answer", parts, answer)


def _open_alerts(alerts: Iterable[Alert]) -> Mapping[str, list[Alert]]:
    last = {alert.alert_id: alert for alert in alerts}
    by_store: dict[str, list[Alert]] = {}
    for alert in last.values():
        if alert.change != CLEARED:
            by_store.setdefault(alert.store, []).append(alert)
    for own in by_store.values():
        own.sort(key=lambda alert: (_RANKS[alert.level], alert.incident.role != ROOT, -alert.time))
    return by_store


def _answer(state: StateRecord, alerts: Sequence[Alert]) -> StoreAnswer:
    resources = resources_of(state)
    first, nearest = state.first, _nearest(resources, state.rising)
    alert = alerts[0] if alerts else None
    action: Action | None = alert.runbook[0] if alert is not None and alert.runbook else None
    is_full = first is not None and first.is_full_now
    made_us = None if state.forecast is None else as_microseconds(state.forecast.time)
    return StoreAnswer(
        store=state.store,
        kind=state.kind,
        resource=None if nearest is None else nearest.name,
        usage_pct=None if nearest is None else nearest.pct,
        usage=NOT_MEASURED if nearest is None or nearest.pct is None else f"{nearest.pct:.1f} % {nearest.share_text}",
        level=alert.level if alert is not None else "",
        full_at=None if is_full else full_at(first, made_us),
        is_full=is_full,
        full_probability=None if first is None else first.full_probability,
        forecast=forecast_at(first, made_us, state.lacks_levels_in(ZONE.get())),
        cause=_deepest(state) if alert is None and first is not None else "" if alert is None else _cause(alert),
        action=None if action is None else action.heading,
        statement=None if action is None else next((step.statement for step in action.steps if step.statement), None),
    )


def _nearest(resources: list[ResourceUsage], rising: ResourceForecast | None) -> ResourceUsage | None:
    """Return the resource whose usage is shown: that of the forecast, else the fullest."""
    rises = [own for own in resources if rising is not None and own.name == rising.resource]
    return rises[0] if rises else fullest_of(resources)


def full_at(first: ResourceForecast | None, made_us: int | None) -> str | None:
    """Return when a resource is full by the median, RFC 3339; None: nothing rises. made_us: time of the forecast."""
    if first is None or first.time_to_full_s is None or made_us is None:
        return None
    return as_text(made_us + round(first.time_to_full_s.p50 * SECOND))


def forecast_at(first: ResourceForecast | None, made_us: int | None, lacking: str = "") -> str:
    """Return when it is full in words: `03:28 CET, in 28 min (22 to 36 min, probability 85 %)`."""
    if first is None or first.time_to_full_s is None:
        return lacking
    if first.is_full_now:
        return "full now"
    if rises := rise_text(first):
        return rises
    time = full_at(first, made_us)
    clock = "" if time is None or made_us is None else f"{site_time(time, made_us)}, "
    return f"{clock}in {full_in(first.time_to_full_s, first.full_probability)}"


def _cause(alert: Alert) -> str:
    """Return why, in a sentence: the second line of a page says it, else the cause itself."""
    return alert.brief[1] if len(alert.brief) > 1 else alert.cause.partition(". ")[0].rstrip(".")


def _deepest(state: StateRecord) -> str:
    if not state.queues or not state.queues[0].depth:
        return ""
    return f"{state.queues[0].name} is its deepest queue: {state.queues[0].depth:,} messages"


def _rank(own: StoreAnswer) -> tuple[bool, bool, str, int, float, str]:
    is_likely = own.full_at is not None and (own.full_probability or 0) >= LIKELY
    return not own.is_full, not is_likely, own.full_at or "9", _RANKS[own.level], -(own.usage_pct or 0), own.store


def _row(own: StoreAnswer) -> tuple[str, ...]:
    action = "" if own.action is None else f"{own.action}: {own.statement}" if own.statement else own.action
    return own.store, own.usage, own.forecast, own.cause, action


# --- what to bring next ----------------------------------------------------------------------------------------------


def what_next(files: Iterable[SiteFile], not_read: Iterable[UnknownFileError]) -> list[str]:
    """Return a line for each kind of data that files lack, the most useful first."""
    formats = {own.format_name for own in files}
    instead = list(dict.fromkeys(error.instead for error in not_read if error.instead))
    if not formats:
        return instead
    known = {what for what in _WORDS if formats & {*formats_for(what), *_TEXTS.get(what, ()), RECORDING}}
    return instead + [text for what, text in _WORDS.items() if what not in known]


_TEXTS = {DEFINITIONS: (MQSC,), POLICY: (CFRM,)}  # which are of no feed
_WORDS = {
    LEVELS: "a job log or SYSLOG with DISPLAY CFSTATUS, USAGE and QSTATUS every few minutes: how full stores are",
    FLOWS: "SMF 115 with queue statistics (STATQ(ON), class 5), or statistics of amqsevt: which queues fill them",
    DEFINITIONS: "definitions by CSQUTIL MAKEDEF or dmpmqcfg: which queues are where, how stores expand",
    POLICY: "the CFRM policy as IXCMIAPU prints it (DATA TYPE(CFRM) REPORT(YES)): how far structures grow",
}


# --- the morning report -----------------------------------------------------------------------------------------------

_STORES = (
    "store",
    "highest",
    "resource",
    "at",
    "now",
    "min of 2192",
    "full at",
    "room at this growth",
    "within interval",
)
_CALLERS = ("who calls", "pages", "in time", "late", "false", "undecided", "fillings missed")
_NAMES = {TWIN: "mqtwin", "static 80 %": "fixed line at 80 %", "static 85 %": "fixed line at 85 %"}
_CLOSE_PCT = 50.0  # from which a store came close
_MIN_STORES, _MAX_STORES = 5, 20  # that are listed
_MAX_NAMED = 8  # stores, in a sentence
_MAX_RISES = 4  # of a store that are told one by one
_MAX_PICTURES = 6
_MANY_DAYS = 365
_CAPTION = (
    "The fullest resource, percent of its maximum. Bars below, pale: an incident is open; dark: it has called; red:"
    " puts are refused. Triangles: what people changed."
)


def morning_document(report: Report) -> Document:
    """Return the report as a document."""
    title, stores, others = _title(report), *_close_stores(report)
    rows = [_store_cells(store, report) for store in stores]
    return Document(
        title,
        [
            Text(title, only=TERMINAL),
            Text(_summary(report)),
            Text(_next_to_fill(report)),
            Heading("Incidents"),
            *(part for incident in _shown_incidents(report) for part in _incident(incident, report)),
            *map(Text, _other_lines(report)),
            Heading("What came close"),
            Table(_STORES, rows, {"highest", "now", "min of 2192", "within interval"}, {"within interval"}),
            *([Text(others)] if others else []),
            *_list("Until Monday", list(_long_lines(report))),
            *_pictures(stores, report),
            *_list("Rises", list(_rise_lines(report))),
            Heading("Who would have called"),
            Table(_CALLERS, _caller_rows(report), set(_CALLERS[1:])),
            *_list("Drift and coverage", list(_coverage_lines(report))),
        ],
        report,
    )


def _list(heading: str, lines: Sequence[str]) -> list[Part]:
    return [Heading(heading), Items(lines, indent=0)] if lines else []


def _title(report: Report) -> str:
    return f"Report of {site_period(report.since, report.until)}"


def _summary(report: Report) -> str:
    verdicts = [incident.verdict for incident in report.pages]
    known = ("in time", "late", "averted", "false", "undecided")
    counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in known if verdict in verdicts]
    pages = as_count(len(verdicts), "page") + (f" ({', '.join(counts)})" if counts else "")
    watches = sum(incident.paged is None for incident in report.incidents)
    unheard = sum(not filling.is_heard for filling in report.fillings)
    texts = [
        pages + (f", {as_count(watches, 'incident')} without one" if watches else ""),
        f"{report.minutes_full:,} min of 2192",
        *([f"{unheard:,} of {len(report.fillings):,} fillings unheard"] if unheard else []),
        *([f"{report.minutes_avoided:,} min of 2192 avoided by what people did"] if report.minutes_avoided else []),
    ]
    return f"{', '.join(texts)}; {as_count(len(report.stores), 'store')}, {as_count(report.events, 'event')}."


def _clock(time: str, report: Report) -> str:
    """Return a time of day, with its date where the period has several days, or is of another one."""
    own, since, until = (in_zone(text, ZONE.get()) for text in (time, report.since, report.until))
    return f"{own:%H:%M}" if since.date() == until.date() == own.date() else f"{own:%m-%d %H:%M}"


# --- incidents -------------------------------------------------------------------------------------------------------


def _shown_incidents(report: Report) -> list[IncidentReport]:
    """Return the incidents that are shown one by one: those with a page, with an action, or with a note."""
    return [own for own in report.incidents if own.paged is not None or own.actions or own.notes]


def _incident(incident: IncidentReport, report: Report) -> list[Part]:
    """Return an incident: what it was and whether its page was right, its cause, actions, what they were worth."""
    over = "still open" if incident.over is None else f"over {_clock(incident.over, report)}"
    began = _clock(incident.paged or incident.opened, report)
    heading = f"{began}  {incident.store} {incident.resource} {incident.condition} ({incident.urgency})"
    texts = [*_page_texts(incident), over]
    if incident.minutes_full:
        texts.append(f"{incident.minutes_full:,} min of 2192")
    lines = [f"{note.sentence} at {_clock(note.time, report)}" for note in incident.notes]
    lines += [_action_text(action, report) for action in incident.actions]
    consequence = incident.consequence
    if consequence is not None:
        since, until = _clock(consequence.since, report), _clock(consequence.until, report)
        untouched = (
            f"untouched, {consequence.refused_untouched:,} puts refused in {consequence.minutes_untouched:,} min"
        )
        settled = "" if consequence.is_settled else "so far, "
        lines.append(
            f"{settled}{consequence.minutes_avoided:,} min of 2192 avoided: from {since} to {until} {untouched};"
            f" as it was, {consequence.refused:,} in {consequence.minutes:,} min"
        )
    parts: list[Part] = [
        Text("", lead=f"{heading}: {', '.join(texts)}"),
        Text(incident.cause, is_note=True, only=PAGE),
    ]
    return [*parts, Items(lines)] if lines else parts


def _page_texts(incident: IncidentReport) -> list[str]:
    if incident.verdict is None:
        return ["no page"]
    lead = "" if incident.lead_s is None else f", {as_span(incident.lead_s)} before the first 2192"
    words = "acted on, 2192 averted" if incident.verdict == "averted" else incident.verdict
    return [f"page {words}{lead if incident.verdict == 'in time' else ''}"]


def _action_text(action: SeenAction, report: Report) -> str:
    """Return an action: `SIZE raised from 1G to 2G at 02:14: full in 3.0 h instead of in 11 min, as proposed`."""
    text = action.describe(_clock(action.time, report))
    return f"{text}, as proposed ({action.id})" if action.alert_id else text


def _other_lines(report: Report) -> Iterator[str]:
    """Yield a line about incidents without a page, fillings unheard, and actions outside incidents."""
    separate = _shown_incidents(report)
    if not separate:
        yield "Nobody was called."
    watches = [incident for incident in report.incidents if incident not in separate]
    if watches:
        stores = _named(list(dict.fromkeys(incident.store for incident in watches)))
        yield f"{as_count(len(watches), 'incident')} for information only: {stores}."
    for filling in report.fillings:
        if not filling.is_heard:
            first, last = _clock(filling.first, report), _clock(filling.last, report)
            yield f"Unheard: {filling.store} {filling.resource}, {filling.refused:,} puts refused, {first} to {last}."
    for action in report.actions:
        yield f"{action.store}: {_action_text(action, report)}, in no incident."


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


# --- stores ----------------------------------------------------------------------------------------------------------


def _close_stores(report: Report) -> tuple[list[StoreReport], str]:
    """Return the stores that came close, the fullest first, and a sentence about the others."""
    ranked = sorted(report.stores, key=lambda store: (-_highest_pct(store), store.store))
    close = [store for store in ranked if _is_close(store)]
    listed = ranked[: min(_MAX_STORES, max(_MIN_STORES, len(close)))]
    rest = ranked[len(listed) :]
    if not rest:
        return listed, ""
    return listed, f"{as_count(len(rest), 'other store')} stayed at or below {_highest_pct(rest[0]):.1f} %."


def _is_close(store: StoreReport) -> bool:
    return _highest_pct(store) >= _CLOSE_PCT or store.minutes_full > 0


def _highest_pct(store: StoreReport) -> float:
    """Return the highest usage of any resource, percent; 0 without a sample in the period."""
    return store.peaks[0].usage_pct if store.peaks else 0.0


def _store_cells(store: StoreReport, report: Report) -> tuple[str, ...]:
    peak = store.peaks[0] if store.peaks else None
    intervals = None if store.scores is None else store.scores.intervals
    within = "-" if intervals is None or not intervals.count else f"{intervals.inside:,} of {intervals.count:,}"
    usage = ("-",) * 4
    if peak is not None:
        usage = (f"{peak.usage_pct:.1f} %", peak.resource, _clock(peak.time, report), f"{peak.last_pct:.1f} %")
    return (store.store, *usage, f"{store.minutes_full:,}", _forecast(store), room_text(store.growth), within)


def _forecast(store: StoreReport) -> str:
    """Return when a store is full by the forecast at the end of the period; "-": nothing rises."""
    if store.forecast is None:
        return "-"
    return forecast_at(store.forecast.resources[0], as_microseconds(store.forecast.time)) or "-"


def _long_lines(report: Report) -> Iterator[str]:
    """Yield the long forecast of each store that may be full within two weeks or leaks, and the number of others."""
    known = [(store.store, store.long_forecast) for store in report.stores if store.long_forecast is not UNSET]
    telling = [(name, own) for name, own in known if own.is_telling]
    for name, own in sorted(telling, key=lambda pair: (pair[1].lasts_probability, pair[0])):
        yield f"{name} {own.sentence_in(ZONE.get())}"
    if rest := len(known) - len(telling):
        until = in_zone(known[0][1].until, ZONE.get())
        others = as_count(rest, "other store" if telling else "store")
        yield f"{others} likely to last until {until:%a %H:%M}"


def _next_to_fill(report: Report) -> str:
    """Return what is full first, and when; "": nothing is likely to be."""
    soonest = [
        (first.time_to_full_s.p50, store.store, _forecast(store))
        for store in report.stores
        if store.forecast is not None
        and (first := store.forecast.resources[0]).time_to_full_s is not None
        and first.full_probability >= LIKELY
    ]
    if not soonest:
        return "At its end nothing was likely to fill."
    _, name, text = min(soonest)
    return f"Full next: {name}, {text}."


def room_text(growth: Growth | None) -> str:
    """Return the room of a store in days."""
    if growth is None:
        return "too few days"
    if growth.days_left is None:
        return "no growth" if growth.pct_per_day is None else "it shrinks"
    if growth.days_left > _MANY_DAYS:
        return "more than a year"
    return f"{growth.days_left:.0f} days of {growth.resource}"


def _pictures(stores: Sequence[StoreReport], report: Report) -> Iterator[Part]:
    """Yield a picture of the usage of each store that came close: its incidents, refused puts and actions."""
    drawn = [store for store in stores if _is_close(store) and len(store.course.times) > 1][:_MAX_PICTURES]
    for store in drawn:
        course, highest = store.course, max(store.course.usage_pct)
        own = [incident for incident in report.incidents if incident.store == store.store]
        bars = [_bar(incident.opened, incident.over or report.until, "pale") for incident in own]
        bars += [_bar(incident.paged, incident.over or report.until, "dark") for incident in own if incident.paged]
        bars += [
            _bar(filling.first, filling.last, "bad") for filling in report.fillings if filling.store == store.store
        ]
        actions = [action for incident in own for action in incident.actions]
        actions += [action for action in report.actions if action.store == store.store]
        yield Curves(
            curves=[Curve(store.store, course.times, course.usage_pct)],
            label=f"{store.store}: up to {highest:.0f} %",
            caption=store.store,
            top=max(105.0, highest),
            begin=as_seconds(report.since),
            end=as_seconds(report.until),
            bars=bars,
            marks=[as_seconds(action.time) for action in actions],
        )
    if drawn:
        yield Text(_CAPTION, is_note=True, only=PAGE)


def _bar(first: str, last: str, style: BarStyle) -> Bar:
    return Bar(as_seconds(first), as_seconds(last), style)


def _rise_lines(report: Report) -> Iterator[str]:
    for store in report.stores:
        ranked = sorted(store.rises, key=lambda rise: (-rise.refused, -rise.usage_pct, rise.ended))
        texts = [_rise_text(rise, report) for rise in store.rises if rise in ranked[:_MAX_RISES]]
        rest = ranked[_MAX_RISES:]
        if rest:
            texts.append(f"{len(rest):,} more up to {max(rise.usage_pct for rise in rest):.0f} %")
        if texts:
            yield f"{store.store}: {'; '.join(texts)}"


def _rise_text(rise: EndedRise, report: Report) -> str:
    what = f"data set of {rise.data_set}, " if rise.data_set else ""
    end = f"ended in 2192, {rise.refused:,} puts refused" if rise.refused else "turned back"
    return f"{what}{_clock(rise.began, report)} to {_clock(rise.ended, report)} up to {rise.usage_pct:.0f} %, {end}"


# --- callers and coverage --------------------------------------------------------------------------------------------


def _caller_rows(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for own in report.callers:
        averted = sum(incident.verdict == "averted" for incident in report.pages) if own.name == TWIN else 0
        false = f"{own.false:,}" + (f", of which {averted:,} averted" if averted else "")
        counts = (f"{own.pages:,}", f"{own.in_time:,}", f"{own.late:,}", false, f"{own.undecided:,}")
        rows.append((_NAMES[own.name], *counts, f"{own.missed:,} of {own.fillings:,}"))
    return rows


def _coverage_lines(report: Report) -> Iterator[str]:
    unmeasured = [store.store for store in report.stores if not store.coverage.measurements]
    if unmeasured:
        yield f"No measurement confirms {_named(unmeasured)}."
    for store in report.stores:
        texts = _coverage_texts(store)
        if texts:
            yield f"{store.store}: {', '.join(texts)}."
    if report.dead_letters:
        yield f"{as_count(report.dead_letters, 'dead letter')}: events that are in no store."


def _coverage_texts(store: StoreReport) -> list[str]:
    own, texts = store.coverage, []
    if own.measurements:
        drift = "nothing to compare" if own.drift_pct is None else f"twin {own.drift_pct:+.1f} % of the total"
        texts.append(f"{as_count(own.measurements, 'measurement')}, {drift}")
    named = {
        "numbers of `seq` missing": own.gaps,
        "events twice": own.duplicates,
        "gets without a message": own.unmatched_gets,
        "puts accepted that did not fit": own.overfull_puts,
        "changes refused": own.refused_alters,
    }
    return [*texts, *own.seen, *(f"{count:,} {what}" for what, count in named.items() if count)]
