"""Questions of the page about a store: what-if and advice, as its twin at a moment answers them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import tzinfo
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from deploy.console.model import commands_in
from deploy.show.planning import beside_alert, planned_text
from twin.base.conditions import Pool, Resource
from twin.base.errors import UsageError
from twin.base.units import FIRST_SECOND, LAST_SECOND, as_local, as_rate
from twin.capacity import has_rules
from twin.estate import MAX_PAGES, EstateError, Structure
from twin.estate.planned import Plan, read_plan
from twin.estate.rows import PAGES
from twin.estate.settings import DataSetSetting, Settings
from twin.planning.advise import Promise, advise, sizes
from twin.planning.proof import Hindsight
from twin.planning.whatif import DEFAULT_HORIZON_S, FillOutcome, Moment, Traffic, missing_gets_per_s, what_if
from twin.stores.message_store import MessageStore

_MIB = 1024 * 1024
_Moment = Annotated[float, msgspec.Meta(ge=FIRST_SECOND, le=LAST_SECOND)]  # seconds since 1970


class PlanParts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Planned work that is asked about: the parts of a plan, as in [[planned]]. length: mean bytes of a message."""

    id: str = "planned"
    queue: str | None = None
    begin: str | None = msgspec.field(name="from", default=None)
    until: str | None = None
    rrule: str | None = None
    duration_s: float | None = None
    messages: int | None = None
    length: int | None = None
    puts_per_s: float | None = None
    getters: str | None = None
    allowed_pct: float | None = None

    def read(self, moment: Moment) -> Plan:
        """Return the plan for the store of a moment. UsageError: a part is wrong, unknown or missing."""
        try:
            plan = read_plan({"id": self.id, **msgspec.to_builtins(self)}, moment.twin.config)
        except EstateError as error:
            raise UsageError(f"plan: {error}") from None
        assert isinstance(plan, Plan)  # nothing is cancelled here
        return plan


class WhatIfRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /whatif."""

    store: str
    traffic: Traffic = Traffic()
    set: Settings = {}
    horizon_s: float = DEFAULT_HORIZON_S  # to look ahead
    plan: tuple[PlanParts, ...] = ()  # in the place of the traffic
    time: _Moment | None = None  # None: the present of the job, or the end of the recording


class AdviseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /advise; see `WhatIfRequest` and `Promise`."""

    store: str
    traffic: Traffic = Traffic()
    hours: float = 2.0
    confidence: float = 0.9
    time: _Moment | None = None


class HindsightRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /hindsight; see `WhatIfRequest`."""

    store: str
    time: _Moment
    set: Settings = {}


class HindsightAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to POST /hindsight: puts refused since a moment, as it is and with the settings. note: in words."""

    time: str
    puts: int
    refused_before: int
    refused_after: int
    first_full: str | None
    peak_pct: float
    note: str


class Slider(msgspec.Struct, frozen=True):
    """An attribute that the page offers. value, low and high: in `unit`, of which one is `scale` of the attribute."""

    name: str
    label: str
    value: int
    low: int = msgspec.field(name="min")
    high: int = msgspec.field(name="max")
    step: int
    unit: str
    scale: int = 1


class PageOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """When a store is full. label: the resource that is full first, in words."""

    resource: str | None
    label: str
    time_to_full_s: dict[str, float | None] | None
    probability: float
    horizon_s: float
    messages_that_fit: int | None


class WhatIfAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to POST /whatif: the store as it is and as it would be."""

    time: str
    attributes: list[Slider]
    before: PageOutcome
    after: PageOutcome
    note: str


class PageStep(msgspec.Struct, frozen=True):
    """A step of a plan. commands: those in its text, in its order."""

    text: str
    commands: list[str]


class PagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A change that keeps the promise."""

    title: str
    steps: list[PageStep]
    after: PageOutcome


class AdviseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to POST /advise. left_out: plans that do not hold, with the reason."""

    time: str
    is_kept: bool
    plans: list[PagePlan]
    left_out: tuple[str, ...]
    note: str


_Request = TypeVar("_Request", bound=msgspec.Struct)


class Answers(ABC):
    """Answers to the questions of the page. Its methods may be called from several threads."""

    @abstractmethod
    def moment(self, store: str, time_s: float | None) -> AbstractContextManager[Moment]:
        """Hold the twin of a store at a moment, to be read only. UsageError: there is none; says why."""

    def problem(self) -> str:
        """Return why there are no answers now; empty if there are."""
        return ""

    def hindsight(self, content: Any) -> HindsightAnswer:  # noqa: ARG002 -- of those with a past
        """Answer the decoded body of POST /hindsight. UsageError: it cannot be answered; says why."""
        raise UsageError("this console has no past; expected: mqtwin console --recording FILE, or --estate FILE")

    def what_if(self, content: Any) -> WhatIfAnswer:
        """Answer the decoded body of POST /whatif. UsageError: it cannot be answered; says why."""
        request = converted(content, WhatIfRequest)
        with self.moment(request.store, request.time) as moment:
            try:
                with np.errstate(divide="raise", over="raise", invalid="raise"):
                    plan = [own.read(moment) for own in request.plan]
                    answer = what_if(moment, request.set, request.traffic, request.horizon_s, plan=plan)
            except ArithmeticError as error:
                raise UsageError(f"the numbers lead to: {error}; expected: numbers nearer to today's") from None
            sliders, zone = _sliders(moment.twin), moment.twin.estate.site.clock
        what = "if the traffic of the last minutes continues as set here"
        if answer.planned:
            what = f"and then {planned_text(answer.planned)}"
        moment_text = f"As of {_clock(answer.time, zone)}, {what}."
        return WhatIfAnswer(
            time=answer.time,
            attributes=sliders,
            before=_outcome(answer.before, answer.horizon_s),
            after=_outcome(answer.after, answer.horizon_s),
            note=moment_text + beside_alert(answer),
        )

    def advise(self, content: Any) -> AdviseAnswer:
        """Answer the decoded body of POST /advise. UsageError: it cannot be answered; says why."""
        request = converted(content, AdviseRequest)
        promise = Promise(hours=request.hours, confidence=request.confidence)
        with self.moment(request.store, request.time) as moment:
            advice = advise(moment, promise, request.traffic)
            gets = missing_gets_per_s(moment, request.traffic)
            zone = moment.twin.estate.site.clock
        when = f"As of {_clock(advice.time, zone)}"
        promised = f"not full within {promise.hours:g} h in {100 * promise.confidence:g} % of all futures"
        if advice.is_kept:
            note = f"{when} nothing has to change: {promised}."
        elif advice.plans:
            note = f"{when}{_first(gets)}; with each of these: {promised}."
        else:
            note = f"{when}{_first(gets)}; no change of sizes or rules is enough for: {promised}."
        plans = [
            PagePlan(
                title=plan.title,
                steps=[PageStep(step, commands_in(step)) for step in plan.steps],
                after=_outcome(plan.outcome, 3600 * promise.hours),
            )
            for plan in advice.plans
        ]
        return AdviseAnswer(time=advice.time, is_kept=advice.is_kept, plans=plans, left_out=advice.left_out, note=note)


def converted(content: Any, kind: type[_Request]) -> _Request:
    """Return the decoded body of a request as a request. UsageError: it is not a valid one."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        names = ", ".join(kind.__struct_fields__)
        raise UsageError(f"the body: {error}; expected: an object with {names}") from None


def _first(gets_per_s: float) -> str:
    """Return what helps at once, before any change of sizes."""
    return f": {as_rate(gets_per_s)} gets/s more, and it grows no more" if gets_per_s > 0 else ""


def hindsight_answer(result: Hindsight, zone: tzinfo) -> HindsightAnswer:
    """Return a hindsight as the page shows it. zone: the zone of the site."""
    before, after = result.before, result.after
    until = "no later event" if not after.times else f"the events until {_clock(round(after.times[-1] * 1e6), zone)}"
    if after.refused and after.first_full is not None:
        what = (
            f"{after.refused:,} of {after.puts:,} puts would have been refused, from {_clock(after.first_full, zone)}"
        )
        full = ", ".join(Resource.parse(name).label for name in after.full)
        what += f" ({full})" if full else ""
    else:
        what = f"it would have held: none of {after.puts:,} puts refused, at most {after.peak_pct:.1f} % in use"
    begin = _clock(result.time, zone)
    return HindsightAnswer(
        time=result.time,
        puts=after.puts,
        refused_before=before.recorded,
        refused_after=after.refused,
        first_full=after.first_full,
        peak_pct=after.peak_pct,
        note=f"With these settings from {begin} on, over {until}: {what}; {before.recorded:,} were.",
    )


def _clock(time: int | str, zone: tzinfo) -> str:
    return as_local(time, zone, seconds=True)


def _outcome(outcome: FillOutcome, horizon_s: float) -> PageOutcome:
    times = {"p10": outcome.p10, "p50": outcome.p50, "p90": outcome.p90}
    return PageOutcome(
        resource=outcome.resource,
        label=Resource.parse(outcome.resource or "").label,
        time_to_full_s=None if outcome.p50 is None else times,
        probability=outcome.probability,
        horizon_s=horizon_s,
        messages_that_fit=outcome.messages_that_fit,
    )


def _sliders(twin: MessageStore) -> list[Slider]:
    """Return the attributes that the page offers: offload thresholds, and the sizes that advice may change too."""
    config, rows = twin.config, twin.config.rows
    sliders = []
    if isinstance(config, Structure) and has_rules(config):
        names = [f"offld{number}_th" for number in (1, 2, 3)]
        sliders = [_slider(name, rows[name].label, getattr(config, name), 0, 100, "%") for name in names]
    for name, value in sizes(twin).items():
        if (dataset := DataSetSetting.parse(name)) is not None:
            label = Resource(Pool.SMDS, dataset.qmgr).label
            limit = " at most" if dataset.attribute == "max_size" else ""
            sliders.append(_size(name, label + limit, value, can_be_none=False))
        elif rows[name].form.unit == PAGES:
            sliders.append(_slider(name, rows[name].label, value, 2, min(MAX_PAGES, 4 * value), ""))
        else:
            sliders.append(_size(name, rows[name].label, value, can_be_none=rows[name].optional))
    return sliders


def _slider(name: str, label: str, value: int, low: int, high: int, unit: str) -> Slider:
    return Slider(name, label, value, low, high, max(1, (high - low) // 200), unit)


def _size(name: str, label: str, value_bytes: int, *, can_be_none: bool) -> Slider:
    value = max(1, value_bytes // _MIB)
    low = 0 if can_be_none else max(1, value // 4)
    return Slider(name, label, value, low, 4 * value, max(1, value // 32), "MB", _MIB)
