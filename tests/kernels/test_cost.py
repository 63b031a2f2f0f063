"""The cost of each operation, counted in statements of kernels, is proportional to its size, apart from a logarithm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.cost import SIZES, STORES

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
MAX_RATIO = 1.05  # of the growth of cost to that of size, which doubles; a quadratic cost has 2
MAX_RATIO_WITH_LOGARITHM = {  # a sort, a heap, a tree, or an index that grows
    "commit of a large unit": 1.22,
    "get after backouts": 1.18,
    "far jumps": 1.18,
    "restart with many open units": 1.16,
    "commit of many units": 1.1,
    "clear": 1.1,
    "get by one id of ten priorities": 1.08,
    "put into holes": 1.07,
}


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
    ratios = {name: large / small / growth for name, (small, large) in costs.items()}
    assert not {name: ratio for name, ratio in ratios.items() if ratio > MAX_RATIO_WITH_LOGARITHM.get(name, MAX_RATIO)}
