"""The scorecard: tables, JSON and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from twin.scoring import METHODS, TWIN, Filling, Played, Scored, summarise
from twin.scoring.table import percent, span, table
from twin.units import as_text

_WIDE = 150  # columns of a table where standard output is no terminal


def print_scorecard(recordings: Sequence[Path], scored: Sequence[Scored]) -> None:
    """Print the table of all recordings, and a line for each filling."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)
    console.print(table("all", summarise(scored)))
    lines = [
        f"{recording.name}: {_told(filling)}; lead: "
        + ", ".join(f"{method} {span(lead)}" for method, lead in leads.items())
        for recording, one in zip(recordings, scored, strict=True)
        for filling, leads in _leads(one)
    ]
    for line in lines or ["no put was refused with 2192: every alarm is a false one"]:
        console.print(line, highlight=False, soft_wrap=True)


def _told(filling: Filling) -> str:
    by = f" by {filling.grown[0][0]} ({percent(filling.grown[0][1])})" if filling.grown else ""
    when = as_text(filling.first)[:19] + "Z"
    return f"{filling.store} filled its {filling.resource} in {span(filling.seconds)}{by}, first 2192 at {when}"


def _leads(scored: Scored) -> list[tuple[Filling, dict[str, float | None]]]:
    """Each filling with every method's lead, seconds."""
    found = []
    for store, judged in enumerate(scored.judged[TWIN]):
        for at, one in enumerate(judged.warned):
            leads = {method: scored.judged[method][store].warned[at].lead for method in METHODS}
            found.append((one.filling, leads))
    return found


def as_json(recordings: Sequence[Path], scored: Sequence[Scored]) -> dict[str, Any]:
    """Return the scorecard as JSON has it."""
    return {
        "fillings": [
            {
                "recording": str(recording),
                "store": filling.store,
                "resource": filling.resource,
                "onset": as_text(filling.onset),
                "first": as_text(filling.first),
                "last": as_text(filling.last),
                "refused": filling.refused,
                "fillers": [{"queue": queue, "share": round(share, 4)} for queue, share in filling.grown],
                "lead_s": leads,
            }
            for recording, one in zip(recordings, scored, strict=True)
            for filling, leads in _leads(one)
        ],
        "methods": {name: measures.as_json() for name, measures in summarise(scored).items()},
    }


# --- pictures --------------------------------------------------------------------------------------------------------


def draw_stores(folder: Path, recording: Path, played: Played, scored: Scored) -> None:
    """Draw the picture of each store of a recording."""
    from twin.scoring import pictures

    stem = recording.name.partition(".")[0]
    for name, series in played.series.items():
        said = {method: scored.said[method][name] for method in METHODS}
        figure = pictures.story(series, scored.filled[name], said, f"{name}, {recording.name}")
        pictures.save(figure, folder / f"{stem}-{name.replace('/', '-')}.svg")


def draw_all(folder: Path, scored: Sequence[Scored]) -> None:
    """Draw the pictures of all recordings together."""
    from twin.scoring import pictures

    measured = summarise(scored)
    pictures.save(pictures.leads({name: _all_leads(scored, name) for name in METHODS}, measured), folder / "leads.svg")
    pictures.save(pictures.calibration(measured[TWIN]), folder / "calibration.svg")


def _all_leads(scored: Sequence[Scored], method: str) -> list[float | None]:
    return [warned.lead for one in scored for store in one.judged[method] for warned in store.warned]
