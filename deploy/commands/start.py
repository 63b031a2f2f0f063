"""``mqtwin start``."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from deploy.commands.console import console
from deploy.console.server import DEFAULT_PORT
from deploy.options.common import TOKENS, Flag, Repeated
from deploy.options.feeds import FeedChoices, parse_groups
from deploy.options.files import FileUse, OutputFolder
from deploy.show.progress import show_progress
from deploy.show.summaries import print_intake, print_not_understood
from deploy.show.terminal import kinds, print_command, print_line, printable
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate, EstateError, load_estate
from twin.feeds.estate_import import CFRM
from twin.feeds.importing import recorded
from twin.feeds.intake import Intake
from twin.feeds.protocol import FORMATS, FeedOptions
from twin.feeds.site import MQSC, RECORDING, MissingGroup, SiteFile, recognise, record_site, see_estate, site_file
from twin.forecast.extension import MIN_LEVELS
from twin.outputs import OwnFolder, is_same_file
from twin.units import as_count

_DEFAULTS = FeedChoices()
_FOLDER = Path("mqtwin-site")
_ESTATE, _RECORDING, _MISSING = "estate.toml", "recording.arrow", "missing.txt"
_RISK = "risk: "  # of an estate's warning about something that is known
_WRONG_USE = 2


def _path_of(name: str) -> Path:
    """Return the path in FILE, FORMAT:FILE, mqsc:OWNER=FILE or cfrm:NAME=FILE."""
    prefix, colon, rest = name.partition(":")
    if not colon or prefix not in (RECORDING, CFRM, MQSC, *FORMATS):
        return Path(name)
    return site_file(prefix, rest).path


def start(
    files: Annotated[tuple[Annotated[str, FileUse(path_of=_path_of)], ...], Parameter(name="FILE", negative="")] = (),
    /,
    *,
    output: Annotated[OutputFolder | None, Parameter(name=("--output", "-o"))] = None,
    group: Repeated = (),
    listen: str = f"127.0.0.1:{DEFAULT_PORT}",
    no_console: Flag = False,
    open_: Flag = False,
    flows: Literal["statistics", "accounting"] = "statistics",
    choices: FeedChoices = _DEFAULTS,
) -> int | None:
    """Make an estate and a recording of files that a site has, say what is missing, and show them in the console.

    Without files it asks for them. Each is recognised by its content; FORMAT:FILE says what it is, mqsc:OWNER=FILE
    whose definitions a file of MQSC has, and a file .toml is an estate to use instead of the one that the data show.
    A file of the folder that it did not write, or that was changed since, stays: the new one is estate.new.toml.

    Args:
        files: Files: SMF, job logs with DISPLAYs, CFRM policies, MQSC, statistics, an estate.
        output: Folder to write estate.toml, recording.arrow and missing.txt to. Default: mqtwin-site.
        group: Queue-sharing group and its queue managers, QSG1=QM01,QM02, where no data name them; may be repeated.
        listen: Address of the console, HOST:PORT on this machine; port 0: a free one.
        no_console: Do not serve the page for a browser: end when the files are written.
        open_: Open the page in the browser of this machine.
        flows: Source of puts and gets in SMF: statistics (115/216) or accounting (116).
        choices: Facts that the data lack.
    """
    options = choices.feed_options(flows=flows)
    names, path = (files, output or _FOLDER) if files else _ask(output)
    again = TOKENS.get() or ("start", *names)
    if not files:
        again = (*again, *names, *(() if output else ("-o", str(path))))
    estates = [Path(name) for name in names if name.endswith(".toml")]
    if len(estates) > 1:
        raise UsageError(f"{', '.join(map(str, estates))}: several estates; expected: at most one file .toml")
    site_files = _site_files(names, options)
    folder = OwnFolder(path, [*(own.path for own in site_files), *estates])
    lines: tuple[str, ...] = ()
    if estates:
        described = estates[0]
    else:
        seen = see_estate(site_files, path, options, parse_groups(group))
        _say_causes(seen.groups, again)
        if any(own.is_needed for own in seen.groups):
            return _WRONG_USE
        described, lines = _write(folder, _ESTATE, seen.text), seen.missing
        if described.name != _ESTATE:
            print_line("mqtwin: to use the one that stays, run")
            print_command((*again, str(path / _ESTATE)))
    try:
        estate = load_estate(described)
    except EstateError as error:
        for message in (str(error), *error.others, *kinds(lines)):
            print_line(f"mqtwin: {message}")
        print_line(f"mqtwin: correct {described}, then run")
        print_command(again if estates else (*again, str(described)))
        return _WRONG_USE
    recording = _record(site_files, folder, estate, options, lines)
    if not no_console:
        console(recording=recording, estate=described, listen=listen, open_=open_)
    return None


def _say_causes(groups: Sequence[MissingGroup], again: Sequence[str]) -> None:
    """Print which groups no file describes, and the command that does."""
    for own in groups:
        print_line(f"mqtwin: {own.text}")
    if groups:
        print_command((*again, *(word for own in groups for word in ("--group", own.option))))


def _write(folder: OwnFolder, name: str, text: str) -> Path:
    """Write a result into the folder and return its path; a file of that name that is not as `start` wrote it stays."""
    path = folder.write(name, text)
    _say_kept(folder, name, path)
    return path


def _say_kept(folder: OwnFolder, name: str, path: Path) -> None:
    if path.name != name:
        print_line(f"mqtwin: {folder.path / name} is read, or not as `mqtwin start` wrote it: it stays; see {path}")


def _site_files(names: Sequence[str], options: FeedOptions) -> list[SiteFile]:
    """Return the files that are no estate, and print what each is. UsageError: none of them has events."""
    files = [_site_file(name, options) for name in names if not name.endswith(".toml")]
    for own in files:
        print(printable(f"{own.path}: {own.format_name}{f' of {own.owner}' if own.owner else ''}"))
    if not any(own.format_name in (RECORDING, *FORMATS) for own in files):
        raise UsageError(f"{', '.join(names)}: no file has events; expected: one of {RECORDING}, {', '.join(FORMATS)}")
    return files


def _record(
    files: Sequence[SiteFile], folder: OwnFolder, estate: Estate, options: FeedOptions, lines: tuple[str, ...]
) -> Path:
    """Write recording.arrow and missing.txt, and say what is in them; return the recording.

    Args:
        files: the files.
        folder: where they are written. Its own recording is used as it is, if no other file has events.
        estate: the estate.
        options: facts that the data lack.
        lines: about what the data do not show of the estate.

    Raises:
        MqtwinError: no event was made.
    """
    with_events = [own.path for own in files if own.format_name in (RECORDING, *FORMATS)]
    if len(with_events) == 1 and is_same_file(with_events[0], folder.path / _RECORDING):
        recording = with_events[0]
        intakes, events = list[Intake](), sum(1 for _ in recorded(recording))
    else:
        recording = folder.free(_RECORDING)
        with show_progress("import") as advance:
            intakes, events = record_site(files, recording, estate, options, lambda events: advance(None, events))
        if events:
            folder.note_written(recording)
            _say_kept(folder, _RECORDING, recording)
    for intake in intakes:
        print_intake(intake, printed=len(intake.complaints))
        lines += (*map(str, intake.complaints), *intake.notes)
    few = _lacking_levels(recording) if events else []
    missing = tuple(dict.fromkeys((*lines, *few, *estate.warnings)))
    place = _write(folder, _MISSING, "".join(f"{line}\n" for line in missing))
    for line in kinds(missing):
        print_line(f"mqtwin: {line}" if line.startswith(_RISK) else f"mqtwin: not known: {line}")
    if not events:
        print_not_understood(*intakes)
        raise MqtwinError(f"{', '.join(map(str, with_events))}: no event was made; the lines above say why")
    summary = f"{as_count(events, 'event')} in {recording}"
    print(printable(f"{summary}; {as_count(len(missing), 'line')} about what is not known in {place}"))
    print_not_understood(*intakes)
    return recording


def _lacking_levels(recording: Path) -> list[str]:
    """Return a line for each store of which a recording has too few levels."""
    times = defaultdict[str, set[object]](set)
    for event in recorded(recording):
        if event["op"] == "MEASURE" and event["measured"].get("resync"):
            times[event["store"]].add(event["time"])
    few = {store: len(own) for store, own in sorted(times.items()) if len(own) < MIN_LEVELS}
    return [f"{store}: time to full not known yet, {known} of {MIN_LEVELS} levels" for store, known in few.items()]


def _site_file(text: str, options: FeedOptions) -> SiteFile:
    """Return the file of an argument: FILE, FORMAT:FILE or mqsc:OWNER=FILE. UsageError: what it is cannot be told."""
    name, colon, rest = text.partition(":")
    if not colon or name not in (RECORDING, CFRM, MQSC, *FORMATS):
        return recognise(Path(text), options)
    return site_file(name, rest)


def _ask(output: Path | None) -> tuple[tuple[str, ...], Path]:
    """Ask for files and for the folder. UsageError: nobody can answer, or there is no file."""
    if not sys.stdin.isatty():
        raise UsageError(
            "there is no file to start with; expected: mqtwin start FILE..., such as SMF, a job log, a CFRM policy"
        )
    names = []
    while name := input("File (SMF, job log, CFRM policy, MQSC, statistics; Enter ends): ").strip():
        if _path_of(name).is_file():
            names.append(name)
        else:
            print_line(f"mqtwin: {name} is not a file")
    if not names:
        raise UsageError("there is no file to start with; expected: SMF, a job log, statistics")
    asked = "" if output is not None else input(f"Folder for the result ({_FOLDER}): ").strip()
    return tuple(names), output or Path(asked or _FOLDER)
