"""Reaction of the Kafka clients to answers of a broker that is not ready."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.kafka import clients
from twin.errors import MqtwinError, UsageError


class Broker:
    """A consumer whose broker answers with these errors, then with offsets."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return 3, 8


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
