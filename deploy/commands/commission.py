"""``mqtwin commission``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import MAX_HOURS, Flag, KafkaOptions, open_estate, record_events
from deploy.options.files import EstateFile, InputFile, OutputFile
from deploy.show.commission import commission_document
from deploy.show.progress import show_progress
from deploy.show.terminal import emit
from twin.errors import UsageError
from twin.playback.commission import commission as judge
from twin.playback.verdicts import Fitness, JobFigures, LimitUse

_LIVE_HOURS = 24.0


def commission(
    *,
    estate: EstateFile,
    recording: InputFile | None = None,
    kafka: KafkaOptions | None = None,
    last_hours: Annotated[float | None, Parameter(validator=Number(gt=0, lte=MAX_HOURS))] = None,
    status_file: InputFile | None = None,
    html: OutputFile | None = None,
    json_: Flag = False,
) -> int:
    """Say whether the twin does what it promises at this site: fit, fit with limits, or not fit, each with its reason.

    Plays a recording with measurements (MEASURE events), or what the events topic has of a running job. Exit status 1
    if it is not fit.

    Args:
        estate: Estate file (TOML).
        recording: Recording to play: .ndjson, .ndjson.zst or .arrow.
        kafka: Kafka connection, instead of a recording.
        last_hours: Hours before the end within which measurements count. Default: of a recording all, of the topics 24.
        status_file: File of `mqtwin stream --status-file`, for the job's own limits.
        html: File for a page with pictures, to hand on.
        json_: Print JSON instead of text.
    """
    loaded_estate = open_estate(estate)
    if (recording is None) == (kafka is None):
        raise UsageError("commission: --recording or --bootstrap-servers; expected: one of them")
    if status_file is not None and kafka is None:
        raise UsageError("--status-file is of a running job; expected: --bootstrap-servers, too")
    with tempfile.TemporaryDirectory() as folder, show_progress("commission"):
        if kafka is not None:
            hours = last_hours or _LIVE_HOURS
            job = _job(kafka, hours, status_file)
            report = judge(record_events(kafka, Path(folder)), loaded_estate, hours=hours, job=job)
        else:
            assert recording is not None
            report = judge(recording, loaded_estate, hours=last_hours)
    source = "the running job" if recording is None else recording.name
    emit(commission_document(report, source), as_json=json_, html=html)
    return 1 if report.verdict == Fitness.UNFIT else 0


def _job(kafka: KafkaOptions, hours: float, status_file: Path | None) -> JobFigures:
    """Return what the topics and the status file show of the job. UsageError: there is no such file."""
    from streams.host.resources import LIMITED_RESOURCES
    from streams.kafka.present import read_latency, read_lateness
    from streams.kafka.topics import Topics
    from streams.log import configure_logging
    from streams.query.status import read_status

    configure_logging(level="warning")
    topics = Topics(kafka.topic_prefix)
    latency, lateness = (read(kafka.client(), topics, hours) for read in (read_latency, read_lateness))
    if status_file is None:
        return JobFigures(latency=latency, lateness=lateness)
    status = read_status(status_file)
    if status is None:
        raise UsageError(f"--status-file {status_file}: expected: the file of `mqtwin stream --status-file`")
    figures = status.figures
    limits = tuple(
        LimitUse(noun=row.noun, used=figures[row.used], limit=figures[row.limit], remedy=row.remedy)
        for row in LIMITED_RESOURCES
        if row.used in figures and row.limit in figures
    )
    return JobFigures(
        latency=latency,
        lateness=lateness,
        limits=limits,
        behind=status.behind,
        beat_age_s=round(max(0.0, time.time() - status.beat_s), 1),
    )
