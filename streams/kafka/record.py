"""The events topic into a recording.

Order: that of each partition, so that of each store; partitions come as they are read. What the stream would dead-
letter is kept where the recording can hold it as text, so that a replay dead-letters it too; what it cannot hold is
counted.

Source: contract sections 2 and 6.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from streams.kafka.clients import CONNECT_SECONDS, LastError, check, new_consumer, partitions_of
from streams.kafka.recording_files import GrowingRecording, WholeRecording
from streams.kafka.topics import Topics, topic_id
from twin.errors import MqtwinError, UsageError
from twin.events import ARROW, JSON, NDJSON, Reason, content_type
from twin.events._ipc import read_streams
from twin.recordings import TableChunk, suffix_of

NOT_FOR_COLUMNS = "not-for-columns"  # a text that an `.arrow` recording has no columns for

_BATCH = 10_000  # records read at once
_WAIT_SECONDS = 0.2
_STALLED_SECONDS = 60.0  # without a record before the end: nobody answers any more

_SETTINGS = {
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 16 * 1024 * 1024,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 128 * 1024,
}


@dataclass(slots=True)
class Recorded:
    """What was recorded.

    path: where it is. is_untouched: nothing came, and a recording that was there stays. lost: what the recording cannot
    hold, by reason; first_lost: where the first of them was.
    """

    events: int = 0
    records: int = 0
    path: Path | None = None
    is_untouched: bool = False
    lost: dict[str, int] = field(default_factory=dict)
    first_lost: str = ""

    def lose(self, reason: str, message: Message | None, count: int = 1) -> None:
        """Count what the recording cannot hold."""
        self.lost[reason] = self.lost.get(reason, 0) + count
        if not self.first_lost and message is not None:
            self.first_lost = f"partition {message.partition()} offset {message.offset()}"


def record(
    path: str | Path,
    kafka: Mapping[str, str],
    topics: Topics,
    *,
    follow: bool = False,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Recorded], None] | None = None,
) -> Recorded:
    """Record the events topic from its beginning, or, with `follow`, from where the recording ends.

    Args:
        path: `.ndjson`, `.ndjson.zst` or `.arrow`; replaced where it exists, when all is there. With `follow` it is
            continued instead, which `.arrow` cannot be.
        kafka: client settings, `bootstrap.servers` among them.
        topics: names of the topics.
        follow: go on beyond what is there now, until `stop`.
        stop: looked at a few times a second.
        on_progress: called after each piece.

    Raises:
        UsageError: a place that cannot be written, a recording that cannot be continued, a setting that is wrong, no
            right to read the topic.
        MqtwinError: no Kafka answers, there is no such topic, or no room; what came before is kept.
    """
    recorded = Recorded()
    path = Path(path)
    suffix_of(path)
    with EventReader(kafka, topics.events, follow=follow) as reader:
        target: WholeRecording | GrowingRecording
        if follow:
            target = GrowingRecording(path, topics.events, topic_id(kafka, topics.events))
        else:
            target = WholeRecording(path)
        reader.start(target.start if isinstance(target, GrowingRecording) else {}, path)
        with target:
            _copy(reader, target, recorded, stop, on_progress)
            target.finish(whole=reader.at_end)
    recorded.path, recorded.is_untouched = target.path, target.is_untouched
    return recorded


def _copy(
    reader: EventReader,
    target: WholeRecording | GrowingRecording,
    recorded: Recorded,
    stop: Callable[[], bool],
    on_progress: Callable[[Recorded], None] | None,
) -> None:
    recording = _Recording(target, recorded)
    while not reader.at_end and not stop():
        messages = reader.read()
        if messages:
            recording.add(messages)
            recorded.records += len(messages)
            recorded.events = target.events
        target.mark(messages)
        if messages and on_progress is not None:
            on_progress(recorded)


class EventReader:
    """Reads a topic, up to the end it had when this was made, or for ever; `start` first. A context manager."""

    def __init__(self, kafka: Mapping[str, str], topic: str, *, follow: bool) -> None:
        self._topic = topic
        self._last_error = LastError()
        self._consumer: Consumer = new_consumer(kafka, _SETTINGS, self._last_error)
        numbers = partitions_of(self._consumer, topic, kafka, self._last_error)
        if not numbers:
            raise MqtwinError(f"there is no topic {topic}; is the prefix right, and has anything been published?")
        self._ends: dict[int, int] = {} if follow else self._present_ends(numbers)
        self._follow = follow
        self._numbers = numbers
        self._last_read = time.monotonic()

    def start(self, offsets: Mapping[int, int], recording: Path) -> None:
        """Begin to read: at these offsets, and at the beginning of every other partition.

        Raises:
            UsageError: Kafka does not hold the records at these offsets any more: `recording` would have a hole.
        """
        for number, offset in offsets.items():
            low, _ = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=CONNECT_SECONDS)
            if offset < low:
                raise UsageError(
                    f"{recording} ends at offset {offset} of partition {number}, Kafka begins at {low}: it would have "
                    "a hole; expected: a new name"
                )
        begins = {number: offsets.get(number, OFFSET_BEGINNING) for number in self._numbers}
        self._consumer.assign([TopicPartition(self._topic, number, begin) for number, begin in begins.items()])

    def _present_ends(self, numbers: Sequence[int]) -> dict[int, int]:
        """The end of every partition that has anything in it."""
        ends = {}
        for number in numbers:
            place = TopicPartition(self._topic, number)
            low, high = self._consumer.get_watermark_offsets(place, timeout=CONNECT_SECONDS)
            if high > low:
                ends[number] = high
        return ends

    @property
    def at_end(self) -> bool:
        """Whether all partitions were read to the end they had."""
        return not self._follow and not self._ends

    def read(self) -> list[Message]:
        """The next records, perhaps none; those of a partition in its order."""
        messages = []
        for message in self._consumer.consume(_BATCH, _WAIT_SECONDS):
            error = message.error()
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None:  # an error of the client, of no one partition
                check(error, self._topic)
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- librdkafka's name
                self._reached(partition, offset)
            elif check(error, self._topic):
                if self._follow or offset < self._ends.get(partition, 0):
                    messages.append(message)
                self._reached(partition, offset + 1)
        self._check_stalled(bool(messages))
        return messages

    def _check_stalled(self, read: bool) -> None:
        now = time.monotonic()
        if read or self._follow or self.at_end:
            self._last_read = now
        elif now - self._last_read > _STALLED_SECONDS:
            left = ", ".join(f"partition {number} before offset {end}" for number, end in sorted(self._ends.items()))
            raise MqtwinError(f"topic {self._topic}: nothing more comes, {left} was not read: {self._last_error.text}")

    def _reached(self, partition: int, offset: int) -> None:
        if offset >= self._ends.get(partition, offset + 1):
            del self._ends[partition]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


class _Recording:
    """Turns records into what the writer takes."""

    def __init__(self, target: WholeRecording | GrowingRecording, recorded: Recorded) -> None:
        self._target = target
        self._recorded = recorded
        self._takes_text = target.path.suffix != ".arrow"

    def add(self, messages: Sequence[Message]) -> None:
        """Records in their order."""
        for kind, run in itertools.groupby(messages, key=_content_type):
            if kind == JSON:
                self._add_texts([(message, text) for message in run for text in self._whole(message)])
            elif kind == NDJSON:
                self._add_texts([(message, line) for message in run for line in _lines(message)])
            elif kind == ARROW:
                for message in run:
                    self._add_stream(message)
            else:
                for message in run:
                    self._recorded.lose(Reason.UNKNOWN_CONTENT_TYPE, message)

    def _whole(self, message: Message) -> Iterator[bytes]:
        """The one event of a JSON record. A line of nothing would be no event but no line."""
        value = message.value() or b""
        if value.strip():
            yield value
        else:
            self._recorded.lose(Reason.NOT_JSON, message)

    def _add_texts(self, texts: Sequence[tuple[Message, bytes]]) -> None:
        """JSON texts; where some are no events that columns take, they are found by halving."""
        try:
            self._target.writer.write_lines([text for _, text in texts])
        except UsageError:
            if len(texts) == 1:
                self._recorded.lose(NOT_FOR_COLUMNS, texts[0][0])
                return
            middle = len(texts) // 2
            self._add_texts(texts[:middle])
            self._add_texts(texts[middle:])

    def _add_stream(self, message: Message) -> None:
        groups, damages = read_streams(pa.array([message.value()], pa.large_binary()))
        for group in groups:
            table = pa.Table.from_batches(group.batches)
            if self._takes_text:
                self._target.writer.write_lines(TableChunk(0, table).lines())
                continue
            try:
                self._target.writer.write(table)
            except UsageError:
                self._add_texts([(message, text) for text in TableChunk(0, table).lines()])
        for damage in damages:
            self._recorded.lose(damage.reason, message)


def _content_type(message: Message) -> str:
    headers: Any = message.headers() or ()
    return content_type(next((value for name, value in headers if name == "content-type"), None))


def _lines(message: Message) -> Iterator[bytes]:
    for line in (message.value() or b"").split(b"\n"):
        if line.strip():
            yield line
