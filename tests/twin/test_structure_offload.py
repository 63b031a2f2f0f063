"""Placement of the data of a message at its put: structure, data set or Db2 (docs/storage-model.md)."""

import pytest

from tests.kernels.driver import NO_RULES, TwinDriver
from tests.naive.estates import ENTRY_AND_6_ELEMENTS

OFFLOADED = 2  # elements


def elements_of_next(driver: TwinDriver, length: int) -> int:
    before = driver.state()["elems_used"]
    return int(driver.put(length)["elems_used"] - before)


@pytest.mark.parametrize(
    ("rule", "threshold", "size"),
    [(1, 70, 32 * 1024), (2, 80, 4 * 1024), (3, 90, 0)],  # IBM's defaults
)
def test_a_rule_offloads_what_exceeds_its_size_when_usage_is_more_than_its_threshold(
    rule: int, threshold: int, size: int
) -> None:
    longer = max(size, 140) + 1
    driver = TwinDriver(size=100 * ENTRY_AND_6_ELEMENTS)  # 100 entries, 600 elements
    driver.put(0, count=threshold)
    assert driver.state()["offload_rule"] == rule - 1  # exactly at its threshold
    assert driver.put(0)["offload_rule"] == rule
    assert elements_of_next(driver, longer) == OFFLOADED
    driver = TwinDriver(size=100 * ENTRY_AND_6_ELEMENTS)
    driver.put(0, count=threshold + 1)
    assert driver.put(size or 140)["offloaded_messages"] == 0
    assert driver.put(longer)["offloaded_messages"] == 1


def test_elements_in_use_count_for_the_threshold_as_entries_do() -> None:
    driver = TwinDriver(size=100 * ENTRY_AND_6_ELEMENTS)
    assert driver.put(64_512)["offload_rule"] == 0  # 254 of 600 elements
    assert driver.put(42_000)["offload_rule"] == 0  # 420: exactly 70 %
    assert driver.put(0)["offload_rule"] == 1
    assert driver.state()["ents_used"] == 3


def test_usage_is_looked_at_before_each_put_also_of_a_count() -> None:
    driver = TwinDriver(offld1_th=50, offld1_sz=1024)  # 40 entries, 240 elements
    state = driver.put(2_000, count=16)  # 10 elements each: the 13th leaves 130 in use, more than half
    assert (state["offloaded_messages"], state["elems_used"]) == (3, 136)


def test_the_third_rule_offloads_everything_above_ninety_percent_but_what_needs_2_elements_anyway() -> None:
    driver = TwinDriver(size=100 * ENTRY_AND_6_ELEMENTS)
    driver.put(0, count=91)
    assert driver.put(140)["offloaded_messages"] == 0
    assert driver.put(141)["offloaded_messages"] == 1


def test_the_shortest_message_worth_offloading_is_an_attribute() -> None:
    driver = TwinDriver(offload_min_length=110, offld1_th=0, offld1_sz=0)
    assert driver.put(110)["offloaded_messages"] == 0
    assert driver.put(111)["offloaded_messages"] == 1


def test_a_size_of_64k_switches_a_rule_off() -> None:
    driver = TwinDriver(**NO_RULES)
    driver.put(0, count=40)
    assert driver.state()["offload_rule"] == 0
    assert elements_of_next(driver, 64_512) == 254
    assert elements_of_next(driver, 64_513) == OFFLOADED  # over 63 KB is always offloaded


def test_threshold_0_is_exceeded_by_an_empty_structure() -> None:
    driver = TwinDriver(offld1_th=0, offld1_sz=1024)
    assert driver.state()["offload_rule"] == 1
    assert driver.put(1_024)["offloaded_messages"] == 0
    assert driver.put(1_025)["offloaded_messages"] == 1


def test_a_threshold_of_100_is_exceeded_only_by_an_overfull_structure() -> None:
    driver = TwinDriver(**(NO_RULES | {"offld3_th": 100, "offld3_sz": 0}))
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
def test_more_than_63_kb_by_cf_level(level: int, offload: str, elements: int, offloaded: int, overfull: int) -> None:
    driver = TwinDriver(size=200 * ENTRY_AND_6_ELEMENTS, cf_level=level, offload=offload)
    state = driver.put(64_513)
    assert (state["elems_used"], state["offloaded_messages"], state["overfull_puts"]) == (elements, offloaded, overfull)
    assert elements_of_next(driver, 64_512) == 254
    assert driver.state()["overfull_puts"] == overfull


def test_rules_need_cf_level_5() -> None:
    driver = TwinDriver(cf_level=4, offload="NONE", offld1_th=0, offld1_sz=0)
    assert driver.put(10_000)["offloaded_messages"] == 0
    assert driver.state()["offload_rule"] == 0


def test_only_smds_takes_pages_of_a_data_set() -> None:
    assert TwinDriver().put(65_536)["smds"]["QM01"]["pages_used"] == 16
    assert TwinDriver(offload="DB2").put(65_536)["smds"]["QM01"]["pages_used"] == 0


def test_a_message_keeps_the_cost_it_was_stored_at() -> None:
    driver = TwinDriver(offld1_th=0, offld1_sz=0)
    driver.put(1_000)
    driver.alter(**NO_RULES)
    assert driver.put(1_000)["elems_used"] == 2 + 6
    assert driver.get()["elems_used"] == 6
    assert driver.state()["offloaded_bytes"] == 0


def test_an_offloaded_message_keeps_one_entry_and_two_elements_in_the_structure() -> None:
    state = TwinDriver().put(1_000_000)
    assert (state["ents_used"], state["elems_used"], state["offloaded_messages"]) == (1, OFFLOADED, 1)
    assert state["smds"]["QM01"]["pages_used"] == 245


def test_a_rule_of_8_kb_at_a_low_threshold_offloads_16_kb_and_keeps_6_kb_in_the_structure() -> None:
    driver = TwinDriver(size=200 * ENTRY_AND_6_ELEMENTS, offld2_th=10, offld2_sz=8 * 1024)  # 1,200 elements
    driver.put(64_512)
    assert driver.state()["offload_rule"] == 2
    assert elements_of_next(driver, 16 * 1024) == OFFLOADED
    assert elements_of_next(driver, 6 * 1024) == 26
