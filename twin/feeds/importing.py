"""Files of a format to a recording: read, described where nothing is read, sifted by the estate, sorted, written."""

from __future__ import annotations

import heapq
import mmap
import re
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG, S_ISSOCK
from typing import IO, Any, cast

import msgspec

from twin.base.decoding import UNREADABLE
from twin.base.errors import MqtwinError, UsageError
from twin.base.listings import has_lines, is_ebcdic, record_length
from twin.estate import Estate
from twin.events import Event, EventError
from twin.events.fields import FIELD
from twin.feeds.intake import Complaint, Intake, Item, with_resync
from twin.feeds.intervals import SpanCoverage
from twin.feeds.json_pages import objects_of
from twin.feeds.protocol import FORMATS, Feed, FeedOptions, Page, make_feed
from twin.feeds.smf_layout import EBCDIC
from twin.feeds.smf_records import smf_types
from twin.recordings.files import RecordingWriter, open_recording, suffix_of

NO_REASONS = {"no-time", "no-zone"}  # complaints that do not say why there are no events
RUN_EVENTS = 200_000  # events in memory
_RANKS = {"PUT": 0, "GET": 1, "MEASURE": 9}  # at one time a measurement comes last: it says what is there after it
_OTHER_RANK = 5
_WRITE_EVENTS = 10_000  # events per write
_EXCERPT_BYTES = 120
_IN_MEMORY_BYTES = 1 << 26  # of a file; what is larger is copied
_COPY_BYTES = 1 << 20
_PLACE = re.compile(r",? (?P<unit>line|byte) (?P<number>\d{1,12}).*")
_KINDS = ((S_ISDIR, "a folder"), (S_ISFIFO, "a named pipe"), (S_ISSOCK, "a socket"))
_HEAD_BYTES = 1 << 16  # of a file that are described
_MAX_SHOWN = 40  # characters or bytes of the beginning
_MAX_TYPES = 8
_MAGIC = (
    (b"\x1f\x8b", "a gzip file: unpack it first"),
    (b"PK\x03\x04", "a zip file: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file: unpack it first, unless it is a recording"),
    (b"BZh", "a bzip2 file: unpack it first"),
    (b"\xfd7zXZ\0", "an xz file: unpack it first"),
    (b"ARROW1", "an Arrow file, such as a recording"),
    (b"%PDF", "a PDF"),
    (b"\xff\xfe", "text in UTF-16: convert it to UTF-8"),
    (b"\xfe\xff", "text in UTF-16: convert it to UTF-8"),
)
_XMIT = "INMR01".encode(EBCDIC)  # behind length and flags, in a file of TSO TRANSMIT
_TRANSLATED = re.compile(rb"Q(?:MST|IS1|EST|ESD|PST|QST|JST|SST|TST|CST)|WTAS|WQST")  # eyecatchers of MQ, in ASCII
_JSON_NAME = re.compile(rb'"([\w.-]{1,40})"\s*:')
_PROGRAMS = (  # whose text is not read
    (
        re.compile(r"^[ \t]*MonitoringType:", re.MULTILINE),
        "text of amqsmon or amqsact: amqsevt -o json writes the messages of the same queue as JSON, which is read",
    ),
    (
        re.compile(r"^[ \t]*\*{2,8} *Message #[0-9]|^Event Type[ \t]+: ", re.MULTILINE),
        "text of amqsevt: run it with -o json, whose output is read",
    ),
)
_TEXT_CONTROLS = frozenset("\t\n\r\f\x1a\x85\ufeff")


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

    Events of names that the estate lacks go to the recording `aside`, or are only counted. `counts`: a recording of
    statistics, which adds the puts and gets that spans do not show. Without any event, or on failure, the previous
    content of `recording` stays. UsageError: there is no such format, a file cannot be read, or a recording cannot be
    written.
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
        events = intake.account(feed_events(feed, read_pages(paths, intake.complain)))
        if counts is not None:
            events = with_counts(events, Path(counts), intake, estate)
        ordered = _with_gaps(sort_events(intake.sift(events, put_aside, is_end=True)), intake, estate)
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


def feed_events(feed: Feed, pages: Iterable[Page]) -> Iterator[Item]:
    """Yield what all pages hold, then what the feed held back. A page of which nothing is read says why."""
    feed.has_files = True
    for page in pages:
        before = feed.object_count
        yield from read_page(feed, page, page.name)
        if feed.object_count == before:
            text = f"nothing is read of it: it looks like {describe_file(page.data)}; expected: {feed.reads}"
            yield Complaint("nothing-read", page.name, text)
            _note_excerpt(feed.intake, page)
    yield from _guarded(feed.finish(), "end of the input")
    yield from feed.intake.soundness.complaints(is_end=True)


def _guarded(items: Iterable[Item], place: str) -> Iterator[Item]:
    """Yield what a reader yields; if it fails, complain and leave out the rest of the page."""
    try:
        yield from items
    except (MqtwinError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 -- what others write decides what a reader meets
        yield Complaint("reader-failed", place, f"{type(error).__name__}: {error}")


def read_page(feed: Feed, page: Page, source: str) -> Iterator[Item]:
    """Yield what a page holds; its lines or objects count for the input `source`: a file, a topic or a server."""
    before, options = feed.object_count, feed.options
    feed.intake.begin_input(source)
    feed.options = options.of_input(page.name)
    try:
        for part in objects_of(feed, page):
            yield from _guarded(feed.take(part), page.name)
    finally:
        feed.options = options
        feed.intake.count_objects(feed.object_count - before)
        _note_excerpt(feed.intake, page)


def _note_excerpt(intake: Intake, page: Page) -> None:
    """Keep the beginning of the first line of the present input that was not understood, if it is text of this page."""
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
    `counts`: a recording, read twice. UsageError: the recording cannot be read.
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
            except (*UNREADABLE, KeyError, EventError) as error:
                raise UsageError(
                    f"{path} line {number}: no event: {error}; expected: a recording of statistics"
                ) from None


def _with_gaps(events: Iterator[Event], intake: Intake, estate: Estate) -> Iterator[Event]:
    """Yield events as `behind_gaps`; what was counted is known when all of them were read and sorted."""
    first = next(events, None)
    if first is not None:
        yield from behind_gaps(chain((first,), events), ends_of_gaps((intake,), estate))


def ends_of_gaps(intakes: Iterable[Intake], estate: Estate) -> dict[str, list[int]]:
    """Return when each time ends of which a source has no counts, in microseconds since 1970, by store."""
    ends = defaultdict[str, set[int]](set)
    for intake in intakes:
        for coverage in intake.coverage.values():
            route = estate.queue_routes.get((coverage.qmgr, coverage.name))
            reported = intake.reported.get((coverage.source, coverage.qmgr))
            if route is not None and reported is not None:
                ends[estate.routes[route].store].update(end for _, end in reported.gaps)
    return {store: sorted(own) for store, own in ends.items()}


def behind_gaps(events: Iterable[Event], ends: Mapping[str, Sequence[int]]) -> Iterator[Event]:
    """Yield events; behind each gap in the counts of a store the first MEASURE, of each kind, asks for a resync."""
    passed: dict[tuple[str, frozenset[str]], int] = {}  # number of these ends, by store and fields
    for event in events:
        own = ends.get(event["store"]) if event["op"] == "MEASURE" else None
        if not own:
            yield event
            continue
        key = event["store"], frozenset(event["measured"])
        now = bisect_right(own, event["time"])
        is_first = now > passed.get(key, 0)
        passed[key] = now
        yield with_resync(event) if is_first else event


def _kind(mode: int) -> str:
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "a device")


def read_pages(
    paths: Iterable[str | Path], complain: Callable[[str, str, str], None] = lambda _code, _place, _text: None
) -> Iterator[Page]:
    """Yield a page per file; `time` is the time of its last change.

    A mapped file that somebody cuts ends the process by a signal. So the content is read at once, that of a large one
    into a file without a name, which is mapped. UsageError: a file is missing or cannot be read.
    """
    for path in map(Path, paths):
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode):
                raise UsageError(f"{path} is {_kind(status.st_mode)}; expected: a file")
            with path.open("rb") as file, _content(file, status.st_size) as data:
                if len(data) < status.st_size:
                    text = f"it had {status.st_size:,} bytes, {len(data):,} could be read: it was cut meanwhile"
                    complain("truncated", str(path), f"{text}; expected: a file that stays as it is")
                yield Page(data, str(path), status.st_mtime_ns // 1000)
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} cannot be read: {error}; expected: a file") from None


@contextmanager
def _content(file: IO[bytes], size: int) -> Iterator[bytes | mmap.mmap]:
    """Yield the content of a file; less than `size` bytes if it was cut meanwhile."""
    if size <= _IN_MEMORY_BYTES:
        yield file.read(size)
        return
    with tempfile.TemporaryFile() as copy:
        while (left := size - copy.tell()) and (piece := file.read(min(left, _COPY_BYTES))):
            copy.write(piece)
        copy.flush()
        if not copy.tell():
            yield b""
            return
        with mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


# --- order of time ---------------------------------------------------------------------------------------------------

_Key = tuple[int, int]


def sort_key(event: Event) -> _Key:
    """Return the position of an event: its time, then puts before gets before others, measurements last."""
    return event["time"], _RANKS.get(event["op"], _OTHER_RANK)


def sort_events(events: Iterable[Event], run_events: int = RUN_EVENTS) -> Iterator[Event]:
    """Yield events by time, those of one time and rank as they came; beyond `run_events` in temporary files."""
    files: list[IO[bytes]] = []
    run: list[Event] = []
    try:
        for event in events:
            run.append(event)
            if len(run) >= run_events:
                files.append(_write(sorted(run, key=sort_key)))
                run = []
        run.sort(key=sort_key)
        yield from heapq.merge(*map(_read, files), run, key=sort_key)  # stable: of equals the earlier run first
    finally:
        for file in files:
            file.close()


def _write(run: list[Event]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  (read back and closed by `in_order`)
    encoder = msgspec.json.Encoder()
    for event in run:
        file.write(encoder.encode(event) + b"\n")
    file.seek(0)
    return file


def _read(file: IO[bytes]) -> Iterator[Event]:
    decoder = msgspec.json.Decoder(Event)
    for line in file:
        yield decoder.decode(line)


# --- what a file looks like -------------------------------------------------------------------------------------------


def describe_file(data: bytes | mmap.mmap) -> str:
    """Return what a file looks like by its beginning, and what to do with it where that is known."""
    head = bytes(data[:_HEAD_BYTES])
    if not head:
        return "an empty file"
    for magic, words in _MAGIC:
        if head.startswith(magic):
            return words
    if head[2:8] == _XMIT:
        return "a file of TSO TRANSMIT: RECEIVE it first"
    known = _smf_of(head) or _text_of(head, data) or _translated(head)
    return known or f"binary data that begins with {head[:8].hex(' ')}"


def _smf_of(head: bytes) -> str | None:
    types, has_rdw = smf_types(head)
    if not types:
        return None
    words = ", ".join(map(str, types[:_MAX_TYPES])) + (", ..." if len(types) > _MAX_TYPES else "")
    text = f"SMF records of type{'s' if len(types) > 1 else ''} {words}"
    return text if has_rdw else f"{text}, without record descriptor words"


def _translated(head: bytes) -> str | None:
    """Return what SMF looks like behind a transfer as text, byte by byte or into UTF-8."""
    back = head.decode("latin-1").encode(EBCDIC)  # the usual table, which has an ASCII character for each byte
    if not _TRANSLATED.search(head) and not smf_types(back)[0]:
        return None
    return "SMF translated to ASCII: transfer it again, in binary, with quote site rdw"


def _text_of(head: bytes, data: bytes | mmap.mmap) -> str | None:
    if is_ebcdic(head):
        length = record_length(data)
        words = f" in records of {length} bytes" if length else "" if has_lines(data) else " without ends of lines"
        return f"EBCDIC text{words}: convert it to UTF-8"
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or len(head) < _HEAD_BYTES:
            return None
        text = head[: error.start].decode()  # the last character is cut
    if any(not character.isprintable() and character not in _TEXT_CONTROLS for character in text):
        return None
    stripped = text.strip(" \t\r\n\ufeff")
    if stripped[:1] in {"{", "["}:
        names = [f'"{name.decode()}"' for name in dict.fromkeys(_JSON_NAME.findall(head))][:3]
        return f"JSON with {', '.join(names)}" if names else "JSON without names"
    if stripped.startswith("<"):
        return "HTML or XML"
    begin = f'text that begins with "{stripped.splitlines()[0][:_MAX_SHOWN]}"' if stripped else "blanks"
    return next((words for program, words in _PROGRAMS if program.search(text)), begin)
