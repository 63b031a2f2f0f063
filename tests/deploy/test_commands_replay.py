"""`mqtwin replay`: files and standard output, exit statuses, one line an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.cli import main
from tests.traffic import BAD_LINES, lines_of, traffic, write_estate, write_lines
from twin.estate import load_estate
from twin.replay import dead_letter, replay


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_estate(tmp_path_factory.mktemp("estate"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("recording") / "t.ndjson", [*lines_of(traffic(2000)), *BAD_LINES])


def test_files_hold_the_records_of_the_topics(
    estate: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"--{name}={tmp_path / name}" for name in ("alerts", "state", "dlq")]
    assert main(["replay", str(recording), "--estate", str(estate), *names]) == 0
    expected = replay(recording, load_estate(estate))
    assert (tmp_path / "alerts").read_bytes().splitlines() == [alert.record() for alert in expected.alerts]
    assert [json.loads(line) for line in (tmp_path / "state").read_bytes().splitlines()] == list(
        expected.states.values()
    )
    assert [json.loads(line) for line in (tmp_path / "dlq").read_bytes().splitlines()] == [
        dead_letter(r) for r in expected.rejects
    ]
    out, err = capsys.readouterr()
    assert out == ""
    summary = err.splitlines()[-1]
    assert summary.startswith(f"2,000 events, {len(BAD_LINES)} dead letters, {len(expected.alerts)} alerts, ")


def test_a_hyphen_is_standard_output(estate: Path, recording: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["replay", str(recording), "--estate", str(estate), "--state", "-"]) == 0
    states = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [state["store"] for state in states] == ["QSG1/APP1", "QSG1/APP2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.ndjson"], "is not a file"),
        (["estate.toml"], "no recording by its name"),
        (["t.ndjson", "--estate", "nowhere.toml"], "nowhere.toml"),
        (["t.ndjson", "--alerts", "no/such/folder"], "No such file or directory"),
        (["t.ndjson", "--alerts", "one", "--dlq", "one"], "a file for each"),
        (["t.ndjson", "--alerts", "--dlq"], "--dlq is an option"),
        ([], "RECORDING"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(
    arguments: list[str],
    said: str,
    estate: Path,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.ndjson").symlink_to(recording)
    (tmp_path / "estate.toml").write_bytes(estate.read_bytes())
    if "--estate" not in arguments:
        arguments = [*arguments, "--estate", str(estate)]
    assert main(["replay", *arguments]) == 2
    out, err = capsys.readouterr()
    errors = [line for line in err.splitlines() if not line.startswith("mqtwin: warning: ")]
    assert out == "" and len(errors) == 1 and said in errors[0] and errors[0].startswith("mqtwin: ")
