"""MEASURE: what the real system holds beyond the model (contract.md, 7, Events).

The first MEASURE of a store sets its baseline; gets of messages the model never saw draw it down, evenly by message;
each MEASURE says how far the model is off.
"""

from typing import Any


def beyond(measured: dict[str, Any], name: str, model: int) -> int:
    """Measured less model, never below 0; 0 for what was not measured (our reading), which null says too."""
    return max(0, measured[name] - model) if measured.get(name) is not None else 0


class NaiveBaseline:
    """What the real system held beyond the model at the first MEASURE."""

    def __init__(self, shown: dict[str, Any], unmatched_gets: int) -> None:
        """`shown`: as the state record shows it, amounts by name, `messages` among them."""
        self.shown = shown
        self.amounts = shown  # as measured, or what a restart left of them
        self.unmatched_before = unmatched_gets

    def left(self, name: str, unmatched_gets: int) -> int:
        """What is left of an amount after the unmatched gets since then: each took one message, evenly.

        `name`: as it is shown, of a data set "smds/QM01/blocks". Our reading: the part drawn rounds down; where no
        messages were measured nothing can be drawn.
        """
        amount: Any = self.amounts
        for part in name.split("/"):
            amount = amount.get(part, {})
        if amount == {}:
            return 0
        messages: int = self.amounts["messages"]
        if messages == 0:
            return int(amount)
        drawn = min(max(0, unmatched_gets - self.unmatched_before), messages)
        return int(amount - amount * drawn // messages)

    def restart(self, persistent: str, nonpersistent: str, unmatched_gets: int) -> None:
        """A restart takes what is nonpersistent, and as many of the messages, evenly by storage (our reading).

        `persistent`, `nonpersistent`: the names of the two amounts. Their messages round up in favour of what stays.
        """
        stays, goes = self.left(persistent, unmatched_gets), self.left(nonpersistent, unmatched_gets)
        messages = self.left("messages", unmatched_gets)
        if stays + goes > 0:
            messages = messages - messages * goes // (stays + goes)
        self.amounts = {"messages": messages, persistent: stays, nonpersistent: 0}
        self.unmatched_before = unmatched_gets

    def record(self) -> dict[str, Any]:
        """As the state record shows it: what was measured, whatever is left of it."""
        return self.shown


def drift_pct(compared: list[tuple[int, int, int]], before: float | None) -> float | None:
    """Model less measured, in percent of the total, the worst resource (contract.md, 7, Events).

    `compared`: model (what is left of the baseline included), measured and total of each resource measured. Our
    reading: the first of several that are equally far off, and `before` stays where none of them was measured.
    """
    drifts = [100.0 * (model - measured) / total for model, measured, total in compared if total > 0]
    return max(drifts, key=abs) if drifts else before
