"""``mqtwin score``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console

from deploy.show.progress import shown
from deploy.show.warnings import warned
from twin.errors import UsageError
from twin.estate import load_estate
from twin.scoring import METHODS, TWIN, Filling, PlayedRecording, ScoredRecording, play, summarise
from twin.scoring import score as judge
from twin.scoring.table import percent, span, table
from twin.units import as_text

_WIDE = 150  # columns of a table where standard output is no terminal


def score(
    *recordings: Path,
    estate: Path,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    pictures: Path | None = None,
) -> None:
    """The scorecard: the twin's alerts held against the 2192s that really came, other people's rules beside it.

    Args:
        recordings: Events of the estate with their refused puts, .ndjson, .ndjson.zst or .arrow.
        estate: What exists, a TOML file.
        json_: The measures as JSON on standard output, instead of tables.
        pictures: A folder for pictures (SVG): each store's usage, forecasts and alerts, lead times, calibration.
    """
    if not recordings:
        raise UsageError("score: RECORDING... --estate FILE is right")
    described = warned(load_estate(estate))
    if pictures is not None:
        _check_pictures(pictures)
    scored: list[ScoredRecording] = []
    for recording in recordings:
        with shown(f"score {recording.name}", recording) as advance:
            played = play(recording, described, advance)
        scored.append(judge(played))
        if pictures is not None:
            _draw_stores(pictures, recording, played, scored[-1])
    if pictures is not None:
        _draw_all(pictures, scored)
    if json_:
        print(msgspec.json.encode(_as_json(recordings, scored)).decode())
    else:
        _show(recordings, scored)


def _show(recordings: Sequence[Path], scored: Sequence[ScoredRecording]) -> None:
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


def _leads(scored: ScoredRecording) -> list[tuple[Filling, dict[str, float | None]]]:
    """Each filling with every method's lead, seconds."""
    found = []
    for store, judged in enumerate(scored.judged[TWIN]):
        for at, one in enumerate(judged.warned):
            leads = {method: scored.judged[method][store].warned[at].lead for method in METHODS}
            found.append((one.filling, leads))
    return found


def _as_json(recordings: Sequence[Path], scored: Sequence[ScoredRecording]) -> dict[str, Any]:
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


def _check_pictures(folder: Path) -> None:
    """Before anything is played: UsageError where there is nothing to draw with, or nowhere to draw to."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise UsageError(
            "--pictures needs matplotlib, which is not installed; right: pip install 'mqtwin[pictures]'"
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--pictures {folder}: {error.strerror}: a folder that can be made is right") from None


def _draw_stores(folder: Path, recording: Path, played: PlayedRecording, scored: ScoredRecording) -> None:
    from twin.scoring import pictures

    stem = recording.name.partition(".")[0]
    for name, series in played.series.items():
        said = {method: scored.outputs[method][name] for method in METHODS}
        figure = pictures.story(series, scored.fillings[name], said, f"{name}, {recording.name}")
        pictures.save(figure, folder / f"{stem}-{name.replace('/', '-')}.svg")


def _draw_all(folder: Path, scored: Sequence[ScoredRecording]) -> None:
    from twin.scoring import pictures

    measured = summarise(scored)
    pictures.save(pictures.leads({name: _all_leads(scored, name) for name in METHODS}, measured), folder / "leads.svg")
    pictures.save(pictures.calibration(measured[TWIN]), folder / "calibration.svg")


def _all_leads(scored: Sequence[ScoredRecording], method: str) -> list[float | None]:
    return [warned.lead for one in scored for store in one.judged[method] for warned in store.warned]
