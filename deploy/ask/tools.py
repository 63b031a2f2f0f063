"""The tools: questions with their types, and their answers, made of the records of console, report and sizing.

Nothing is computed a second time: a store, an incident and a note are read from the JSON of the page, so what a program
is told is what people see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deploy.ask.data import (
    ActionLine,
    AdviceReply,
    AlertAnswer,
    Answer,
    Call,
    DocumentationAnswer,
    FillerLine,
    HindsightReply,
    IncidentLine,
    IncidentsAnswer,
    Line,
    Outcome,
    OverviewAnswer,
    PassageLine,
    PlanLine,
    ReaderLine,
    ReadersAnswer,
    Reply,
    ReportAnswer,
    ReportedIncident,
    ReportedStore,
    ResourceLine,
    SizeAnswer,
    StepLine,
    StoreAnswer,
    StoreLine,
    StoresAnswer,
    WhatIfReply,
    as_data,
    excerpt,
    search,
)
from deploy.console.answers import PageOutcome, PlanParts, converted
from deploy.console.model import ConsoleModel
from deploy.console.past import Mark, Past, seconds_of
from deploy.show.document import Code, Table
from deploy.show.sizes import size_document
from twin.base.errors import UsageError
from twin.base.units import as_text
from twin.estate import Estate
from twin.estate.errors import known_hint
from twin.estate.settings import Settings
from twin.planning.whatif import DEFAULT_HORIZON_S
from twin.records import Action, DeepQueue, Filler, Note, ResourceForecast, TimeToFull
from twin.reporting.records import IncidentReport, Report, StoreReport
from twin.sizing import parse_mix

MAX_ITEMS = 25  # of a list, before it is cut to what a result holds
_EXCERPT = 420  # characters of a section
_SECTIONS = 6  # sections
_CALLS = 8

Reports = Callable[[str | None, str | None], Report]  # of a period: since, until

# --- questions -------------------------------------------------------------------------------------------------------

_Moment = Annotated[
    str | None,
    Meta(description="Past moment, RFC 3339 with its zone. Default: the present; of a recording its end."),
]
_Store = Annotated[str, Meta(description="Name of the store, such as QSG1/APP1.", min_length=1, max_length=200)]
_Skip = Annotated[int, Meta(description="Items of the list to leave out at its beginning.", ge=0, le=100_000)]
_Factor = Annotated[float, Meta(description="Factor on the traffic of the last minutes; 1: as it is.")]
_Set = Annotated[
    Settings, Meta(description='Attributes as in the estate, such as {"size": "8G", "smds.QM01.size": "1G"}.')
]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question without a part."""


class AtQuestion(Question, frozen=True, kw_only=True):
    """A question about a moment."""

    time: _Moment = None


class ListQuestion(AtQuestion, frozen=True, kw_only=True):
    """A question for a list."""

    skip: _Skip = 0


class StoresQuestion(ListQuestion, frozen=True, kw_only=True):
    """Which stores."""

    only_with_incident: Annotated[bool, Meta(description="Only those with an open incident.")] = False


class StoreQuestion(AtQuestion, frozen=True, kw_only=True):
    """Which store."""

    store: _Store


class IncidentsQuestion(ListQuestion, frozen=True, kw_only=True):
    """Which incidents."""

    store: Annotated[str | None, Meta(description="Only those of this store.")] = None
    closed: Annotated[bool, Meta(description="Closed ones, too.")] = False


class AlertQuestion(AtQuestion, frozen=True, kw_only=True):
    """Which alert."""

    alert_id: Annotated[str, Meta(description="Id of the alert, as in incidents.")]


class ReadersQuestion(StoreQuestion, frozen=True, kw_only=True):
    """Which queues."""

    queue: Annotated[str | None, Meta(description="Only this queue.")] = None


class WhatIfQuestion(StoreQuestion, frozen=True, kw_only=True):
    """The change."""

    set: _Set = {}
    puts_factor: _Factor = 1.0
    gets_factor: _Factor = 1.0
    lengths_factor: _Factor = 1.0
    horizon_s: Annotated[float, Meta(description="Seconds to look ahead, 60 to 86400.")] = DEFAULT_HORIZON_S
    plan: Annotated[
        tuple[PlanParts, ...],
        Meta(description="Planned work that is to fit, in the place of the traffic; several come together."),
    ] = ()


class AdviseQuestion(StoreQuestion, frozen=True, kw_only=True):
    """The promise."""

    within_hours: Annotated[float, Meta(description="Hours in which the store must not be full.")] = 2.0
    confidence: Annotated[float, Meta(description="Share of all futures in which that holds, 0.5 to 0.99.")] = 0.9
    puts_factor: _Factor = 1.0
    gets_factor: _Factor = 1.0
    lengths_factor: _Factor = 1.0


class HindsightQuestion(Question, frozen=True, kw_only=True):
    """From when on, and with which settings."""

    store: _Store
    time: Annotated[str, Meta(description="Past moment from which they are in effect, RFC 3339 with its zone.")]
    set: _Set


class ReportQuestion(Question, frozen=True, kw_only=True):
    """The period."""

    since: Annotated[
        str | None, Meta(description="RFC 3339, a date, today or yesterday. Default: the first event.")
    ] = None
    until: Annotated[str | None, Meta(description="RFC 3339 or a date. Default: the last event.")] = None
    skip: _Skip = 0


class SizeQuestion(Question, frozen=True, kw_only=True):
    """The messages that are to fit."""

    store: _Store
    messages: Annotated[
        tuple[str, ...], Meta(description='LENGTH:COUNT, such as "64K:5000"; one for each length.', min_length=1)
    ]
    data_set: Annotated[bool, Meta(description="Of a structure: its shared message data set instead.")] = False


class DocumentationQuestion(Question, frozen=True, kw_only=True):
    """The words."""

    words: Annotated[str, Meta(description="Words to look for, in English.", min_length=2, max_length=200)]


# --- what is read of the page ----------------------------------------------------------------------------------------


class _PageMeta(msgspec.Struct):
    as_of: str | None
    age_s: float | None
    connected: bool
    caught_up: bool
    missing: tuple[str, ...]
    problem: str
    job_problem: str
    events: int
    dead_letters: int
    unreadable: int


class _PageResource(msgspec.Struct):
    name: str
    label: str
    usage: str
    amount: str
    pct: float | None
    maximum_pct: float | None


class _Demand(msgspec.Struct):
    puts_per_s: float


class _PageFields(msgspec.Struct):
    messages: int | None
    uncommitted: int | None
    in_doubt: int | None
    full_puts: int | None
    queues: tuple[DeepQueue, ...]
    fidelity: float | None = None
    demand: _Demand | None = None


class _PagePlan(msgspec.Struct):
    id: str
    queue: str | None
    begins: str
    ends: str
    status: str


class _PageStore(msgspec.Struct):
    store: str
    kind: str
    time: str | None
    severity: str
    urgency: float
    first: ResourceForecast | None
    forecasts: tuple[ResourceForecast, ...]
    resources: tuple[_PageResource, ...]
    full: list[str]
    fields: _PageFields
    is_foreseen: bool = False
    rises: str = ""
    not_known: str = ""
    seen: str = ""
    plans: tuple[_PagePlan, ...] = ()


class _PageAlert(msgspec.Struct):
    alert_id: str
    store: str
    severity: str
    condition: str
    resource: str
    label: str
    is_open: bool
    opened: str
    time: str
    usage_pct: float | None
    time_to_full_s: TimeToFull | None
    full_probability: float | None
    cause: str
    evidence: tuple[str, ...]
    fillers: tuple[Filler, ...]
    runbook: tuple[Action, ...]
    notes: tuple[Note, ...]


class _PageIncident(msgspec.Struct):
    id: str
    store: str
    opened: str
    is_open: bool
    is_page: bool
    severity: str
    root: _PageAlert
    parts: tuple[_PageAlert, ...]
    cleared: tuple[_PageAlert, ...]


class _Page(msgspec.Struct):
    meta: _PageMeta
    stores: tuple[_PageStore, ...]
    incidents: tuple[_PageIncident, ...]


_PAGE = msgspec.json.Decoder(_Page)
_SEVERITIES = ("full", "critical", "warning", "info", "")
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer", bound=msgspec.Struct)


class Questions:
    """Answers to the questions of programs. Its methods may be called from several threads. Of a recording the model is
    that of its end. Without an estate there are neither past moments nor a report.
    """

    def __init__(self, model: ConsoleModel, past: Past | None, estate: Estate | None, report: Reports | None) -> None:
        self._model, self._past, self._estate, self._report = model, past, estate, report

    def overview(self, _: Question) -> Reply:
        """Say what is known: source, event time of the newest state, moments that can be asked about, latest calls."""
        page, past = self._page(None), self._past
        meta, problems, begin, end, marks = page.meta, _problems(page.meta), None, None, list[Mark]()
        if past is not None:
            problems += [text for text in [past.problem()] if text]
            try:
                moments = past.moments
                begin, end, marks = _text(moments.times[0]), _text(moments.times[-1]), moments.marks
            except UsageError as error:
                problems.append(str(error))
        is_recording = past is not None and past.recording is not None
        is_open = [own for own in page.incidents if own.is_open]
        answer = OverviewAnswer(
            source=f"recording {past.recording}" if past is not None and is_recording else "the topics of a job",
            as_of=meta.as_of,
            written_ago_s=None if is_recording else meta.age_s,
            first_moment=begin,
            last_moment=end,
            stores_count=len(page.stores),
            open_incidents_count=len(is_open),
            open_pages_count=sum(own.is_page for own in is_open),
            events_count=meta.events,
            dead_letters_count=meta.dead_letters,
            problems=problems,
            latest_calls=[_call(mark) for mark in marks[: -_CALLS - 1 : -1]],
        )
        return Reply(answer)

    def stores(self, asked: StoresQuestion) -> Reply:
        """List stores, the most urgent first: what is full, when it is full, and why."""
        page = self._page(asked.time)
        causes: dict[str, str] = {}
        for incident in _by_urgency(own for own in page.incidents if own.is_open):
            causes.setdefault(incident.store, incident.root.cause)
        chosen = sorted(
            (own for own in page.stores if own.store in causes or not asked.only_with_incident),
            key=lambda own: (-own.urgency, own.store),
        )
        lines = [_store_line(own, causes.get(own.store, "")) for own in _some(chosen, asked.skip)]
        return Reply(StoresAnswer(as_of=page.meta.as_of, stores=lines), "stores", asked.skip, len(chosen))

    def store(self, asked: StoreQuestion) -> Reply:
        """Describe one store at a moment, past ones too: usage of each resource, forecast, messages, planned work."""
        page = self._page(asked.time)
        own = _store_of(page, asked.store)
        answer = _like(
            StoreAnswer,
            own,
            as_of=own.time,
            full_now=own.full,
            messages_count=own.fields.messages,
            uncommitted_count=own.fields.uncommitted,
            in_doubt_count=own.fields.in_doubt,
            refused_puts_count=own.fields.full_puts,
            puts_wanted_per_s=None if own.fields.demand is None else own.fields.demand.puts_per_s,
            fidelity_pct=_pct(own.fields.fidelity),
            resources=[_resource(item) for item in own.resources],
            forecasts=[_foreseen(item) for item in own.forecasts],
            planned_work=[_planned(plan) for plan in own.plans],
            open_incident_ids=[item.id for item in page.incidents if item.store == own.store and item.is_open],
        )
        return Reply(answer)

    def incidents(self, asked: IncidentsQuestion) -> Reply:
        """List incidents, the most urgent first: condition, cause, evidence, the first action of the runbook, notes."""
        page = self._page(asked.time)
        if asked.store is not None:
            _store_of(page, asked.store)
        chosen = _by_urgency(
            own
            for own in page.incidents
            if (own.is_open or asked.closed) and (asked.store is None or own.store == asked.store)
        )
        lines = [_incident(own) for own in _some(chosen, asked.skip)]
        return Reply(IncidentsAnswer(as_of=page.meta.as_of, incidents=lines), "incidents", asked.skip, len(chosen))

    def alert(self, asked: AlertQuestion) -> Reply:
        """Describe one alert: evidence, the queues that fill, each step of its runbook with risk and way back."""
        page = self._page(asked.time)
        alerts = {alert.alert_id: alert for own in page.incidents for alert in (*own.cleared, *own.parts, own.root)}
        own = alerts.get(asked.alert_id)
        if own is None:
            wrong = f"alert {as_data(asked.alert_id, 100)}: there is none at that moment"
            raise UsageError(f"{wrong}; expected: an alert_id of incidents")
        answer = _like(
            AlertAnswer,
            own,
            resource=own.label,
            as_of=own.time,
            full_probability_pct=_pct(own.full_probability),
            **_times(own.time_to_full_s),
            evidence=list(own.evidence),
            fillers=[FillerLine(queue=item.queue, growth_share_pct=100 * item.share) for item in own.fillers],
            actions=[_action(item) for item in own.runbook],
            notes=[_note(item) for item in own.notes],
        )
        return Reply(answer)

    def readers(self, asked: ReadersQuestion) -> Reply:
        """Say who reads the deepest queues of a store: handles open, last get, age of the oldest message."""
        page = self._page(asked.time)
        own = _store_of(page, asked.store)
        queues = [item for item in own.fields.queues if asked.queue in (None, item.name)]
        if asked.queue is not None and not queues:
            named, known = as_data(asked.queue, 100), {item.name for item in own.fields.queues}
            raise UsageError(f"{named}: not one of the deepest queues of {own.store}{known_hint(asked.queue, known)}")
        lines = [_reader(item) for item in queues]
        return Reply(ReadersAnswer(store=own.store, as_of=own.time, queues=lines))

    def what_if(self, asked: WhatIfQuestion) -> Reply:
        """Compare when a store is full, as it is and with other settings, other traffic or planned work."""
        content = {**_changes(asked), "set": asked.set, "plan": msgspec.to_builtins(asked.plan)}
        answer = self._twins("what_if").what_if(content)
        before, after = _outcome(answer.before), _outcome(answer.after)
        horizon_s = answer.after.horizon_s
        return Reply(_like(WhatIfReply, answer, as_of=answer.time, before=before, after=after, horizon_s=horizon_s))

    def advise(self, asked: AdviseQuestion) -> Reply:
        """Find the smallest change that keeps a store from filling in the next hours. People make it, nothing here."""
        answer = self._twins("advise").advise(_changes(asked))
        plans = [
            PlanLine(title=plan.title, steps=[step.text for step in plan.steps], after=_outcome(plan.after))
            for plan in answer.plans
        ]
        left_out, is_kept = list(answer.left_out), answer.is_kept
        shared = {"as_of": answer.time, "plans": plans, "left_out": left_out, "nothing_has_to_change": is_kept}
        return Reply(_like(AdviceReply, answer, **shared))

    def hindsight(self, asked: HindsightQuestion) -> Reply:
        """Say whether settings from a past moment on would have held what came later."""
        content = {"store": asked.store, "time": seconds_of(asked.time), "set": asked.set}
        answer = self._twins("hindsight").hindsight(content)
        reply = _like(
            HindsightReply,
            answer,
            since=answer.time,
            puts_count=answer.puts,
            refused_as_it_was_count=answer.refused_before,
            refused_with_settings_count=answer.refused_after,
        )
        return Reply(reply)

    def report(self, asked: ReportQuestion) -> Reply:
        """Report a period: pages and whether they were right, minutes of 2192, what people did, what came close."""
        if self._report is None:
            raise _lacks_estate("report")
        own = self._report(asked.since, asked.until)
        verdicts = [incident.verdict for incident in own.pages]
        stores = sorted(own.stores, key=lambda store: -_highest_pct(store))
        incidents = [_reported(incident) for incident in _some(own.incidents, asked.skip)]
        answer = ReportAnswer(
            since=own.since,
            until=own.until,
            events_count=own.events,
            pages_count=len(verdicts),
            pages_in_time_count=verdicts.count("in time"),
            pages_late_count=verdicts.count("late"),
            pages_false_count=verdicts.count("false"),
            pages_averted_count=verdicts.count("averted"),
            fillings_count=len(own.fillings),
            fillings_unheard_count=sum(not filling.is_heard for filling in own.fillings),
            full_minutes=own.minutes_full,
            avoided_minutes=own.minutes_avoided,
            incidents=incidents,
            stores=[_reported_store(store) for store in stores[:MAX_ITEMS] if store.peaks],
        )
        return Reply(answer, "incidents", asked.skip, len(own.incidents))

    def size(self, asked: SizeQuestion) -> Reply:
        """Plan the storage that a number of messages needs in a store of the estate."""
        if self._estate is None:
            raise _lacks_estate("size")
        config = self._estate.stores.get(asked.store)
        if config is None:
            raise _no_store(asked.store, self._estate.stores)
        document = size_document(config, parse_mix(asked.messages), data_set=asked.data_set)
        (table,) = (part for part in document.parts if isinstance(part, Table))
        answer = SizeAnswer(
            store=config.name,
            columns=list(table.headings),
            lines=[Line(cells=list(row)) for row in table.rows],
            warnings=list(document.warnings),
            commands="; ".join(part.text for part in document.parts if isinstance(part, Code)),
        )
        return Reply(answer)

    def documentation(self, asked: DocumentationQuestion) -> Reply:
        """Search the documentation of mqtwin: what a word, condition, option or field means, how something is done."""
        sections, total = search(asked.words, _SECTIONS)
        lines = [
            PassageLine(page=own.page, heading=own.heading, excerpt=excerpt(own, asked.words, _EXCERPT))
            for own in sections
        ]
        more = "" if total <= len(lines) else f"{total - len(lines)} more; ask with rarer words"
        return Reply(DocumentationAnswer(sections=lines, more=more))

    def _page(self, time: str | None) -> _Page:
        """Return what the page shows at a moment; None: now. UsageError: there is no such moment."""
        model = self._model
        if time is not None:
            seconds = seconds_of(time)
            model = self._twins("a past moment").played(seconds).model_at(seconds)
        return _PAGE.decode(model.changes(0)[1])

    def _twins(self, what: str) -> Past:
        if self._past is None:
            raise _lacks_estate(what)
        return self._past


class Tool(NamedTuple):
    """A tool."""

    title: str  # for people
    question: type[Question]
    answer: type[Answer]
    ask: Callable[[Questions, Any], Reply]

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.ask.__name__

    def reply(self, questions: Questions, arguments: Mapping[str, Any]) -> Reply:
        """Return the answer to decoded arguments. UsageError: they are wrong, or there is no answer."""
        return self.ask(questions, converted(arguments, self.question))


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("What is known", Question, OverviewAnswer, Questions.overview),
        Tool("Stores by urgency", StoresQuestion, StoresAnswer, Questions.stores),
        Tool("A store at a moment", StoreQuestion, StoreAnswer, Questions.store),
        Tool("Incidents", IncidentsQuestion, IncidentsAnswer, Questions.incidents),
        Tool("An alert with its runbook", AlertQuestion, AlertAnswer, Questions.alert),
        Tool("Who reads", ReadersQuestion, ReadersAnswer, Questions.readers),
        Tool("What-if", WhatIfQuestion, WhatIfReply, Questions.what_if),
        Tool("Advice", AdviseQuestion, AdviceReply, Questions.advise),
        Tool("Hindsight", HindsightQuestion, HindsightReply, Questions.hindsight),
        Tool("Report of a period", ReportQuestion, ReportAnswer, Questions.report),
        Tool("Sizing", SizeQuestion, SizeAnswer, Questions.size),
        Tool("Documentation", DocumentationQuestion, DocumentationAnswer, Questions.documentation),
    )
}


# --- parts of answers ------------------------------------------------------------------------------------------------


def _like(kind: type[_Answer], own: object, /, **others: Any) -> _Answer:
    """Return an answer, or a part of one, with the fields that a record has by the same names, and others."""
    same = {
        name: _known(getattr(own, name)) for name in kind.__struct_fields__ if name not in others and hasattr(own, name)
    }
    return kind(**same, **others)


def _times(times: TimeToFull | None) -> dict[str, float | None]:
    return {f"full_in_{name}_s": getattr(times, name, None) for name in ("p10", "p50", "p90")}


def _some(items: Sequence[_Item], skip: int) -> Sequence[_Item]:
    return items[skip : skip + MAX_ITEMS]


def _pct(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _text(time_s: float) -> str:
    return as_text(round(time_s * 1_000_000))


def _lacks_estate(what: str) -> UsageError:
    return UsageError(f"{what}: this server has no estate; expected: mqtwin mcp --estate FILE")


def _no_store(store: str, known: Iterable[str]) -> UsageError:
    return UsageError(f"{as_data(store, 100)}: no such store{known_hint(store, sorted(known))}")


def _problems(meta: _PageMeta) -> list[str]:
    texts = [meta.job_problem, meta.problem]
    texts += [f"topic {name} does not exist yet" for name in meta.missing]
    texts.append("" if meta.caught_up or meta.problem else "the topics are still being read")
    texts.append(f"{meta.unreadable} records cannot be read" if meta.unreadable else "")
    return [text for text in texts if text]


def _store_of(page: _Page, name: str) -> _PageStore:
    own = next((own for own in page.stores if own.store == name), None)
    if own is None:
        raise _no_store(name, (other.store for other in page.stores))
    return own


def _by_urgency(incidents: Iterable[_PageIncident]) -> list[_PageIncident]:
    """Return incidents, the worst first, of these the newest."""
    ranks = {severity: place for place, severity in enumerate(_SEVERITIES)}
    newest = sorted(incidents, key=lambda own: own.opened, reverse=True)
    return sorted(newest, key=lambda own: (not own.is_open, ranks.get(own.severity, 2)))


def _call(mark: Mark) -> Call:
    return _like(Call, mark, time=_text(mark.time))


def _store_line(own: _PageStore, why: str) -> StoreLine:
    fullest = max(own.resources, key=lambda item: item.maximum_pct or 0.0, default=None)
    first = own.first if own.is_foreseen else None
    times = None if first is None else first.time_to_full_s
    return _like(
        StoreLine,
        own,
        fullest_resource="" if fullest is None else fullest.label,
        usage_pct=None if fullest is None else fullest.pct,
        usage_of_maximum_pct=None if fullest is None else fullest.maximum_pct,
        full_now=own.full,
        full_in_p50_s=None if times is None else times.p50,
        full_probability_pct=None if first is None else _pct(first.full_probability),
        why=why,
    )


def _resource(own: _PageResource) -> ResourceLine:
    return _like(ResourceLine, own, resource=own.name, usage_pct=own.pct, usage_of_maximum_pct=own.maximum_pct)


def _foreseen(own: ResourceForecast) -> Outcome:
    return _like(Outcome, own, full_probability_pct=100 * own.full_probability, **_times(own.time_to_full_s))


def _outcome(own: PageOutcome) -> Outcome:
    times = own.time_to_full_s or {}
    return Outcome(
        resource=own.resource or "",
        full_probability_pct=100 * own.probability,
        full_in_p10_s=times.get("p10"),
        full_in_p50_s=times.get("p50"),
        full_in_p90_s=times.get("p90"),
        messages_that_fit_count=own.messages_that_fit,
    )


def _planned(plan: _PagePlan) -> str:
    about = "" if plan.queue is None else f" on queue {plan.queue}"
    return f"{plan.id}{about}: {plan.status}, {plan.begins} to {plan.ends}"


def _note(note: Note) -> str:
    return f"{note.time} {note.sentence}"


def _incident(own: _PageIncident) -> IncidentLine:
    root, others = own.root, (*own.parts, *own.cleared)
    return _like(
        IncidentLine,
        own,
        incident_id=own.id,
        alert_id=root.alert_id,
        calls_people=own.is_page,
        condition=root.condition,
        resource=root.label,
        cause=root.cause,
        evidence=list(root.evidence),
        first_action=f"{root.runbook[0].id}: {root.runbook[0].sentence}" if root.runbook else "",
        notes=[_note(note) for alert in (root, *others) for note in alert.notes],
        other_alert_ids=[alert.alert_id for alert in others],
    )


def _action(own: Action) -> ActionLine:
    return _like(ActionLine, own, action_id=own.id, steps=[_like(StepLine, step) for step in own.steps])


def _reader(own: DeepQueue) -> ReaderLine:
    return _like(
        ReaderLine,
        own,
        queue=own.name,
        depth_messages=own.depth,
        getters_count=_known(own.getters),
        putters_count=_known(own.putters),
        uncommitted_count=_known(own.uncommitted),
        oldest_message_s=_known(own.oldest_s),
        asked_queue_managers=list(_known(own.asked) or ()),
    )


def _known(value: _Item | UnsetType) -> _Item | None:
    return None if value is UNSET or isinstance(value, UnsetType) else value


def _changes(asked: WhatIfQuestion | AdviseQuestion) -> dict[str, Any]:
    content: dict[str, Any] = {
        "store": asked.store,
        "time": None if asked.time is None else seconds_of(asked.time),
        "traffic": {"puts": asked.puts_factor, "gets": asked.gets_factor, "lengths": asked.lengths_factor},
    }
    if isinstance(asked, WhatIfQuestion):
        return {**content, "horizon_s": asked.horizon_s}
    return {**content, "hours": asked.within_hours, "confidence": asked.confidence}


def _reported(own: IncidentReport) -> ReportedIncident:
    actions = [f"{action.time} {action.text}" for action in own.actions]
    minutes = {"full_minutes": own.minutes_full, "avoided_minutes": own.minutes_avoided}
    return _like(ReportedIncident, own, actions=actions, **minutes)


def _highest_pct(store: StoreReport) -> float:
    return store.peaks[0].usage_pct if store.peaks else 0.0


def _reported_store(own: StoreReport) -> ReportedStore:
    peak = own.peaks[0]
    return ReportedStore(
        store=own.store,
        highest_pct=peak.usage_pct,
        highest_resource=peak.resource,
        highest_time=peak.time,
        full_minutes=own.minutes_full,
        room_at_this_growth_days=None if own.growth is None else own.growth.days_left,
    )
