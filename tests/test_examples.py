"""Examples of the pages and docstrings run, beside the recording and the estate of the quick start."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import twin
from twin.simulation import demo_estate_text

ROOT = Path(__file__).resolve().parents[1]
NEEDS_A_BROKER = {"events.md"}
PROGRAMS = {
    path.name: re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for path in sorted((ROOT / "docs").glob("*.md"))
    if path.name not in NEEDS_A_BROKER
}
PROGRAMS = {name: programs for name, programs in PROGRAMS.items() if programs}
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "twin").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `friday.arrow` and `estate.toml`."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "estate.toml").write_text(demo_estate_text(), encoding="utf-8")
    twin.simulate(twin.make_scenario("getter-outage"), twin.demo_estate(), folder / "friday.arrow", seed=1)
    return folder


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_programs_of_a_page_run(page: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    for number, program in enumerate(PROGRAMS[page], 1):
        exec(compile(program, f"{page}, program {number}", "exec"), {"__name__": "__main__"})


@pytest.mark.nightly
def test_the_programs_of_the_pages_have_right_types(tmp_path: Path) -> None:
    """With `mypy --strict`, as a site that depends on mqtwin may check its own programs."""
    places = [ROOT / "docs" / "examples" / "mqtwin-csv" / "mqtwin_csv.py"]
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        programs = re.findall(
            r"^```python\b[^\n]*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        for number, program in enumerate(programs, 1):
            places.append(tmp_path / f"{page.stem.replace('-', '_')}_{number}.py")
            places[-1].write_text(program, encoding="utf-8")
    assert len(places) > 12
    strict = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path / 'cache'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *strict, *map(str, places)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_say_what_is_returned(
    name: str, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names = vars(module) | {"twin": twin}
    examples = [test for test in doctest.DocTestFinder().find(module, globs=names) if test.examples]
    assert examples
    for test in examples:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    documented = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    within_signal = {"twin.testing.PAUSE", "twin.testing.ABORT", "twin.testing.EOF"}
    for module in ("twin", "twin.testing"):
        public = {f"{module}.{name}" for name in importlib.import_module(module).__all__}
        assert {name for name in documented if name.rpartition(".")[0] == module} == public - within_signal
