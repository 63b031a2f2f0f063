"""``mqtwin import``."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from deploy.options.common import Flag, open_estate
from deploy.options.feeds import FeedChoices, SpanChoices
from deploy.options.files import EstateFile, InputFile, OutputFile
from deploy.show.progress import show_progress
from deploy.show.summaries import print_intake, print_not_understood
from deploy.show.terminal import printable
from twin.feeds.importing import import_files
from twin.units import as_count

_DEFAULTS = FeedChoices()
_SPAN_DEFAULTS = SpanChoices()


def import_(
    format_name: Annotated[str, Parameter(name="FORMAT")],
    files: Annotated[tuple[InputFile, ...], Parameter(name="IN", negative="")],
    /,
    *,
    estate: EstateFile,
    output: Annotated[OutputFile, Parameter(name=("--output", "-o"))],
    aside: OutputFile | None = None,
    flows: Literal["statistics", "accounting"] = "statistics",
    counts: InputFile | None = None,
    resync: Flag = False,
    choices: FeedChoices = _DEFAULTS,
    spans: SpanChoices = _SPAN_DEFAULTS,
) -> int | None:
    """Convert files that a site has (SMF, command output, statistics) to a recording.

    Exit status 1 if no event was made.

    Args:
        format_name: Format of the files; docs/feeds.md lists them.
        files: Files, in order of time.
        estate: Estate file (TOML).
        output: Recording to write: .ndjson, .ndjson.zst or .arrow.
        aside: Recording for events of names that the estate lacks. Default: they are only counted.
        flows: Source of puts and gets in SMF: statistics (115/216) or accounting (116).
        counts: Recording of statistics; adds the puts and gets that spans (otlp) do not show.
        resync: Have the twin take over every measurement: for stores of which no puts and gets are known.
        choices: Facts that the data lack.
        spans: OpenTelemetry spans.
    """
    loaded_estate = open_estate(estate)
    has_earlier = output.exists()
    options = spans.complete(choices.feed_options(flows=flows), has_counts=counts is not None)
    with show_progress(f"import {format_name}") as advance:
        intake = import_files(
            format_name,
            files,
            output,
            loaded_estate,
            options,
            aside=aside,
            counts=counts,
            resync=resync,
            progress=lambda events: advance(None, events),
        )
    print_intake(intake)
    for line in intake.notes:
        print(printable(line))
    if intake.events:
        print(f"{as_count(intake.events, 'event')} in {output}")
    else:
        print(f"no event was made; {output} is as it was" if has_earlier else f"no event was made, {output} is empty")
    print_not_understood(intake)
    return None if intake.events else 1
