"""``mqtwin drift``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from deploy.options.common import KafkaOptions, record_events
from deploy.options.files import EstateFile, InputFile
from deploy.show.drift import drift_records, print_drift, print_points
from deploy.show.progress import show_progress
from deploy.show.terminal import print_warnings
from twin.errors import UsageError
from twin.estate import load_estate
from twin.playback.drift import measure_drift


def drift(
    recording: InputFile | None = None,
    /,
    *,
    estate: EstateFile,
    kafka: KafkaOptions | None = None,
    store: str | None = None,
    points: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int | None:
    """Show the model against measurements, with the likely causes of their difference.

    Plays a recording, or the events topic up to its present end. Exit status 1 if nothing was measured.

    Args:
        recording: Recording to play. Default: the events topic of --bootstrap-servers.
        estate: Estate file (TOML).
        kafka: Kafka connection, without RECORDING.
        store: Show only this store, such as QSG1/APP1.
        points: Show every measurement instead of a line per resource.
        json: Print JSON lines, one per resource, with every measurement.
    """
    loaded_estate = load_estate(estate)
    print_warnings(loaded_estate.warnings)
    if store is not None and store not in loaded_estate.stores:
        raise UsageError(f"--store {store}: not in {estate}; expected: {', '.join(sorted(loaded_estate.stores))}")
    if (recording is None) == (kafka is None):
        raise UsageError("a recording or --bootstrap-servers; expected: one of them")
    with tempfile.TemporaryDirectory() as folder:
        path = recording
        if path is None:
            assert kafka is not None
            path = record_events(kafka, Path(folder))
        with show_progress("drift"):
            result = measure_drift(path, loaded_estate)
    chosen = [entry for name, entry in result.items() if store in {None, name}]
    if not chosen:
        print("mqtwin: no measurement of a store with messages; expected: MEASURE events", file=sys.stderr)
        return 1
    if json:
        for record in drift_records(chosen):
            print(msgspec.json.encode(record).decode())
    elif points:
        print_points(chosen)
    else:
        print_drift(chosen)
    return None
