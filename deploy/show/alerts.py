"""Alerts as text: one line for a pipe, several coloured lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from streams.kafka.subscribe import AlertRecord, Filler
from twin.conditions import CLEARED, CRITICAL, FULL, UPDATED, WARNING, WATCH

STYLES = {WARNING: "yellow", CRITICAL: "bold red", FULL: "bold white on red"}
CLEARED_STYLE = "green"


def alert_line(alert: AlertRecord) -> str:
    """Return an alert on one line, fields separated by two spaces.

    The fields: time, change, severity ("watch" for one that wakes nobody), store, resource, condition, usage, cause,
    and in brackets the fillers.
    """
    data = alert.data
    fillers = _fillers_text(data.fillers)
    fields = [
        data.time,
        f"{alert.change:<7}",
        f"{data.level if data.level == WATCH else data.severity:<8}",
        data.store,
        data.resource,
        data.condition,
        "-" if data.usage_pct is None else f"{data.usage_pct:.1f}%",
        data.cause,
    ]
    return "  ".join(fields) + (f"  [{fillers}]" if fillers else "")


def alert_block(alert: AlertRecord) -> Text:
    """Return an alert for a terminal: a coloured heading, then cause, fillers and actions on lines of their own."""
    data = alert.data
    style = CLEARED_STYLE if alert.change == CLEARED else STYLES.get(data.severity, "bold")
    word = WATCH if data.level == WATCH else data.severity
    text = Text.assemble(
        (f"{data.time} ", "dim"),
        (f" {alert.change if alert.change == CLEARED else word} ", style),
        (f" {data.store} ", "bold"),
        f"{data.resource} {data.condition}" + ("" if data.usage_pct is None else f" {data.usage_pct:.1f}%"),
    )
    if alert.change == UPDATED:
        text.append(" (updated)", "dim")
    if data.cause:
        text.append(f"\n    {data.cause}")
    if fillers := _fillers_text(data.fillers):
        text.append(f"\n    filled by {fillers}")
    for reason in data.evidence:
        text.append(f"\n    because {reason}")
    if alert.change != CLEARED:
        for action in data.actions:
            text.append(f"\n    -> {action}")
    return text


def _fillers_text(fillers: Sequence[Filler]) -> str:
    """Return the queues that fill the resource, with their shares. Shares that round to 0 % are left out."""
    return ", ".join(f"{filler.queue} {filler.share:.0%}" for filler in fillers if round(100 * filler.share))
