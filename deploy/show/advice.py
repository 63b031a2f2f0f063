"""Advice as text."""

from __future__ import annotations

from collections.abc import Sequence

from twin.advise import Advice
from twin.estate import format_size
from twin.members import MemberAdvice
from twin.proof import Proof

_NO_MEMBER = (
    "Another queue manager in the group is no plan: all members share entries and elements, and which share of the\n"
    "puts would go to a data set of its own is not known; `mqtwin size smds` plans that one for a given share."
)


def print_advice(advice: Advice) -> None:
    """Print whether the promise is kept, then plans with their steps, or what could be smaller."""
    promise = advice.promise
    first = "" if advice.outcome.resource is None else f", most often {advice.outcome.resource} first"
    futures = f"{100 * advice.outcome.probability:.0f} % of all futures"
    print(f"{advice.store} at {advice.time[:19]}Z: full within {promise.hours:g} h in {futures}{first}.")
    allowed = f"at most {100 * (1 - promise.confidence):.0f} %"
    if not advice.is_kept and not advice.plans:
        print(f"No change of its settings makes that {allowed}.")
    for i, plan in enumerate(advice.plans, 1):
        print(f"\nPlan {i}, {plan.title}: then in {100 * plan.outcome.probability:.0f} %, {allowed} was asked for.")
        for step in plan.steps:
            print(f"  -> {step}")
    resource = advice.outcome.resource or ""
    if not advice.is_kept and (resource in ("entries", "elements") or resource.startswith("smds/")):
        print(f"\n{_NO_MEMBER}")
    for text in advice.left_out:
        print(f"\nLeft out, {text}")
    if advice.is_kept:
        sizes = [f"{name} {size_text(name, value)}" for name, value in advice.smaller.items()]
        print(f"That is {allowed}. Smaller, one at a time, would do: {', '.join(sizes) or 'nothing'}.")


def print_members(advice: MemberAdvice) -> None:
    """Print how many members carry the load, and what to do."""
    rates = f"{advice.load_per_s:,.0f} messages/s to carry, {advice.active} active members carry"
    print(f"{advice.store} at {advice.time[:19]}Z: {rates} {advice.carried_per_s:,.0f}.")
    if advice.is_enough:
        spare = advice.active - advice.members
        print(f"That is enough. {spare} fewer would do." if spare else "That is enough, and none could be spared.")
        return
    print(f"\nPlan, {advice.members} members:")
    for step in advice.steps:
        print(f"  -> {step}")


def print_proofs(proofs: Sequence[Proof], recording: str) -> None:
    """Print what a recording comes to as it is and with each plan."""
    print(f"\n{recording}, in which {proofs[0].recorded:,} messages were refused with 2192, asked again:")
    for proof in proofs:
        peak = max(proof.usage_pct, default=0.0)
        print(f"  {proof.title}: {proof.refused:,} refused, at most {peak:.1f} % of its fullest resource in use")


def size_text(name: str, value: int) -> str:
    """Return the value of a setting of size: bytes, or pages."""
    return f"{value:,} pages" if name.endswith("pages") else format_size(value)
