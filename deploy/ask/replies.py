"""The answers of the tools. Times are RFC 3339, UTC; every number has its unit in its name.

They are made of records that exist: of the console's page, of what-if and advice, of the report. `full_in_p50_s` and
its neighbours are the seconds until full if it becomes full, in the order p10, median, p90; null: that is not likely.
"""

from __future__ import annotations

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer. more: what was left out, and how to ask for it; "": nothing."""

    more: str = ""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A future: what is full first, when, and with which probability; messages that fit until puts fail."""

    resource: str
    full_probability_pct: float
    full_in_p10_s: float | None
    full_in_p50_s: float | None
    full_in_p90_s: float | None
    messages_that_fit_count: int | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A moment at which people were called."""

    time: str
    store: str
    severity: str
    change: str
    cause: str


class OverviewAnswer(Answer, frozen=True, kw_only=True):
    """The source, its time, and counts. problems: reasons for which it may be old, or wrong."""

    source: str
    as_of: str | None
    written_ago_s: float | None
    first_moment: str | None
    last_moment: str | None
    stores_count: int
    open_incidents_count: int
    open_pages_count: int
    events_count: int
    dead_letters_count: int
    problems: list[str]
    latest_calls: list[Call]


class StoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the list. why: the cause of its most urgent open incident; "": none is open."""

    store: str
    kind: str
    severity: str
    fullest_resource: str
    usage_pct: float | None
    usage_of_maximum_pct: float | None
    full_now: list[str]
    full_in_p50_s: float | None
    full_probability_pct: float | None
    rises: str
    why: str


class StoresAnswer(Answer, frozen=True, kw_only=True):
    """Stores, the most urgent first."""

    as_of: str | None
    stores: list[StoreLine]


class ResourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """A resource of a store. usage_pct is of its present size, usage_of_maximum_pct of what it can grow to."""

    resource: str
    label: str
    usage: str
    amount: str
    usage_pct: float | None
    usage_of_maximum_pct: float | None


class StoreAnswer(Answer, frozen=True, kw_only=True):
    """A store at a moment."""

    store: str
    kind: str
    as_of: str | None
    severity: str
    full_now: list[str]
    rises: str
    not_known: str
    seen: str
    messages_count: int | None
    uncommitted_count: int | None
    in_doubt_count: int | None
    refused_puts_count: int | None
    puts_wanted_per_s: float | None
    fidelity_pct: float | None
    resources: list[ResourceLine]
    forecasts: list[Outcome]
    planned_work: list[str]
    open_incident_ids: list[str]


class IncidentLine(msgspec.Struct, frozen=True, kw_only=True):
    """An incident by its root alert. calls_people: it is a page, not a watch."""

    incident_id: str
    alert_id: str
    store: str
    severity: str
    calls_people: bool
    is_open: bool
    opened: str
    condition: str
    resource: str
    cause: str
    evidence: list[str]
    first_action: str
    notes: list[str]
    other_alert_ids: list[str]


class IncidentsAnswer(Answer, frozen=True, kw_only=True):
    """Incidents, the most urgent first."""

    as_of: str | None
    incidents: list[IncidentLine]


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """A step of an action. statement: what a person may type after a look at it; null: nothing is typed."""

    text: str
    statement: str | None


class ActionLine(msgspec.Struct, frozen=True, kw_only=True):
    """An action of the runbook."""

    action_id: str
    summary: str
    effect: str | None
    precondition: str | None
    steps: list[StepLine]
    risk: str | None
    undo: str | None


class FillerLine(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that fills a resource, with its share of the growth."""

    queue: str
    growth_share_pct: float


class AlertAnswer(Answer, frozen=True, kw_only=True):
    """An alert with its evidence and the steps of its runbook, the best action first."""

    alert_id: str
    store: str
    severity: str
    condition: str
    resource: str
    is_open: bool
    opened: str
    as_of: str
    usage_pct: float | None
    full_probability_pct: float | None
    full_in_p10_s: float | None
    full_in_p50_s: float | None
    full_in_p90_s: float | None
    cause: str
    evidence: list[str]
    fillers: list[FillerLine]
    actions: list[ActionLine]
    notes: list[str]


class ReaderLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a queue open. Null: it is not known. unread_since: from when no handle was open for input."""

    queue: str
    depth_messages: int | None
    getters_count: int | None
    putters_count: int | None
    uncommitted_count: int | None
    oldest_message_s: int | None
    last_get: str | None
    last_put: str | None
    unread_since: str | None
    measured_at: str | None
    asked_queue_managers: list[str]


class ReadersAnswer(Answer, frozen=True, kw_only=True):
    """The deepest queues of a store and who reads them."""

    store: str
    as_of: str | None
    queues: list[ReaderLine]


class WhatIfReply(Answer, frozen=True, kw_only=True):
    """A store as it is, and as it would be."""

    as_of: str
    before: Outcome
    after: Outcome
    horizon_s: float
    note: str


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """A change that keeps the promise, and the outcome with it."""

    title: str
    steps: list[str]
    after: Outcome


class AdviceReply(Answer, frozen=True, kw_only=True):
    """The least changes with which a store is not full in the next hours; none where nothing has to change."""

    as_of: str
    nothing_has_to_change: bool
    note: str
    plans: list[PlanLine]
    left_out: list[str]


class HindsightReply(Answer, frozen=True, kw_only=True):
    """The outcome if settings had been in effect from a moment on."""

    since: str
    puts_count: int
    refused_as_it_was_count: int
    refused_with_settings_count: int
    first_full: str | None
    peak_pct: float
    note: str


class ReportedIncident(msgspec.Struct, frozen=True, kw_only=True):
    """An incident of the period. lead_s: from the page to the first 2192; null: no page before one."""

    store: str
    opened: str
    paged: str | None
    over: str | None
    urgency: str
    condition: str
    verdict: str | None
    lead_s: float | None
    full_minutes: int
    avoided_minutes: int
    cause: str
    actions: list[str]


class ReportedStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store in the period: its highest usage, and how long it would take to fill at its growth."""

    store: str
    highest_pct: float
    highest_resource: str
    highest_time: str
    full_minutes: int
    room_at_this_growth_days: float | None


class ReportAnswer(Answer, frozen=True, kw_only=True):
    """The report of a period: who was called and rightly, minutes of 2192, what came close."""

    since: str
    until: str
    events_count: int
    pages_count: int
    pages_in_time_count: int
    pages_late_count: int
    pages_false_count: int
    pages_averted_count: int
    fillings_count: int
    fillings_unheard_count: int
    full_minutes: int
    avoided_minutes: int
    incidents: list[ReportedIncident]
    stores: list[ReportedStore]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a plan: its cells, by the headings of the columns, with their units."""

    cells: list[str]


class SizeAnswer(Answer, frozen=True, kw_only=True):
    """A plan of storage, as `mqtwin size` prints it."""

    store: str
    columns: list[str]
    lines: list[Line]
    warnings: list[str]
    commands: str


class PassageLine(msgspec.Struct, frozen=True, kw_only=True):
    """A section of the documentation."""

    page: str
    heading: str
    excerpt: str


class DocumentationAnswer(Answer, frozen=True, kw_only=True):
    """Sections of the documentation, the best first."""

    sections: list[PassageLine]
