"""``mqtwin score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.show.progress import shown
from deploy.show.scorecard import as_json, draw_all, draw_stores, print_scorecard
from deploy.show.warnings import warned
from twin.errors import UsageError
from twin.estate import load_estate
from twin.scoring import Scored, play
from twin.scoring import score as judge


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
    scored: list[Scored] = []
    for recording in recordings:
        with shown(f"score {recording.name}", recording) as advance:
            played = play(recording, described, advance)
        scored.append(judge(played))
        if pictures is not None:
            draw_stores(pictures, recording, played, scored[-1])
    if pictures is not None:
        draw_all(pictures, scored)
    if json_:
        print(msgspec.json.encode(as_json(recordings, scored)).decode())
    else:
        print_scorecard(recordings, scored)


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
