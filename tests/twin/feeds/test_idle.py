"""Heartbeats of stores whose counts were read and that had no event (docs/feeds.md, Idle stores)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.twin.feeds.read import read
from tests.twin.feeds.samples import envelope, json_text
from twin.estate import Estate, load_estate
from twin.feeds import Event, Intake
from twin.feeds.importing import import_files
from twin.feeds.intervals import IdleStores
from twin.playback.replays import replay

MINUTE = 60_000_000
NOON_S = 1_795_176_000  # 2026-11-20T12:00:00Z
NOON_MINUTE = NOON_S // 60
QUEUES = ("A", "B", "C")


@pytest.fixture
def estate(tmp_path: Path) -> Estate:
    text = 'schema = 1\n[queue_manager.QMD1]\nplatform = "distributed"\n'
    text += "".join(f'[queue_file."QMD1/{queue}"]\n' for queue in QUEUES)
    (tmp_path / "estate.toml").write_text(text, encoding="utf-8")
    return load_estate(tmp_path / "estate.toml")


def heartbeats(events: list[Event]) -> list[tuple[int, str]]:
    """Return (minute, store) of the heartbeats, in order."""
    return [(event["time"] // MINUTE, event["store"]) for event in events if event["op"] == "HEARTBEAT"]


def test_a_store_read_without_an_event_gets_a_heartbeat_at_the_end_of_the_interval(estate: Estate) -> None:
    idle = IdleStores(estate)
    for minute, busy in ((1, "AB"), (2, "A"), (3, "C")):
        for queue in QUEUES[: 3 if minute > 1 else 2]:
            idle.note_read("QMD1", queue, minute * MINUTE, has_events=queue in busy)
    assert heartbeats(list(idle.heartbeats())) == [(2, "QMD1/B"), (2, "QMD1/C")]
    assert heartbeats(list(idle.heartbeats(is_end=True))) == [(3, "QMD1/A"), (3, "QMD1/B")]
    assert list(idle.heartbeats(is_end=True)) == []


def test_a_queue_that_is_no_more_named_is_idle_while_its_queue_manager_is_read(estate: Estate) -> None:
    """Statistics name the queues that were used."""
    idle = IdleStores(estate)
    idle.note_read("QMD1", "A", MINUTE, has_events=True)
    for minute in (1, 2, 3):
        idle.note_read("QMD1", "B", minute * MINUTE, has_events=True)
    assert heartbeats(list(idle.heartbeats(is_end=True))) == [(2, "QMD1/A"), (3, "QMD1/A")]


def test_nothing_is_claimed_of_what_was_not_read(estate: Estate) -> None:
    idle = IdleStores(estate)
    idle.note_read("QMD1", "UNKNOWN", MINUTE, has_events=False)
    idle.note_read("QMD9", "A", MINUTE, has_events=False)
    assert list(idle.heartbeats(is_end=True)) == []
    assert list(Intake(None).sift([], is_end=True)) == []


def test_queues_read_one_after_the_other_are_one_interval(estate: Estate) -> None:
    idle = IdleStores(estate)
    for minute in (1, 2):
        for place, queue in enumerate(QUEUES):
            idle.note_read("QMD1", queue, minute * MINUTE + place * 1_000_000, has_events=queue == "A")
    assert len(list(idle.heartbeats(is_end=True))) == 4


def matrix(**puts: list[int]) -> tuple[bytes, bytes]:
    """Return answers of Prometheus: puts of each queue so far, by minute."""
    name = "ibmmq_queue_mqput_mqput1_count"
    result = [
        {
            "metric": {"__name__": name, "qmgr": "QMD1", "queue": queue},
            "values": [[NOON_S + 60 * minute, str(count)] for minute, count in enumerate(counts)],
        }
        for queue, counts in puts.items()
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    types = {"status": "success", "data": {name: [{"type": "counter", "help": "", "unit": ""}]}}
    return msgspec.json.encode(types), msgspec.json.encode(answer)


def test_prometheus_gives_heartbeats_of_idle_queues(estate: Estate) -> None:
    pages = matrix(A=[0, 6, 6, 9], B=[5, 5, 5, 5])
    feed_events, intake = read("prometheus", *pages, estate=estate)
    assert heartbeats(feed_events) == [
        (NOON_MINUTE + 1, "QMD1/B"),
        (NOON_MINUTE + 2, "QMD1/A"),
        (NOON_MINUTE + 2, "QMD1/B"),
    ], "the last interval may not be complete"
    assert heartbeats(list(intake.sift([], is_end=True))) == [(NOON_MINUTE + 3, "QMD1/B")]


def statistics(interval: int, **puts: int) -> dict[str, Any]:
    """Return statistics of QMD1 of a quarter of an hour from noon on: persistent puts of each queue."""
    begin, end = (f"{12 + quarter // 4}.{quarter % 4 * 15:02d}.00" for quarter in (interval, interval + 1))
    queues = [
        {"queueName": queue, "puts": [0, count], "put1s": [0, 0], "putBytes": [0, 100 * count], "gets": [0, 0]}
        for queue, count in puts.items()
    ]
    times = {"startDate": "2026-11-20", "startTime": begin, "endDate": "2026-11-20", "endTime": end}
    return envelope(165, {**times, "objectCount": len(queues), "queueStatisticsData": queues})


def test_statistics_of_a_queue_that_is_used_no_longer_keep_the_log_moving(estate: Estate, tmp_path: Path) -> None:
    """A is used all the time, B in the first quarter of an hour, C never; no heartbeat comes from elsewhere."""
    (tmp_path / "statistics.json").write_bytes(
        json_text(statistics(0, A=9_000, B=9_000), *(statistics(n, A=9_000, B=0) for n in range(1, 8)))
    )
    import_files("amqsevt", [tmp_path / "statistics.json"], tmp_path / "out.ndjson", estate)
    states = replay(tmp_path / "out.ndjson", estate).states
    assert "QMD1/C" not in states
    assert states["QMD1/B"].time == states["QMD1/A"].time == "2026-11-20T14:00:00.000000Z"
    log = states["QMD1"]
    assert log.time == "2026-11-20T14:00:00.000000Z"
    assert log.log_records == 9 * 9_000 - 100, "without the 100 of the last ten seconds, which the next tick counts"
    assert log.late_reports == 0
