"""Shared message data sets: blocks, pages within blocks, expansion (docs/storage-model.md)."""

from typing import Any

import pytest

from tests.kernels.driver import KIB, TwinDriver
from tests.naive.estates import data_set

BLOCK = 16 * KIB  # four pages
ALL_OFFLOADED = {"offld1_th": 0, "offld1_sz": 0}


def open_driver(blocks: int = 20, ds_block: int = BLOCK, **fields: Any) -> TwinDriver:
    """Open a twin whose one queue manager offloads everything into a data set of `blocks`, one of them space map."""
    attributes = {key: fields.pop(key) for key in ("secondary", "max_size") if key in fields}
    item = {"QM01": data_set(size=blocks * ds_block, **attributes)}
    return TwinDriver(ds_block=ds_block, smds=item, queue_managers=("QM01",), **ALL_OFFLOADED, **fields)


def used(state: dict[str, Any], qmgr: str = "QM01") -> tuple[int, int]:
    """Data blocks and pages in use."""
    data_set_state = state["smds"][qmgr]
    return data_set_state["blocks_used"] - 1, data_set_state["pages_used"]


@pytest.mark.parametrize(
    ("length", "prefix", "pages"), [(141, 0, 1), (4_096, 0, 1), (4_097, 0, 2), (4_096, 1, 2), (65_536, 400, 17)]
)
def test_a_message_takes_pages_of_4_kb(length: int, prefix: int, pages: int) -> None:
    assert open_driver(smds_prefix=prefix).put(length)["smds"]["QM01"]["pages_used"] == pages


def test_small_messages_share_a_block() -> None:
    driver = open_driver()
    assert used(driver.put(8_192)) == (1, 2)
    assert used(driver.put(8_192)) == (1, 4)
    assert used(driver.put(8_192)) == (2, 6)


def test_a_big_message_spans_blocks_and_leaves_the_rest_of_its_last_one_to_the_next() -> None:
    driver = open_driver()
    assert used(driver.put(12_288)) == (1, 3)  # a page is left
    assert used(driver.put(6 * 4_096)) == (3, 9)  # starts at a free block, two pages of its second are left
    assert used(driver.put(8_192)) == (3, 11)
    assert used(driver.put(4_096)) == (4, 12)  # the page left in the first block is lost until that block is free


def test_a_block_is_free_again_when_its_last_page_is() -> None:
    driver = open_driver()
    for name, length in (("a", 8_192), ("b", 8_192), ("c", 8_192)):
        driver.put(length, msgid=name)
    assert used(driver.get(msgid="a")) == (2, 4)
    assert used(driver.get(msgid="b")) == (1, 2)
    assert used(driver.put(8_192)) == (1, 4)  # beside c, in the block being filled
    assert used(driver.put(8_192)) == (2, 6)


def test_a_block_being_filled_that_becomes_free_is_filled_no_more() -> None:
    driver = open_driver()
    driver.put(4_096, msgid="a")
    assert used(driver.get(msgid="a")) == (0, 0)
    assert used(driver.put(16_384)) == (1, 4)


def test_each_queue_manager_writes_to_its_own_data_set_and_any_may_get() -> None:
    driver = TwinDriver()
    assert driver.put(65_536, qmgr="QM02")["smds"]["QM02"]["pages_used"] == 16
    state = driver.get(qmgr="QM01")
    assert (state["smds"]["QM02"]["pages_used"], state["messages"]) == (0, 0)


def test_a_data_set_that_is_not_described_is_as_large_as_they_get() -> None:
    state = TwinDriver(smds={}).state()["smds"]["QM01"]
    assert state["blocks_total"] == 16 * KIB**4 // (256 * KIB)


def test_the_space_map_counts_as_used_and_a_map_block_covers_63_gib() -> None:
    def of_map(gib: int) -> int:
        blocks = {"QM01": data_set(size=gib * KIB**3 + 256 * KIB)}
        return int(TwinDriver(smds=blocks, queue_managers=("QM01",)).state()["smds"]["QM01"]["blocks_used"])

    assert (of_map(62), of_map(63), of_map(64)) == (1, 1, 2)


# -- expansion


def test_a_data_set_expands_by_its_secondary_before_more_than_90_percent_of_its_blocks_are_in_use() -> None:
    driver = open_driver(10, secondary=3 * BLOCK)
    state = driver.put(16_384, count=8)["smds"]["QM01"]  # with the map block 9 of 10
    assert (state["blocks_total"], state["blocks_used"], state["status"]) == (10, 9, "NORMAL")
    state = driver.put(4_096)["smds"]["QM01"]
    assert (state["blocks_total"], state["blocks_used"], state["status"]) == (13, 10, "NORMAL")


def test_without_a_secondary_it_expands_by_a_tenth() -> None:
    driver = open_driver(50)
    assert driver.put(16_384, count=44)["smds"]["QM01"]["blocks_total"] == 50
    assert driver.put(16_384)["smds"]["QM01"]["blocks_total"] == 55


def test_a_message_of_many_blocks_takes_several_extents_at_once() -> None:
    state = open_driver(10, secondary=BLOCK).put(20 * 16_384)["smds"]["QM01"]
    assert (state["blocks_used"], state["blocks_total"], state["status"]) == (21, 24, "NORMAL")


def test_volumes_that_are_full_end_in_failed_and_a_put_beyond_is_a_fact() -> None:
    driver = open_driver(10, max_size=10 * BLOCK)
    state = driver.put(16_384, count=9)
    assert (state["smds"]["QM01"]["status"], state["overfull_puts"]) == ("FAILED", 0)
    state = driver.put(16_384)
    assert (state["overfull_puts"], state["smds"]["QM01"]["blocks_used"]) == (1, 11)


def test_an_extent_is_taken_whole_or_not_at_all() -> None:
    driver = open_driver(10, secondary=3 * BLOCK, max_size=12 * BLOCK)
    state = driver.put(16_384, count=9)["smds"]["QM01"]
    assert (state["blocks_total"], state["status"]) == (10, "FAILED")


def test_beyond_16_tb_it_is_at_its_maximum() -> None:
    state = open_driver(10, secondary=16 * KIB**4).put(16_384, count=9)["smds"]["QM01"]
    assert (state["blocks_total"], state["status"]) == (10, "MAXIMUM")


def test_without_ds_expand_it_stays_as_it_is() -> None:
    state = open_driver(10, ds_expand=False).put(16_384, count=12)
    assert (state["smds"]["QM01"]["blocks_total"], state["smds"]["QM01"]["status"]) == (10, "NORMAL")
    assert state["overfull_puts"] == 3


def test_ds_expand_altered_to_yes_tries_again() -> None:
    driver = open_driver(10, max_size=10 * BLOCK)
    assert driver.put(16_384, count=9)["smds"]["QM01"]["status"] == "FAILED"
    assert driver.alter(ds_expand=True)["smds"]["QM01"]["status"] == "NORMAL"
    assert driver.put(4_096)["smds"]["QM01"]["status"] == "FAILED"


def test_a_put_that_got_2192_expands_nothing() -> None:
    driver = open_driver(10)
    before = driver.put(16_384, count=8)["smds"]
    assert driver.put(65_536, reason=2192)["smds"] == before
