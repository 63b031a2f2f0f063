"""Advice as text."""

from __future__ import annotations

from twin.advise import Advice
from twin.estate import format_size


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
    if advice.is_kept:
        sizes = [f"{name} {_size(name, value)}" for name, value in advice.smaller.items()]
        print(f"That is {allowed}. Smaller, one at a time, would do: {', '.join(sizes) or 'nothing'}.")


def _size(name: str, value: int) -> str:
    return f"{value:,} pages" if name == "pages" else format_size(value)
