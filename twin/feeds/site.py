"""Files that a site has: what each of them is, the estate that they show, and the recording that they make."""

from __future__ import annotations

import heapq
import os
import re
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from twin.errors import UsageError
from twin.estate import Estate
from twin.events import Event
from twin.feeds.estate_import import CFRM, estate_text, is_empty, look_at, unverified
from twin.feeds.file_types import describe_file
from twin.feeds.formats import FORMATS, make_feed
from twin.feeds.importing import import_files, read_pages, recorded
from twin.feeds.intake import Intake, with_resync
from twin.feeds.protocol import FeedOptions, Page
from twin.recordings.files import SUFFIXES, RecordingWriter

MQSC, RECORDING = "mqsc", "recording"
_LOOKED_AT = 8 << 20  # bytes of a file that tell its format
_POLICY = re.compile(rb"^\s*(?:DATA\s+TYPE\(CFRM\)|DEFINE\s+POLICY|STRUCTURE\s+NAME\()", re.MULTILINE | re.IGNORECASE)
_DEFINITION = re.compile(
    rb"^\s*DEF(?:INE)?\s+(?:QL(?:OCAL)?|QA(?:LIAS)?|QR(?:EMOTE)?|CFSTRUCT|ST(?:GCLASS|C)|PSID)\b",
    re.MULTILINE | re.IGNORECASE,
)
_WRITE_EVENTS = 10_000  # events per write


class SiteFile(NamedTuple):
    """A file of a site.

    Attributes:
        format_name: one of FORMATS, cfrm, mqsc, or recording.
        path: the file.
        owner: queue manager or queue-sharing group whose definitions a file of mqsc has; "": not known.
    """

    format_name: str
    path: Path
    owner: str = ""


class SiteEstate(NamedTuple):
    """An estate as its file's text, and a line for each thing that the data do not show."""

    text: str
    missing: tuple[str, ...]


def recognise(path: Path, options: FeedOptions) -> SiteFile:
    """Return a file with its format: that whose reader finds most in its beginning. A recording is known by its name.

    Args:
        path: the file.
        options: facts that the data lack.

    Raises:
        UsageError: it cannot be read, or no reader finds anything in it.
    """
    for page in read_pages([path]):
        if path.name.endswith(SUFFIXES):
            return SiteFile(RECORDING, path)
        head = bytes(page.data[:_LOOKED_AT])
        if _POLICY.search(head):
            return SiteFile(CFRM, path)
        objects = {name: _objects(name, head, page, options) for name, own in FORMATS.items() if own.is_file}
        best = max(objects, key=objects.__getitem__)
        if objects[best]:
            return SiteFile(best, path)
        if _DEFINITION.search(head):
            return SiteFile(MQSC, path)
        seen = describe_file(head)
    formats = ", ".join((RECORDING, CFRM, MQSC, *(name for name, own in FORMATS.items() if own.is_file)))
    raise UsageError(f"{path}: it looks like {seen}; expected: a file of a format that is read: {formats}")


def _objects(name: str, head: bytes, page: Page, options: FeedOptions) -> int:
    """Return the number of objects of a format in the beginning of a file.

    Some readers look at data only if the queue manager is known: any name will do here.
    """
    feed = make_feed(name, Intake(), replace(options, qmgr=options.qmgr or "QM01"))
    for _ in feed.take(Page(head, page.name, page.time)):
        pass
    return feed.object_count


def see_estate(
    files: Sequence[SiteFile], folder: Path, options: FeedOptions, groups: Mapping[str, Sequence[str]]
) -> SiteEstate:
    """Return the estate that files show.

    Args:
        files: the files.
        folder: where its file will be, for the paths of MQSC files.
        options: facts that the data lack.
        groups: queue managers by queue-sharing group, where no data name them.

    Raises:
        UsageError: a file cannot be read, they show nothing of an estate, or MQSC has no owner.
    """
    readable = [(own.format_name, own.path) for own in files if own.format_name in (CFRM, *FORMATS)]
    intake = look_at(readable, options, None, groups)
    definitions = [own for own in files if own.format_name == MQSC]
    if is_empty(intake.facts) and not definitions:
        names = ", ".join(str(own.path) for own in files)
        raise UsageError(
            f"{names}: nothing of an estate was found; expected: data that show a queue manager or a store"
        )
    seen = estate_text(intake.facts)
    known_groups = {key for key, _ in intake.facts.section("queue_sharing_group")}
    text = seen.text + "".join(_import_of(own, folder, known_groups, options.qmgr) for own in definitions)
    complaints = (str(complaint) for complaint in intake.complaints)
    return SiteEstate(text, (*seen.warnings, *unverified(intake.facts), *complaints))


def _import_of(file: SiteFile, folder: Path, groups: set[str], qmgr: str | None) -> str:
    """Return the table of an estate that reads a file of MQSC. UsageError: whose definitions they are is not known."""
    owner = file.owner or qmgr
    if not owner:
        raise UsageError(
            f"{file.path}: MQSC does not say whose definitions it has; expected: {MQSC}:QM01={file.path.name} or, of a"
            f" queue-sharing group, {MQSC}:QSG1={file.path.name}"
        )
    kind = "queue_sharing_group" if owner in groups else "queue_manager"
    path = os.path.relpath(file.path.absolute(), folder.absolute())
    return f'\n[[import]]\nmqsc = "{path}"\n{kind} = "{owner}"\n'


def record_site(
    files: Sequence[SiteFile],
    recording: Path,
    estate: Estate,
    options: FeedOptions,
    progress: Callable[[int], None] | None = None,
) -> list[Intake]:
    """Write the events of all files into one recording, in order of time; return an intake a format.

    The twin takes over every measurement of a store of which no file has puts and gets.

    Args:
        files: the files.
        recording: file to write.
        estate: the estate.
        options: facts that the data lack.
        progress: called with the number of events of a format so far.

    Raises:
        UsageError: a file cannot be read, or the recording cannot be written.
    """
    paths: dict[str, list[Path]] = {}
    for own in files:
        if own.format_name in FORMATS:
            paths.setdefault(own.format_name, []).append(own.path)
    recordings = [own.path for own in files if own.format_name == RECORDING]
    with tempfile.TemporaryDirectory(prefix="mqtwin-start-") as folder:
        parts = {name: Path(folder) / f"{name}.ndjson.zst" for name in paths}
        intakes = [
            import_files(name, paths[name], part, estate, options, progress=progress) for name, part in parts.items()
        ]
        counted = _counted_stores((*parts.values(), *recordings), estate)
        of_parts = (_believed(recorded(part), counted) for part in parts.values())
        merged = heapq.merge(*of_parts, *map(recorded, recordings), key=itemgetter("time"))
        with RecordingWriter(recording) as writer:
            while batch := list(islice(merged, _WRITE_EVENTS)):
                writer.write(batch)
    return intakes


def _counted_stores(files: Sequence[Path], estate: Estate) -> set[str]:
    """Return the stores of which files have puts or gets."""
    queues = {
        (event["qmgr"], event["queue"]) for path in files for event in recorded(path) if event["op"] in ("PUT", "GET")
    }
    return {estate.routes[estate.queue_routes[queue]].store for queue in queues if queue in estate.queue_routes}


def _believed(events: Iterable[Event], counted: Container[str]) -> Iterator[Event]:
    """Yield events; a MEASURE of a store without puts and gets asks for a resync."""
    for event in events:
        is_alone = event["op"] == "MEASURE" and event["store"] not in counted
        yield with_resync(event) if is_alone else event
