"""How many Kafka records a batch takes where nobody says: about so many that a backlog is worked off in pieces.

Spark bounds a batch by records only, and records differ in size by five orders of magnitude: one JSON event, or an
Arrow stream of thousands. So the size of a record is measured at the start of the job, on some records of each
partition, the oldest and the newest ones. What a batch takes has no influence on alerts and state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from streams.kafka.clients import LastError, check, new_consumer, partitions_of
from twin.errors import MqtwinError

BATCH_BYTES = 256_000_000  # some seconds of work on two cores
MIN_RECORDS = 16
MAX_RECORDS = 1_000_000
UNKNOWN_RECORDS = 100_000  # of a topic that is empty yet
SAMPLE_RECORDS = 50  # of a partition, at each of its ends
SAMPLE_SECONDS = 5.0
SAMPLE_FETCH_BYTES = 1 << 20
# Rights are needed for this group; the job needs them for groups of this prefix anyway.
_GROUP = "spark-kafka-mqtwin-sample"

_log = structlog.get_logger("mqtwin.stream")


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound on a batch. records: 0 is none. record_bytes: mean size of a record; None where it was not measured."""

    records: int
    record_bytes: int | None = None


def choose_bound(kafka: Mapping[str, str], topic: str) -> Bound:
    """Return the number of records of a topic that have about `BATCH_BYTES`.

    Where the topic is empty or cannot be read the number is `UNKNOWN_RECORDS`; why it cannot be read is logged.
    """
    try:
        size = mean_size(kafka, topic)
    except (KafkaException, MqtwinError) as error:
        _log.warning("record size not measured", topic=topic, reason=str(error), max_records=UNKNOWN_RECORDS)
        size = None
    if size is None:
        return Bound(UNKNOWN_RECORDS)
    return Bound(min(max(round(BATCH_BYTES / max(size, 1.0)), MIN_RECORDS), MAX_RECORDS), round(size))


def mean_size(kafka: Mapping[str, str], topic: str) -> float | None:
    """Return the mean size of values in bytes, of the oldest or of the newest records, whichever is larger.

    None where there is no record.

    Raises:
        KafkaException: a broker does not answer, or refuses.
        MqtwinError: the same.
    """
    last_error = LastError()
    ours = {"group.id": _GROUP, "fetch.message.max.bytes": SAMPLE_FETCH_BYTES, "enable.partition.eof": False}
    consumer = new_consumer(kafka, ours, last_error)
    try:
        ranges = {}
        for number in partitions_of(consumer, topic, kafka, last_error):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=SAMPLE_SECONDS)
            if high > low:
                ranges[number] = low, high
        oldest = {number: (low, min(low + SAMPLE_RECORDS, high)) for number, (low, high) in ranges.items()}
        newest = {number: (max(low, high - SAMPLE_RECORDS), high) for number, (low, high) in ranges.items()}
        means = [_mean(consumer, topic, part) for part in (oldest, newest)]
        return max((mean for mean in means if mean is not None), default=None)
    finally:
        consumer.close()


def _mean(consumer: Consumer, topic: str, ranges: Mapping[int, tuple[int, int]]) -> float | None:
    """Return the mean size of the records between two offsets of each partition; of those that come in time."""
    waited_for = {number: end for number, (_, end) in ranges.items()}
    consumer.assign([TopicPartition(topic, number, begin) for number, (begin, _) in ranges.items()])
    count = total = 0
    deadline = time.monotonic() + SAMPLE_SECONDS
    while waited_for and (left := deadline - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is None:
            break
        if not check(message.error(), topic):
            continue
        number, offset = message.partition(), message.offset()
        if number in waited_for and offset < waited_for[number]:
            count += 1
            total += len(message.value() or b"")
        if number in waited_for and offset + 1 >= waited_for[number]:
            del waited_for[number]
    return total / count if count else None
