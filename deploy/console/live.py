"""The threads of the console that read Kafka: the topics of the job for its model, and the events for what-if. And what
it writes: notes of people on alerts.

The twins for what-if begin with the events that the topic still holds. The job is not touched and its checkpoint is not
read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import msgspec
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from typing_extensions import override

from deploy.console.answers import Answers, converted
from deploy.console.model import MAX_LETTERS, MAX_NOTES_OF_ALERT, ConsoleModel
from kernels.layout import NEVER
from streams.kafka.clients import LastError, check, content_type_of, new_consumer, partitions_of
from streams.kafka.notes import tell_store, write_note
from streams.kafka.topic_reader import TopicReader, is_left_out
from streams.kafka.topics import Topics
from streams.query.past import JobPast
from twin.base.errors import MqtwinError, UsageError
from twin.base.units import as_text
from twin.estate import Estate
from twin.events import Decoder
from twin.planning.whatif import Moment, moment_of
from twin.playback.replays import Player
from twin.records import Note, check_note, new_note
from twin.stores.warm_up import warm

_TOPICS_READ_SECONDS = 0.25
_CHECK_READS = 20  # idle reads after which the broker is asked if it still answers: 5 s
_RETRY_SECONDS = 5.0  # after an error of the broker

_BATCH = 2_000
_EVENTS_READ_SECONDS = 0.5


class TopicFeed:
    """One reader of the topics that folds them into a model. A context manager. With `waits` it begins later where no
    Kafka answers at the start. UsageError: the user may not read a topic. MqtwinError: no Kafka answers at the start.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics, model: ConsoleModel, *, waits: bool = False) -> None:
        self._kafka, self._topics, self._model = kafka, topics, model
        self._stopping = threading.Event()
        self._reader = None if waits else self._open()
        self._reads_notes = False  # only once their alerts are known
        self._thread = threading.Thread(target=self._run, name="mqtwin-console-feed", daemon=True)
        self._thread.start()

    def _open(self) -> TopicReader:
        topics = self._topics
        return TopicReader(self._kafka, {topics.state: None, topics.alerts: None, topics.dlq: MAX_LETTERS})

    def _run(self) -> None:
        idle = 0
        while not self._stopping.is_set():
            try:
                if self._reader is None:
                    self._reader = self._open()
                reader = self._reader
                records = reader.read(_TOPICS_READ_SECONDS)
                if records:
                    self._model.fold(records)
                if reader.is_caught_up and not self._reads_notes:
                    reader.add(self._topics.notes)
                    self._reads_notes = True
                idle = 0 if records else idle + 1
                if idle == 0 or idle % _CHECK_READS == 1:
                    self._report(reader, connected=bool(records) or reader.is_answering())
            except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: /readyz says why, and it retries
                text = str(error) if isinstance(error, MqtwinError) else f"{type(error).__name__}: {error}"
                self._model.set_source(connected=False, caught_up=False, missing=[], problem=text)
                self._stopping.wait(_RETRY_SECONDS)
        if self._reader is not None:
            self._reader.close()

    def _report(self, reader: TopicReader, *, connected: bool) -> None:
        problem = "" if connected else f"no Kafka answers at {self._kafka.get('bootstrap.servers', '')}"
        caught_up = self._reads_notes and reader.is_caught_up and self._topics.state not in reader.missing
        missing = list(reader.missing)
        self._model.set_source(connected=connected, caught_up=caught_up, missing=missing, problem=problem)

    def close(self) -> None:
        """Stop reading."""
        self._stopping.set()
        self._thread.join(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NoteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /note; see `twin.records.Note`. text: "": none."""

    alert_id: str
    kind: str
    who: str
    action: str | None = None
    text: str = ""


class NoteTaker:
    """Takes notes of the page on alerts that the model knows, and writes them for everybody who reads the topic."""

    def __init__(self, kafka: Mapping[str, str], topics: Topics, model: ConsoleModel) -> None:
        self._kafka, self._topics, self._model = kafka, topics, model
        self._lock = threading.Lock()
        self._unread: dict[str, list[Note]] = {}  # by alert: on their way to the topic, or back from it

    def take(self, content: Any) -> Note:
        """Write the decoded body of POST /note, and return the note. UsageError: it is not a note, there is no such
        alert or action, or the alert has too many. MqtwinError: it was not delivered.
        """
        asked = converted(content, NoteRequest)
        now = as_text(round(time.time() * 1e6))
        note = new_note(asked.alert_id, asked.kind, asked.who, now, action=asked.action, text=asked.text)
        alerts = self._model.noted_alerts()
        check_note(note, alerts)
        with self._lock:
            self._unread = {alert_id: own for alert_id, own in self._unread.items() if alert_id in alerts}
            notes = self._model.notes_on(note.alert_id)
            unread = [own for own in self._unread.get(note.alert_id, ()) if own not in notes]
            number = len(notes) + len(unread)
            if number >= MAX_NOTES_OF_ALERT:
                raise UsageError(f"alert {note.alert_id} has {number} notes; expected: at most {MAX_NOTES_OF_ALERT}")
            self._unread[note.alert_id] = [*unread, note]
        try:
            write_note(self._kafka, self._topics, note)
        except MqtwinError:
            with self._lock:
                self._unread[note.alert_id].remove(note)
            raise
        tell_store(self._kafka, self._topics, note, alerts[note.alert_id])
        return note


class LiveTwins(Answers):
    """The twins of an estate, and answers about them. A context manager; `follow` starts the thread."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._player = Player(estate)
        self._decoder = Decoder(estate)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem = ""

    def follow(self, source: JobPast) -> Self:
        """Follow the events topic from its beginning. source: the job, with the estates that it had before."""
        self._thread = threading.Thread(target=self._run, args=(source,), name="mqtwin-console-twins", daemon=True)
        self._thread.start()
        return self

    def feed(self, values: list[bytes | None], content_types: list[bytes | None]) -> None:
        """Apply records of the events topic, in their order; those that the job would refuse are skipped."""
        decoded = self._decoder.records(values, content_types)
        with self._lock:
            self._player.feed(decoded)

    @override
    @contextmanager
    def moment(self, store: str, time_s: float | None) -> Iterator[Moment]:
        """Hold the present of a store still. UsageError: it is unavailable, or another time is requested; says why."""
        if time_s is not None:
            raise UsageError(f"time = {time_s:g}: these are twins of the present; expected: none")
        with self._lock:
            twin = self._player.twins.get(store)
            if twin is None:
                known = store in self._estate.stores
                reason = self._problem or (
                    "no event of it was read yet; expected: one that has events"
                    if known
                    else "the console's estate has no such store; expected: one of them"
                )
                raise UsageError(f"{store}: {reason}")
            yield moment_of(self._estate, twin)

    @property
    def now_us(self) -> int:
        """Latest event time of all stores, microseconds since 1970; NEVER before the first event."""
        with self._lock:
            return max((twin.clock for twin in self._player.twins.values()), default=NEVER)

    @override
    def problem(self) -> str:
        return self._problem

    def _run(self, source: JobPast) -> None:
        while not self._stopping.is_set():
            try:
                warm()
                self._follow_once(source)
            except Exception as error:  # noqa: BLE001 -- this thread never ends in silence: /readyz and answers say why
                self._problem = str(error) if isinstance(error, MqtwinError) else f"{type(error).__name__}: {error}"
                self._stopping.wait(_RETRY_SECONDS)

    def _follow_once(self, source: JobPast) -> None:
        last_error, topic = LastError(), source.topics.events
        consumer = new_consumer(source.kafka, {"auto.offset.reset": "earliest"}, last_error)
        try:
            numbers = partitions_of(consumer, topic, source.kafka, last_error)
            if not numbers:
                raise MqtwinError(f"topic {topic} does not exist yet")
            player, begin = source.last_stretch()
            skipped = source.skipped
            with self._lock:
                self._player = player
            consumer.assign([TopicPartition(topic, number, begin.get(number, OFFSET_BEGINNING)) for number in numbers])
            self._problem = ""
            while not self._stopping.is_set():
                messages = [
                    item for item in consumer.consume(_BATCH, _EVENTS_READ_SECONDS) if check(item.error(), topic)
                ]
                own = [item for item in messages if not is_left_out(item, skipped)]
                if own:
                    self.feed([item.value() for item in own], [content_type_of(item) for item in own])
                if len(messages) < _BATCH:
                    with self._lock:
                        self._player.catch_up()
        finally:
            consumer.close()

    def close(self) -> None:
        """Stop following."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
