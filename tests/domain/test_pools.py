"""Entries and elements of a structure: how many messages it holds before it is full (docs/storage-model.md)."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.naive.estates import ENTRY_AND_6_ELEMENTS
from tests.naive.pools import elements_of_length, pools_of_size
from tests.support.store_driver import GIB, KIB, MIB, NO_RULES, Open
from tests.support.twin_driver import TwinDriver, demands

MQRC_STORAGE_MEDIUM_FULL = 2192


def messages_that_twin_accepts(size: int, length: int) -> int:
    """Return the number of puts that the twin accepts as the real system would, before it answers 2192."""
    driver = TwinDriver(size=size, full_threshold=0, cf_level=3, offload="NONE")
    route = driver.decoding.estate.route_of_queue("QM01", "A.QUEUE")
    accepted = 0
    while True:
        events = demands(route, np.full(200_000, length))
        driver.twin.demand(events)
        accepted += int((events["reason"] == 0).sum())
        if events["reason"][-1] == MQRC_STORAGE_MEDIUM_FULL:
            assert driver.state()["messages"] == accepted
            return accepted


def messages_of_oracle_pools(size: int, length: int) -> int:
    """Return the number of messages for which the oracle's pools have entries and elements."""
    pools = pools_of_size(size, 6, {"scm_max_size": None})
    return min(pools.entries, pools.elements // elements_of_length(length))


@pytest.fixture
def messages_that_fit(side: str) -> Callable[[int, int], int]:
    """Return the function that gives the number of messages of a length in a structure of a size."""
    return {"oracle": messages_of_oracle_pools, "twin": messages_that_twin_accepts}[side]


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
def test_a_4_gb_structure_holds_what_ibm_published_within_2_percent(
    messages_that_fit: Callable[[int, int], int], length: int, published: int
) -> None:
    assert messages_that_fit(4 * GIB, length) == pytest.approx(published, rel=0.02)


def test_200000_messages_of_1_kb_need_between_256_and_512_mb(messages_that_fit: Callable[[int, int], int]) -> None:
    assert messages_that_fit(256 * MIB, KIB) < 200_000 <= messages_that_fit(512 * MIB, KIB)


def test_a_4_gb_structure_has_the_published_entries_and_elements(structure: Open) -> None:
    state = structure(size=4 * GIB).state()
    assert (state["ents_max"], state["elems_max"]) == (1_925_131, 11_550_786)


def test_a_structure_with_scm_has_3_percent_fewer_rounded_down(structure: Open) -> None:
    state = structure(size=40 * ENTRY_AND_6_ELEMENTS, scm_max_size=GIB).state()
    assert (state["ents_max"], state["elems_max"]) == (38, 232)


def test_a_structure_starts_at_its_init_size(structure: Open) -> None:
    state = structure(size=80 * ENTRY_AND_6_ELEMENTS, init_size=40 * ENTRY_AND_6_ELEMENTS).state()
    assert (state["size"], state["ents_max"]) == (40 * ENTRY_AND_6_ELEMENTS, 40)


@pytest.mark.parametrize("rule", [1, 2, 3])
def test_a_rule_of_threshold_0_and_size_0_gives_two_elements_an_entry(structure: Open, rule: int) -> None:
    everything = {f"offld{rule}_th": 0, f"offld{rule}_sz": 0}
    state = structure(size=100 * (695 + 512), **everything).state()
    assert (state["ents_max"], state["elems_max"]) == (100, 200)
    assert structure(cf_level=4, offload="NONE", **everything).state()["elems_max"] == 240


@pytest.mark.parametrize(
    ("length", "elements"), [(0, 2), (140, 2), (141, 3), (396, 3), (397, 4), (1_164, 6), (1_165, 7), (64_512, 254)]
)
def test_a_message_takes_one_entry_and_elements_of_256_bytes_with_372_of_header(
    structure: Open, length: int, elements: int
) -> None:
    state = structure(**NO_RULES).put(length)
    assert (state["ents_used"], state["elems_used"]) == (1, elements)


def test_usage_is_that_of_the_scarcer_pool(structure: Open) -> None:
    driver = structure(**NO_RULES)  # 40 entries, 240 elements
    assert driver.put(0)["usage_pct"] == 2.5
    assert driver.put(2_048)["usage_pct"] == 5.0  # 12 of 240 elements, 2 of 40 entries
    assert driver.put(4_096)["usage_pct"] == pytest.approx(100 * 30 / 240)


def test_a_put_accepted_in_a_full_structure_is_a_fact_kept_and_counted(structure: Open) -> None:
    driver = structure(**NO_RULES)
    assert driver.put(count=40)["overfull_puts"] == 0
    state = driver.put(count=2)
    assert (state["messages"], state["overfull_puts"], state["usage_pct"]) == (42, 2, 105.0)


def test_a_put_that_got_2192_took_no_storage(structure: Open) -> None:
    driver = structure()
    state = driver.put(reason=2192, count=7)
    assert (state["messages"], state["full_puts"], state["events"]) == (0, 7, 1)


def test_a_put_to_a_waiting_getter_took_no_storage(structure: Open) -> None:
    assert structure().put(direct=True)["messages"] == 0
