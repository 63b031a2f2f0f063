"""Collection of a live feed: pages of a source as events on the events topic, keyed by store.

One bad page never ends it: what is wrong is a complaint. Events are delivered before the position is saved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from streams.feeds.position import save_position
from streams.feeds.sources import Source
from streams.kafka.outgoing import OutgoingChunk, StoreKeys
from streams.kafka.publish import Sender
from twin.estate import Estate
from twin.events import Decoder
from twin.feeds import Complaint, Event, Feed, Intake, Page
from twin.feeds.in_order import sort_key
from twin.recordings import LinesChunk

_SAVE_SECONDS = 5.0
_CHUNK_EVENTS = 10_000


class EventWriter:
    """Writer of events to the events topic.

    Args:
        sender: to the topic.
        estate: assigns events to stores.
    """

    def __init__(self, sender: Sender, estate: Estate) -> None:
        self._sender = sender
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


def collect(
    source: Source,
    feed: Feed,
    intake: Intake,
    writer: EventWriter,
    position_file: Path,
    *,
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
        stop: polled several times per second.
        on_complaint: called with each complaint that the intake keeps.
        on_events: called with the number of events published, after each of several pages.

    Raises:
        UsageError: the position cannot be saved.
        MqtwinError: Kafka does not take the events.
    """
    reported = 0
    saved_s = time.monotonic()
    is_changed = False
    while not stop():
        pages = source.read()
        if pages:
            writer.write(_events(source, feed, intake, pages))
            is_changed = True
            on_events(intake.events)
        for complaint in intake.complaints[reported:]:
            on_complaint(complaint)
        reported = len(intake.complaints)
        if is_changed and time.monotonic() - saved_s >= _SAVE_SECONDS:
            _save(source, feed, writer, position_file)
            saved_s, is_changed = time.monotonic(), False
    writer.write(_in_order(intake, feed.finish()))
    _save(source, feed, writer, position_file)


def _save(source: Source, feed: Feed, writer: EventWriter, path: Path) -> None:
    writer.flush()
    save_position(path, source.position(feed))


def _events(source: Source, feed: Feed, intake: Intake, pages: Iterable[Page]) -> list[Event]:
    """Return the events of some pages in order. A page for which a reader has no answer is a complaint."""
    events: list[Event] = []
    for page in pages:
        try:
            events += feed.take(page)
        except Exception as error:  # noqa: BLE001 -- a defect of a reader costs one page, not the collector
            intake.complain("reader-failed", page.name, f"{type(error).__name__}: {error}")
        source.note_taken(page, feed)
    return _in_order(intake, events)


def _in_order(intake: Intake, events: Iterable[Event]) -> list[Event]:
    return sorted(intake.sift(events), key=sort_key)
