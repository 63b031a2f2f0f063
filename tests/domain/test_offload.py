"""Placement of the data of a message at its put: structure, data set or Db2 (docs/storage-model.md)."""

from itertools import pairwise

import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.support.store_driver import NO_RULES, Open, StoreDriver

OFFLOADED = 2  # elements


def elements_of_next(driver: StoreDriver, length: int) -> int:
    """Return the elements that the next message takes."""
    before = driver.state()["elems_used"]
    return int(driver.put(length)["elems_used"] - before)


@pytest.mark.parametrize(
    ("rule", "threshold", "size"),
    [(1, 70, 32 * 1024), (2, 80, 4 * 1024), (3, 90, 0)],  # IBM's defaults
)
def test_a_rule_offloads_what_exceeds_its_size_when_usage_is_more_than_its_threshold(
    structure: Open, rule: int, threshold: int, size: int
) -> None:
    longer = max(size, 140) + 1
    driver = structure(size=100 * ENTRY_AND_6_ELEMENTS)  # 100 entries, 600 elements
    driver.put(0, count=threshold)
    assert driver.state()["offload_rule"] == rule - 1  # exactly at its threshold
    assert driver.put(0)["offload_rule"] == rule
    assert elements_of_next(driver, longer) == OFFLOADED
    driver = structure(size=100 * ENTRY_AND_6_ELEMENTS)
    driver.put(0, count=threshold + 1)
    assert driver.put(size or 140)["offloaded_messages"] == 0
    assert driver.put(longer)["offloaded_messages"] == 1


def test_elements_in_use_count_for_the_threshold_as_entries_do(structure: Open) -> None:
    driver = structure(size=100 * ENTRY_AND_6_ELEMENTS)
    assert driver.put(64_512)["offload_rule"] == 0  # 254 of 600 elements
    assert driver.put(42_000)["offload_rule"] == 0  # 420: exactly 70 %
    assert driver.put(0)["offload_rule"] == 1
    assert driver.state()["ents_used"] == 3


def test_usage_is_looked_at_before_each_put_also_of_a_count(structure: Open) -> None:
    driver = structure(offld1_th=50, offld1_sz=1024)  # 40 entries, 240 elements
    state = driver.put(2_000, count=16)  # 10 elements each: the 13th leaves 130 in use, more than half
    assert (state["offloaded_messages"], state["elems_used"]) == (3, 136)


def test_the_third_rule_offloads_everything_above_ninety_percent_but_what_needs_2_elements_anyway(
    structure: Open,
) -> None:
    driver = structure(size=100 * ENTRY_AND_6_ELEMENTS)
    driver.put(0, count=91)
    assert elements_of_next(driver, 140) == 2
    assert driver.state()["offloaded_messages"] == 0
    assert elements_of_next(driver, 141) == OFFLOADED
    assert driver.state()["offloaded_messages"] == 1


def test_the_shortest_message_worth_offloading_is_an_attribute(structure: Open) -> None:
    driver = structure(offload_min_length=110, offld1_th=0, offld1_sz=0)
    assert driver.put(110)["offloaded_messages"] == 0
    assert driver.put(111)["offloaded_messages"] == 1


def test_a_size_of_64k_switches_a_rule_off(structure: Open) -> None:
    driver = structure(**NO_RULES)
    driver.put(0, count=40)
    assert driver.state()["offload_rule"] == 0
    assert elements_of_next(driver, 64_512) == 254
    assert elements_of_next(driver, 64_513) == OFFLOADED  # over 63 KB is always offloaded


def test_messages_exceeding_63_75_kb_are_always_offloaded(structure: Open) -> None:
    """63.75 KB are 255 elements; data of more than 63 KB does not fit into them beside its header."""
    driver = structure(size=300 * ENTRY_AND_6_ELEMENTS, **NO_RULES)
    assert driver.put(64_512)["offloaded_messages"] == 0
    for count, length in enumerate((64_513, 65_279, 65_280, 65_281, 1_000_000), 1):
        assert driver.put(length)["offloaded_messages"] == count


def test_with_plenty_of_space_only_too_large_messages_and_those_above_the_first_rule_s_size_are_offloaded(
    structure: Open,
) -> None:
    driver = structure(size=400 * ENTRY_AND_6_ELEMENTS, offld1_th=0, offld1_sz=8 * 1024)
    for length in (0, 141, 4 * 1024 + 1, 8 * 1024):
        assert driver.put(length)["offloaded_messages"] == 0
    assert driver.put(8 * 1024 + 1)["offloaded_messages"] == 1
    driver = structure(size=400 * ENTRY_AND_6_ELEMENTS)  # the default rules: none is in force
    for length in (0, 141, 4 * 1024 + 1, 32 * 1024 + 1, 64_512):
        assert driver.put(length)["offloaded_messages"] == 0
    assert driver.put(64_513)["offloaded_messages"] == 1


def test_from_the_second_rule_on_the_remaining_space_is_used_up_more_slowly(structure: Open) -> None:
    """Messages of 5,000 bytes, 21 elements each, until 80 % are exceeded; then 2 elements each."""
    driver = structure(size=100 * ENTRY_AND_6_ELEMENTS, offld3_th=95)
    used = [driver.put(5_000)["elems_used"] for _ in range(30)]
    growth = [after - before for before, after in pairwise(used)]
    crossed = next(place for place, elements in enumerate(used) if elements > 480)
    assert set(growth[:crossed]) == {21}
    assert set(growth[crossed:]) == {OFFLOADED}


def test_lower_thresholds_of_the_other_rules_leave_more_space_for_small_messages(structure: Open) -> None:
    """Ten messages of 10,000 bytes, then small ones of 500 bytes, 4 elements each, up to 90 %."""
    small = {}
    for threshold in (80, 20):
        driver = structure(size=100 * ENTRY_AND_6_ELEMENTS, offld1_th=70, offld2_th=threshold)
        driver.put(10_000, count=10)
        before = driver.state()["messages"]
        while driver.state()["usage_pct"] <= 90:
            driver.put(500)
        small[threshold] = driver.state()["messages"] - before
    assert small[20] > 1.5 * small[80]


def test_threshold_0_is_exceeded_by_an_empty_structure(structure: Open) -> None:
    driver = structure(offld1_th=0, offld1_sz=1024)
    assert driver.state()["offload_rule"] == 1
    assert driver.put(1_024)["offloaded_messages"] == 0
    assert driver.put(1_025)["offloaded_messages"] == 1
    switched_off = {"offld2_th": 0, "offld2_sz": 65_536}
    assert structure(offld1_th=0, offld1_sz=1024, **switched_off).state()["offload_rule"] == 1


def test_a_threshold_of_100_is_exceeded_only_by_an_overfull_structure(structure: Open) -> None:
    driver = structure(**(NO_RULES | {"offld3_th": 100, "offld3_sz": 0}))
    assert driver.put(0, count=40)["offload_rule"] == 0
    assert driver.put(0)["offload_rule"] == 3


@pytest.mark.parametrize(
    ("level", "offload", "elements", "offloaded", "overfull"),
    [
        (5, "SMDS", 2, 1, 0),
        (5, "DB2", 2, 1, 0),
        (4, "NONE", 16, 1, 0),  # a placeholder of 4 KB stays
        (3, "NONE", 254, 0, 1),  # cannot be put: as a fact it is kept at what its length costs
        (1, "NONE", 254, 0, 1),
    ],
)
def test_more_than_63_kb_by_cf_level(
    structure: Open, level: int, offload: str, elements: int, offloaded: int, overfull: int
) -> None:
    driver = structure(size=200 * ENTRY_AND_6_ELEMENTS, cf_level=level, offload=offload)
    state = driver.put(64_513)
    assert (state["elems_used"], state["offloaded_messages"], state["overfull_puts"]) == (elements, offloaded, overfull)
    assert state["offloaded_bytes"] == 64_513 * offloaded
    assert elements_of_next(driver, 64_512) == 254
    assert driver.state()["overfull_puts"] == overfull


def test_rules_need_cf_level_5(structure: Open) -> None:
    driver = structure(cf_level=4, offload="NONE", offld1_th=0, offld1_sz=0)
    assert driver.put(10_000)["offloaded_messages"] == 0
    assert driver.state()["offload_rule"] == 0


def test_only_smds_takes_pages_of_a_data_set(structure: Open) -> None:
    assert structure().put(65_536)["smds"]["QM01"]["pages_used"] == 16
    assert structure(offload="DB2").put(65_536)["smds"]["QM01"]["pages_used"] == 0


def test_a_message_keeps_the_cost_it_was_stored_at(structure: Open) -> None:
    driver = structure(offld1_th=0, offld1_sz=0)
    driver.put(1_000)
    driver.alter(**NO_RULES)
    assert driver.put(1_000)["elems_used"] == 2 + 6
    assert driver.get()["elems_used"] == 6
    assert driver.state()["offloaded_bytes"] == 0


def test_an_offloaded_message_keeps_one_entry_and_two_elements_in_the_structure(structure: Open) -> None:
    state = structure().put(1_000_000)
    assert (state["ents_used"], state["elems_used"], state["offloaded_messages"]) == (1, OFFLOADED, 1)
    assert state["smds"]["QM01"]["pages_used"] == 245


def test_a_rule_of_8_kb_at_a_low_threshold_offloads_16_kb_and_keeps_6_kb_in_the_structure(structure: Open) -> None:
    driver = structure(size=200 * ENTRY_AND_6_ELEMENTS, offld2_th=10, offld2_sz=8 * 1024)  # 1,200 elements
    driver.put(64_512)
    assert driver.state()["offload_rule"] == 2
    assert elements_of_next(driver, 16 * 1024) == OFFLOADED
    assert elements_of_next(driver, 6 * 1024) == 26
