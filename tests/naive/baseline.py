"""MEASURE: what the real system holds beyond the model (contract.md, 7, Events).

The first MEASURE of a store sets its baseline; gets of messages the model never saw draw it down, evenly by message;
each MEASURE says how far the model is off.
"""

from typing import Any


def beyond(measured: dict[str, Any], name: str, model: dict[str, Any]) -> int:
    """Measured less model, never below 0; 0 for what was not measured (our reading)."""
    return max(0, measured[name] - model[name]) if name in measured else 0


class NaiveBaseline:
    """What the real system held beyond the model at the first MEASURE."""

    def __init__(self, measured: dict[str, Any], model: dict[str, Any], unmatched_gets: int) -> None:
        """`measured`: any fields of a state record; `model`: the state record then, without any baseline.

        Our reading: where messages were not measured, each entry is one message.
        """
        self.unmatched_before = unmatched_gets
        self.entries = beyond(measured, "ents_used", model)
        self.elements = beyond(measured, "elems_used", model)
        self.messages = beyond(measured, "messages", model) if "messages" in measured else self.entries
        self.smds: dict[str, dict[str, int]] = {}
        for qmgr, fields in measured.get("smds", {}).items():
            if qmgr in model["smds"]:
                self.smds[qmgr] = {
                    "blocks": beyond(fields, "blocks_used", model["smds"][qmgr]),
                    "pages": beyond(fields, "pages_used", model["smds"][qmgr]),
                    "messages": beyond(fields, "messages", model["smds"][qmgr]),
                }

    def left(self, amount: int, unmatched_gets: int) -> int:
        """What is left of an amount after the unmatched gets since then: each took one message, evenly.

        Our reading: the part drawn rounds down; where no messages were measured nothing can be drawn.
        """
        if self.messages == 0:
            return amount
        drawn = min(max(0, unmatched_gets - self.unmatched_before), self.messages)
        return amount - amount * drawn // self.messages

    def record(self) -> dict[str, Any]:
        """As the state record shows it."""
        return {"messages": self.messages, "entries": self.entries, "elements": self.elements, "smds": self.smds}


def drift_pct(measured: dict[str, Any], twin: dict[str, Any], before: float | None) -> float | None:
    """Model less measured, in percent of the total, the worst resource (contract.md, 7, Events).

    `twin`: the state record, what is left of the baseline included. Resources: entries, elements, blocks of each data
    set, in that order, those measured. Our reading: the first of several that are equally far off, and `before` stays
    where none of them was measured.
    """
    drifts = []
    if "ents_used" in measured:
        drifts.append(100.0 * (twin["ents_used"] - measured["ents_used"]) / twin["ents_max"])
    if "elems_used" in measured:
        drifts.append(100.0 * (twin["elems_used"] - measured["elems_used"]) / twin["elems_max"])
    for qmgr in sorted(measured.get("smds", {})):
        data_set = twin["smds"].get(qmgr)
        fields = measured["smds"][qmgr]
        if data_set and data_set["blocks_total"] > 0 and "blocks_used" in fields:
            drifts.append(100.0 * (data_set["blocks_used"] - fields["blocks_used"]) / data_set["blocks_total"])
    return max(drifts, key=abs) if drifts else before
