"""Additions of other distributions: the page, errors, and the example, installed and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from deploy.cli import main
from tests.support.traffic import lines_of, traffic, write_estate, write_lines
from twin.base import hooks
from twin.base.errors import UsageError
from twin.base.hooks import GROUPS, WithAdded

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "mqtwin-csv"
START = """time,qmgr,structure,entries
2026-11-20T01:00:00Z,QM01,QSG1/APP1,1000
2026-11-20T01:10:00Z,QM01,QSG1/APP1,many
2026-11-20T01:20:00Z,QM01,QSG1/APP1,3000
"""


def test_each_hook_is_on_the_page_and_in_the_example():
    page = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    assert re.findall(r"^## `(mqtwin\.\w+)`", page, re.MULTILINE) == list(GROUPS)
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'[project.entry-points."{group}"]' in project for group in GROUPS)
    used = {path.name for path in (ROOT / "twin").rglob("*.py") if "WithAdded(" in path.read_text(encoding="utf-8")}
    assert used == {"hooks.py", "protocol.py", "scenario.py"}, "and deploy/options/common.py"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "new",
            "no.such:thing",
            "new = no.such:thing cannot be loaded (ModuleNotFoundError: No module named 'no'); exp",
        ),
        ("own", "os:sep", "own = os:sep: there is one of this name; expected: another name"),
        ("new", "os:sep", "new = os:sep is '/'; expected: a number"),
    ],
)
def test_a_wrong_entry_point_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str):
    points = [EntryPoint(name, value, "mqtwin.feeds")]
    monkeypatch.setattr(hooks, "entry_points", lambda **_: points)
    added = WithAdded("mqtwin.feeds", {"own": 1}, lambda own: "" if isinstance(own, int) else "a number")
    with pytest.raises(UsageError, match=re.escape(expected)):
        list(added)


def test_what_is_added_comes_behind_what_is_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hooks, "entry_points", lambda group: [EntryPoint("max", "sys:maxsize", group)])
    added = WithAdded("mqtwin.feeds", {"own": 1}, lambda _: "")
    assert dict(added) == {"own": 1, "max": sys.maxsize} and len(added) == 2


def test_a_sink_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    recording = write_lines(tmp_path / "t.ndjson", lines_of(traffic(10)))
    assert main(["replay", str(recording), "--estate", str(write_estate(tmp_path)), "--sink", "csv:x"]) == 2
    assert "--sink csv: no such sink; expected: one that a distribution adds" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.ci
def test_the_example_is_installed_and_runs(tmp_path: Path):
    place = tmp_path / "place"
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(place), str(EXAMPLE)], check=True)
    paths = os.pathsep.join((str(place), str(ROOT)))

    def mqtwin(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "deploy", *words]
        variables = {**os.environ, "PYTHONPATH": paths}
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    estate = write_estate(tmp_path)
    (tmp_path / "levels.csv").write_text(START, encoding="utf-8")
    done = mqtwin("import", "levels_csv", "levels.csv", "--estate", str(estate), "-o", "levels.ndjson")
    assert done.returncode == 0 and "line 3" in done.stderr, done.stderr
    assert (tmp_path / "levels.ndjson").read_text(encoding="utf-8").count("MEASURE") == 2
    done = mqtwin("simulate", "lunch-break", "--estate", str(estate), "-o", "lunch.arrow", "--set", "hours=0.1")
    assert done.returncode == 0, done.stderr
    recording = write_lines(tmp_path / "t.ndjson", lines_of(traffic(2000)))
    done = mqtwin("replay", str(recording), "--estate", str(estate), "--alerts", "a.ndjson", "--sink", "csv:alerts.csv")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "alerts.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len((tmp_path / "a.ndjson").read_text(encoding="utf-8").splitlines()) > 0
