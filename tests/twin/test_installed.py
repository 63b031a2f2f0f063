"""`twin.base.installed`: a package of another distribution on Python's path is named on one line, with the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from twin.base.installed import MARK, PACKAGES, wrong_package

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import mqtwin; raise SystemExit(mqtwin.main())"
REMEDY = "expected: mqtwin in an environment of its own: pipx, uv tool install, or python3 -m venv"
NEVER_RUN = "raise AssertionError('it was imported')\n"


def python(folder: Path, *paths: Path, code: str | None = None, module: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with paths in front of those of the project."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*paths, ROOT)))}
    how = ["-m", module] if code is None else ["-c", code]
    command = [sys.executable, *how, *(["--version"] if code in {None, COMMAND} else [])]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def foreign(folder: Path, name: str) -> Path:
    """Write a package of another distribution, with its name in the metadata beside it."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(NEVER_RUN, encoding="utf-8")
    metadata = folder / f"other_{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: other-{name}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "RECORD").write_text(f"{name}/__init__.py,,\n", encoding="utf-8")
    return folder


def test_the_packages_are_those_of_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert [*PACKAGES, "mqtwin"] == project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert project["project"]["scripts"]["mqtwin"] == "mqtwin:main"
    assert all(MARK in (ROOT / name / "__init__.py").read_text(encoding="utf-8") for name in PACKAGES)
    assert wrong_package() is None


def test_the_command_runs_where_all_packages_are_ours(tmp_path: Path) -> None:
    done = python(tmp_path, code=COMMAND)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", PACKAGES)
def test_the_command_names_a_foreign_package_that_is_found_first(tmp_path: Path, name: str) -> None:
    other = foreign(tmp_path / "other", name)
    done = python(tmp_path, other, code=COMMAND)
    expected = f"mqtwin: the package {name} in {other / name} is not of mqtwin but of other-{name}; {REMEDY}\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_import_twin_names_a_foreign_package_without_importing_it(tmp_path: Path) -> None:
    done = python(tmp_path, foreign(tmp_path / "other", "kernels"), code="import twin")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the package kernels in ")
    assert last.endswith(REMEDY)
    assert "imported" not in done.stderr


@pytest.mark.parametrize("name", ["kernels", "twin"])
def test_import_mqtwin_says_so_at_the_first_name(tmp_path: Path, name: str) -> None:
    done = python(tmp_path, foreign(tmp_path / "other", name), code="import mqtwin; mqtwin.replay")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: the package {name} in ")
    assert "imported" not in done.stderr


def test_the_module_deploy_says_it_on_one_line_too(tmp_path: Path) -> None:
    done = python(tmp_path, foreign(tmp_path / "other", "kernels"), module="deploy")
    assert done.returncode == 2
    assert done.stderr.startswith("mqtwin: the package kernels in ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("content", [NEVER_RUN, None], ids=["overwritten", "removed"])
def test_a_package_that_a_later_installation_overwrote_is_named(tmp_path: Path, content: str | None) -> None:
    """pip writes files of a second distribution over ours, and removes them with it: the others stay."""
    site = tmp_path / "site"
    for name in ("kernels", "twin", "mqtwin"):
        shutil.copytree(ROOT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    beginning = site / "kernels" / "__init__.py"
    if content is None:
        beginning.unlink()
    else:
        beginning.write_text(content, encoding="utf-8")
    only = {**os.environ, "PYTHONPATH": str(site)}
    run = [sys.executable, "-S", "-c", COMMAND, "--version"]  # without the packages of this environment
    done = subprocess.run(run, cwd=tmp_path, env=only, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"mqtwin: the package kernels in {site / 'kernels'} is not of mqtwin")
    assert done.stderr.count("\n") == 1


def test_a_module_from_no_file_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kernels", type(sys)("kernels"))
    assert wrong_package() == f"the package kernels is not of mqtwin; {REMEDY}"
