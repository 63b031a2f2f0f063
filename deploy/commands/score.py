"""``mqtwin score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.options.common import KafkaOptions
from deploy.options.files import EstateFile, InputFile, OutputFolder
from deploy.show.progress import show_progress
from deploy.show.scorecard import draw_stores, draw_summary, print_live_scores, print_scorecard, scorecard_of
from deploy.show.terminal import print_warnings
from twin.errors import UsageError
from twin.estate import load_estate
from twin.records import StateRecord, read_state_record
from twin.scoring import ScoredRecording, play
from twin.scoring import score as score_run


def score(
    *recordings: InputFile,
    estate: EstateFile | None = None,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    pictures: OutputFolder | None = None,
    live: Annotated[bool, Parameter(negative="")] = False,
    state: InputFile | None = None,
    kafka: KafkaOptions | None = None,
) -> None:
    """Score the twin's alerts against the true 2192s of recordings, and compare them with other methods.

    With --live, print what became of the forecasts and pages of a running job in the last 30 days of event time.

    Args:
        recordings: Recordings with their refused puts: .ndjson, .ndjson.zst or .arrow.
        estate: Estate file (TOML) of the recordings.
        json_: Print the measures as JSON instead of a table.
        pictures: Folder for SVG pictures: usage, forecasts and alerts of each store, lead times, calibration.
        live: Read state records instead of recordings: of the topic of --bootstrap-servers, or of --state.
        state: File of state records, JSON lines, as `mqtwin state` and `mqtwin replay --state` write them.
        kafka: Kafka connection, for --live.
    """
    if live:
        if recordings or estate is not None or pictures is not None:
            raise UsageError("score --live reads state records; expected: no RECORDING, --estate or --pictures")
        print_live_scores(_read_states(state, kafka), as_json=json_)
        return
    if state is not None or kafka is not None:
        raise UsageError("score: --state and --bootstrap-servers are read with --live only; expected: --live")
    if not recordings or estate is None:
        raise UsageError("score: no recordings or no estate; expected: RECORDING... --estate FILE, or --live")
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


def _read_states(path: Path | None, kafka: KafkaOptions | None) -> list[StateRecord]:
    """Return the last state record of each store, sorted by store, of a file or of the state topic."""
    if (path is None) == (kafka is None):
        raise UsageError("score --live: --bootstrap-servers or --state; expected: one of them")
    if kafka is not None:
        from streams.kafka.present import read_last_states
        from streams.kafka.topics import Topics
        from streams.log import configure_logging

        configure_logging(level="warning")
        states = read_last_states(kafka.client(), Topics(kafka.topic_prefix))
    else:
        assert path is not None
        states = {record.store: record for record in _records_of(path)}
    return [states[store] for store in sorted(states)]


def _records_of(path: Path) -> list[StateRecord]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"--state {path}: {error.strerror}; expected: a file of state records") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(read_state_record(line))
        except msgspec.MsgspecError as error:
            raise UsageError(f"--state {path}, line {number}: {error}; expected: a state record") from None
    return records


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
