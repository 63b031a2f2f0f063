"""Figures as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence


def rate(events_a_second: float) -> str:
    """`1.52 M` or `210,000`: two or three digits that mean something."""
    if events_a_second >= 1e6:
        return f"{events_a_second / 1e6:.2f} M"
    return f"{round(events_a_second, -3):,.0f}"


def us(microseconds: float) -> str:
    """Microseconds."""
    return f"{microseconds:.2f}"


def share(part: float, whole: float) -> str:
    """`34 %`."""
    return f"{100 * part / whole:.0f} %"


def ms(milliseconds: float) -> str:
    """Milliseconds."""
    return f"{milliseconds:,.0f} ms"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; all columns but the first stand to the right."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
