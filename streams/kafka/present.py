"""The present of a store from the topics alone: what the job last wrote about it, and the events that led there.

A state record says what a store holds, not who puts and gets how much, nor of which lengths. So a twin is led to the
time of the record by the events that the topic still has. Where Kafka has deleted earlier ones, the twin takes what it
holds from the record, as from a measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import NamedTuple

import msgspec

from streams.kafka.event_range import events_until
from streams.kafka.latest import Latest
from streams.kafka.topic_reader import EventReader, TopicReader, read_to_end
from streams.kafka.topics import RecordGuard, TopicRecord, Topics
from twin.errors import UsageError
from twin.estate import Estate
from twin.events import JSON, Decoder, Event, content_type
from twin.events.fields import FIELD
from twin.events.measured import MEASURED_COUNTS, without_nulls
from twin.playback.replays import Player, play
from twin.playback.verdicts import Latency
from twin.records import StateRecord, read_state_record
from twin.stores.open import Twin
from twin.units import as_seconds

MAX_LATE_RECORDS = 100_000  # of a partition, whose delays are looked at
_READ_SECONDS = 0.5


class Present(NamedTuple):
    """A store at the time of its last state record.

    Attributes:
        twin: its twin.
        lost: events of the store that the record counts and the topic has no more.
        differs: True if all events of the topic, played by this estate, lead elsewhere than the job was: it had another
            estate for some of them.
    """

    twin: Twin
    lost: int
    differs: bool = False


def read_present(kafka: Mapping[str, str], topics: Topics, estate: Estate, store: str) -> Present:
    """Return the present of a store.

    Args:
        kafka: client settings, `bootstrap.servers` among them.

    Raises:
        UsageError: the topics have no state record or no event of the store, or the user may not read them.
        MqtwinError: no Kafka answers.
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
    """Return the last state record of each store; none where the topic does not exist.

    Args:
        kafka: client settings, `bootstrap.servers` among them.

    Raises:
        UsageError: the user may not read the topic.
        MqtwinError: no Kafka answers.
    """
    latest = Latest(topics)
    for record in read_to_end(kafka, topics.state):
        latest.apply(record)
    return {store: entry.state for store, entry in latest.states.items()}


def read_latency(kafka: Mapping[str, str], topics: Topics, hours: float) -> Latency | None:
    """Return the delays between events and the state records of the last hours in the topic.

    The topic is compacted: of longer ago it has fewer. None where it has no record of the time. Errors as of
    `read_last_states`.

    Args:
        kafka: client settings, `bootstrap.servers` among them.
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
    """The time of an event."""

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
