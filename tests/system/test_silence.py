"""A source that goes silent: alerts of the real job, equal to those of a replay of the topic, also after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streams.kafka.admin import prepare_topics
from streams.kafka.record import record
from streams.query.definition import JobSettings
from streams.query.job import start_job
from tests.support.estates import small_estate
from tests.system.harness import PATIENCE, Stream, check_equal
from twin.estate import Estate, load_estate
from twin.playback.replays import replay

pytestmark = pytest.mark.nightly

STORES = {"QSG1/APP1", "QSG1/APP2"}


def settings(stream: Stream, *, available_now: bool = False) -> JobSettings:
    return JobSettings(
        estate=stream.estate,
        bootstrap_servers=stream.servers,
        checkpoint=str(stream.checkpoint),
        prefix=stream.prefix,
        available_now=available_now,
    )


def put(stream: Stream, queue_manager: str = "QM01") -> None:
    now = time.time_ns() // 1000
    event = {"time": now, "qmgr": queue_manager, "op": "PUT", "queue": "ORDERS", "length": 100}
    stream.send([(b"QSG1/APP1", msgspec.json.encode(event), None)])


def wait_for(stream: Stream, count: int, change: str) -> list[dict[str, Any]]:
    """Wait for a number of `source-silent` alerts with a change, and return their data."""
    deadline = time.monotonic() + PATIENCE
    while True:
        alerts = [alert for alert in stream.alerts().values() if alert["type"] == f"mqtwin.alert.{change}"]
        silences = [alert["data"] for alert in alerts if alert["data"]["condition"] == "source-silent"]
        if len(silences) >= count:
            return silences
        assert time.monotonic() < deadline, f"{len(silences)} of {count} {change}"
        time.sleep(0.3)


def test_a_silent_source_is_an_alert_until_it_sends_again(
    new_stream: Callable[[Estate], Stream], tmp_path: Path
) -> None:
    described = small_estate(tmp_path)
    described.write_text(described.read_text() + "\n[queue_manager.QM01]\nsilence_s = 3\n")
    stream = new_stream(load_estate(described))
    # One partition, because the producers of the test and of the job choose partitions differently.
    prepare_topics(stream.topics, {"bootstrap.servers": stream.servers}, partitions=1)
    put(stream)
    stream.send([(b"?", b"no JSON", None), (b"?", b"[]", None), (b"?", b"{", None)])
    job = start_job(settings(stream), session=stream.session, on_batch=stream.batches.append)
    try:
        opened = wait_for(stream, len(STORES), "opened")
        put(stream, "QM02")
        put(stream)
        (cleared, *_) = wait_for(stream, 1, "cleared")
    finally:
        job.stop()
    assert stream.batches[0]["dead_letter_reasons"] == {"not-json": 2, "not-an-object": 1}
    assert {data["store"] for data in opened} == STORES
    assert {(data["resource"], data["severity"], data["level"]) for data in opened} == {
        ("source/QM01", "info", "watch")
    }
    assert cleared["alert_id"] in {data["alert_id"] for data in opened} and cleared["store"] == "QSG1/APP1"
    stream.run()  # processes the last events
    path = tmp_path / "topic.ndjson"
    record(path, {"bootstrap.servers": stream.servers}, stream.topics)
    check_equal(stream, replay(path, stream.estate))

    commits = stream.checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()  # as if killed before the last batch was committed: Spark runs it again
    stream.run()
    again = stream.batches[-1]
    assert (again["batch"], again["behind"]) == (last, 0)
    check_equal(stream, replay(path, stream.estate))
