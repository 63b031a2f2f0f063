"""Advice as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from deploy.show.wrapping import wrapped
from twin.estate import format_size
from twin.planning.advise import Advice
from twin.planning.members import MemberAdvice
from twin.planning.proof import Proof

_NO_MEMBER = (
    "Another queue manager in the group is no plan: all members share entries and elements, and which share of"
    " the puts would go to a data set of its own is not known; `mqtwin size smds` plans that one for a given share."
)


def print_advice(advice: Advice) -> None:
    """Print whether the promise is kept, then plans with their steps, or what could be smaller."""
    promise = advice.promise
    first = "" if advice.outcome.resource is None else f", most often {advice.outcome.resource} first"
    futures = f"{100 * advice.outcome.probability:.0f} % of all futures"
    _print(f"{advice.store} at {advice.time[:19]}Z: full within {promise.hours:g} h in {futures}{first}.")
    allowed = f"at most {100 * (1 - promise.confidence):.0f} %"
    if not advice.is_kept and not advice.plans:
        _print(f"No change of its settings makes that {allowed}.")
    for i, plan in enumerate(advice.plans, 1):
        print()
        _print(f"Plan {i}, {plan.title}: then in {100 * plan.outcome.probability:.0f} %, {allowed} was asked for.")
        for step in plan.steps:
            _print(f"  -> {step}", "     ")
    resource = advice.outcome.resource or ""
    no_member = not advice.is_kept and (resource in ("entries", "elements") or resource.startswith("smds/"))
    for text in [*([_NO_MEMBER] if no_member else []), *(f"Left out, {text}" for text in advice.left_out)]:
        print()
        _print(text)
    if advice.is_kept:
        smaller = "; ".join(settings_text(settings) for settings in advice.smaller.values()) or "nothing"
        span = f"{promise.hours:g} h of this traffic"
        _print(f"That is {allowed}. Smaller, one at a time, would do for {span}: {smaller}.")


def print_members(advice: MemberAdvice) -> None:
    """Print how many members carry the load, and what to do."""
    rates = f"{advice.load_per_s:,.0f} messages/s to carry, {advice.active} active members carry"
    _print(f"{advice.store} at {advice.time[:19]}Z: {rates} {advice.carried_per_s:,.0f}.")
    if advice.is_enough:
        spare = advice.active - advice.members
        print(f"That is enough. {spare} fewer would do." if spare else "That is enough, and none could be spared.")
        return
    print(f"\nPlan, {advice.members} members:")
    for step in advice.steps:
        _print(f"  -> {step}", "     ")


def print_proofs(advice: Advice, proofs: Sequence[Proof], recording: str) -> None:
    """Print what a recording comes to as it is, with each plan, and with each smaller size."""
    print()
    _print(f"{recording}, in which {proofs[0].recorded:,} messages were refused with 2192, asked again:")
    for proof in proofs:
        smaller = advice.smaller.get(proof.title)
        title = proof.title if smaller is None else settings_text(smaller)
        peak = max(proof.usage_pct, default=0.0)
        _print(f"  {title}: {proof.refused:,} refused, at most {peak:.1f} % of its fullest resource in use", "    ")


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return sizes as text, the first one and what goes along with it: bytes, or pages."""
    first, *along = (
        f"{name} {value:,} pages" if name.endswith("pages") else f"{name} {format_size(value)}"
        for name, value in settings.items()
    )
    return f"{first} (with {', '.join(along)})" if along else first


def _print(line: str, indent: str = "") -> None:
    print(wrapped(line, indent, is_terminal=sys.stdout.isatty()))
