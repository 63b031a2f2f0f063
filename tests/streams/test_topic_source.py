"""A topic of others whose records are gone before they were read: removed, or the topic made again."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from streams.collecting import topic_source
from streams.collecting.sources import Position
from streams.collecting.topic_source import TopicSource
from twin.feeds import Feed

TOPIC = "otlp_spans"


class Record:
    """A record as confluent_kafka gives it."""

    def __init__(self, offset: int) -> None:
        self.number = offset

    def error(self) -> None:
        return None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.number

    def headers(self) -> list[Any]:
        return []

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"{}"

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_795_176_000_000


class Broker:
    """One partition: the offsets that it still has, and where a consumer began."""

    def __init__(self, low: int, high: int, topic_id: str = "one") -> None:
        self.low, self.high, self.topic_id = low, high, topic_id
        self.begin = -2
        self.to_read: deque[int] = deque()

    def assign(self, places: list[Any]) -> None:
        self.begin = places[0].offset
        self.to_read.extend(range(self.low if self.begin < 0 else self.begin, self.high))

    def consume(self, *_: Any) -> list[Record]:
        offsets, self.to_read = [offset for offset in self.to_read if offset >= self.low], deque()
        return [Record(offset) for offset in offsets]

    def close(self) -> None:
        pass


def collected(broker: Broker, position: Position, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Return the offsets read by a new source, and its complaints."""
    monkeypatch.setattr(topic_source, "new_consumer", lambda *_: broker)
    monkeypatch.setattr(topic_source, "partitions_of", lambda *_: [0])
    monkeypatch.setattr(topic_source, "topic_id", lambda *_: broker.topic_id)
    monkeypatch.setattr(topic_source, "offset_range", lambda *_: (broker.low, broker.high))
    complaints: list[str] = []
    source = TopicSource({}, TOPIC, position, lambda code, place, text: complaints.append(f"{place}: {text} ({code})"))
    pages = source.read()
    source.close()
    return [page.headers["kafka.offset"] for page in pages], complaints


def position_at(offset: int, topic_id: str = "one") -> Position:
    return Position(source=TOPIC, topic_id=topic_id, offsets={"0": offset}, read={"0": offset})


def test_records_that_retention_removed_unread_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets, complaints = collected(Broker(20, 30), position_at(10), monkeypatch)
    assert offsets == [str(number) for number in range(20, 30)]
    (text,) = complaints
    assert "10 records, offsets 10 to 19, were removed" in text and text.startswith(f"{TOPIC}/0: ")
    assert text.endswith("(lost)")


@pytest.mark.parametrize("high", [5, 30])
def test_a_topic_that_was_made_again_is_read_from_its_beginning(high: int, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets, complaints = collected(Broker(0, high, "two"), position_at(10), monkeypatch)
    assert offsets == [str(number) for number in range(high)]
    (text,) = complaints
    assert "made again" in text and "(id two, before one)" in text


def test_a_topic_that_ends_before_the_position_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets, complaints = collected(Broker(0, 5), position_at(10), monkeypatch)
    assert offsets == ["0", "1", "2", "3", "4"]
    assert "ends at offset 5, 10 records were read" in complaints[0]


@pytest.mark.parametrize("topic_id", ["one", ""])  # a position of an earlier release has no id
def test_a_position_that_fits_is_no_complaint(topic_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert collected(Broker(3, 30), position_at(28, topic_id), monkeypatch) == (["28", "29"], [])


def test_records_that_are_removed_while_they_are_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(0, 30)
    monkeypatch.setattr(broker, "assign", lambda _: broker.to_read.extend(range(10)))
    collected_first, complaints = collected(broker, Position(source=TOPIC), monkeypatch)
    assert len(collected_first) == 10 and complaints == []
    source = TopicSource({}, TOPIC, position_at(0), lambda *words: complaints.append(words[2]))
    source.read()
    broker.low = 25
    broker.to_read.extend(range(25, 30))
    assert len(source.read()) == 5
    text = (
        "15 records, offsets 10 to 24, were removed before they were read; expected: a retention longer than any stop"
    )
    assert complaints == [text]
    assert source.position(Quiet()).topic_id == "one"


class Quiet(Feed):
    """A feed that holds nothing back."""

    def __init__(self) -> None:
        self.passed = 0
        self.begun_in = set()

    def take(self, page: Any) -> Any:
        del page
        return ()
