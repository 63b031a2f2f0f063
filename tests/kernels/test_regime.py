"""The variance of a bin around a moving mean."""

import numpy as np
import pytest

from kernels import regime


@pytest.mark.parametrize(
    ("series", "variance"),
    [
        ([], 0.0),
        ([7.0], 0.0),
        ([1.0, 5.0], 0.0),  # one jump, which is the largest
        ([1.0, 5.0, 3.0], 2.0),  # jumps of 2 and 4: 2 * 2 / 2
        ([4.0, 4.0, 4.0, 9.0, 4.0], 25.0 / 6),  # 0 + 0 + 25, without the other 25, of three jumps
    ],
    ids=str,
)
def test_the_variance_is_that_of_the_jumps_without_the_largest(series: list[float], variance: float) -> None:
    assert regime.spread(np.array(series), 0, len(series)) == pytest.approx(variance)
