"""The same recording through Kafka and Spark and through a replay: equal alerts, equal final state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streams.publish import publish
from tests.estates import small_estate
from tests.mixed import mixed
from tests.naive.estates import write_estate
from tests.system.harness import Stream, by_id, foreseen
from tests.workloads import random_workload
from twin.alerts import CLEARED, OPENED, UPDATED
from twin.estate import Estate, load_estate
from twin.events import ARROW, JSON, NDJSON
from twin.recordings import RecordingWriter
from twin.replay import Replayed, replay
from twin.simulation import make_scenario, simulate

pytestmark = pytest.mark.system

NewStream = Callable[[Estate], Stream]


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Estate, Replayed]:
    """A getter outage that goes through every offload rule to 2192 and back, and what a replay makes of it."""
    folder = tmp_path_factory.mktemp("outage")
    estate = load_estate(small_estate(folder))
    recording = folder / "outage.arrow"
    outcome = simulate(make_scenario("getter-outage"), estate, recording, seed=3)
    assert outcome.first_full is not None
    replayed = replay(recording, estate)
    assert foreseen(replayed)["QSG1/APP1"] >= {OPENED, UPDATED, CLEARED}
    return recording, estate, replayed


def cut(recording: Path, time: int, folder: Path) -> tuple[Path, Path]:
    """A recording in two: what was before a time (microseconds since 1970), and the rest."""
    with pa.ipc.open_file(recording) as reader:
        table = reader.read_all()
    is_before = pc.less(table.column("time").cast(pa.int64()), time)
    paths = folder / "before.arrow", folder / "after.arrow"
    for path, rows in zip(paths, (is_before, pc.invert(is_before)), strict=True):
        with RecordingWriter(path) as writer:
            writer.write(table.filter(rows))
    return paths


def check_equal(stream: Stream, replayed: Replayed) -> None:
    assert stream.alerts() == by_id(replayed.alerts)
    assert stream.states() == replayed.states
    assert len(stream.letters()) == replayed.dead_letters


@pytest.mark.parametrize("content_type", [JSON, NDJSON, ARROW])
def test_an_outage_gives_the_same_alerts_and_states(
    new_stream: NewStream, kafka: str, outage: tuple[Path, Estate, Replayed], content_type: str
) -> None:
    recording, estate, replayed = outage
    stream = new_stream(estate)
    publish(recording, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=content_type)
    stream.run()
    conditions = {(alert.condition, alert.resource.partition("/")[0]) for alert in replayed.alerts}
    assert {("threshold", "elements"), ("full", "smds")} <= conditions
    check_equal(stream, replayed)


@pytest.mark.parametrize("max_records", [4, 9])
def test_batches_cut_elsewhere_change_nothing(
    new_stream: NewStream, kafka: str, outage: tuple[Path, Estate, Replayed], max_records: int
) -> None:
    recording, estate, replayed = outage
    stream = new_stream(estate)
    publish(recording, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=ARROW)
    stream.run(max_records=max_records)
    assert len(stream.batches) > 1
    check_equal(stream, replayed)


def test_a_forecast_that_stands_goes_on_after_a_restart(
    new_stream: NewStream, kafka: str, outage: tuple[Path, Estate, Replayed], tmp_path: Path
) -> None:
    """The job ends while an alert foresees the end, and another one goes on where it was."""
    recording, estate, replayed = outage
    opened = next(alert.time for alert in replayed.alerts if alert.condition == "full-forecast")
    parts = cut(recording, opened + 300_000_000, tmp_path)
    stream = new_stream(estate)
    for number, (part, expected) in enumerate(zip(parts, (replay(parts[0], estate), replayed), strict=True)):
        publish(part, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=ARROW)
        stream.run(max_records=5 + 2 * number)
        check_equal(stream, expected)
        assert (expected.states["QSG1/APP1"]["forecast"] is not None) == (part == parts[0])


def test_a_store_of_every_kind(new_stream: NewStream, kafka: str, tmp_path: Path) -> None:
    """SCM that two structures share, a page set, a queue file, a uniform cluster."""
    recording, estate = mixed(tmp_path)
    replayed = replay(recording, estate)
    assert {state["kind"] for state in replayed.states.values()} == {
        *("structure", "page_set", "queue_file", "coupling_facility", "uniform_cluster")
    }
    conditions = {(alert.store, alert.condition) for alert in replayed.alerts}
    assert {("CF01", "scm-overcommitted"), ("QM01/PS04", "full"), ("QMD1/INVOICES", "full")} <= conditions
    assert {store for store, condition in conditions if condition == "capacity"} == {"UC01"}
    assert foreseen(replayed).keys() == {"QSG1/APP1", "QM01/PS04", "QMD1/INVOICES"}
    stream = new_stream(estate)
    publish(recording, estate, {"bootstrap.servers": kafka}, stream.topics, content_type=ARROW)
    stream.run(max_records=9)
    check_equal(stream, replayed)


def test_every_kind_of_event_in_pieces_and_over_restarts(new_stream: NewStream, kafka: str, tmp_path: Path) -> None:
    """Random events of all operations: units of work, ALTER, REBUILD, MEASURE, RESTART, far clocks, duplicates."""
    workload = random_workload(11, 4000, "mixed")
    estate = load_estate(write_estate(tmp_path, workload.config, workload.aliases))
    pieces = [workload.events[start : start + 1500] for start in range(0, len(workload.events), 1500)]
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
        stream.run(max_records=200)
    check_equal(stream, replay(whole, estate))
