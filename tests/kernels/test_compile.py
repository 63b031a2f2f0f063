"""Kernels are compiled once per machine and state of their sources, by one process, and loaded by all others."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from twin.stores import warm_up

ROOT = Path(__file__).resolve().parents[2]

WARM_A_PART = """
from twin.stores import warm_up as warm
# Only what opening and decoding call: seconds instead of minutes.
warm._look = warm._run = warm._run_scm = warm._foretell = lambda *_: None
print(warm.warm())
"""
WORK = """
from kernels import _compile
from tests.kernels.beside import Decoding
from tests.kernels.proof import check_equal_states
from tests.kernels.test_crowd import crowd
from tests.support.mixes import MIXES
from tests.support.workloads import random_workload
from twin.events import to_table
from twin.stores.warm_up import warm

def ready():
    return {(kernel.py_func.__qualname__, types) for kernel in _compile._compiled for types in kernel.signatures}

warm()
before, forecasts = ready(), 0
for kind, mix in MIXES.items():
    for profile in mix.weights:
        workload = random_workload(3, 300, profile, kind)
        check_equal_states(workload, every=100)
        Decoding(workload.config)._decoder.arrow_table(to_table(workload.events))
    decoding = Decoding(workload.config)
    twin = decoding.twin()
    twin.apply(decoding.block(workload.events)[0])
    forecasts += len(twin.drain_forecasts())
    pages = list(twin.dirty_pages())
    decoding.twin(None, twin.header(), pages)
check_equal_states(crowd(1, 1500), every=500)
print(len(before), forecasts, ready() - before)
"""

# Ten commands at once, as forks of a process that has imported everything. Each says what it does in place of loading.
CROWD = """
import multiprocessing, sys, threading
from twin.stores import warm_up

context = multiprocessing.get_context("fork")
number, together = int(sys.argv[1]), int(sys.argv[2])
inside, said = context.Barrier(together), context.SimpleQueue()

def load():
    if warm_up.compiles():
        said.put("compiles")
        return
    try:
        inside.wait(60)  # until as many are inside, where nobody is who waits for another
        said.put("loads")
    except threading.BrokenBarrierError:
        said.put("loads alone")

warm_up._load = load
commands = [context.Process(target=warm_up.warm) for _ in range(number)]
for command in commands:
    command.start()
print(*sorted(said.get() for _ in commands))
for command in commands:
    command.join()
"""


def start(program: str, checkout: Path = ROOT, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return output.strip()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache that three processes started at once have filled: one of them has compiled, and the others waited."""
    folder = str(tmp_path_factory.mktemp("cache"))
    make_version(Path(folder), "unused", days_ago=31)
    several = [start(WARM_A_PART, MQTWIN_CACHE=folder) for _ in range(3)]
    compiled = sorted(int(output_of(process)) for process in several)
    assert compiled[:2] == [0, 0]
    assert compiled[2] > 0
    return folder


@pytest.mark.nightly
def test_one_of_several_processes_started_at_once_compiles_and_later_ones_load_everything(cache: str) -> None:
    """numba's cache has crashed where several processes wrote it at once (numba issue 4807)."""
    assert output_of(start(WARM_A_PART, MQTWIN_CACHE=cache)) == "0"
    [folder] = versions(cache)
    assert folder.name != "unused", "the first process of a version removes others"


def versions(cache: str | Path) -> list[Path]:
    return sorted(Path(cache, "kernels").iterdir())


def make_version(cache: Path, name: str, *, days_ago: float, mark: bool = True) -> Path:
    """Make machine code of another version that was last used days ago; mark: by a version that notes its use."""
    folder = cache / "kernels" / name
    folder.mkdir(parents=True)
    (folder / "kernel.nbc").write_bytes(b"code")
    used = folder / "used" if mark else folder
    if mark:
        used.touch()
    os.utime(used, (time.time() - days_ago * 86_400,) * 2)
    return used


def test_machine_code_of_other_versions_is_removed_after_thirty_days_without_use(tmp_path: Path) -> None:
    for days in (29, 31):
        make_version(tmp_path, f"marked {days}", days_ago=days)
        make_version(tmp_path, f"earlier {days}", days_ago=days, mark=False)
    warm_up.remove_unused(tmp_path / "kernels")
    assert [path.name for path in versions(tmp_path)] == ["earlier 29", "marked 29"]


def test_machine_code_that_a_process_uses_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use = """
from twin.stores import warm_up
warm_up._load = lambda: None
warm_up.warm()
print(warm_up.CACHE_FOLDER, flush=True)
input()
"""
    process = start(use, MQTWIN_CACHE=str(tmp_path))
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    os.utime(folder / "used", (0, 0))
    monkeypatch.setattr(warm_up, "CACHE_FOLDER", tmp_path / "kernels" / "new")
    warm_up.remove_unused(folder.parent)
    assert folder.exists()
    process.communicate("\n")
    warm_up.remove_unused(folder.parent)
    assert not folder.exists()


def test_machine_code_is_there_once_all_of_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted compilation leaves a folder with a part."""
    monkeypatch.setattr(warm_up, "CACHE_FOLDER", make_version(tmp_path, "a part", days_ago=0, mark=False))
    assert warm_up.compiles()
    monkeypatch.setattr(warm_up, "CACHE_FOLDER", make_version(tmp_path, "all", days_ago=0).parent)
    assert not warm_up.compiles()


def test_ten_commands_load_what_is_compiled_at_the_same_time(tmp_path: Path) -> None:
    """None takes a lock, none writes: the folder may be read-only."""
    output_of(start(CROWD, ROOT, "1", "1", MQTWIN_CACHE=str(tmp_path)))
    [folder] = versions(tmp_path)
    (folder / "compile.lock").unlink()
    assert output_of(start(CROWD, ROOT, "10", "10", MQTWIN_CACHE=str(tmp_path))) == " ".join(["loads"] * 10)
    assert [path.name for path in folder.iterdir()] == ["used"]


def test_of_ten_commands_one_compiles_and_then_the_others_load_at_the_same_time(tmp_path: Path) -> None:
    expected = " ".join(["compiles"] + ["loads"] * 9)
    assert output_of(start(CROWD, ROOT, "10", "9", MQTWIN_CACHE=str(tmp_path))) == expected


def test_a_command_does_not_read_what_another_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = make_version(tmp_path, "unused", days_ago=31)
    removed: list[Path] = []

    def remove(folder: Path, *, ignore_errors: bool) -> None:
        assert ignore_errors
        assert not mark.exists(), "whoever comes now compiles"
        with pytest.raises(BlockingIOError):  # and whoever has opened the mark waits, then sees that it is gone
            fcntl.flock(reader, fcntl.LOCK_SH | fcntl.LOCK_NB)
        removed.append(folder)

    monkeypatch.setattr(shutil, "rmtree", remove)
    with mark.open("rb") as reader:
        warm_up.remove_unused(tmp_path / "kernels")
    assert removed == [mark.parent]


def test_machine_code_for_another_processor_or_python_has_a_folder_of_its_own() -> None:
    """Else a process that finds the folder complete would compile beside others that read it."""
    program = "from kernels._compile import CACHE_FOLDER; print(CACHE_FOLDER.name)"
    here, other = output_of(start(program)), output_of(start(program, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""))
    assert here != other


def test_importing_the_kernels_makes_no_folder(tmp_path: Path) -> None:
    assert output_of(start("import twin.stores.warm_up, kernels._compile; print(0)", MQTWIN_CACHE=str(tmp_path))) == "0"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_two_checkouts_of_the_same_sources_share_their_machine_code(cache: str, tmp_path: Path) -> None:
    for name in ("kernels", "twin"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    assert output_of(start(WARM_A_PART, tmp_path, MQTWIN_CACHE=cache)) == "0"


def test_kernels_leave_the_cache_settings_of_other_numba_users_alone() -> None:
    program = """
from numba import config
before = config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES
import twin.stores.warm_up
print(before == (config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES))
"""
    assert output_of(start(program)) == "True"


@pytest.mark.nightly
def test_warming_covers_every_kernel_that_work_calls() -> None:
    """After warming, Python calls no kernel, and no kernel with argument types, that it did not call while warming."""
    before, forecasts, more = output_of(start(WORK)).split(" ", 2)
    assert int(before) > 40
    assert int(forecasts) > 100
    assert more == "set()"
