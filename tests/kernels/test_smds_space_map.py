"""The space map of a shared message data set: a byte per block, DSBLOCK - 4096 bytes per map block."""

import pytest

from kernels import smds

pytestmark = pytest.mark.uncompiled

KIB, GIB = 1024, 1024**3


def test_a_map_block_covers_exactly_63_gib_at_a_block_of_256_kb() -> None:
    data_blocks = 63 * GIB // (256 * KIB)
    assert smds.map_blocks(data_blocks + 1, 256 * KIB) == 1
    assert smds.map_blocks(data_blocks + 2, 256 * KIB) == 2


@pytest.mark.parametrize("ds_block", [8 * KIB << n for n in range(8)])  # 8K to 1M
def test_total_is_data_blocks_and_one_map_block_per_covered_blocks(ds_block: int) -> None:
    covered = ds_block - 4096
    for data_blocks in (1, 2, covered - 1, covered, covered + 1, 2 * covered, 2 * covered + 1, 1000 * covered + 7):
        map_blocks = -(-data_blocks // covered)
        assert smds.map_blocks(data_blocks + map_blocks, ds_block) == map_blocks


def test_a_data_set_without_a_block_has_no_map() -> None:
    assert smds.map_blocks(0, 256 * KIB) == 0
