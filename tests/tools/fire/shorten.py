"""A failing plan made shorter: actions are left out as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tests.tools.fire.plan import Action, Plan, needs

MAX_RUNS = 16  # each takes a minute or more


def shorten(plan: Plan, difference_of: Callable[[Plan], str], max_runs: int = MAX_RUNS) -> Plan:
    """Return a plan that still fails with as few actions as `max_runs` runs can find, with its difference.

    Args:
        plan: a plan that fails; it has a difference.
        difference_of: runs a plan and returns the difference with which it fails; empty: it passes.
        max_runs: bound of the calls.
    """
    size = max(1, len(plan.actions) // 2)
    while max_runs > 0:
        is_shorter = False
        start = 0
        while start < len(plan.actions) and max_runs > 0:
            actions = _with_validate(plan.actions[:start] + plan.actions[start + size :])
            shorter = msgspec.structs.replace(plan, actions=actions)
            if len(actions) < len(plan.actions) and not needs(shorter):
                max_runs -= 1
                difference = difference_of(shorter)
                if difference:
                    plan = msgspec.structs.replace(shorter, difference=difference)
                    is_shorter = True
                    continue
            start += size
        if size == 1 and not is_shorter:
            break
        size = max(1, size // 2)
    return plan


def _with_validate(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return actions that end with a validation."""
    if actions and actions[-1].kind != "validate":
        return (*actions, Action(kind="validate"))
    return actions
