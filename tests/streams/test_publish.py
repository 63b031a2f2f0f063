"""Publication of a recording: keyed by store, in order, in all three content types."""

from __future__ import annotations

import itertools
import json
import os
import time
import types
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from streams.kafka import publish as publishing
from streams.kafka.publish import UNROUTED, Pace, PublishResult, publish
from streams.kafka.topics import Topics
from tests.streams.kafka_help import create, everything, header
from tests.support.traffic import BAD_LINES, START_US, traffic, write_lines, write_recording
from twin.base.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.events import ARROW, CONTENT_TYPES, JSON, NDJSON, Decoder
from twin.playback.replays import Player, Replayed, replay
from twin.recordings.files import open_lines

with warnings.catch_warnings():  # kafka-python reads its files in a way that Python 3.11 and 3.12 call deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2


def publish_events(
    path: Path, estate: Estate, kafka: str, prefix: str, **options: Any
) -> tuple[PublishResult, list[Message]]:
    result = publish(path, estate, {"bootstrap.servers": kafka}, Topics(prefix), **options)
    return result, everything(kafka, f"{prefix}.events")


def one_event(path: Path, **fields: Any) -> Path:
    return write_recording(path, [{"time": START_US, "qmgr": "QM01"} | fields])


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_a_published_recording_gives_the_same_states_and_alerts_as_its_replay(
    content_type: str, recording: Path, estate: Estate, replayed: Replayed, kafka: str, topic_prefix: str
) -> None:
    result, messages = publish_events(recording, estate, kafka, topic_prefix, content_type=content_type)
    player, decoder = Player(estate), Decoder(estate)
    decoded = decoder.records([m.value() for m in messages], [header(m) for m in messages])
    alerts = sorted(player.feed(decoded), key=lambda alert: (alert.time, alert.store))
    assert (alerts, player.states()) == (replayed.alerts, replayed.states)
    assert sorted((r.reason, r.value) for r in decoded.rejects) == sorted((r.reason, r.value) for r in replayed.rejects)
    assert (result.events, result.rejects) == (len(decoded), len(BAD_LINES))
    assert result.records + result.rejects == len(messages)


def test_lines_of_standard_input_are_chunks_as_soon_as_they_come() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb", buffering=0) as program:
        chunks = open_lines(source)
        program.write(b'{"a":1}\n{"a":')
        assert next(chunks).lines() == [b'{"a":1}']  # the program is still running
        program.write(b"2}\n")
        second = next(chunks)
        assert (second.first, second.lines()) == (1, [b'{"a":2}'])
        program.close()
        assert list(chunks) == []


def test_events_of_standard_input_are_published_as_those_of_a_recording(
    recording: Path, estate: Estate, kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, messages = publish_events(recording, estate, kafka, f"{topic_prefix}.file")
    with recording.open("rb") as lines:
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=lines))
        _, piped = publish_events(Path("-"), estate, kafka, topic_prefix)
    assert [(m.key(), m.value()) for m in piped] == [(m.key(), m.value()) for m in messages]


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_the_key_is_the_store_of_every_event_in_the_record(
    content_type: str, recording: Path, estate: Estate, kafka: str, topic_prefix: str
) -> None:
    _, messages = publish_events(recording, estate, kafka, topic_prefix, content_type=content_type)
    decoder = Decoder(estate)
    for message in messages:
        decoded = decoder.records([message.value()], [header(message)])
        stores = {block.store.encode() for block in decoded.blocks(estate)}
        assert stores == ({message.key()} if message.key() != UNROUTED else set())
        assert bool(decoded.rejects) == (message.key() == UNROUTED)


@pytest.mark.parametrize("content_type", [NDJSON, ARROW])
def test_a_record_of_a_partition_has_the_events_of_its_stores_in_their_order(
    content_type: str, estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events", partitions=3)
    path = write_recording(tmp_path / "traffic.arrow", traffic(3000))
    result, messages = publish_events(path, estate, kafka, topic_prefix, content_type=content_type, by_partition=True)
    decoder, player = Decoder(estate), Player(estate)
    decoded = decoder.records([m.value() for m in messages], [header(m) for m in messages])
    list(player.feed(decoded))
    assert player.states() == replay(path, estate).states and len(decoded) == result.events
    stores = [{block.store for block in decoder.records([m.value()], [header(m)]).blocks(estate)} for m in messages]
    assert max(map(len, stores)) > 1
    for message, names in zip(messages, stores, strict=True):
        assert message.key() is None
        assert {(murmur2(name.encode()) & 0x7FFFFFFF) % 3 for name in names} == {message.partition()}


def test_json_has_no_header_and_the_others_have_their_content_type(
    estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    path = one_event(tmp_path / "one.ndjson", op="PUT", queue="ORDERS", length=1)
    for content_type in CONTENT_TYPES:
        publish_events(path, estate, kafka, topic_prefix, content_type=content_type)
    assert [header(message) for message in everything(kafka, f"{topic_prefix}.events")] == [None, NDJSON, ARROW]


def test_a_json_event_is_published_byte_by_byte(estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    line = b'{"op":"PUT" , "qmgr":"QM01","x":[1],"queue":"BILLS","length":1,"time":"2026-11-20T12:00:00+01:00"}'
    _, messages = publish_events(write_lines(tmp_path / "one.ndjson", [line]), estate, kafka, topic_prefix)
    assert [(m.key(), m.value()) for m in messages] == [(b"QSG1/APP2", line)]


def test_events_that_belong_to_no_store_are_reported_as_they_come(
    recording: Path, estate: Estate, kafka: str, topic_prefix: str
) -> None:
    counts: list[tuple[int, int]] = []
    result, _ = publish_events(
        recording,
        estate,
        kafka,
        topic_prefix,
        on_rejects=lambda rejects, events: counts.append((len(rejects), events)),
    )
    assert sum(number for number, _ in counts) == len(BAD_LINES) == result.rejects
    assert counts[-1][1] == result.events


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
@pytest.mark.parametrize("op", ["HEARTBEAT", "RESTART"])
def test_an_event_of_a_queue_manager_goes_to_each_of_its_stores(
    op: str, content_type: str, estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    result, messages = publish_events(
        one_event(tmp_path / "one.arrow", op=op), estate, kafka, topic_prefix, content_type=content_type
    )
    stores = {}
    for message in messages:
        if content_type == ARROW:
            (event,) = pa.ipc.open_stream(message.value()).read_all().to_pylist()
        else:
            event = json.loads(message.value())
        stores[message.key().decode()] = event["store"]
    assert stores == {name: name for name in ("QM01/PS04", "QSG1/APP1", "QSG1/APP2")}
    assert (result.events, result.records) == (3, 3)


def test_an_event_of_a_queue_manager_with_a_store_goes_there_only(
    estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    path = one_event(tmp_path / "one.ndjson", op="HEARTBEAT", store="QSG1/APP2")
    _, messages = publish_events(path, estate, kafka, topic_prefix)
    assert [(m.key(), m.value()) for m in messages] == [(b"QSG1/APP2", path.read_bytes().strip())]


def test_the_order_within_a_store_is_that_of_the_recording(
    recording: Path, estate: Estate, kafka: str, topic_prefix: str
) -> None:
    create(kafka, f"{topic_prefix}.events", partitions=3)
    _, messages = publish_events(recording, estate, kafka, topic_prefix)
    times = defaultdict(list)
    partitions = defaultdict(set)
    for message in messages:
        if message.key() != UNROUTED:
            times[message.key()].append(json.loads(message.value())["time"])
            partitions[message.key()].add(message.partition())
    assert times and all(store_times == sorted(store_times) for store_times in times.values())
    # the partitions that Kafka's own client and kafka-python choose
    assert partitions == {key: {(murmur2(key) & 0x7FFFFFFF) % 3} for key in times}


def test_a_bad_row_of_an_arrow_recording_is_published_unchanged(
    estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    table = pa.table(
        {"time": [START_US], "qmgr": ["QM01"], "op": ["PUT"], "queue": ["ORDERS"], "length": [1.5], "mine": ["x"]}
    )
    path = tmp_path / "bad.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    result, (message,) = publish_events(path, estate, kafka, topic_prefix, content_type=JSON)
    assert (message.key(), header(message), result.rejects) == (UNROUTED, ARROW, 1)
    assert pa.ipc.open_stream(message.value()).read_all() == table
    assert replay(path, estate).rejects == Decoder(estate).arrow([message.value()]).rejects


@pytest.mark.parametrize("content_type", [NDJSON, ARROW])
def test_records_are_cut_to_the_limit_of_the_topic(
    content_type: str, estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events", max_message_bytes="20000")
    path = write_recording(tmp_path / "traffic.arrow", traffic(2000))
    result, messages = publish_events(path, estate, kafka, topic_prefix, content_type=content_type)
    assert max(len(message.value()) for message in messages) <= 20_000
    decoded = Decoder(estate).records([m.value() for m in messages], [header(m) for m in messages])
    assert len(decoded) == result.events and not decoded.rejects


def test_an_event_larger_than_the_topic_takes_is_a_failure(
    estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events", max_message_bytes="20000")
    path = one_event(tmp_path / "one.ndjson", op="PUT", queue="ORDERS", length=1, note="x" * 30_000)
    with pytest.raises(MqtwinError, match=r"30\d\d\d bytes.*max\.message\.bytes"):
        publish_events(path, estate, kafka, topic_prefix)


def test_a_record_that_is_not_delivered_in_time_is_a_failure(
    estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events")
    path = one_event(tmp_path / "one.ndjson", op="PUT", queue="ORDERS", length=1)
    settings = {"bootstrap.servers": kafka, "message.timeout.ms": "1", "linger.ms": "0"}
    with pytest.raises(MqtwinError, match="1 records were not delivered"):
        publish(path, estate, settings, Topics(topic_prefix))


def test_a_full_queue_of_pending_records_is_waited_for(
    recording: Path, estate: Estate, kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_MAX_PENDING_BYTES", 20_000)
    monkeypatch.setattr(publishing, "_MAX_PENDING_RECORDS", 300)
    monkeypatch.setattr(publishing, "_BATCH", 100)
    result, messages = publish_events(recording, estate, kafka, topic_prefix)
    assert len(messages) == result.records + result.rejects


def test_speed_plays_event_time_faster(estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    path = write_recording(tmp_path / "traffic.ndjson", itertools.islice(traffic(100), 40))  # 20 s of event time
    began = time.monotonic()
    result, messages = publish_events(path, estate, kafka, topic_prefix, pace=Pace(speed=20))
    assert time.monotonic() - began >= 0.95
    assert result.seconds >= 0.95 and len(messages) == result.records


def test_a_missing_recording_is_a_usage_error(estate: Estate, kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        publish_events(tmp_path / "none.ndjson", estate, kafka, topic_prefix)
