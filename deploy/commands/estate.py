"""``mqtwin estate`` and ``mqtwin import``: an estate, and a recording, made from files that a site has."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from deploy.options.common import EstateFile, FileUse, Flag, InputFile, OutputFile, open_estate
from deploy.options.feeds import FeedChoices, SpanChoices, parse_groups
from deploy.show.document import Table
from deploy.show.summaries import print_complaints, print_inputs, print_intake, print_not_understood, show_progress
from deploy.show.terminal import print_line, print_warnings, printable, show
from twin.base.errors import UsageError
from twin.base.outputs import write_output
from twin.base.units import as_count
from twin.estate import HEADINGS, EstateError, load_estate, summary
from twin.feeds.estate_import import differences, estate_text, is_empty, look_at, unverified
from twin.feeds.importing import import_files
from twin.feeds.site import SiteFile, site_file

_WRONG_USE = 2

estate = App(name="estate")

_DEFAULTS = FeedChoices()


def _path_of(text: str) -> Path:
    return Path(text.partition(":")[2])


@estate.command
def check(file: EstateFile, /) -> int:
    """Check an estate file, print warnings, and summarise its stores.

    Each error in the file and in the texts that it imports is one line on standard error, exit status 2.

    Args:
        file: Estate file (TOML).
    """
    try:
        loaded_estate = load_estate(file)
    except EstateError as error:
        for message in (str(error), *error.others):
            print_line(f"mqtwin: {message}")
        return _WRONG_USE
    print_warnings(loaded_estate.warnings)
    lines = [[str(value) for value in astuple(row)] for row in summary(loaded_estate)]
    show(Table(HEADINGS, lines, {"size", "queues"}))
    return 0


@estate.command(name="import")
def import_estate(
    files: Annotated[tuple[Annotated[str, FileUse(path_of=_path_of)], ...], Parameter(name="FORMAT:FILE", negative="")],
    /,
    *,
    output: Annotated[OutputFile | None, Parameter(name=("--output", "-o"))] = None,
    against: EstateFile | None = None,
    group: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    choices: FeedChoices = _DEFAULTS,
) -> int | None:
    """Write an estate file from data of a site, or compare them with an existing one.

    With --against each difference is a line on standard output, and the exit status is 1 if there is one. Files that
    show nothing of an estate are an error.

    Args:
        files: Format and file, such as smf:day.dat, display:usage.txt or cfrm:policy.txt; of several policies
            cfrm:NAME=policy.txt takes one.
        output: Estate file to write (TOML). Default: standard output, unless --against.
        against: Estate file (TOML) to compare with.
        group: Queue-sharing group and its queue managers, QSG1=QM01,QM02, where no data name them; may be repeated.
        choices: Facts that the data lack.
    """
    existing = None if against is None else load_estate(against)
    intake = look_at([_site_file(text) for text in files], choices.feed_options(), existing, parse_groups(group))
    print_complaints(intake)
    if is_empty(intake.facts, existing):
        raise UsageError(
            f"{', '.join(files)}: nothing of an estate was found; expected: data of that format that show a queue"
            " manager, a store or a queue"
        )
    print_inputs(intake)
    seen_estate = estate_text(intake.facts)
    if output is not None:
        write_output(output, seen_estate.text)
        print(f"{as_count(len(intake.facts.objects), 'object')} in {output}")
    elif existing is None:
        print(seen_estate.text, end="")
    if existing is None:
        print_warnings((*seen_estate.warnings, *unverified(intake.facts)))
        print_not_understood(intake)
        return None
    lines = list(differences(intake.facts, existing))
    for line in lines:
        print(printable(line))
    print_not_understood(intake)
    return 1 if lines else None


def _site_file(text: str) -> SiteFile:
    name, colon, file = text.partition(":")
    if not (name and colon and file):
        raise UsageError(f"{text}; expected: FORMAT:FILE, such as smf:day.dat")
    return site_file(name, file)


# --- mqtwin import ----------------------------------------------------------------------------------------------------

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
