"""Readers of topics: of those that the job writes, for surfaces, and of the events. They store nothing in Kafka.

- Surfaces read topics and never ask the job. Their reader survives restarts of the broker and waits for topics that do
  not exist yet. `AlertReader` gives each alert once, in the order of the topic, however often it was delivered: the id
  of its record is the same at every delivery (docs/alerts.md, Delivery).
- `Latest` folds the latest records of the topics that the job writes. After a restart the same records give the same
  content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import msgspec
import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from streams.kafka.clients import (
    CONNECT_SECONDS,
    LastError,
    check,
    is_end,
    new_consumer,
    offset_range,
    partitions_of,
)
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.base.errors import MqtwinError, UsageError
from twin.events import Reason
from twin.records import AlertRecord, Incidents, StateRecord, read_alert_record, read_state_record
from twin.records.bounds import text_of

_BATCH = 1_000
_RETRY_SECONDS = 1.0  # between two look-ups of topics that do not exist yet
_ANSWER_SECONDS = 2.0
_MAX_SEEN = 100_000  # ids of alerts; a restarted job repeats one batch at most
_PRESENT_READ_SECONDS = 0.5
_EVENT_BATCH = 10_000  # records per read
_EVENT_READ_SECONDS = 0.2
_STALL_SECONDS = 60.0  # without a record before the end of the topic: no broker answers

_EVENT_SETTINGS = {
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 16 * 1024 * 1024,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 128 * 1024,
}

# Spark turns the time of a record from milliseconds into microseconds of 64 bits, and fails beyond them [Spark 4.2:
# KafkaRecordToRowConverter, DateTimeUtils.millisToMicros].
MAX_RECORD_MS = (2**63 - 1) // 1000

_log = structlog.get_logger("mqtwin.topics")


class TopicReader:
    """A reader of several topics, as far as the broker still holds them. A context manager. UsageError: a setting is
    wrong, or the user may not read a topic. MqtwinError: no Kafka answers at the start, or it refuses a topic.

    Args:
        topics: name -> how many of its latest records to begin with, by partition; None: all of them, 0: none. A topic
            that is created later is read from its beginning.

    Attributes:
        missing: the topics that do not exist yet, in the order of `topics`.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Mapping[str, int | None]) -> None:
        self._kafka = kafka
        self._last_error = LastError()
        defaults = {"auto.offset.reset": "earliest", "enable.partition.eof": True}
        self._consumer: Consumer = new_consumer(kafka, defaults, self._last_error)
        self._unread: set[tuple[str, int]] = set()  # partitions not yet read to their end
        self._first_topic = next(iter(topics))
        self._next_try_s = 0.0
        try:
            self.missing = [name for name, latest in topics.items() if not self._assign(name, latest)]
        except BaseException:
            self._consumer.close()
            raise

    @property
    def is_caught_up(self) -> bool:
        """True once every topic that exists has been read to its end; later records may be on their way."""
        return not self._unread

    def read(self, timeout: float) -> list[TopicRecord]:
        """Return the records that arrive within `timeout` seconds, in the order of each partition. UsageError: the user
        may not read a topic. MqtwinError: the broker refuses a topic.
        """
        if self.missing and time.monotonic() >= self._next_try_s:
            self._next_try_s = time.monotonic() + _RETRY_SECONDS
            try:
                self._assign_missing()
            except MqtwinError:  # the broker answered before, so it restarts
                return []
        if not self._consumer.assignment():
            time.sleep(min(timeout, _RETRY_SECONDS))
            return []
        records = []
        for message in self._consumer.consume(_BATCH, timeout):
            error, topic = message.error(), str(message.topic())
            if is_end(message):
                self._unread.discard((topic, message.partition()))
            elif check(error, topic):
                records.append(_record(message))
        return records

    def is_answering(self) -> bool:
        """Return True if a broker answers now."""
        try:
            self._consumer.list_topics(self._first_topic, timeout=_ANSWER_SECONDS)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, topic: str) -> None:
        """Begin to read one more topic, from its beginning, or once it exists. Errors as of the constructor."""
        if not self._assign(topic, None):
            self.missing.append(topic)

    def _assign_missing(self) -> None:
        for topic in tuple(self.missing):
            if self._assign(topic, None):
                self.missing.remove(topic)

    def _assign(self, topic: str, latest: int | None) -> bool:
        """Begin to read a topic and return True; False if it does not exist yet. latest: as in `topics`."""
        partitions = []
        for number in partitions_of(self._consumer, topic, self._kafka, self._last_error):
            start = OFFSET_BEGINNING
            if latest is not None:
                # An explicit offset, not OFFSET_END: nothing is missed if the broker restarts before the first record.
                low, end = offset_range(self._consumer, topic, number)
                start = max(low, end - latest)
            partitions.append(TopicPartition(topic, number, start))
        if partitions:
            self._consumer.incremental_assign(partitions)
            self._unread.update((topic, partition.partition) for partition in partitions)
        return bool(partitions)


def read_to_end(kafka: Mapping[str, str], topic: str) -> Iterator[TopicRecord]:
    """Yield the records that a topic has now, in the order of each partition; none where it does not exist. UsageError:
    the user may not read it. MqtwinError: no Kafka answers, or it refuses the topic.
    """
    with TopicReader(kafka, {topic: None}) as reader:
        while not reader.missing and not reader.is_caught_up:
            yield from reader.read(_PRESENT_READ_SECONDS)


def is_left_out(message: Message, skipped: Collection[tuple[int, int]] = ()) -> bool:
    """Return True if a record becomes a dead letter because Spark cannot read its time.

    Only --skip lets a job pass such a record, or any other that ends it. `skipped` has their partitions and offsets.
    """
    kind, written_ms = message.timestamp()
    is_readable = kind == TIMESTAMP_NOT_AVAILABLE or abs(written_ms) <= MAX_RECORD_MS
    return not is_readable or (message.partition(), message.offset()) in skipped


class EventReader:
    """A reader of a topic, without the records that the job leaves out. A context manager; `start` comes first. Unless
    `follow`, it ends where the topic ends now. UsageError: a setting is wrong, or the user may not read the topic.
    MqtwinError: no Kafka answers, or there is no such topic.
    """

    def __init__(
        self, kafka: Mapping[str, str], topic: str, *, follow: bool, skipped: Collection[tuple[int, int]] = ()
    ) -> None:
        self._topic, self._skipped = topic, skipped
        self.left_out: list[Message] = []  # of the last `read`
        self._last_error = LastError()
        self._consumer: Consumer = new_consumer(kafka, _EVENT_SETTINGS, self._last_error)
        numbers = partitions_of(self._consumer, topic, kafka, self._last_error)
        if not numbers:
            raise MqtwinError(f"there is no topic {topic}; is the prefix right, and has anything been published?")
        # First offset and end of each partition, as of now.
        self.ranges = {number: offset_range(self._consumer, topic, number) for number in numbers}
        self._ends: dict[int, int] = {}  # of unfinished partitions
        self._held: set[int] = set()  # partitions that wait for others
        self._follow, self._numbers = follow, numbers
        self._last_read_s = time.monotonic()

    def start(
        self,
        offsets: Mapping[int, int] | None = None,
        recording: Path | None = None,
        *,
        until: Mapping[int, int] | None = None,
    ) -> None:
        """Start reading. Partitions that `offsets` lacks are read from their beginning. `until` has the first offset
        that is not read of each partition, none of one that is not read at all; None: they are read to their ends.
        UsageError: Kafka has deleted the records at these offsets: `recording` would have a hole.
        """
        offsets = offsets or {}
        for number, offset in offsets.items():
            low, _ = self.ranges.get(number, (offset, offset))
            if offset < low:
                raise UsageError(
                    f"{recording} ends at offset {offset} of partition {number}, Kafka begins at {low}: it would have "
                    "a hole; expected: a new name"
                )
        numbers = self._numbers
        if not self._follow:
            ends = {
                number: last if until is None else min(last, until.get(number, 0))
                for number, (_, last) in self.ranges.items()
            }
            numbers = [number for number in numbers if ends[number] > offsets.get(number, self.ranges[number][0])]
            self._ends = {number: ends[number] for number in numbers}
        begins = {number: offsets.get(number, OFFSET_BEGINNING) for number in numbers}
        self._consumer.assign([TopicPartition(self._topic, number, begin) for number, begin in begins.items()])

    @property
    def unread(self) -> list[int]:
        """Partitions that are not read to their ends."""
        return list(self._ends)

    def hold(self, partitions: set[int]) -> None:
        """Read some partitions no further for now, and all others again."""
        pauses, resumes = partitions - self._held, self._held - partitions
        if pauses:
            self._consumer.pause([TopicPartition(self._topic, number) for number in pauses])
        if resumes:
            self._consumer.resume([TopicPartition(self._topic, number) for number in resumes])
        self._held = set(partitions)

    def finish(self, partition: int) -> None:
        """Read no more of a partition."""
        if self._ends.pop(partition, None) is not None:
            self._consumer.pause([TopicPartition(self._topic, partition)])

    @property
    def is_at_end(self) -> bool:
        """True if all partitions are read up to the end that they had at the start."""
        return not self._follow and not self._ends

    def read(self) -> list[Message]:
        """Return the next records, possibly none; those of a partition are in its order."""
        messages: list[Message] = []
        self.left_out = []
        for message in self._consumer.consume(_EVENT_BATCH, _EVENT_READ_SECONDS):
            error = message.error()
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None:  # an error of the client, not of a partition
                check(error, self._topic)
            elif is_end(message):
                self._mark_read(partition, offset)
            elif check(error, self._topic):
                if self._follow or offset < self._ends.get(partition, 0):
                    (self.left_out if is_left_out(message, self._skipped) else messages).append(message)
                self._mark_read(partition, offset + 1)
        self._check_stalled(has_read=bool(messages or self.left_out))
        return messages

    def _check_stalled(self, *, has_read: bool) -> None:
        now_s = time.monotonic()
        if has_read or self._follow or self.is_at_end:
            self._last_read_s = now_s
        elif now_s - self._last_read_s > _STALL_SECONDS:
            rest = ", ".join(f"partition {number} before offset {end}" for number, end in sorted(self._ends.items()))
            raise MqtwinError(f"topic {self._topic}: nothing more comes, {rest} was not read: {self._last_error.text}")

    def _mark_read(self, partition: int, next_offset: int) -> None:
        if next_offset >= self._ends.get(partition, next_offset + 1):
            self.finish(partition)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


def _record(message: Message) -> TopicRecord:
    kind, written_ms = message.timestamp()
    now_ms = int(time.time() * 1000)
    # A producer may write any time, such as nanoseconds; nothing was written before 1970 or after now.
    written_ms = now_ms if kind == TIMESTAMP_NOT_AVAILABLE else min(max(written_ms, 0), now_ms)
    return TopicRecord(
        str(message.topic()), written_ms, message.value(), _texts(message.headers()), message.key() or b""
    )


def _texts(headers: Any) -> dict[str, str]:
    """Return headers as text; what is not UTF-8 is replaced."""
    return {str(key): bytes(value or b"").decode(errors="replace") for key, value in headers or ()}


class AlertReader:
    """A reader of the alerts topic. A context manager; it survives restarts of the broker, and waits for the topic. It
    begins with the alerts that the topic holds already, or with new ones. MqtwinError: no Kafka answers at the start,
    or it refuses the topic.
    """

    def __init__(self, kafka: Mapping[str, str], topics: Topics, *, from_beginning: bool = False) -> None:
        self._reader = TopicReader(kafka, {topics.alerts: None if from_beginning else 0})
        self._guard = RecordGuard()
        self._seen: dict[str, None] = {}
        self.duplicates = 0

    @property
    def unreadable(self) -> int:
        """Number of records that are not alerts."""
        return self._guard.unreadable

    @property
    def is_waiting(self) -> bool:
        """True while the topic does not exist."""
        return bool(self._reader.missing)

    @property
    def is_caught_up(self) -> bool:
        """True once the topic has been read to its end, or while it does not exist."""
        return self._reader.is_caught_up

    def read(self, timeout: float) -> list[AlertRecord]:
        """Return the alerts that arrive within `timeout` seconds and were not read before. MqtwinError: refused."""
        alerts = (self._guard.take(record, self._decode_new) for record in self._reader.read(timeout))
        return [alert for alert in alerts if alert is not None]

    def _decode_new(self, record: TopicRecord) -> AlertRecord | None:
        """Return the alert; None for a duplicate, or a tombstone of the compacted topic."""
        if record.value is None:
            return None
        alert = read_alert_record(record.value)
        if alert.id in self._seen:
            self.duplicates += 1
            return None
        self._seen[alert.id] = None
        if len(self._seen) > _MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        return alert

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_alerts(reader: AlertReader, until_idle: float | None = None) -> Iterator[AlertRecord]:
    """Yield alerts as they arrive, without end or until none arrives for `until_idle` seconds.

    As long as the topic has not been read to its present end, a slow broker has `CONNECT_SECONDS` for the next alert.
    """
    last_s = time.monotonic()
    while until_idle is None or time.monotonic() - last_s < (
        until_idle if reader.is_caught_up else max(until_idle, CONNECT_SECONDS)
    ):
        for alert in reader.read(0.2):
            last_s = time.monotonic()
            yield alert


# --- latest records ---------------------------------------------------------------------------------------------------

OTHER_REASON = "other"  # of a dead letter whose reason is unknown here: written by a newer job, or by somebody else
_REASONS = tuple(str(reason) for reason in Reason)
_MAX_ENTRIES = 100_000  # of alerts and of stores, a bound for memory: a thousand stores have some thousand resources


class StateEntry(msgspec.Struct, frozen=True):
    """A state record and a surface's value derived from it. `written_s` is seconds since 1970, wall clock; `derived` is
    what `derive` of `Latest` returned.
    """

    state: StateRecord
    written_s: float
    derived: Any = None


class AlertEntry(msgspec.Struct, frozen=True):
    """The last record of an alert, and the time at which it was written: seconds since 1970, wall clock."""

    alert: AlertRecord
    written_s: float

    @property
    def is_open(self) -> bool:
        """True until the alert has cleared."""
        return self.alert.is_open


class Latest:
    """The latest state of each store, the open alerts, the alerts cleared lately, incidents, counts of dead letters.

    A record of another kind, or without a value from `derive`, is counted and changes nothing. Cleared alerts stay for
    `keep_cleared_s` of wall time. `derive` is called when a state record arrives.
    """

    def __init__(
        self,
        topics: Topics,
        keep_cleared_s: float = 300.0,
        derive: Callable[[StateEntry], Any] = lambda _: None,
    ) -> None:
        self._topics, self._keep_cleared_s, self._derive = topics, keep_cleared_s, derive
        self._guard = RecordGuard()
        self.states: dict[str, StateEntry] = {}
        self.alerts: dict[str, AlertEntry] = {}  # by alert id, in the order of their first record
        self.incidents = Incidents()
        self.dead_letters = dict.fromkeys((*_REASONS, OTHER_REASON), 0)
        self._site: tuple[float, str] = (0.0, "")  # of the state record that was written last, and when

    @property
    def unreadable(self) -> int:
        """Number of records that are neither states nor alerts."""
        return self._guard.unreadable

    @property
    def site(self) -> str:
        """Name of the site, by the state record that was written last; "": it has none."""
        return self._site[1]

    def apply(self, record: TopicRecord) -> AlertEntry | None:
        """Apply a record of any of the topics; return the entry if it is an alert that changes something."""
        return self._guard.take(record, self._apply)

    def _apply(self, record: TopicRecord) -> AlertEntry | None:
        if record.topic == self._topics.dlq:
            reason = record.headers.get("reason")
            self.dead_letters[reason if reason in _REASONS else OTHER_REASON] += 1
        elif record.topic == self._topics.state:
            self._apply_state(record)
        elif record.topic == self._topics.alerts:
            return self._apply_alert(record)
        return None

    def _apply_state(self, record: TopicRecord) -> None:
        """Apply a record of the state topic; without a value it deletes the store."""
        if record.value is None:
            self.states.pop(record.key.decode(errors="replace"), None)
            return
        entry = StateEntry(read_state_record(record.value), record.written_ms / 1000.0)
        store = entry.state.store
        if store not in self.states and len(self.states) >= _MAX_ENTRIES:
            raise ValueError(f"more than {_MAX_ENTRIES:,} stores")
        self.states[store] = msgspec.structs.replace(entry, derived=self._derive(entry))
        self._site = max(self._site, (entry.written_s, text_of(entry.state.site)), key=itemgetter(0))

    def _apply_alert(self, record: TopicRecord) -> AlertEntry | None:
        """Apply a record of the alerts topic; return None for a repeated one or a tombstone."""
        if record.value is None:
            alert_id = record.key.decode(errors="replace")
            self.alerts.pop(alert_id, None)
            self.incidents.forget_alert(alert_id)
            return None
        entry = AlertEntry(read_alert_record(record.value), record.written_ms / 1000.0)
        alert_id, number = entry.alert.data.alert_id, entry.alert.number
        before = self.alerts.get(alert_id)
        if before is not None and before.alert.number >= number:
            return None
        if before is None and len(self.alerts) >= _MAX_ENTRIES:
            raise ValueError(f"more than {_MAX_ENTRIES:,} alerts are open")
        if entry.is_open or entry.written_s > time.time() - self._keep_cleared_s:
            self.alerts[alert_id] = entry
        else:
            self.alerts.pop(alert_id, None)
        self.incidents.take(entry.alert)
        return entry

    def forget_cleared(self) -> None:
        """Forget alerts that cleared more than `keep_cleared_s` ago; to be called periodically."""
        limit_s = time.time() - self._keep_cleared_s
        old = [alert_id for alert_id, entry in self.alerts.items() if not entry.is_open and entry.written_s <= limit_s]
        for alert_id in old:
            del self.alerts[alert_id]
