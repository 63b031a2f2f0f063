"""The watch over open transactions."""

from __future__ import annotations

import json

import pytest
from structlog.testing import capture_logs

from streams.kafka.admin import (
    LOOK_SECONDS,
    STANDING_SECONDS,
    PartitionEnd,
    TransactionWatch,
    reads_committed,
    watch_transactions,
)
from streams.query.progress import BatchLog
from streams.query.status import StatusFile, read_status
from tests.streams.test_progress import REPORT
from twin.base.errors import MqtwinError


class Topic:
    """A partition with ends, and a clock, that are set by hand."""

    def __init__(self) -> None:
        self.stable, self.end, self.now_s, self.asked = 10, 10, 0.0, 0
        self.watch = TransactionWatch(self.ends, monotonic=lambda: self.now_s)

    def ends(self) -> list[PartitionEnd]:
        self.asked += 1
        return [PartitionEnd("t", 0, self.stable, self.end), PartitionEnd("t", 1, 7, 7)]

    def warnings(self) -> list[dict]:
        with capture_logs() as logs:
            self.watch.look()
        return [dict(entry) for entry in logs]


def test_a_transaction_that_ends_in_time_is_counted_without_a_warning() -> None:
    topic = Topic()
    topic.end = 16
    assert topic.watch.look().mean == 3.0
    topic.now_s += STANDING_SECONDS - LOOK_SECONDS
    assert not topic.warnings()
    topic.stable = topic.end
    topic.now_s += STANDING_SECONDS
    assert not topic.warnings()
    assert topic.watch.look().records == 0


def test_one_that_stands_still_is_a_single_warning() -> None:
    topic = Topic()
    topic.end = 16
    assert not topic.warnings()
    topic.now_s += STANDING_SECONDS
    topic.end = 20
    (warning,) = topic.warnings()
    assert (warning["stable_offset"], warning["end_offset"], warning["records"]) == (10, 20, 10)
    assert warning["open_s"] == STANDING_SECONDS
    topic.now_s += STANDING_SECONDS
    assert not topic.warnings()
    topic.stable = 12  # the next one
    topic.now_s += LOOK_SECONDS
    assert not topic.warnings()
    topic.now_s += STANDING_SECONDS
    assert len(topic.warnings()) == 1


def test_kafka_is_asked_once_in_a_while() -> None:
    topic = Topic()
    for _ in range(10):
        topic.watch.look()
    assert topic.asked == 1
    topic.now_s += LOOK_SECONDS
    topic.watch.look()
    assert topic.asked == 2


def test_an_idle_job_is_behind_by_what_is_held_back(tmp_path) -> None:
    topic = Topic()
    log = BatchLog(status=StatusFile(tmp_path / "s"), transactions=topic.watch)
    topic.end = 13
    log.on_idle("2026-11-22T12:00:00.000Z")
    status = read_status(tmp_path / "s")
    assert status is not None and status.behind == 2  # 3 records of 2 partitions
    topic.now_s += LOOK_SECONDS
    topic.stable = 13
    log.on_idle("2026-11-22T12:00:00.000Z")
    status = read_status(tmp_path / "s")
    assert status is not None and status.behind == 0


def test_the_line_of_a_batch_has_what_is_held_back() -> None:
    topic, seen = Topic(), []
    topic.end = 13
    BatchLog(seen.append, transactions=topic.watch).on_progress(json.dumps(REPORT))
    assert (seen[0]["behind"], seen[0]["held"]) == (5, 3)


def test_a_kafka_that_does_not_answer_is_a_warning() -> None:
    def ends() -> list[PartitionEnd]:
        raise MqtwinError("no Kafka answers")

    seen: list[dict] = []
    with capture_logs() as logs:
        BatchLog(seen.append, transactions=TransactionWatch(ends)).on_progress(json.dumps(REPORT))
    assert [entry["why"] for entry in logs if entry["log_level"] == "warning"] == ["no Kafka answers"]
    assert "held" not in seen[0] and seen[0]["behind"] == 3


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, True), ({"isolation.level": "read_uncommitted"}, False), ({"kafka.isolation.level": "READ_COMMITTED"}, True)],
    ids=["by default", "uncommitted", "committed"],
)
def test_a_job_that_reads_uncommitted_records_is_not_held_back(settings: dict[str, str], expected: bool) -> None:
    assert reads_committed(settings) is expected
    watch = watch_transactions({"bootstrap.servers": "127.0.0.1:9", **settings}, ["t"])
    assert (watch is not None) is expected
