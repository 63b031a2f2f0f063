"""Cases of real loads: counts of a file, readers, and what a case says of itself (tests/tools/score/loads.py)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tools.score.loads import READERS, SERIES, STORIES, Reader, recorded_load
from twin.estate import load_estate

COUNTS = 600  # of a file: 50 hours


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder with loads that rise and fall within twelve hours."""
    for names in SERIES.values():
        for name in names:
            rows = (
                f"2015-02-{26 + i // 288:02} {i % 288 // 12:02}:{i % 12 * 5:02}:00,{50 + 40 * np.sin(i / 23):.0f}"
                for i in range(COUNTS)
            )
            (tmp_path / f"{name}.csv").write_text("timestamp,value\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_a_reader_leaves_what_it_cannot_get_in_time() -> None:
    puts = np.array([1.0, 5.0, 9.0, 2.0, 0.0, 7.0])
    assert Reader(np.full(6, 3.0)).backlog(puts, 10.0).tolist() == [0.0, 20.0, 80.0, 70.0, 40.0, 80.0]
    assert Reader(np.zeros(6), stays_s=20.0).backlog(puts, 10.0).tolist() == [10.0, 55.0, 117.5, 78.75, 39.375, 89.6875]


def test_every_reader_is_away_or_slow_or_has_a_limit() -> None:
    counts = np.repeat(50 + 40 * np.sin(np.arange(288) / 23), 5)
    for name, make in READERS.items():
        backlogs = [make(counts, np.random.default_rng(seed)).backlog(counts, 60.0).max() for seed in range(5)]
        assert max(backlogs) > 0, name


def test_a_case_is_the_same_each_time_and_is_recorded_once(source: Path, tmp_path: Path) -> None:
    case = recorded_load(3, "tuning", tmp_path, source)
    assert (case.class_, case.scenario) == ("real", f"real-{STORIES[3]}")
    assert case.story.startswith(SERIES["tuning"])
    before = case.recording.read_bytes()
    assert case.store in load_estate(case.estate).stores
    assert recorded_load(3, "tuning", tmp_path, source) == case
    case.recording.unlink()
    Path(f"{case.stem}.json").unlink()
    assert recorded_load(3, "tuning", tmp_path, source).recording.read_bytes() == before


def test_no_series_is_in_both_sets() -> None:
    assert not {*SERIES["tuning"]} & {*SERIES["test"]}
