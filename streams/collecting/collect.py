"""Collection of a live feed: pages of a source as events on the events topic, keyed by store.

One bad page never ends it: what is wrong is a complaint and a dead letter. Both and the events are delivered before the
position is saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from streams.collecting.complaints import ComplaintLetters
from streams.collecting.position import save_position
from streams.collecting.sources import Source
from streams.collecting.statistics import Statistics
from streams.kafka.letters import LetterSender
from streams.kafka.outgoing import OutgoingChunk, StoreKeys
from streams.kafka.publish import Sender
from twin.estate import Estate
from twin.events import Decoder
from twin.feeds import Complaint, Event, Feed, Intake, Page
from twin.feeds.in_order import sort_key
from twin.recordings.files import LinesChunk

_SAVE_SECONDS = 5.0
_CHUNK_EVENTS = 10_000


class EventWriter:
    """Writer of events to the events topic, and of dead letters to theirs.

    Args:
        sender: to the events topic.
        letters: to the dead letters.
        estate: assigns events to stores.
    """

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


def collect(
    source: Source,
    feed: Feed,
    intake: Intake,
    writer: EventWriter,
    position_file: Path,
    *,
    statistics: Statistics | None = None,
    stop: Callable[[], bool],
    on_complaint: Callable[[Complaint], None],
    on_events: Callable[[int], None] = lambda _: None,
) -> None:
    """Collect until `stop`; then publish what is held back and save the position.

    Args:
        source: of pages.
        feed: their reader.
        intake: of the feed.
        writer: to the events topic.
        position_file: keeps the position.
        statistics: scales spans by their coverage; None: events are taken as they are.
        stop: polled several times per second.
        on_complaint: called with each complaint that the intake keeps.
        on_events: called with the number of events published, after each of several pages.

    Raises:
        UsageError: the position cannot be saved.
        MqtwinError: Kafka does not take the events.
    """

    def scaled(events: list[Event]) -> list[Event]:
        return events if statistics is None else list(statistics.scale(events))

    def save() -> None:
        writer.flush()
        position = source.position(feed)
        if statistics is not None:
            position.coverage = statistics.coverage.known
        save_position(position_file, position)

    reported = 0
    letters = ComplaintLetters(intake, source.name, writer.send_letter)
    saved_s = time.monotonic()
    is_changed = False
    while not stop():
        pages = source.read()
        letters.send_new()
        if pages:
            writer.write(scaled(_events(source, feed, intake, pages, letters)))
            is_changed = True
            on_events(intake.events)
        for complaint in intake.complaints[reported:]:
            on_complaint(complaint)
        reported = len(intake.complaints)
        if is_changed and time.monotonic() - saved_s >= _SAVE_SECONDS:
            save()
            saved_s, is_changed = time.monotonic(), False
    writer.write(scaled(sorted(intake.sift(feed.finish(), is_end=True), key=sort_key)))
    letters.send_new()
    save()


def _events(
    source: Source, feed: Feed, intake: Intake, pages: Iterable[Page], letters: ComplaintLetters
) -> list[Event]:
    """Return the events of some pages in order. A page for which a reader has no answer is a complaint."""
    events: list[Event] = []
    for page in pages:
        try:
            events += intake.sift(feed.take(page))
        except Exception as error:  # noqa: BLE001 -- a defect of a reader costs one page, not the collector
            intake.complain("reader-failed", page.name, f"{type(error).__name__}: {error}")
        letters.send_new(page)
        source.note_taken(page, feed)
    return sorted(events, key=sort_key)
