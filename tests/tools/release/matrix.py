"""`make matrix`: the ranges of `pyproject.toml`, held on each supported Python of this machine.

For each Python, once with the lowest and once with the highest version of each direct dependency that its range allows,
an environment is made with uv in `build/matrix`, and tests of model, kernels, commands, feeds and stream run in it. A
third one, `base`, has no extra: neither Spark nor pandas nor a client of Kafka. It runs all tests that do without them
(`tests.support.base`). The tools of the tests stay at the versions of `constraints.txt`. Only pyspark is built from its
source archive: where a version has no wheel for a Python, the next one that has is the lowest. What uv fetches and
builds, 8 GB in a run, is kept until its end only, and so is the environment of a cell that passed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "matrix"
CACHE = FOLDER / "cache"  # uv's: it would keep a Spark of 1.4 GB for each environment
BASE = "base"  # the highest pins, without the extras
PINS = {"lowest": "lowest-direct", "highest": "highest", BASE: "highest"}
# Each reaches dependencies that no other does: pictures, HTTP, jars, both Kafka clients, spans, Spark with a broker.
TESTS = (
    "tests/domain/test_scripts.py",
    "tests/kernels/test_hashing.py",
    "tests/twin/test_replay.py",
    "tests/twin/test_pictures.py",
    "tests/twin/test_public_names.py",
    "tests/twin/events",
    "tests/deploy/test_cli.py",
    "tests/deploy/test_metrics.py",
    "tests/deploy/test_jars.py",
    "tests/deploy/console/test_app.py",
    "tests/streams/test_decode_stage.py",
    "tests/streams/test_kafka_settings.py",
    "tests/streams/test_pure_producer.py",
    "tests/streams/test_session.py",
    "tests/streams/test_span_stage.py",
    "tests/system/test_stream_equals_replay.py",
)
_WHEELS = ("--only-binary", ":all:", "--no-binary", "pyspark")


class BrokenCellError(Exception):
    """An environment could not be made, or its tests failed. The message is for the table."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of the table.

    Args:
        python: minor version.
        pins: `lowest`, `highest` or `base`.
        result: `passed`, `failed` or `skipped`.
        what: number of tests, or why they failed or were skipped.
        seconds: duration.
    """

    python: str
    pins: str
    result: str
    what: str
    seconds: float = 0.0


def supported() -> list[str]:
    """Return the minor versions of Python that `requires-python` allows, such as `3.12`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = SpecifierSet(project["requires-python"])
    return [f"3.{minor}" for minor in range(30) if f"3.{minor}.0" in allowed]


def find_python(minor: str) -> Path | None:
    """Return an interpreter: on the PATH, or installed by pyenv. None: there is none that runs.

    Args:
        minor: version, such as `3.12`.
    """
    on_path = shutil.which(f"python{minor}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in (*([Path(on_path)] if on_path else []), *sorted(pyenv.glob(f"{minor}.*/bin/python"))):
        asked = [str(path), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == minor:
            return path
    return None


def others(direct: str, constraints: str) -> str:
    """Return the lines of `constraints.txt` whose packages have no version in the direct ones: tools of the tests.

    Args:
        direct: resolved versions of what mqtwin runs on, `name==version` in each line.
        constraints: text of `constraints.txt`.
    """
    resolved = {canonicalize_name(line.partition("==")[0]) for line in direct.splitlines() if "==" in line}
    pinned = [line for line in constraints.splitlines() if "==" in line and not line.startswith("#")]
    return "".join(f"{line}\n" for line in pinned if canonicalize_name(line.partition("==")[0]) not in resolved)


def run_cell(minor: str, python: Path, pins: str) -> Cell:
    """Make the environment and run the tests in it; its log is `build/matrix/MINOR-PINS.log`."""
    began = time.monotonic()
    environment = _Environment(minor, python, pins)
    try:
        passed = environment.test()
    except BrokenCellError as error:
        return Cell(minor, pins, "failed", str(error), time.monotonic() - began)
    shutil.rmtree(environment.folder)
    return Cell(minor, pins, "passed", passed, time.monotonic() - began)


class _Environment:
    def __init__(self, minor: str, python: Path, pins: str) -> None:
        self._name = f"{minor}-{pins}"
        self._python = python
        self._resolution = PINS[pins]
        self._extras = [] if pins == BASE else ["--all-extras"]
        alone = ["-m", "not nightly and not system", "-p", "tests.support.base", "tests"]
        self._tests = alone if pins == BASE else ["-m", "not nightly", *TESTS]
        self.folder = FOLDER / self._name
        self._log = FOLDER / f"{self._name}.log"
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._log.write_text("", encoding="utf-8")

    def test(self) -> str:
        """Return pytest's last line. Raises BrokenCellError."""
        own = self._make()
        command = [str(own), "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider"]
        # A warning is an error with the versions of constraints.txt; others may deprecate what these do not.
        return self._run([*command, "-W", "default", *self._tests], "tests")

    def _make(self) -> Path:
        uv = str(Path(sys.executable).with_name("uv"))
        own = self.folder / "bin" / "python"
        direct, rest, everything = (FOLDER / f"{self._name}.{part}.txt" for part in ("direct", "rest", "all"))
        compiled = [uv, "pip", "compile", "pyproject.toml", *self._extras, *_WHEELS, "--python", str(self._python)]
        compiled += ["--quiet", "--no-annotate", "--no-header", "--output-file"]
        self._run([*compiled, str(direct), "--resolution", self._resolution], "resolution")
        constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
        rest.write_text(others(direct.read_text(encoding="utf-8"), constraints), encoding="utf-8")
        held = ["--group", "test", "--constraints", str(direct), "--constraints", str(rest)]
        self._run([*compiled, str(everything), *held], "resolution with the tests' tools")
        self._run([uv, "venv", "--quiet", "--clear", "--python", str(self._python), str(self.folder)], "environment")
        install = [uv, "pip", "sync", "--quiet", "--python", str(own), *_WHEELS, "--build-constraints"]
        self._run([*install, "constraints.txt", str(everything)], "installation")
        editable = [uv, "pip", "install", "--quiet", "--python", str(own), "--build-constraints", "constraints.txt"]
        self._run([*editable, "--no-deps", "--editable", "."], "installation of mqtwin")
        return own

    def _run(self, command: list[str], what: str) -> str:
        """Run a command into the log and return its last line; what it says of addresses is left out."""
        variables = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
        variables["UV_CACHE_DIR"] = str(CACHE)
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        text = re.sub(r"\w+://\S+", "ADDRESS", done.stdout)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n{text}\n")
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        if done.returncode:
            raise BrokenCellError(f"{what}: {last.strip()} ({self._log.relative_to(ROOT)})")
        return last.strip("= ")


def show(cells: Iterable[Cell], terminal: Console) -> None:
    """Print the table."""
    table = Table("Python", "pins", "result", "", "minutes")
    colours = {"passed": "green", "failed": "red", "skipped": "yellow"}
    for cell in cells:
        result = f"[{colours[cell.result]}]{cell.result}[/]"
        table.add_row(cell.python, cell.pins, result, cell.what, f"{cell.seconds / 60:.1f}" if cell.seconds else "")
    terminal.print(table)


def main() -> int:
    """Return the exit status: 0 all that could run passed, 1 one failed or none could run."""
    versions = supported()
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--python", action="append", choices=versions, help="this one only; may be repeated")
    parser.add_argument("--pins", choices=list(PINS), help="these only")
    options = parser.parse_args()
    terminal = Console()
    try:
        cells = run_cells(options.python or versions, [options.pins] if options.pins else list(PINS))
    finally:
        shutil.rmtree(CACHE, ignore_errors=True)
    show(cells, terminal)
    results = {cell.result for cell in cells}
    return 1 if "failed" in results or "passed" not in results else 0


def run_cells(versions: Iterable[str], pins: Iterable[str]) -> list[Cell]:
    """Run a cell for each Python and each of `pins`, printing its result, and return them."""
    cells: list[Cell] = []
    for minor in versions:
        python = find_python(minor)
        for each in pins:
            if python is None:
                cells.append(Cell(minor, each, "skipped", "not on this machine"))
                continue
            print(f"Python {minor}, {each} pins: up to ten minutes, the first time", flush=True)
            cells.append(run_cell(minor, python, each))
            print(f"Python {minor}, {each} pins: {cells[-1].result}, {cells[-1].what}", flush=True)
    return cells


if __name__ == "__main__":
    sys.exit(main())
