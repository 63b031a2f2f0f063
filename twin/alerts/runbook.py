"""The runbook of alerts: rows of `runbook.toml`, and of the site's own file, chosen by condition and facts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from twin.conditions import Condition
from twin.estate.runbook import ActionRow, StepRow, placeholders, read_runbook
from twin.records import Action, Step

NOTHING: Mapping[str, str] = {}
_ROWS = read_runbook(Path(__file__).with_name("runbook.toml"))
if _without := set(Condition).difference(*(row.conditions for row in _ROWS)):
    raise TypeError(f"condition {min(_without)} lacks an action; expected: a row of runbook.toml for it")


class Facts(NamedTuple):
    """Facts that hold where an alert opens, texts of placeholders, steps of procedures."""

    names: frozenset[str] = frozenset()
    values: Mapping[str, str] = NOTHING
    procedures: Mapping[str, tuple[Step, ...]] = {}

    def adding(self, *names: str, **values: str) -> Facts:
        """Return these with further facts and texts."""
        return self._replace(names=self.names | {*names}, values={**self.values, **values})

    def where(self, **facts: object) -> Facts:
        """Return these with those facts that are true."""
        return self.adding(*(name for name, is_true in facts.items() if is_true))

    def by(self, **procedures: tuple[Step, ...]) -> Facts:
        """Return these with further procedures."""
        return self._replace(procedures={**self.procedures, **procedures})


class Runbook:
    """Actions by condition; own: the rows of the site, which stand in front, or in place of one with their id."""

    def __init__(self, own: tuple[ActionRow, ...] = ()) -> None:
        self._own = own

    def actions(self, condition: str, facts: Facts, effects: Mapping[str, str] = NOTHING) -> tuple[Action, ...]:
        """Return the actions for a condition, the best first. effects: effect on the forecast, by action."""
        own = [row for row in self._own if _applies(row, condition, facts)]
        ours = [row for row in _ROWS if _applies(row, condition, facts)]
        if any(row.instead for row in own):
            own, ours = [row for row in own if row.instead], []
        own_rows = {row.id: row for row in reversed(own)}  # of two with an id the first
        beside = [row for row in own if row is own_rows[row.id] and row.id not in {other.id for other in ours}]
        return tuple(_fill(row, facts, effects) for row in (*beside, *(own_rows.get(row.id, row) for row in ours)))

    def action(self, action: str, condition: str, facts: Facts) -> Action | None:
        """Return the action of an id for a condition."""
        return next((own for own in self.actions(condition, facts) if own.id == action), None)


@cache
def runbook_of(rows: tuple[ActionRow, ...]) -> Runbook:
    """Return the runbook with rows of a site."""
    return Runbook(rows)


OURS = runbook_of(())


def _holds(row: ActionRow | StepRow, facts: Facts) -> bool:
    return facts.names.issuperset(row.when) and facts.names.isdisjoint(row.unless)


@cache
def _needs(row: ActionRow) -> frozenset[str]:
    """Return the placeholders and procedures without which a row does not apply: what they stand for is not there."""
    return frozenset(name for text in row.texts for name in placeholders(text))


def _applies(row: ActionRow, condition: str, facts: Facts) -> bool:
    return condition in row.conditions and _holds(row, facts) and facts.values.keys() >= _needs(row)


def _fill(row: ActionRow, facts: Facts, effects: Mapping[str, str]) -> Action:
    def text(own: str | None) -> str | None:
        return None if own is None else own.format_map(facts.values)

    steps: list[Step] = [] if row.command is None else [Step("Run this", text(row.command))]
    for step in row.steps:
        if isinstance(step, str):
            steps += facts.procedures.get(step, ())
        elif _holds(step, facts):
            steps.append(Step(step.say.format_map(facts.values), text(step.command)))
    return Action(
        id=row.id,
        summary=row.say.format_map(facts.values),
        effect=effects.get(row.id),
        precondition=text(row.precondition),
        steps=tuple(steps),
        risk=text(row.risk),
        undo=text(row.undo),
    )
