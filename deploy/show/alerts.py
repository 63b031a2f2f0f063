"""Alerts as text: a line for a pipe, some lines in colour for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from streams.kafka.subscribe import AlertRecord, Filler

STYLES = {"warning": "yellow", "critical": "bold red", "full": "bold white on red"}
CLEARED = "green"


def in_one_line(alert: AlertRecord) -> str:
    """An alert on one line: when, what, how bad, where, how full, why, who fills it; two spaces between."""
    data = alert.data
    fillers = _filled_by(data.fillers)
    parts = [
        data.time,
        f"{alert.change:<7}",
        f"{data.severity:<8}",
        data.store,
        data.resource,
        data.condition,
        "-" if data.usage_pct is None else f"{data.usage_pct:.1f}%",
        data.cause,
    ]
    return "  ".join(parts) + (f"  [{fillers}]" if fillers else "")


def in_colour(alert: AlertRecord) -> Text:
    """An alert for a terminal: a coloured head, then cause, fillers and actions on lines of their own."""
    data = alert.data
    style = CLEARED if alert.change == "cleared" else STYLES.get(data.severity, "bold")
    text = Text.assemble(
        (f"{data.time} ", "dim"),
        (f" {alert.change if alert.change == 'cleared' else data.severity} ", style),
        (f" {data.store} ", "bold"),
        f"{data.resource} {data.condition}" + ("" if data.usage_pct is None else f" {data.usage_pct:.1f}%"),
    )
    if alert.change == "updated":
        text.append(" (updated)", "dim")
    if data.cause:
        text.append(f"\n    {data.cause}")
    if fillers := _filled_by(data.fillers):
        text.append(f"\n    filled by {fillers}")
    if alert.change != "cleared":
        for action in data.actions:
            text.append(f"\n    -> {action}")
    return text


def _filled_by(fillers: Sequence[Filler]) -> str:
    """The queues that fill, with their shares; those that round to nothing are left out."""
    return ", ".join(f"{filler.queue} {filler.share:.0%}" for filler in fillers if round(100 * filler.share))
