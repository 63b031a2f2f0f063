"""`mqtwin simulate` as typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.cli import main
from tests.support.estates import small_estate
from twin.simulation import SCENARIOS

HALF_AN_HOUR = ("--set", "hours=0.5", "--rate", "5")


@pytest.fixture
def estate(tmp_path: Path) -> str:
    return str(small_estate(tmp_path))


def test_simulate_ends_with_a_line_that_says_what_came_out(
    estate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "outage.arrow"
    assert main(["simulate", "getter-outage", "--estate", estate, "-o", str(recording), "--seed", "1"]) == 0
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert "events, first 2192 at 2026-11-20 0" in output
    assert "on QSG1/APP1 (" in output
    assert "peak usage 9" in output
    assert "% of smds/QM01" in output
    assert recording.stat().st_size > 100_000


def test_simulate_says_where_there_is_no_2192(estate: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = tmp_path / "quiet.ndjson.zst"
    options = ("--start", "2025-01-01T00:00:00Z", "--store", "QSG1/APP2", "--queue", "AUDIT", "--set", "getter_speed=5")
    status = main(
        ["simulate", "getter-outage", "--estate", estate, "--output", str(recording), *HALF_AN_HOUR, *options]
    )
    assert status == 0
    assert "events, no 2192, peak usage" in capsys.readouterr().out


def test_simulate_lists_the_scenarios_with_their_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == list(SCENARIOS)
    assert all("hours=" in line.split("\t")[2] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ([], "simulate: missing arguments; expected: SCENARIO --estate FILE -o RECORDING, or --list"),
        (["outage"], "expected: SCENARIO --estate FILE -o RECORDING, or --list"),
        (["outage", "--estate", "E", "-o", "R.arrow"], "there is no scenario outage; expected: "),
        (["burst", "--estate", "E", "-o", "R.arrow", "--set", "every"], "--set has no =; expected: --set KEY=VALUE"),
        (
            ["burst", "--estate", "E", "-o", "R.arrow", "--set", "each=1"],
            "burst has no parameter each; expected: hours,",
        ),
        (
            ["burst", "--estate", "E", "-o", "R.arrow", "--set", "hours=0"],
            "hours of burst is 0; expected: a number from 0.01",
        ),
        (
            ["burst", "--estate", "E", "-o", "R.arrow", "--start", "noon"],
            "--start noon; expected: RFC 3339",
        ),
        (["burst", "--estate", "none.toml", "-o", "R.arrow"], "none.toml"),
        (["burst", "--estate", "E", "-o", "R.csv"], "R.csv is no recording by its name"),
    ],
    ids=["nothing", "half", "scenario", "setting", "parameter", "hours", "start", "estate", "recording"],
)
def test_wrong_use_of_simulate_is_one_line_and_exit_status_2(
    estate: str, arguments: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *(estate if argument == "E" else argument for argument in arguments)]) == 2
    printed = capsys.readouterr().err
    assert output in printed
    assert printed.count("\n") == 1
