"""``mqtwin report``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from deploy.options.common import EstateFile, Flag, InputFile, KafkaOptions, OutputFile, open_estate, record_events
from deploy.show.morning import morning_document
from deploy.show.summaries import show_progress
from deploy.show.terminal import emit
from twin.base.errors import UsageError
from twin.estate import Estate
from twin.records import AlertRecord
from twin.reporting.records import Report
from twin.reporting.report import report as report_recording


def report(
    *,
    estate: EstateFile,
    recording: InputFile | None = None,
    kafka: KafkaOptions | None = None,
    since: str | None = None,
    until: str | None = None,
    html: OutputFile | None = None,
    json_: Flag = False,
) -> None:
    """Report what came close, who was called and rightly, what people changed and what that was worth.

    Of a running job, the events topic is read to its present end, with the alerts and states that the job published,
    and the notes of people on these alerts.

    Args:
        estate: Estate file (TOML).
        recording: Recording: .ndjson, .ndjson.zst or .arrow.
        kafka: Kafka connection, instead of a recording.
        since: Begin of the period: RFC 3339, a date, today, or yesterday (of the last event, from midnight UTC).
        until: End of the period, RFC 3339 or a date; what comes later is not read.
        html: File for a page with pictures, to hand on.
        json_: Print JSON instead of text.
    """
    if (recording is None) == (kafka is None):
        raise UsageError("report: --recording or --bootstrap-servers; expected: one of them")
    loaded_estate = open_estate(estate)
    if recording is not None:
        with show_progress("report", recording) as advance:
            own = report_recording(recording, loaded_estate, since=since, until=until, on_chunk=advance)
    else:
        assert kafka is not None
        own = report_of_job(kafka, loaded_estate, since, until)
    emit(morning_document(own), as_json=json_, html=html)


def report_of_job(kafka: KafkaOptions, estate: Estate, since: str | None, until: str | None) -> Report:
    """Return the report of a job: its events, the alerts that it published, its last states."""
    from streams.kafka.notes import read_notes
    from streams.kafka.present import read_last_states
    from streams.log import configure_logging

    configure_logging(level="warning")
    topics = kafka.topics
    with tempfile.TemporaryDirectory() as folder, show_progress("report") as advance:
        path = record_events(kafka, Path(folder))
        alerts, states = _published(kafka), read_last_states(kafka.client(), topics)
        period = {"since": since, "until": until}
        notes = read_notes(kafka.client(), topics)
        return report_recording(path, estate, **period, alerts=alerts, states=states, notes=notes, on_chunk=advance)


def _published(kafka: KafkaOptions) -> list[AlertRecord]:
    from streams.kafka.topic_reader import AlertReader

    alerts: list[AlertRecord] = []
    with AlertReader(kafka.client(), kafka.topics, from_beginning=True) as reader:
        while not reader.is_waiting and not reader.is_caught_up:
            alerts += reader.read(0.5)
    return alerts
