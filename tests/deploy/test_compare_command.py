"""`mqtwin compare`: two estates on recorded nights, as Markdown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from tests.support.traffic import ESTATE, START_US, write_recording
from twin import compare, replay
from twin.estate import load_estate

LARGE = ESTATE.replace('size = "1M"', 'size = "256M"').replace('"512K"', '"256M"').replace('"16M"', '"1G"')
PUT = {"qmgr": "QM01", "op": "PUT", "queue": "ORDERS", "length": 2048}
FACTS = ["alerts opened", "first page", "puts refused", "first put refused", "lowest head room"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small estate, a large one, and a night in which the small one is full."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "old.toml").write_text(ESTATE, encoding="utf-8")
    (folder / "new.toml").write_text(LARGE, encoding="utf-8")
    night = [{**PUT, "time": START_US + n * 1_000_000, "count": 1000, "reason": 2192 * (n > 3)} for n in range(9)]
    write_recording(folder / "night.arrow", night)
    return folder


def run(site: Path, old: str, new: str, *words: str, status: int = 0) -> int:
    command = ["compare", str(site / old), str(site / new), "--recording", str(site / "night.arrow"), *words]
    assert main(command) == status
    return status


def test_what_would_have_changed_is_a_row_and_what_is_better_is_marked(site: Path, capsys: pytest.CaptureFixture[str]):
    run(site, "old.toml", "new.toml")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == ["### night.arrow", "", "| store | | old.toml | new.toml |", "| --- | --- | ---: | ---: |"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[4:9]]
    assert [row[0] for row in cells] == ["QSG1/APP1", "", "", "", ""] and [row[1] for row in cells] == FACTS
    by_fact = {row[1]: row[2:] for row in cells}
    assert by_fact["alerts opened"][1] == by_fact["puts refused"][1] == "**0**"
    assert by_fact["first page"][1] == by_fact["first put refused"][1] == "**none**"
    assert by_fact["first page"][0] == by_fact["first put refused"][0] == "2026-11-20 12:00 UTC"
    assert by_fact["lowest head room"][0].startswith("0.0 % of ") and "%" in by_fact["lowest head room"][1]
    asked = replay(site / "night.arrow", site / "old.toml", demands=True)
    assert by_fact["puts refused"][0] == f"{asked.refusals['QSG1/APP1'].replayed.full:,}" != "0"


def test_the_same_estate_changes_nothing(site: Path, capsys: pytest.CaptureFixture[str]):
    run(site, "old.toml", "old.toml")
    assert capsys.readouterr().out == "### night.arrow\n\nThe same under both: QSG1/APP1.\n"


def test_json_and_python_have_the_same(site: Path, capsys: pytest.CaptureFixture[str]):
    run(site, "old.toml", "new.toml", "--json")
    [printed] = json.loads(capsys.readouterr().out)
    [night] = compare(load_estate(site / "old.toml"), site / "new.toml", [site / "night.arrow"])
    before, after = night.changed["QSG1/APP1"]
    assert before is not None and after is not None
    assert (before.refused > 0, after.refused) == (True, 0)
    assert [side["refused"] for side in printed["stores"]["QSG1/APP1"]] == [before.refused, 0]
    assert printed["dead_letters"] == list(night.dead_letters) == [0, 0]


def test_a_store_that_one_estate_lacks_is_named(site: Path, capsys: pytest.CaptureFixture[str]):
    text = re.sub(r"\bORDERS\b", "INVOICES", LARGE)
    (site / "renamed.toml").write_text(text, encoding="utf-8")
    run(site, "old.toml", "renamed.toml")
    printed = capsys.readouterr().out
    assert "| **not of this estate** |" in printed
    assert "Refused: 0 events by old.toml, 9 events by renamed.toml." in printed


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"old": "renamed.toml", "new": "renamed.toml"},
            "night.arrow has no event that either estate takes; expected: ",
        ),
        ({"new": "none.toml"}, "none.toml"),
    ],
)
def test_wrong_input_has_status_2(
    site: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], expected: str
):
    (site / "renamed.toml").write_text(re.sub(r"\bORDERS\b", "INVOICES", ESTATE), encoding="utf-8")
    run(site, **{"old": "old.toml", "new": "new.toml"} | change, status=2)
    assert expected in capsys.readouterr().err
