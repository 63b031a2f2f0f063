"""`mqtwin score`: table, JSON, pictures, and one line an error."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from tests.support.estates import small_estate
from twin.estate import load_estate
from twin.scoring import METHODS, PAGING_METHODS
from twin.simulation import make_scenario, simulate


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_estate(tmp_path_factory.mktemp("estate"))


@pytest.fixture(scope="module")
def recordings(estate: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An outage that ends in 2192, and two quiet hours."""
    folder = tmp_path_factory.mktemp("recordings")
    paths = {"outage": folder / "outage.arrow", "quiet": folder / "quiet.ndjson"}
    simulate(make_scenario("getter-outage"), load_estate(estate), paths["outage"], seed=1)
    quiet = make_scenario("getter-outage", rate=0.2, settings={"hours": 2, "outage": 0.1})
    simulate(quiet, load_estate(estate), paths["quiet"], seed=1)
    return paths


def scored(estate: Path, recordings: list[Path], capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["score", *map(str, recordings), "--estate", str(estate), *options]) == 0
    return capsys.readouterr().out


def test_the_table_has_a_column_for_every_method(
    estate: Path, recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = scored(estate, list(recordings.values()), capsys)
    head, *lines = printed.splitlines()
    assert head.strip().startswith("what people get: 4 stores, 1 fillings, ")
    assert any(line.strip().startswith("the forecast: 2 recordings, 1 fillings, ") for line in lines)
    assert all(method in printed for method in METHODS)
    [line] = [line for line in lines if line.startswith("outage.arrow: QSG1/APP1 ")]
    assert " filled in " in line
    assert " by ORDERS (" in line
    assert "first 2192 at 2026-11-20T0" in line
    assert "; lead: twin " in line


def test_json_has_the_same_and_the_true_fillings(
    estate: Path, recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    scorecard = json.loads(scored(estate, [recordings["outage"]], capsys, "--json"))
    [filling] = scorecard["fillings"]
    assert filling["onset"] < filling["first"] < filling["last"]
    assert filling["onset"].startswith("2026-11-20T00:3")  # the getter stops after half an hour
    assert filling["fillers"][0]["queue"] == "ORDERS"
    assert filling["refused"] > 0
    assert list(scorecard["methods"]) == list(METHODS) == list(filling["lead_s"])
    assert list(scorecard["pages"]) == list(PAGING_METHODS)
    twin = scorecard["pages"]["twin"]
    assert (twin["stores"], twin["fillings"], twin["unheard"]) == (2, 1, 0)
    assert twin["pages"] == twin["right"] + twin["false"] + twin["undecided"] > 0
    static = scorecard["methods"]["static 80 %"]
    assert (static["recall"], static["precision"], static["fillings"]) == (1.0, 1.0, 1)
    assert 60 < static["lead_p50"] == filling["lead_s"]["static 80 %"] < 3600


def test_without_a_2192_there_is_nothing_to_recall(
    estate: Path, recordings: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        scored(estate, [recordings["quiet"]], capsys).splitlines()[-1].startswith("no put was refused for want of room")
    )


def test_pictures_are_of_every_store_and_of_all(
    estate: Path, recordings: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "pictures"
    scored(estate, list(recordings.values()), capsys, "--pictures", str(folder))
    stores = [f"{name}-QSG1-{store}.svg" for name in ("outage", "quiet") for store in ("APP1", "APP2")]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*stores, "leads.svg", "calibration.svg"])
    story = (folder / "outage-QSG1-APP1.svg").read_text()
    assert "percent in use" in story
    assert all(f">{method}<" in story for method in METHODS)


def test_without_matplotlib_it_says_how_to_get_it(
    estate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "matplotlib":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["score", "r.arrow", "--estate", str(estate), "--pictures", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "mqtwin: --pictures needs matplotlib, which is not installed; expected: pip install 'mqtwin[pictures]'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "score: no recordings; expected: RECORDING... --estate FILE"),
        (["nowhere.arrow"], "nowhere.arrow is not a file"),
        (["r.csv"], "r.csv is no recording by its name"),
        (
            ["r.arrow", "--pictures", "/dev/null/x"],
            "--pictures /dev/null/x: Not a directory; expected: a folder that can be made",
        ),
    ],
    ids=["nothing", "missing", "suffix", "folder"],
)
def test_wrong_use_is_one_line_and_exit_status_2(
    estate: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *arguments, "--estate", str(estate)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
