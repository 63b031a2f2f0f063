"""Recordings of the scorecard are kept by generator (tests/tools/score/recordings.py)."""

from __future__ import annotations

from pathlib import Path

from tests.tools.score.recordings import code_hash, recordings_folder


def test_recordings_of_another_generator_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("0123456789ab", code_hash(), "docs", "0123456789abc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kept").touch()
    (tmp_path / "Makefile").touch()
    assert recordings_folder(tmp_path, fresh=False) == tmp_path / code_hash()
    assert {path.name for path in tmp_path.iterdir()} == {code_hash(), "docs", "0123456789abc", "Makefile"}
    assert (tmp_path / code_hash() / "kept").exists()
    recordings_folder(tmp_path, fresh=True)
    assert not (tmp_path / code_hash() / "kept").exists()
    assert (tmp_path / "docs" / "kept").exists()
