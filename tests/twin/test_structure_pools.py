"""Entries and elements of a structure: how many messages it holds before it is full (docs/storage-model.md)."""

import numpy as np
import pytest

from tests.kernels.driver import GIB, KIB, MIB, NO_RULES, TwinDriver, demands
from tests.naive.estates import ENTRY_AND_6_ELEMENTS

MQRC_STORAGE_MEDIUM_FULL = 2192
LEVEL_3 = {"cf_level": 3, "offload": "NONE"}


def messages_that_fit(size: int, length: int, **fields: object) -> int:
    """Puts of one length that the twin accepts as the real system would, before it answers 2192."""
    driver = TwinDriver(**({"size": size, "full_threshold": 0} | LEVEL_3 | fields))
    route = driver.decoding.estate.route_of_queue("QM01", "A.QUEUE")
    accepted = 0
    while True:
        events = demands(route, np.full(200_000, length))
        driver.twin.demand(events)
        accepted += int((events["reason"] == 0).sum())
        if events["reason"][-1] == MQRC_STORAGE_MEDIUM_FULL:
            assert driver.state()["messages"] == accepted
            return accepted


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
def test_a_4_gb_structure_holds_what_ibm_published_within_2_percent(length: int, published: int) -> None:
    assert messages_that_fit(4 * GIB, length) == pytest.approx(published, rel=0.02)


def test_200000_messages_of_1_kb_need_between_256_and_512_mb() -> None:
    assert messages_that_fit(256 * MIB, KIB) < 200_000 <= messages_that_fit(512 * MIB, KIB)


def test_a_4_gb_structure_has_the_published_entries_and_elements() -> None:
    state = TwinDriver(size=4 * GIB).state()
    assert (state["ents_max"], state["elems_max"]) == (1_925_131, 11_550_786)


def test_a_structure_with_scm_has_3_percent_fewer_rounded_down() -> None:
    state = TwinDriver(size=40 * ENTRY_AND_6_ELEMENTS, scm_max_size=GIB).state()
    assert (state["ents_max"], state["elems_max"]) == (38, 232)


def test_a_structure_starts_at_its_init_size() -> None:
    state = TwinDriver(size=80 * ENTRY_AND_6_ELEMENTS, init_size=40 * ENTRY_AND_6_ELEMENTS).state()
    assert (state["size"], state["ents_max"]) == (40 * ENTRY_AND_6_ELEMENTS, 40)


@pytest.mark.parametrize("rule", [1, 2, 3])
def test_a_rule_of_threshold_0_and_size_0_gives_two_elements_an_entry(rule: int) -> None:
    everything = {f"offld{rule}_th": 0, f"offld{rule}_sz": 0}
    state = TwinDriver(size=100 * (695 + 512), **everything).state()
    assert (state["ents_max"], state["elems_max"]) == (100, 200)
    assert TwinDriver(cf_level=4, offload="NONE", **everything).state()["elems_max"] == 240


@pytest.mark.parametrize(
    ("length", "elements"), [(0, 2), (140, 2), (141, 3), (396, 3), (397, 4), (1_164, 6), (1_165, 7), (64_512, 254)]
)
def test_a_message_takes_one_entry_and_elements_of_256_bytes_with_372_of_header(length: int, elements: int) -> None:
    state = TwinDriver(**NO_RULES).put(length)
    assert (state["ents_used"], state["elems_used"]) == (1, elements)


def test_usage_is_that_of_the_scarcer_pool() -> None:
    driver = TwinDriver(**NO_RULES)  # 40 entries, 240 elements
    assert driver.put(0)["usage_pct"] == 2.5
    assert driver.put(2_048)["usage_pct"] == 5.0  # 12 of 240 elements, 2 of 40 entries
    assert driver.put(4_096)["usage_pct"] == pytest.approx(100 * 30 / 240)


def test_a_put_accepted_in_a_full_structure_is_a_fact_kept_and_counted() -> None:
    driver = TwinDriver(**NO_RULES)
    assert driver.put(count=40)["overfull_puts"] == 0
    state = driver.put(count=2)
    assert (state["messages"], state["overfull_puts"], state["usage_pct"]) == (42, 2, 105.0)


def test_a_put_that_got_2192_took_no_storage() -> None:
    driver = TwinDriver()
    state = driver.put(reason=2192, count=7)
    assert (state["messages"], state["full_puts"], state["events"]) == (0, 7, 1)


def test_a_put_to_a_waiting_getter_took_no_storage() -> None:
    assert TwinDriver().put(direct=True)["messages"] == 0


def test_a_million_messages_of_one_event_are_stored_one_by_one() -> None:
    driver = TwinDriver(size=4 * GIB, **NO_RULES)
    state = driver.put(1_000, count=1_000_000)
    assert (state["messages"], state["ents_used"], state["elems_used"]) == (1_000_000, 1_000_000, 6_000_000)
    assert driver.get(count=1_000_000)["messages"] == 0


def test_a_million_refused_or_direct_puts_of_100_mb_take_no_memory_either() -> None:
    driver = TwinDriver()
    driver.put(104_857_600, count=1_000_000, reason=2192)
    driver.put(104_857_600, count=1_000_000, direct=True)
    assert driver.twin.tables.rows()["messages"] < 1_000
