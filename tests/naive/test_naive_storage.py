"""The oracle's pools, offload rules and data sets, against the published tables and cases worked by hand."""

from typing import Any

import pytest

from tests.naive import NaiveStructure
from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set, structure
from tests.naive.pools import Pools, cost_of_put, elements_of_length, pools_of_size
from tests.naive.smds import NaiveDataSet, map_blocks, pages_of_length
from tests.support.oracle_driver import OracleDriver
from tests.support.store_driver import NO_RULES
from twin.estate.model import Structure

GIB = 1024**3


def vars_of(config: Structure) -> dict[str, Any]:
    """Return the attributes of a structure for the rules of pools."""
    return NaiveStructure(config).attributes


# -- pools and offload rules


@pytest.mark.parametrize(
    ("length", "published"),
    [
        (1_164, 1_900_000),
        (2_048, 1_150_000),
        (4_096, 650_000),
        (8_192, 340_000),
        (16_384, 175_000),
        (32_768, 90_000),
        (64_512, 45_000),
    ],
)
def test_messages_of_a_full_4_gb_structure_are_within_2_percent_of_the_published_table(
    length: int, published: int
) -> None:
    pools = pools_of_size(4 * GIB, 6, {"scm_max_size": None})
    assert pools == Pools(1_925_131, 11_550_786)
    messages = min(pools.entries, pools.elements // elements_of_length(length))
    assert abs(messages - published) <= published * 2 // 100


def test_200000_messages_of_1_kb_need_between_256_and_512_mb() -> None:
    def holds(size: int) -> int:
        pools = pools_of_size(size, 6, {"scm_max_size": None})
        return min(pools.entries, pools.elements // elements_of_length(1024))

    assert holds(256 * 1024**2) < 200_000 <= holds(512 * 1024**2)


@pytest.mark.parametrize(
    ("length", "elements"), [(0, 2), (140, 2), (141, 3), (396, 3), (397, 4), (1164, 6), (1165, 7), (64_512, 254)]
)
def test_elements_are_of_256_bytes_with_372_bytes_of_header(length: int, elements: int) -> None:
    assert elements_of_length(length) == elements


def test_a_structure_with_scm_has_3_percent_fewer_rounded_down() -> None:
    state = OracleDriver(size=40 * ENTRY_AND_6_ELEMENTS, scm_max_size=GIB).state()
    assert (state["ents_max"], state["elems_max"]) == (38, 232)


def test_a_rule_of_threshold_0_and_size_0_gives_a_ratio_of_1_to_2() -> None:
    state = OracleDriver(size=100 * (695 + 512), offld2_th=0, offld2_sz=0).state()
    assert (state["ents_max"], state["elems_max"]) == (100, 200)
    assert OracleDriver(offload="NONE", cf_level=4, offld2_th=0, offld2_sz=0).state()["elems_max"] == 240


def test_a_rule_applies_when_usage_is_more_than_its_threshold_and_length_exceeds_its_size() -> None:
    attributes = vars_of(structure())
    total = Pools(100, 600)
    in_structure, offloaded = (elements_of_length(32_769), ""), (2, "SMDS")
    assert cost_of_put(32_769, attributes, Pools(70, 420), total) == in_structure
    assert cost_of_put(32_769, attributes, Pools(71, 0), total) == offloaded
    assert cost_of_put(32_769, attributes, Pools(0, 421), total) == offloaded
    assert cost_of_put(32_768, attributes, Pools(71, 0), total) == (130, "")
    assert cost_of_put(4_097, attributes, Pools(81, 0), total) == offloaded


def test_the_third_rule_offloads_everything_above_ninety_percent_but_what_needs_2_elements_anyway() -> None:
    attributes = vars_of(structure())
    assert cost_of_put(141, attributes, Pools(91, 0), Pools(100, 600)) == (2, "SMDS")
    assert cost_of_put(140, attributes, Pools(91, 0), Pools(100, 600)) == (2, "")


def test_threshold_0_is_exceeded_by_an_empty_structure_and_size_64k_switches_a_rule_off() -> None:
    attributes = vars_of(structure(offld1_th=0, offld1_sz=1024, offld2_th=0, offld2_sz=65_536))
    assert cost_of_put(1025, attributes, Pools(0, 0), Pools(100, 600)).data == "SMDS"
    assert OracleDriver(offld1_th=0, offld1_sz=1024, offld2_th=0, offld2_sz=65_536).state()["offload_rule"] == 1


@pytest.mark.parametrize(
    ("level", "offload", "cost", "overfull"),
    [(5, "SMDS", 2, 0), (5, "DB2", 2, 0), (4, "NONE", 16, 0), (3, "NONE", 254, 1)],
)
def test_more_than_63_kb_by_cf_level(level: int, offload: str, cost: int, overfull: int) -> None:
    twin = OracleDriver(size=200 * ENTRY_AND_6_ELEMENTS, cf_level=level, offload=offload, **NO_RULES)
    assert twin.put(64_513)["elems_used"] == cost
    assert twin.state()["overfull_puts"] == overfull
    assert twin.state()["offloaded_bytes"] == (64_513 if level > 3 else 0)
    assert twin.put(64_512)["elems_used"] == cost + 254


def test_a_put_into_a_full_structure_is_a_fact_kept_and_counted() -> None:
    twin = OracleDriver(**NO_RULES)
    assert twin.put(count=40)["overfull_puts"] == 0
    state = twin.put(count=2)
    assert (state["messages"], state["overfull_puts"], state["usage_pct"]) == (42, 2, 105.0)


def test_each_message_of_a_count_meets_the_usage_that_those_before_it_left() -> None:
    twin = OracleDriver(offld1_th=50, offld1_sz=1024)  # 40 entries, 240 elements
    state = twin.put(2000, count=16)  # 10 elements each: the 13th leaves 130 in use, more than half
    assert (state["offloaded_messages"], state["elems_used"]) == (3, 136)


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


def test_a_data_set_expands_before_more_than_90_percent_of_its_blocks_are_in_use() -> None:
    data_sets = {"QM01": data_set(size=10 * 8192, secondary=3 * 8192), "QM02": data_set(size=8192)}
    twin = OracleDriver(ds_block=8192, offld1_th=0, offld1_sz=0, smds=data_sets)
    state = twin.put(8192, count=8)  # with the map block 9 of 10
    assert state["smds"]["QM01"] == {
        "blocks_total": 10,
        "blocks_used": 9,
        "pages_used": 16,
        "messages": 8,
        "status": "NORMAL",
    }
    assert twin.put(4096)["smds"]["QM01"]["blocks_total"] == 13
    assert twin.state()["smds"]["QM02"]["blocks_total"] == 1


def test_a_data_set_that_cannot_expand_is_failed_and_a_put_beyond_it_is_a_fact() -> None:
    data_sets = {"QM01": data_set(size=10 * 8192, max_size=10 * 8192)}
    twin = OracleDriver(ds_block=8192, offld1_th=0, offld1_sz=0, smds=data_sets, queue_managers=("QM01",))
    assert twin.put(8192, count=9)["smds"]["QM01"]["status"] == "FAILED"
    assert twin.state()["overfull_puts"] == 0
    state = twin.put(8192)
    assert (state["overfull_puts"], state["smds"]["QM01"]["blocks_used"]) == (1, 11)
    assert twin.alter(ds_expand=True)["smds"]["QM01"]["status"] == "NORMAL"


def test_a_data_set_does_not_grow_beyond_16_tb() -> None:
    data_sets = {"QM01": data_set(size=10 * 8192, secondary=16 * 1024 * GIB)}
    twin = OracleDriver(ds_block=8192, offld1_th=0, offld1_sz=0, smds=data_sets, queue_managers=("QM01",))
    state = twin.put(8192, count=9)
    assert (state["smds"]["QM01"]["status"], state["smds"]["QM01"]["blocks_total"]) == ("MAXIMUM", 10)


def test_without_ds_expand_a_data_set_stays_as_it_is() -> None:
    data_sets = {"QM01": data_set(size=10 * 8192)}
    twin = OracleDriver(
        ds_block=8192, ds_expand=False, offld1_th=0, offld1_sz=0, smds=data_sets, queue_managers=("QM01",)
    )
    state = twin.put(8192, count=12)
    assert state["smds"]["QM01"]["blocks_total"] == 10
    assert state["overfull_puts"] == 3
    assert state["smds"]["QM01"]["status"] == "NORMAL"


def test_each_queue_manager_writes_to_its_own_data_set_and_any_may_get() -> None:
    twin = OracleDriver()
    assert twin.put(65_536, qmgr="QM02")["smds"]["QM02"]["pages_used"] == 16
    state = twin.get(qmgr="QM01")
    assert (state["smds"]["QM02"]["pages_used"], state["messages"]) == (0, 0)
