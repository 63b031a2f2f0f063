"""Records of a Kafka topic of someone else, as a source of pages: the one that needs a client of Kafka."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_LOG_APPEND_TIME, Message, TopicPartition
from typing_extensions import override

from streams.collecting.sources import HeldPages, Position, Source
from streams.kafka.admin import topic_id
from streams.kafka.clients import LastError, check, new_consumer, offset_range, partitions_of
from twin.base.errors import MqtwinError
from twin.feeds import Feed, Page
from twin.feeds.connect import APPEND_TIME

_BATCH = 500  # records per read
_READ_SECONDS = 0.2
_SETTINGS = {"auto.offset.reset": "earliest", "fetch.wait.max.ms": 100, "queued.max.messages.kbytes": 64 * 1024}


class TopicSource(Source):
    """Records of a Kafka topic of someone else, from a position on. Partitions that the position lacks are read from
    their beginning. MqtwinError: no Kafka answers, or there is no such topic.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        topic: str,
        position: Position,
        complain: Callable[[str, str, str], None] = lambda _code, _place, _text: None,
    ) -> None:
        self.name = topic
        self._complain = complain
        self._last_error = LastError()
        self._consumer: Any = new_consumer(kafka, _SETTINGS, self._last_error)
        numbers = partitions_of(self._consumer, topic, kafka, self._last_error)
        if not numbers:
            self._consumer.close()
            raise MqtwinError(f"there is no topic {topic}; expected: the topic that the data are written to")
        self._topic_id = topic_id(kafka, topic)
        if position.topic_id and position.topic_id != self._topic_id:
            text = f"the topic was made again (id {self._topic_id}, before {position.topic_id}); what it held before"
            complain("lost", topic, f"{text} and was not read is lost, and it is read from its beginning")
            position = Position(source=topic)
        begins = {number: self._begin_of(number, position) for number in numbers}
        self._next = {number: begin for number, begin in begins.items() if begin >= 0}
        self._consumer.assign([TopicPartition(topic, number, begin) for number, begin in begins.items()])
        self._read_before = dict(position.read)
        self._passed_before = position.passed
        self._read = dict(position.read)
        self._held: dict[str, HeldPages[int]] = {}  # by partition; places are offsets
        self._places: deque[tuple[str, int]] = deque()  # of the pages returned, not yet taken

    def _begin_of(self, number: int, position: Position) -> int:
        """Return the first offset to read of a partition; complain about records that are gone."""
        begin = position.offsets.get(str(number))
        if begin is None:
            return OFFSET_BEGINNING
        low, high = offset_range(self._consumer, self.name, number)
        if begin > high:
            text = f"it ends at offset {high:,}, {begin:,} records were read; expected: the topic of the position"
            self._complain("lost", f"{self.name}/{number}", f"{text}. It is read from its beginning")
            position.read.pop(str(number), None)
            return OFFSET_BEGINNING
        self._note_lost(number, begin, low)
        return max(begin, low)

    def _note_lost(self, number: int, expected: int, low: int) -> None:
        if low > expected:
            text = (
                f"{low - expected:,} records, offsets {expected:,} to {low - 1:,}, were removed before they were read"
            )
            self._complain("lost", f"{self.name}/{number}", f"{text}; expected: a retention longer than any stop")

    @override
    def read(self) -> list[Page]:
        return [
            self._page(message)
            for message in self._consumer.consume(_BATCH, _READ_SECONDS)
            if check(message.error(), self.name)
        ]

    def _page(self, message: Message) -> Page:
        partition = message.partition() or 0
        number, offset = str(partition), message.offset() or 0
        expected = self._next.get(partition, offset)
        if offset > expected + 1:  # one is the mark of a transaction; compaction, too, leaves gaps
            low, _ = offset_range(self._consumer, self.name, partition)
            self._note_lost(partition, expected, min(low, offset))
        self._next[partition] = offset + 1
        self._places.append((number, offset))
        headers: Any = message.headers() or ()
        key = _text(message.key())
        texts = {name.lower(): _text(value) for name, value in headers}
        place = {"kafka.topic": self.name, "kafka.partition": number, "kafka.offset": str(offset)}
        kind, created = message.timestamp()
        if kind == TIMESTAMP_LOG_APPEND_TIME:
            place[APPEND_TIME] = "1"
        return Page(
            message.value() or b"",
            f"{self.name}/{number}@{offset}",
            created * 1000 if created > 0 else time.time_ns() // 1000,
            {**texts, **({"kafka.key": key} if message.key() is not None else {}), **place},
            self._passed_before if offset < self._read_before.get(number, 0) else 0,
            f"{self.name}/{number}/{key}",
        )

    @override
    def note_taken(self, page: Page, feed: Feed) -> None:
        number, offset = self._places.popleft()
        self._read[number] = offset + 1
        self._held.setdefault(number, HeldPages()).note_taken(offset, page.name, feed)

    @override
    def position(self, feed: Feed) -> Position:
        offsets = {}
        for number, read in self._read.items():
            held = self._held.get(number)
            first = None if held is None else held.first(feed)
            offsets[number] = read if first is None else first
        return Position(
            source=self.name,
            topic_id=self._topic_id,
            offsets=offsets,
            read=dict(self._read),
            passed=feed.passed,
        )

    @override
    def close(self) -> None:
        self._consumer.close()


def _text(value: bytes | str | None) -> str:
    """Return a header or key as text. Bytes that are not UTF-8, such as those of a message id, can be had back."""
    if value is None:
        return ""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
