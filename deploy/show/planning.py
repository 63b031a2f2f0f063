"""Answers to a what-if, advice, and changes that may be handed over.

- Answers and advice: their documents, and the picture of an answer.
- Changes: the dry run of one, and the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deploy.show.document import (
    PAGE,
    TERMINAL,
    Code,
    Curve,
    Curves,
    Document,
    Heading,
    Items,
    Part,
    Range,
    Ranges,
    Table,
    Text,
    site_period,
    site_time,
)
from twin.base.conditions import STORAGE_MEDIUM_FULL, Pool, Resource
from twin.base.errors import UsageError
from twin.base.outputs import Draft
from twin.base.units import as_count, as_estimate, as_microseconds, as_rate, as_span
from twin.estate import format_size
from twin.estate.attributes import SIZES
from twin.planning.advise import ALONE, Advice, MemberAdvice, Plan, Promise
from twin.planning.proof import AS_IT_IS, Proof
from twin.planning.proposals import Proposal
from twin.planning.whatif import DEFAULT_HORIZON_S, UNCHANGED, Answer, FillOutcome, Traffic
from twin.records import ActStatus, Expectation, Measured, PlannedWork, Requested, Resulted, is_full_now

_HEADINGS = ("", "full first", "time to full", "p10 to p90", "probability", "messages that fit")
_PLANNED_HEADINGS = ("", "fits", "full first", "full about", "room for")
_RIGHT = frozenset({"probability", "messages that fit"})
_LAST_MINUTE = 180  # beyond which the axis of a picture is in hours
_SUFFIXES = (".svg", ".png")
_GAP = Text("")
_LEFT_OUT = "Changes that bring a new warning about the estate, or with which too much is refused in the recording."
_METHOD = (
    "The twin of the store was rolled forward over futures drawn from its own traffic, as it is and with each plan; a"
    " plan that fills something else is none. Sizes are the least that keep the promise, in steps of a 32nd. That the"
    " traffic continues as given is assumed. Nothing was changed."
)
_NO_MEMBER = (
    "Another queue manager in the group is no plan: all members share entries and elements, and which share of"
    " the puts would go to a data set of its own is not known; `mqtwin size smds` plans that one for a given share."
)


def answer_document(answer: Answer) -> Document:
    """Return an answer: the moment, the table that compares it as it is with the question, and why alerts differ."""
    place = f"{answer.store} at {site_time(answer.time, seconds=True)}"
    if answer.planned:
        title = f"{place}, and then {planned_text(answer.planned)}"
        changed = [("as it is", answer.before)]
        changed += [(question(answer), answer.after)] if answer.settings else []
        rows = [(name, *_planned_cells(outcome, answer)) for name, outcome in changed]
        return Document(title, [Text(title, only=TERMINAL), Table(_PLANNED_HEADINGS, rows, {"room for"})], answer)
    title = f"{place}, {as_span(answer.horizon_s)} ahead, if the traffic continues"
    rows = [("as it is", *cells(answer.before)), (question(answer), *cells(answer.after))]
    beside = beside_alert(answer).strip()
    parts = [Text(title, only=TERMINAL), Table(_HEADINGS, rows, _RIGHT), *([Text(beside)] if beside else [])]
    return Document(title, parts, answer)


def planned_text(planned: Sequence[PlannedWork]) -> str:
    """Return windows of planned work: queue or id, when, and what is announced."""
    return "; ".join(_window_text(work) for work in planned)


def _window_text(work: PlannedWork) -> str:
    parts = [f"{work.queue or work.id}, {site_period(work.begins, work.ends)}"]
    parts += [] if work.announced is None else [as_count(work.announced, "message")]
    parts += ["its getters away"] if work.getters_away else []
    return ", ".join(parts)


def _planned_cells(outcome: FillOutcome, answer: Answer | Advice) -> tuple[str, ...]:
    """Return whether planned work fits, as text: fits, full first, full about, room for."""
    if outcome.resource is None or outcome.p50 is None:
        return "yes", "", "", ""
    full_at = site_time(as_microseconds(answer.time) + round(outcome.p50 * 1e6))
    room = "" if outcome.messages_that_fit is None else f"{outcome.messages_that_fit:,}"
    return "no", outcome.resource, full_at, room


def _fits(outcome: FillOutcome, advice: Advice) -> str:
    """Return whether planned work fits: `does not fit: smds/QM01 full about 2026-11-22 01:10 CET, room for 180,000`."""
    fits, resource, full_at, room = _planned_cells(outcome, advice)
    if fits == "yes":
        return "fits"
    return f"does not fit: {resource} full about {full_at}{f', room for {room}' if room else ''}"


def beside_alert(answer: Answer) -> str:
    """Return why alerts show a lower probability, a sentence behind a space; empty where they do not."""
    alert = answer.alert_probability
    if alert is None or round(100 * alert) >= round(100 * answer.before.probability):
        return ""
    return f" Alerts show {100 * alert:.0f} %: they allow for traffic that changes."


def question(answer: Answer) -> str:
    """Return what was changed, such as `offld1_th=60, gets x 0`."""
    return _changed(answer.settings, answer.traffic) or "unchanged"


def _changed(settings: Mapping[str, Any], traffic: Traffic) -> str:
    factors = {name: getattr(traffic, name) for name in traffic.__struct_fields__}
    changed = [f"{name}={value}" for name, value in settings.items()]
    changed += [f"{name} x {value:g}" for name, value in factors.items() if value != getattr(UNCHANGED, name)]
    return ", ".join(changed)


def cells(outcome: FillOutcome | Expectation) -> tuple[str, ...]:
    """Return an outcome as text: full first, time to full, p10 to p90, probability, messages that fit."""
    number = outcome.messages_that_fit if isinstance(outcome, FillOutcome) else None
    fit = "" if number is None else f"{number:,}"
    probability = f"{100 * outcome.probability:.0f} %"
    if outcome.p10 is None:
        return outcome.resource or "nothing", "not within that time", "", probability, fit
    if outcome.p50 is not None and is_full_now(outcome.p50):
        return outcome.resource or "nothing", "full now", "", probability, fit
    middle, interval = as_estimate(outcome.p10, outcome.p50, outcome.p90)
    return outcome.resource or "nothing", middle, interval, probability, fit


def check_picture(path: Path) -> None:
    """Raise UsageError, before anything is replayed, if the picture cannot be drawn."""
    if path.suffix not in _SUFFIXES:
        raise UsageError(f"--picture {path}: expected a file name that ends in {' or '.join(_SUFFIXES)}")
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise UsageError(
            "--picture needs matplotlib, which is not installed; expected: pip install 'mqtwin[pictures]'"
        ) from None


def draw_answer(path: Path, answer: Answer) -> None:
    """Draw both times until full, p10 to p90 with a line at p50; the axis ends a little after the last of them.

    Its unit, minutes or hours, is that of the spans beside it.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from twin.playback.pictures import GREY, INK, STYLE

    mpl.rcParams.update(STYLE)
    figure, axes = plt.subplots(figsize=(8, 2.8), layout="constrained")
    last = [answer.horizon_s if outcome.p90 is None else outcome.p90 for outcome in (answer.before, answer.after)]
    end_s = min(answer.horizon_s, max(600.0, 1.3 * max(last)))
    unit, unit_s = ("hours", 3600) if end_s > _LAST_MINUTE * 60 else ("minutes", 60)
    end = end_s / unit_s
    labels = ("as it is", question(answer))
    for row, (outcome, colour) in enumerate(((answer.before, GREY), (answer.after, INK))):
        low, middle, high = (
            (answer.horizon_s if time is None else time) / unit_s for time in (outcome.p10, outcome.p50, outcome.p90)
        )
        text = "not full" if outcome.p10 is None else f"{outcome.resource}: " + cells(outcome)[1]
        if outcome.p10 is not None:
            axes.barh(row, high - low, left=low, height=0.5, color=colour, alpha=0.3)
            axes.plot([middle, middle], [row - 0.25, row + 0.25], color=colour, linewidth=3)
        axes.annotate(text, (0.01 * end, row - 0.36), va="center", fontsize=9)
    axes.set(
        yticks=[0, 1],
        yticklabels=labels,
        ylim=(1.6, -0.6),
        xlim=(0, end),
        xlabel=f"{unit} until full (p10, p50, p90)",
    )
    axes.set_title(f"{answer.store} at {site_time(answer.time)}, if the traffic continues", fontsize=10)
    with Draft(path) as draft:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(draft.file, format=path.suffix[1:], metadata=metadata, dpi=130)
    plt.close(figure)


# --- advice ----------------------------------------------------------------------------------------------------------


def advice_document(
    advice: Advice,
    proofs: Sequence[Proof] = (),
    recording: str = "",
    reason: int = STORAGE_MEDIUM_FULL,
    record: Any = None,
) -> Document:
    """Return whether the promise is kept, then plans with their proofs and steps, or what could be smaller. There are
    no proofs where there is no recording.
    """
    promise, outcome = advice.promise, advice.outcome
    required = f", with {required_text(advice)}" if advice.required else ""
    alone = f"With {required_text(advice)} alone {proof_text(proofs, ALONE, recording)}." if proofs and required else ""
    allowed = f"at most {100 * (1 - promise.confidence):.0f} %"
    if advice.planned:
        return _planned_advice(advice, required, record)
    is_kept = advice.is_kept and not advice.required
    no_plan = f"No change of its settings {'holds' if advice.left_out else f'makes that {allowed}'}."
    pool = Resource.parse(outcome.resource or "").pool
    no_member = not advice.is_kept and pool in (Pool.ENTRIES, Pool.ELEMENTS, Pool.SMDS)
    parts: list[Part] = [
        Text(f"{advice.store} at {site_time(advice.time, seconds=True)}{required}: {expected(outcome, promise)}."),
        *([Text(alone)] if alone else []),
        Text(_promise_text(advice), only=PAGE),
        *([] if advice.plans or is_kept else [Text(no_plan)]),
        *_outcomes(advice),
    ]
    for number, plan in enumerate(advice.plans, 1):
        claimed = f"{futures(plan.outcome, promise)} ({allowed} was asked for)"
        proven = proof_text(proofs, plan.title, recording)
        parts += _plan_parts(number, plan, f"{claimed}; {proven}.")
    parts += [_GAP, Text(_NO_MEMBER)] if no_member else []
    parts += [Heading("Left out", only=PAGE), Text(_LEFT_OUT, is_note=True, only=PAGE)] if advice.left_out else []
    parts += [part for text in advice.left_out for part in (_GAP, Text(f"{text}.", lead="Left out,"))]
    if is_kept:
        nothing = "" if advice.smaller else " nothing."
        sizes = f"Smaller, one at a time, would do for {promise.hours:g} h of this traffic:{nothing}"
        lines = [
            f"{settings_text(settings)}; {proof_text(proofs, name, recording)}"
            for name, settings in advice.smaller.items()
        ]
        parts += [_GAP, Text(f"That is {allowed}. {sizes}"), *([Items(lines, indent=2)] if lines else [])]
    if proofs:
        parts += _proofs(advice, proofs, recording, reason)
    fit = outcome.messages_that_fit
    more = "" if fit is None else f" As it is, {fit:,} further messages of this mix fit if nobody gets any."
    parts += [Heading("How this was found", only=PAGE), Text(_METHOD + more, is_note=True, only=PAGE)]
    return Document(f"Advice for {advice.store}", parts, record)


def _plan_parts(number: int, plan: Plan, claim: str) -> list[Part]:
    codes = (("MQSC", plan.mqsc), ("CFRM policy", plan.cfrm))
    return [
        _GAP,
        Text(claim, lead=f"Plan {number}, {plan.title}:"),
        *([Items(plan.steps, indent=2, are_steps=True)] if plan.steps else []),
        *(Code(name, text, only=PAGE) for name, text in codes if text),
    ]


def _planned_advice(advice: Advice, required: str, record: Any) -> Document:
    """Return whether planned work fits, then what would make it fit, or what could be smaller. Arguments: as above."""
    place = f"{advice.store} at {site_time(advice.time, seconds=True)}{required}"
    parts: list[Part] = [Text(f"{place}: {planned_text(advice.planned)}: {_fits(advice.outcome, advice)}.")]
    if not advice.is_kept and not advice.plans:
        parts.append(Text("No change of its settings makes it fit."))
    for number, plan in enumerate(advice.plans, 1):
        parts += _plan_parts(number, plan, "fits.")
    parts += [part for text in advice.left_out for part in (_GAP, Text(f"{text}.", lead="Left out,"))]
    if advice.smaller:
        sizes = [settings_text(settings) for settings in advice.smaller.values()]
        parts += [
            _GAP,
            Text("Smaller, one at a time, would do for it, the usual traffic aside:"),
            Items(sizes, indent=2),
        ]
    return Document(f"Advice for {advice.store}", parts, record)


def _promise_text(advice: Advice) -> str:
    promise = advice.promise
    asked = _changed({}, advice.traffic)
    condition = f", with {asked}" if asked else ""
    return (
        f"Promise: not full within {as_span(promise.hours * 3600)}{condition}, in {100 * promise.confidence:.0f} % of"
        " all futures."
    )


def _options(advice: Advice) -> list[tuple[str, FillOutcome]]:
    """Return what plans are compared with, and each plan, with its outcome."""
    plans = [(f"Plan {number}: {plan.title}", plan.outcome) for number, plan in enumerate(advice.plans, 1)]
    return [(_beginning(advice), advice.outcome), *plans]


def _beginning(advice: Advice) -> str:
    return f"With {required_text(advice)}" if advice.required else "As it is"


def _outcomes(advice: Advice) -> list[Part]:
    """Return the section of the page about the time to full, as it is and with each plan."""
    options = _options(advice)
    rows = [(name, *cells(outcome)) for name, outcome in options]
    end = advice.promise.hours * 3600
    ranges = [
        Range(name, own.p10, own.p50, own.p90, f"not full in {100 * (1 - own.probability):.0f} % of all futures")
        for name, own in options
    ]
    label = "; ".join(f"{name}: {', '.join(text for text in row[:4] if text)}" for name, *row in rows)
    caption = "Time until full, if nothing is changed and with each plan: p10 to p90, the bar marks p50."
    return [
        Heading("What would happen", only=PAGE),
        Ranges(rows=ranges, label=label, caption=f"{caption} Axis: {as_span(end)}.", end=end),
        Table(_HEADINGS, rows, _RIGHT, only=PAGE),
    ]


def _proofs(advice: Advice, proofs: Sequence[Proof], recording: str, reason: int) -> list[Part]:
    """Return the section of the page about the recording, as it is and with each plan or smaller size."""
    names = [_name(advice, proof) for proof in proofs]
    headings = ("", f"refused with {reason}", "first", "peak usage")
    rows = [
        (
            name,
            f"{proof.refused:,}",
            "none" if proof.first_full is None else site_time(proof.first_full),
            f"{proof.peak_pct:.1f} %",
        )
        for name, proof in zip(names, proofs, strict=True)
    ]
    what = "smaller size" if advice.smaller else "plan"
    text = (
        f"{recording}, replayed as requests on the estate as it is and with each {what}, as if it had been in effect"
        f" from the beginning of the recording to its end. The recording has {proofs[0].recorded:,} refused messages."
        " Gets happen as recorded: messages that the recording refused and are stored here are not got in it."
    )
    highest = [max(proof.usage_pct) for proof in proofs]
    return [
        Heading(f"The recording with each {what}", only=PAGE),
        Text(text, only=PAGE),
        Curves(
            curves=[Curve(name, proof.times, proof.usage_pct) for name, proof in zip(names, proofs, strict=True)],
            label="; ".join(f"{name}: up to {pct:.0f} %" for name, pct in zip(names, highest, strict=True)),
            caption=f"The fullest resource of {advice.store} in the recording, percent of its maximum.",
            top=max(105.0, *highest),
        ),
        Table(headings, rows, set(headings[1:]), only=PAGE),
    ]


def _name(advice: Advice, proof: Proof) -> str:
    if proof.title == AS_IT_IS:
        return "As it is"
    if proof.title == ALONE:
        return _beginning(advice)
    if proof.title in advice.smaller:
        return settings_text(advice.smaller[proof.title])
    number = next(number for number, plan in enumerate(advice.plans, 1) if plan.title == proof.title)
    return f"Plan {number}: {proof.title}"


def members_document(advice: MemberAdvice) -> Document:
    """Return how many members carry the load, and what to do."""
    rates = f"{advice.load_per_s:,.0f} messages/s to carry, {advice.active} active members carry"
    parts: list[Part] = [
        Text(f"{advice.store} at {site_time(advice.time, seconds=True)}: {rates} {advice.carried_per_s:,.0f}.")
    ]
    if advice.is_enough:
        spare = advice.active - advice.members
        parts.append(Text(f"That is enough{f'. {spare} fewer would do' if spare else ', and none could be spared'}."))
    else:
        parts += [_GAP, Text(f"Plan, {advice.members} members:"), Items(advice.steps, indent=2, are_steps=True)]
    return Document(f"Advice for {advice.store}", parts, advice)


def required_text(advice: Advice) -> str:
    """Return the settings that change in any case, such as `scm_max_size=0`."""
    return ", ".join(f"{name}={value}" for name, value in advice.required.items())


def expected(outcome: FillOutcome, promise: Promise) -> str:
    """Return what is expected as it is: `full within 2 h in 89 % of all futures, most often smds/QM01 first`."""
    if outcome.p50 is not None and is_full_now(outcome.p50):
        return f"full now, {outcome.resource}, while {as_rate(outcome.puts_per_s)} puts/s are asked for"
    first = "" if outcome.resource is None else f", most often {outcome.resource} first"
    return f"{futures(outcome, promise)}{first}"


def futures(outcome: FillOutcome, promise: Promise) -> str:
    """Return in how many futures a store is full within the time of a promise."""
    return f"full within {promise.hours:g} h in {100 * outcome.probability:.0f} % of all futures"


def proof_text(proofs: Sequence[Proof], title: str, recording: str) -> str:
    """Return what a recording comes to with a plan or a smaller size."""
    if not proofs:
        return "not proven: no recording"
    proof = next(proof for proof in proofs if proof.title == title)
    refused = f"{proof.refused:,} refused ({proofs[0].refused:,} as it is)"
    return f"in {recording} {refused}, at most {proof.peak_pct:.1f} % in use"


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return sizes as text, the first one and what goes along with it: bytes, or pages."""
    first, *along = (
        f"{name} {format_size(value)}" if name.rpartition(".")[2] in SIZES else f"{name} {value:,} pages"
        for name, value in settings.items()
    )
    return f"{first} (with {', '.join(along)})" if along else first


# --- changes that may be handed over ----------------------------------------------------------------------------------

_EFFECT_HEADINGS = ("", "full first", "time to full", "p10 to p90", "probability")


class ActView(msgspec.Struct, frozen=True, kw_only=True):
    """A request in answers of the console."""

    status: ActStatus
    request: Requested
    approved_by: tuple[str, ...]
    approvers: int | None  # who must approve it by the site's list now; null: it is not allowed any more
    ended: str  # why it is not handed over; "": it may be, or was
    handed: str | None  # UTC; null: it was not
    result: Resulted | None  # the last one
    measured: tuple[Measured, ...]


def proposal_document(proposal: Proposal) -> Document:
    """Return the dry run of a change."""
    place = f"{proposal.store} at {site_time(proposal.state_time, seconds=True)}"
    lines = [
        f"on {proposal.target}",
        *([] if proposal.precondition is None else [f"if {proposal.precondition}"]),
        *([] if proposal.risk is None else [f"risk: {proposal.risk}"]),
        f"way back: {proposal.undo or 'it changes no attribute'}",
        f"whether it has run: {proposal.look}",
        f"hash: {proposal.sha256}",
    ]
    parts: list[Part] = [
        Text(f"{place}: {proposal.summary} ({proposal.action}, step {proposal.step})"),
        Code(proposal.language, proposal.statement),
        _GAP,
        Items(lines, indent=2),
        _GAP,
        Text(f"{as_span(DEFAULT_HORIZON_S)} ahead, if the traffic continues:"),
        _effect(proposal.before, proposal.after),
        _GAP,
        Text("Nothing was changed."),
    ]
    return Document(f"Dry run of {proposal.action}", parts, proposal)


def _effect(before: Expectation, after: Expectation) -> Table:
    rows = [("as it is", *cells(before)[:4]), ("with it", *cells(after)[:4])]
    return Table(_EFFECT_HEADINGS, rows, {"probability"})


def request_document(views: Sequence[ActView]) -> Document:
    """Return requests."""
    if not views:
        return Document("Requests", [Text("nothing was requested")], views)
    parts: list[Part] = []
    for view in views:
        request = view.request
        parts += [_GAP] if parts else []
        needed = "" if view.approvers is None else f" of {view.approvers}"
        approved = f"approved by {', '.join(view.approved_by)}" if view.approved_by else "not approved"
        lines = [
            f"{request.language} on {request.target}: {request.statement}",
            f"hash: {request.sha256}",
            f"requested by {request.who} at {site_time(request.time)}, for {request.action} of {request.alert_id}",
            f"{approved} ({len(view.approved_by)}{needed}), expires {site_time(request.expires)}",
            f"full {_full(request.before)}; with it {_full(request.after)}",
            f"way back: {request.undo or 'it changes no attribute'}",
            *([f"ended: {view.ended}"] if view.ended else []),
            *([] if view.handed is None else [f"handed over at {site_time(view.handed)}"]),
            *([] if view.result is None else [f"{view.result.status} by {view.result.who}: {view.result.text}"]),
            *(_measured(own) for own in view.measured),
        ]
        parts += [Text(f"{request.id}  {view.status}  {request.store}"), Items(lines, indent=2)]
    return Document("Requests", parts, views)


def _full(outlook: Expectation) -> str:
    resource, middle, _, probability, _ = cells(outlook)
    return f"{middle} ({resource}, {probability})"


def _measured(own: Measured) -> str:
    usage = "usage not known" if own.usage_pct is None else f"{own.usage_pct:.1f} % in use"
    full = "" if own.full_s is None else f", full in {as_span(own.full_s)} by the forecast"
    done = "its events do not show it" if own.done is None else own.done
    return f"{as_span(own.after_s)} later: {usage}{full}, alert {own.alert}; {done}"
