"""Sequence numbers and event time of a structure (docs/events.md)."""

from tests.support.store_driver import Open
from tests.support.workloads import HOUR_US, START_US

# -- sequence numbers


def test_a_duplicate_moves_nothing_not_even_the_clock(structure: Open) -> None:
    driver = structure()
    before = driver.put(seq=1)
    assert driver.put(seq=1, time=START_US + HOUR_US) == before | {"duplicates": 1}
