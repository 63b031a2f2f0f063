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
from deploy.show.terminal import print_warnings
from streams.checkpoint.guard import open_stopped
from streams.host.signals import stop_requests
from streams.kafka.record import record as record_events
from twin.errors import UsageError


def record(
    out: Annotated[OutputFile | None, Parameter(show=False)] = None,
    /,
    *,
    kafka: KafkaOptions,
    output: Annotated[OutputFile | None, Parameter(name=("--output", "-o"))] = None,
    checkpoint: InputFolder | None = None,
    follow: Annotated[bool, Parameter(negative="--until-end")] = False,
) -> None:
    """Record the events topic into a file: the events there now, with --follow also new ones until Ctrl-C.

    Args:
        out: The recording, as it was given before this release.
        kafka: Kafka connection.
        output: Recording to write: .ndjson, .ndjson.zst or .arrow. Replaces an existing one when it is complete.
        checkpoint: Checkpoint folder of the job, on this machine, for the records that it left out by --skip.
        follow: Continue until Ctrl-C or SIGTERM instead of stopping at the current end; append to an existing one.
    """
    if (out is None) == (output is None):
        raise UsageError("record: no recording, or two; expected: --output FILE")
    if out is not None:
        print_warnings([f"the recording is now --output {out}: the next release does not take it without --output"])
    path = out or output
    assert path is not None
    started, topics = time.monotonic(), kafka.topics
    manifest = None if checkpoint is None else open_stopped(checkpoint)[1]
    with show_progress("record") as advance, stop_requests() as stop:
        recorded = record_events(
            path,
            kafka.client(),
            topics,
            follow=follow,
            skipped=() if manifest is None else manifest.skipped_of(topics.events),
            stop=stop.is_set,
            on_progress=lambda progress: advance(None, progress.events),
        )
    print(recorded_summary(path, recorded, time.monotonic() - started), file=sys.stderr)
