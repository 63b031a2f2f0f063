"""``mqtwin tune``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import Flag, KafkaOptions, open_estate, record_events
from deploy.options.files import EstateFile, InputFile, OutputFile
from deploy.show.progress import show_progress
from deploy.show.terminal import emit
from deploy.show.tuning import tuning_document
from twin.errors import UsageError
from twin.estate import Estate
from twin.reporting.tuning import VALUES, Tuning
from twin.reporting.tuning import tune as tune_recordings

_MAX_NEEDLESS, _MAX_LEAD_S = 1000, 86_400
_Needless = Annotated[float, Parameter(validator=Number(gt=0, lte=_MAX_NEEDLESS))]


def tune(
    *,
    estate: EstateFile,
    recording: Annotated[tuple[InputFile, ...], Parameter(negative="", consume_multiple=True)] = (),
    kafka: KafkaOptions | None = None,
    needless_per_saved: Annotated[tuple[_Needless, ...], Parameter(negative="", consume_multiple=True)] = VALUES,
    page_lead_s: Annotated[float | None, Parameter(validator=Number(gt=0, lte=_MAX_LEAD_S))] = None,
    html: OutputFile | None = None,
    json_: Flag = False,
) -> None:
    """Try on recordings how many needless calls a saved filling is worth: pages, needless, late and missed, leads.

    Each recording, or what the events topic has, is played with every setting; the looks ahead are made once.

    Args:
        estate: Estate file (TOML).
        recording: Recordings to play: .ndjson, .ndjson.zst or .arrow.
        kafka: Kafka connection, instead of recordings.
        needless_per_saved: Settings to try.
        page_lead_s: Seconds that a person needs, to try with them. Default: as in the estate.
        html: File for a page, to hand on.
        json_: Print JSON instead of text.
    """
    if bool(recording) == (kafka is not None):
        raise UsageError("tune: --recording or --bootstrap-servers; expected: one of them")
    loaded = open_estate(estate)
    with tempfile.TemporaryDirectory() as folder:
        paths = recording if kafka is None else (record_events(kafka, Path(folder)),)
        tuning = _tune(paths, loaded, needless_per_saved, page_lead_s)
    emit(tuning_document(tuning), as_json=json_, html=html)


def _tune(paths: Sequence[Path], estate: Estate, values: Sequence[float], page_lead_s: float | None) -> Tuning:
    """Play the recordings on all cores."""
    events = 0
    with show_progress("tune") as advance:

        def on_played(more: int) -> None:
            nonlocal events
            events += more
            advance(None, events)

        processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return tune_recordings(
            paths, estate, values=values, page_lead_s=page_lead_s, processes=processes, on_played=on_played
        )
