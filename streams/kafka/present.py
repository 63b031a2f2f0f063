"""The present of a store from the topics alone: what the job last wrote about it, and the events that led there.

A state record says what a store holds, not who puts and gets how much, nor of which lengths. So a twin is led to the
time of the record by the events that the topic still has. Where Kafka has deleted earlier ones, the twin takes what it
holds from the record, as from a measurement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from operator import itemgetter
from typing import NamedTuple

import msgspec
import numpy as np
from confluent_kafka import Message

from kernels.layout import NEVER
from streams.kafka.clients import content_type_of
from streams.kafka.topic_reader import EventReader, Latest, TopicReader, read_to_end
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.base.errors import UsageError
from twin.base.units import as_seconds
from twin.estate import Estate
from twin.events import JSON, Decoded, Decoder, Event, content_type
from twin.events.fields import FIELD, MEASURED_COUNTS, without_nulls
from twin.playback.replays import Player, play
from twin.playback.verdicts import Latency
from twin.records import StateRecord, read_state_record
from twin.stores.open import Twin

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


MAX_LATE_RECORDS = 100_000  # of a partition, whose delays are looked at
_READ_SECONDS = 0.5


class Present(NamedTuple):
    """A store at the time of its last state record."""

    twin: Twin
    lost: int  # events of the store that the record counts and the topic has no more
    differs: bool = False  # the events, all of them, lead elsewhere than the job was: it had another estate for some


def read_present(kafka: Mapping[str, str], topics: Topics, estate: Estate, store: str) -> Present:
    """Return the present of a store. UsageError: the topics have no state record or no event of the store, or the user
    may not read them. MqtwinError: no Kafka answers.
    """
    state = read_last_states(kafka, topics).get(store)
    if state is None or state.time is None:
        raise UsageError(f"topic {topics.state} has no state of {store}; expected: a job that has processed its events")
    time_us = int(FIELD["time"].checked(state.time))
    decoder, player = Decoder(estate), Player(estate)
    with EventReader(kafka, topics.events, follow=False) as reader:
        reader.start()
        play(events_until(time_us, reader, decoder), estate, player=player)
    if store not in player.twins:
        raise UsageError(f"topic {topics.events} has no event of {store} any more; expected: a longer retention")
    played, measured = player.twins[store].state(), measurement_of(state, estate)
    lost = max(0, state.events - played.events)
    differs = played.events == state.events and measurement_of(played, estate) != measured
    if lost:
        player.feed(decoder.json([msgspec.json.encode(measured)]))
    return Present(player.twins[store], lost, differs)


def read_last_states(kafka: Mapping[str, str], topics: Topics) -> dict[str, StateRecord]:
    """Return the last state record of each store; none where the topic does not exist. UsageError: the user may not
    read the topic. MqtwinError: no Kafka answers.
    """
    latest = Latest(topics)
    for record in read_to_end(kafka, topics.state):
        latest.apply(record)
    return {store: entry.state for store, entry in latest.states.items()}


def read_latency(kafka: Mapping[str, str], topics: Topics, hours: float) -> Latency | None:
    """Return the delays between events and the state records of the last hours in the topic.

    The topic is compacted: of longer ago it has fewer. None where it has no record of the time. Errors as of
    `read_last_states`.
    """
    guard = RecordGuard()
    written: list[tuple[float, float]] = []  # (seconds since 1970, latency in seconds)
    for record in read_to_end(kafka, topics.state):
        guard.take(record, lambda record: written.extend(_latencies(record)))
    return _summary(written, hours)


def read_lateness(kafka: Mapping[str, str], topics: Topics, hours: float) -> Latency | None:
    """Return the delays between events and their records of the last hours in the topic: what a feed of intervals has.

    Of a partition the latest MAX_LATE_RECORDS count. None where there is no record of JSON of the time. Arguments and
    errors as of `read_latency`.
    """
    guard = RecordGuard()
    written: list[tuple[float, float]] = []
    with TopicReader(kafka, {topics.events: MAX_LATE_RECORDS}) as reader:
        while not reader.missing and not reader.is_caught_up:
            for record in reader.read(_READ_SECONDS):
                guard.take(record, lambda record: written.extend(_lateness(record)))
    return _summary(written, hours)


def _summary(written: list[tuple[float, float]], hours: float) -> Latency | None:
    """Return the delays of records of the last hours. written: time and delay of each, seconds."""
    since = max((time for time, _ in written), default=0.0) - hours * 3600
    own = sorted(delay for time, delay in written if time >= since)
    if not own:
        return None
    p50, p99 = (own[ceil(share * len(own)) - 1] for share in (0.5, 0.99))
    return Latency(records=len(own), p50_s=round(p50, 3), p99_s=round(p99, 3))


class _Timed(msgspec.Struct):
    time: str | int


def _lateness(record: TopicRecord) -> Iterator[tuple[float, float]]:
    """Yield the time at which an event was written, and how much later that was than the event; none of other types."""
    if content_type(record.headers.get("content-type")) == JSON and record.value:
        time_us = FIELD["time"].checked(msgspec.json.decode(record.value, type=_Timed).time)
        yield record.written_ms / 1000, record.written_ms / 1000 - int(time_us) / 1e6


def _latencies(record: TopicRecord) -> Iterator[tuple[float, float]]:
    """Yield the time at which a state record was written, and its latency; none of a tombstone or without events."""
    state = None if record.value is None else read_state_record(record.value)
    if state is not None and state.time is not None:
        written_s = record.written_ms / 1000
        yield written_s, written_s - as_seconds(state.time)


def measurement_of(state: StateRecord, estate: Estate) -> Event:
    """Return a MEASURE with the figures of a state record; messages only where all of them are known."""
    fields = msgspec.to_builtins(state)
    measured = without_nulls({name: fields.get(name) for name in (*MEASURED_COUNTS, "smds", "scm")})
    if state.messages_estimated:
        measured.pop("messages", None)
    qmgr = next(route.qmgr for route in estate.routes if route.store == state.store)
    time_us = int(FIELD["time"].checked(state.time))
    return {"time": time_us, "qmgr": qmgr, "op": "MEASURE", "store": state.store, "measured": measured}
