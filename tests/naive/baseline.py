"""MEASURE: the contents of the real system beyond the model.

The first MEASURE of a store sets its baseline. Gets of messages that the model never saw draw it down evenly by
message. Each MEASURE gives the error of the model. The rule: docs/events.md#measurements.
"""

from collections.abc import Sequence
from typing import Any

from tests.naive.pools import rounded_up


def beyond(measured: dict[str, Any], name: str, model: int) -> int:
    """Return measured minus model, at least 0; 0 for what was not measured or is null [assumed]."""
    return max(0, measured[name] - model) if measured.get(name) is not None else 0


class NaiveBaseline:
    """The contents of the real system beyond the model at the first MEASURE."""

    def __init__(self, fields: dict[str, Any], unmatched_gets: int, known: set[str]) -> None:
        """Set the baseline to amounts by name, `messages` among them, as the state record shows them.

        `known` has the names, as in `flat`, of the amounts that follow from the measurement; others are assumed.
        """
        self.fields = fields
        self.amounts = flat(fields)
        self.known = known
        self.unmatched_before = unmatched_gets

    def left(self, name: str, unmatched_gets: int) -> int:
        """Return what is left of an amount after the unmatched gets since the baseline, each of which took one message.

        `name` is as in `flat`, such as "smds/QM01/blocks". Assumed: the part drawn down is rounded down, and nothing
        can be drawn down if no messages were measured.
        """
        amount, messages = self.amounts.get(name, 0), self.amounts["messages"]
        if messages == 0:
            return amount
        drawn = min(max(0, unmatched_gets - self.unmatched_before), messages)
        return amount - amount * drawn // messages

    def restart(self, persistent: str, nonpersistent: str, unmatched_gets: int) -> None:
        """Drop the nonpersistent part of the baseline with its share of the messages, as a restart does [assumed].

        `persistent` and `nonpersistent` are the names of the two amounts. Assumed: what is left becomes the new
        baseline, messages are rounded up, and no message is lost if neither amount was measured.
        """
        remaining, lost = self.left(persistent, unmatched_gets), self.left(nonpersistent, unmatched_gets)
        messages = self.left("messages", unmatched_gets)
        if remaining + lost > 0:
            messages = rounded_up(messages * remaining, remaining + lost)
        self.amounts |= {persistent: remaining, nonpersistent: 0, "messages": messages}
        self.unmatched_before = unmatched_gets

    def record(self) -> dict[str, Any]:
        """Return the baseline of the state record: as measured, whatever is left of it; null for what was not."""
        return self._with_nulls(self.fields, "")

    def _with_nulls(self, fields: dict[str, Any], prefix: str) -> dict[str, Any]:
        return {
            name: self._with_nulls(amount, f"{prefix}{name}/")
            if isinstance(amount, dict)
            else (amount if f"{prefix}{name}" in self.known else None)
            for name, amount in fields.items()
        }


def flat(amounts: dict[str, Any], prefix: str = "") -> dict[str, int]:
    """Return nested amounts by path: {"smds": {"QM01": {"blocks": 4}}} as {"smds/QM01/blocks": 4}."""
    by_path: dict[str, int] = {}
    for name, amount in amounts.items():
        by_path |= flat(amount, f"{prefix}{name}/") if isinstance(amount, dict) else {f"{prefix}{name}": amount}
    return by_path


def drift_pct(compared: Sequence[tuple[float, int, int]], before: float | None) -> float | None:
    """Return the largest difference of model and measured, in percent of the total.

    `compared` has (model, measured, total) of each resource measured; the model includes what is left of the baseline.
    Assumed: the first of several equal ones counts, and `before` stays if no resource was measured.
    """
    drifts = [100.0 * (model - measured) / total for model, measured, total in compared if total > 0]
    return max(drifts, key=abs) if drifts else before
