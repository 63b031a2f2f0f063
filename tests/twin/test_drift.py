"""Drift over time, and its causes."""

from __future__ import annotations

import pytest

from tests.support.estates import facility_estate
from twin.estate import load_estate
from twin.playback.commission import Observation
from twin.playback.fidelity import MAX_POINTS, DriftPoint, DriftPoints
from twin.playback.replays import play, replay
from twin.recordings.files import RecordingWriter

NOON = 1_795_176_000_000_000


@pytest.fixture(scope="module")
def estate(tmp_path_factory):
    return load_estate(facility_estate(tmp_path_factory.mktemp("estate")))


def put(second, queue="ORDERS", **fields):
    return {"time": NOON + second * 10**6, "qmgr": "QM01", "op": "PUT", "queue": queue, "length": 500, **fields}


def get(second, queue="ORDERS", **fields):
    return {"time": NOON + second * 10**6, "qmgr": "QM01", "op": "GET", "queue": queue, **fields}


def measure(second, **measured):
    base = {"time": NOON + second * 10**6, "qmgr": "QM01", "op": "MEASURE", "store": "QSG1/APP1"}
    return {**base, "measured": measured}


STORE = "QSG1/APP1"


def drift_of(tmp_path, estate, *events) -> Observation:
    path = tmp_path / "r.ndjson"
    with RecordingWriter(path) as writer:
        writer.write(events)
    seen = Observation(estate)
    play(path, estate, seen)
    return seen


def test_model_and_measurement_stand_side_by_side_over_time(tmp_path, estate):
    result = drift_of(
        tmp_path,
        estate,
        measure(0, ents_used=0),
        put(1, count=100),
        get(1, count=40),
        measure(60, ents_used=60),
        put(61, count=10),
        get(61, count=1),
        measure(120, ents_used=59),
    )
    [earlier, later] = result.stores[STORE].tested["entries"].points
    assert [(point.time, point.model, point.measured) for point in (earlier, later)] == [
        (NOON + 60_000_000, 60, 60),
        (NOON + 120_000_000, 69, 59),
    ]
    assert (earlier.pct, later.pct) == (0, pytest.approx(1000 / later.total))
    assert result.causes(STORE) == []


def test_missing_numbers_are_named(tmp_path, estate):
    result = drift_of(tmp_path, estate, put(0, seq=1), put(1, seq=5), get(2), measure(3, ents_used=4))
    assert result.causes(STORE) == ["3 numbers of `seq` are missing: their events were lost"]


def test_a_queue_whose_gets_are_never_reported_is_named(tmp_path, estate):
    events = [put(0, count=50), put(1, "REPLIES", count=50), get(2, "REPLIES", count=10), measure(3, ents_used=10)]
    result = drift_of(tmp_path, estate, *events)
    assert result.causes(STORE) == ["ORDERS: 50 puts and no get: its gets may not be reported"]


def test_puts_that_are_missing_leave_the_twin_below_and_are_named_although_nothing_was_got(tmp_path, estate):
    result = drift_of(tmp_path, estate, measure(0, ents_used=0), put(1, count=500), measure(2, ents_used=900))
    [text] = result.causes(STORE)
    assert "less entries than measured" in text and "some puts are not reported" in text


def test_gets_beyond_the_baseline_mean_unreported_puts(tmp_path, estate):
    result = drift_of(
        tmp_path, estate, measure(0, ents_used=5, elems_used=20), get(1, count=15), measure(2, ents_used=0)
    )
    [text] = result.causes(STORE)
    gets = "15 gets found no message, 5 of them can be of the baseline"
    assert text == f"{gets}: puts were not reported, or events came out of order"


def test_gets_of_the_backlog_are_distinguished_from_missing_puts(tmp_path, estate):
    result = drift_of(
        tmp_path, estate, measure(0, ents_used=9, elems_used=20), get(1, count=5), measure(2, ents_used=4)
    )
    [text] = result.causes(STORE)
    assert text.startswith("5 of 9 messages of the baseline were got")


def test_other_capacities_and_elements_alone_are_rules(tmp_path, estate):
    result = drift_of(
        tmp_path,
        estate,
        measure(0, ents_used=0, elems_used=0),
        put(1, count=900),
        get(1),
        measure(2, ents_used=899, elems_used=800, ents_max=900),
    )
    capacity, lengths = result.causes(STORE)
    assert capacity.startswith("ents_max: 900 measured") and lengths.startswith("entries agree, elements do not")


def test_a_growing_surplus_without_another_reason_means_unreported_gets(tmp_path, estate):
    result = drift_of(
        tmp_path, estate, measure(0, ents_used=0), put(1, count=500), get(2, count=9), measure(3, ents_used=0)
    )
    [text] = result.causes(STORE)
    assert "some gets or expiries are not reported" in text


def test_a_share_in_use_is_held_against_the_elements_of_the_twin(tmp_path, estate):
    result = drift_of(
        tmp_path,
        estate,
        measure(0, ents_used=0, elems_used=0),
        put(1, count=900),
        measure(2, ents_used=900, usage_pct=97),
    )
    (point,) = result.stores[STORE].tested["elements"].points
    assert point.measured == round(0.97 * point.total)
    assert point.pct < -20
    assert any(text.startswith("entries agree, elements do not") for text in result.causes(STORE))


def test_an_unknown_queue_is_coverage(tmp_path, estate):
    result = drift_of(tmp_path, estate, put(0, "OTHER"), measure(1, ents_used=0))
    assert result.causes(STORE) == ["1 event of the recording with a queue or store not in the estate"]


def test_a_store_fed_by_levels_alone_follows_them(estate, tmp_path):
    from twin.feeds import Intake

    path = tmp_path / "levels.ndjson"
    levels = [(900, 5000), (100, 700), (400, 2500)]
    events = [measure(60 * i, ents_used=entries, elems_used=elems) for i, (entries, elems) in enumerate(levels)]
    for resync, used in ((False, 400), (True, 400)):
        with RecordingWriter(path) as writer:
            writer.write(Intake(estate, resync=resync).sift(events))
        assert replay(path, estate).states["QSG1/APP1"].ents_used == used


def test_points_are_bounded_and_the_latest_is_kept():
    resource = DriftPoints("entries")
    for i in range(3 * MAX_POINTS):
        resource.add(DriftPoint(i, i, 0, 1))
        assert len(resource.points) <= MAX_POINTS
        assert resource.points[-1].time == i
    times = [point.time for point in resource.points]
    assert times == sorted(set(times))


def test_the_command_prints_drift_and_its_causes(tmp_path, capsys):
    from deploy.cli import main

    toml, recording = facility_estate(tmp_path), tmp_path / "r.ndjson"
    with RecordingWriter(recording) as writer:
        writer.write([measure(0, ents_used=0), put(1, count=50), measure(60, ents_used=10)])
    assert main(["commission", "--recording", str(recording), "--estate", str(toml)]) in {0, 1}
    out = capsys.readouterr().out
    assert "QSG1/APP1\tentries\t50\t10\t+" in out
    assert "QSG1/APP1, likely cause of drift: ORDERS: 50 puts and no get" in out
