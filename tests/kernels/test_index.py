"""The hash index, compared with a dict of lists from a key to its rows, oldest first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import index
from kernels.layout import BUCKET, LINK, NONE

pytestmark = pytest.mark.uncompiled

ROWS = 64


def rows_of(buckets: np.ndarray, links: np.ndarray, mixed: int) -> list[int]:
    """Return the rows of a hash, whose bucket other hashes share."""
    rows = []
    row = int(index.first(buckets, mixed))
    while row != NONE:
        if links[row]["mixed"] == mixed:
            rows.append(row)
        row = int(links[row]["next"])
    return rows


@given(st.lists(st.tuples(st.sampled_from(["enter", "leave", "grow"]), st.integers(0, ROWS - 1), st.integers(0, 5))))
def test_the_rows_of_a_key_are_found_in_the_order_they_came_however_the_index_grows(
    steps: list[tuple[str, int, int]],
) -> None:
    keys = [int(index.mix(np.uint64(number), queue)) for number in range(3) for queue in range(2)]
    buckets, links = np.zeros(2, BUCKET), np.zeros(ROWS, LINK)
    index.clear(buckets)
    expected: dict[int, list[int]] = {key: [] for key in keys}
    key_of: dict[int, int] = {}
    for step, row, which in steps:
        if step == "enter" and row not in key_of:
            key_of[row] = keys[which]
            expected[keys[which]].append(row)
            index.enter(buckets, links, row, keys[which])
        elif step == "leave" and row in key_of:
            expected[key_of.pop(row)].remove(row)
            index.leave(buckets, links, row)
        elif step == "grow" and buckets.size < 1024:
            buckets = np.concatenate([buckets, np.zeros(buckets.size, BUCKET)])
            index.split(buckets, links, buckets.size // 2)
        for key, rows in expected.items():
            assert rows_of(buckets, links, key) == rows


def test_a_key_belongs_to_its_queue() -> None:
    mixed = {int(index.mix(np.uint64(key), queue)) for key in range(100) for queue in range(100)}
    assert len(mixed) > 9_990  # 32 bits: a few of 10,000 may fall together
