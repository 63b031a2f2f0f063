"""MEASURE: what the real system holds beyond the model (contract.md, 7, Events).

The first MEASURE of a store sets its baseline; gets of messages the model never saw draw it down, evenly by message;
each MEASURE says how far the model is off.
"""

from typing import Any

from tests.naive.pools import rounded_up


def beyond(measured: dict[str, Any], name: str, model: int) -> int:
    """Measured less model, never below 0; 0 for what was not measured (our reading), which null says too."""
    return max(0, measured[name] - model) if measured.get(name) is not None else 0


class NaiveBaseline:
    """What the real system held beyond the model at the first MEASURE."""

    def __init__(self, shown: dict[str, Any], unmatched_gets: int) -> None:
        """`shown`: as the state record shows it, amounts by name, `messages` among them."""
        self.shown = shown
        self.amounts = flat(shown)
        self.unmatched_before = unmatched_gets

    def left(self, name: str, unmatched_gets: int) -> int:
        """What is left of an amount after the unmatched gets since then: each took one message, evenly.

        `name`: as it is shown, of a data set "smds/QM01/blocks". Our reading: the part drawn rounds down; where no
        messages were measured nothing can be drawn.
        """
        amount, messages = self.amounts.get(name, 0), self.amounts["messages"]
        if messages == 0:
            return amount
        drawn = min(max(0, unmatched_gets - self.unmatched_before), messages)
        return amount - amount * drawn // messages

    def restart(self, persistent: str, nonpersistent: str, unmatched_gets: int) -> None:
        """A restart takes what is nonpersistent of it too (our reading), with its share of the messages.

        `persistent`, `nonpersistent`: the names of the two amounts. Our reading: what is left begins anew, messages
        rounded up; where neither was measured no message is known to be gone.
        """
        kept, lost = self.left(persistent, unmatched_gets), self.left(nonpersistent, unmatched_gets)
        messages = self.left("messages", unmatched_gets)
        if kept + lost > 0:
            messages = rounded_up(messages * kept, kept + lost)
        self.amounts |= {persistent: kept, nonpersistent: 0, "messages": messages}
        self.unmatched_before = unmatched_gets

    def record(self) -> dict[str, Any]:
        """As the state record shows it: what was measured, whatever is left of it."""
        return self.shown


def flat(amounts: dict[str, Any], prefix: str = "") -> dict[str, int]:
    """Amounts within amounts by one name: {"smds": {"QM01": {"blocks": 4}}} as {"smds/QM01/blocks": 4}."""
    found: dict[str, int] = {}
    for name, amount in amounts.items():
        found |= flat(amount, f"{prefix}{name}/") if isinstance(amount, dict) else {f"{prefix}{name}": amount}
    return found


def drift_pct(compared: list[tuple[int, int, int]], before: float | None) -> float | None:
    """Model less measured, in percent of the total, the worst resource (contract.md, 7, Events).

    `compared`: model (what is left of the baseline included), measured and total of each resource measured. Our
    reading: the first of several that are equally far off, and `before` stays where none of them was measured.
    """
    drifts = [100.0 * (model - measured) / total for model, measured, total in compared if total > 0]
    return max(drifts, key=abs) if drifts else before
