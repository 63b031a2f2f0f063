"""The promises and habits of a release: one version, a changelog by release, workflows, and the check of all of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

import twin
from tests.tools.release import __main__ as release
from tests.tools.release import matrix
from tests.tools.release.__main__ import Check, Outcome, checks, main, run_all, show

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
# Where a version may stand that is not that of pyproject.toml: what was written by it, or when.
OF_THE_PAST = {"CHANGELOG.md", "docs/operations.md", "docs/performance.md", "docs/versioning.md"}


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(
        (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    )
    return loaded


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


# --- the version -----------------------------------------------------------------------------------------------------


def test_one_edit_of_pyproject_raises_the_version():
    """No other file that is shipped or read says it, so none is forgotten."""
    assert twin.__version__ == PROJECT["version"], "make test installs it"
    told_again = [
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "*.cff", "docs/*.md", "docker-compose.yml", "deploy/**/*", "twin/**/*", "streams/**/*")
        for path in ROOT.glob(pattern)
        if path.is_file() and path.suffix in {".md", ".cff", ".py", ".yml", ".yaml", ".toml", ".service", ""}
        if re.search(rf"(?<![\d.=:]){re.escape(PROJECT['version'])}(?![\d.])", path.read_text(encoding="utf-8"))
    ]
    assert set(told_again) <= OF_THE_PAST


def test_the_newest_release_of_the_changelog_is_this_version():
    assert release.version_problem() == ""


# --- texts -----------------------------------------------------------------------------------------------------------


def test_the_changelog_has_releases_with_dates_newest_first_under_four_headings():
    releases = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    dated = [title for title in releases if title != "Unreleased"]
    assert releases in (dated, ["Unreleased", *dated])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", title) for title in dated)
    versions = [tuple(map(int, title.partition(" ")[0].split("."))) for title in dated]
    assert versions == sorted(versions, reverse=True)
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)) <= {"Added", "Changed", "Fixed", "Removed"}


def test_the_unreleased_changes_are_at_most_600_words():
    unreleased = re.search(r"^## Unreleased$(.*?)(?=^## )", CHANGELOG, re.MULTILINE | re.DOTALL)
    assert unreleased is None or len(unreleased[1].split()) <= 600


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.github-workflows", [".github/workflows/ci.yml", ".github/workflows/release.yml"]),
        ("vendor.github-issue-forms", [".github/ISSUE_TEMPLATE/defect.yml"]),
        ("vendor.citation-file-format", ["CITATION.cff"]),
    ],
)
def test_files_for_the_host_of_the_repository_keep_their_schemas(schema, paths):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# --- workflows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ci", "release"])
def test_actions_are_pinned_by_a_whole_version(name):
    used = [step["uses"] for step in steps(name) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w./-]+@v\d+\.\d+\.\d+", action) for action in used)


def test_a_workflow_may_do_no_more_than_it_needs():
    assert workflow("ci")["permissions"] == {"contents": "read"}
    assert workflow("release")["permissions"] == {}
    jobs = workflow("release")["jobs"]
    assert jobs["build"]["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert not [step for step in jobs["publish"]["steps"] if "run" in step], "it runs no code of the repository"


def test_no_workflow_knows_a_secret_or_keeps_the_token_in_its_checkout():
    for name in ("ci", "release"):
        assert "secrets." not in (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        for step in steps(name):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_hosted_ci_runs_what_a_change_must_pass_on_each_supported_python():
    assert [step["run"] for step in steps("ci") if "run" in step] == [".ci/run"]
    assert workflow("ci")["jobs"]["run"]["strategy"]["matrix"]["python"] == matrix.supported()


# --- the matrix ------------------------------------------------------------------------------------------------------


def test_the_matrix_has_the_pythons_that_pip_would_install_on():
    assert matrix.supported() == ["3.11", "3.12", "3.13"]
    assert matrix.find_python(".".join(map(str, sys.version_info[:2]))) is not None
    assert matrix.find_python("3.99") is None


def test_what_the_matrix_fetches_and_builds_does_not_stay(monkeypatch, tmp_path):
    """A run left 8 GB in the user's cache of uv, the next one as much again."""
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(matrix, "find_python", lambda _: Path(sys.executable))
    caches, results = set(), iter([0, 1])

    def work(command, env, **_):
        caches.add(env["UV_CACHE_DIR"])
        (tmp_path / "cache").mkdir(exist_ok=True)
        if "venv" in command:
            Path(command[-1]).mkdir()
        if "compile" in command:
            Path(command[command.index("--output-file") + 1]).write_text("", encoding="utf-8")
        return subprocess.CompletedProcess(command, next(results) if "pytest" in command else 0, "1 passed")

    monkeypatch.setattr(matrix.subprocess, "run", work)
    monkeypatch.setattr(matrix, "ROOT", tmp_path)
    (tmp_path / "constraints.txt").write_text("", encoding="utf-8")
    monkeypatch.setattr(matrix, "supported", lambda: ["3.11", "3.12"])
    monkeypatch.setattr(sys, "argv", ["matrix", "--pins", "lowest"])
    assert matrix.main() == 1
    assert caches == {str(tmp_path / "cache")}
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["3.12-lowest"], "that of the failure"


@pytest.mark.parametrize(("pins", "alone"), [("highest", False), (matrix.BASE, True)])
def test_a_cell_of_the_base_has_no_extra_and_runs_the_tests_that_do_without(monkeypatch, tmp_path, pins, alone):
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    commands = []

    def work(command, **_):
        commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir()
        if "compile" in command:
            Path(command[command.index("--output-file") + 1]).write_text("", encoding="utf-8")
        return subprocess.CompletedProcess(command, 0, "1 passed")

    monkeypatch.setattr(matrix.subprocess, "run", work)
    assert matrix.run_cell("3.11", Path(sys.executable), pins).result == "passed"
    assert {"--all-extras" in command for command in commands if "compile" in command} == {not alone}
    assert ("tests.support.base" in commands[-1], commands[-1][-1] == "tests") == (alone, alone)


def test_the_tests_of_the_matrix_are_there():
    assert not [path for path in matrix.TESTS if not (ROOT / path).exists()]


def test_tools_of_tests_stay_at_their_pins_beside_other_versions_of_the_rest():
    constraints = "# all\nnumpy==2.4.6\nprometheus_client==0.26.0\npytest==9.2.0\n"
    assert matrix.others("numpy==2.1.0\nprometheus-client==0.23.1\n", constraints) == "pytest==9.2.0\n"


def test_a_python_that_is_not_here_is_skipped_and_one_that_fails_is_named(monkeypatch, capsys):
    cells = {"3.11": matrix.Cell("3.11", "lowest", "passed", "9 passed", 61.0)}
    cells["3.12"] = matrix.Cell("3.12", "lowest", "failed", "tests: 1 failed", 5.0)
    monkeypatch.setattr(matrix, "find_python", lambda minor: Path(sys.executable) if minor in cells else None)
    monkeypatch.setattr(matrix, "run_cell", lambda minor, *_: cells[minor])
    monkeypatch.setattr(sys, "argv", ["matrix", "--pins", "lowest"])
    assert matrix.main() == 1
    printed = capsys.readouterr().out
    assert "not on this machine" in printed
    assert "tests: 1 failed" in printed
    del cells["3.12"]
    assert matrix.main() == 0
    del cells["3.11"]
    assert matrix.main() == 1, "nothing was held"


# --- the check of a release ------------------------------------------------------------------------------------------


def test_one_that_fails_does_not_stop_the_others_and_one_that_cannot_run_says_why(tmp_path):
    selected = [
        Check("first", [[sys.executable, "-c", "print('begun'); raise SystemExit(3)"], ["never"]]),
        Check("second", absent=lambda: "no engine"),
        Check("third", [[sys.executable, "-c", "pass"]], holds=lambda: "the result is wrong"),
        Check("fourth", [[sys.executable, "-c", "pass"]]),
    ]
    outcomes = run_all(selected, tmp_path, Console(quiet=True))
    assert [outcome.result for outcome in outcomes] == ["failed", "skipped", "failed", "passed"]
    assert "status 3" in outcomes[0].why
    assert [outcome.why for outcome in outcomes[1:]] == ["no engine", "the result is wrong", ""]
    assert (tmp_path / "first.log").read_text(encoding="utf-8") == "begun\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_interrupted_ends_what_it_started_and_says_what_did_not_run(number, tmp_path):
    endless = (
        "import os, time; open('started', 'w').write(str(os.getpid())); os.rename('started', 'child'); time.sleep(60)"
    )
    program = f"""if True:
        import signal, sys
        from pathlib import Path
        from tests.tools.release import __main__ as release
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
        release.FOLDER = Path({str(tmp_path)!r})
        child = [sys.executable, "-c", "import os; os.chdir({str(tmp_path)!r}); {endless}"]
        release.checks = lambda _: [release.Check("first"), release.Check("second", [child]), release.Check("third")]
        sys.exit(release.main([]))"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        deadline = time.monotonic() + 60
        while not (tmp_path / "child").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(number)
        printed, _ = run.communicate(timeout=60)
    assert run.returncode == 1
    assert [line.split()[1:4] for line in printed.splitlines() if line.startswith("│")] == [
        ["first", "│", "passed"],
        ["second", "│", "failed"],
        ["third", "│", "skipped"],
    ]
    assert "interrupted before" in printed
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "child").read_text(encoding="utf-8")), 0)


def test_targets_do_not_get_the_arguments_of_release_check(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGS", "--only lint")
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--only\\ lint")
    ask = [sys.executable, "-c", "import os; raise SystemExit('ARGS' in os.environ or 'MAKEFLAGS' in os.environ)"]
    (outcome,) = run_all([Check("environment", [ask])], tmp_path, Console(quiet=True))
    assert outcome.result == "passed"


def test_the_table_has_colours_unless_they_are_refused(monkeypatch, capsys):
    outcomes = [Outcome("lint", "passed", 75.0, ""), Outcome("fire", "failed", 3.0, "[1] status 1")]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show(outcomes, Console())
    assert "\x1b[32mpassed" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    show(outcomes, Console())
    printed = capsys.readouterr().out
    assert "\x1b[32m" not in printed
    assert "1 min" in printed
    assert "[1] status 1" in printed


def test_a_selection_names_checks(capsys, monkeypatch):
    ran: list[str] = []
    monkeypatch.setattr(release, "run_all", lambda selected, *_: ran.extend(check.name for check in selected) or [])
    assert main(["--only", "lint,docs,fire", "--skip", "fire"]) == 0
    assert ran == ["lint", "docs"]
    with pytest.raises(SystemExit):
        main(["--only", "lints"])
    assert "'lints' is not a check; expected: version, lint," in capsys.readouterr().err


def test_the_targets_that_are_run_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {command[1] for check in checks(60.0) for command in check.commands if command[0] == "make"}
    absent = {target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)}
    assert absent <= {"wheel"}, "skipped with its reason where it is not there"


@pytest.mark.parametrize(
    ("bill", "problem"),
    [
        (None, "no bill of materials"),
        ({"bomFormat": "SPDX"}, "not a CycloneDX bill"),
        ({"bomFormat": "CycloneDX", "metadata": {"component": {"version": "9.9.9"}}, "components": [{}]}, "not a Cyc"),
        ({"bomFormat": "CycloneDX", "components": [{}]}, ""),
    ],
)
def test_a_wheel_needs_a_bill_of_its_version(bill, problem, tmp_path, monkeypatch):
    version = "7.8.9"
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n', encoding="utf-8")
    (tmp_path / "dist").mkdir()
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert "0 wheels" in release.bill_problem()
    with zipfile.ZipFile(tmp_path / "dist" / f"mqtwin-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("twin/__init__.py", "")
        if bill is not None:
            own = {"metadata": {"component": {"version": version}}}
            wheel.writestr(f"mqtwin-{version}.dist-info/sboms/mqtwin.cdx.json", json.dumps({**own, **bill}))
    seen = release.bill_problem()
    assert (problem in seen) if problem else seen == ""


@pytest.mark.parametrize(
    ("wheel", "sources", "problem"),
    [
        ("# One\n", "# One\n", ""),
        ("# One\n", "# Two\n", "differ"),
        ("", "", "no description"),
        ("<!-- -->", "<!-- -->", "does not render"),
        (None, None, "name"),
    ],
)
def test_a_release_needs_metadata_that_an_index_takes_and_shows(wheel, sources, problem, tmp_path, monkeypatch):
    def metadata(text):
        name = "mqtwin" if text is not None else "not a name"
        kind = "Description-Content-Type: text/markdown\n" if text else ""
        return f"Metadata-Version: 2.4\nName: {name}\nVersion: 7.8.9\n{kind}\n{text or ''}"

    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "7.8.9"\n', encoding="utf-8")
    (tmp_path / "dist").mkdir()
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with zipfile.ZipFile(tmp_path / "dist" / "mqtwin-7.8.9-py3-none-any.whl", "w") as archive:
        archive.writestr("mqtwin-7.8.9.dist-info/METADATA", metadata(wheel))
    assert "0 source archives" in release.metadata_problem()
    (tmp_path / "PKG-INFO").write_text(metadata(sources), encoding="utf-8")
    with tarfile.open(tmp_path / "dist" / "mqtwin-7.8.9.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "PKG-INFO", "mqtwin-7.8.9/PKG-INFO")
    seen = release.metadata_problem()
    assert (problem in seen) if problem else seen == ""
