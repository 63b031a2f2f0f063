"""Alerts and incidents as text: one line for a pipe, several coloured lines for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from rich.cells import cell_len
from rich.text import Text

from deploy.show.document import ZONE, site_time
from deploy.show.terminal import fill, printable
from twin.base.conditions import CLEARED, CRITICAL, FULL, OPENED, PAGE, UPDATED, WARNING, WATCH
from twin.records import ROOT, AlertData, AlertRecord, Change, Filler, IncidentChange

STYLES = {WARNING: "yellow", CRITICAL: "bold red", FULL: "bold white on red"}
CLEARED_STYLE = "green"
_INDENT = " " * 4
_MAX_PARTS = 3  # of an incident that are named
_NOTES = {
    Change.PAGED: "a page",
    Change.ESCALATED: "worse",
    Change.RECOVERED: "puts succeed again",
    Change.REOPENED: "a page again",
    Change.OVER: "over",
}


def alert_line(alert: AlertRecord) -> str:
    """Return an alert on one line, fields separated by two spaces.

    The fields: time, change, severity ("watch" for one that wakes nobody), store, resource, condition, usage, cause,
    and in brackets the fillers.
    """
    data = alert.data
    fillers = _fillers_text(data.fillers)
    fields = [
        _when(data),
        f"{alert.change:<7}",
        f"{_word(alert):<8}",
        data.store,
        ", ".join(data.resources),
        data.condition,
        "-" if data.usage_pct is None else f"{data.usage_pct:.1f}%",
        data.cause,
    ]
    return printable("  ".join(fields) + (f"  [{fillers}]" if fillers else ""))


def _when(data: AlertData) -> str:
    """Return the time of an alert: at the site, or as in the record where the zone of the site is not known."""
    return data.time if ZONE.get() is UTC else site_time(data.time, seconds=True)


def is_shown(change: IncidentChange) -> bool:
    """Return True if a change of an incident is shown: what its root says until it is over, and its end.

    What an incident adds by its parts stands with the root; those that remain when it is over concern nobody.
    """
    incident, what, record = change
    if what is Change.OVER:
        return not record.is_open
    return what is not Change.UPDATED or (
        record.is_open and record.data.incident.role == ROOT and incident.root is record and not incident.is_over
    )


def incident_line(change: IncidentChange) -> str:
    """Return the line of the alert that changes an incident, and its open parts in brackets behind it."""
    parts = _parts_texts(change)
    return alert_line(change.record) + (printable(f"  [{'; '.join(parts)}]") if parts else "")


def incident_block(change: IncidentChange, width: int | None = None) -> Text:
    """Return the block of the alert that changes an incident, as alert_block, then a line for each open part."""
    text = alert_block(change.record, width, _NOTES.get(change.change, ""))
    for part in _parts_texts(change):
        line = f"{_INDENT}{printable(part)}"
        text.append("\n" + (line if width is None else fill(line, width, " " * 6)), "dim")
    return text


def _parts_texts(change: IncidentChange) -> list[str]:
    """Return the open alerts of an incident but the one that is shown, as short texts; of many the number."""
    parts = [part for part in change.incident.parts if part is not change.record]
    if change.change is Change.OVER:
        parts = list(change.incident.alerts.values())
    named = parts if len(parts) <= _MAX_PARTS else parts[: _MAX_PARTS - 1]
    texts = [f"+ {_word(part)} {', '.join(part.data.resources)} {part.data.condition}" for part in named]
    return texts if len(named) == len(parts) else [*texts, f"+{len(parts) - len(named)} parts"]


def _word(alert: AlertRecord) -> str:
    return WATCH if alert.data.level == WATCH else alert.data.severity


def alert_block(alert: AlertRecord, width: int | None = None, note: str = "") -> Text:
    """Return an alert for a terminal: its brief, a heading, then cause, fillers and actions on lines of their own.

    The steps of actions stand below a page that opens or gets worse, not below its updates. Lines are wrapped at
    `width`; without a note an update is "updated".
    """
    data = alert.data
    style = CLEARED_STYLE if alert.change == CLEARED else STYLES.get(data.severity, "bold")
    word, resources = _word(alert), ", ".join(data.resources)
    usage = "" if data.usage_pct is None else f"{data.usage_pct:.1f}%"
    tag = (f" {alert.change if alert.change == CLEARED else word} ", style)
    names = [(f" {data.store}", "bold"), *((f" {word}", "") for word in (resources, data.condition, usage) if word)]
    if note or alert.change == UPDATED:
        names.append((f" ({note or 'updated'})", "dim"))
    text = Text()
    if data.brief:  # what a person who was woken reads
        first, *others = data.brief
        line = f"{tag[0]} {printable(first)}"
        text.append(line if width is None else fill(line, width, " " * 7), "bold")
        text.stylize(style, 0, len(tag[0]))
        for line in others:
            indented = f"{_INDENT}{printable(line)}"
            text.append("\n" + (indented if width is None else fill(indented, width, " " * 7)), "bold")
        heading = [(f"{_INDENT}{_when(data)}", "dim"), *names]
        text.append("\n")
    else:
        heading = [(f"{_when(data)} ", "dim"), tag, *names]
    text.append_text(_fold([(printable(piece), piece_style) for piece, piece_style in heading], width))
    lines = [data.cause] if data.cause else []
    if fillers := _fillers_text(data.fillers):
        lines.append(f"filled by {fillers}")
    lines += [f"because {reason}" for reason in data.evidence]
    if alert.change != CLEARED:
        is_worse = alert.change == OPENED or note not in ("", _NOTES[Change.RECOVERED])
        lines += _action_lines(data, with_steps=data.level == PAGE and is_worse)
    for line in lines:
        indented = f"{_INDENT}{printable(line)}"
        hanging = " " * (10 if line.startswith(" ") else 7)
        text.append("\n" + (indented if width is None else fill(indented, width, hanging)))
    return text


def _action_lines(data: AlertData, *, with_steps: bool) -> list[str]:
    """Return what to do: of a runbook the headings, with the steps of each below it."""
    if not data.runbook:
        return [f"-> {action}" for action in data.actions]
    lines = []
    for action in data.runbook:
        heading, *rest = action.lines
        lines.append(f"-> {heading}")
        lines += [f"   {line}" for line in rest] if with_steps else []
    return lines


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
