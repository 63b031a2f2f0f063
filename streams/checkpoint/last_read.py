"""The last record that a job has read of each partition, by its time and digest: see `streams.checkpoint.guard`.

Offsets alone do not show that Kafka was restored from a backup and has grown past the place since: other records are at
the offsets then, some of which are behind the place and some before it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

import msgspec
from confluent_kafka import Message, TopicPartition

from streams.checkpoint.files import Offsets
from streams.kafka.clients import LastError, is_end, new_consumer

SECONDS = 5.0  # until what has not come is left out
_GROUP = "spark-kafka-mqtwin-sample"  # the user has rights for it, see `streams.query.bound`
_SETTINGS = {"group.id": _GROUP, "enable.partition.eof": True, "auto.offset.reset": "latest"}
_BACK = (1, 50)  # offsets before the next one: the last may be the mark of a transaction


class ReadRecord(msgspec.Struct, frozen=True):
    """A record that was read. time_ms: when it was written, milliseconds since 1970; -1: it has no time."""

    offset: int
    time_ms: int
    digest: str


LastRead = dict[str, dict[int, ReadRecord]]
"""Records by topic and partition."""


def read_last(kafka: Mapping[str, str], offsets: Offsets, seconds: float = SECONDS) -> LastRead:
    """Return the last record before the given offsets of each partition, as far as Kafka has it and answers. What has
    not come within `seconds` is left out.
    """
    last: LastRead = {}
    for back in _BACK:
        begins = {
            (topic, number): (max(0, offset - back), offset)
            for topic, own in offsets.items()
            for number, offset in own.items()
            if offset > 0 and number not in last.get(topic, {})
        }
        for (topic, number), record in _fetch(kafka, begins, seconds).items():
            last.setdefault(topic, {})[number] = record
    return last


def changed_records(kafka: Mapping[str, str], read: Mapping[str, Mapping[int, ReadRecord]]) -> list[str]:
    """Return a text for each partition that has another record where one was read; of what does not answer none."""
    places = {
        (topic, number): (record.offset, record.offset + 1)
        for topic, own in read.items()
        for number, record in own.items()
    }
    texts = []
    for (topic, number), now in sorted(_fetch(kafka, places, SECONDS).items()):
        before = read[topic][number]
        if now.offset == before.offset and now != before:
            texts.append(f"{topic}/{number}: another record than the one that was read is at offset {now.offset:,}")
    return texts


def _fetch(
    kafka: Mapping[str, str], places: Mapping[tuple[str, int], tuple[int, int]], seconds: float
) -> dict[tuple[str, int], ReadRecord]:
    """Return the last record in a range of offsets of each partition; of those that come in time."""
    records: dict[tuple[str, int], ReadRecord] = {}
    if not places:
        return records
    consumer = new_consumer(kafka, _SETTINGS, LastError())
    try:
        consumer.assign([TopicPartition(topic, number, begin) for (topic, number), (begin, _) in places.items()])
        awaited, deadline_s = set(places), time.monotonic() + seconds
        while awaited and (left_s := deadline_s - time.monotonic()) > 0:
            message = consumer.poll(left_s)
            if message is None:
                break
            place, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
            if message.error() is not None:
                if is_end(message):
                    awaited.discard(place)
                continue
            begin, end = places.get(place, (0, 0))
            if begin <= offset < end:
                records[place] = _record(message)
            if offset + 1 >= end:
                awaited.discard(place)
    finally:
        consumer.close()
    return records


def _record(message: Message) -> ReadRecord:
    _, time_ms = message.timestamp()
    parts = (message.key(), message.value())
    digest = hashlib.sha256(msgspec.msgpack.encode([part if isinstance(part, bytes) else None for part in parts]))
    return ReadRecord(message.offset() or 0, time_ms, digest.hexdigest()[:32])
