"""Collection of a live feed: pages of a source as events on the events topic, keyed by store.

One bad page never ends it: what is wrong is a complaint and a dead letter. Both and the events are delivered before the
position is saved. Of a code the first complaints are sent, later at most one a minute, with the number so far: sizes
that are never told must not fill the topic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from streams.collecting.sources import Source, load_position, save_position
from streams.host.signals import StopRequestedError
from streams.kafka.dead_letters import DeadLetter, LetterSender
from streams.kafka.publish import OutgoingChunk, Sender, StoreKeys
from twin.base.errors import UsageError
from twin.estate import Estate
from twin.events import Decoder
from twin.feeds import Complaint, Event, Feed, Intake, Page, PassedOver
from twin.feeds.importing import read_page, recorded, sort_key
from twin.feeds.intake import MAX_EXAMPLES
from twin.feeds.intervals import LiveCoverage
from twin.feeds.protocol import NOT_BY_TIME
from twin.recordings.files import LinesChunk

_SAVE_SECONDS = 5.0
_CHUNK_EVENTS = 10_000
UNKNOWN_NAME = "unknown-name"  # reason of a name that the estate lacks, once for each
_OF_OPTIONS = frozenset(("no-zone",))  # codes of what an option lacks: it is said, and no data are lost
_INTERVAL_S = 60.0  # between two dead letters of a code


class EventWriter:
    """Writer of events to the events topic, and of dead letters to theirs."""

    def __init__(self, sender: Sender, letters: LetterSender, estate: Estate) -> None:
        self._sender = sender
        self.send_letter = letters.send
        self._letters = letters
        self._decoder = Decoder(estate)
        self._stores = StoreKeys(estate)

    def write(self, events: list[Event]) -> None:
        """Produce events, which need not be delivered yet."""
        for start in range(0, len(events), _CHUNK_EVENTS):
            lines = [msgspec.json.encode(event) for event in events[start : start + _CHUNK_EVENTS]]
            chunk = LinesChunk(0, b"\n".join(lines) + b"\n")
            decoded = chunk.decode(self._decoder)
            outgoing = OutgoingChunk(chunk, decoded, self._stores)
            self._sender.send_json(outgoing.messages(0, len(decoded)))
            for reject in decoded.rejects:
                self._sender.send_reject(outgoing.reject_record(reject))

    def flush(self) -> None:
        """Wait until everything is delivered."""
        self._sender.flush()
        self._letters.flush()


class ComplaintLetters:
    """New complaints and unknown names of an intake as dead letters. `on_later` is called with each complaint that is
    sent and that the intake no longer keeps.
    """

    def __init__(
        self,
        intake: Intake,
        source: str,
        send: Callable[[DeadLetter], None],
        monotonic: Callable[[], float] = time.monotonic,
        on_later: Callable[[Complaint], None] = lambda _: None,
    ) -> None:
        self._intake, self._source, self._send, self._on_later = intake, source, send, on_later
        self._monotonic = monotonic
        self._counts: Counter[str] = Counter(intake.counts)
        self._sent: Counter[str] = Counter()
        self._sent_at: dict[str, float] = {}
        self._names: set[tuple[str, str]] = set(intake.unknown)

    def send_new(self, page: Page | None = None) -> None:
        """Send what has come up since the last call, one dead letter for each code and unknown name."""
        if self._counts != self._intake.counts:
            for code, count in self._intake.counts.items():
                if count > self._counts[code] and code not in _OF_OPTIONS and self._is_due(code):
                    complaint = self._intake.latest[code]
                    if count > 1:
                        complaint = replace(complaint, text=f"{complaint.text} ({count:,} such complaints so far)")
                    self._send(self._letter(complaint, page))
                    if count > MAX_EXAMPLES:
                        self._on_later(complaint)
            self._counts = Counter(self._intake.counts)
        if len(self._intake.unknown) == len(self._names):
            return
        new = [key for key in self._intake.unknown if key not in self._names]
        self._names.update(new)
        for number, key in enumerate(new):
            name, line = self._intake.unknown[key].label, self._intake.estate_line(self._intake.unknown[key])
            text = (
                f"{name} is not in the estate; expected: {line} there, as mqtwin estate import or mqtwin start --live"
            )
            text += " writes it, or no such data. A restarted job takes it; a depth that DISPLAY shows counts at once"
            letter = self._letter(Complaint(UNKNOWN_NAME, self._source, text), page)
            # A page may have hundreds of names; it is sent with the first.
            self._send(msgspec.structs.replace(letter, value=b"") if number else letter)

    def _is_due(self, code: str) -> bool:
        now = self._monotonic()
        if self._sent[code] >= MAX_EXAMPLES and now - self._sent_at[code] < _INTERVAL_S:
            return False
        self._sent[code] += 1
        self._sent_at[code] = now
        return True

    def _letter(self, complaint: Complaint, page: Page | None) -> DeadLetter:
        headers = page.headers if page is not None else {}
        value = bytes(page.data) if page is not None else b""
        return DeadLetter(
            reason=complaint.code,
            detail=f"{complaint.place}: {complaint.text}",
            topic=self._source,
            partition=int(headers.get("kafka.partition", -1)),
            offset=int(headers.get("kafka.offset", -1)),
            index=0,
            value=value,
            length=len(value),
        )


class Statistics:
    """Scaling of spans by a recording of statistics, which is read again whenever it has been replaced. The recording
    is written by `mqtwin import smf` and may be missing at first; `known` is the coverage of an earlier process.
    """

    def __init__(
        self, path: Path, estate: Estate, known: dict[str, tuple[int, int]], say: Callable[[str], None]
    ) -> None:
        self.coverage = LiveCoverage(estate, known)
        self._path, self._say = path, say
        self._version: tuple[int, int] | None = None

    def scale(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events of spans and of the calls that they represent; first read a changed recording."""
        self._refresh()
        yield from self.coverage.scale(events)

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            return
        version = (status.st_mtime_ns, status.st_size)
        if version == self._version:
            return
        self._version = version
        try:
            self.coverage.learn(recorded(self._path), self._say)
        except UsageError as error:
            self._say(f"{error}; the coverage stays as it was")


def collect(
    source: Source,
    feed: Feed,
    intake: Intake,
    writer: EventWriter,
    position_file: Path | None,
    *,
    statistics: Statistics | None = None,
    stop: Callable[[], bool],
    leaving: Callable[[], AbstractContextManager[None]] = nullcontext,
    on_complaint: Callable[[Complaint], None],
    on_events: Callable[[int], None] = lambda _: None,
) -> None:
    """Collect until `stop` or the end of the source; then publish what is held back and save the position.

    At a stop what is not whole yet is not given up: it is read again from the position. Without `position_file` the
    source has no position; without `statistics` spans are taken as they are. UsageError: the position cannot be read or
    saved. MqtwinError: Kafka does not take the events.
    """

    def scaled(events: list[Event]) -> list[Event]:
        return events if statistics is None else list(statistics.scale(events))

    if position_file is not None:
        known = load_position(position_file, source.name).announced
        feed.announced = {store: own for store, own in known.items() if intake.estate and store in intake.estate.stores}
    letters = ComplaintLetters(intake, source.name, writer.send_letter, on_later=on_complaint)
    reported, saved_s, is_changed = 0, time.monotonic(), False
    while not (stop() or source.is_ended):
        pages = _read(source, leaving)
        letters.send_new()
        if pages:
            events = _events(source, feed, intake, pages, letters)
            source.note_events(events)
            writer.write(scaled(events))
            _note_unsound(intake, is_end=False)
            is_changed = True
            on_events(intake.events)
        for complaint in intake.complaints[reported:]:
            on_complaint(complaint)
        reported = len(intake.complaints)
        if is_changed and time.monotonic() - saved_s >= _SAVE_SECONDS:
            _save(source, feed, writer, position_file, statistics)
            saved_s, is_changed = time.monotonic(), False
    is_end = source.is_ended or position_file is None
    rest = feed.finish() if is_end or not feed.begun_in else ()
    writer.write(scaled(sorted(intake.sift(rest, is_end=True), key=sort_key)))
    _note_unsound(intake, is_end=True)
    letters.send_new()
    _save(source, feed, writer, position_file, statistics)


def _save(
    source: Source, feed: Feed, writer: EventWriter, position_file: Path | None, statistics: Statistics | None
) -> None:
    """Deliver what was written, then save the position. Arguments as of `collect`."""
    writer.flush()
    if position_file is None:
        return
    position = source.position(feed)
    position.announced = feed.announced
    if statistics is not None:
        position.coverage = statistics.coverage.known
    save_position(position_file, position)


def _note_unsound(intake: Intake, *, is_end: bool) -> None:
    """Complain about what all data so far lack, each once. is_end: no more will come."""
    for complaint in intake.soundness.complaints(is_end=is_end):
        intake.complain(complaint.code, complaint.place, complaint.text)


def _read(source: Source, leaving: Callable[[], AbstractContextManager[None]]) -> list[Page]:
    """Return the next pages; none where a stop came before the answer of a server."""
    with suppress(StopRequestedError), leaving() if source.is_asked else nullcontext():
        return source.read()
    return []


def _events(
    source: Source, feed: Feed, intake: Intake, pages: Iterable[Page], letters: ComplaintLetters
) -> list[Event]:
    """Return the events of some pages in order. A page for which a reader has no answer is a complaint."""
    events: list[Event] = []
    for page in pages:
        try:
            items = read_page(feed, page, source.name)
            if page.before == NOT_BY_TIME:  # it is read again, and gave its events before the restart
                items = (item for item in items if isinstance(item, Complaint | PassedOver))
            events += intake.sift(items)
        except Exception as error:  # noqa: BLE001 -- a defect of a reader costs one page, not the collector
            intake.complain("reader-failed", page.name, f"{type(error).__name__}: {error}")
        letters.send_new(page)
        source.note_taken(page, feed)
    return sorted(events, key=sort_key)
