"""Stores that share a coupling facility or a uniform cluster: output of the stream, equal to that of a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams.kafka.publish import publish
from streams.query.report_records import report_records
from tests.streams.kafka_help import new_producer
from tests.support.shared import FILES, MEMBERS, START_US, Shared, file_report, shared_estate
from tests.system.harness import PATIENCE, Stream, by_id, check_equal, read_topic
from twin.estate import Estate
from twin.events import JSON, NDJSON
from twin.playback.replays import Replayed, replay
from twin.recordings.files import RecordingWriter

pytestmark = pytest.mark.system

NewStream = Callable[[Estate], Stream]
SECONDS = 1500


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    """2 GB of SCM, of which the structures may use 4 GB; another member is started early."""
    early = ("messages_per_second = 1000", "messages_per_second = 1000\ntrigger_pct = 85")
    return shared_estate(tmp_path, ('scm = "4G"', 'scm = "2G"'), early)


def events() -> list[dict[str, Any]]:
    """Return traffic in structures with and without SCM and in cluster members, one of which starts late."""
    content: list[dict[str, Any]] = []
    for second in range(0, SECONDS, 3):
        queue = ("ORDERS", "INVOICES", "OTHER")[second // 3 % 3]
        own = {"time": START_US + second * 1_000_000, "qmgr": "QM01", "seq": second, "queue": queue}
        content.append({**own, "op": "GET" if second % 7 == 0 else "PUT", "length": 2000, "msgid": f"m{second // 21}"})
        if second % 60 == 0:
            content.append({"time": own["time"] + 1, "qmgr": "QM02", "op": "HEARTBEAT"})
        carried = {"time": own["time"], "queue": "REQUEST", "op": "PUT", "length": 2048, "count": 2800, "direct": True}
        content.append({**carried, "qmgr": MEMBERS[0]})
        if second > SECONDS // 2:
            content.append({**carried, "qmgr": MEMBERS[1]})
        elif second % 60 == 0:
            content.append({"time": own["time"], "qmgr": MEMBERS[1], "op": "HEARTBEAT"})
        if second % 60 == 0:
            content.append({"time": own["time"], "qmgr": MEMBERS[2], "op": "HEARTBEAT"})
    about = {"qmgr": "QM01", "store": "CF01"}
    content.append({**about, "time": START_US + 300_500_000, "op": "MEASURE", "measured": {"scm_used": 1 << 30}})
    content.append({**about, "time": START_US + 600_500_000, "op": "ALTER", "attributes": {"scm": "8G"}})
    content.append({**about, "time": START_US + 900_500_000, "op": "ALTER", "attributes": {"scm": "1G"}})
    return sorted(content, key=lambda event: event["time"])


def write(path: Path, content: list[dict[str, Any]]) -> Path:
    with RecordingWriter(path) as writer:
        writer.write(content)
    return path


def check_reports(stream: Stream, replayed: Replayed) -> None:
    """Assert that a stream has the output of a replay, in which stores that others share raise and clear alerts."""
    changes = {(alert.condition, alert.change) for alert in replayed.alerts}
    assert {("scm-overcommitted", "opened"), ("scm-overcommitted", "cleared"), ("capacity", "opened")} <= changes
    assert stream.states()["CF01"].late_reports == 0
    check_equal(stream, replayed)
    assert not stream.letters()


def test_reports_of_structures_in_pieces_give_the_output_of_a_replay(
    new_stream: NewStream, kafka: str, estate: Estate, tmp_path: Path
) -> None:
    content = events()
    whole = write(tmp_path / "whole.ndjson", content)
    stream = new_stream(estate)
    for number, start in enumerate(range(0, len(content), 1000)):
        part = write(tmp_path / f"part-{number}.ndjson", content[start : start + 1000])
        kind = (JSON, NDJSON)[number % 2]
        publish(part, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=kind)
        stream.run(max_records=600)  # two batches of the first piece
    check_reports(stream, replay(whole, estate))


@pytest.mark.nightly
def test_reports_that_are_delivered_twice_count_once(
    new_stream: NewStream, kafka: str, estate: Estate, tmp_path: Path
) -> None:
    stream = new_stream(estate)
    first = write(tmp_path / "first.ndjson", [{"time": START_US, "qmgr": "QM01", "op": "HEARTBEAT"}])
    publish(first, estate, {"bootstrap.servers": kafka}, stream.topics)
    stream.run()  # the checkpoint now has the start of the reports
    reports = {name: [file_report(name, tick, None, 9000, 9000, tick) for tick in range(1, 40)] for name in FILES}
    by_hand = Shared(estate, "UC01")
    producer = new_producer(kafka)
    for start in range(0, 39, 20):
        for name in FILES:
            piece = reports[name][start : start + 20]
            by_hand.reports(*piece, caught_up=False)
            for key, value in report_records(piece, 1 << 20):
                producer.produce(stream.topics.reports, value, key)
                producer.produce(stream.topics.reports, value, key)  # delivered twice, as "at least once" allows
        producer.produce(stream.topics.reports, b"{}", b"UC01")
        assert producer.flush(PATIENCE) == 0
        by_hand.reports()
        stream.run()
    assert stream.states()["UC01"] == by_hand.state()
    assert stream.alerts() == by_id(by_hand.alerts) != {}
    letters = stream.letters()
    assert [(letter.headers["reason"], letter.headers["topic"]) for letter in letters] == [
        ("bad-report", stream.topics.reports)
    ] * 2


@pytest.mark.nightly
def test_reports_of_structures_at_once_give_it_too_and_a_new_job_ignores_those_of_an_earlier_one(
    new_stream: NewStream, kafka: str, estate: Estate, tmp_path: Path
) -> None:
    content = events()
    replayed = replay(write(tmp_path / "whole.ndjson", content), estate)
    stream = new_stream(estate)
    # A backlog in several batches, in which the members of the cluster come half an hour one behind the other.
    content.sort(key=lambda event: event["qmgr"] if event["qmgr"] in MEMBERS else "", reverse=True)
    recording = write(tmp_path / "behind.ndjson", content)
    publish(recording, estate, {"bootstrap.servers": kafka}, stream.topics)
    stream.run(max_records=300)
    assert len(stream.batches) > 4
    check_reports(stream, replayed)
    assert replay(recording, estate).states == replayed.states
    written = len(read_topic(kafka, stream.topics.reports))
    stream.checkpoint = tmp_path / "another-checkpoint"
    stream.batches.clear()
    stream.run(max_records=300)
    assert written > 0
    assert len(read_topic(kafka, stream.topics.reports)) == 2 * written
    check_reports(stream, replayed)  # also its alerts have the same ids
    assert all(batch["events"] for batch in stream.batches if batch["reports"]), "no shared store reports"
