"""Recording of the events topic: it replays to the same alerts and states, and failures lose nothing."""

from __future__ import annotations

import random
import threading
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streams.kafka import record as recording
from streams.kafka import topic_reader
from streams.kafka.admin import topic_id
from streams.kafka.publish import publish
from streams.kafka.record import RecordResult, record
from streams.kafka.topics import Topics
from tests.streams.kafka_help import create, send
from tests.support.traffic import BAD_LINES
from tests.twin.test_recordings import largest_file
from twin.base.errors import CutRecordingWarning, MqtwinError, UsageError
from twin.estate import Estate
from twin.events import ARROW, CONTENT_TYPES, NDJSON
from twin.playback.replays import Replayed, replay
from twin.recordings.files import SUFFIXES, open_recording

PUT = b'{"time":1795176000000000,"qmgr":"QM01","op":"PUT","queue":"ORDERS","length":1}'


def record_topic(path: Path, kafka: str, prefix: str, **options: Any) -> RecordResult:
    return record(path, {"bootstrap.servers": kafka}, Topics(prefix), **options)


def is_same(first: Replayed, second: Replayed) -> bool:
    return (first.alerts, first.states) == (second.alerts, second.states)


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_a_published_recording_recorded_again_replays_to_the_same(
    content_type: str,
    recording: Path,
    estate: Estate,
    replayed: Replayed,
    kafka: str,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    publish(recording, estate, {"bootstrap.servers": kafka}, Topics(topic_prefix), content_type=content_type)
    for suffix in SUFFIXES:
        path = tmp_path / f"again{suffix}"
        result = record_topic(path, kafka, topic_prefix)
        again = replay(path, estate)
        assert is_same(again, replayed)
        if suffix == ".arrow":  # has columns for the fields of an event only
            assert sum(result.lost.values()) + again.dead_letters == len(BAD_LINES)
        else:
            assert not result.lost
            assert sorted((r.reason, r.value) for r in again.rejects) == sorted(
                (r.reason, r.value) for r in replayed.rejects
            )


def test_stores_in_several_partitions_keep_their_order(
    recording: Path, estate: Estate, replayed: Replayed, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events", partitions=3)
    publish(recording, estate, {"bootstrap.servers": kafka}, Topics(topic_prefix))
    record_topic(tmp_path / "again.ndjson", kafka, topic_prefix)
    assert is_same(replay(tmp_path / "again.ndjson", estate), replayed)


def test_content_types_that_alternate_keep_the_order(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [b'{"n":1}'])
    send(kafka, topic, [b'{"n":2}\r\n\n{"n":3}\n'], headers=[("content-type", b"Application/X-NDJSON; charset=utf-8")])
    send(kafka, topic, [b'{\n"n":4\n}', b'{"n":5}'])
    result = record_topic(tmp_path / "out.ndjson", kafka, topic_prefix)
    assert [line.replace(b" ", b"") for line in (tmp_path / "out.ndjson").read_bytes().splitlines()] == [
        b'{"n":%d}' % n for n in range(1, 6)
    ]
    assert (result.events, result.records) == (5, 4)


def test_values_that_a_recording_cannot_hold_are_counted(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [PUT, b"", None, b"not json"])
    send(kafka, topic, [PUT], headers=[("content-type", b"text/plain")])
    send(kafka, topic, [b"no stream", None], headers=[("content-type", ARROW.encode())])
    send(kafka, topic, [b"\n \n", None], headers=[("content-type", NDJSON.encode())])
    result = record_topic(tmp_path / "out.ndjson", kafka, topic_prefix)
    assert (tmp_path / "out.ndjson").read_bytes() == PUT + b"\nnot json\n"
    assert result.lost == {"not-json": 2, "unknown-content-type": 1, "bad-arrow": 2}
    assert result.first_lost == "partition 0 offset 1"
    result = record_topic(tmp_path / "out.arrow", kafka, topic_prefix)
    assert result.events == 1 and result.lost == {
        "not-json": 2,
        "unknown-content-type": 1,
        "bad-arrow": 2,
        "not-for-columns": 1,
    }


def test_an_empty_topic_gives_an_empty_recording(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    create(kafka, f"{topic_prefix}.events", partitions=2)
    assert record_topic(tmp_path / "out.ndjson", kafka, topic_prefix).records == 0
    assert (tmp_path / "out.ndjson").read_bytes() == b""


def test_following_continues_until_it_is_stopped(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [PUT])
    progress: list[int] = []
    stop = threading.Event()

    def send_more(result: RecordResult) -> None:
        progress.append(result.events)
        if result.events == 1:
            send(kafka, topic, [PUT, PUT])
        else:
            stop.set()

    result = record_topic(
        tmp_path / "out.ndjson", kafka, topic_prefix, follow=True, stop=stop.is_set, on_progress=send_more
    )
    assert result.events == progress[-1] >= 2
    assert (tmp_path / "out.ndjson").read_bytes() == (PUT + b"\n") * result.events


def send_and_note(kafka: str, topic: str, first: int, count: int) -> list[bytes]:
    values = [b'{"n":%d}' % n for n in range(first, first + count)]
    send(kafka, topic, values)
    return values


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failure_keeps_the_earlier_recording_and_the_events_before_it(
    suffix: str, kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [PUT] * 30)
    monkeypatch.setattr(topic_reader, "_EVENT_BATCH", 10)
    precious = tmp_path / f"out{suffix}"
    precious.write_bytes(b"precious")
    (tmp_path / f"out.part{suffix}").write_bytes(b"of an earlier failure")

    def fail(result: RecordResult) -> None:
        if result.events >= 20:
            raise MqtwinError("Kafka has gone")

    with pytest.raises(MqtwinError, match=rf"Kafka has gone; the 20 events before it are in .*out\.part2\{suffix}"):
        record_topic(precious, kafka, topic_prefix, on_progress=fail)
    assert precious.read_bytes() == b"precious"
    assert (tmp_path / f"out.part{suffix}").read_bytes() == b"of an earlier failure"
    assert events_of(tmp_path / f"out.part2{suffix}") == 20


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_room_is_one_line_and_the_events_before_it_are_readable(
    suffix: str, follow: bool, kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    digits = random.Random(1)
    send(kafka, topic, [PUT[:-1] + b',"msgid":"%040x"}' % digits.getrandbits(160) for _ in range(3000)])
    monkeypatch.setattr(topic_reader, "_EVENT_BATCH", 20)
    monkeypatch.setattr(recording, "_POSITION_SECONDS", 0)
    with largest_file(30_000), pytest.raises(MqtwinError, match="cannot be written: File too large; the ") as error:
        record_topic(tmp_path / f"out{suffix}", kafka, topic_prefix, follow=follow)
    assert "\n" not in str(error.value)
    path = tmp_path / (f"out{suffix}" if follow else f"out.part{suffix}")
    assert str(error.value).endswith(f"events before it are in {path}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutRecordingWarning)
        assert events_of(path) >= 20


def test_no_file_is_created_or_replaced_before_the_first_record(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    create(kafka, f"{topic_prefix}.events")
    precious = tmp_path / "out.ndjson"
    precious.write_bytes(PUT)
    assert record_topic(precious, kafka, topic_prefix).is_untouched
    assert record_topic(tmp_path / "new.ndjson", kafka, topic_prefix, follow=True, stop=lambda: True).events == 0
    assert precious.read_bytes() == PUT
    assert [path.name for path in tmp_path.iterdir()] == ["out.ndjson"]


def test_an_incomplete_recording_does_not_replace_a_complete_one(
    kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    values = send_and_note(kafka, topic, 0, 30)
    monkeypatch.setattr(topic_reader, "_EVENT_BATCH", 10)
    for number, name in enumerate(("out.ndjson", "out.part.ndjson")):
        stop = threading.Event()
        result = record_topic(
            tmp_path / "out.ndjson", kafka, topic_prefix, stop=stop.is_set, on_progress=lambda _, stop=stop: stop.set()
        )
        assert result.path == tmp_path / name
        assert (tmp_path / name).read_bytes().splitlines() == values[: result.events], number
    assert record_topic(tmp_path / "out.ndjson", kafka, topic_prefix).path == tmp_path / "out.ndjson"
    assert (tmp_path / "out.ndjson").read_bytes().splitlines() == values


@pytest.mark.parametrize("suffix", [".ndjson", ".ndjson.zst"])
def test_following_is_continued_however_it_ended(
    suffix: str, kafka: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped, killed between data and position, cut in the middle of a line: every event once, in order."""
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    path = tmp_path / f"out{suffix}"

    def follow(until: int) -> None:
        missing = until - (len(lines_of(path)) if path.exists() else 0)
        stop = threading.Event()
        record_topic(
            path,
            kafka,
            topic_prefix,
            follow=True,
            stop=stop.is_set,
            on_progress=lambda result: stop.set() if result.events >= missing else None,
        )

    values = send_and_note(kafka, topic, 0, 20)
    follow(20)
    assert lines_of(path) == values
    values += send_and_note(kafka, topic, 20, 20)
    position = (tmp_path / f"out{suffix}.position").read_bytes()
    follow(40)
    assert lines_of(path) == values
    (tmp_path / f"out{suffix}.position").write_bytes(position)  # the position as kill -9 before its update leaves it
    path.write_bytes(path.read_bytes()[:-5])
    values += send_and_note(kafka, topic, 40, 20)
    monkeypatch.setattr(recording, "_POSITION_SECONDS", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutRecordingWarning)
        stop = threading.Event()
        record_topic(
            path,
            kafka,
            topic_prefix,
            follow=True,
            stop=stop.is_set,
            on_progress=lambda result: stop.set() if result.events >= 40 else None,
        )
    assert lines_of(path) == values


def test_a_recording_that_cannot_be_continued_is_refused(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send_and_note(kafka, topic, 0, 3)

    def check_refused(name: str, message: str) -> None:
        before = (tmp_path / name).read_bytes()
        with pytest.raises(UsageError, match=f"{message}.*; expected: a new name"):
            record_topic(tmp_path / name, kafka, topic_prefix, follow=True)
        assert (tmp_path / name).read_bytes() == before

    for name in ("a.ndjson", "a.arrow"):
        (tmp_path / name).write_bytes(PUT)
    check_refused("a.ndjson", r"no a\.ndjson\.position beside it")
    check_refused("a.arrow", r"an \.arrow recording cannot be continued")

    def write_position(**changes: Any) -> None:
        position = {
            "topic": topic,
            "topic_id": topic_id({"bootstrap.servers": kafka}, topic),
            "bytes": 1,
            "next": {0: 3},
        }
        (tmp_path / "a.ndjson.position").write_bytes(msgspec.json.encode(position | changes))

    write_position(topic="other")
    check_refused("a.ndjson", r"another topic \(other\)")
    write_position(topic_id="of one that was deleted")
    check_refused("a.ndjson", "another topic")
    write_position(bytes=10_000)
    check_refused("a.ndjson", "of 10000 recorded")
    delete_before(kafka, topic, 2)
    write_position(next={0: 1})
    check_refused("a.ndjson", "ends at offset 1 of partition 0, Kafka begins at 2")


def delete_before(kafka: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def lines_of(path: Path) -> list[bytes]:
    return [line for chunk in open_recording(path) for line in chunk.lines()]


def events_of(path: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutRecordingWarning)
        return sum(len(chunk) for chunk in open_recording(path))


def test_a_missing_topic_leaves_no_file(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    with pytest.raises(MqtwinError, match=f"no topic {topic_prefix}.events"):
        record_topic(tmp_path / "out.ndjson", kafka, topic_prefix)
    assert not (tmp_path / "out.ndjson").exists()


def test_a_path_that_cannot_be_written_is_a_usage_error(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    create(kafka, f"{topic_prefix}.events")
    for name in ("no/such/folder.ndjson", "out.csv"):
        with pytest.raises(UsageError):
            record_topic(tmp_path / name, kafka, topic_prefix)
