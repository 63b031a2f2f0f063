"""The answer of `mqtwin start`: what fills next, when, why, and what to do first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from deploy.show.document import ZONE, Document, Part, Table, Text, site_time
from deploy.show.summaries import full_in
from kernels.clock import SECOND
from twin.alerts.episodes import Alert
from twin.conditions import CLEARED, PAGE, WATCH
from twin.feeds.estate_import import CFRM
from twin.feeds.protocol import DEFINITIONS, FLOWS, LEVELS, POLICY, formats_for
from twin.feeds.site import MQSC, RECORDING, SiteFile, UnknownFileError
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
from twin.units import as_microseconds, as_text

HEADINGS = ("store", "usage", "full at", "cause", "first action")
_CLOSE_PCT = 50.0  # from which a store matters
_MAX_STORES = 20  # that are listed
_RANKS = {PAGE: 0, WATCH: 1, "": 2}


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
    listed = (close or ranked[:1])[:_MAX_STORES]
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
