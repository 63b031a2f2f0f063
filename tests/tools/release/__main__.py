"""`make release-check`: everything that a release must pass, in one table.

Each check writes its output to `build/release/NAME.log`. One that cannot run here is skipped with its reason; one that
fails does not stop the others. The status is 1 if one failed or was interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from packaging.metadata import Metadata
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "release"
SHARED = ROOT.parent / "shared" / "tools" / "outside_files.py"
_OF_MAKE = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"}
_COLOURS = {"passed": "green", "failed": "red", "skipped": "yellow"}


def _nothing() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a release.

    Args:
        name: its name in `--only`, and that of its log.
        commands: run one after another, in the root, until one fails.
        holds: called after them; what is wrong, or nothing.
        absent: why it cannot run here, or nothing.
    """

    name: str
    commands: Sequence[Sequence[str]] = ()
    holds: Callable[[], str] = field(default=_nothing)
    absent: Callable[[], str] = field(default=_nothing)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the table.

    Args:
        name: that of the check.
        result: `passed`, `failed` or `skipped`.
        seconds: duration.
        why: what failed, or why it was skipped.
    """

    name: str
    result: str
    seconds: float
    why: str


def checks(fire_minutes: float) -> list[Check]:
    """Return all checks, quick ones first.

    Args:
        fire_minutes: after which `make fire` begins no other seed.
    """
    python = sys.executable
    hadolint = Path(python).with_name("hadolint")
    return [
        Check("version", holds=version_problem),
        Check("lint", [["make", "lint"]]),
        Check("image", [[str(hadolint), "deploy/images/Dockerfile"]], absent=lambda: _missing_program(hadolint)),
        Check("docs", [["make", "docs"]]),
        Check("sbom", [["make", "wheel"]], holds=bill_problem, absent=_missing_wheel_target),
        Check("metadata", [["make", "wheel"]], holds=metadata_problem, absent=_missing_wheel_target),
        Check(
            "reproducible",
            [[python, "-m", "tests.tools.release.reproducible"]],
            absent=lambda: _missing_module("tests.tools.release.reproducible"),
        ),
        Check("fixtures", [[python, str(SHARED)]], absent=_missing_fixtures),
        Check("tests", [["make", "test"], ["make", "test-nightly"]]),
        Check("matrix", [["make", "matrix"]]),
        Check("fire", [["make", "fire", f"ARGS=--minutes {fire_minutes:g}"]]),
    ]


def version_problem() -> str:
    """Return how the places that say a version differ; nothing if they agree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    installed = importlib.metadata.version("mqtwin")
    if installed != project:
        return f"{installed} is installed, pyproject.toml has {project}; expected: make setup"
    release = re.search(r"^## (\d+\.\d+\.\d+) ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if release is None or release[1] != project:
        return f"CHANGELOG.md has no heading `## {project} (date)` before those of other releases"
    tags = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    wrong = [tag for tag in tags.stdout.split() if tag.startswith("v") and tag != f"v{project}"]
    return f"the commit has the tag {wrong[0]}; expected: v{project}" if wrong else ""


def bill_problem() -> str:
    """Return what is wrong with the bill of materials in the wheel of this version in `dist/`, or nothing."""
    version, built = _built("wheel", "mqtwin-{}-*.whl")
    if isinstance(built, str):
        return built
    with zipfile.ZipFile(built) as wheel:
        bills = [name for name in wheel.namelist() if re.search(r"\.dist-info/sboms/[^/]+\.json$", name)]
        if not bills:
            return f"{built.name} has no bill of materials in its .dist-info/sboms"
        bill = json.loads(wheel.read(bills[0]))
    own = bill.get("metadata", {}).get("component", {})
    if bill.get("bomFormat") != "CycloneDX" or own.get("version") != version or not bill.get("components"):
        return f"{bills[0]} is not a CycloneDX bill of mqtwin {version} with its components"
    return ""


def metadata_problem() -> str:
    """Return why a package index would not take or show the archives of this version in `dist/`, or nothing."""
    from readme_renderer import markdown

    version, wheel = _built("wheel", "mqtwin-{}-*.whl")
    _, sources = _built("source archive", "mqtwin-{}.tar.gz")
    if isinstance(wheel, str):
        return wheel
    if isinstance(sources, str):
        return sources
    with zipfile.ZipFile(wheel) as files:
        text = files.read(f"mqtwin-{version}.dist-info/METADATA")
    with tarfile.open(sources) as archive:
        member = archive.extractfile(f"mqtwin-{version}/PKG-INFO")
        if member is None or member.read() != text:
            return f"the metadata of {wheel.name} and {sources.name} differ"
    try:
        metadata = Metadata.from_email(text)
    except ExceptionGroup as group:
        return "; ".join(str(error) for error in group.exceptions)
    if not metadata.description or metadata.description_content_type != "text/markdown":
        return f"{wheel.name} has no description in Markdown"
    page = markdown.render(metadata.description) or ""
    return "" if page.strip() else f"the description of {wheel.name} does not render"


def _built(what: str, pattern: str) -> tuple[str, Path | str]:
    """Return the version of pyproject.toml, and its archive in `dist/` or why there is none."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    files = list((ROOT / "dist").glob(pattern.format(version)))
    return version, files[0] if len(files) == 1 else f"dist/ has {len(files)} {what}s of {version}; expected: one"


def _missing_program(path: Path) -> str:
    return "" if path.exists() else f"no {path.name} in the environment; expected: make setup"


def _missing_module(name: str) -> str:
    return "" if importlib.util.find_spec(name) else f"there is no {name}"


def _missing_wheel_target() -> str:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return "" if re.search(r"^wheel:", makefile, re.MULTILINE) else "there is no `make wheel`"


def _missing_fixtures() -> str:
    return "" if SHARED.exists() else "no ../shared beside this checkout"


def run(check: Check, folder: Path, beat: Callable[[float], None]) -> Outcome:
    """Run a check and return its outcome.

    Args:
        check: the check.
        folder: folder of its log.
        beat: called each second while a command runs, with the seconds since the check began.

    Raises:
        KeyboardInterrupt: the command that ran has been ended with all its children.
    """
    absent = check.absent()
    if absent:
        return Outcome(check.name, "skipped", 0.0, absent)
    began = time.monotonic()
    log = folder / f"{check.name}.log"
    with log.open("wb") as stream:
        for command in check.commands:
            status = _status(command, stream, lambda: beat(time.monotonic() - began))
            if status:
                line = " ".join(Path(word).name if word == sys.executable else word for word in command)
                return Outcome(check.name, "failed", time.monotonic() - began, f"{line}: status {status}, see {log}")
    why = check.holds()
    return Outcome(check.name, "failed" if why else "passed", time.monotonic() - began, why)


def _status(command: Sequence[str], stream: BinaryIO, beat: Callable[[], None]) -> int:
    # Without what `make release-check ARGS=...` hands on, which is not for the targets that are run here.
    variables = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=stream,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as child:
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return child.wait(1.0)
                beat()
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)  # the group: make, and what it started
                child.wait()  # after Ctrl-C `with` does not


def run_all(selected: Sequence[Check], folder: Path, terminal: Console) -> list[Outcome]:
    """Run the checks one after another, with progress; those behind an interrupt are skipped."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("", total=len(selected))
        for place, check in enumerate(selected):
            progress.update(task, description=check.name)
            terminal.print(f"{check.name} ...")
            try:
                outcomes.append(run(check, folder, _beat(check.name, terminal)))
            except KeyboardInterrupt:
                outcomes.append(Outcome(check.name, "failed", 0.0, "interrupted"))
                outcomes += [Outcome(rest.name, "skipped", 0.0, "interrupted before") for rest in selected[place + 1 :]]
                break
            terminal.print(f"{check.name}: {outcomes[-1].result}")
            progress.advance(task)
    return outcomes


def _beat(name: str, terminal: Console) -> Callable[[float], None]:
    """Return what says each minute that a check still runs; a terminal shows it by itself."""
    minutes = 0

    def beat(seconds: float) -> None:
        nonlocal minutes
        if not terminal.is_terminal and seconds >= 60 * (minutes + 1):
            minutes = int(seconds // 60)
            terminal.print(f"{name}: {minutes} min")

    return beat


def show(outcomes: Sequence[Outcome], terminal: Console) -> None:
    """Print the table. Colours are left out where the environment has NO_COLOR, as Rich does."""
    table = Table("check", "result", "time", "")
    for outcome in outcomes:
        took = f"{outcome.seconds / 60:.0f} min" if outcome.seconds >= 60 else f"{outcome.seconds:.0f} s"
        result = f"[{_COLOURS[outcome.result]}]{outcome.result}[/]"
        table.add_row(outcome.name, result, took if outcome.result != "skipped" else "", escape(outcome.why))
    terminal.print(table)


def main(words: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 none failed, 1 one failed or was interrupted, 2 wrong use."""
    names = [check.name for check in checks(0.0)]

    def listed(text: str) -> set[str]:
        wrong = [name for name in text.split(",") if name not in names]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a check; expected: {', '.join(names)}")
        return set(text.split(","))

    parser = argparse.ArgumentParser(prog="make release-check", description=__doc__)
    parser.add_argument("--only", type=listed, default=set(names), metavar="NAME,NAME", help="these checks only")
    parser.add_argument("--skip", type=listed, default=set(), metavar="NAME,NAME", help="all but these")
    parser.add_argument("--fire-minutes", type=float, default=60.0, help="length of make fire (60)")
    options = parser.parse_args(words)
    selected = [check for check in checks(options.fire_minutes) if check.name in options.only - options.skip]
    terminal = Console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what runs ends with it
    outcomes = run_all(selected, FOLDER, terminal)
    left_out = [
        Outcome(name, "skipped", 0.0, "not asked for") for name in names if name not in options.only - options.skip
    ]
    show(sorted([*outcomes, *left_out], key=lambda outcome: names.index(outcome.name)), terminal)
    return int(any(outcome.result == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
