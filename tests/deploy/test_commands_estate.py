"""`mqtwin estate check`: warnings on standard error, a line a store on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.cli import main
from tests.support.traffic import write_estate


def test_a_sound_estate_is_summed_up_a_line_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estate", "check", str(write_estate(tmp_path))]) == 0
    out, err = capsys.readouterr()
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["store", "kind", "size", "queue managers", "queues", "details"]
    assert [line[:5] for line in lines[1:]] == [
        ["QM01/PS04", "page set", "4000K", "QM01", "1"],
        ["QSG1/APP1", "structure", "1M", "QM01, QM02", "1"],
        ["QSG1/APP2", "structure", "512K", "QM01, QM02", "1"],
    ]
    assert all(line.startswith("mqtwin: warning: ") for line in err.splitlines()) and "QM01/PS04" in err


def test_on_a_terminal_it_is_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["estate", "check", str(write_estate(tmp_path))]) == 0
    out = capsys.readouterr().out
    assert "\t" not in out and "QSG1/APP1" in out


def test_wrong_text_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "estate.toml"
    path.write_text('schema = 1\n[structure."QSG1/APP1"]\nsise = "4G"\n', encoding="utf-8")
    assert main(["estate", "check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and "estate.toml" in err
