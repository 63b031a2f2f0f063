"""Files of a format to a recording: read, sifted by the estate, sorted by time, written."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG, S_ISSOCK
from typing import Any, cast

import msgspec

from twin.errors import UsageError
from twin.estate import Estate
from twin.events import Event, EventError
from twin.events.fields import FIELD
from twin.feeds.coverage import SpanCoverage
from twin.feeds.file_types import describe_file
from twin.feeds.formats import FORMATS, make_feed
from twin.feeds.intake import Intake
from twin.feeds.ordering import sort_events
from twin.feeds.protocol import Feed, FeedOptions, Page
from twin.recordings.files import RecordingWriter, open_recording, suffix_of

NO_REASONS = {"no-time", "no-zone"}  # complaints that do not say why there are no events
_WRITE_EVENTS = 10_000  # events per write
_EXCERPT_BYTES = 120
_PLACE = re.compile(r",? (?P<unit>line|byte) (?P<number>\d{1,12}).*")
_KINDS = ((S_ISDIR, "a folder"), (S_ISFIFO, "a named pipe"), (S_ISSOCK, "a socket"))


def import_files(
    name: str,
    paths: Iterable[str | Path],
    recording: str | Path,
    estate: Estate,
    options: FeedOptions | None = None,
    *,
    aside: str | Path | None = None,
    counts: str | Path | None = None,
    resync: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Intake:
    """Convert files to a recording, in order of time. Return what was seen, covered and wrong.

    Args:
        name: format.
        paths: its files.
        recording: file to write. What was there stays on failure, and where no event is made.
        estate: the estate; events of names that it lacks are not written there.
        options: facts that the data lack.
        aside: recording of the events of unknown names; None: they are only counted.
        counts: recording of statistics, which adds the puts and gets that spans do not show (`twin.feeds.coverage`).
        resync: every MEASURE asks for a resync, for stores whose puts and gets nothing reports.
        progress: called with the number of events written so far.

    Raises:
        UsageError: there is no such format, a file cannot be read, or a recording cannot be written.
    """
    intake = Intake(estate, resync=resync)
    feed = make_feed(name, intake, options)
    if not FORMATS[name].is_file:
        raise UsageError(f"{name} has no files; expected: mqtwin collect {name}")
    outputs = [Path(path) for path in (recording, aside) if path is not None]
    for path in outputs:
        suffix_of(path)
    with ExitStack() as stack:
        writers = [stack.enter_context(RecordingWriter(path)) for path in outputs]
        writer, *aside_writers = writers
        put_aside = (lambda event: aside_writers[0].write([event])) if aside_writers else None
        events = feed_events(feed, read_pages(paths))
        if counts is not None:
            events = with_counts(events, Path(counts), intake, estate)
        ordered = sort_events(intake.sift(events, put_aside, is_end=True))
        while batch := list(islice(ordered, _WRITE_EVENTS)):
            writer.write(batch)
            if progress is not None:
                progress(writer.events)
        for own in () if writer.events else writers:
            if not own.events and own.path.is_file():
                own.discard()
    if not (intake.events or intake.aside or intake.counts.keys() - NO_REASONS):
        text = f"what is read gives no event, only facts for mqtwin estate import; expected: {feed.reads}"
        intake.complain("no-events", name, text)
    return intake


def feed_events(feed: Feed, pages: Iterable[Page]) -> Iterator[Event]:
    """Yield the events of all pages, then those that the feed held back. A page of which nothing is read says why."""
    for page in pages:
        before = feed.object_count
        feed.intake.begin_input(page.name)
        yield from feed.take(page)
        feed.intake.count_objects(feed.object_count - before)
        if feed.object_count == before:
            text = f"nothing is read of it: it looks like {describe_file(page.data)}; expected: {feed.reads}"
            feed.intake.complain("nothing-read", page.name, text)
        note_excerpt(feed.intake, page)
    yield from feed.finish()


def note_excerpt(intake: Intake, page: Page) -> None:
    """Keep the beginning of the first line that was not understood, for the present input, where it is text.

    Args:
        intake: intake of the feed.
        page: the last page of the input, in which that line was.
    """
    own = intake.inputs[-1]
    if own.first is None or own.excerpt or own.is_mostly_read:
        return
    match = _PLACE.fullmatch(own.first.place.removeprefix(page.name))
    start = 0
    if match is not None and match["unit"] == "byte":
        start = int(match["number"])
    elif match is not None:
        for _ in range(int(match["number"]) - 1):
            start = page.data.find(b"\n", start) + 1
    head = bytes(page.data[start : start + _EXCERPT_BYTES]).strip(b"\r\n").partition(b"\n")[0]
    with suppress(UnicodeDecodeError):
        text = head.decode("ascii").strip()
        own.excerpt = f'"{text}"' if text.isprintable() and text else ""


def with_counts(events: Iterable[Event], counts: Path, intake: Intake, estate: Estate) -> Iterator[Event]:
    """Yield events of spans, then those of statistics without what spans show; the shares go to `Intake.notes`.

    Args:
        events: events of spans.
        counts: recording of events from statistics; it is read twice.
        intake: intake of the feed.
        estate: the estate.

    Raises:
        UsageError: the recording cannot be read.
    """
    coverage = SpanCoverage(estate)
    for event in events:
        coverage.note_span(event)
        yield event
    for event in recorded(counts):
        coverage.note_count(event)
    for event in recorded(counts):
        thinned = coverage.thin(event)
        if thinned is not None:
            yield thinned
    intake.notes += coverage.lines()


def recorded(path: Path) -> Iterator[Event]:
    """Yield the events of a recording, their times as microseconds. UsageError: it cannot be read."""
    for chunk in open_recording(path):
        for number, line in enumerate(chunk.lines(), chunk.first):
            if not line.strip():
                continue
            try:
                fields = msgspec.json.decode(line, type=dict[str, Any])
                fields |= {"time": FIELD["time"].checked(fields.get("time")), "op": fields["op"]}
                yield cast("Event", fields)
            except (msgspec.DecodeError, UnicodeDecodeError, KeyError, EventError) as error:
                raise UsageError(
                    f"{path} line {number}: no event: {error}; expected: a recording of statistics"
                ) from None


def _kind(mode: int) -> str:
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "a device")


def read_pages(paths: Iterable[str | Path]) -> Iterator[Page]:
    """Yield a page per file, mapped into memory; `time` is the time of its last change.

    Raises:
        UsageError: a file is missing or cannot be read.
    """
    for path in map(Path, paths):
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):
                raise UsageError(f"{path} is {_kind(status.st_mode)}; expected: a file")
            with path.open("rb") as file:
                time = status.st_mtime_ns // 1000
                if not status.st_size:
                    yield Page(b"", str(path), time)
                    continue
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    yield Page(data, str(path), time)
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}; expected: a file") from None
