"""Dead letters: the record of what cannot be used, and its producer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import msgspec
from confluent_kafka import KafkaError, Message, Producer

from streams.kafka.admin import prepare_topic
from streams.kafka.clients import LastError, new_producer
from streams.kafka.topics import RESERVED_BYTES, Topics
from twin.base.errors import MqtwinError
from twin.events.refusals import DETAIL_CHARACTERS
from twin.records import LetterHeaders

_SETTINGS = {"enable.idempotence": True, "compression.type": "lz4", "delivery.report.only.error": True}
_POLL_SECONDS = 0.5


class Header(TypedDict):
    """A header of a record."""

    key: str
    value: bytes


class DeadLetter(msgspec.Struct, frozen=True, array_like=True):
    """An event that cannot be used, in the form of docs/events.md#dead-letters. Its index is within the record; `value`
    is cut to the limit of the topic, `length` is uncut.
    """

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    index: int
    value: bytes
    length: int

    def headers(self) -> list[Header]:
        """Return the headers of its record, with `original-length` only if bytes were cut off."""
        headers = LetterHeaders(
            reason=self.reason,
            detail=self.detail,
            topic=self.topic,
            partition=str(self.partition),
            offset=str(self.offset),
            index=str(self.index),
            original_length=str(self.length) if self.length != len(self.value) else None,
        )
        return [{"key": key, "value": text.encode()} for key, text in msgspec.to_builtins(headers).items()]


class LetterSender:
    """A producer to the topic of dead letters. UsageError: it is missing, or refused. MqtwinError: no answer."""

    def __init__(self, kafka: Mapping[str, str], topics: Topics, *, create_topics: bool) -> None:
        self._topic = topics.dlq
        self._failure = ""
        max_record_bytes = prepare_topic(topics, topics.dlq, kafka, create=create_topics)
        self._max_value_bytes = max(1, max_record_bytes - RESERVED_BYTES)
        settings = {**_SETTINGS, "message.max.bytes": max_record_bytes, "on_delivery": self._on_delivery}
        self._producer: Producer = new_producer(kafka, settings, LastError())

    def send(self, letter: DeadLetter) -> None:
        """Produce a dead letter, its value cut to what the topic takes."""
        letter = msgspec.structs.replace(
            letter, value=letter.value[: self._max_value_bytes], detail=letter.detail[:DETAIL_CHARACTERS]
        )
        headers: list[tuple[str, str | bytes | None]] = [(pair["key"], pair["value"]) for pair in letter.headers()]
        key = f"{letter.topic}/{letter.partition}/{letter.offset}/{letter.index}".encode()
        self._producer.produce(self._topic, letter.value, key, headers=headers)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until everything is delivered. MqtwinError: a dead letter was not."""
        while self._producer.flush(_POLL_SECONDS) and not self._failure:
            pass
        if self._failure:
            raise MqtwinError(f"topic {self._topic}: a dead letter was not delivered: {self._failure}")

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = self._failure or error.str()
