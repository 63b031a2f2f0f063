"""The default bound on the Kafka records of a batch, chosen so that a backlog is processed in pieces.

Spark bounds a batch by the number of records only, and records differ in size by five orders of magnitude: one JSON
event, or an Arrow stream of thousands. The job therefore measures the size of records at its start, on a sample of the
oldest and the newest records of each partition. The bound has no influence on alerts and state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams.kafka.clients import LastError, check, is_end, new_consumer, offset_range, partitions_of
from twin.errors import MqtwinError

BATCH_BYTES = 256_000_000  # some seconds of work on two cores
MIN_RECORDS = 16
MAX_RECORDS = 1_000_000
UNKNOWN_RECORDS = 100_000  # the bound for a topic that is still empty
SAMPLE_RECORDS = 50  # per partition and end
SAMPLE_SECONDS = 5.0
SAMPLE_FETCH_BYTES = 1 << 20
# The user needs rights for this group; the job needs them for all groups of the prefix anyway.
_GROUP = "spark-kafka-mqtwin-sample"

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on a batch. 0 records: no bound; `record_bytes` is the measured mean."""

    records: int
    record_bytes: int | None = None


def choose_bound(kafka: Mapping[str, str], topic: str) -> Bound:
    """Return the number of records of a topic that have about `BATCH_BYTES`.

    It is `UNKNOWN_RECORDS` for a topic that is empty or cannot be read; the reason is logged.
    """
    try:
        size = measure_mean_size(kafka, topic)
    except (KafkaException, MqtwinError) as error:
        _log.warning("record size not measured", topic=topic, reason=str(error), max_records=UNKNOWN_RECORDS)
        size = None
    if size is None:
        return Bound(UNKNOWN_RECORDS)
    return Bound(min(max(round(BATCH_BYTES / max(size, 1.0)), MIN_RECORDS), MAX_RECORDS), round(size))


def measure_mean_size(kafka: Mapping[str, str], topic: str) -> float | None:
    """Return the larger of the mean sizes, in bytes, of the oldest and of the newest values; None without records.
    KafkaException: a broker does not answer, or refuses. MqtwinError: the same.
    """
    last_error = LastError()
    ours = {"group.id": _GROUP, "fetch.message.max.bytes": SAMPLE_FETCH_BYTES, "enable.partition.eof": True}
    consumer = new_consumer(kafka, ours, last_error)
    try:
        ranges = {}
        for number in partitions_of(consumer, topic, kafka, last_error):
            low, high = offset_range(consumer, topic, number)
            if high > low:
                ranges[number] = low, high
        oldest = {number: (low, min(low + SAMPLE_RECORDS, high)) for number, (low, high) in ranges.items()}
        newest = {number: (max(low, high - SAMPLE_RECORDS), high) for number, (low, high) in ranges.items()}
        means = [_measure_mean(consumer, topic, ranges) for ranges in (oldest, newest)]
        return max((mean for mean in means if mean is not None), default=None)
    finally:
        consumer.close()


def _measure_mean(consumer: Consumer, topic: str, ranges: Mapping[int, tuple[int, int]]) -> float | None:
    """Return the mean size of the records in a range of offsets of each partition; of those that arrive in time."""
    awaited = {number: end for number, (_, end) in ranges.items()}
    consumer.assign([TopicPartition(topic, number, begin) for number, (begin, _) in ranges.items()])
    count = total = 0
    deadline = time.monotonic() + SAMPLE_SECONDS
    while awaited and (left := deadline - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None:
            break
        number, offset = message.partition(), message.offset()
        if is_end(message):
            if number in awaited and (offset or 0) >= ranges[number][0]:  # what is missing was aborted or compacted
                del awaited[number]
            continue
        if not check(message.error(), topic):
            continue
        if number not in awaited or offset is None or offset < ranges[number][0]:  # one fetched before `assign`
            continue
        if offset < awaited[number]:
            count += 1
            total += len(message.value() or b"")
        if offset + 1 >= awaited[number]:
            del awaited[number]
    return total / count if count else None
