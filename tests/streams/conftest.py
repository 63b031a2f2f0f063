"""A recording of three thousand events with bad lines among them, its estate and its replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.traffic import BAD_LINES, lines_of, traffic, write_estate, write_lines
from twin.estate import Estate, load_estate
from twin.playback.replays import Replayed, replay


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Estate:
    return load_estate(write_estate(tmp_path_factory.mktemp("estate")))


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = lines_of(traffic(3000))
    for number, bad in enumerate(BAD_LINES):
        lines.insert(number * 400, bad)
    return write_lines(tmp_path_factory.mktemp("recording") / "traffic.ndjson", lines)


@pytest.fixture(scope="session")
def replayed(estate: Estate, recording: Path) -> Replayed:
    return replay(recording, estate)
