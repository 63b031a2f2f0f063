"""Events of a topic up to a time, read no further than is needed: the order of a topic is not that of event times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np
from confluent_kafka import Message

from kernels.layout import NEVER
from streams.kafka.clients import content_type_of
from streams.kafka.topic_reader import EventReader
from twin.events import Decoded, Decoder

LATER_EVENTS = 10_000  # in a row in a partition, all later than the time: none before it is expected behind them
MAX_WAITING = 200_000  # records that wait for those of other partitions, about 100 MB


def events_until(time_us: int, reader: EventReader, decoder: Decoder) -> Iterator[Decoded]:
    """Yield the events up to a time, from where a reader has started; those of a partition are in its order.

    A partition is read until a record ends `LATER_EVENTS` later events in a row, so that what is read depends on the
    records alone.
    """
    for _, decoded, _ in _read_until(time_us, reader, decoder):
        yield decoded.until(time_us)


def merged_until(time_us: int, reader: EventReader, decoder: Decoder) -> Iterator[list[Message]]:
    """Yield the records of `events_until` by time, without changing the order within a partition.

    A client gets the records of one partition after those of another. Those of a partition that is ahead wait here;
    when they are too many, it is not read until the others have come after it.
    """
    latest = dict.fromkeys(reader.ranges, NEVER)  # latest event time by partition
    waiting: list[tuple[int, int, int, Message]] = []  # time, partition, offset
    for messages, _, times in _read_until(time_us, reader, decoder):
        for message, time in zip(messages, times, strict=True):
            partition = message.partition() or 0
            latest[partition] = max(latest[partition], time)
            waiting.append((latest[partition], partition, message.offset() or 0, message))
        bound = min((latest[partition] for partition in reader.unread), default=-NEVER)
        ahead = {partition for partition in reader.unread if latest[partition] > bound}
        reader.hold(ahead if len(waiting) > MAX_WAITING else set())
        ready = sorted((entry for entry in waiting if entry[0] <= bound), key=itemgetter(0, 1, 2))
        waiting = [entry for entry in waiting if entry[0] > bound]
        if ready:
            yield [message for *_, message in ready]
    if waiting:
        yield [message for *_, message in sorted(waiting, key=itemgetter(0, 1, 2))]


def _read_until(
    time_us: int, reader: EventReader, decoder: Decoder
) -> Iterator[tuple[list[Message], Decoded, list[int]]]:
    """Yield what `read_until` does, and the latest event time of each record."""
    later: Counter[int] = Counter()  # later events in a row, by partition
    while not reader.is_at_end:
        messages = reader.read()
        if not messages:
            continue
        decoded = decoder.records([item.value() for item in messages], [content_type_of(item) for item in messages])
        times = np.full(len(messages), NEVER)
        np.maximum.at(times, decoded.record, decoded.events["time"])
        is_needed = _needed(messages, decoded, time_us, later, reader)
        needed = [message for message, is_own in zip(messages, is_needed.tolist(), strict=True) if is_own]
        yield needed, decoded.take(np.flatnonzero(is_needed[decoded.record])), times[is_needed].tolist()


def _needed(
    messages: Sequence[Message], decoded: Decoded, time_us: int, later: Counter[int], reader: EventReader
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return bool[n], True for the records that are read, and end the partitions that are past the time."""
    events = np.bincount(decoded.record, minlength=len(messages)).tolist()
    is_early = decoded.events["time"] <= time_us
    early = np.bincount(decoded.record[is_early], minlength=len(messages)).tolist()
    is_needed = np.ones(len(messages), np.bool_)
    for place, message in enumerate(messages):
        partition = message.partition() or 0
        if later[partition] >= LATER_EVENTS:
            is_needed[place] = False
            continue
        later[partition] = 0 if early[place] else later[partition] + events[place]
        if later[partition] >= LATER_EVENTS:
            reader.finish(partition)
    return is_needed
