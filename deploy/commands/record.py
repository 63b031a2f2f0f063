"""``mqtwin record``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from deploy.options import KafkaOptions
from deploy.show.progress import shown
from deploy.show.summaries import recorded_summary
from deploy.stopping import stop_requested
from streams.kafka.record import record as take
from streams.kafka.topics import Topics


def record(
    out: Path,
    /,
    *,
    kafka: KafkaOptions,
    follow: Annotated[bool, Parameter(negative="--until-end")] = False,
) -> None:
    """The events topic into a recording: all that is there now, or what comes until Ctrl-C as well.

    Args:
        out: The recording, .ndjson, .ndjson.zst or .arrow; replaced where it exists, when the new one is whole.
        kafka: The broker, and how to reach it.
        follow: Go on until Ctrl-C or SIGTERM instead of stopping at the present end; continue OUT where it exists.
    """
    began = time.monotonic()
    with shown("record") as advance, stop_requested() as is_stopping:
        recorded = take(
            out,
            kafka.client(),
            Topics(kafka.topic_prefix),
            follow=follow,
            stop=is_stopping,
            on_progress=lambda so_far: advance(None, so_far.events),
        )
    print(recorded_summary(out, recorded, time.monotonic() - began), file=sys.stderr)
