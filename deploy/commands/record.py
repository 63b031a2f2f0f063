"""``mqtwin record``."""

from __future__ import annotations

import sys
import time
from typing import Annotated

from cyclopts import Parameter

from deploy.options.common import KafkaOptions
from deploy.options.files import OutputFile
from deploy.show.progress import show_progress
from deploy.show.summaries import recorded_summary
from streams.host.signals import stop_requests
from streams.kafka.record import record as record_events
from streams.kafka.topics import Topics


def record(
    out: OutputFile,
    /,
    *,
    kafka: KafkaOptions,
    follow: Annotated[bool, Parameter(negative="--until-end")] = False,
) -> None:
    """Record the events topic into a file: the events there now, with --follow also new ones until Ctrl-C.

    Args:
        out: Recording to write: .ndjson, .ndjson.zst or .arrow. Replaces an existing one when it is complete.
        kafka: Kafka connection.
        follow: Continue until Ctrl-C or SIGTERM instead of stopping at the current end; append to an existing OUT.
    """
    started = time.monotonic()
    with show_progress("record") as advance, stop_requests() as stop:
        recorded = record_events(
            out,
            kafka.client(),
            Topics(kafka.topic_prefix),
            follow=follow,
            stop=stop.is_set,
            on_progress=lambda progress: advance(None, progress.events),
        )
    print(recorded_summary(out, recorded, time.monotonic() - started), file=sys.stderr)
