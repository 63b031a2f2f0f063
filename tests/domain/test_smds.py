"""Shared message data sets: blocks, pages within blocks, expansion (docs/storage-model.md)."""

from typing import Any

import pytest

from tests.naive.estates import data_set
from tests.support.store_driver import KIB, Open, StoreDriver

BLOCK = 16 * KIB  # four pages
ALL_OFFLOADED = {"offld1_th": 0, "offld1_sz": 0}


def open_structure(structure: Open, blocks: int = 20, ds_block: int = BLOCK, **fields: Any) -> StoreDriver:
    """Open a structure whose one queue manager offloads everything into a data set of `blocks`, one for its map."""
    attributes = {key: fields.pop(key) for key in ("secondary", "max_size") if key in fields}
    item = {"QM01": data_set(size=blocks * ds_block, **attributes)}
    return structure(ds_block=ds_block, smds=item, queue_managers=("QM01",), **ALL_OFFLOADED, **fields)


def used(state: dict[str, Any], qmgr: str = "QM01") -> tuple[int, int]:
    """Return (data blocks, pages) in use."""
    data_set_state = state["smds"][qmgr]
    return data_set_state["blocks_used"] - 1, data_set_state["pages_used"]


@pytest.mark.parametrize(
    ("length", "prefix", "pages"), [(141, 0, 1), (4_096, 0, 1), (4_097, 0, 2), (4_096, 1, 2), (65_536, 400, 17)]
)
def test_a_message_takes_pages_of_4_kb(structure: Open, length: int, prefix: int, pages: int) -> None:
    assert open_structure(structure, smds_prefix=prefix).put(length)["smds"]["QM01"]["pages_used"] == pages


def test_small_messages_share_a_block(structure: Open) -> None:
    driver = open_structure(structure)
    assert used(driver.put(8_192)) == (1, 2)
    assert used(driver.put(8_192)) == (1, 4)
    assert used(driver.put(8_192)) == (2, 6)


def test_a_big_message_spans_blocks_and_leaves_the_rest_of_its_last_one_to_the_next(structure: Open) -> None:
    driver = open_structure(structure)
    assert used(driver.put(12_288)) == (1, 3)  # a page is left
    assert used(driver.put(6 * 4_096)) == (3, 9)  # starts at a free block, two pages of its second are left
    assert used(driver.put(8_192)) == (3, 11)
    assert used(driver.put(4_096)) == (4, 12)  # the page left in the first block is lost until that block is free


def test_a_block_is_free_again_when_its_last_page_is(structure: Open) -> None:
    driver = open_structure(structure)
    for name, length in (("a", 8_192), ("b", 8_192), ("c", 8_192)):
        driver.put(length, msgid=name)
    assert used(driver.get(msgid="a")) == (2, 4)
    assert used(driver.get(msgid="b")) == (1, 2)
    assert used(driver.put(8_192)) == (1, 4)  # beside c, in the block being filled
    assert used(driver.put(8_192)) == (2, 6)


def test_a_block_being_filled_that_becomes_free_is_filled_no_more(structure: Open) -> None:
    driver = open_structure(structure)
    driver.put(4_096, msgid="a")
    assert used(driver.get(msgid="a")) == (0, 0)
    assert used(driver.put(16_384)) == (1, 4)


def test_each_queue_manager_writes_to_its_own_data_set_and_any_may_get(structure: Open) -> None:
    driver = structure()
    assert driver.put(65_536, qmgr="QM02")["smds"]["QM02"]["pages_used"] == 16
    state = driver.get(qmgr="QM01")
    assert (state["smds"]["QM02"]["pages_used"], state["messages"]) == (0, 0)


def test_a_data_set_that_is_not_described_is_as_large_as_they_get(structure: Open) -> None:
    state = structure(smds={}).state()["smds"]["QM01"]
    assert state["blocks_total"] == 16 * KIB**4 // (256 * KIB)


def test_the_space_map_counts_as_used_and_a_map_block_covers_63_gib(structure: Open) -> None:
    def of_map(gib: int) -> int:
        blocks = {"QM01": data_set(size=gib * KIB**3 + 256 * KIB)}
        return int(structure(smds=blocks, queue_managers=("QM01",)).send("CLEAR")["smds"]["QM01"]["blocks_used"])

    assert (of_map(62), of_map(63), of_map(64)) == (1, 1, 2)


# -- expansion


def test_a_data_set_expands_by_its_secondary_before_more_than_90_percent_are_in_use(
    structure: Open,
) -> None:
    data_sets = {"QM01": data_set(size=10 * BLOCK, secondary=3 * BLOCK), "QM02": data_set(size=2 * BLOCK)}
    driver = structure(ds_block=BLOCK, smds=data_sets, **ALL_OFFLOADED)
    state = driver.put(16_384, count=8)["smds"]  # with the map block 9 of 10
    assert state["QM01"] == {
        "blocks_total": 10,
        "blocks_max": 1 << 30,  # 16 TB in blocks of 16 KB
        "blocks_used": 9,
        "pages_used": 32,
        "messages": 8,
        "status": "NORMAL",
    }
    state = driver.put(4_096)["smds"]
    assert (state["QM01"]["blocks_total"], state["QM01"]["blocks_used"], state["QM01"]["status"]) == (13, 10, "NORMAL")
    assert state["QM02"]["blocks_total"] == 2


def test_without_a_secondary_it_expands_by_a_tenth(structure: Open) -> None:
    driver = open_structure(structure, 50)
    assert driver.put(16_384, count=44)["smds"]["QM01"]["blocks_total"] == 50
    assert driver.put(16_384)["smds"]["QM01"]["blocks_total"] == 55


def test_a_message_of_many_blocks_takes_several_extents_at_once(structure: Open) -> None:
    state = open_structure(structure, 10, secondary=BLOCK).put(20 * 16_384)["smds"]["QM01"]
    assert (state["blocks_used"], state["blocks_total"], state["status"]) == (21, 24, "NORMAL")


def test_volumes_that_are_full_end_in_failed_and_a_put_beyond_is_a_fact(structure: Open) -> None:
    driver = open_structure(structure, 10, max_size=10 * BLOCK)
    state = driver.put(16_384, count=9)
    assert (state["smds"]["QM01"]["status"], state["overfull_puts"]) == ("FAILED", 0)
    state = driver.put(16_384)
    assert (state["overfull_puts"], state["smds"]["QM01"]["blocks_used"]) == (1, 11)


def test_an_extent_is_taken_whole_or_not_at_all(structure: Open) -> None:
    driver = open_structure(structure, 10, secondary=3 * BLOCK, max_size=12 * BLOCK)
    state = driver.put(16_384, count=9)["smds"]["QM01"]
    assert (state["blocks_total"], state["status"]) == (10, "FAILED")


def test_beyond_16_tb_it_is_at_its_maximum(structure: Open) -> None:
    state = open_structure(structure, 10, secondary=16 * KIB**4).put(16_384, count=9)["smds"]["QM01"]
    assert (state["blocks_total"], state["status"]) == (10, "MAXIMUM")


@pytest.mark.parametrize(
    ("fields", "largest"),
    [
        ({"max_size": 39 * BLOCK}, 39),  # 10, 11 .. 19, 20, 22 .. 28, 30, 33, 36, 39
        ({"max_size": 40 * BLOCK}, 39),
        ({"max_size": 40 * BLOCK, "secondary": 7 * BLOCK}, 38),
        ({"max_size": 40 * BLOCK, "ds_expand": False}, 10),
    ],
)
def test_what_a_data_set_can_become(structure: Open, fields: dict[str, Any], largest: int) -> None:
    """It stays the same however the data set grows, and becomes what there is when it cannot grow any more."""
    driver = open_structure(structure, 10, **fields)
    assert driver.state()["smds"]["QM01"]["blocks_max"] == largest
    assert driver.put(16_384, count=9)["smds"]["QM01"]["blocks_max"] == largest
    state = driver.put(16_384, count=40)["smds"]["QM01"]
    assert state["blocks_max"] == state["blocks_total"] == largest


def test_without_ds_expand_it_stays_as_it_is(structure: Open) -> None:
    state = open_structure(structure, 10, ds_expand=False).put(16_384, count=12)
    assert (state["smds"]["QM01"]["blocks_total"], state["smds"]["QM01"]["status"]) == (10, "NORMAL")
    assert state["overfull_puts"] == 3


def test_ds_expand_altered_to_yes_tries_again(structure: Open) -> None:
    driver = open_structure(structure, 10, max_size=10 * BLOCK)
    assert driver.put(16_384, count=9)["smds"]["QM01"]["status"] == "FAILED"
    assert driver.alter(ds_expand=True)["smds"]["QM01"]["status"] == "NORMAL"
    assert driver.put(4_096)["smds"]["QM01"]["status"] == "FAILED"


def test_a_put_that_got_2192_expands_nothing(structure: Open) -> None:
    driver = open_structure(structure, 10)
    before = driver.put(16_384, count=8)["smds"]
    assert driver.put(65_536, reason=2192)["smds"] == before
