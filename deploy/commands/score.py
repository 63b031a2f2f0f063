"""``mqtwin score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.show.progress import show_progress
from deploy.show.scorecard import draw_stores, draw_summary, print_scorecard, scorecard_of
from deploy.show.terminal import print_warnings
from twin.errors import UsageError
from twin.estate import load_estate
from twin.scoring import ScoredRecording, play
from twin.scoring import score as score_run


def score(
    *recordings: Path,
    estate: Path,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    pictures: Path | None = None,
) -> None:
    """Score the twin's alerts against the true 2192s of recordings, and compare them with other methods.

    Args:
        recordings: Recordings with their refused puts: .ndjson, .ndjson.zst or .arrow.
        estate: Estate file (TOML).
        json_: Print the measures as JSON instead of a table.
        pictures: Folder for SVG pictures: usage, forecasts and alerts of each store, lead times, calibration.
    """
    if not recordings:
        raise UsageError("score: no recordings; expected: RECORDING... --estate FILE")
    loaded_estate = load_estate(estate)
    print_warnings(loaded_estate.warnings)
    if pictures is not None:
        _check_pictures(pictures)
    scored: list[ScoredRecording] = []
    for recording in recordings:
        with show_progress(f"score {recording.name}", recording) as advance:
            played = play(recording, loaded_estate, advance)
        scored.append(score_run(played))
        if pictures is not None:
            draw_stores(pictures, recording, played, scored[-1])
    if pictures is not None:
        draw_summary(pictures, scored)
    if json_:
        print(msgspec.json.encode(scorecard_of(recordings, scored)).decode())
    else:
        print_scorecard(recordings, scored)


def _check_pictures(folder: Path) -> None:
    """Raise UsageError, before anything is replayed, if matplotlib is missing or the folder cannot be made."""
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise UsageError(
            "--pictures needs matplotlib, which is not installed; expected: pip install 'mqtwin[pictures]'"
        ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--pictures {folder}: {error.strerror}; expected: a folder that can be made") from None
