"""Functions of the oracle: cost of a put, space map and blocks of a data set. Cases of whole stores: tests/domain."""

from typing import Any

import pytest

from tests.naive import NaiveStructure
from tests.naive.estates import structure
from tests.naive.pools import Pools, cost_of_put, elements_of_length
from tests.naive.smds import NaiveDataSet, map_blocks, pages_of_length
from twin.estate.model import Structure

GIB = 1024**3


def vars_of(config: Structure) -> dict[str, Any]:
    """Return the attributes of a structure for the rules of pools."""
    return NaiveStructure(config).attributes


# -- pools and offload rules


def test_a_rule_applies_when_usage_is_more_than_its_threshold_and_length_exceeds_its_size() -> None:
    attributes = vars_of(structure())
    total = Pools(100, 600)
    in_structure, offloaded = (elements_of_length(32_769), ""), (2, "SMDS")
    assert cost_of_put(32_769, attributes, Pools(70, 420), total) == in_structure
    assert cost_of_put(32_769, attributes, Pools(71, 0), total) == offloaded
    assert cost_of_put(32_769, attributes, Pools(0, 421), total) == offloaded
    assert cost_of_put(32_768, attributes, Pools(71, 0), total) == (130, "")
    assert cost_of_put(4_097, attributes, Pools(81, 0), total) == offloaded


# -- shared message data sets


def test_one_space_map_block_covers_63_gib_at_256_kb() -> None:
    data_blocks = 63 * GIB // (256 * 1024)
    assert data_blocks == 256 * 1024 - 4096
    assert map_blocks(data_blocks + 1, 256 * 1024) == 1
    assert map_blocks(data_blocks + 2, 256 * 1024) == 2


def test_map_blocks_solve_the_published_equation() -> None:
    for data_blocks in range(1, 20_000):
        total = data_blocks + -(-data_blocks // (8192 - 4096))
        assert map_blocks(total, 8192) == total - data_blocks


@pytest.mark.parametrize(("length", "prefix", "pages"), [(0, 0, 1), (4096, 0, 1), (4097, 0, 2), (4096, 1, 2)])
def test_pages_of_a_message(length: int, prefix: int, pages: int) -> None:
    assert pages_of_length(length, prefix) == pages


def test_small_messages_share_a_block_and_big_ones_span_blocks() -> None:
    data_set = NaiveDataSet(size=20 * 16_384, secondary=None, max_size=None, ds_block=16_384)  # 4 pages a block
    small = data_set.place(3)
    assert small == [(0, 3)]
    big = data_set.place(6)  # does not fit in the page left: two new blocks, 2 pages of the second left
    assert big == [(1, 4), (2, 2)]
    assert data_set.place(2) == [(2, 2)]
    assert data_set.place(1) == [(3, 1)]
    data_set.release(small)
    assert (data_set.data_blocks_in_use(), data_set.pages_used()) == (3, 9)
    assert data_set.place(4) == [(0, 4)]  # fills its block up: the block being filled stays block 3
    assert data_set.place(3) == [(3, 3)]


def test_a_block_being_filled_that_becomes_free_is_no_longer_filled() -> None:
    data_set = NaiveDataSet(size=20 * 16_384, secondary=None, max_size=None, ds_block=16_384)
    first, second = data_set.place(1), data_set.place(1)
    data_set.release(first)
    assert data_set.left == 2
    data_set.release(second)
    assert data_set.left == 0
    assert data_set.place(2) == [(0, 2)]
