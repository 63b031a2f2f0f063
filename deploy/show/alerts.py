"""Alerts as text: one line for a pipe, several coloured lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from deploy.show.terminal import fill
from twin.conditions import CLEARED, CRITICAL, FULL, UPDATED, WARNING, WATCH
from twin.records import AlertRecord, Filler

STYLES = {WARNING: "yellow", CRITICAL: "bold red", FULL: "bold white on red"}
CLEARED_STYLE = "green"
_INDENT = " " * 4
_NO_BREAK_SPACE = "\u00a0"


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
    return printable("  ".join(fields) + (f"  [{fillers}]" if fillers else ""))


def printable(text: str) -> str:
    """Return a text whose control characters are escaped, as in JSON: whoever writes a topic could steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == _NO_BREAK_SPACE else letter.encode("unicode_escape").decode()
        for letter in text
    )


def alert_block(alert: AlertRecord, width: int | None = None) -> Text:
    """Return an alert for a terminal: a coloured heading, then cause, fillers and actions on lines of their own.

    Args:
        alert: The alert.
        width: Characters of a line of the terminal, at which it is wrapped; None: not at all.
    """
    data = alert.data
    style = CLEARED_STYLE if alert.change == CLEARED else STYLES.get(data.severity, "bold")
    word = WATCH if data.level == WATCH else data.severity
    usage = "" if data.usage_pct is None else f"{data.usage_pct:.1f}%"
    heading = [
        (f"{data.time} ", "dim"),
        (f" {alert.change if alert.change == CLEARED else word} ", style),
        (f" {data.store}", "bold"),
        *((f" {word}", "") for word in (data.resource, data.condition, usage) if word),
    ]
    if alert.change == UPDATED:
        heading.append((" (updated)", "dim"))
    text = _fold([(printable(piece), piece_style) for piece, piece_style in heading], width)
    lines = [data.cause] if data.cause else []
    if fillers := _fillers_text(data.fillers):
        lines.append(f"filled by {fillers}")
    lines += [f"because {reason}" for reason in data.evidence]
    if alert.change != CLEARED:
        lines += [f"-> {action}" for action in data.actions]
    for line in lines:
        indented = f"{_INDENT}{printable(line)}"
        text.append("\n" + (indented if width is None else fill(indented, width, " " * 7)))
    return text


def _fold(pieces: Sequence[tuple[str, str]], width: int | None) -> Text:
    """Return pieces of text in their styles, on lines of `width` characters that break between pieces only."""
    text, column = Text(), 0
    for piece, style in pieces:
        if width is not None and column and column + cell_len(piece.rstrip()) > width:
            text.append("\n" + _INDENT)
            piece, column = piece.lstrip(), len(_INDENT)
        text.append(piece, style)
        column += cell_len(piece)
    return text


def _fillers_text(fillers: Sequence[Filler]) -> str:
    """Return the queues that fill the resource, with their shares. Shares that round to 0 % are left out."""
    return ", ".join(f"{filler.queue} {filler.share:.0%}" for filler in fillers if filler.share > 0.005)
