"""The cost of each operation, counted in lines of kernels, is proportional to its size, apart from a logarithm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.cost import SIZES, STORES

ROOT = Path(__file__).resolve().parents[2]
MAX_RATIO = 1.5  # of the growth of cost to that of size: room for a logarithm; a quadratic cost has 4


@pytest.mark.parametrize("kind", STORES)
def test_the_cost_of_each_operation_grows_with_its_size_and_no_faster(kind: str) -> None:
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.kernels.cost", kind],
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    costs = json.loads(process.stdout)
    assert len(costs) > 30
    growth = SIZES[1] / SIZES[0]
    too_fast = {name: (small, large) for name, (small, large) in costs.items() if large > MAX_RATIO * growth * small}
    assert not too_fast
