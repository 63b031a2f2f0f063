"""Clients of Kafka and the answers of a broker that is not ready."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.kafka import admin, clients
from twin.base.errors import MqtwinError, UsageError


class Offset:
    """The answer about a partition: a future of itself."""

    offset = 8

    def __init__(self, code: int | None) -> None:
        self.code = code

    def result(self) -> Offset:
        if self.code is not None:
            raise KafkaException(KafkaError(self.code))
        return self


class Broker:
    """A consumer whose broker answers with these errors, then with offsets."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return 3, 8

    def list_offsets(self, partitions: Any, **_: Any) -> dict[Any, Offset]:
        return {partition: Offset(self.codes.pop(0) if self.codes else None) for partition in partitions}


def test_a_partition_without_a_leader_is_asked_again() -> None:
    broker: Any = Broker(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
    assert clients.offset_range(broker, "events", 1) == (3, 8)
    assert broker.codes == []


def test_a_partition_that_never_gets_a_leader_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CONNECT_SECONDS", 0.3)
    broker: Any = Broker(*[KafkaError.NOT_LEADER_FOR_PARTITION] * 100)
    with pytest.raises(MqtwinError, match="topic events, partition 1: "):
        clients.offset_range(broker, "events", 1)
    assert len(broker.codes) > 90


def test_a_missing_right_is_not_asked_for_again() -> None:
    broker: Any = Broker(KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(UsageError, match="events"):
        clients.offset_range(broker, "events", 0)
    assert len(broker.codes) == 1


def end_of(broker: Any, monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    monkeypatch.setattr(admin, "admin_client", lambda _: broker)
    monkeypatch.setattr(admin, "partitions_of", lambda *_: [1])
    monkeypatch.setattr(admin, "VISIBLE_SECONDS", 0.3)
    return admin.end_offsets({}, "events")


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,  # of a broker that was frozen and does not know yet that it leads again
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError._NOENT,  # of librdkafka itself: "No leaders found", after a broker was frozen
    ],
)
def test_the_end_of_a_partition_without_a_leader_is_asked_for_again(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    assert end_of(Broker(code), monkeypatch) == {1: 8}


@pytest.mark.parametrize("code", [KafkaError.LEADER_NOT_AVAILABLE, KafkaError.TOPIC_AUTHORIZATION_FAILED])
def test_an_end_that_stays_unknown_is_an_error(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    broker = Broker(*[code] * 100)
    with pytest.raises(MqtwinError, match="topic events: its end cannot be read"):
        end_of(broker, monkeypatch)
    assert (len(broker.codes) == 99) == (code == KafkaError.TOPIC_AUTHORIZATION_FAILED)
