"""Effects of ALTER and REBUILD on a structure (docs/events.md, docs/estate.md)."""

from typing import Any

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS, data_set
from tests.support.store_driver import KIB, NO_RULES, Open


def test_altered_rules_count_from_then_on_at_the_ratio_of_the_allocation(structure: Open) -> None:
    driver = structure(**NO_RULES)
    driver.put(1_000)
    assert driver.alter(offld1_th=0, offld1_sz="0K")["elems_used"] == 6
    assert driver.put(1_000)["elems_used"] == 8
    assert driver.state()["elems_max"] == 240
    assert driver.rebuild()["elems_max"] == 40 * ENTRY_AND_6_ELEMENTS // (695 + 512) * 2


def test_size_is_altered_between_the_used_and_the_policy_size(structure: Open) -> None:
    driver = structure(size=40 * ENTRY_AND_6_ELEMENTS, init_size=30 * ENTRY_AND_6_ELEMENTS)
    driver.put(count=25)
    assert driver.state()["ents_max"] == 30
    assert driver.alter(size=40 * ENTRY_AND_6_ELEMENTS)["ents_max"] == 40
    assert driver.alter(size=40 * ENTRY_AND_6_ELEMENTS + 1)["refused_alters"] == 1
    state = driver.alter(size=25 * ENTRY_AND_6_ELEMENTS)
    assert (state["ents_max"], state["size"]) == (25, 25 * ENTRY_AND_6_ELEMENTS)
    state = driver.alter(size=24 * ENTRY_AND_6_ELEMENTS, offld1_th=0)
    assert (state["ents_max"], state["refused_alters"], state["offload_rule"]) == (25, 2, 3)


def test_an_alter_is_refused_whole(structure: Open) -> None:
    driver = structure()
    driver.put(count=25)
    state = driver.alter(size=24 * ENTRY_AND_6_ELEMENTS, offld1_th=0)
    assert (state["ents_max"], state["refused_alters"], state["offload_rule"]) == (40, 1, 0)


def test_the_size_it_has_is_refused_where_more_than_that_is_used(structure: Open) -> None:
    driver = structure()
    driver.put(count=41)
    assert driver.alter(size=40 * ENTRY_AND_6_ELEMENTS)["refused_alters"] == 1
    assert driver.alter(offld1_th=1)["refused_alters"] == 1


def test_a_size_without_an_entry_is_refused(structure: Open) -> None:
    assert structure().alter(size=1_000)["refused_alters"] == 1


@pytest.mark.parametrize("policy", [{"init_size": "64K"}, {"scm_max_size": "1G"}, {"coupling_facility": "CF02"}])
def test_policy_attributes_change_only_at_a_rebuild(structure: Open, policy: dict[str, Any]) -> None:
    driver = structure()
    state = driver.alter(offld1_th=10, **policy)
    assert (state["refused_alters"], state["offload_rule"]) == (1, 0)
    assert driver.rebuild(**policy)["refused_alters"] == 1


def test_a_rebuild_allocates_anew_by_the_new_policy(structure: Open) -> None:
    driver = structure()
    state = driver.rebuild(scm_max_size="1G", size="1M", init_size="512K")
    assert (state["size"], state["ents_max"]) == (512 * KIB, 235 * 97 // 100)
    assert driver.rebuild(init_size="2M")["refused_alters"] == 1  # more than SIZE
    assert driver.rebuild(init_size=None, scm_max_size=None)["ents_max"] == KIB**2 // ENTRY_AND_6_ELEMENTS


def test_a_rebuild_keeps_the_messages_even_where_they_do_not_fit(structure: Open) -> None:
    driver = structure()
    driver.put(1_000, count=30)
    size = 20 * ENTRY_AND_6_ELEMENTS
    state = driver.rebuild(size=size, init_size=size)
    assert (state["messages"], state["usage_pct"], state["refused_alters"]) == (30, 150.0, 0)


def test_ds_block_is_altered_only_while_every_data_set_is_empty_and_these_keep_their_bytes(structure: Open) -> None:
    driver = structure(ds_block=16_384, smds={"QM01": data_set(size=100_000), "QM02": data_set(size=100_000)})
    assert driver.state()["smds"]["QM01"]["blocks_total"] == 6
    driver.put(65_000, qmgr="QM02")
    assert driver.alter(ds_block="8K")["refused_alters"] == 1
    assert driver.rebuild(ds_block="8K")["refused_alters"] == 2
    assert driver.alter(ds_block="16K")["refused_alters"] == 2
    driver.get()
    expanded = driver.state()["smds"]["QM02"]["blocks_total"] * 2
    state = driver.alter(ds_block="8K")
    assert (state["smds"]["QM01"]["blocks_total"], state["smds"]["QM02"]["blocks_total"]) == (12, expanded)
