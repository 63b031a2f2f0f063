"""``mqtwin record``."""

from __future__ import annotations

import sys
import time
from typing import Annotated

from cyclopts import Parameter

from deploy.options.common import KafkaOptions
from deploy.options.files import InputFolder, OutputFile
from deploy.show.progress import show_progress
from deploy.show.summaries import recorded_summary
from streams.checkpoint.guard import open_stopped
from streams.host.signals import stop_requests
from streams.kafka.record import record as record_events
from streams.kafka.topics import Topics


def record(
    out: OutputFile,
    /,
    *,
    kafka: KafkaOptions,
    checkpoint: InputFolder | None = None,
    follow: Annotated[bool, Parameter(negative="--until-end")] = False,
) -> None:
    """Record the events topic into a file: the events there now, with --follow also new ones until Ctrl-C.

    Args:
        out: Recording to write: .ndjson, .ndjson.zst or .arrow. Replaces an existing one when it is complete.
        kafka: Kafka connection.
        checkpoint: Checkpoint folder of the job, on this machine, for the records that it left out by --skip.
        follow: Continue until Ctrl-C or SIGTERM instead of stopping at the current end; append to an existing OUT.
    """
    started, topics = time.monotonic(), Topics(kafka.topic_prefix)
    manifest = None if checkpoint is None else open_stopped(checkpoint)[1]
    with show_progress("record") as advance, stop_requests() as stop:
        recorded = record_events(
            out,
            kafka.client(),
            topics,
            follow=follow,
            skipped=() if manifest is None else manifest.skipped_of(topics.events),
            stop=stop.is_set,
            on_progress=lambda progress: advance(None, progress.events),
        )
    print(recorded_summary(out, recorded, time.monotonic() - started), file=sys.stderr)
