"""Cases of the classes queues and laws (tests/tools/score/laws.py), on loads made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.tools.score.laws import LAWS, QUEUES, SLOTS, STORIES, Law, by_minute, by_the_clock, draw_story, recorded_law
from tests.tools.score.loads import SERIES
from twin.estate import load_estate
from twin.recordings.files import open_recording
from twin.state.arrays import Array

DAYS = 9


def series_of(days: int, seed: int) -> Array:
    """Return counts every five minutes that follow the time of day, from a midnight."""
    slots = np.arange(days * SLOTS)
    return 50 + 30 * np.sin(2 * np.pi * slots / SLOTS) + np.random.default_rng(seed).integers(0, 20, slots.size)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with a load for each series."""
    for seed, name in enumerate(name for names in SERIES.values() for name in names):
        rows = (
            f"2015-02-{1 + slot // SLOTS:02} {slot % SLOTS // 12:02}:{slot % 12 * 5:02}:00,{count:.0f}"
            for slot, count in enumerate(series_of(DAYS, seed).tolist())
        )
        (tmp_path / f"{name}.csv").write_text("timestamp,value\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_counts_by_the_clock_begin_at_midnight_and_fill_gaps_from_the_day_before() -> None:
    counts = np.arange(3 * SLOTS)
    present = [slot for slot in counts.tolist() if not SLOTS + 100 <= slot < SLOTS + 200 and slot != 50]
    rows = [f"2015-03-{1 + slot // SLOTS:02} {slot % SLOTS // 12:02}:{slot % 12 * 5:02}:00,{slot}" for slot in present]
    text = "\n".join(["timestamp,value", "2015-02-28 23:50:00,7", *rows, "2015-03-04 00:02:00,9"])
    own = by_the_clock(text)
    assert own.size == 3 * SLOTS
    assert own[50] == 50
    assert own[SLOTS + 100 : SLOTS + 200].tolist() == counts[100:200].tolist()
    assert by_minute(own).size == 5 * own.size


@pytest.mark.parametrize("class_", [QUEUES, LAWS])
def test_every_story_has_an_odd_event_by_which_half_of_the_cases_fill(class_: Law) -> None:
    series = {name: series_of(30, seed) for seed, name in enumerate("AB")}
    seen = set()
    for number in range(20):
        story = draw_story(class_, number, series, np.random.default_rng(number))
        highest = np.sum([part.backlog for part in story.parts], axis=0)
        begin, end = story.parts[0].odd or (0, 0)
        assert begin < highest.argmax() <= end + 30
        assert (story.reach > 1) == (number % 2 == 0)
        assert 3 <= len(story.parts) <= 6 if class_ == QUEUES else len(story.parts) <= 2
        seen.add((number % 2, story.name))
    assert seen == {(half, name) for half in (0, 1) for name in STORIES[class_][half]}


def test_a_case_is_the_same_each_time_and_each_queue_has_traffic(source: Path, tmp_path: Path) -> None:
    case = recorded_law(QUEUES, 3, "test", tmp_path, source)
    assert (case.class_, case.scenario) == (QUEUES, "queues-absence")
    assert {name for name in SERIES["test"] if name in case.story} == {*SERIES["test"]}
    before = case.recording.read_bytes()
    assert recorded_law(QUEUES, 3, "test", tmp_path, source) == case
    case.recording.unlink()
    Path(f"{case.stem}.json").unlink()
    assert recorded_law(QUEUES, 3, "test", tmp_path, source).recording.read_bytes() == before
    tables = [chunk.table(np.arange(len(chunk))) for chunk in open_recording(case.recording)]
    queues = {name for table in tables for name in table["queue"].cast(pa.string()).to_pylist()}
    assert 3 <= len(queues) <= 6
    assert case.store in load_estate(case.estate).stores
