"""The same recording through Kafka and Spark and through a replay: equal alerts, equal final state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streams.kafka.publish import publish
from tests.naive.estates import write_estate
from tests.support.acted import altered, simulate_outage, with_events
from tests.support.mixes import MIXES
from tests.support.profile import IS_LARGE
from tests.support.workloads import random_workload
from tests.system.harness import Played, Stream, check_equal
from twin.estate import Estate, load_estate
from twin.events import ARROW, JSON, NDJSON
from twin.playback.replays import replay
from twin.recordings.files import RecordingWriter

pytestmark = pytest.mark.system

NewStream = Callable[[Estate], Stream]
PIECE_EVENTS = 1500 if IS_LARGE else 300


@pytest.mark.parametrize("content_type", [JSON, NDJSON, ARROW])
def test_an_outage_gives_the_same_alerts_and_states(new_stream: NewStream, outage: Played, content_type: str) -> None:
    stream = outage.publish(new_stream(outage.estate), content_type)
    stream.run()
    check_equal(stream, outage.replayed)


@pytest.mark.nightly
def test_another_bound_of_batches_changes_nothing_and_nor_do_runs_without_new_events(
    new_stream: NewStream, outage: Played
) -> None:
    """Batches of one record each are in test_crash.py."""
    stream = outage.publish(new_stream(outage.estate))
    stream.run(max_records=4)
    batches = len(stream.batches)
    assert batches > 1
    for _ in range(2):
        stream.run(max_records=10_000)
    assert len(stream.batches) == batches
    check_equal(stream, outage.replayed)


def split(recording: Path, time: int, folder: Path) -> tuple[Path, Path]:
    """Split a recording at a time (microseconds since 1970), and return the paths of both parts."""
    with pa.ipc.open_file(recording) as reader:
        table = reader.read_all()
    is_before = pc.less(table.column("time").cast(pa.int64()), time)
    paths = folder / "before.arrow", folder / "after.arrow"
    for path, rows in zip(paths, (is_before, pc.invert(is_before)), strict=True):
        with RecordingWriter(path) as writer:
            writer.write(table.filter(rows))
    return paths


@pytest.mark.nightly
def test_an_open_forecast_continues_after_a_restart(
    new_stream: NewStream, kafka: str, outage: Played, tmp_path: Path
) -> None:
    """The job ends while a full-forecast alert is open, and another job resumes from there."""
    estate, replayed = outage.estate, outage.replayed
    opened = next(alert.time for alert in replayed.alerts if alert.condition == "full-forecast")
    parts = split(outage.recording, opened + 300_000_000, tmp_path)
    stream = new_stream(estate)
    for number, (part, expected) in enumerate(zip(parts, (replay(parts[0], estate), replayed), strict=True)):
        publish(part, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=ARROW)
        stream.run(max_records=5 + 2 * number)
        check_equal(stream, expected)
        assert (expected.states["QSG1/APP1"].forecast is not None) == (part == parts[0])


@pytest.mark.nightly
def test_every_kind_of_event_in_pieces_and_over_restarts(new_stream: NewStream, kafka: str, tmp_path: Path) -> None:
    """Random events of all operations: units of work, ALTER, REBUILD, MEASURE, RESTART, far clocks, duplicates."""
    size = PIECE_EVENTS
    workload = random_workload(11, 8 * size // 3, "mixed")
    assert {event["op"] for event in workload.events} == set(MIXES["structure"].weights["mixed"])
    estate = load_estate(write_estate(tmp_path, workload.config, workload.aliases))
    pieces = [workload.events[start : start + size] for start in range(0, len(workload.events), size)]
    whole = tmp_path / "whole.ndjson"
    with RecordingWriter(whole) as writer:
        writer.write(workload.events)
    stream = new_stream(estate)
    for number, piece in enumerate(pieces):
        part = tmp_path / f"part-{number}.ndjson"
        with RecordingWriter(part) as writer:
            writer.write(piece)
        content_type = (JSON, NDJSON, ARROW)[number % 3]
        publish(part, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=content_type)
        stream.run(max_records=size // 7)
    check_equal(stream, replay(whole, estate))


@pytest.mark.nightly
def test_what_people_do_in_an_incident_is_said_alike_over_a_restart(
    new_stream: NewStream, kafka: str, tmp_path: Path
) -> None:
    """An ALTER and a refused one, a CLEAR and getters that are back; the job ends between them and is continued."""
    site = simulate_outage(tmp_path, "16M")
    clear = {"time": "2026-11-20T01:20:00Z", "qmgr": "QM01", "op": "CLEAR", "queue": "ORDERS"}
    events = (altered(size="1M"), altered("2026-11-20T01:14:00Z"), clear)
    whole, estate = with_events(site.recording, "whole.ndjson", *events), load_estate(site.estate)
    lines, stream = whole.read_bytes().splitlines(keepends=True), new_stream(estate)
    ends = [next(number for number, line in enumerate(lines) if time in line) for time in (b"T01:15:", b"T02:31:0")]
    for number, (begin, end) in enumerate(zip([0, *ends], [*ends, len(lines)], strict=True)):
        part = tmp_path / f"part-{number}.ndjson"
        part.write_bytes(b"".join(lines[begin:end]))
        publish(part, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=NDJSON)
        stream.run(max_records=10)
    replayed = replay(whole, estate)
    check_equal(stream, replayed)
    done = [alert.done for alert in replayed.alerts if alert.change == "cleared"][-1]
    assert [action.id for action in done] == ["alter-size", "alter-size", "", "getters"]
    assert [action.is_refused for action in done] == [True, False, False, False]
