"""``mqtwin start``."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from deploy.commands.console import console
from deploy.console.server import DEFAULT_PORT
from deploy.options.feeds import FeedChoices, parse_groups
from deploy.show.progress import show_progress
from deploy.show.summaries import print_intake
from deploy.show.terminal import print_line
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate, EstateError, load_estate
from twin.feeds.estate_import import CFRM
from twin.feeds.formats import FORMATS
from twin.feeds.importing import recorded
from twin.feeds.protocol import FeedOptions
from twin.feeds.site import MQSC, RECORDING, SiteFile, recognise, record_site, see_estate
from twin.forecast.extension import MIN_LEVELS
from twin.units import as_count

_DEFAULTS = FeedChoices()
_FOLDER = Path("mqtwin-site")
_WRONG_USE = 2


def start(
    files: Annotated[tuple[str, ...], Parameter(name="FILE", negative="")] = (),
    /,
    *,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    group: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    port: Annotated[int, Parameter(validator=Number(gte=0, lt=65536))] = DEFAULT_PORT,
    no_console: Annotated[bool, Parameter(negative="")] = False,
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
    flows: Literal["statistics", "accounting"] = "statistics",
    choices: FeedChoices = _DEFAULTS,
) -> int | None:
    """Make an estate and a recording of files that a site has, say what is missing, and show them in the console.

    Without files it asks for them. Each is recognised by its content; FORMAT:FILE says what it is, mqsc:OWNER=FILE
    whose definitions a file of MQSC has, and a file .toml is an estate to use instead of the one that the data show.

    Args:
        files: Files: SMF, job logs with DISPLAYs, CFRM policies, MQSC, statistics, an estate.
        output: Folder for estate.toml, recording.arrow and missing.txt; mqtwin-site by default.
        group: Queue-sharing group and its queue managers, QSG1=QM01,QM02, where no data name them; may be repeated.
        port: Port of the console; 0 takes a free one.
        no_console: End when the files are written.
        open_: Open the page in the browser of this machine.
        flows: Source of puts and gets in SMF: statistics (115/216) or accounting (116).
        choices: Facts that the data lack.
    """
    options = choices.feed_options(flows=flows)
    names, folder = (files, output or _FOLDER) if files else _ask(output)
    estates = [Path(name) for name in names if name.endswith(".toml")]
    if len(estates) > 1:
        raise UsageError(f"{', '.join(map(str, estates))}: several estates; expected: at most one file .toml")
    site_files = _site_files(names, options)
    folder.mkdir(parents=True, exist_ok=True)
    missing: tuple[str, ...] = ()
    path = estates[0] if estates else folder / "estate.toml"
    if not estates:
        seen = see_estate(site_files, folder, options, parse_groups(group))
        path.write_text(seen.text, encoding="utf-8")
        missing = seen.missing
    try:
        estate = load_estate(path)
    except EstateError as error:
        for message in (str(error), *error.others, *missing):
            print_line(f"mqtwin: {message}")
        print_line(f"mqtwin: correct {path}, then give it too: mqtwin start {' '.join(names)} {path}")
        return _WRONG_USE
    recording = _record(site_files, folder, estate, options, missing)
    if not no_console:
        console(recording=recording, estate=path, port=port, open_=open_)
    return None


def _site_files(names: Sequence[str], options: FeedOptions) -> list[SiteFile]:
    """Return the files that are no estate, and print what each is. UsageError: none of them has events."""
    files = [_site_file(name, options) for name in names if not name.endswith(".toml")]
    for own in files:
        print(f"{own.path}: {own.format_name}{f' of {own.owner}' if own.owner else ''}")
    if not any(own.format_name in (RECORDING, *FORMATS) for own in files):
        raise UsageError(f"{', '.join(names)}: no file has events; expected: one of {RECORDING}, {', '.join(FORMATS)}")
    return files


def _record(
    files: Sequence[SiteFile], folder: Path, estate: Estate, options: FeedOptions, missing: tuple[str, ...]
) -> Path:
    """Write recording.arrow and missing.txt, and say what is in them; return the recording.

    Args:
        files: the files.
        folder: where they are written.
        estate: the estate.
        options: facts that the data lack.
        missing: lines about what the data do not show of the estate.

    Raises:
        MqtwinError: no event was made.
    """
    recording = folder / "recording.arrow"
    with show_progress("import") as advance:
        intakes = record_site(files, recording, estate, options, lambda events: advance(None, events))
    for intake in intakes:
        print_intake(intake)
        missing += tuple(intake.notes)
    events, few = _read_back(recording)
    missing += (*few, *estate.warnings)
    (folder / "missing.txt").write_text("".join(f"{line}\n" for line in missing), encoding="utf-8")
    for line in missing:
        print_line(f"mqtwin: not known: {line}")
    unknown = as_count(len(missing), "line")
    print(f"{as_count(events, 'event')} in {recording}; {unknown} about what is not known in {folder / 'missing.txt'}")
    if not events:
        raise MqtwinError(f"{recording}: no event was made; the lines above say why")
    return recording


def _read_back(recording: Path) -> tuple[int, list[str]]:
    """Return the number of events of a recording, and a line for each store of which it has too few levels."""
    events, times = 0, defaultdict[str, set[object]](set)
    for event in recorded(recording):
        events += 1
        if event["op"] == "MEASURE" and event["measured"].get("resync"):
            times[event["store"]].add(event["time"])
    few = {store: len(own) for store, own in sorted(times.items()) if len(own) < MIN_LEVELS}
    return events, [
        f"{store}: time to full not known yet, {known} of {MIN_LEVELS} levels" for store, known in few.items()
    ]


def _site_file(text: str, options: FeedOptions) -> SiteFile:
    """Return the file of an argument: FILE, FORMAT:FILE or mqsc:OWNER=FILE. UsageError: what it is cannot be told."""
    name, colon, rest = text.partition(":")
    if not colon or name not in (RECORDING, CFRM, MQSC, *FORMATS):
        return recognise(Path(text), options)
    owner, equals, file = rest.partition("=")
    if name == MQSC and equals:
        return SiteFile(MQSC, Path(file), owner)
    return SiteFile(name, Path(rest))


def _ask(output: Path | None) -> tuple[tuple[str, ...], Path]:
    """Ask for files and for the folder. UsageError: nobody can answer, or there is no file."""
    if not sys.stdin.isatty():
        raise UsageError(
            "there is no file to start with; expected: mqtwin start FILE..., such as SMF, a job log, a CFRM policy"
        )
    names = []
    while name := input("File (SMF, job log, CFRM policy, MQSC, statistics; Enter ends): ").strip():
        if Path(name.rpartition("=")[2].rpartition(":")[2]).is_file():
            names.append(name)
        else:
            print_line(f"mqtwin: {name} is not a file")
    if not names:
        raise UsageError("there is no file to start with; expected: SMF, a job log, statistics")
    asked = "" if output is not None else input(f"Folder for the result ({_FOLDER}): ").strip()
    return tuple(names), output or Path(asked or _FOLDER)
