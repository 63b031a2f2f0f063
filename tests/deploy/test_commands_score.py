"""`mqtwin score`: table, JSON, pictures, and one line an error."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.cli import main
from tests.streams.kafka_help import create, send
from tests.support.estates import small_estate
from twin.estate import load_estate
from twin.records import (
    ForecastScores,
    HorizonScore,
    IntervalScore,
    PageScore,
    ProbabilityBin,
    StateRecord,
)
from twin.scoring import METHODS, PAGING_METHODS
from twin.simulation import make_scenario, simulate
from twin.stores.open import open_store


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


# --- live ------------------------------------------------------------------------------------------------------------


def score_of(horizon_s: int, looks: int, full: int, brier: float) -> HorizonScore:
    bins = (
        ProbabilityBin(looks=looks - full, full=0, predicted=0.05),
        ProbabilityBin(looks=full, full=full, predicted=0.9),
    )
    share = full / looks
    return HorizonScore(
        horizon_s=horizon_s, looks=looks, full=full, brier=brier, climatology=share * (1 - share), bins=bins
    )


def scores_of(factor: int) -> ForecastScores:
    return ForecastScores(
        days=10 * factor,
        horizons=(score_of(900, 40 * factor, 10 * factor, 0.075), score_of(3600, 40 * factor, 20 * factor, 0.1)),
        intervals=IntervalScore(count=8 * factor, inside=6 * factor, coverage=0.75, width=1.0),
        pages=PageScore(right=3 * factor, late=factor, false=0),
    )


@pytest.fixture(scope="module")
def states(estate: Path) -> list[StateRecord]:
    """Two stores with scores, of which the second was settled twice as often."""
    records = [open_store(load_estate(estate), name).state() for name in ("QSG1/APP1", "QSG1/APP2")]
    return [msgspec.structs.replace(own, forecast_scores=scores_of(1 + i)) for i, own in enumerate(records)]


@pytest.fixture
def state_file(states: list[StateRecord], tmp_path: Path) -> Path:
    path = tmp_path / "states.ndjson"
    older = msgspec.structs.replace(states[0], forecast_scores=None)
    path.write_bytes(b"\n".join(map(msgspec.json.encode, (older, *reversed(states)))))
    return path


TABLE = """\
store	days	looks	15 min: Brier (skill)	60 min: Brier (skill)	in p10..p90	right pages	late	false
QSG1/APP1	10	40	0.075 (0.60)	0.100 (0.60)	75 % of 8	3	1	0
QSG1/APP2	20	80	0.075 (0.60)	0.100 (0.60)	75 % of 16	6	2	0
all	20	120	0.075 (0.60)	0.100 (0.60)	75 % of 24	9	3	0

probability	full within 15 min	full within 60 min
0 to 20 %	0 % of 90	0 % of 60
20 to 40 %	-	-
40 to 60 %	-	-
60 to 80 %	-	-
80 to 100 %	100 % of 30	100 % of 60
"""


def test_live_scores_are_tables_of_every_store_and_all(state_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--live", "--state", str(state_file)]) == 0
    assert capsys.readouterr().out == TABLE


def test_live_scores_are_read_from_the_state_topic(
    states: list[StateRecord], kafka: str, topic_prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create(kafka, f"{topic_prefix}.state")
    for state in states:
        send(kafka, f"{topic_prefix}.state", [msgspec.json.encode(state)], key=state.store.encode())
    assert main(["score", "--live", "--bootstrap-servers", kafka, "--topic-prefix", topic_prefix]) == 0
    assert capsys.readouterr().out == TABLE


def test_live_scores_as_json_are_those_of_the_records(
    states: list[StateRecord], state_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "--live", "--state", str(state_file), "--json"]) == 0
    printed = msgspec.json.decode(capsys.readouterr().out, type=dict[str, ForecastScores])
    assert printed == {state.store: state.forecast_scores for state in states}


def test_where_nothing_is_settled_it_says_so(
    states: list[StateRecord], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "states.ndjson"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(states[0], forecast_scores=None)))
    assert main(["score", "--live", "--state", str(path)]) == 0
    assert capsys.readouterr().out == "no forecast and no page of any store is settled yet\n"


@pytest.mark.parametrize("no_color", [False, True])
def test_live_scores_are_styled_on_a_terminal_only(
    no_color: bool, state_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    assert main(["score", "--live", "--state", str(state_file)]) == 0
    out = capsys.readouterr().out
    assert "\t" not in out and "0.075 (0.60)" in out
    assert "\x1b[3" not in out  # no colour in any case


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (b"{}", ["--state", "FILE"], "FILE, line 1: Object missing required field `kind`; expected: a state record"),
        (None, ["--state", "FILE"], "--state FILE: No such file or directory; expected: a file of state records"),
        (b"", [], "score --live: --bootstrap-servers or --state; expected: one of them"),
        (b"", ["--state", "FILE", "--bootstrap-servers", "a:1"], "expected: one of them"),
    ],
)
def test_wrong_use_of_live_is_one_line_and_exit_status_2(
    content: bytes | None,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("FILE").write_bytes(content)
    assert main(["score", "--live", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "score: no recordings or no estate; expected: RECORDING... --estate FILE, or --live"),
        (["--live"], "score --live reads state records; expected: no RECORDING, --estate or --pictures"),
        (["r.arrow", "--state", "f"], "score: --state and --bootstrap-servers are read with --live only"),
        (["nowhere.arrow"], "nowhere.arrow is not a file"),
        (["r.csv"], "r.csv is no recording by its name"),
        (
            ["r.arrow", "--pictures", "/dev/null/x"],
            "--pictures /dev/null/x: Not a directory; expected: a folder that can be made",
        ),
    ],
    ids=["nothing", "live", "state", "missing", "suffix", "folder"],
)
def test_wrong_use_is_one_line_and_exit_status_2(
    estate: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *arguments, "--estate", str(estate)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
