"""`mqtwin size`: tables, JSON, sizes from an estate, wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import main
from deploy.show.sizes import pasteable
from tests.support.traffic import write_estate
from twin.estate import load_estate

MILLION = "1000000"


@pytest.fixture
def plan_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `mqtwin size --json`; return the object and the warnings."""

    def run(*words: str) -> tuple[dict[str, Any], list[str]]:
        assert main(["size", *words, "--json"]) == 0
        printed = capsys.readouterr()
        return json.loads(printed.out), printed.err.splitlines()

    return run


@pytest.fixture
def estate(tmp_path: Path) -> list[str]:
    return ["--estate", str(write_estate(tmp_path)), "--store"]


def test_on_a_terminal_it_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["size", "structure", "--messages", "2048"]) == 0
    out = capsys.readouterr().out
    assert "\t" not in out and "in the structure" in out


def test_on_a_terminal_the_commands_of_a_threshold_are_there_to_be_pasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["size", "threshold", "--backlog", MILLION, "--size", "10G"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "",
        "ALTER CFSTRUCT(NAME) OFFLD1TH(59) OFFLD1SZ(32K) OFFLD2TH(69) +",
        "    OFFLD2SZ(4K) OFFLD3TH(79) OFFLD3SZ(0K)",
    ]


def test_setxcf_is_a_line_of_its_own() -> None:
    text = "ALTER CFSTRUCT(APP1) OFFLD3TH(0) OFFLD3SZ(0K), then SETXCF START,REBUILD,STRNAME=QSG1APP1"
    assert pasteable(text).splitlines() == [
        "ALTER CFSTRUCT(APP1) OFFLD3TH(0) OFFLD3SZ(0K)",
        "SETXCF START,REBUILD,STRNAME=QSG1APP1",
    ]


def test_warnings_of_the_estate_are_one_line_before_a_plan(plan_json: Any, estate: list[str]) -> None:
    file = Path(estate[1])
    unwise = file.read_text(encoding="utf-8").replace('size = "1M"', 'size = "1M"\nallow_auto_alter = true', 1)
    file.write_text(unwise, encoding="utf-8")
    count = len(load_estate(file).warnings)
    assert count > 1
    _, warnings = plan_json("structure", "--messages", "1K:10", *estate, "QSG1/APP2")
    assert warnings == [f"mqtwin: warning: {file}: {count} warnings, see mqtwin estate check {file}"]


def test_scm_of_a_store_counts_what_the_other_structures_may_use(plan_json: Any, shared: Path) -> None:
    path = str(shared / "fixtures" / "estates" / "estate.toml")
    words = ["scm", "--messages", "2048:9000000", "--estate", path, "--store", "QSG1/APP2"]
    plans, warnings = plan_json(*words)
    assert plans["plans"][0]["cfrm"].startswith("STRUCTURE NAME(QSG1APP2) SIZE(2G) INITSIZE(1G) ")
    assert any("over-committed" in warning and "there are 16G" in warning for warning in warnings)


WITH_INIT_SIZE = """
schema = 1
[queue_sharing_group.QSG1]
queue_managers = ["QM01"]
[structure."QSG1/APP1"]
size = "8G"
init_size = "4G"
[smds."QSG1/APP1/QM01"]
size = "10G"
[queue."QSG1/ORDERS"]
structure = "APP1"
"""


def test_no_digit_is_cut_on_a_terminal_of_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "estate.toml"
    file.write_text(WITH_INIT_SIZE, encoding="utf-8")
    for source in (["--size", "8G"], ["--estate", str(file), "--store", "QSG1/APP1"]):
        assert main(["size", "structure", "--messages", "3K:5M", *source]) == 0
        out = capsys.readouterr().out
        assert "7,116,764" in out and "11,184,810" in out
        assert max(map(len, out.splitlines())) <= 80
