"""The events topic in a recording that replays to the same."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from streams.publish import publish
from streams.record import Recorded, record
from streams.topics import Topics
from tests.streams.kafka_help import create, send
from tests.traffic import BAD_LINES
from twin.errors import MqtwinError, UsageError
from twin.estate import Estate
from twin.events import ARROW, CONTENT_TYPES, NDJSON
from twin.recordings import SUFFIXES
from twin.replay import Replayed, replay

PUT = b'{"time":1795176000000000,"qmgr":"QM01","op":"PUT","queue":"ORDERS","length":1}'


def recorded(path: Path, kafka: str, prefix: str, **options: Any) -> Recorded:
    return record(path, {"bootstrap.servers": kafka}, Topics(prefix), **options)


def same(one: Replayed, other: Replayed) -> bool:
    return (one.alerts, one.states) == (other.alerts, other.states)


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
        done = recorded(path, kafka, topic_prefix)
        again = replay(path, estate)
        assert same(again, replayed)
        if suffix == ".arrow":  # has columns for what an event has, and no place for what is none
            assert sum(done.lost.values()) + again.dead_letters == len(BAD_LINES)
        else:
            assert not done.lost
            assert sorted((r.reason, r.value) for r in again.rejects) == sorted(
                (r.reason, r.value) for r in replayed.rejects
            )


def test_stores_in_several_partitions_keep_their_order(
    recording: Path, estate: Estate, replayed: Replayed, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    create(kafka, f"{topic_prefix}.events", partitions=3)
    publish(recording, estate, {"bootstrap.servers": kafka}, Topics(topic_prefix))
    recorded(tmp_path / "again.ndjson", kafka, topic_prefix)
    assert same(replay(tmp_path / "again.ndjson", estate), replayed)


def test_content_types_that_alternate_keep_the_order(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [b'{"n":1}'])
    send(kafka, topic, [b'{"n":2}\r\n\n{"n":3}\n'], headers=[("content-type", b"Application/X-NDJSON; charset=utf-8")])
    send(kafka, topic, [b'{\n"n":4\n}', b'{"n":5}'])
    done = recorded(tmp_path / "out.ndjson", kafka, topic_prefix)
    assert [line.replace(b" ", b"") for line in (tmp_path / "out.ndjson").read_bytes().splitlines()] == [
        b'{"n":%d}' % n for n in range(1, 6)
    ]
    assert (done.events, done.records) == (5, 4)


def test_what_a_recording_cannot_hold_is_counted(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [PUT, b"", None, b"not json"])
    send(kafka, topic, [PUT], headers=[("content-type", b"text/plain")])
    send(kafka, topic, [b"no stream", None], headers=[("content-type", ARROW.encode())])
    send(kafka, topic, [b"\n \n", None], headers=[("content-type", NDJSON.encode())])
    done = recorded(tmp_path / "out.ndjson", kafka, topic_prefix)
    assert (tmp_path / "out.ndjson").read_bytes() == PUT + b"\nnot json\n"
    assert done.lost == {"not-json": 2, "unknown-content-type": 1, "bad-arrow": 2}
    assert done.first_lost == "partition 0 offset 1"
    done = recorded(tmp_path / "out.arrow", kafka, topic_prefix)
    assert done.events == 1 and done.lost == {
        "not-json": 2,
        "unknown-content-type": 1,
        "bad-arrow": 2,
        "not-for-columns": 1,
    }


def test_an_empty_topic_is_an_empty_recording(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    create(kafka, f"{topic_prefix}.events", partitions=2)
    assert recorded(tmp_path / "out.ndjson", kafka, topic_prefix).records == 0
    assert (tmp_path / "out.ndjson").read_bytes() == b""


def test_following_goes_on_until_it_is_stopped(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    topic = f"{topic_prefix}.events"
    create(kafka, topic)
    send(kafka, topic, [PUT])
    progress: list[int] = []
    stop = threading.Event()

    def more(so_far: Recorded) -> None:
        progress.append(so_far.events)
        if so_far.events == 1:
            send(kafka, topic, [PUT, PUT])
        else:
            stop.set()

    done = recorded(tmp_path / "out.ndjson", kafka, topic_prefix, follow=True, stop=stop.is_set, on_progress=more)
    assert done.events == progress[-1] >= 2
    assert (tmp_path / "out.ndjson").read_bytes() == (PUT + b"\n") * done.events


def test_a_topic_that_is_not_there_leaves_no_file(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    with pytest.raises(MqtwinError, match=f"no topic {topic_prefix}.events"):
        recorded(tmp_path / "out.ndjson", kafka, topic_prefix)
    assert not (tmp_path / "out.ndjson").exists()


def test_a_place_that_cannot_be_written_is_wrong_use(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    create(kafka, f"{topic_prefix}.events")
    for name in ("no/such/folder.ndjson", "out.csv"):
        with pytest.raises(UsageError):
            recorded(tmp_path / name, kafka, topic_prefix)
