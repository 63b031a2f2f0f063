"""Demands: what an application asks of the real system, answered as that would, with 2192 and 2033."""

import numpy as np
import pytest
from msgspec.structs import replace

from kernels.layout import ALTER, NONE
from tests.kernels.beside import Decoding
from tests.naive.estates import data_set
from tests.support.store_driver import NO_RULES
from tests.support.twin_driver import PageSetDriver, QueueFileDriver, TwinDriver, demands
from tests.support.workloads import random_workload
from twin.events import EventBlock

pytestmark = pytest.mark.uncompiled

FULL, NOTHING_THERE = 2192, 2033


def reasons(driver: TwinDriver, events: np.ndarray) -> list[int]:
    driver.twin.demand(events)
    return [int(reason) for reason in events["reason"]]


def puts(driver: TwinDriver, *lengths: int, keys: list[int] | None = None) -> np.ndarray:
    return demands(driver.decoding.estate.route_of_queue("QM01", "A.QUEUE"), lengths, "PUT", keys)


def gets(driver: TwinDriver, n: int, keys: list[int] | None = None) -> np.ndarray:
    return demands(driver.decoding.estate.route_of_queue("QM01", "A.QUEUE"), [0] * n, "GET", keys)


def test_a_put_into_a_full_structure_gets_2192_and_stores_nothing() -> None:
    driver = TwinDriver(**NO_RULES)
    assert reasons(driver, puts(driver, *[100] * 42)) == [0] * 40 + [FULL] * 2
    state = driver.state()
    assert (state["messages"], state["full_puts"], state["overfull_puts"]) == (40, 2, 0)


def test_a_shorter_message_may_still_find_its_elements() -> None:
    driver = TwinDriver(**NO_RULES)
    assert reasons(driver, puts(driver, 60_000, 4_000, 100)) == [0, FULL, 0]  # 236 of 240 elements


def test_over_63_kb_cannot_be_put_at_cf_level_3() -> None:
    driver = TwinDriver(cf_level=3, offload="NONE", size=10_000_000)
    assert reasons(driver, puts(driver, 64_512, 64_513)) == [0, FULL]


def test_a_put_that_finds_no_room_in_its_data_set_gets_2192() -> None:
    smds = {"QM01": data_set(size=10 * 8_192, max_size=10 * 8_192), "QM02": data_set(size=10 * 8_192)}
    driver = TwinDriver(ds_block=8_192, offld1_th=0, offld1_sz=0, smds=smds)
    assert reasons(driver, puts(driver, *[8_192] * 11)) == [0] * 9 + [FULL] * 2
    assert driver.state()["smds"]["QM01"]["status"] == "FAILED"


@pytest.mark.parametrize("kind", [PageSetDriver, QueueFileDriver])
def test_a_put_into_a_full_private_store_gets_2192_and_stores_nothing(kind: type[TwinDriver]) -> None:
    driver = PageSetDriver() if kind is PageSetDriver else QueueFileDriver(max_size=1 << 20)
    of_puts = reasons(driver, puts(driver, *[20_000] * 100))
    stored = of_puts.count(0)
    assert 10 < stored < 60
    assert of_puts == [0] * stored + [FULL] * (100 - stored)
    state = driver.state()
    assert (state["messages"], state["bytes"], state["full_puts"]) == (stored, 20_000 * stored, 100 - stored)


def test_a_get_of_nothing_gets_2033_and_is_not_held_aside() -> None:
    driver = TwinDriver()
    driver.twin.demand(puts(driver, 100, keys=[1]))
    assert reasons(driver, gets(driver, 2, [2, 1])) == [NOTHING_THERE, 0]
    assert reasons(driver, gets(driver, 1)) == [NOTHING_THERE]
    assert driver.state()["unmatched_gets"] == 0


def test_each_get_says_which_put_it_took() -> None:
    driver = TwinDriver()
    events = puts(driver, 1, 2, 4)
    events["priority"] = [0, 5, 5]
    assert driver.twin.demand(events).tolist() == [NONE] * 3
    assert driver.twin.demand(gets(driver, 4)).tolist() == [1, 2, 0, NONE]


@pytest.mark.parametrize("other", [-1, 1])
def test_a_route_of_another_store_is_refused(other: int) -> None:
    driver = TwinDriver()
    routes = driver.decoding.estate.routes
    own = [number for number, route in enumerate(routes) if route.store == driver.twin.name]
    events = puts(driver, 100, 200)
    events["route"][1] = {-1: own[0] - 1, 1: own[-1] + 1}[other]
    expected = f"route {events['route'][1]} is none of {driver.twin.name}; expected: {own[0]} to {own[-1]}"
    with pytest.raises(ValueError, match=expected):
        driver.twin.demand(events)


def test_only_operations_on_queues_are_demands() -> None:
    driver = TwinDriver()
    events = puts(driver, 1)
    events["op"] = ALTER
    with pytest.raises(ValueError, match="ALTER is not a demand"):
        driver.twin.demand(events)


@pytest.mark.parametrize("profile", ["filling", "smds", "units"])
def test_demands_with_their_answers_are_facts_that_all_fit(profile: str) -> None:
    """Without expiry: a get that fails removes what has expired, and its event says nothing of that."""
    for seed in range(5):
        workload = random_workload(seed, 1_500, profile)
        asked = [
            {name: value for name, value in event.items() if name != "expiry"}
            for event in workload.events
            if "reason" not in event and event["op"] in ("PUT", "GET", "COMMIT")
        ]
        decoding = Decoding(workload.config, foresees=False)  # as a stand-in for the real system
        block, _ = decoding.block([{**event, "count": 1} if "count" in event else event for event in asked])
        real, twin = decoding.twin(), decoding.twin()
        events = block.events.copy()
        real.demand(events)
        twin.apply(EventBlock(block.store, events, {}))
        assert replace(twin.state(), smds={}) == replace(real.state(), smds={})
        assert real.state().overfull_puts == 0
        assert (events["reason"] == FULL).sum() == real.state().full_puts
