"""``mqtwin record`` and ``mqtwin publish``: the events topic as a recording, and a recording published to it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options.common import EstateFile, Flag, InputFolder, InputOrHyphen, KafkaOptions, OutputFile, open_estate
from deploy.show.summaries import WrongEstate, published_summary, recorded_summary, show_progress
from deploy.show.terminal import print_warnings
from streams.checkpoint.guard import open_stopped
from streams.host.signals import stop_requests
from streams.kafka.publish import Pace
from streams.kafka.publish import publish as send
from streams.kafka.record import record as record_events
from twin.base.errors import UsageError
from twin.events import ARROW, JSON, NDJSON, Reject


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


# --- mqtwin publish ---------------------------------------------------------------------------------------------------

_CONTENT_TYPES = {"json": JSON, "ndjson": NDJSON, "arrow": ARROW}


def publish(
    recording: InputOrHyphen,
    /,
    *,
    estate: EstateFile,
    kafka: KafkaOptions,
    content_type: Literal["json", "ndjson", "arrow"] = "json",
    group_by: Literal["store", "partition"] = "store",
    speed: Annotated[float | None, Parameter(validator=Number(gte=0.001, lte=1e9))] = None,
    rate: Annotated[float | None, Parameter(validator=Number(gte=0.001, lte=1e9))] = None,
    create_topics: Flag = False,
) -> None:
    """Publish a recording to the events topic, at full speed or at a given pace.

    Args:
        recording: Recording to read: .ndjson, .ndjson.zst or .arrow; - reads lines of standard input as they come.
        estate: Estate file (TOML), which names the store of each event.
        kafka: Kafka connection.
        content_type: Format of the records: json has one event per record, ndjson and arrow have many.
        group_by: Stores whose events a record of ndjson or arrow has: one, or all of a topic partition, which is faster
            with hundreds of stores.
        speed: Speed of event time; 2 is twice as fast as real time.
        rate: Events per second.
        create_topics: Create the events topic if it does not exist, instead of an error.
    """
    if speed is not None and rate is not None:
        raise UsageError("--speed and --rate exclude each other; expected: one of them, or neither")
    if group_by == "partition" and content_type == "json":
        raise UsageError(
            "--group-by partition with --content-type json; expected: ndjson or arrow, whose records have many events"
        )
    loaded_estate = open_estate(estate)
    wrong_estate = WrongEstate(recording)

    def note_rejects(rejects: Sequence[Reject], events: int) -> None:
        for reject in rejects:
            wrong_estate.note(reject)
        wrong_estate.check(events)

    with show_progress("publish", recording) as advance:
        published = send(
            recording,
            loaded_estate,
            kafka.client(),
            kafka.topics,
            content_type=_CONTENT_TYPES[content_type],
            by_partition=group_by == "partition",
            pace=Pace(speed=speed, rate=rate),
            create_topics=create_topics,
            on_progress=advance,
            on_rejects=note_rejects,
        )
    print(published_summary(published), file=sys.stderr)
