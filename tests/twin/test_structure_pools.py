"""Millions of messages of one event. The rules of pools: tests/cases/stores/pools.events."""

from tests.support.store_driver import GIB, NO_RULES
from tests.support.twin_driver import TwinDriver


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
