"""Kernels are compiled once a machine and state of their sources, by one process, and then only loaded."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WARM = "from twin.warm import warm; print(warm())"
WORK = """
from kernels._compile import compiled_here
from tests.kernels.proof import compare
from tests.kernels.test_structure_oracle import PROFILES, crowd
from tests.workloads import random_workload
from twin.events import to_table
from tests.kernels.beside import Decoding
for profile in PROFILES:
    workload = random_workload(3, 500, profile)
    compare(workload, every=100)
    Decoding(workload.config)._decoder.arrow_table(to_table(workload.events))
compare(crowd(1, 1500), every=500)
print(compiled_here())
"""


def start(cache: Path, program: str) -> subprocess.Popen[str]:
    environment = os.environ | {"MQTWIN_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> list[int]:
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return [int(line) for line in output.split()]


def test_of_processes_that_start_at_once_one_compiles_and_later_ones_find_everything(tmp_path: Path) -> None:
    """numba's cache has crashed where several processes wrote it at once (numba issue 4807)."""
    several = [start(tmp_path, WARM) for _ in range(3)]
    compiled = sorted(number for process in several for number in said(process))
    assert compiled[:2] == [0, 0]
    assert compiled[2] > 0
    assert said(start(tmp_path, f"{WARM}\n{WORK}")) == [0, 0]
