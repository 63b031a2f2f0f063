"""Answers to a what-if and advice: tables, lines and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.show.document import TERMINAL, Document, Table, Text
from deploy.show.terminal import print_wrapped
from twin.alerts.texts import is_full_now
from twin.conditions import Pool, Resource
from twin.errors import UsageError
from twin.estate import format_size
from twin.outputs import Draft
from twin.planning.advise import ALONE, Advice, Promise
from twin.planning.members import MemberAdvice
from twin.planning.proof import Proof
from twin.planning.whatif import UNCHANGED, Answer, FillOutcome
from twin.units import as_estimate, as_rate, as_span

HEADINGS = ("", "full first", "time to full", "p10 to p90", "probability", "messages that fit")
_RIGHT = frozenset({"probability", "messages that fit"})
_LAST_MINUTE = 180  # beyond which the axis of a picture is in hours
_SUFFIXES = (".svg", ".png")

_NO_MEMBER = (
    "Another queue manager in the group is no plan: all members share entries and elements, and which share of"
    " the puts would go to a data set of its own is not known; `mqtwin size smds` plans that one for a given share."
)


def answer_document(answer: Answer) -> Document:
    """Return an answer: the moment, the table that compares it as it is with the question, and why alerts differ."""
    title = f"{answer.store} at {answer.time[:19]}Z, {as_span(answer.horizon_s)} ahead, if the traffic continues"
    rows = [("as it is", *cells(answer.before)), (question(answer), *cells(answer.after))]
    beside = beside_alert(answer).strip()
    parts = [Text(title, only=TERMINAL), Table(HEADINGS, rows, _RIGHT), *([Text(beside)] if beside else [])]
    return Document(title, parts, answer)


def beside_alert(answer: Answer) -> str:
    """Return why alerts show a lower probability, a sentence behind a space; empty where they do not."""
    alert = answer.alert_probability
    if alert is None or round(100 * alert) >= round(100 * answer.before.probability):
        return ""
    return f" Alerts show {100 * alert:.0f} %: they allow for traffic that changes."


def question(answer: Answer) -> str:
    """Return what was changed, such as `offld1_th=60, gets x 0`."""
    factors = {name: getattr(answer.traffic, name) for name in answer.traffic.__struct_fields__}
    changed = [f"{name}={value}" for name, value in answer.settings.items()]
    changed += [f"{name} x {value:g}" for name, value in factors.items() if value != getattr(UNCHANGED, name)]
    return ", ".join(changed) or "unchanged"


def cells(outcome: FillOutcome) -> tuple[str, ...]:
    """Return an outcome as text: full first, time to full, p10 to p90, probability, messages that fit."""
    fit = "" if outcome.messages_that_fit is None else f"{outcome.messages_that_fit:,}"
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
    axes.set_title(f"{answer.store} at {answer.time[:16].replace('T', ' ')}, if the traffic continues", fontsize=10)
    with Draft(path) as draft:
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(draft.file, format=path.suffix[1:], metadata=metadata, dpi=130)
    plt.close(figure)


def print_advice(advice: Advice, proofs: Sequence[Proof] = (), recording: str = "") -> None:
    """Print whether the promise is kept, then plans with their proofs and steps, or what could be smaller.

    Args:
        advice: the advice.
        proofs: as of `Proven`; none where there is no recording.
        recording: name of the recording.
    """
    promise, outcome = advice.promise, advice.outcome
    required = f", with {required_text(advice)}" if advice.required else ""
    print_wrapped(f"{advice.store} at {advice.time[:19]}Z{required}: {expected(outcome, promise)}.")
    if advice.required and proofs:
        print_wrapped(f"With {required_text(advice)} alone {proof_text(proofs, ALONE, recording)}.")
    allowed = f"at most {100 * (1 - promise.confidence):.0f} %"
    if not advice.plans and (advice.required or not advice.is_kept):
        print_wrapped(f"No change of its settings {'holds' if advice.left_out else f'makes that {allowed}'}.")
    for i, plan in enumerate(advice.plans, 1):
        print()
        claimed = f"{futures(plan.outcome, promise)} ({allowed} was asked for)"
        print_wrapped(f"Plan {i}, {plan.title}: {claimed}; {proof_text(proofs, plan.title, recording)}.")
        for step in plan.steps:
            print_wrapped(f"  -> {step}", "     ")
    pool = Resource.parse(outcome.resource or "").pool
    no_member = not advice.is_kept and pool in (Pool.ENTRIES, Pool.ELEMENTS, Pool.SMDS)
    for text in [*([_NO_MEMBER] if no_member else []), *(f"Left out, {text}." for text in advice.left_out)]:
        print()
        print_wrapped(text)
    if advice.is_kept and not advice.required:
        smaller = "" if advice.smaller else " nothing."
        print()
        print_wrapped(
            f"That is {allowed}. Smaller, one at a time, would do for {promise.hours:g} h of this traffic:{smaller}"
        )
        for name, settings in advice.smaller.items():
            print_wrapped(f"  {settings_text(settings)}; {proof_text(proofs, name, recording)}", "    ")


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
    """Return what a recording comes to with a plan or a smaller size.

    Args:
        proofs: as of `Proven`.
        title: that of its proof.
        recording: name of the recording.
    """
    if not proofs:
        return "not proven: no recording"
    proof = next(proof for proof in proofs if proof.title == title)
    refused = f"{proof.refused:,} refused ({proofs[0].refused:,} as it is)"
    return f"in {recording} {refused}, at most {proof.peak_pct:.1f} % in use"


def print_members(advice: MemberAdvice) -> None:
    """Print how many members carry the load, and what to do."""
    rates = f"{advice.load_per_s:,.0f} messages/s to carry, {advice.active} active members carry"
    print_wrapped(f"{advice.store} at {advice.time[:19]}Z: {rates} {advice.carried_per_s:,.0f}.")
    if advice.is_enough:
        spare = advice.active - advice.members
        print(f"That is enough. {spare} fewer would do." if spare else "That is enough, and none could be spared.")
        return
    print(f"\nPlan, {advice.members} members:")
    for step in advice.steps:
        print_wrapped(f"  -> {step}", "     ")


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return sizes as text, the first one and what goes along with it: bytes, or pages."""
    first, *along = (
        f"{name} {value:,} pages" if name.endswith("pages") else f"{name} {format_size(value)}"
        for name, value in settings.items()
    )
    return f"{first} (with {', '.join(along)})" if along else first
