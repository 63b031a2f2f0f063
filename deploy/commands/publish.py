"""``mqtwin publish``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.options import KafkaOptions
from deploy.show.progress import shown
from deploy.show.summaries import published_summary
from deploy.show.warnings import warned
from streams.kafka.pace import Pace
from streams.kafka.publish import publish as send
from streams.kafka.topics import Topics
from twin.errors import UsageError
from twin.estate import load_estate
from twin.events import ARROW, JSON, NDJSON

_CONTENT_TYPES = {"json": JSON, "ndjson": NDJSON, "arrow": ARROW}


def publish(
    recording: Path,
    /,
    *,
    estate: Path,
    kafka: KafkaOptions,
    as_: Annotated[Literal["json", "ndjson", "arrow"], Parameter(name="--as")] = "json",
    speed: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    rate: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    create_topics: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """A recording into the events topic, keyed by store, as fast as it goes or at a pace.

    Args:
        recording: The events, .ndjson, .ndjson.zst or .arrow.
        estate: What exists, a TOML file; it says which store an event belongs to.
        kafka: The broker, and how to reach it.
        as_: One JSON event a record, or many events a record as NDJSON or Arrow.
        speed: Event time goes so many times faster than real time.
        rate: Events a second.
        create_topics: Create the events topic where it is missing; otherwise that is an error.
    """
    if speed is not None and rate is not None:
        raise UsageError("--speed and --rate: one of them is right, or neither")
    described = warned(load_estate(estate))
    with shown("publish", recording) as advance:
        published = send(
            recording,
            described,
            kafka.client(),
            Topics(kafka.topic_prefix),
            content_type=_CONTENT_TYPES[as_],
            pace=Pace(speed=speed, rate=rate),
            create_topics=create_topics,
            on_progress=advance,
        )
    print(published_summary(published), file=sys.stderr)
